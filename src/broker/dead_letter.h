/* SPDX-License-Identifier: Apache-2.0
 * Messages that a queue gives up: to its dead letter exchange if it has one, else for good.
 *
 * Who gives one up puts it on the queue's list; broker_run() works the lists off, first of all and so many a call, in
 * their order. Until then the message is in none of the queue's counts, but still in the store: a crash brings it back.
 * Then one record of the store has the new message in all its queues and the old one gone. */
#ifndef BROKER_DEAD_LETTER_H
#define BROKER_DEAD_LETTER_H

#include <stdbool.h>

#include "broker/broker.h"
#include "broker/queue.h"

/* Why: three bits of entry.seq_flags while it waits. DEATH_RETAINED, the end of the retention time, is no dead letter. */
enum death_reason { DEATH_REJECTED, DEATH_EXPIRED, DEATH_MAXLEN, DEATH_DELIVERY_LIMIT, DEATH_RETAINED };

/* e, which stands in none of the queue's lists any more and is not counted in `unacked` or soon will not be, leaves the
 * queue; its reference moves. Counted. Of a deleted queue it just goes. */
void dead_letter(struct queue *q, struct entry *e, enum death_reason why);
/* Only counted: n of them went without a letter. */
void dead_letter_count(struct queue *q, enum death_reason why, uint32_t n);
/* One that was refused because the queue is full, and never was in it; a reference is taken. */
void dead_letter_refused(struct queue *q, struct msg *m);

/* So many wait to be sent that no more should be made of what has expired, or lies on disk. The queue is tidied, and whoever
 * waits for its messages told, when they are fewer: broker->letters_eased rises then. */
bool dead_letters_hold(struct queue *q);
/* At least once: so many wait until they are taken that the queue takes no more messages, and consumers do not go past what
 * has expired. Implies dead_letters_hold(). */
bool dead_letters_full(struct queue *q);
/* For queue_limits.c and publish.c: a message came to the queue, which gave up this one or another. Sets
 * broker->letters_late, if it gives up more than can be sent. */
void dead_letters_check_late(struct queue *q);
static inline void
dead_letters_note_late(struct queue *q)
{
	if (unlikely(q->dead != NULL))
		dead_letters_check_late(q);
}

/* A policy changed q->set. Where the queue has no dead letter exchange any more, those that wait go to the old one still, as if
 * they had been sent at once; but with at least once they are lost, as in RabbitMQ. */
void dead_letters_settings_change(struct queue *q, const struct queue_settings *old);
/* For broker.c: the next of those that wait. True: there are more. */
bool dead_letters_run(struct broker *b);
/* The vhost goes, its queues went before: what they still had to send is lost, which is counted; *left goes down by as many
 * queues. True: there are more. */
bool dead_letters_forget_some(struct vhost *vh, unsigned *left);
/* The node stops: those that wait stay in the store. */
void dead_letters_stop(struct broker *b);

/* At least once: those that wait until their targets take them. They go with the queue, but a purge leaves them; they count
 * for its limits. Others do not wait beyond the turn and are given on even then. */
void dead_letters_drop(struct queue *q);
uint64_t dead_letters_kept(const struct queue *q, uint64_t *bytes);

#endif
