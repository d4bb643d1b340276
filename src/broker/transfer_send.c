/* SPDX-License-Identifier: Apache-2.0
 * One message of a job (transfer.h): where to, may it, and then from here to there in one record. */
#include "broker/transfer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/client.h"
#include "broker/death.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/persist.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/queue_priv.h"
#include "broker/route.h"
#include "broker/table.h"
#include "broker/tap.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum { NAME_MAX_BYTES = 255, SPAN_COST = 4, WORK_COST = 256, FRAME_END = 0xCE };

const char TRANSFER_GONE[] = "it is not there any more";

/* Where a message goes. */
struct address {
	struct exchange *exchange; /* NULL: straight into a queue */
	struct span exchange_name, key;
	enum publish_source source;
	struct death_history seen; /* of a replay */
};

static struct span
span_of_copy(const struct name_copy *c)
{
	return span_of(c->p, c->n);
}

static const char *
text_of(const struct error *e)
{
	const char *text = strstr(e->text, " - ");

	return text != NULL ? text + 3 : e->text;
}

/* ---- where to ---- */

/* May the user publish there? */
static const char *
check_write(const struct user *u, const struct exchange *x, struct span key)
{
	const struct error *e = permission_check_user(
	    u, x->vhost, PERM_WRITE, "exchange", span_of(x->name, x->name_len));

	if (e == NULL && x->internal)
		return "its exchange is an internal one";
	if (e == NULL)
		e = topic_permission_check(u, TOPIC_WRITE, x, key);
	return e != NULL ? text_of(e) : NULL;
}

/* The keys of CC, too; who published it to another exchange may have had more rights. */
static const char *
check_copies(const struct user *u, const struct exchange *x, struct span headers)
{
	const struct error *e = NULL;
	struct field list, key;
	size_t at = 0;

	if (!table_find(headers, "CC", &list) || list.kind != 'A')
		return NULL;
	while (e == NULL && array_next(list.bytes, &at, &key)) {
		if (key.kind == 'S')
			e = topic_permission_check(u, TOPIC_WRITE, x, key.bytes);
	}
	return e != NULL ? text_of(e) : NULL;
}

static const char *
find_exchange(const struct vhost *vh, const struct user *u, struct address *to)
{
	static char text[TRANSFER_REASON_SIZE];

	to->exchange = exchange_find(vh, to->exchange_name);
	if (to->exchange != NULL)
		return check_write(u, to->exchange, to->key);
	(void)snprintf(
	    text, sizeof text, "there is no exchange '%.*s'", SPAN_FMT(to->exchange_name));
	return text;
}

/* Where it was published before it died first: its exchange, and the first of its keys; the others are those of CC. */
static const char *
back_to(const struct vhost *vh, const struct user *u, const struct props *pr, struct address *to)
{
	struct death_history seen;
	struct field f;
	size_t at = 0;

	if (!death_read(pr->headers, &seen))
		return "it is no dead letter: it has no x-death header";
	if (seen.first.exchange.p == NULL || seen.first.exchange.n > NAME_MAX_BYTES)
		return "its x-death header does not say which exchange it came from";
	if (seen.first.keys.p == NULL || !array_next(seen.first.keys, &at, &f) || f.kind != 'S' ||
	    f.bytes.n > NAME_MAX_BYTES)
		return "its x-death header does not say which routing key it had";
	*to = (struct address){ .exchange_name = seen.first.exchange,
		.key = f.bytes,
		.source = PUBLISH_MOVED,
		.seen = seen };
	return find_exchange(vh, u, to);
}

static const char *
address_of(const struct transfer *t, const struct vhost *vh, const struct user *u,
    const struct msg *m, const struct props *pr, struct address *to)
{
	if (t->kind == TRANSFER_REPLAY)
		return back_to(vh, u, pr, to);
	if (t->to_queue.p != NULL) {
		/* as it is, and no exchange looks at it again */
		*to = (struct address){ .exchange_name = msg_exchange(m),
			.key = msg_key(m),
			.source = PUBLISH_PLACED };
		return NULL;
	}
	*to = (struct address){ .exchange_name = span_of_copy(&t->exchange),
		.key = t->key.p != NULL ? span_of_copy(&t->key) : msg_key(m),
		.source = PUBLISH_MOVED };
	return find_exchange(vh, u, to);
}

/* ---- the message ---- */

