/* SPDX-License-Identifier: Apache-2.0
 * From a message to its route: checks, and the memory of the last one. Then to the queues of it. */
#include "broker/publish.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/dead_letter.h"
#include "broker/dedup.h"
#include "broker/delay.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/persist.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/topic_permission.h"
#include "broker/trace.h"
#include "broker/user.h"
#include "broker/vhost.h"

/* Properties that ask for a look before the message may go on. */
enum { PROPS_CHECKED = PROP_USER_ID | PROP_EXPIRATION | PROP_DELIVERY_MODE };

/* May the exchange that is remembered be looked at, and written to? */
static inline bool
memo_is_fresh(const struct publish_memo *memo, const struct session *s)
{
	return memo->epoch == s->client->vhost->epoch &&
	       memo->permission_epoch == s->broker->permission_epoch && memo->names_len != 0;
}

static inline bool
memo_has_route(const struct publish_memo *memo, const struct msg *m)
{
	return memo->names_len == m->names_len && memo->generation == memo->exchange->generation &&
	       memcmp(memo->names, m->wire, m->names_len) == 0;
}

static inline bool
memo_has_exchange(const struct publish_memo *memo, const struct msg *m)
{
	return memcmp(memo->names, m->wire, 1 + (size_t)m->wire[0]) == 0;
}

static void
memo_set(struct publish_memo *memo, const struct session *s, const struct msg *m,
    struct exchange *x, const struct route *r)
{
	bool keep = !r->by_headers && r->count <= PUBLISH_MEMO_QUEUES;
	uint32_t i;

	assert(m->names_len <= sizeof memo->names);
	memo->exchange = x;
	memo->epoch = s->client->vhost->epoch;
	memo->permission_epoch = s->broker->permission_epoch;
	memo->generation = keep ? x->generation : 0;
	memo->route = (struct route){ .count = keep ? r->count : 0, .queue = memo->queue };
	for (i = 0; i < memo->route.count; i++)
		memo->queue[i] = r->queue[i];
	memo->names_len = m->names_len;
	memcpy(memo->names, m->wire, m->names_len);
}

static void
memo_forget(struct publish_memo *memo, struct exchange *x)
{
	memo->exchange = x;
	memo->names_len = 0;
}

static COLD const struct error *
find_exchange(struct session *s, struct span name, struct exchange **out)
{
	struct vhost *vh = s->client->vhost;
	const struct error *e = permission_check(s->client, PERM_WRITE, "exchange", name);

	if (e == NULL)
		e = exchange_lookup(vh, name, out);
	if (e == NULL && (*out)->internal)
		e = error_make(E_ACCESS_REFUSED,
		    "cannot publish to internal exchange '%.*s' in vhost '%s'", SPAN_FMT(name),
		    vh->name);
	return e;
}

/* RabbitMQ shows how its number parser failed. */
static COLD const struct error *
refuse_expiration(struct span text)
{
	size_t sign = text.n > 0 && (text.p[0] == '+' || text.p[0] == '-'), i = sign;
	const char *why = "value_too_large";

	while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9')
		i++;
	if (i == sign)
		return error_make(
		    E_PRECONDITION_FAILED, "invalid expiration '%.*s': no_integer", SPAN_FMT(text));
	if (i < text.n)
		return error_make(E_PRECONDITION_FAILED,
		    "invalid expiration '%.*s': {leftover_string,\"%.*s\"}", SPAN_FMT(text),
		    SPAN_FMT(span_of(text.p + i, text.n - i)));
	if (text.p[0] == '-')
		why = "value_negative";
	for (i = sign; i + 1 < text.n && text.p[i] == '0';)
		i++;
	return error_make(E_PRECONDITION_FAILED, "invalid expiration '%.*s': {%s,%s%.*s}",
	    SPAN_FMT(text), why, text.p[0] == '-' ? "-" : "",
	    SPAN_FMT(span_of(text.p + i, text.n - i)));
}

const struct error *
publish_refuse_route(const struct exchange *x, struct span key)
{
	return error_make(E_PRECONDITION_FAILED,
	    "the patterns and headers bound behind exchange '%s' in vhost '%s' take more than %d "
	    "steps for "
	    "routing key '%.*s'",
	    x->name, x->vhost->name, ROUTE_STEPS_MAX, SPAN_FMT(key));
}

/* Those of CC and BCC are routing keys like the first. */
static COLD const struct error *
check_topics(const struct user *u, const struct exchange *x, struct span headers)
{
	static const char *const names[] = { "CC", "BCC" };
	const struct error *e;
	struct field list, key;
	uint64_t end;
	size_t at;

	if (likely(u->topic_permissions == NULL))
		return NULL;
	end = topic_permission_end(x);
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (!table_find(headers, names[i], &list) || list.kind != 'A')
			continue;
		for (at = 0; array_next(list.bytes, &at, &key);)
			if (key.kind == 'S' &&
			    (e = topic_permission_check_copy(u, x, key.bytes, end)) != NULL)
				return e;
	}
	return NULL;
}

