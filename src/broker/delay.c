/* SPDX-License-Identifier: Apache-2.0
 * What comes in, what becomes due, and how a full buffer becomes a run. See delay.h. */
#include "broker/delay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/dedup.h"
#include "broker/delay_priv.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/persist.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/queue.h"
#include "broker/route.h"
#include "broker/vhost.h"

enum {
	BUFFER_MESSAGES = 65536,
	BUFFER_BYTES = 16 << 20,
	BUFFER_SHORT = 16, /* a part of it, while memory is short */
	DUE_SLICE = 256,   /* messages a call, */
	DUE_WORK = 4096,   /* or queues that they enter */
	MOVE_SLICE = 256,
	MOVE_RECORD = 64,            /* messages a record, */
	MOVE_BYTES = 256 << 10,      /* or bytes */
	MOVE_EACH = MOVE_RECORD / 2, /* messages that come */
	MOVE_WORK = 256,
	RETRY_MS = 100
};

static wheel_fn on_time;

struct delay *
delay_new(struct exchange *x)
{
	struct broker *b = x->vhost->broker;
	struct delay *d = xcalloc(1, sizeof *d);

	d->x = x;
	d->broker = b;
	d->id = x->id;
	d->durable = x->durable;
	d->node.fire = on_time;
	d->next_seq = 1;
	delay_lane_init(&d->in[0], d, DELAY_LANE_FIRST);
	delay_lane_init(&d->in[1], d, DELAY_LANE_FIRST + 1);
	d->next_number = DELAY_LANE_FIRST + 2;
	TAILQ_INIT(&d->runs);
	TAILQ_INIT(&d->idle);
	mem_add(MEM_TOPOLOGY, sizeof *d);
	HASH_ADD(hh, b->delays, id, sizeof d->id, d);
	return d;
}

static void
free_lanes(struct delay_lane_list *list)
{
	struct delay_lane *l;

	while ((l = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, l, link);
		delay_lane_fini(l);
		mem_sub(MEM_TOPOLOGY, sizeof *l);
		free(l);
	}
}

void
delay_free(struct delay **dp)
{
	struct delay *d = *dp;

	*dp = NULL;
	if (d == NULL)
		return;
	wheel_disarm(d->broker->wheel, &d->node);
	if (d->is_listed)
		TAILQ_REMOVE(&d->broker->delay_work, d, work_link);
	HASH_DEL(d->broker->delays, d);
	delay_heap_fini(d->broker, &d->buffer);
	delay_heap_fini(d->broker, &d->sealed);
	delay_lane_fini(&d->in[0]);
	delay_lane_fini(&d->in[1]);
	free_lanes(&d->runs);
	free_lanes(&d->idle);
	d->broker->stats.messages_delayed -= d->messages;
	mem_sub(MEM_TOPOLOGY, sizeof *d);
	free(d);
}

struct exchange *
delay_find(const struct broker *b, uint64_t id)
{
	struct delay *d;

	HASH_FIND(hh, b->delays, &id, sizeof id, d);
	return d != NULL ? d->x : NULL;
}

uint64_t
delay_messages(const struct delay *d)
{
	return d->messages;
}

void
delay_count_out(struct delay *d, uint64_t n)
{
	assert(d->messages >= n);
	d->messages -= n;
	d->broker->stats.messages_delayed -= n;
}

void
delay_list_work(struct delay *d)
{
	d->broker->loads++; /* a turn more */
	if (d->is_listed)
		return;
	d->is_listed = true;
	TAILQ_INSERT_TAIL(&d->broker->delay_work, d, work_link);
}

static void
on_time(struct wheel_node *node, uint64_t now_ms UNUSED)
{
	delay_list_work(container_of(node, struct delay, node));
}

static void
arm(struct delay *d, uint64_t due_ms)
{
	if (!wheel_armed(&d->node) || d->node.due_ms > due_ms)
		wheel_arm(d->broker->wheel, &d->node, due_ms);
}

