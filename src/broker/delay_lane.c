/* SPDX-License-Identifier: Apache-2.0
 * Lanes of what waits. A run is in order of due time, so it is read from its beginning: its first messages are in memory
 * (front), behind them the lane has unread ones, behind those is what has not gone to files yet (back). A buffer's lane
 * is in order of arrival: all of it is in memory, in the heap, wherever the store has it; after a restart it is read as a
 * whole before anything goes on. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/delay_priv.h"
#include "broker/exchange.h"
#include "broker/msg.h"

enum {
	LIST_FIRST = 16,
	FRONT_KEEP = 32,             /* messages of a run that goes to files, */
	FRONT_KEEP_BYTES = 64 << 10, /* and their memory */
	READ_RUNS = 2 << 20,         /* bytes, for all runs together, */
	READ_RUN = 64 << 10,         /* but so many for each */
	READ_BUFFER = 1 << 20,
	READ_AHEAD_MS = 1000,
	SPILL_MESSAGES = 16384 /* of a transient run, at a time */
};

/* ---- lists ---- */

static void
resize(struct delay_list *a, uint32_t cap)
{
	mem_sub(MEM_ENTRIES, a->cap * sizeof *a->e);
	mem_add(MEM_ENTRIES, cap * sizeof *a->e);
	a->e = xrealloc(a->e, cap * sizeof *a->e);
	a->cap = cap;
}

static void
list_free(struct delay_list *a)
{
	mem_sub(MEM_ENTRIES, a->cap * sizeof *a->e);
	free(a->e);
	*a = (struct delay_list){ 0 };
}

static void
list_append(struct delay_list *a, const struct delay_entry *e)
{
	if (a->n == a->cap && a->head > a->cap / 2) {
		memmove(a->e, a->e + a->head, delay_list_count(a) * sizeof *a->e);
		a->n -= a->head;
		a->head = 0;
	}
	if (a->n == a->cap)
		resize(a, a->cap == 0 ? LIST_FIRST : a->cap * 2);
	a->e[a->n++] = *e;
	a->bytes += msg_memory(e->m);
}

struct delay_entry
delay_list_take(struct delay_list *a)
{
	struct delay_entry e = a->e[a->head++];

	assert(a->head <= a->n);
	a->bytes -= msg_memory(e.m);
	if (a->head == a->n)
		a->head = a->n = 0;
	return e;
}

/* Entries from..n go to the end of another. */
static void
list_move(struct delay_list *from, uint32_t at, struct delay_list *to)
{
	for (uint32_t i = at; i < from->n; i++) {
		from->bytes -= msg_memory(from->e[i].m);
		list_append(to, &from->e[i]);
	}
	from->n = at;
	if (delay_list_count(from) == 0)
		list_free(from);
}

static void
list_drop(struct broker *b, struct delay_list *a)
{
	delay_garbage_put(b, a->e, a->head, a->n, a->cap);
	*a = (struct delay_list){ 0 };
}

/* ---- lanes ---- */

void
delay_lane_init(struct delay_lane *l, struct delay *d, uint32_t number)
{
	*l = (struct delay_lane){ .delay = d, .number = number };
}

void
delay_lane_fini(struct delay_lane *l)
{
	list_drop(l->delay->broker, &l->front);
	list_drop(l->delay->broker, &l->back);
	if (l->lane != NULL)
		lane_close(&l->lane);
}

void
delay_lane_open(struct delay_lane *l)
{
	struct delay *d = l->delay;

	if (l->lane != NULL || d->broker->store == NULL)
		return;
	/* What comes into a transient exchange needs a lane only where it goes to files. */
	if (d->durable || delay_lane_is_run(l))
		l->lane = lane_open(d->broker->store, d->id, l->number, d->durable, l);
}

uint64_t
delay_lane_unread(const struct delay_lane *l)
{
	return l->lane != NULL ? lane_unread(l->lane) : 0;
}

/* All were read: the back is the end of the front. */
static void
join_back(struct delay_lane *l)
{
	if (delay_lane_unread(l) == 0 && delay_list_count(&l->back) > 0)
		list_move(&l->back, l->back.head, &l->front);
}

void
delay_lane_append(struct delay_lane *l, const struct delay_entry *e)
{
	join_back(l);
	list_append(delay_lane_unread(l) > 0 ? &l->back : &l->front, e);
}

/* Is it time to read on? A run that is not due soon has its first messages in memory, and no more. */
static bool
is_low(const struct delay_lane *l, uint64_t bytes)
{
	const struct delay_list *a = &l->front;

	if (delay_list_count(a) == 0)
		return true;
	return a->bytes < bytes / 2 &&
	       a->e[a->head].due_ms < l->delay->broker->now_ms + READ_AHEAD_MS;
}

void
delay_lane_read(struct delay_lane *l)
{
	uint32_t runs = l->delay->run_count + 1;
	uint64_t bytes = READ_RUNS / runs > READ_RUN ? READ_RUNS / runs : READ_RUN;

	if (delay_lane_unread(l) == 0 || lane_is_reading(l->lane))
		return;
	if (!delay_lane_is_run(l))
		lane_read(l->lane, READ_BUFFER);
	else if (is_low(l, bytes))
		lane_read(l->lane, bytes);
}

/* ---- to files ---- */

