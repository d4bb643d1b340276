/* SPDX-License-Identifier: Apache-2.0
 * What of a strand lies on disk. In the order in which they are given out, its ready messages are
 *
 *	returned	those that were given out before, by number
 *	head .. tail	in memory: the front
 *	unread		in files only; the lane knows how many
 *	back_head ..	in memory: what came while there were unread ones
 *
 * The lane says when a part of it was put into files (strand_spilled): the first of the front stay, the others
 * are let go and are unread from now on. They come back in pieces (strand_loaded) as the front runs low. When the last one
 * was read the back becomes the end of the front. A queue whose next message is still being read is on no list of those
 * that may deliver; strand_load_done() puts it there. */
#include <assert.h>

#include "base/bound.h"
#include "base/log.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"

enum {
	FRONT_LOW = 2048, /* ready ones in memory: below it the next piece is read */
	READ_BYTES = 1 << 20,
	READ_BYTES_EACH = 128 << 10, /* of a priority */
	TEND_LOOK = 64,              /* queues looked at a second, and read for */
	TEND_READ = 8,
	FIRSTS = 256,            /* read a second for those who look at queues, */
	FIRSTS_BYTES = 64 << 10, /* a longer one counts as so many of these */
	FIRSTS_MS = 1000
};

static inline uint64_t
seq_of(const struct entry *e)
{
	return e->seq_flags >> 8;
}

static void
mark_chained(struct strand *s)
{
	if (s->is_chained)
		return;
	s->is_chained = true;
	TAILQ_INSERT_TAIL(&s->queue->broker->chained, s, chain_link);
}

/* Nothing is behind any more: the lists are the caller's. */
void
strand_unchain(struct strand *s)
{
	s->back_head = s->back_tail = NULL;
	s->behind = s->back = s->back_bytes = 0;
	if (!s->is_chained)
		return;
	s->is_chained = false;
	TAILQ_REMOVE(&s->queue->broker->chained, s, chain_link);
	/* Who waits for the next one has to hear of it, also when it went unread. */
	s->queue->broker->loads++;
}

static void
count_bytes(struct strand *s)
{
	uint64_t bytes = 0;

	for (const struct entry_block *k = s->head; k != NULL; k = k->next)
		bytes += k->bytes;
	for (uint32_t i = s->returned != NULL ? s->returned->head : 0;
	     s->returned != NULL && i < s->returned->tail; i++)
		bytes += s->returned->e[i].m->body_size;
	s->queue->ready_bytes += bytes - s->ready_bytes;
	s->ready_bytes = bytes;
	s->bytes_unsure = false;
}

/* All were read: the back is the end of the front. */
static void
link_back(struct strand *s)
{
	if (s->back_head != NULL) {
		/* A small block that is kept though it is empty would stand in the way. */
		if (s->head != NULL && s->head->head == s->head->tail) {
			assert(s->head == s->tail);
			strand_free_block(s->head);
			s->head = s->tail = NULL;
		}
		if (s->tail == NULL)
			s->head = s->back_head;
		else
			s->tail->next = s->back_head;
		s->tail = s->back_tail;
	}
	strand_unchain(s);
	if (unlikely(s->bytes_unsure))
		count_bytes(s);
}

/* ---- to disk ---- */

/* Where the part of the front begins that need not stay in memory. False: there is none. */
static bool
find_cut(struct strand *s, struct entry_block **block, uint32_t *index)
{
	uint64_t most = memory_spills(&s->queue->broker->memory) ? KEEP_BYTES_SHORT : KEEP_BYTES;
	uint64_t n = 0, bytes = 0, keep = KEEP_ENTRIES;

	/* Of a priority that it is not the turn of it may be long before the next one is wanted. */
	if (unlikely(s != queue_turn(s->queue)))
		keep = most = 0;

	for (struct entry_block *k = s->head; k != NULL; k = k->next) {
		uint32_t count = k->tail - k->head;

		if (n + count <= keep && bytes + k->bytes <= most) {
			n += count;
			bytes += k->bytes;
			continue;
		}
		for (uint32_t i = k->head; i < k->tail; i++) {
			/* One stays, however large it is. */
			if (n > 0 && (n >= keep || bytes >= most) &&
			    seq_of(&k->e[i]) > s->keep_through) {
				*block = k;
				*index = i;
				return true;
			}
			n++;
			bytes += k->e[i].m->body_size;
		}
	}
	return false;
}

/* The front is cut: what is behind its end is returned. */
static struct entry_block *
cut_front(struct strand *s, struct entry_block *block, uint32_t index)
{
	struct entry_block *last = NULL, *rest;

	if (index > block->head) {
		if (s->tail == block)
			s->tail = NULL;
		rest = strand_split_block(block, index);
		if (s->tail == NULL)
			s->tail = rest;
		last = block;
	} else {
		rest = block;
		for (last = s->head; last != rest && last->next != rest; last = last->next)
			continue;
		assert(last != rest); /* one entry stays */
	}
	last->next = NULL;
	s->back_head = rest;
	s->back_tail = s->tail;
	s->tail = last;
	return rest;
}

