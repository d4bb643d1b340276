/* SPDX-License-Identifier: Apache-2.0
 * The ready entries of a strand.
 *
 * New ones stand in a chain of blocks, in the order they came. Those that were given out and returned stand in one
 * array by sequence number, and come first: entries are given out in their order, so whatever was given out came before
 * everything in the blocks. Returned ones are appended as they come and merged when the next entry is wanted: a client
 * that rejects 65,535 messages one by one costs one merge, not 65,535. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"

enum {
	FIRST_BLOCK = 15, /* 512 bytes: most queues hold few messages */
	BLOCK = 127,      /* 4 KiB; between the two, each is twice as large as the one before it */
	RETURNED_KEPT = 64, /* entries of an empty returned array that is not freed */
	AHEAD = 4           /* messages fetched into the cache before their turn */
};

static_assert(sizeof(struct entry) == 32, "see DESIGN");
static_assert(sizeof(struct entry_block) + BLOCK * sizeof(struct entry) == 4096, "see DESIGN");

/* ---- blocks ---- */

static inline size_t
block_size(uint32_t cap)
{
	return sizeof(struct entry_block) + cap * sizeof(struct entry);
}

/* From the slabs, where messages come from: in address order like them, and given back as they are. */
static struct entry_block *
block_new(uint32_t cap)
{
	uint32_t home;
	struct entry_block *k = slab_xalloc(block_size(cap), &home);

	*k = (struct entry_block){ .cap = cap, .home = home };
	return k;
}

static void
block_free(struct entry_block *k)
{
	if (k->home != SLAB_HEAP) {
		slab_free(k, k->home, block_size(k->cap));
		return;
	}
	mem_sub(MEM_ENTRIES, block_size(k->cap));
	free(k);
}

static struct entry_block *
add_block(struct entry_block **head, struct entry_block **tail)
{
	uint32_t cap = *tail == NULL ? FIRST_BLOCK : (*tail)->cap * 2 + 1;
	struct entry_block *k = block_new(cap < BLOCK ? cap : BLOCK);

	if (*tail == NULL)
		*head = k;
	else
		(*tail)->next = k;
	*tail = k;
	return k;
}

/* Behind the last one of a chain of blocks. */
static inline void
append_to(struct entry_block **head, struct entry_block **tail, const struct entry *e)
{
	struct entry_block *k = *tail;

	if (unlikely(k == NULL || k->tail == k->cap))
		k = add_block(head, tail);
	k->e[k->tail++] = *e;
	k->bytes += e->m->body_size;
}

void
strand_append_to(struct entry_block **head, struct entry_block **tail, const struct entry *e)
{
	append_to(head, tail, e);
}

void
strand_free_block(struct entry_block *k)
{
	block_free(k);
}

struct entry_block *
strand_split_block(struct entry_block *k, uint32_t at)
{
	uint32_t n = k->tail - at;
	struct entry_block *rest = block_new(n > FIRST_BLOCK ? BLOCK : FIRST_BLOCK);

	assert(at >= k->head && at < k->tail && n <= BLOCK);
	memcpy(rest->e, &k->e[at], n * sizeof rest->e[0]);
	rest->tail = n;
	rest->next = k->next;
	k->next = rest;
	k->tail = at;
	for (uint32_t i = 0; i < n; i++)
		rest->bytes += rest->e[i].m->body_size;
	k->bytes -= rest->bytes;
	return rest;
}

/* The first block is used up. A queue that runs empty again and again keeps its small one, but not for each priority. */
static void
drop_first_block(struct strand *s)
{
	struct entry_block *k = s->head;

	if (k->next == NULL && k->cap == FIRST_BLOCK && s->queue->priorities == NULL) {
		k->head = k->tail = 0;
		return;
	}
	s->head = k->next;
	if (s->head == NULL)
		s->tail = NULL;
	block_free(k);
}

static inline void
count_in(struct strand *s, const struct entry *e)
{
	struct queue *q = s->queue;
	uint64_t bytes = e->m->body_size;

	s->ready++;
	s->ready_bytes += bytes;
	q->ready++;
	q->ready_bytes += bytes;
	q->depth->ready++;
	q->broker->stats.messages_ready++;
	if (unlikely(q->priorities != NULL))
		queue_priorities_note(s);
	if (e->due_ms != 0 || q->broker->retention_ms != 0)
		q->with_due = true;
}

