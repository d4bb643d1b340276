/* SPDX-License-Identifier: Apache-2.0
 * Walks: see the header. Numbers rise from the returned ones over the front and what is unread to the back (queue_chain.c), so
 * that the number of the last one that was seen is all there is to remember. In a quorum queue the returned ones stand in no
 * order: those are counted. */
#include "broker/peek.h"

#include <assert.h>

#include "broker/queue_priv.h"
#include "store/store.h"

enum { BYTES_MAX = 1 << 20, BLOCKS_WORK = 8, ENTRIES_WORK = 64 /* for a unit of broker->work */ };

struct basket {
	struct entry *out;
	unsigned n, max;
	uint64_t bytes, passed; /* passed: blocks */
};

static inline uint64_t
seq_of(const struct entry *e)
{
	return e->seq_flags >> 8;
}

static struct strand *
strand_at(struct queue *q, uint8_t priority)
{
	return q->priorities == NULL ? &q->strand : q->priorities->strand[priority];
}

static void
enter(struct peek *w, struct queue *q, uint8_t priority)
{
	const struct strand *s = strand_at(q, priority);

	lane_look_free(&w->look);
	*w = (struct peek){ .is_begun = true, .priority = priority };
	w->end = s != NULL ? s->next_seq : 0;
}

static void
begin(struct peek *w, struct queue *q)
{
	if (!w->is_begun)
		enter(w, q, q->priorities != NULL ? (uint8_t)q->priorities->max : 0);
}

static bool
next_strand(struct peek *w, struct queue *q)
{
	if (w->priority == 0)
		return false;
	enter(w, q, w->priority - 1);
	return true;
}

/* ---- in memory ---- */

static inline bool
is_full(const struct basket *b)
{
	return b->n == b->max || b->bytes >= BYTES_MAX;
}

static void
put(struct basket *b, const struct entry *e)
{
	msg_ref(e->m);
	b->out[b->n++] = *e;
	b->bytes += e->m->body_size;
}

static void
see_returned(struct peek *w, struct strand *s, struct basket *b)
{
	uint32_t n = strand_sort_returned(s);
	const struct entry_block *k = s->returned;

	b->passed += n / ENTRIES_WORK * BLOCKS_WORK;

	if (s->is_fifo) {
		for (; w->passed < n && !is_full(b); w->passed++)
			put(b, &k->e[k->head + w->passed]);
		return;
	}
	/* the lowest is the last */
	while (n > 0 && !is_full(b)) {
		const struct entry *e = &k->e[--n];

		if (seq_of(e) <= w->after || seq_of(e) >= w->end)
			continue;
		put(b, e);
		w->after = seq_of(e);
	}
}

static void
see_blocks(struct peek *w, const struct entry_block *k, struct basket *b)
{
	for (; k != NULL && !is_full(b); k = k->next) {
		b->passed++;
		if (k->head == k->tail || seq_of(&k->e[k->tail - 1]) <= w->after)
			continue;
		for (uint32_t i = k->head; i < k->tail && !is_full(b); i++) {
			if (seq_of(&k->e[i]) <= w->after)
				continue;
			if (seq_of(&k->e[i]) >= w->end)
				return;
			put(b, &k->e[i]);
			w->after = seq_of(&k->e[i]);
		}
	}
}

/* ---- on disk ---- */

static void
entry_of(const struct strand *s, const struct lane_seen *seen, struct entry *e)
{
	bool redelivered = seen->state.redelivered || seen->seq <= lane_delivered(s->lane);

	*e = (struct entry){ .m = seen->item,
		.seq_flags = seen->seq << 8 | (redelivered ? ENTRY_REDELIVERED : 0),
		.due_ms = seen->expires_ms,
		.deliveries = seen->state.deliveries,
		.acquired = seen->state.acquired };
}

static enum look_result
look_from(struct peek *w, const struct strand *s, uint64_t seq, struct lane_seen *seen)
{
	if (w->look != NULL && w->lane != s->lane)
		lane_look_free(&w->look); /* after a purge it has another one */
	if (w->look == NULL) {
		w->look = lane_look_new(s->lane, seq);
		w->lane = s->lane;
	}
	lane_look_from(w->look, seq);
	return lane_look_next(w->look, seen);
}

/* END: nothing is unread any more. */
static enum peek_result
see_unread(struct peek *w, const struct strand *s, struct basket *b)
{
	enum look_result found = LOOK_END;
	struct lane_seen seen;

	if (strand_unread(s) == 0 || s->lane == NULL)
		return PEEK_END;
	/* They come into memory: then they are seen there. */
	if (lane_is_reading(s->lane))
		return PEEK_LATER;
	while (!is_full(b) && (found = look_from(w, s, w->after + 1, &seen)) == LOOK_GOT) {
		struct entry *e = &b->out[b->n];

		if (seen.seq >= w->end) {
			struct msg *m = seen.item;

			msg_unref(&m);
			return PEEK_END;
		}
		entry_of(s, &seen, e);
		b->n++;
		b->bytes += e->m->body_size;
		w->after = seen.seq;
	}
	return found == LOOK_LATER ? PEEK_LATER : found == LOOK_END ? PEEK_END : PEEK_GOT;
}