struct delay_lane *
delay_run_new(struct delay *d, uint32_t number)
{
	struct delay_lane *l = number == 0 ? TAILQ_FIRST(&d->idle) : NULL;

	if (l != NULL) {
		TAILQ_REMOVE(&d->idle, l, link);
	} else {
		l = xmalloc(sizeof *l);
		mem_add(MEM_TOPOLOGY, sizeof *l);
		delay_lane_init(l, d, number != 0 ? number : d->next_number);
		if (l->number >= d->next_number)
			d->next_number = l->number + 1;
	}
	TAILQ_INSERT_TAIL(&d->runs, l, link);
	d->run_count++;
	return l;
}

/* ---- in ---- */

/* With everything the buffers' lanes have in memory, and nothing on its way to a run. */
static bool
may_seal(const struct delay *d)
{
	return d->broker->store != NULL && d->filling == NULL &&
	       delay_lane_unread(&d->in[0]) == 0 && delay_lane_unread(&d->in[1]) == 0;
}

static bool
is_full(const struct delay *d)
{
	uint32_t part = memory_spills(&d->broker->memory) ? BUFFER_SHORT : 1;

	return d->buffer.n >= BUFFER_MESSAGES / part || d->buffer.bytes >= BUFFER_BYTES / part;
}

static uint32_t move_record(struct delay *d);

/* Twice as many as came, so that it has ended before the next buffer is full; now, where whoever publishes pays for it with
 * the time that it has in a turn. */
static void
move_with_publish(struct delay *d)
{
	if (d->came < MOVE_EACH || d->sealed.n == 0 || store_record_is_open(d->broker->store))
		return;
	d->came -= MOVE_EACH;
	(void)move_record(d);
	d->broker->work += MOVE_WORK;
}

struct store_wait
delay_publish(struct delay *d, struct msg *m)
{
	struct broker *b = d->broker;
	struct delay_lane *in = &d->in[d->now];
	struct delay_entry e = { .seq = d->next_seq++, .m = m, .lane = in };
	struct store_wait wait = { 0 };
	struct window_key *key = NULL;
	bool is_kept;
	uint32_t keys = 0;

	e.due_ms = delay_due_ms(m);
	delay_lane_open(in);
	is_kept = in->lane != NULL && ((m->flags & MSG_PERSISTENT) != 0 || persist_hold(b) == NULL);
	if (unlikely(b->dedup != NULL))
		keys = dedup_remember(b, m, NULL, 0, is_kept, &key);
	if (is_kept)
		wait = store_publish_keys(
		    b->store, &(struct lane_place){ in->lane, e.seq }, 1, m, key, keys);
	else if (in->lane != NULL)
		lane_add_volatile(in->lane, e.seq, m);
	delay_heap_push(&d->buffer, &e);
	d->messages++;
	d->came++;
	b->stats.messages_delayed++;
	b->stats.delayed++;
	arm(d, e.due_ms);
	if (unlikely(is_full(d)))
		delay_list_work(d);
	if (d->filling != NULL)
		move_with_publish(d);
	return wait;
}

/* ---- what is next ---- */

struct next {
	const struct delay_entry *e; /* NULL: nothing waits, or it is not known */
	struct delay_heap *heap;     /* one of the two is not NULL */
	struct delay_lane *run;
	bool unknown; /* it has to be read first */
};

/* What lies in a run came before what is in a heap and due at the same time: it was moved before the rest of its buffer, and
 * has a higher number than that nevertheless. */
static bool
is_before(const struct delay_entry *e, bool in_run, const struct next *n)
{
	if (n->e == NULL || e->due_ms != n->e->due_ms)
		return n->e == NULL || e->due_ms < n->e->due_ms;
	return (in_run && n->heap != NULL) || e->seq < n->e->seq;
}

/* Heaps are offered before runs. */
static void
offer(struct next *n, const struct delay_entry *e, struct delay_heap *heap, struct delay_lane *run)
{
	if (!is_before(e, run != NULL, n))
		return;
	n->e = e;
	n->heap = heap;
	n->run = run;
}