/* Lets go of those of the back that lie in the chain. Returns how many; their bytes are not in back_bytes any more. */
static uint64_t
drop_through(struct strand *s, uint64_t through)
{
	struct entry_block *k;
	uint64_t n = 0;

	while ((k = s->back_head) != NULL && seq_of(&k->e[k->tail - 1]) <= through) {
		s->back_head = k->next;
		n += k->tail - k->head;
		s->back_bytes -= k->bytes;
		strand_drop_block(s, k);
	}
	if (k == NULL) {
		s->back_tail = NULL;
		return n;
	}
	for (; seq_of(&k->e[k->head]) <= through; k->head++, n++) {
		uint64_t bytes = k->e[k->head].m->body_size;

		k->bytes -= bytes;
		s->back_bytes -= bytes;
		msg_unref(&k->e[k->head].m);
	}
	return n;
}

static uint64_t
spilled_front(struct strand *s, uint64_t through)
{
	struct entry_block *block;
	uint64_t first, dropped;
	uint32_t index;

	if (!find_cut(s, &block, &index) || seq_of(&block->e[index]) > through)
		return through + 1;
	first = seq_of(&block->e[index]);
	block = cut_front(s, block, index);
	for (s->back = s->back_bytes = 0; block != NULL; block = block->next) {
		s->back += block->tail - block->head;
		s->back_bytes += block->bytes;
	}
	s->behind = s->back;
	dropped = drop_through(s, through);
	s->back -= dropped;
	mark_chained(s);
	return first;
}

uint64_t
strand_spilled(struct strand *s, uint64_t through, bool is_behind)
{
	uint64_t first = through + 1;

	if (is_behind)
		s->back -= drop_through(s, through);
	else
		first = spilled_front(s, through);
	s->keep_through = through;
	return first;
}

uint32_t
strand_list_spillable(struct strand *s, struct lane_item *item, uint32_t n, uint64_t bytes)
{
	struct entry_block *k = s->back_head;
	uint32_t i = k != NULL ? k->head : 0, count = 0;

	if (s->behind == 0 && !find_cut(s, &k, &i))
		return 0;
	while (k != NULL && count < n && bytes > 0) {
		const struct entry *e;

		if (i == k->tail) {
			k = k->next;
			i = k != NULL ? k->head : 0;
			continue;
		}
		e = &k->e[i++];
		item[count++] = (struct lane_item){ .item = e->m,
			.seq = seq_of(e),
			.state = {
			    (e->seq_flags & ENTRY_REDELIVERED) != 0, e->deliveries, e->acquired } };
		bytes -= e->m->body_size < bytes ? e->m->body_size : bytes;
	}
	return count;
}

/* ---- from disk ---- */

/* What was read stays in memory when a higher priority gets the turn, so that each may hold some. */
static inline uint64_t
read_bytes(const struct strand *s)
{
	return likely(s->queue->priorities == NULL) ? READ_BYTES : READ_BYTES_EACH;
}

void
strand_read_ahead(struct strand *s)
{
	uint64_t unread_bytes;

	if (strand_unread(s) == 0 || s->ready - s->behind >= FRONT_LOW)
		return;
	if (s->lane == NULL || lane_is_reading(s->lane))
		return; /* NULL: the node stops */
	unread_bytes = lane_unread_bytes(s->lane);
	if (strand_has_head(s) && s->ready_bytes - s->back_bytes >= unread_bytes + read_bytes(s))
		return;
	lane_read(s->lane, read_bytes(s));
}

static void
append_restored(struct strand *s, struct msg *m, uint64_t seq, const struct op_state *state,
    uint64_t expires_ms, struct entry *e)
{
	bool redelivered = state->redelivered || seq <= lane_delivered(s->lane);

	*e = (struct entry){ .m = m,
		.seq_flags = seq << 8 | (redelivered ? ENTRY_REDELIVERED : 0),
		.due_ms = expires_ms,
		.deliveries = state->deliveries,
		.acquired = state->acquired };
	if (expires_ms != 0 || s->queue->broker->retention_ms != 0)
		s->queue->with_due = true;
}

/* n unread ones are gone, or as many as are counted. */
static void
forget_unread(struct strand *s, uint64_t n, uint64_t bytes)
{
	if (unlikely(n > strand_unread(s)))
		n = strand_unread(s);
	if (unlikely(bytes > s->ready_bytes - s->back_bytes))
		bytes = s->ready_bytes - s->back_bytes;
	s->behind -= n;
	strand_count_out(s, n, bytes);
}

/* What is counted here follows the lane, which found that its files have not what they should. */
static void
agree(struct strand *s, uint64_t unread)
{
	const struct queue *q = s->queue;
	uint64_t counted = strand_unread(s);

	if (likely(counted == unread))
		return;
	log_error("queue '%.*s': %llu messages wait on disk, %llu were counted", (int)q->name_len,
	    q->name, (unsigned long long)unread, (unsigned long long)counted);
	lane_note_damage(s->lane);
	s->bytes_unsure = true;
	if (counted > unread) {
		forget_unread(s, counted - unread, 0);
	} else {
		s->behind += unread - counted;
		strand_count_in(s, unread - counted);
	}
}

