/* SPDX-License-Identifier: Apache-2.0
 * How many messages a queue may hold, and how long: what is over a limit at its head goes, or what comes is refused. As
 * in RabbitMQ the head is looked at when a message enters, so that it stands in the queue before another one goes, and
 * goes itself where it is the only one; and when messages come back. */
#include "broker/dead_letter.h"
#include "broker/lease.h"
#include "broker/queue_priv.h"

enum {
	TIDY_NOW = 4096, /* messages dropped at once when one enters */
	TIDY_SLICE = 1024,
	TIDY_MAX = 8192, /* of all queues in a call of queues_tidy() */
	RUN_FIRST = 64
};

static inline bool
is_over(const struct queue *q)
{
	return q->ready > q->set.max_length || q->ready_bytes > q->set.max_bytes;
}

/* Consumers that can take what is ready do so at the end of the turn, but were there before the message that comes. */
static void
run_first(struct queue *q)
{
	if (q->is_runnable)
		(void)queue_run(q, RUN_FIRST);
}

bool
queue_is_full_for(struct queue *q, const struct msg *m)
{
	uint64_t bytes = 0, kept;

	run_first(q);
	kept = dead_letters_kept(q, &bytes);
	return q->ready + kept >= q->set.max_length ||
	       q->ready_bytes + bytes + m->body_size > q->set.max_bytes || dead_letters_full(q);
}

/* What is over its length came back, or from before a start. */
static inline bool
is_held(struct queue *q)
{
	return unlikely(queue_turn(q)->behind > 0) && dead_letters_hold(q);
}

static unsigned
drop_over(struct queue *q, unsigned max)
{
	struct entry e;
	unsigned n = 0;

	while (n < max && is_over(q) && !is_held(q) && queue_take(q, &e)) {
		dead_letter(q, &e, DEATH_MAXLEN);
		n++;
	}
	return n;
}

/* Returns how many went. Where the next one has to come from disk, it goes when it is there. */
static unsigned
tidy(struct queue *q, unsigned max)
{
	unsigned n = 0;

	if (q->set.overflow == OVERFLOW_DROP_HEAD)
		n = drop_over(q, max);
	return n + queue_expire(q, max - n);
}

void
queue_tidy_later(struct queue *q)
{
	if (q->is_untidy)
		return;
	q->is_untidy = true;
	TAILQ_INSERT_TAIL(&q->broker->untidy, q, tidy_link);
}

void
queue_tidied(struct queue *q)
{
	if (!q->is_untidy)
		return;
	q->is_untidy = false;
	TAILQ_REMOVE(&q->broker->untidy, q, tidy_link);
}

/* Who wants the next one may have met too many that had to go first. */
static void
tidy_done(struct queue *q)
{
	if (queue_waits_for_letters(q))
		return;
	q->broker->loads++;
	queue_make_runnable(q);
}

bool
queue_tidy(struct queue *q)
{
	bool was_untidy = q->is_untidy;

	queue_tidied(q);
	if (tidy(q, TIDY_NOW) >= TIDY_NOW) {
		queue_tidy_later(q);
		return false;
	}
	if (was_untidy)
		tidy_done(q);
	return true;
}

void
queue_publish_limited(struct queue *q, struct entry *e)
{
	struct consumer *k;

	if (unlikely(q->ttl_past != NULL))
		queue_ttl_tidy(q);
	run_first(q);
	if (q->ready == 0 && (k = queue_next_taker(q)) != NULL) {
		queue_hand_over(q, k, e);
		return;
	}
	queue_append(q, e);
	/* After messages came back all that is over goes in one pass. */
	if (!q->is_untidy)
		(void)queue_tidy(q);
	dead_letters_note_late(q);
}

void
queue_on_expiry(struct wheel_node *node, uint64_t now_ms)
{
	struct queue *q = container_of(node, struct queue, expiry);

	if (q->broker->now_ms < now_ms)
		q->broker->now_ms = now_ms;
	queue_tidy_later(q);
}

bool
queues_tidy(struct broker *b)
{
	struct queue *q;

	for (unsigned left = TIDY_MAX; left > 0 && (q = TAILQ_FIRST(&b->untidy)) != NULL;) {
		unsigned max = left < TIDY_SLICE ? left : TIDY_SLICE, n;

		queue_tidied(q);
		n = tidy(q, max);
		if (n >= max)
			queue_tidy_later(q);
		else
			tidy_done(q);
		left -= n < left ? (n > 0 ? n : 1) : left;
	}
	return !TAILQ_EMPTY(&b->untidy);
}

/* ---- settings ---- */

void
queue_count_limits(struct queue *q)
{
	bool has_length = q->set.max_length != SETTING_NONE || q->set.max_bytes != SETTING_NONE;
	bool keeps = q->set.at_least_once && q->set.overflow == OVERFLOW_REJECT &&
	             q->set.dead_letter_exchange.p != NULL;

	q->broker->refusing -= q->refuses;
	q->refuses = (has_length && q->set.overflow != OVERFLOW_DROP_HEAD) || keeps;
	q->is_limited =
	    (has_length && !q->refuses) || q->set.ttl_ms != SETTING_NONE || q->ttl_past != NULL;
	q->with_due |= q->set.ttl_ms != SETTING_NONE;
	q->broker->refusing += q->refuses;
}

void
queue_choose_policies(struct queue *q)
{
	struct queue_settings was = q->set;
	struct policy *old[POLICY_KINDS];

	if (!policy_choose_queue(q, old))
		return;
	queue_read_arguments(q);
	dead_letters_settings_change(q, &was);
	policy_drop(old);
	queue_ttl_changed(q, was.ttl_ms);
	queue_count_limits(q);
	if (q->set.expires_ms != was.expires_ms) {
		lease_fini(q);
		lease_init(q);
	}
	queue_tidy_later(q);
}