/* ---- both ---- */

static enum peek_result
see_strand(struct peek *w, struct strand *s, struct basket *b)
{
	enum peek_result more;

	see_returned(w, s, b);
	see_blocks(w, s->head, b);
	if (b->n > 0)
		return PEEK_GOT;
	more = see_unread(w, s, b);
	if (b->n > 0 || more == PEEK_LATER)
		return b->n > 0 ? PEEK_GOT : PEEK_LATER;
	see_blocks(w, s->back_head, b);
	return b->n > 0 ? PEEK_GOT : PEEK_END;
}

enum peek_result
peek_next(struct peek *w, struct queue *q, struct entry *out, unsigned max, unsigned *n)
{
	struct basket b = { .out = out, .max = max };
	enum peek_result found = PEEK_END;

	begin(w, q);
	do {
		struct strand *s = strand_at(q, w->priority);

		if (s != NULL)
			found = see_strand(w, s, &b);
	} while (found == PEEK_END && next_strand(w, q));
	*n = b.n;
	q->broker->work += b.passed / BLOCKS_WORK;
	return found;
}

/* How many of the blocks are passed; *left goes down. */
static void
skip_blocks(struct peek *w, const struct entry_block *k, uint64_t *left)
{
	for (; k != NULL && *left > 0; k = k->next) {
		uint64_t count = k->tail - k->head;
		uint32_t step;

		if (count == 0)
			continue;
		step = count < *left ? (uint32_t)count : (uint32_t)*left;
		w->after = seq_of(&k->e[k->head + step - 1]);
		*left -= step;
	}
}

static void
skip_returned(struct peek *w, struct strand *s, uint64_t *left)
{
	uint32_t n = strand_sort_returned(s), step = n < *left ? n : (uint32_t)*left;

	if (step == 0)
		return;
	if (s->is_fifo)
		w->passed = step;
	else
		w->after = seq_of(&s->returned->e[n - step]);
	*left -= step;
}

static void
skip_unread(struct peek *w, const struct strand *s, uint64_t *left)
{
	uint64_t unread = strand_unread(s), seq;

	if (unread == 0 || s->lane == NULL)
		return;
	if (*left >= unread) {
		*left -= unread;
		if (s->back_head == NULL)
			w->after = w->end - 1;
		else
			w->after = seq_of(&s->back_head->e[s->back_head->head]) - 1;
		return;
	}
	seq = lane_nth_unread(s->lane, 0, *left);
	if (seq > 0)
		w->after = seq - 1;
	*left = 0;
}

void
peek_skip(struct peek *w, struct queue *q, uint64_t n)
{
	begin(w, q);
	do {
		struct strand *s = strand_at(q, w->priority);

		if (s == NULL)
			continue;
		skip_returned(w, s, &n);
		if (n > 0)
			skip_blocks(w, s->head, &n);
		if (n > 0)
			skip_unread(w, s, &n);
		if (n > 0)
			skip_blocks(w, s->back_head, &n);
	} while (n > 0 && next_strand(w, q));
	/* more than there are */
	if (n > 0)
		w->end = 0;
}

enum peek_result
peek_find(struct peek *w, struct queue *q, uint8_t priority, uint64_t seq, struct entry *out)
{
	const struct entry *e;
	struct lane_seen seen;
	enum look_result found;
	struct strand *s;

	if (priority > (q->priorities != NULL ? q->priorities->max : 0))
		return PEEK_END;
	if (!w->is_begun || w->priority != priority)
		enter(w, q, priority);
	s = strand_at(q, priority);
	if (s == NULL)
		return PEEK_END;
	e = strand_find_ready(s, seq);
	if (e != NULL) {
		*out = *e;
		msg_ref(out->m);
		return PEEK_GOT;
	}
	if (s->lane == NULL || !lane_has_unread(s->lane, seq))
		return PEEK_END;
	if (lane_is_reading(s->lane))
		return PEEK_LATER;
	found = look_from(w, s, seq, &seen);
	if (found != LOOK_GOT)
		return found == LOOK_LATER ? PEEK_LATER : PEEK_END;
	entry_of(s, &seen, out);
	if (seen.seq == seq)
		return PEEK_GOT;
	msg_unref(&out->m);
	return PEEK_END;
}

void
peek_takes(struct peek *w, struct queue *q, const struct entry *e)
{
	if (w->passed > 0 && strand_is_returned(&q->strand, seq_of(e)))
		w->passed--;
}

void
peek_fini(struct peek *w)
{
	lane_look_free(&w->look);
}
