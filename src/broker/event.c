/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/event.h"

#include <stdio.h>

#include "base/attr.h"
#include "base/config.h"
#include "base/log.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/exchange.h"
#include "broker/limits.h"
#include "broker/notice.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/queue.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/tags.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"

const char event_exchange[] = "amq.rabbitmq.event";

enum {
	LINES = 200,             /* of the log, of one kind, in 10 s */
	HEADERS_MAX = 120 << 10, /* a content header should fit into a frame of 128 KiB */
	TERM = 512               /* of an argument that is shown as Erlang writes it */
};

enum kind {
#define EVENT(id, key, level) ID_##id,
#include "broker/events.def"
#undef EVENT
	KINDS
};

static const struct {
	const char *key;
	enum log_level level;
} kinds[KINDS] = {
#define EVENT(id, key, level) { key, level },
#include "broker/events.def"
#undef EVENT
};

struct event {
	struct broker *broker;
	enum kind kind;
	struct table_writer w;
};

static void
say(const struct broker *b, enum kind kind, struct span name, const char *vhost)
{
	static struct log_limit limits[KINDS];

	if (!log_enabled(kinds[kind].level))
		return;
	limits[kind].burst = LINES;
	if (log_allowed(&limits[kind]))
		log_line(kinds[kind].level, b->actor, "%s: '%.*s'%s%s%s", kinds[kind].key,
		    SPAN_FMT(name), vhost != NULL ? " in vhost '" : "", vhost != NULL ? vhost : "",
		    vhost != NULL ? "'" : "");
}

/* Says it in the log. False: nobody hears more. */
static bool
begin(struct event *e, struct broker *b, enum kind kind, struct span name, const char *vhost)
{
	if (b->is_silent || (vhost != NULL && *vhost == '\0'))
		return false; /* the node stops, or it is within the broker's own vhost */
	say(b, kind, name, vhost);
	if (b->events == NULL || b->events->binding_count == 0)
		return false;
	*e = (struct event){ .broker = b, .kind = kind };
	table_writer_init(&e->w, HEADERS_MAX);
	return true;
}

static void
put_actor(struct event *e)
{
	const struct log_who *who = e->broker->actor;

	table_put_string(&e->w, "user_who_performed_action",
	    who != NULL && who->user != NULL ? who->user : "rmq-internal");
}

/* Sends it; ends it. */
static void
send(struct event *e)
{
	struct broker *b = e->broker;

	table_put_number(&e->w, "timestamp_in_ms", b->now_ms);
	if (e->w.failed)
		b->stats.notices_dropped++;
	else
		notice_send(b->events->vhost,
		    &(struct notice_spec){ .exchange = event_exchange,
		        .key = span_str(kinds[e->kind].key),
		        .headers = span_of(e->w.p, e->w.n),
		        .is_alarm = e->kind == ID_ALARM_SET || e->kind == ID_ALARM_CLEARED,
		        .time_s = b->now_ms / 1000 });
	table_writer_fini(&e->w);
}

static void
send_by(struct event *e)
{
	put_actor(e);
	send(e);
}

/* RabbitMQ's plugin shows tables as a list of Erlang's terms. */
static void
put_terms(struct table_writer *w, const char *name, const struct table *t)
{
	uint32_t mark = table_begin_array(w, name);
	char value[TERM], text[TERM + 300];
	struct field f;
	size_t at = 0;

	while (table_next(table_span(t), &at, &f)) {
		field_term(&f, value, sizeof value);
		snprintf(text, sizeof text, "{<<\"%.*s\">>,%s,%s}", SPAN_FMT(f.name),
		    field_type_name(&f), value);
		table_put_item_text(w, span_str(text));
	}
	table_end(w, mark);
}

static void
put_tags(struct table_writer *w, const struct tags *tags)
{
	uint32_t mark = table_begin_array(w, "tags");

	for (uint32_t i = 0; i < tags->count; i++)
		table_put_item_text(w, span_str(tags->item[i]));
	table_end(w, mark);
}