/* The same with other names: whatever has it now keeps it as it is, and when it came. NULL: no memory. */
static struct msg *
copy(struct msg *m, struct span exchange, struct span key)
{
	uint16_t names = (uint16_t)(2 + exchange.n + key.n + 1);
	uint32_t header = m->meta_len - m->names_len;
	struct msg *to = msg_try_like(m, names, names + header);
	uint8_t *p;

	if (to == NULL)
		return NULL;
	p = put_short_string(put_short_string(to->wire, exchange), key);
	*p++ = FRAME_END;
	memcpy(p, m->wire + m->names_len, header);
	return to;
}

static uint64_t
due_of(const struct broker *b, const struct props *pr)
{
	uint64_t ttl_ms;

	if (pr->expiration.p == NULL || props_expiration(pr->expiration, &ttl_ms) != 0)
		return 0;
	return b->now_ms + ttl_ms;
}

/* ---- the step ---- */

static const char *
full(const struct route *route, const struct msg *m)
{
	static char text[TRANSFER_REASON_SIZE];

	for (uint32_t i = 0; i < route->count; i++) {
		const struct queue *q = route->queue[i];

		if (!queue_refuses(route->queue[i], m))
			continue;
		(void)snprintf(
		    text, sizeof text, "queue '%.*s' is full", (int)q->name_len, q->name);
		return text;
	}
	return NULL;
}

static const char *
step(struct queue *q, const struct entry *e, struct msg *m, const struct route *route,
    uint64_t due_ms, const struct address *to)
{
	struct broker *b = q->broker;
	bool there;

	if (b->store != NULL)
		store_begin(b->store);
	there = queue_pick(q, e);
	if (there) {
		if (to->exchange != NULL && unlikely(to->exchange->is_tapped))
			tap_publish(to->exchange, m);
		(void)publish_forward(b, m, route, due_ms, to->source);
		queue_entry_gone(q, e, ACK_MOVED);
		b->stats.transferred++;
	} else {
		msg_unref(&m);
	}
	if (b->store != NULL)
		(void)store_end(b->store);
	return there ? NULL : TRANSFER_GONE;
}

/* Takes over m. */
static const char *
send_routed(struct transfer *t, struct queue *q, const struct entry *e, struct msg *m,
    const struct route *route, const struct address *to, uint64_t due_ms)
{
	const char *why = NULL;

	if (route == NULL)
		why = "its route takes too many steps";
	else if (route->bad_delay)
		why = "its header x-delay is wrong";
	else if (route->count + route->delays == 0)
		why = "no queue is bound for it";
	else
		why = full(route, m);
	if (why != NULL) {
		msg_unref(&m);
		return why;
	}
	peek_takes(&t->peek, q, e);
	return step(q, e, m, route, due_ms, to);
}

const char *
transfer_send(
    struct transfer *t, struct queue *q, struct user *u, const struct entry *e, uint64_t *work)
{
	struct broker *b = q->broker;
	uint64_t before = b->work;
	const struct route *route;
	struct queue *one[1];
	struct route straight = { .count = 1, .queue = one };
	struct address to;
	struct props pr;
	const char *why;
	struct msg *m;
	int bad = props_scan(msg_props(e->m), &pr);

	assert(bad == 0);
	*work = e->m->meta_len * (uint64_t)SPAN_COST;
	why = address_of(t, q->vhost, u, e->m, &pr, &to);
	if (why != NULL)
		return why;
	if (t->to_queue.p != NULL) {
		one[0] = queue_find_id(q->vhost, t->to_queue_id);
		assert(one[0] != NULL); /* transfer.c saw it in this slice */
	}
	m = t->kind == TRANSFER_REPLAY
	        ? transfer_restore(e->m, &pr, &to.seen, to.exchange_name, to.key)
	        : copy(e->m, to.exchange_name, to.key);
	if (m == NULL)
		return "there is no memory for it";
	bad = props_scan(msg_props(m), &pr);
	assert(bad == 0);
	why = to.exchange != NULL && pr.has_cc ? check_copies(u, to.exchange, pr.headers) : NULL;
	if (why != NULL) {
		msg_unref(&m);
		return why;
	}
	route = to.exchange != NULL ? route_find_msg(to.exchange, m, &pr) : &straight;
	*work += e->m->rest == NULL ? e->m->body_size : 0;
	why = send_routed(t, q, e, m, route, &to, due_of(b, &pr));
	*work += (b->work - before) * WORK_COST;
	return why;
}