void
strand_forget_unread(struct strand *s, uint64_t bytes)
{
	forget_unread(s, 1, bytes);
	if (strand_unread(s) == 0 && s->is_chained)
		link_back(s);
}

void
strand_loaded(struct strand *s, struct msg *m, uint64_t seq, const struct op_state *state,
    uint64_t expires_ms)
{
	uint64_t bytes = m->body_size;
	struct entry e;

	if (unlikely(strand_unread(s) == 0))
		agree(s, lane_unread(s->lane) + 1);
	if (seq > s->keep_through)
		s->keep_through = seq;
	append_restored(s, m, seq, state, expires_ms, &e);
	if (unlikely(s->queue->quorum != NULL) && quorum_take_restored(s->queue, &e)) {
		forget_unread(s, 1, bytes);
		return;
	}
	strand_append_to(&s->head, &s->tail, &e);
	s->behind--;
}

void
strand_load_done(struct strand *s)
{
	struct queue *q = s->queue;
	bool had_head = strand_has_head(s);

	q->broker->loads++;
	agree(s, lane_unread(s->lane));
	if (strand_unread(s) == 0 && s->is_chained)
		link_back(s);
	if (q->with_due)
		queue_arm_expiry(q);
	if (q->is_limited)
		queue_tidy_later(q);
	queue_make_runnable(q);
	/* Nothing came: no memory, or nothing that lives. queues_tend() tries again. */
	if (had_head && s->behind > 0 && s == queue_turn(q))
		strand_read_ahead(s);
}

void
strand_lost(struct strand *s, uint64_t count, uint64_t bytes)
{
	s->bytes_unsure = true;
	forget_unread(s, count, bytes);
}

/* Whole files in which everything has expired go unread, once they are next. */
void
strand_expire_unread(struct strand *s)
{
	struct queue *q = s->queue;
	uint64_t bytes = 0, n;

	if (strand_has_head(s) || strand_unread(s) == 0 || s->lane == NULL ||
	    q->set.dead_letter_exchange.p != NULL)
		return;
	n = lane_expire_unread(s->lane, q->broker->now_ms, &bytes);
	if (n == 0)
		return;
	q->stats.expired += n;
	q->broker->stats.expired += n;
	forget_unread(s, n, bytes);
	if (strand_unread(s) == 0)
		link_back(s);
	queue_make_runnable(q);
}

void
queues_tend(struct broker *b)
{
	struct strand *s, *last = TAILQ_LAST(&b->chained, chained_list);
	unsigned looked = 0, reads = 0;

	while (
	    looked++ < TEND_LOOK && reads < TEND_READ && (s = TAILQ_FIRST(&b->chained)) != NULL) {
		TAILQ_REMOVE(&b->chained, s, chain_link);
		TAILQ_INSERT_TAIL(&b->chained, s, chain_link);
		if (!strand_has_head(s) && s == queue_turn(s->queue)) {
			strand_expire_unread(s);
			if (strand_unread(s) > 0 && !strand_has_head(s) &&
			    !lane_is_reading(s->lane)) {
				lane_read(s->lane,
				    takers_first(&s->queue->takers) == NULL ? 1 : read_bytes(s));
				reads++;
			}
		}
		if (s == last)
			break;
	}
}

bool
queue_fetch_first(struct queue *q)
{
	struct broker *b = q->broker;
	struct strand *s = queue_turn(q);
	uint64_t cost;

	if (strand_has_head(s) || strand_unread(s) == 0 || s->lane == NULL ||
	    lane_is_reading(s->lane))
		return true;
	if (b->now_ms >= b->firsts_ms + FIRSTS_MS) {
		b->firsts_ms = b->now_ms;
		b->firsts = 0;
	}
	/* nobody knows how long it is: as long as the others */
	cost = 1 + lane_unread_bytes(s->lane) / strand_unread(s) / FIRSTS_BYTES;
	if (memory_short(&b->memory) || (b->firsts > 0 && b->firsts + cost > FIRSTS)) {
		bound_reached(BOUND_letter_looks);
		return false;
	}
	b->firsts += cost;
	lane_read(s->lane, 1);
	return true;
}

/* ---- the start ---- */

static void
take_entry(
    void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m)
{
	struct strand *s = arg;
	struct entry e;

	append_restored(s, item, seq, state, m->expires_ms, &e);
	if (unlikely(s->queue->quorum != NULL) && quorum_take_restored(s->queue, &e))
		return;
	strand_append(s, &e);
}

void
strand_take_lane(struct strand *s)
{
	uint64_t unread;

	if (s->lane == NULL)
		return;
	unread = lane_unread(s->lane);
	if (unread > 0) {
		s->behind = unread;
		s->ready = unread;
		s->ready_bytes = lane_unread_bytes(s->lane);
		s->queue->ready += unread;
		s->queue->ready_bytes += s->ready_bytes;
		s->queue->depth->ready += unread;
		s->queue->broker->stats.messages_ready += unread;
		mark_chained(s);
		if (s->queue->priorities != NULL)
			queue_priorities_note(s);
	}
	lane_each(s->lane, take_entry, s);
}
