/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/trace.h"

#include <stdio.h>

#include "base/config.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/notice.h"
#include "broker/props.h"
#include "broker/queue.h"
#include "broker/route.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"

const char trace_exchange[] = "amq.rabbitmq.trace";

/* A content header should fit into a frame of the usual 128 KiB. What does not is told without the message's own headers
 * and with the first FEW_QUEUES of the queues. */
enum { HEADERS_MAX = 120 << 10, FEW_QUEUES = 100, KEY = 16 + 255 };

static void
count(struct broker *b, bool on)
{
	if (on) {
		b->tracing++;
		b->watched++;
	} else {
		b->tracing--;
		b->watched--;
	}
}

void
trace_switch(struct vhost *vh, bool on)
{
	if (vh->tracing == on)
		return;
	vh->tracing = on;
	count(vh->broker, on);
}

/* A copy of a message that was traced may have died in its queue: it is as little told as itself. */
static bool
is_told(const struct msg *m)
{
	struct span headers;
	struct field f;

	if (span_is(msg_exchange(m), trace_exchange))
		return true;
	return props_find(msg_props(m), PROP_HEADERS, &headers) &&
	       table_find(headers, "x-first-death-exchange", &f) && f.kind == 'S' &&
	       span_is(f.bytes, trace_exchange);
}

/* Is somebody there to hear of it? */
static bool
is_heard(const struct session *s, const struct msg *m)
{
	const struct vhost *vh = s->client->vhost;
	const struct exchange *x;

	if (vh == NULL || !vh->tracing || vh->is_deleted)
		return false;
	x = exchange_find(vh, span_str(trace_exchange));
	return x != NULL && x->binding_count > 0 && !is_told(m);
}

/* ---- headers ---- */

static void
put_keys(struct table_writer *w, const struct msg *m)
{
	uint32_t mark = table_begin_array(w, "routing_keys");
	struct span headers;
	struct field list, key;
	size_t at = 0;

	table_put_item_text(w, msg_key(m));
	if (props_find(msg_props(m), PROP_HEADERS, &headers) && table_find(headers, "CC", &list) &&
	    list.kind == 'A') {
		while (array_next(list.bytes, &at, &key))
			if (key.kind == 'S')
				table_put_item_text(w, key.bytes);
	}
	table_end(w, mark);
}

static uint64_t
number_of(struct span s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n = n << 8 | s.p[i];
	return n;
}

static void
put_props(struct table_writer *w, struct span raw, bool short_of_room)
{
	static const struct {
		uint16_t flag;
		const char *name;
		char kind;
	} rows[] = {
		{ PROP_CLUSTER_ID, "cluster_id", 'S' },
		{ PROP_APP_ID, "app_id", 'S' },
		{ PROP_USER_ID, "user_id", 'S' },
		{ PROP_TYPE, "type", 'S' },
		{ PROP_TIMESTAMP, "timestamp", 'n' },
		{ PROP_MESSAGE_ID, "message_id", 'S' },
		{ PROP_EXPIRATION, "expiration", 'S' },
		{ PROP_REPLY_TO, "reply_to", 'S' },
		{ PROP_CORRELATION_ID, "correlation_id", 'S' },
		{ PROP_PRIORITY, "priority", 'n' },
		{ PROP_DELIVERY_MODE, "delivery_mode", 'n' },
		{ PROP_HEADERS, "headers", 'F' },
		{ PROP_CONTENT_ENCODING, "content_encoding", 'S' },
		{ (uint16_t)PROP_CONTENT_TYPE, "content_type", 'S' },
	};
	uint32_t mark = table_begin(w, "properties");
	struct span s;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (!props_find(raw, rows[i].flag, &s))
			continue;
		if (rows[i].kind == 'n')
			table_put_number(w, rows[i].name, number_of(s));
		else if (rows[i].kind == 'S' || !short_of_room)
			table_put_field(w, &(struct field){ .name = span_str(rows[i].name),
			                       .kind = (uint8_t)rows[i].kind,
			                       .bytes = s });
	}
	table_end(w, mark);
}