static NOINLINE const struct error *
check_props(
    const struct session *s, const struct exchange *x, const struct props *pr, uint64_t *due_ms)
{
	const struct user *u = s->client->user;
	const struct error *e;
	uint64_t ttl_ms;
	bool cc, bcc;

	if (pr->user_id.p != NULL && !span_is(pr->user_id, u->name) &&
	    (u->tags & TAG_IMPERSONATOR) == 0)
		return error_make(E_PRECONDITION_FAILED,
		    "user_id property set to '%.*s' but authenticated user was '%s'",
		    SPAN_FMT(pr->user_id), u->name);
	if (pr->expiration.p != NULL) {
		if (props_expiration(pr->expiration, &ttl_ms) != 0)
			return refuse_expiration(pr->expiration);
		*due_ms = s->broker->now_ms + ttl_ms;
	}
	if (pr->has_cc && ((e = route_check_cc(pr->headers, &cc, &bcc)) != NULL ||
	                      (e = check_topics(u, x, pr->headers)) != NULL))
		return e;
	if ((pr->flags & PROP_DELIVERY_MODE) != 0 && pr->delivery_mode != 1 &&
	    pr->delivery_mode != 2)
		return error_make(E_PRECONDITION_FAILED,
		    "invalid message: {delivery_mode_unknown,%u}", pr->delivery_mode);
	return NULL;
}

const struct error *
publish_route(struct session *s, struct publish_memo *memo, const struct msg *m,
    const struct props *pr, const struct route **route, uint64_t *due_ms)
{
	bool fresh = memo_is_fresh(memo, s), known = fresh && memo_has_route(memo, m);
	struct exchange *x = memo->exchange;
	const struct error *e;
	const struct route *r;
	uint64_t due = 0;

	if (!known) {
		if (!(fresh && memo_has_exchange(memo, m)) &&
		    (e = find_exchange(s, msg_exchange(m), &x)) != NULL)
			return e;
		e = topic_permission_check(s->client->user, TOPIC_WRITE, x, msg_key(m));
		if (e != NULL)
			return e;
	}
	if (((pr->flags & PROPS_CHECKED) != 0 || pr->has_cc) &&
	    (e = check_props(s, x, pr, &due)) != NULL)
		return e;
	if (known && !pr->has_cc) {
		r = &memo->route;
	} else {
		r = route_find_msg(x, m, pr);
		if (unlikely(r == NULL))
			return publish_refuse_route(x, msg_key(m));
		if (unlikely(r->bad_delay))
			return delay_refuse(pr->headers);
		if (!pr->has_cc)
			memo_set(memo, s, m, x, r);
		else if (memo->exchange != x)
			memo_forget(memo, x);
		if (s->published.exchange != x->id)
			published_to(s, x);
	}
	*route = r;
	*due_ms = due;
	return NULL;
}

void
publish_show(
    const struct session *s, struct exchange *x, struct msg *m, const struct route *to, bool now)
{
	if (s->broker->tracing > 0)
		trace_publish(s, m, to);
	if (now && x->is_tapped)
		tap_publish(x, m);
}

void
publish_late(struct session *s, struct exchange *x, const struct msg *m, uint32_t copies)
{
	if (s->published.exchange != x->id)
		published_to(s, x);
	publish_count(s, x, copies);
	if (unlikely(x->is_tapped))
		tap_publish(x, m);
}

/* To the exchanges that keep it for a while. Of several records the last one counts: they are in order. */
static void
keep(struct msg *m, const struct route *route, struct store_wait *wait)
{
	struct store_wait w;

	for (uint32_t i = 0; i < route->delays; i++) {
		w = delay_publish(route->delay[i]->delay, msg_ref(m));
		if (w.lsn == 0)
			continue;
		wait->lsn = w.lsn;
		wait->durable |= w.durable;
		wait->lags |= w.lags;
	}
}

static inline void
put(struct msg *m, struct queue *const *queue, uint32_t n, uint64_t due_ms)
{
	/* All references at once: the first queue may use its own up. */
	m->refs += n - 1;
	while (unlikely(n > 1)) {
		__builtin_prefetch(queue[1]);
		queue_publish(*queue++, m, due_ms);
		n--;
	}
	queue_publish(*queue, m, due_ms);
}