static inline void
count_out(struct strand *s, uint64_t n, uint64_t bytes)
{
	struct queue *q = s->queue;

	s->ready -= n;
	s->ready_bytes -= bytes;
	q->ready -= n;
	q->ready_bytes -= bytes;
	q->depth->ready -= n;
	q->broker->stats.messages_ready -= n;
	if (unlikely(q->priorities != NULL))
		queue_priorities_note(s);
}

void
strand_count_out(struct strand *s, uint64_t n, uint64_t bytes)
{
	count_out(s, n, bytes);
}

void
strand_count_in(struct strand *s, uint64_t n)
{
	s->ready += n;
	s->queue->ready += n;
	s->queue->depth->ready += n;
	s->queue->broker->stats.messages_ready += n;
	if (unlikely(s->queue->priorities != NULL))
		queue_priorities_note(s);
}

void
strand_append(struct strand *s, const struct entry *e)
{
	if (likely(s->behind == 0)) {
		append_to(&s->head, &s->tail, e);
	} else {
		append_to(&s->back_head, &s->back_tail, e);
		s->behind++;
		s->back++;
		s->back_bytes += e->m->body_size;
	}
	count_in(s, e);
	if (unlikely(s->queue->with_due) && s->ready == 1)
		queue_arm_expiry(s->queue);
}

/* ---- returned entries ---- */

static inline uint32_t
returned_count(const struct strand *s)
{
	return s->returned != NULL ? s->returned->tail - s->returned->head : 0;
}

/* First the room that entries left which are gone, where they are given out from the front. */
static void
returned_grow(struct strand *s)
{
	uint32_t old = s->returned != NULL ? s->returned->cap : 0,
	         cap = old > 0 ? old * 2 : FIRST_BLOCK;
	struct entry_block *k = s->returned;

	if (old > 0 && k->head > old / 2) {
		memmove(k->e, k->e + k->head, (k->tail - k->head) * sizeof k->e[0]);
		k->tail -= k->head;
		k->head = 0;
		return;
	}
	k = xrealloc(k, block_size(cap));
	if (old > 0) {
		mem_sub(MEM_ENTRIES, block_size(old));
	} else {
		*k = (struct entry_block){ .home = SLAB_HEAP };
	}
	k->cap = cap;
	mem_add(MEM_ENTRIES, block_size(cap));
	s->returned = k;
}

static void
put_returned(struct strand *s, const struct entry *e)
{
	struct queue *q = s->queue;
	struct entry *to;

	if (unlikely(s->returned == NULL || s->returned->tail == s->returned->cap))
		returned_grow(s);
	to = &s->returned->e[s->returned->tail++];
	*to = *e;
	count_in(s, to);
	/* It may be the new head; to find out would cost the merge each time. */
	if (unlikely(q->with_due) && entry_due(q, to) != 0)
		queue_arm_for(q, entry_due(q, to));
}

void
queue_return(struct queue *q, const struct entry *e, enum settle how)
{
	struct strand *s = queue_strand(q, e->m);
	struct entry back = *e;

	if (unlikely(q->is_deleted)) {
		q->broker->stats.purged++;
		msg_unref(&back.m);
		return;
	}
	back.seq_flags |= ENTRY_REDELIVERED;
	back.acquired++;
	if (unlikely(q->quorum != NULL) && quorum_take_back(q, &back, how))
		return;
	put_returned(s, &back);
	if (unlikely(s->lane != NULL) && q->durable) {
		struct op_state state = { true, back.deliveries, back.acquired };

		lane_set_state(s->lane, back.seq_flags >> 8, &state);
	}
}

static void
reverse(struct entry *e, uint32_t n)
{
	for (uint32_t i = 0, j = n; i + 1 < j; i++) {
		struct entry t = e[--j];

		e[j] = e[i];
		e[i] = t;
	}
}

/* Where the run that starts at i ends; an ascending one is turned round first. */
static uint32_t
run_end(struct entry *e, uint32_t i, uint32_t n)
{
	uint32_t j = i + 1;

	if (j >= n)
		return n;
	if (e[j].seq_flags > e[i].seq_flags) {
		while (j < n && e[j].seq_flags > e[j - 1].seq_flags)
			j++;
		reverse(e + i, j - i);
	} else {
		while (j < n && e[j].seq_flags < e[j - 1].seq_flags)
			j++;
	}
	return j;
}