static struct next
find_next(struct delay *d)
{
	struct next n = { 0 };
	struct delay_lane *l, *following;
	unsigned i;

	for (i = 0; i < 2; i++) {
		n.unknown |= delay_lane_unread(&d->in[i]) > 0;
		delay_lane_read(&d->in[i]);
	}
	if (d->buffer.n > 0)
		offer(&n, &d->buffer.e[0], &d->buffer, NULL);
	if (d->sealed.n > 0)
		offer(&n, &d->sealed.e[0], &d->sealed, NULL);
	for (l = TAILQ_FIRST(&d->runs); l != NULL; l = following) {
		following = TAILQ_NEXT(l, link);
		delay_lane_read(l);
		if (delay_list_count(&l->front) > 0) {
			offer(&n, &l->front.e[l->front.head], NULL, l);
		} else if (delay_lane_unread(l) > 0) {
			n.unknown = true;
		} else if (l != d->filling && delay_list_count(&l->back) == 0) {
			l->wants_spill = false;
			TAILQ_REMOVE(&d->runs, l, link);
			d->run_count--;
			TAILQ_INSERT_TAIL(&d->idle, l, link);
		}
	}
	if (n.unknown)
		n.e = NULL;
	return n;
}

static struct delay_entry
take_next(struct next *n)
{
	return n->heap != NULL ? delay_heap_pop(n->heap) : delay_list_take(&n->run->front);
}

/* ---- out ---- */

/* What leaves: with the sign of x-delay changed and without BCC, which is for the route only. *r: where it goes now. */
static struct msg *
make_due(struct exchange *x, const struct msg *m, const struct route **r)
{
	struct props pr, changed;
	struct span headers;
	uint8_t *negated, *without = NULL, *raw = NULL;
	struct msg *out = NULL;
	bool cc, bcc = false;
	int n = props_scan(msg_props(m), &pr);

	assert(n == 0);
	negated = delay_negate(pr.headers, &headers.n);
	if (negated == NULL)
		return NULL;
	headers.p = negated;
	changed = pr;
	changed.headers = headers;
	*r = route_find_msg(x, m, &changed);
	if (pr.has_cc && route_check_cc(headers, &cc, &bcc) == NULL && bcc)
		headers.p = without = route_without_bcc(headers, &headers.n);
	if (headers.p != NULL)
		n = props_rewrite(msg_props(m), &pr, &headers, NULL, &raw);
	if (raw != NULL)
		out = msg_try_with_props(m, span_of(raw, (size_t)n));
	free(negated);
	free(without);
	free(raw);
	return out;
}

static void
to_queues(struct broker *b, struct msg *m, const struct route *r)
{
	struct props pr;
	uint64_t expires_ms = 0, ttl_ms;

	if (props_scan(msg_props(m), &pr) == 0 && pr.expiration.p != NULL &&
	    props_expiration(pr.expiration, &ttl_ms) == 0)
		expires_ms = b->now_ms + ttl_ms;
	(void)publish_forward(b, m, r, expires_ms, PUBLISH_DELAYED);
}

/* False: no memory; it stays. */
/* To those who watch the log; the sender heard that it was kept. */
static void
say_unroutable(const struct exchange *x, const struct msg *m)
{
	static struct log_limit lines = { .burst = 1 };

	if (log_allowed(&lines))
		log_info("a delayed message of exchange '%s' in vhost '%s' with key '%.*s' is "
		         "dropped: no queue takes it",
		    x->name, x->vhost->name, SPAN_FMT(msg_key(m)));
}

static bool
publish_due(struct delay *d, struct next *n)
{
	struct broker *b = d->broker;
	const struct route *r;
	struct msg *m = make_due(d->x, n->e->m, &r);
	struct delay_entry e;

	if (m == NULL)
		return false;
	e = take_next(n);
	m->flags = e.m->flags & MSG_PERSISTENT;
	msg_set_spread(m, msg_spread(e.m));
	m->prio = e.m->prio;
	if (r == NULL)
		log_warning(
		    "exchange '%s' in vhost '%s': a delayed message takes too many steps to "
		    "route; it is dropped",
		    d->x->name, d->x->vhost->name);
	if (b->store != NULL)
		store_begin(b->store);
	if (r != NULL && r->count > 0) {
		d->x->stats.publish_out += r->count;
		to_queues(b, m, r);
	} else {
		b->stats.drop_unroutable++;
		if (r != NULL)
			say_unroutable(d->x, m);
		msg_unref(&m);
	}
	if (e.lane->lane != NULL)
		lane_ack(e.lane->lane, e.seq, e.m->body_size, ACK_MOVED);
	if (b->store != NULL)
		(void)store_end(b->store);
	msg_unref(&e.m);
	delay_count_out(d, 1);
	b->stats.delayed_out++;
	return true;
}

