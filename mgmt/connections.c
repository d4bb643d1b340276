/* SPDX-License-Identifier: Apache-2.0
 * /api/connections, /api/channels, /api/consumers: those of others are shown to users with the tag monitoring. */
#include <string.h>

#include "broker/broker.h"
#include "broker/session.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/client_doc.h"
#include "mgmt/consumer_doc.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

void
route_connections(struct request *r)
{
	listing_reply(r, &connection_list, r->vhost, NULL);
}

void
route_channels(struct request *r)
{
	listing_reply(r, &channel_list, r->vhost, NULL);
}

/* Per vhost neither is cut into pages. */
void
route_vhost_connections(struct request *r)
{
	listing_reply(r, &vhost_connection_list, r->vhost, NULL);
}

void
route_vhost_channels(struct request *r)
{
	listing_reply(r, &vhost_channel_list, r->vhost, NULL);
}

void
route_user_connections(struct request *r)
{
	listing_reply_owner(r, &connection_brief_list, request_arg(r, 0));
}

void
route_consumers(struct request *r)
{
	listing_reply(r, &consumer_list, r->vhost, NULL);
}

/* ---- one of them ---- */

static bool
may_see(struct request *r, const struct client *c)
{
	if ((r->user->tags & (TAG_ADMINISTRATOR | TAG_MONITORING)) != 0 || c->user == r->user)
		return true;
	reply_not_authorised(r, "User not authorised to access object");
	return false;
}

struct client *
connection_arg(struct request *r, unsigned i)
{
	struct client *c = client_find(r->m->broker, request_arg(r, i));

	if (c == NULL || !client_is_shown(c)) {
		reply_not_found(r);
		return NULL;
	}
	return may_see(r, c) ? c : NULL;
}

void
route_connection(struct request *r)
{
	struct client *c = connection_arg(r, 0);

	if (c != NULL)
		reply_document(r, &connection_list, c);
}

void
route_connection_channels(struct request *r)
{
	struct client *c = connection_arg(r, 0);

	if (c != NULL)
		listing_reply(r, &connection_channel_list, NULL, &c->series);
}

/* "name of the connection (number)" */
static struct session *
find_channel(const struct broker *b, struct span name)
{
	const struct client *c;
	char text[CHANNEL_NAME];
	struct session *s;
	size_t n = name.n;

	while (n > 0 && name.p[n - 1] != ' ')
		n--;
	c = n > 1 ? client_find(b, span_of(name.p, n - 1)) : NULL;
	if (c == NULL || !client_is_shown(c))
		return NULL;
	LIST_FOREACH (s, &c->sessions, link) {
		if (!s->is_ending && span_is(name, channel_name(s, text)))
			return s;
	}
	return NULL;
}

void
route_channel(struct request *r)
{
	struct session *s = find_channel(r->m->broker, request_arg(r, 0));

	if (s == NULL)
		reply_not_found(r);
	else if (may_see(r, s->client))
		reply_document(r, &channel_list, s);
}

/* ---- closing ---- */

static void
close_client(struct request *r, struct client *c)
{
	const char *reason = request_header(r, "X-Reason");

	client_force_close(
	    c, reason != NULL && *reason != '\0' ? reason : "Closed via management plugin");
}

void
route_connection_close(struct request *r)
{
	struct client *c = client_find(r->m->broker, request_arg(r, 0));

	if (c == NULL || !client_is_shown(c)) {
		reply_not_found(r);
		return;
	}
	/* somebody else's only administrators may close */
	if ((r->user->tags & TAG_ADMINISTRATOR) == 0 && c->user != r->user) {
		reply_not_authorised(r, "User not authorised to access object");
		return;
	}
	close_client(r, c);
	reply_empty(r, 204);
}

void
route_user_connections_close(struct request *r)
{
	struct client *c, *next;

	for (c = TAILQ_FIRST(&r->m->broker->clients); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (client_is_shown(c) && span_is(request_arg(r, 0), c->user->name))
			close_client(r, c);
	}
	reply_empty(r, 204);
}