static void
merge(const struct entry *a, const struct entry *a_end, const struct entry *b,
    const struct entry *b_end, struct entry *to)
{
	while (a < a_end && b < b_end)
		*to++ = a->seq_flags > b->seq_flags ? *a++ : *b++;
	while (a < a_end)
		*to++ = *a++;
	while (b < b_end)
		*to++ = *b++;
}

/* Sorts by sequence number, descending, making use of the runs that are there: deliveries of one consumer come
 * back as one. `spare` has room for n. Returns which of the two holds the result. */
static struct entry *
sort_runs(struct entry *e, struct entry *spare, uint32_t n)
{
	while (run_end(e, 0, n) < n) {
		struct entry *t;
		uint32_t i = 0, mid, end;

		for (; i < n; i = end) {
			mid = run_end(e, i, n);
			end = mid < n ? run_end(e, mid, n) : n;
			merge(e + i, e + mid, e + mid, e + end, spare + i);
		}
		t = e;
		e = spare;
		spare = t;
	}
	return e;
}

/* The later ones are sorted, then merged with the earlier ones from the lesser end: one pass, and only over those
 * that stand before them in the queue. */
static void
sort_returned(struct strand *s)
{
	struct entry *e = s->returned->e, *later;
	uint32_t sorted = s->returned_sorted, n = returned_count(s) - sorted, at;
	struct entry *work;

	s->returned_sorted += n;
	if (run_end(e + sorted, 0, n) == n &&
	    (sorted == 0 || e[sorted].seq_flags < e[sorted - 1].seq_flags))
		return;
	work = xmalloc((size_t)n * 2 * sizeof *work);
	memcpy(work, e + sorted, n * sizeof *work);
	later = sort_runs(work, work + n, n);
	at = sorted + n;
	while (n > 0 && sorted > 0)
		e[--at] =
		    later[n - 1].seq_flags < e[sorted - 1].seq_flags ? later[--n] : e[--sorted];
	memcpy(e + at - n, later, n * sizeof *later);
	free(work);
}

/* ---- the head ---- */

static inline bool
head_is_returned(struct strand *s)
{
	uint32_t n = returned_count(s);

	if (likely(n == 0))
		return false;
	if (unlikely(s->returned_sorted != n) && !s->is_fifo)
		sort_returned(s);
	return true;
}

static inline const struct entry *
first_returned(const struct strand *s)
{
	const struct entry_block *k = s->returned;

	return s->is_fifo ? &k->e[k->head] : &k->e[k->tail - 1];
}

static inline const struct entry *
head_entry(struct strand *s)
{
	if (unlikely(head_is_returned(s)))
		return first_returned(s);
	return &s->head->e[s->head->head];
}

static void
take_returned(struct strand *s, struct entry *out)
{
	struct entry_block *k = s->returned;
	const struct entry_block *later = s->head;

	*out = *first_returned(s);
	assert(later == NULL || later->head == later->tail ||
	       out->seq_flags < later->e[later->head].seq_flags);
	if (s->is_fifo) {
		if (++k->head == k->tail)
			k->head = k->tail = 0;
	} else {
		k->tail--;
		s->returned_sorted--;
		if (k->tail >= AHEAD)
			__builtin_prefetch(k->e[k->tail - AHEAD].m, 1);
	}
	if (k->tail == 0 && k->cap > RETURNED_KEPT) {
		s->returned = NULL;
		block_free(k);
	}
}

/* The queue is not empty. */
static inline void
take_head(struct strand *s, struct entry *out)
{
	struct entry_block *k;

	if (unlikely(head_is_returned(s))) {
		take_returned(s, out);
	} else {
		k = s->head;
		*out = k->e[k->head++];
		k->bytes -= out->m->body_size;
		if (k->head + AHEAD < k->tail)
			__builtin_prefetch(k->e[k->head + AHEAD].m, 1);
		if (k->head == k->tail)
			drop_first_block(s);
	}
	count_out(s, 1, out->m->body_size);
}

const struct entry *
strand_head(struct strand *s)
{
	return head_entry(s);
}

void
strand_take_head(struct strand *s, struct entry *out)
{
	take_head(s, out);
}

uint32_t
strand_sort_returned(struct strand *s)
{
	(void)head_is_returned(s);
	return returned_count(s);
}

void
strand_drop_first(struct strand *s)
{
	drop_first_block(s);
}