static const char *
node_of(const struct broker *b)
{
	return b->cfg->node_name != NULL ? b->cfg->node_name : "";
}

/* ---- what clients make ---- */

void
event_queue(const struct queue *q, bool is_there)
{
	struct span name = span_of(q->name, q->name_len);
	struct event e;

	if (!begin(&e, q->broker, is_there ? ID_QUEUE_CREATED : ID_QUEUE_DELETED, name,
	        q->vhost->name))
		return;
	table_put_text(&e.w, "name", name);
	table_put_string(&e.w, "vhost", q->vhost->name);
	if (is_there) {
		table_put_bool(&e.w, "durable", q->durable);
		table_put_bool(&e.w, "auto_delete", q->auto_delete);
		table_put_bool(&e.w, "exclusive", q->owner != NULL);
		put_terms(&e.w, "arguments", q->arguments);
	}
	send_by(&e);
}

void
event_exchange_of(const struct exchange *x, bool is_there)
{
	struct span name = span_of(x->name, x->name_len);
	struct event e;

	if (exchange_is_predeclared(x)) /* it comes and goes with its vhost */
		return;
	if (!begin(&e, x->vhost->broker, is_there ? ID_EXCHANGE_CREATED : ID_EXCHANGE_DELETED, name,
	        x->vhost->name))
		return;
	table_put_text(&e.w, "name", name);
	table_put_string(&e.w, "vhost", x->vhost->name);
	if (is_there) {
		table_put_string(&e.w, "type", exchange_type_name(x->type));
		table_put_bool(&e.w, "durable", x->durable);
		table_put_bool(&e.w, "auto_delete", x->auto_delete);
		table_put_bool(&e.w, "internal", x->internal);
		put_terms(&e.w, "arguments", x->arguments);
	}
	send_by(&e);
}

void
event_binding(const struct binding *bd, bool is_there)
{
	const struct exchange *from = bd->source;
	struct span to = bd->queue != NULL ? span_of(bd->queue->name, bd->queue->name_len)
	                                   : span_of(bd->exchange->name, bd->exchange->name_len);
	struct event e;

	if (!begin(&e, from->vhost->broker, is_there ? ID_BINDING_CREATED : ID_BINDING_DELETED,
	        binding_key(bd), from->vhost->name))
		return;
	table_put_text(&e.w, "source_name", span_of(from->name, from->name_len));
	table_put_string(&e.w, "source_kind", "exchange");
	table_put_text(&e.w, "destination_name", to);
	table_put_string(&e.w, "destination_kind", bd->queue != NULL ? "queue" : "exchange");
	table_put_text(&e.w, "routing_key", binding_key(bd));
	put_terms(&e.w, "arguments", bd->arguments);
	table_put_string(&e.w, "vhost", from->vhost->name);
	send_by(&e);
}

/* Erlang's processes are what RabbitMQ knows connections and channels by; ours have numbers. */
static void
put_channel(struct table_writer *w, const char *key, const struct session *s)
{
	struct session_info info = { .number = 0 };
	char text[48];

	if (s->ops->describe != NULL)
		s->ops->describe(s, &info);
	snprintf(text, sizeof text, "%llu.%u", (unsigned long long)s->client->id, info.number);
	table_put_string(w, key, text);
}

void
event_consumer(const struct consumer *k, bool is_there)
{
	const struct session *s = k->session;
	const struct vhost *vh = s->client->vhost;
	struct event e;

	if (vh == NULL ||
	    !begin(&e, s->broker, is_there ? ID_CONSUMER_CREATED : ID_CONSUMER_DELETED,
	        consumer_tag(k), vh->name))
		return;
	table_put_text(&e.w, "consumer_tag", consumer_tag(k));
	if (k->queue != NULL)
		table_put_text(&e.w, "queue", span_of(k->queue->name, k->queue->name_len));
	table_put_string(&e.w, "vhost", vh->name);
	put_channel(&e.w, "channel", s);
	if (is_there) {
		table_put_bool(&e.w, "ack_required", !k->no_ack);
		table_put_bool(&e.w, "exclusive", k->exclusive);
		table_put_number(&e.w, "prefetch_count", k->prefetch);
		put_terms(&e.w, "arguments", k->arguments);
	}
	send_by(&e);
}