static void
put_who(struct table_writer *w, const struct session *s)
{
	struct session_info info = { .number = 1 };
	const struct client *c = s->client;
	char name[CLIENT_NAME];

	(void)client_name(c, name);
	if (c->host[0] == '\0') /* it came by another way: over HTTP */
		snprintf(name, sizeof name, "%s:%u", c->peer_host, c->peer_port);
	if (s->ops->describe != NULL)
		s->ops->describe(s, &info);
	table_put_string(w, "vhost", c->vhost->name);
	table_put_string(w, "connection", name);
	table_put_number(w, "channel", info.number);
	table_put_string(w, "user", c->user != NULL ? c->user->name : "");
}

static void
put_queues(struct table_writer *w, const struct route *to, bool short_of_room)
{
	uint32_t mark = table_begin_array(w, "routed_queues");

	for (uint32_t i = 0; i < to->count && !(short_of_room && i == FEW_QUEUES); i++)
		table_put_item_text(w, span_of(to->queue[i]->name, to->queue[i]->name_len));
	table_end(w, mark);
}

/* to: of one that is published; e: of one that is delivered. */
static bool
write(struct table_writer *w, const struct session *s, const struct msg *m, const struct route *to,
    const struct entry *e, bool short_of_room)
{
	const char *node = s->broker->cfg->node_name;

	table_writer_init(w, HEADERS_MAX);
	table_put_text(w, "exchange_name", msg_exchange(m));
	put_keys(w, m);
	put_props(w, msg_props(m), short_of_room);
	table_put_string(w, "node", node != NULL ? node : "");
	if (e != NULL)
		table_put_number(w, "redelivered", (e->seq_flags & ENTRY_REDELIVERED) != 0);
	put_who(w, s);
	if (to != NULL)
		put_queues(w, to, short_of_room);
	if (short_of_room)
		table_put_bool(w, "shortened", true);
	return !w->failed;
}

static void
tell(const struct session *s, struct msg *m, const struct route *to, const struct entry *e,
    struct span key)
{
	struct table_writer w;

	if (!write(&w, s, m, to, e, false)) {
		table_writer_fini(&w);
		if (!write(&w, s, m, to, e, true)) {
			s->broker->stats.notices_dropped++;
			table_writer_fini(&w);
			return;
		}
	}
	notice_send(s->client->vhost,
	    &(struct notice_spec){
	        .exchange = trace_exchange, .key = key, .headers = span_of(w.p, w.n), .body = m });
	table_writer_fini(&w);
	notice_pace(s->broker);
}

/* ---- the log ---- */

enum {
	NAMES = 400,   /* bytes of names of queues in a line */
	NAMELESS = 200 /* lines in 10 s */
};

void
trace_follow(struct broker *b)
{
	bool on = log_enabled(LOG_DEBUG);

	if (on == b->is_followed)
		return;
	b->is_followed = on;
	count(b, on);
}

/* Its message-id; false: nobody asks, or it has none. */
static bool
is_followed(const struct broker *b, const struct msg *m, struct span *id)
{
	return b->is_followed && props_find(msg_props(m), PROP_MESSAGE_ID, id) && id->n > 0;
}

/* "2 queues: 'a' 'b'" */
static const char *
queues_of(const struct route *to, char buf[NAMES])
{
	size_t n = (size_t)snprintf(buf, NAMES, "%u queues", to->count);
	uint32_t i;

	for (i = 0; i < to->count; i++) {
		const struct queue *q = to->queue[i];
		int more;

		if (q->name_len + 8u > NAMES - n)
			break;
		more = snprintf(
		    buf + n, NAMES - n, "%s '%.*s'", i == 0 ? ":" : "", (int)q->name_len, q->name);
		n += (size_t)more;
	}
	if (i < to->count && NAMES - n > 5)
		snprintf(buf + n, NAMES - n, " ...");
	return buf;
}