static void
give(struct broker *b, struct msg *m, struct queue *const *queue, uint32_t n, uint64_t due_ms,
    struct store_wait *wait)
{
	if (b->store != NULL)
		persist_message(b, m, queue, n, wait);
	if (unlikely(b->dedup != NULL))
		dedup_settle(b, m, queue, n, wait);
	if (unlikely(b->tap.queues > 0))
		tap_enter(b, m, queue, n);
	put(m, queue, n, due_ms);
}

static void
refuse(struct queue *q, struct msg *m)
{
	q->stats.refused++;
	q->broker->stats.refused++;
	if (unlikely(q->broker->tracing > 0))
		trace_death(q, &(struct entry){ .m = m }, "refused, the queue is full");
	if (q->set.overflow == OVERFLOW_REJECT_DLX)
		dead_letter_refused(q, m);
	dead_letters_note_late(q);
}

/* Some queue of the broker refuses messages when it is full: does one of these? The others get it. */
static enum publish_outcome
give_where_room_is(struct broker *b, struct msg *m, struct queue *const *queue, uint32_t n,
    uint64_t due_ms, struct store_wait *wait)
{
	uint32_t chosen = 0;

	if (n > b->choices) {
		b->choices = n * 2;
		b->choice = xrealloc(b->choice, b->choices * sizeof *b->choice);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (queue_refuses(queue[i], m))
			refuse(queue[i], m);
		else
			b->choice[chosen++] = queue[i];
	}
	if (unlikely(b->dedup != NULL) && chosen < n)
		dedup_refused(b);
	if (chosen > 0)
		give(b, m, b->choice, chosen, due_ms, wait);
	else
		msg_unref(&m);
	return chosen < n ? PUBLISH_REFUSED : PUBLISH_ROUTED;
}

/* Is there nothing to do but to give it to queues? They are asked for all at once. */
static inline bool
is_plain(const struct broker *b, const struct route *route)
{
	return route->count > 0 &&
	       ((uintptr_t)b->dedup | b->refusing | b->tap.queues | route->delays) == 0;
}

static inline void
give_plain(struct broker *b, struct msg *m, const struct route *route, uint64_t due_ms,
    struct store_wait *wait)
{
	struct queue *const *queue = route->queue;

	m->arrived_ms = b->now_ms;
	b->work += route->count + 1;
	if (b->store != NULL)
		persist_message(b, m, queue, route->count, wait);
	put(m, queue, route->count, due_ms);
}

/* Takes over the reference. */
static NOINLINE enum publish_outcome
to_route(struct broker *b, struct msg *m, const struct route *route, uint64_t due_ms,
    struct store_wait *wait, enum publish_source source)
{
	enum publish_outcome outcome = PUBLISH_ROUTED;
	struct msg *kept = NULL;

	m->arrived_ms = b->now_ms;
	b->work += route->count + 1;
	if (unlikely(b->dedup != NULL) && route->count + route->delays > 0) {
		route = dedup_filter(b, m, route, source);
		if (route == NULL) {
			dedup_wait(b, wait);
			msg_unref(&m);
			return PUBLISH_ROUTED;
		}
	}
	/* Before any queue has it: what was routed is not changed. */
	if (unlikely(route->delays > 0)) {
		m->flags |= MSG_DELAYED;
		kept = msg_ref(m);
	}
	if (unlikely(route->count == 0))
		msg_unref(&m);
	else if (unlikely(b->refusing > 0))
		outcome = give_where_room_is(b, m, route->queue, route->count, due_ms, wait);
	else
		give(b, m, route->queue, route->count, due_ms, wait);
	if (unlikely(kept != NULL)) {
		keep(kept, route, wait);
		if (unlikely(b->dedup != NULL))
			dedup_wait(b, wait);
		msg_unref(&kept);
	} else if (unlikely(route->count == 0)) {
		outcome = PUBLISH_UNROUTED;
	}
	return outcome;
}

enum publish_outcome
publish_deliver(struct broker *b, struct msg *m, const struct route *route, uint64_t due_ms,
    struct store_wait *wait)
{
	*wait = (struct store_wait){ 0 };
	b->stats.publish++;
	b->stats.publish_in += m->body_size;
	b->stats.routed += route->count;
	if (m->body_size > HISTOGRAM_SMALL) /* the others are what is left */
		b->sizes.count[histogram_size_place(m->body_size)]++;
	if (likely(is_plain(b, route))) {
		give_plain(b, m, route, due_ms, wait);
		return PUBLISH_ROUTED;
	}
	return to_route(b, m, route, due_ms, wait, PUBLISH_CLIENT);
}

enum publish_outcome
publish_forward(struct broker *b, struct msg *m, const struct route *route, uint64_t due_ms,
    enum publish_source source)
{
	struct store_wait nothing = { 0 };

	if (unlikely(b->is_followed))
		trace_forward(b, m, route, source);
	return to_route(b, m, route, due_ms, &nothing, source);
}