void
event_channel(const struct session *s, bool is_open)
{
	const struct client *c = s->client;
	struct session_info info = { .number = 0 };
	char name[CLIENT_NAME], text[CLIENT_NAME + 16];
	struct event e;

	if (s->ops->describe != NULL)
		s->ops->describe(s, &info);
	snprintf(text, sizeof text, "%s (%u)", client_name(c, name), info.number);
	if (!begin(&e, s->broker, is_open ? ID_CHANNEL_CREATED : ID_CHANNEL_CLOSED, span_str(text),
	        NULL))
		return;
	put_channel(&e.w, "pid", s);
	table_put_string(&e.w, "name", text);
	table_put_string(&e.w, "connection", name);
	table_put_number(&e.w, "number", info.number);
	table_put_string(&e.w, "user", c->user != NULL ? c->user->name : "");
	table_put_string(&e.w, "vhost", c->vhost != NULL ? c->vhost->name : "");
	send_by(&e);
}

/* ---- connections ---- */

static void
put_tls(struct table_writer *w, const struct client_tls *t)
{
	const struct {
		const char *name, *text;
	} texts[] = { { "ssl_protocol", t->protocol }, { "ssl_key_exchange", t->key_exchange },
		{ "ssl_cipher", t->cipher }, { "ssl_hash", t->hash },
		{ "peer_cert_subject", t->subject }, { "peer_cert_issuer", t->issuer },
		{ "peer_cert_validity", t->validity } };

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		table_put_string(w, texts[i].name, texts[i].text != NULL ? texts[i].text : "");
}

static void
put_addresses(struct table_writer *w, const struct client *c, const char *mechanism)
{
	table_put_string(w, "protocol", "{0,9,1}");
	table_put_string(w, "auth_mechanism", mechanism);
	table_put_bool(w, "ssl", c->tls != NULL);
	if (c->tls != NULL)
		put_tls(w, c->tls);
	table_put_string(w, "peer_host", c->peer_host);
	table_put_number(w, "peer_port", c->peer_port);
	table_put_string(w, "host", c->host);
}

static void
put_open(struct table_writer *w, const struct client *c)
{
	table_put_string(w, "user", c->user->name);
	table_put_string(w, "vhost", c->vhost->name);
	put_addresses(w, c, c->mechanism != NULL ? c->mechanism : "");
	table_put_number(w, "port", c->port);
	table_put_string(w, "type", "network");
	table_put_number(w, "frame_max", c->frame_max);
	table_put_number(w, "channel_max", c->channel_max);
	table_put_number(w, "timeout", c->heartbeat_s);
	table_put_number(w, "connected_at", c->connected_at_ms);
}

void
event_connection(const struct client *c, bool is_open)
{
	char name[CLIENT_NAME], id[24];
	struct event e;

	client_name(c, name);
	if (!begin(&e, c->broker, is_open ? ID_CONNECTION_CREATED : ID_CONNECTION_CLOSED,
	        span_str(name), c->vhost != NULL ? c->vhost->name : NULL))
		return;
	snprintf(id, sizeof id, "%llu", (unsigned long long)c->id);
	table_put_string(&e.w, "pid", id);
	table_put_string(&e.w, "name", name);
	if (c->name != NULL)
		table_put_string(&e.w, "user_provided_name", c->name);
	table_put_string(&e.w, "node", node_of(c->broker));
	put_terms(&e.w, "client_properties", c->properties);
	if (is_open) {
		put_open(&e.w, c);
		put_actor(&e);
	}
	send(&e);
}

void
event_login(const struct client *c, struct span name, const char *mechanism, const char *why)
{
	char text[CLIENT_NAME];
	struct event e;

	if (!begin(&e, c->broker, why == NULL ? ID_LOGIN_SUCCESS : ID_LOGIN_FAILURE, name, NULL))
		return;
	table_put_text(&e.w, "name", name);
	table_put_string(&e.w, "connection_name", client_name(c, text));
	table_put_string(&e.w, "connection_type", "network");
	put_addresses(&e.w, c, mechanism);
	if (why != NULL)
		table_put_string(&e.w, "error", why);
	send(&e);
}

