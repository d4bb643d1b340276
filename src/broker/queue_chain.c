/* SPDX-License-Identifier: Apache-2.0
 * What of a queue lies on disk. In the order in which they are given out, its ready messages are
 *
 *	returned	those that were given out before, by number
 *	head .. tail	in memory: the front
 *	unread		in files only; the lane knows how many
 *	back_head ..	in memory: what came while there were unread ones
 *
 * The lane says when a part of the queue was put into files (queue_spilled): the first of the front stay, the others
 * are let go and are unread from now on. They come back in pieces (queue_loaded) as the front runs low. When the last one
 * was read the back becomes the end of the front. A queue whose next message is still being read is on no list of those
 * that may deliver; queue_load_done() puts it there. */
#include <assert.h>

#include "base/log.h"
#include "broker/queue_priv.h"

enum {
	FRONT_LOW = 2048, /* ready ones in memory: below it the next piece is read */
	READ_BYTES = 1 << 20,
	TEND_LOOK = 64, /* queues looked at a second, and read for */
	TEND_READ = 8
};

static inline uint64_t
seq_of(const struct entry *e)
{
	return e->seq_flags >> 8;
}

static void
mark_chained(struct queue *q)
{
	if (q->is_chained)
		return;
	q->is_chained = true;
	TAILQ_INSERT_TAIL(&q->broker->chained, q, chain_link);
}

/* Nothing is behind any more: the lists are the caller's. */
void
queue_unchain(struct queue *q)
{
	q->back_head = q->back_tail = NULL;
	q->behind = q->back = q->back_bytes = 0;
	if (!q->is_chained)
		return;
	q->is_chained = false;
	TAILQ_REMOVE(&q->broker->chained, q, chain_link);
	/* Who waits for the next one has to hear of it, also when it went unread. */
	q->broker->loads++;
}

static void
count_bytes(struct queue *q)
{
	uint64_t bytes = 0;

	for (const struct entry_block *k = q->head; k != NULL; k = k->next)
		bytes += k->bytes;
	for (uint32_t i = 0; q->returned != NULL && i < q->returned->tail; i++)
		bytes += q->returned->e[i].m->body_size;
	q->ready_bytes = bytes;
	q->bytes_unsure = false;
}

/* All were read: the back is the end of the front. */
static void
link_back(struct queue *q)
{
	if (q->back_head != NULL) {
		/* A small block that is kept though it is empty would stand in the way. */
		if (q->head != NULL && q->head->head == q->head->tail) {
			assert(q->head == q->tail);
			queue_free_block(q->head);
			q->head = q->tail = NULL;
		}
		if (q->tail == NULL)
			q->head = q->back_head;
		else
			q->tail->next = q->back_head;
		q->tail = q->back_tail;
	}
	queue_unchain(q);
	if (unlikely(q->bytes_unsure))
		count_bytes(q);
}

/* ---- to disk ---- */

