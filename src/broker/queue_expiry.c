/* SPDX-License-Identifier: Apache-2.0
 * What expires: at the head of a queue only, as in RabbitMQ. It goes when one is taken, and, so that counts fall without
 * a consumer, when the queue's node in the wheel fires, which is armed for the head or, where one came back, for that. */
#include "broker/dead_letter.h"
#include "broker/queue_priv.h"

/* A node that is armed for earlier is left alone: it fires, finds nothing due and is armed again, which under load
 * happens far less often than the head changes. */
void
queue_arm_for(struct queue *q, uint64_t due_ms)
{
	if (!wheel_armed(&q->expiry) || q->expiry.due_ms > due_ms)
		wheel_arm(q->broker->wheel, &q->expiry, due_ms);
}

/* Was it the time to live of the message or the queue that ended, or the retention time? */
static enum death_reason
expired_by(const struct queue *q, const struct entry *e)
{
	uint64_t now_ms = q->broker->now_ms, ttl_ms = entry_ttl(q, e);

	if ((e->due_ms != 0 && e->due_ms <= now_ms) ||
	    (ttl_ms != SETTING_NONE && e->m->arrived_ms + ttl_ms <= now_ms))
		return DEATH_EXPIRED;
	return DEATH_RETAINED;
}

void
strand_drop_expired(struct strand *s, struct entry *e)
{
	dead_letter(s->queue, e, expired_by(s->queue, e));
}

static bool
all_expired(const struct queue *q, const struct entry_block *k)
{
	for (uint32_t i = k->head; i < k->tail; i++) {
		if (!entry_is_expired(q, &k->e[i]))
			return false;
	}
	return true;
}

unsigned
strand_expire_blocks(struct strand *s, unsigned max)
{
	struct queue *q = s->queue;
	struct entry_block *k;
	unsigned n = 0;

	if (q->set.dead_letter_exchange.p != NULL)
		return 0;
	while (n < max && strand_has_head(s) && !strand_has_returned(s) &&
	       (k = s->head)->next != NULL && all_expired(q, k)) {
		s->head = k->next;
		for (uint32_t i = k->head; i < k->tail; i++) {
			dead_letter_count(q, expired_by(q, &k->e[i]), 1);
			strand_entry_gone(s, &k->e[i], ACK_EXPIRED);
		}
		n += k->tail - k->head;
		strand_count_out(s, k->tail - k->head, k->bytes);
		strand_drop_block(s, k);
	}
	return n;
}

void
queue_arm_expiry(struct queue *q)
{
	struct strand *s = queue_turn(q);
	uint64_t due_ms;

	if (q->ready == 0) {
		queue_reset_due(q);
		wheel_disarm(q->broker->wheel, &q->expiry);
		return;
	}
	if (!strand_has_head(s))
		return; /* strand_load_done() comes here again */
	due_ms = entry_due(q, strand_head(s));
	if (due_ms != 0)
		queue_arm_for(q, due_ms);
}

/* More of them than can be sent stay in the queue, where they may go to disk, and are not read from there; whoever is held is
 * told by queue_tidy_later(). */
static inline bool
waits_for_letters(const struct strand *s)
{
	return unlikely(s->queue->dead != NULL) && dead_letters_hold(s->queue);
}

bool
queue_waits_for_letters(struct queue *q)
{
	struct strand *s = queue_turn(q);

	if (likely(q->dead == NULL) || !strand_has_head(s) || !entry_is_expired(q, strand_head(s)))
		return false;
	return q->set.at_least_once ? dead_letters_full(q) : dead_letters_hold(q);
}

unsigned
queue_expire(struct queue *q, unsigned max)
{
	struct strand *s;
	struct entry e;
	unsigned n = 0;

	if (!q->with_due)
		return 0;
	while (
	    n < max && strand_has_head(s = queue_turn(q)) && entry_is_expired(q, strand_head(s))) {
		if (waits_for_letters(s))
			return n;
		strand_take_head(s, &e);
		strand_drop_expired(s, &e);
		n += 1 + strand_expire_blocks(s, max - n - 1);
	}
	s = queue_turn(q);
	if (unlikely(s->behind > 0)) {
		strand_expire_unread(s);
		strand_read_ahead(s);
	}
	queue_arm_expiry(q);
	return n;
}

uint32_t
queue_left(struct queue *q)
{
	uint32_t ready = queue_count32(q->ready);

	if (likely(!q->with_due))
		return ready;
	queue_expire(q, EXPIRE_SLICE);
	return q->quorum != NULL ? ready : queue_count32(q->ready);
}
