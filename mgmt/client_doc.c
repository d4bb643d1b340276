/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/client_doc.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "broker/broker.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/consumer_doc.h"
#include "mgmt/table_out.h"
#include "mgmt/mgmt_priv.h"

bool
client_is_shown(const struct client *c)
{
	return c->ops != NULL && c->user != NULL && c->vhost != NULL;
}

uint32_t
channel_number(const struct session *s)
{
	struct session_info info = { 0 };

	if (s->ops->describe != NULL)
		s->ops->describe(s, &info);
	return info.number;
}

const char *
channel_name(const struct session *s, char buf[CHANNEL_NAME])
{
	size_t n = strlen(client_name(s->client, buf));

	snprintf(buf + n, CHANNEL_NAME - n, " (%u)", channel_number(s));
	return buf;
}

void
client_write_brief(struct json_out *o, const struct client *c)
{
	char name[CLIENT_NAME];

	out_begin(o, '{');
	OUT_TEXT(o, "name", client_name(c, name));
	OUT_TEXT(o, "peer_host", c->peer_host);
	OUT_INT(o, "peer_port", c->peer_port);
	out_end(o, '}');
}

/* What connections and channels have in common. */
static void
put_owner(const struct doc *d, const struct client *c)
{
	OUT_TEXT(d->out, "node", d->m->cfg->node_name);
	OUT_TEXT(d->out, "user", c->user->name);
	OUT_TEXT(d->out, "user_who_performed_action", c->user->name);
	OUT_TEXT(d->out, "vhost", c->vhost->name);
}

/* ---- connections ---- */

static void
put_tls(struct json_out *o, const struct client_tls *given)
{
	static const struct client_tls none;
	const struct client_tls *t = given != NULL ? given : &none;

	OUT_TRUTH(o, "ssl", given != NULL);
	OUT_TEXT_OR_NULL(o, "peer_cert_issuer", t->issuer);
	OUT_TEXT_OR_NULL(o, "peer_cert_subject", t->subject);
	OUT_TEXT_OR_NULL(o, "peer_cert_validity", t->validity);
	OUT_TEXT_OR_NULL(o, "ssl_cipher", t->cipher);
	OUT_TEXT_OR_NULL(o, "ssl_hash", t->hash);
	OUT_TEXT_OR_NULL(o, "ssl_key_exchange", t->key_exchange);
	OUT_TEXT_OR_NULL(o, "ssl_protocol", t->protocol);
}

static void
put_texts(struct json_out *o, const struct client *c)
{
	char name[CLIENT_NAME];

	OUT_TEXT(o, "name", client_name(c, name));
	OUT_TEXT(o, "state", c->state);
	OUT_TEXT(o, "type", "network");
	OUT_TEXT(o, "protocol", "AMQP 0-9-1");
	OUT_TEXT(o, "auth_mechanism", c->mechanism != NULL ? c->mechanism : "");
	OUT_TEXT(o, "host", c->host);
	OUT_TEXT(o, "peer_host", c->peer_host);
	if (c->name != NULL)
		OUT_TEXT(o, "user_provided_name", c->name);
}

static unsigned
count_channels(const struct client *c)
{
	const struct session *s;
	unsigned n = 0;

	LIST_FOREACH (s, &c->sessions, link)
		n++;
	return n;
}

static void
write_connection(const struct doc *d, void *item)
{
	struct client *c = item;
	struct json_out *o = d->out;
	struct traffic_stats now;
	uint64_t pending;

	client_traffic(c, &now, &pending);
	out_begin(o, '{');
	put_texts(o, c);
	put_owner(d, c);
	put_tls(o, c->tls);
	OUT_INT(o, "port", c->port);
	OUT_INT(o, "peer_port", c->peer_port);
	if (out_key(o, "channels"))
		out_uint(o, count_channels(c));
	OUT_INT(o, "channel_max", c->channel_max);
	OUT_INT(o, "frame_max", c->frame_max);
	OUT_INT(o, "timeout", c->heartbeat_s);
	OUT_INT(o, "connected_at", c->connected_at_ms);
	if (!d->no_stats) {
		out_traffic(d, &c->series, &c->counted);
		OUT_INT(o, "send_pend", pending);
	}
	OUT_PUT(o, "client_properties", out_table, table_span(c->properties));
	out_end(o, '}');
}

static void
write_brief(const struct doc *d, void *item)
{
	const struct client *c = item;
	char name[CLIENT_NAME];

	out_begin(d->out, '{');
	OUT_TEXT(d->out, "name", client_name(c, name));
	OUT_TEXT(d->out, "node", d->m->cfg->node_name);
	OUT_TEXT(d->out, "user", c->user->name);
	OUT_TEXT(d->out, "vhost", c->vhost->name);
	out_end(d->out, '}');
}

/* Of the user whose connections are asked for, or all that may be seen. */
static bool
is_in(const struct scope *scope, const struct client *c)
{
	if (!client_is_shown(c) || (scope->vhost != NULL && scope->vhost != c->vhost))
		return false;
	if (scope->owner != NULL && strcmp(scope->owner, c->user->name) != 0)
		return false;
	return scope_sees_user(scope, c->user);
}