void
event_login_http(
    struct broker *b, const char *name, const char *peer_host, uint16_t peer_port, const char *why)
{
	struct event e;

	if (!begin(&e, b, ID_LOGIN_FAILURE, span_str(name), NULL))
		return;
	table_put_string(&e.w, "name", name);
	table_put_string(&e.w, "connection_type", "http");
	table_put_string(&e.w, "peer_host", peer_host);
	table_put_number(&e.w, "peer_port", peer_port);
	table_put_string(&e.w, "error", why);
	send(&e);
}

/* ---- what operators make ---- */

static void
user_only(const struct user *u, enum kind kind)
{
	struct event e;

	if (!begin(&e, u->broker, kind, span_str(u->name), NULL))
		return;
	table_put_string(&e.w, "name", u->name);
	if (kind == ID_USER_TAGS_SET)
		put_tags(&e.w, &u->tag_list);
	send_by(&e);
}

void
event_user(const struct user *u, enum event_change how)
{
	static const enum kind kind[] = { [EVENT_MADE] = ID_USER_CREATED,
		[EVENT_CHANGED] = ID_USER_PASSWORD_CHANGED,
		[EVENT_GOES] = ID_USER_DELETED };

	user_only(u, kind[how]);
	if (how != EVENT_GOES)
		user_only(u, ID_USER_TAGS_SET);
}

void
event_vhost(const struct vhost *vh, enum event_change how)
{
	static const enum kind kind[] = { [EVENT_MADE] = ID_VHOST_CREATED,
		[EVENT_CHANGED] = ID_VHOST_UPDATED,
		[EVENT_GOES] = ID_VHOST_DELETED };
	struct event e;
	uint32_t mark;

	if (!begin(&e, vh->broker, kind[how], span_str(vh->name), NULL))
		return;
	table_put_string(&e.w, "name", vh->name);
	if (how != EVENT_GOES) {
		table_put_string(&e.w, "description", vh->description);
		put_tags(&e.w, &vh->tags);
		table_put_string(&e.w, "default_queue_type",
		    vh->default_queue_type != NULL ? vh->default_queue_type : "undefined");
		table_put_bool(&e.w, "tracing", vh->tracing);
		mark = table_begin(&e.w, "cluster_state");
		table_put_string(&e.w, node_of(vh->broker), "running");
		table_end(&e.w, mark);
	}
	send_by(&e);
}

void
event_permission(const struct permission *p, bool is_there)
{
	struct event e;

	if (!begin(&e, p->vhost->broker, is_there ? ID_PERMISSION_CREATED : ID_PERMISSION_DELETED,
	        span_str(p->user->name), p->vhost->name))
		return;
	table_put_string(&e.w, "user", p->user->name);
	table_put_string(&e.w, "vhost", p->vhost->name);
	if (is_there) {
		table_put_string(&e.w, "configure", p->text[PERM_CONFIGURE]);
		table_put_string(&e.w, "write", p->text[PERM_WRITE]);
		table_put_string(&e.w, "read", p->text[PERM_READ]);
	}
	send_by(&e);
}

void
event_topic_permission(const struct topic_permission *p, bool is_there)
{
	struct event e;

	if (!begin(&e, p->vhost->broker,
	        is_there ? ID_TOPIC_PERMISSION_CREATED : ID_TOPIC_PERMISSION_DELETED,
	        span_str(p->user->name), p->vhost->name))
		return;
	table_put_string(&e.w, "user", p->user->name);
	table_put_string(&e.w, "vhost", p->vhost->name);
	table_put_string(&e.w, "exchange", p->exchange);
	if (is_there) {
		table_put_string(&e.w, "write", p->text[TOPIC_WRITE]);
		table_put_string(&e.w, "read", p->text[TOPIC_READ]);
	}
	send_by(&e);
}