static void
follow_publish(const struct session *s, const struct msg *m, const struct route *to)
{
	char names[NAMES];
	struct span id;

	if (is_followed(s->broker, m, &id))
		log_line(LOG_DEBUG, &s->client->who,
		    "message '%.*s' is published to exchange '%.*s' with key '%.*s', %s%s",
		    SPAN_FMT(id), SPAN_FMT(msg_exchange(m)), SPAN_FMT(msg_key(m)),
		    queues_of(to, names), to->delays > 0 ? ", and kept until it is due" : "");
}

void
trace_settle(const struct session *s, const struct queue *q, const struct entry *e, const char *how)
{
	struct span id;

	/* a session that ended, but for its deliveries, has no client any more */
	if (is_followed(s->broker, e->m, &id))
		log_line(LOG_DEBUG, s->client != NULL ? &s->client->who : NULL,
		    "message '%.*s' of queue '%.*s' is %s", SPAN_FMT(id), (int)q->name_len, q->name,
		    how);
}

void
trace_forward(
    const struct broker *b, const struct msg *m, const struct route *to, enum publish_source source)
{
	static const char *const what[] = { [PUBLISH_CLIENT] = "is published",
		[PUBLISH_LETTER] = "goes on as a dead letter",
		[PUBLISH_DELAYED] = "is due, and goes on",
		[PUBLISH_MOVED] = "is moved",
		[PUBLISH_PLACED] = "is moved" };
	char names[NAMES];
	struct span id;

	if (is_followed(b, m, &id))
		log_line(LOG_DEBUG, b->actor,
		    "message '%.*s' %s with exchange '%.*s' and key '%.*s' to %s", SPAN_FMT(id),
		    what[source], SPAN_FMT(msg_exchange(m)), SPAN_FMT(msg_key(m)),
		    queues_of(to, names));
}

/* What one without a message-id is called; NULL: it has one, *id, or enough of the others have been told, or nobody asks. */
static const char *
nameless(const struct broker *b, const struct msg *m, struct span *id)
{
	static struct log_limit limit = { .burst = NAMELESS };

	if (!b->is_followed)
		return NULL;
	if (is_followed(b, m, id) || !log_allowed(&limit))
		return NULL;
	return "(without a message-id)";
}

static void
say_drop(const struct broker *b, const struct msg *m, const char *verb, const char *what,
    struct span name, const char *why)
{
	struct span id = { NULL, 0 };
	const char *instead = nameless(b, m, &id);

	if (instead != NULL)
		log_line(LOG_DEBUG, b->actor, "message %s %s %s '%.*s': %s", instead, verb, what,
		    SPAN_FMT(name), why);
	else if (id.n > 0)
		log_line(LOG_DEBUG, b->actor, "message '%.*s' %s %s '%.*s': %s", SPAN_FMT(id), verb,
		    what, SPAN_FMT(name), why);
}

void
trace_death(const struct queue *q, const struct entry *e, const char *why)
{
	say_drop(q->broker, e->m, "dies in", "queue", span_of(q->name, q->name_len), why);
}

void
trace_drop(
    struct broker *b, const struct msg *m, const char *what, struct span name, const char *why)
{
	say_drop(b, m, "is dropped at", what, name, why);
}

/* ---- what happens ---- */

static struct span
key_of(char buf[KEY], const char *what, struct span name)
{
	int n = snprintf(buf, KEY, "%s.%.*s", what, SPAN_FMT(name));

	return span_of(buf, (size_t)n);
}

void
trace_publish(const struct session *s, struct msg *m, const struct route *to)
{
	char key[KEY];

	follow_publish(s, m, to);
	if (is_heard(s, m))
		tell(s, m, to, NULL, key_of(key, "publish", msg_exchange(m)));
}

void
trace_deliver(const struct session *s, const struct queue *q, const struct entry *e)
{
	char key[KEY];

	trace_settle(
	    s, q, e, (e->seq_flags & ENTRY_REDELIVERED) != 0 ? "given out again" : "given out");
	if (is_heard(s, e->m))
		tell(s, e->m, NULL, e, key_of(key, "deliver", span_of(q->name, q->name_len)));
}