/* Where the part of the front begins that need not stay. What was read from files stays. */
static uint32_t
find_cut(const struct delay_lane *l)
{
	const struct delay_list *a = &l->front;
	uint64_t bytes = 0;
	uint32_t i;

	for (i = a->head; i < a->n; i++) {
		if (i > a->head && a->e[i].seq > l->through &&
		    (i - a->head >= FRONT_KEEP || bytes >= FRONT_KEEP_BYTES))
			break;
		bytes += msg_memory(a->e[i].m);
	}
	return i;
}

static void
spill_transient(struct delay_lane *l, const struct delay_list *a, uint32_t from)
{
	uint32_t n = a->n - from < SPILL_MESSAGES ? a->n - from : SPILL_MESSAGES, i;
	struct lane_item *item = xcalloc(n, sizeof *item);

	for (i = 0; i < n; i++)
		item[i] = (struct lane_item){ .item = a->e[from + i].m, .seq = a->e[from + i].seq };
	(void)lane_spill_items(l->lane, item, n);
	free(item);
}

bool
delay_lane_spill(struct delay_lane *l)
{
	const struct delay_list *a = &l->front;
	uint32_t from;

	join_back(l);
	from = find_cut(l);
	if (delay_lane_unread(l) > 0) {
		a = &l->back;
		from = a->head;
	}
	if (l->lane == NULL || from == a->n)
		return false;
	/* Where a job is under way it comes back when that has ended (delay_spilled), or by time. */
	if (l->delay->durable)
		return lane_spill_through(l->lane, a->e[a->n - 1].seq);
	spill_transient(l, a, from);
	return true;
}

static void
drop_back(struct delay_lane *l, uint64_t through)
{
	struct delay_list *a = &l->back;

	while (delay_list_count(a) > 0 && a->e[a->head].seq <= through) {
		struct delay_entry e = delay_list_take(a);

		msg_unref(&e.m);
	}
	if (delay_list_count(a) == 0)
		list_free(a);
}

static uint64_t
spilled_front(struct delay_lane *l, uint64_t through)
{
	uint64_t first;
	uint32_t cut;

	join_back(l);
	cut = find_cut(l);
	if (cut == l->front.n || l->front.e[cut].seq > through)
		return through + 1;
	first = l->front.e[cut].seq;
	list_move(&l->front, cut, &l->back);
	if (l->front.cap > LIST_FIRST * 4) {
		struct delay_list kept = { 0 };

		list_move(&l->front, l->front.head, &kept);
		l->front = kept;
	}
	drop_back(l, through);
	return first;
}

uint64_t
delay_spilled(struct delay_lane *l, uint64_t through, bool is_behind)
{
	struct delay *d = l->delay;
	uint64_t first = through + 1;

	if (!delay_lane_is_run(l)) {
		/* Only while a buffer is read after a restart: what came meanwhile is read with it. */
		if (is_behind)
			(void)delay_heap_drop(&d->buffer, l, l->through + 1, through);
	} else if (is_behind) {
		drop_back(l, through);
	} else {
		first = spilled_front(l, through);
	}
	l->through = through;
	if (l->wants_spill)
		delay_list_work(d);
	return first;
}

/* ---- from files ---- */

static void
take(struct delay_lane *l, struct msg *m, uint64_t seq, uint64_t due_ms, struct delay_list *to)
{
	struct delay_entry e = { .due_ms = due_ms, .seq = seq, .m = m, .lane = l };

	if (delay_lane_is_run(l))
		list_append(to, &e);
	else
		delay_heap_push(&l->delay->buffer, &e);
}

void
delay_loaded(struct delay_lane *l, struct msg *m, uint64_t seq, uint64_t due_ms)
{
	take(l, m, seq, due_ms, &l->front);
	if (seq > l->through)
		l->through = seq;
}

void
delay_load_done(struct delay_lane *l)
{
	join_back(l);
	delay_list_work(l->delay);
}

void
delay_lost(struct delay_lane *l, uint64_t count)
{
	delay_count_out(l->delay, count);
	delay_list_work(l->delay);
}

static void
take_restored(void *arg, uint64_t seq, void *item, const struct op_state *state UNUSED,
    const struct op_msg *m)
{
	struct delay_lane *l = arg;
	struct delay *d = l->delay;

	d->messages++;
	d->broker->stats.messages_delayed++;
	take(l, item, seq, m->due_ms, lane_unread(l->lane) > 0 ? &l->back : &l->front);
}

void
delay_restore_lane(struct broker *b, uint64_t exchange, uint32_t number)
{
	struct delay_lane *l;
	struct delay *d;

	HASH_FIND(hh, b->delays, &exchange, sizeof exchange, d);
	if (d == NULL || number < DELAY_LANE_FIRST || !d->durable)
		return;
	l = number < DELAY_LANE_FIRST + 2 ? &d->in[number - DELAY_LANE_FIRST]
	                                  : delay_run_new(d, number);
	delay_lane_open(l);
	if (lane_next_seq(l->lane) > d->next_seq)
		d->next_seq = lane_next_seq(l->lane);
	d->messages += lane_unread(l->lane);
	b->stats.messages_delayed += lane_unread(l->lane);
	lane_each(l->lane, take_restored, l);
	l->wants_spill = delay_lane_is_run(l);
	delay_list_work(d);
}

void
delays_unlink(struct broker *b)
{
	struct delay_lane *l;
	struct delay *d;

	for (d = b->delays; d != NULL; d = d->hh.next) {
		d->in[0].lane = d->in[1].lane = NULL;
		TAILQ_FOREACH (l, &d->runs, link)
			l->lane = NULL;
		TAILQ_FOREACH (l, &d->idle, link)
			l->lane = NULL;
	}
}