static void *
find_connection(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	return is_in(scope, object) ? object : NULL;
}

static void
collect_connection(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct client *c = object;
	char name[CLIENT_NAME];
	struct span text;

	if (!is_in(scope, c))
		return;
	text = span_str(client_name(c, name));
	listing_add(l, &id, text, text, c);
}

const struct listing_source connection_list = {
	.kinds = { SERIES_CONNECTION, SERIES_CONNECTION },
	.paging = PAGING,
	.collect = collect_connection,
	.find = find_connection,
	.write = write_connection,
};

const struct listing_source vhost_connection_list = {
	.kinds = { SERIES_CONNECTION, SERIES_CONNECTION },
	.collect = collect_connection,
	.find = find_connection,
	.write = write_connection,
};

const struct listing_source connection_brief_list = {
	.kinds = { SERIES_CONNECTION, SERIES_CONNECTION },
	.collect = collect_connection,
	.find = find_connection,
	.write = write_brief,
};

/* ---- channels ---- */

static void
put_modes(struct json_out *o, const struct session *s)
{
	struct session_info info = { 0 };

	if (s->ops->describe != NULL)
		s->ops->describe(s, &info);
	OUT_INT(o, "number", info.number);
	OUT_TRUTH(o, "confirm", info.confirms);
	OUT_TRUTH(o, "transactional", info.transactional);
	OUT_INT(o, "messages_unconfirmed", info.unconfirmed);
	OUT_INT(o, "messages_uncommitted", info.uncommitted);
	OUT_INT(o, "acks_uncommitted", info.acks_uncommitted);
	OUT_TEXT(o, "state", info.is_parked ? "flow" : "running");
}

static void
put_consumers(const struct doc *d, const struct session *s)
{
	const struct consumer *k;

	out_begin(d->out, '[');
	TAILQ_FOREACH (k, &s->consumers, session_link) {
		if (!k->is_cancelled)
			consumer_write(d, k);
	}
	out_end(d->out, ']');
}

static void
write_channel(const struct doc *d, void *item)
{
	struct session *s = item;
	struct json_out *o = d->out;
	char name[CHANNEL_NAME];

	out_begin(o, '{');
	OUT_TEXT(o, "name", channel_name(s, name));
	put_owner(d, s->client);
	put_modes(o, s);
	OUT_INT(o, "prefetch_count", s->prefetch);
	OUT_INT(o, "global_prefetch_count", s->limit);
	OUT_INT(o, "consumer_count", s->consumer_count);
	OUT_INT(o, "messages_unacknowledged", session_unacked(s));
	OUT_PUT(o, "connection_details", client_write_brief, s->client);
	if (!d->no_stats) {
		out_message_stats(d, &s->series, &s->stats);
		out_idle_since(d, &s->series);
	}
	if (d->is_single) {
		if (out_key(o, "consumer_details"))
			put_consumers(d, s);
		OUT_PUT(o, "deliveries", out_raw, SPAN_LIT("[]"));
		OUT_PUT(o, "publishes", out_raw, SPAN_LIT("[]"));
	}
	out_end(o, '}');
}

static void *
find_channel(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	struct session *s = object;

	return !s->is_ending && is_in(scope, s->client) ? s : NULL;
}

static void
collect_channel(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct session *s = find_channel(scope, object, &id);
	char name[CHANNEL_NAME], order[CHANNEL_NAME + 16];

	if (s == NULL)
		return;
	/* 2 before 10 */
	snprintf(order, sizeof order, "%s (%06u)", client_name(s->client, name), channel_number(s));
	listing_add(l, &id, span_str(channel_name(s, name)), span_str(order), s);
}

/* A connection's are its parts there. */
static void *
find_part(const struct scope *scope, void *object, const struct row_id *id)
{
	struct client *c = object;
	struct series *s = series_find(&c->broker->series, id->a);

	return s != NULL ? find_channel(scope, series_object(s), id) : NULL;
}

static void
collect_parts(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct client *c = object;
	char name[CHANNEL_NAME], order[CHANNEL_NAME + 16];
	struct session *s;

	LIST_FOREACH (s, &c->sessions, link) {
		if (find_channel(scope, s, &id) == NULL)
			continue;
		id.a = series_ref(&c->broker->series, &s->series);
		snprintf(order, sizeof order, "%06u", channel_number(s));
		listing_add(l, &id, span_str(channel_name(s, name)), span_str(order), s);
	}
}

const struct listing_source channel_list = {
	.kinds = { SERIES_CHANNEL, SERIES_CHANNEL },
	.paging = PAGING,
	.collect = collect_channel,
	.find = find_channel,
	.write = write_channel,
};

const struct listing_source vhost_channel_list = {
	.kinds = { SERIES_CHANNEL, SERIES_CHANNEL },
	.collect = collect_channel,
	.find = find_channel,
	.write = write_channel,
};

const struct listing_source connection_channel_list = {
	.kinds = { SERIES_CONNECTION, SERIES_CONNECTION },
	.paging = PAGING,
	.collect = collect_parts,
	.find = find_part,
	.write = write_channel,
};