static bool
put_limits(struct table_writer *w, const struct limit *limit, const char *const *names, unsigned n)
{
	bool any = false;

	for (unsigned i = 0; i < n; i++) {
		if (!limit[i].is_set)
			continue;
		any = true;
		if (w != NULL)
			table_put_field(w, &(struct field){ .name = span_str(names[i]),
			                       .kind = 'l',
			                       .integer = limit[i].value });
	}
	return any;
}

void
event_vhost_limits(const struct vhost *vh)
{
	bool any = put_limits(NULL, vh->limit, vhost_limit_names, VHOST_LIMITS);
	struct event e;

	if (!begin(&e, vh->broker, any ? ID_VHOST_LIMITS_SET : ID_VHOST_LIMITS_CLEARED,
	        span_str(vh->name), NULL))
		return;
	table_put_string(&e.w, "name", "limits");
	table_put_string(&e.w, "vhost", vh->name);
	(void)put_limits(&e.w, vh->limit, vhost_limit_names, VHOST_LIMITS);
	send_by(&e);
}

void
event_user_limits(const struct user *u)
{
	bool any = put_limits(NULL, u->limit, user_limit_names, USER_LIMITS);
	struct event e;

	if (!begin(&e, u->broker, any ? ID_USER_LIMITS_SET : ID_USER_LIMITS_CLEARED,
	        span_str(u->name), NULL))
		return;
	table_put_string(&e.w, "name", "limits");
	table_put_string(&e.w, "username", u->name);
	(void)put_limits(&e.w, u->limit, user_limit_names, USER_LIMITS);
	send_by(&e);
}

void
event_policy(const struct policy *p, bool is_there)
{
	bool is_users = p->kind == POLICY_USER;
	struct event e;

	if (!begin(&e, p->vhost->broker,
	        is_there   ? ID_POLICY_SET
	        : is_users ? ID_POLICY_CLEARED
	                   : ID_OPERATOR_POLICY_CLEARED,
	        span_str(p->name), p->vhost->name))
		return;
	table_put_string(&e.w, "name", p->name);
	table_put_string(&e.w, "vhost", p->vhost->name);
	if (is_there) {
		table_put_string(&e.w, "pattern", p->pattern_text);
		table_put_string(&e.w, "apply-to", policy_apply_to(p));
		table_put_field(
		    &e.w, &(struct field){
		              .name = SPAN_LIT("priority"), .kind = 'l', .integer = p->priority });
		table_put_field(&e.w, &(struct field){ .name = SPAN_LIT("definition"),
		                          .kind = 'F',
		                          .bytes = table_span(p->definition) });
		table_put_bool(&e.w, "operator", !is_users);
	}
	send_by(&e);
}

void
event_parameter(const struct parameter *p, bool is_there)
{
	const char *vhost = p->vhost != NULL ? p->vhost->name : NULL;
	struct event e;

	if (!begin(&e, p->broker, is_there ? ID_PARAMETER_SET : ID_PARAMETER_CLEARED,
	        span_str(p->name), vhost))
		return;
	table_put_string(&e.w, "name", p->name);
	table_put_string(&e.w, "component", vhost != NULL ? p->component : "global");
	if (vhost != NULL)
		table_put_string(&e.w, "vhost", vhost);
	if (is_there)
		table_put_string(&e.w, "value", p->value);
	send_by(&e);
}

static void
alarm_changed(struct broker *b, const char *source, bool is_on)
{
	struct event e;

	if (!begin(&e, b, is_on ? ID_ALARM_SET : ID_ALARM_CLEARED, span_str(source), NULL))
		return;
	table_put_string(&e.w, "source", source);
	table_put_string(&e.w, "node", node_of(b));
	send(&e);
}

void
event_tell_alarms(struct broker *b)
{
	bool memory = b->memory.state != MEMORY_FINE;

	if (memory != b->told_memory)
		alarm_changed(b, "memory", memory);
	if (b->disk_low != b->told_disk)
		alarm_changed(b, "disk", b->disk_low);
	b->told_memory = memory;
	b->told_disk = b->disk_low;
}
