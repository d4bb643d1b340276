/* SPDX-License-Identifier: Apache-2.0
 * A ready message that leaves its queue out of turn, or is looked at, wherever it stands. */
#include <assert.h>
#include <string.h>

#include "broker/queue_priv.h"

/* Blocks, and entries, gone through or moved for a unit of broker->work. */
enum { BLOCKS_WORK = 8, ENTRIES_WORK = 64 };

enum where { IN_RETURNED, IN_FRONT, IN_BACK };

struct place {
	enum where where;
	struct entry_block *block, *before; /* before: in its list; NULL: it is the first */
	uint32_t at;
};

static inline uint64_t
seq_of(const struct entry *e)
{
	return e->seq_flags >> 8;
}

/* Returned ones stand from the highest to the lowest; in a quorum queue in no order. */
static bool
find_returned(struct strand *s, uint64_t seq, struct place *out)
{
	uint32_t n = strand_sort_returned(s), low = 0, high = n;
	struct entry_block *k = s->returned;

	*out = (struct place){ .where = IN_RETURNED, .block = k };
	if (s->is_fifo) {
		while (low < n && seq_of(&k->e[k->head + low]) != seq)
			low++;
		out->at = n > 0 ? k->head + low : 0;
		return low < n;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (seq_of(&k->e[middle]) > seq)
			low = middle + 1;
		else
			high = middle;
	}
	out->at = low;
	return low < n && seq_of(&k->e[low]) == seq;
}

static bool
find_in_blocks(struct broker *b, struct entry_block *k, uint64_t seq, struct place *out)
{
	uint32_t low, high, n = 0;

	out->before = NULL;
	for (; k != NULL; out->before = k, k = k->next) {
		if (++n % BLOCKS_WORK == 0)
			b->work++;
		if (k->head == k->tail || seq_of(&k->e[k->tail - 1]) < seq)
			continue;
		low = k->head;
		high = k->tail - 1;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (seq_of(&k->e[middle]) < seq)
				low = middle + 1;
			else
				high = middle;
		}
		out->block = k;
		out->at = low;
		return seq_of(&k->e[low]) == seq;
	}
	return false;
}

static bool
find(struct strand *s, uint64_t seq, struct place *out)
{
	if (find_returned(s, seq, out))
		return true;
	out->where = IN_FRONT;
	if (find_in_blocks(s->queue->broker, s->head, seq, out))
		return true;
	out->where = IN_BACK;
	return find_in_blocks(s->queue->broker, s->back_head, seq, out);
}

const struct entry *
strand_find_ready(struct strand *s, uint64_t seq)
{
	struct place p;

	return find(s, seq, &p) ? &p.block->e[p.at] : NULL;
}

bool
strand_is_returned(struct strand *s, uint64_t seq)
{
	struct place p;

	return find_returned(s, seq, &p);
}

const struct msg *
queue_first(struct queue *q)
{
	struct strand *s = queue_turn(q);

	return strand_has_head(s) ? strand_head(s)->m : NULL;
}

static void
take_returned_at(struct strand *s, uint32_t at)
{
	struct entry_block *k = s->returned;

	if (s->is_fifo && at == k->head) {
		k->head++;
	} else {
		memmove(&k->e[at], &k->e[at + 1], (k->tail - at - 1) * sizeof k->e[0]);
		s->queue->broker->work += (k->tail - at - 1) / ENTRIES_WORK;
		k->tail--;
	}
	if (!s->is_fifo)
		s->returned_sorted--;
	else if (k->head == k->tail)
		k->head = k->tail = 0;
}

/* A block in which nothing is left goes; but for the one that an empty front may keep. */
static void
drop_empty(struct strand *s, const struct place *p)
{
	struct entry_block **head = p->where == IN_FRONT ? &s->head : &s->back_head;
	struct entry_block **tail = p->where == IN_FRONT ? &s->tail : &s->back_tail;

	if (p->where == IN_FRONT && p->before == NULL) {
		strand_drop_first(s);
		return;
	}
	if (p->before != NULL)
		p->before->next = p->block->next;
	else
		*head = p->block->next;
	if (*tail == p->block)
		*tail = p->before;
	strand_free_block(p->block);
}

static void
take_from_block(struct strand *s, const struct place *p, uint64_t bytes)
{
	struct entry_block *k = p->block;

	if (p->at == k->head) {
		k->head++;
	} else {
		memmove(&k->e[p->at], &k->e[p->at + 1], (k->tail - p->at - 1) * sizeof k->e[0]);
		k->tail--;
	}
	k->bytes -= bytes;
	if (p->where == IN_BACK) {
		s->back--;
		s->behind--;
		s->back_bytes -= bytes;
	}
	if (k->head == k->tail)
		drop_empty(s, p);
}

static bool
take(struct strand *s, uint64_t seq, uint64_t bytes)
{
	struct place p;
	struct msg *m;

	if (!find(s, seq, &p)) {
		if (s->lane == NULL || strand_unread(s) == 0 || !lane_has_unread(s->lane, seq))
			return false;
		strand_forget_unread(s, bytes);
		return true;
	}
	m = p.block->e[p.at].m;
	if (p.where == IN_RETURNED)
		take_returned_at(s, p.at);
	else
		take_from_block(s, &p, m->body_size);
	strand_count_out(s, 1, m->body_size);
	msg_unref(&m);
	return true;
}

bool
queue_pick(struct queue *q, const struct entry *e)
{
	struct strand *s = queue_strand(q, e->m);

	if (!take(s, seq_of(e), e->m->body_size))
		return false;
	if (unlikely(q->with_due))
		queue_arm_expiry(q);
	s = queue_turn(q);
	if (s->behind > 0)
		strand_read_ahead(s);
	queue_make_runnable(q);
	return true;
}