/* ---- moves ---- */

static void
seal(struct delay *d)
{
	d->filling = delay_run_new(d, 0);
	delay_lane_open(d->filling);
	d->filling_seq = d->next_seq;
	d->next_seq += d->buffer.n;
	d->sealed = d->buffer;
	d->buffer = (struct delay_heap){ 0 };
	d->now ^= 1;
	d->came = 0;
}

static void
move_one(struct delay *d)
{
	struct delay_entry e = delay_heap_pop(&d->sealed);
	struct lane *from = e.lane->lane;
	uint64_t seq = e.seq;

	e.seq = d->filling_seq++;
	e.lane = d->filling;
	if (d->durable)
		(void)store_publish(
		    d->broker->store, &(struct lane_place){ e.lane->lane, e.seq }, 1, e.m);
	if (from != NULL)
		lane_ack(from, seq, e.m->body_size, ACK_MOVED);
	delay_lane_append(e.lane, &e);
}

/* One record. */
static uint32_t
move_record(struct delay *d)
{
	uint64_t bytes = 0;
	uint32_t n = 0;

	store_begin(d->broker->store);
	for (; n < MOVE_RECORD && bytes < MOVE_BYTES && d->sealed.n > 0; n++) {
		bytes += msg_memory(d->sealed.e[0].m);
		move_one(d);
	}
	(void)store_end(d->broker->store);
	return n;
}

/* With what came since the last time, too. True: there is more. */
static bool
move_some(struct delay *d)
{
	uint32_t most, n = 0;

	if (d->filling == NULL && is_full(d) && may_seal(d))
		seal(d);
	if (d->filling == NULL)
		return false;
	most = MOVE_SLICE + 2 * d->came;
	d->came = 0;
	while (n < most && d->sealed.n > 0)
		n += move_record(d);
	if (d->sealed.n > 0)
		return true;
	d->filling->wants_spill = true;
	d->filling = NULL;
	delay_heap_fini(d->broker, &d->sealed);
	return is_full(d);
}

/* ---- the turn ---- */

/* True: some are to be put into files yet. */
static bool
spill_runs(struct delay *d)
{
	struct delay_lane *l;
	bool waits = false;

	TAILQ_FOREACH (l, &d->runs, link) {
		if (l->wants_spill)
			waits |= l->wants_spill = delay_lane_spill(l);
	}
	return waits;
}

static bool
run_one(struct delay *d)
{
	struct broker *b = d->broker;
	bool held = persist_hold(b) != NULL, more = false;
	uint64_t before = b->work;
	struct next n;
	uint32_t done;

	for (done = 0; done < DUE_SLICE && b->work - before < DUE_WORK && !held; done++) {
		n = find_next(d);
		if (n.e == NULL || n.e->due_ms > b->now_ms)
			break;
		held = !publish_due(d, &n);
	}
	if (!held)
		more = move_some(d);
	if (spill_runs(d) || held)
		arm(d, b->now_ms + RETRY_MS);
	n = find_next(d);
	if (n.e != NULL && !held) {
		if (n.e->due_ms <= b->now_ms)
			return true;
		arm(d, n.e->due_ms);
	}
	return more;
}

bool
delays_run(struct broker *b)
{
	struct delay *d, *last = TAILQ_LAST(&b->delay_work, delay_work);
	bool more = false;

	while (last != NULL && (d = TAILQ_FIRST(&b->delay_work)) != NULL) {
		TAILQ_REMOVE(&b->delay_work, d, work_link);
		d->is_listed = false;
		if (run_one(d)) {
			d->is_listed = true;
			TAILQ_INSERT_TAIL(&b->delay_work, d, work_link);
			more = true;
		}
		if (d == last)
			break;
	}
	return more;
}