/* Where the part of the front begins that need not stay in memory. False: there is none. */
static bool
find_cut(const struct queue *q, struct entry_block **block, uint32_t *index)
{
	uint64_t most = memory_spills(&q->broker->memory) ? KEEP_BYTES_SHORT : KEEP_BYTES;
	uint64_t n = 0, bytes = 0;

	for (struct entry_block *k = q->head; k != NULL; k = k->next) {
		uint32_t count = k->tail - k->head;

		if (n + count <= KEEP_ENTRIES && bytes + k->bytes <= most) {
			n += count;
			bytes += k->bytes;
			continue;
		}
		for (uint32_t i = k->head; i < k->tail; i++) {
			/* One stays, however large it is. */
			if (n > 0 && (n >= KEEP_ENTRIES || bytes >= most) &&
			    seq_of(&k->e[i]) > q->keep_through) {
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
cut_front(struct queue *q, struct entry_block *block, uint32_t index)
{
	struct entry_block *last = NULL, *rest;

	if (index > block->head) {
		if (q->tail == block)
			q->tail = NULL;
		rest = queue_split_block(block, index);
		if (q->tail == NULL)
			q->tail = rest;
		last = block;
	} else {
		rest = block;
		for (last = q->head; last != rest && last->next != rest; last = last->next)
			continue;
		assert(last != rest); /* one entry stays */
	}
	last->next = NULL;
	q->back_head = rest;
	q->back_tail = q->tail;
	q->tail = last;
	return rest;
}

/* Lets go of those of the back that lie in the chain. Returns how many; their bytes are not in back_bytes any more. */
static uint64_t
drop_through(struct queue *q, uint64_t through)
{
	struct entry_block *k;
	uint64_t n = 0;

	while ((k = q->back_head) != NULL && seq_of(&k->e[k->tail - 1]) <= through) {
		q->back_head = k->next;
		n += k->tail - k->head;
		q->back_bytes -= k->bytes;
		queue_drop_block(q, k);
	}
	if (k == NULL) {
		q->back_tail = NULL;
		return n;
	}
	for (; seq_of(&k->e[k->head]) <= through; k->head++, n++) {
		uint64_t bytes = k->e[k->head].m->body_size;

		k->bytes -= bytes;
		q->back_bytes -= bytes;
		msg_unref(&k->e[k->head].m);
	}
	return n;
}

static uint64_t
spilled_front(struct queue *q, uint64_t through)
{
	struct entry_block *block;
	uint64_t first, dropped;
	uint32_t index;

	if (!find_cut(q, &block, &index) || seq_of(&block->e[index]) > through)
		return through + 1;
	first = seq_of(&block->e[index]);
	block = cut_front(q, block, index);
	for (q->back = q->back_bytes = 0; block != NULL; block = block->next) {
		q->back += block->tail - block->head;
		q->back_bytes += block->bytes;
	}
	q->behind = q->back;
	dropped = drop_through(q, through);
	q->back -= dropped;
	mark_chained(q);
	return first;
}

uint64_t
queue_spilled(struct queue *q, uint64_t through, bool is_behind)
{
	uint64_t first = through + 1;

	if (is_behind)
		q->back -= drop_through(q, through);
	else
		first = spilled_front(q, through);
	q->keep_through = through;
	return first;
}

uint32_t
queue_list_spillable(const struct queue *q, struct lane_item *item, uint32_t n, uint64_t bytes)
{
	struct entry_block *k = q->back_head;
	uint32_t i = k != NULL ? k->head : 0, count = 0;

	if (q->behind == 0 && !find_cut(q, &k, &i))
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

void
queue_read_ahead(struct queue *q)
{
	uint64_t unread_bytes;

	if (queue_unread(q) == 0 || q->ready - q->behind >= FRONT_LOW)
		return;
	if (q->lane == NULL || lane_is_reading(q->lane))
		return; /* NULL: the node stops */
	unread_bytes = lane_unread_bytes(q->lane);
	if (queue_has_head(q) && q->ready_bytes - q->back_bytes >= unread_bytes + READ_BYTES)
		return;
	lane_read(q->lane, READ_BYTES);
}

static void
append_restored(struct queue *q, struct msg *m, uint64_t seq, const struct op_state *state,
    uint64_t expires_ms, struct entry *e)
{
	bool redelivered = state->redelivered || seq <= lane_delivered(q->lane);

	*e = (struct entry){ .m = m,
		.seq_flags = seq << 8 | (redelivered ? ENTRY_REDELIVERED : 0),
		.due_ms = expires_ms,
		.deliveries = state->deliveries,
		.acquired = state->acquired };
	if (expires_ms != 0 || q->broker->retention_ms != 0)
		q->with_due = true;
}

void
queue_loaded(
    struct queue *q, struct msg *m, uint64_t seq, const struct op_state *state, uint64_t expires_ms)
{
	struct entry e;

	assert(queue_unread(q) > 0);
	append_restored(q, m, seq, state, expires_ms, &e);
	queue_append_to(&q->head, &q->tail, &e);
	q->behind--;
	if (seq > q->keep_through)
		q->keep_through = seq;
}

/* n unread ones are gone. */
static void
forget_unread(struct queue *q, uint64_t n, uint64_t bytes)
{
	assert(queue_unread(q) >= n);
	q->behind -= n;
	queue_count_out(q, n, bytes);
}

void
queue_load_done(struct queue *q)
{
	bool had_head = queue_has_head(q);

	q->broker->loads++;
	if (queue_unread(q) != lane_unread(q->lane))
		log_error("queue '%.*s': %llu messages wait on disk, %llu are counted",
		    (int)q->name_len, q->name, (unsigned long long)lane_unread(q->lane),
		    (unsigned long long)queue_unread(q));
	assert(queue_unread(q) == lane_unread(q->lane));
	if (queue_unread(q) == 0 && q->is_chained)
		link_back(q);
	if (q->with_due)
		queue_arm_expiry(q);
	queue_make_runnable(q);
	/* Nothing came: no memory, or nothing that lives. queues_tend() tries again. */
	if (had_head && q->behind > 0)
		queue_read_ahead(q);
}

void
queue_lost(struct queue *q, uint64_t count, uint64_t bytes)
{
	q->bytes_unsure = true;
	forget_unread(q, count, bytes);
}

/* Whole files in which everything has expired go unread, once they are next. */
void
queue_expire_unread(struct queue *q)
{
	uint64_t bytes = 0, n;

	if (queue_has_head(q) || queue_unread(q) == 0 || q->lane == NULL)
		return;
	n = lane_expire_unread(q->lane, q->broker->now_ms, &bytes);
	if (n == 0)
		return;
	q->stats.expired += n;
	q->broker->stats.expired += n;
	forget_unread(q, n, bytes);
	if (queue_unread(q) == 0)
		link_back(q);
	queue_make_runnable(q);
}

void
queues_tend(struct broker *b)
{
	struct queue *q, *last = TAILQ_LAST(&b->chained, chained_list);
	unsigned looked = 0, reads = 0;

	while (
	    looked++ < TEND_LOOK && reads < TEND_READ && (q = TAILQ_FIRST(&b->chained)) != NULL) {
		TAILQ_REMOVE(&b->chained, q, chain_link);
		TAILQ_INSERT_TAIL(&b->chained, q, chain_link);
		if (!queue_has_head(q)) {
			queue_expire_unread(q);
			if (queue_unread(q) > 0 && !queue_has_head(q) &&
			    !lane_is_reading(q->lane)) {
				lane_read(q->lane, takers_first(&q->takers) == NULL ? 1 : READ_BYTES);
				reads++;
			}
		}
		if (q == last)
			break;
	}
}

/* ---- the start ---- */

static void
take_entry(
    void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m)
{
	struct queue *q = arg;
	struct entry e;

	append_restored(q, item, seq, state, m->expires_ms, &e);
	queue_append(q, &e);
}

void
queue_take_lane(struct queue *q)
{
	uint64_t unread;

	if (q->lane == NULL)
		return;
	unread = lane_unread(q->lane);
	if (unread > 0) {
		q->behind = unread;
		q->ready = unread;
		q->ready_bytes = lane_unread_bytes(q->lane);
		q->broker->stats.messages_ready += unread;
		mark_chained(q);
	}
	lane_each(q->lane, take_entry, q);
}