bool
strand_has_returned(const struct strand *s)
{
	return returned_count(s) > 0;
}

/* ---- garbage: what is dropped by the thousand is unlinked at once and freed in slices ---- */

void
queue_put_garbage(struct broker *b, struct entry_block *first, struct entry_block *last)
{
	last->next = b->garbage;
	b->garbage = first;
}

void
strand_drop_block(struct strand *s, struct entry_block *k)
{
	queue_put_garbage(s->queue->broker, k, k);
}

bool
queue_free_garbage(struct broker *b, unsigned max)
{
	struct entry_block *k;

	while ((k = b->garbage) != NULL) {
		for (; k->head < k->tail && max > 0; max--) {
			if (k->head + AHEAD < k->tail)
				__builtin_prefetch(k->e[k->head + AHEAD].m, 1);
			msg_unref(&k->e[k->head++].m);
		}
		if (k->head < k->tail)
			return true;
		b->garbage = k->next;
		block_free(k);
	}
	return false;
}

static void
purge_before(struct strand *s)
{
	for (const struct entry_block *k = s->head; k != NULL; k = k->next) {
		for (uint32_t i = k->head; i < k->tail; i++) {
			if (k->e[i].seq_flags >> 8 > s->delivered)
				return;
			strand_entry_gone(s, &k->e[i], ACK_PURGED);
		}
	}
}

/* Those that stand before what left the queue last are told one by one: the returned ones, and after a restart those
 * before one that came back too often; what is behind at once, wherever it lies. Of a queue that does not last nothing
 * has to stay in files: a later spill begins a new lane. */
static void
purge_lane(struct strand *s)
{
	if (!s->queue->durable) {
		lane_close(&s->lane);
		return;
	}
	for (uint32_t i = 0; i < returned_count(s); i++)
		strand_entry_gone(s, &s->returned->e[s->returned->head + i], ACK_PURGED);
	purge_before(s);
	lane_ack_from(s->lane, s->delivered + 1, ACK_PURGED);
}

static void
drop_ready(struct strand *s)
{
	struct broker *b = s->queue->broker;

	if (s->lane != NULL && s->ready > 0)
		purge_lane(s);
	if (s->returned != NULL)
		queue_put_garbage(b, s->returned, s->returned);
	if (s->head != NULL)
		queue_put_garbage(b, s->head, s->tail);
	if (s->back_head != NULL)
		queue_put_garbage(b, s->back_head, s->back_tail);
	s->returned = NULL;
	s->returned_sorted = 0;
	s->head = s->tail = NULL;
	strand_unchain(s);
	count_out(s, s->ready, s->ready_bytes);
	assert(s->ready == 0 && s->ready_bytes == 0);
}

uint64_t
queue_drop_ready(struct queue *q)
{
	uint64_t n = q->ready;

	for (struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s))
		drop_ready(s);
	assert(q->ready == 0 && q->ready_bytes == 0);
	queue_reset_due(q);
	wheel_disarm(q->broker->wheel, &q->expiry);
	return n;
}

bool
queue_take(struct queue *q, struct entry *out)
{
	struct strand *s = queue_turn(q);
	bool found = strand_has_head(s);

	if (found)
		take_head(s, out);
	s = queue_turn(q);
	if (unlikely(s->behind > 0))
		strand_read_ahead(s);
	if (unlikely(q->with_due))
		queue_arm_expiry(q);
	return found;
}

bool
queue_pop(struct queue *q, struct entry *out)
{
	struct strand *s;
	unsigned n = 0;

	if (unlikely(q->is_untidy) && !queue_tidy(q))
		return false;
	while (likely(strand_has_head(s = queue_turn(q)))) {
		if (unlikely(q->dead != NULL) && queue_waits_for_letters(q))
			return false;
		take_head(s, out);
		if (likely(!entry_is_expired(q, out))) {
			if (unlikely(s->behind > 0))
				strand_read_ahead(s);
			if (unlikely(q->with_due))
				queue_arm_expiry(q);
			return true;
		}
		strand_drop_expired(s, out);
		n += 1 + strand_expire_blocks(s, EXPIRE_SLICE);
		if (n >= EXPIRE_SLICE) {
			queue_tidy_later(q);
			return false;
		}
	}
	if (s->behind > 0)
		strand_read_ahead(s);
	return false;
}
