/* SPDX-License-Identifier: Apache-2.0
 * /api/permissions and /api/topic-permissions. */
#include <string.h>

#include "base/log.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/access_json.h"
#include "mgmt/access_lists.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"

void
route_permissions(struct request *r)
{
	listing_reply(r, &permission_list, NULL, NULL);
}

void
route_topic_permissions(struct request *r)
{
	listing_reply(r, &topic_permission_list, NULL, NULL);
}

void
route_vhost_permissions(struct request *r)
{
	listing_reply(r, &vhost_permission_list, r->vhost, &r->vhost->series);
}

void
route_vhost_topic_permissions(struct request *r)
{
	listing_reply(r, &vhost_topic_permission_list, r->vhost, &r->vhost->series);
}

static void
reply_user(struct request *r, const struct listing_source *source)
{
	const struct user *u = user_find(r->m->broker, request_arg(r, 0));

	if (u == NULL)
		reply_not_found(r);
	else
		listing_reply(r, source, NULL, &u->series);
}

void
route_user_permissions(struct request *r)
{
	reply_user(r, &permission_list);
}

void
route_user_topic_permissions(struct request *r)
{
	reply_user(r, &topic_permission_list);
}

/* --- of a user in a vhost -------------------------------------------------------------- */

/* Both from the path; false: one is not there. */
static bool
find_both(const struct request *r, struct vhost **vh, struct user **u)
{
	*vh = vhost_find(r->m->broker, request_arg(r, 0));
	*u = user_find(r->m->broker, request_arg(r, 1));
	return *vh != NULL && *u != NULL;
}

static struct permission *
find(const struct request *r)
{
	struct vhost *vh;
	struct user *u;

	return find_both(r, &vh, &u) ? permission_find(u, vh) : NULL;
}

/* A text without NUL, or NULL after having answered. */
static const char *
take(struct request *r, const char *key)
{
	const json_t *j = json_object_get(r->body, key);
	struct span s = json_span(j);

	if (j == NULL)
		reply_bad(r, "[{key_missing,%s}]: the body has to have '%s'", key, key);
	else if (s.p == NULL || memchr(s.p, '\0', s.n) != NULL)
		reply_bad(r, "%s is no text", key);
	else
		return (const char *)s.p; /* jansson's strings end with NUL */
	return NULL;
}

/* RabbitMQ's words for a pattern that does not compile. */
static void
refuse(struct request *r, const struct error *e)
{
	if (strstr(e->text, "regular expression") != NULL)
		reply_bad(r, "{invalid_regexp,\"%s\"}", refusal_text(e));
	else
		reply_refused(r, e);
}

void
route_permission(struct request *r)
{
	struct permission *p = find(r);

	if (p == NULL)
		reply_not_found(r);
	else
		reply_document(r, &permission_list, p);
}

void
route_permission_put(struct request *r)
{
	static const char *const keys[PERM_KINDS] = {
		[PERM_CONFIGURE] = "configure", [PERM_WRITE] = "write", [PERM_READ] = "read"
	};
	const char *text[PERM_KINDS];
	const struct error *e;
	struct vhost *vh;
	struct user *u;
	bool is_new;

	for (unsigned i = 0; i < PERM_KINDS; i++)
		if ((text[i] = take(r, keys[i])) == NULL)
			return;
	if (!find_both(r, &vh, &u)) {
		reply_bad(r, "vhost_or_user_not_found");
		return;
	}
	is_new = permission_find(u, vh) == NULL;
	e = permission_set(u, vh, text[PERM_CONFIGURE], text[PERM_WRITE], text[PERM_READ]);
	if (e != NULL) {
		refuse(r, e);
		return;
	}
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "permissions of user '%s' in vhost '%s' are '%s', '%s', '%s'", u->name, vh->name,
	    text[PERM_CONFIGURE], text[PERM_WRITE], text[PERM_READ]);
	note_permissions(r, u);
	reply_done(r, is_new ? 201 : 204);
}

void
route_permission_delete(struct request *r)
{
	struct permission *p = find(r);

	if (p == NULL) {
		reply_not_found(r);
		return;
	}
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "user '%s' has no permissions in vhost '%s' any more", p->user->name, p->vhost->name);
	note_permissions(r, p->user);
	permission_clear(p);
	reply_done(r, 204);
}

/* --- topic permissions of a user in a vhost ---------------------------------------------- */

void
route_topic_permission(struct request *r)
{
	const struct topic_permission *p = NULL;
	struct vhost *vh;
	struct user *u;

	if (find_both(r, &vh, &u))
		p = u->topic_permissions;
	while (p != NULL && p->vhost != vh)
		p = p->next;
	if (p != NULL)
		listing_reply_pair(r, &topic_permission_list, &u->series, &vh->series);
	else
		reply_not_found(r);
}

void
route_topic_permission_put(struct request *r)
{
	const char *write, *read;
	const struct error *e;
	struct vhost *vh;
	struct user *u;
	bool is_new;

	if (take(r, "exchange") == NULL || (write = take(r, "write")) == NULL ||
	    (read = take(r, "read")) == NULL)
		return;
	if (!find_both(r, &vh, &u)) {
		reply_bad(r, "vhost_or_user_not_found");
		return;
	}
	e = topic_permission_set(
	    u, vh, json_span(json_object_get(r->body, "exchange")), write, read, &is_new);
	if (e != NULL)
		refuse(r, e);
	else
		reply_done(r, is_new ? 201 : 204);
}

void
route_topic_permission_delete(struct request *r)
{
	struct vhost *vh;
	struct user *u;

	if (find_both(r, &vh, &u) && topic_permissions_drop(u, vh) > 0)
		reply_done(r, 204);
	else
		reply_not_found(r);
}

void
route_topic_permission_exchange_delete(struct request *r)
{
	struct topic_permission *p = NULL;
	struct vhost *vh;
	struct user *u;

	if (find_both(r, &vh, &u))
		p = topic_permission_find(u, vh, request_arg(r, 2));
	if (p == NULL) {
		reply_not_found(r);
		return;
	}
	topic_permission_clear(p);
	reply_done(r, 204);
}
