/* SPDX-License-Identifier: Apache-2.0
 * Private to dead_letter.c and dead_letter_send.c. */
#ifndef BROKER_DEAD_LETTER_PRIV_H
#define BROKER_DEAD_LETTER_PRIV_H

#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/dead_letter.h"
#include "broker/session.h"

struct dead_letters {
	struct queue *queue;		/* borrowed: lives while we do */
	struct vhost *vhost;		/* borrowed: also when the queue was deleted */
	struct entry_block *head, *tail; /* owned */
	uint64_t count, bytes, memory;	/* bytes: of bodies; memory: in messages, before bodies too */
	TAILQ_ENTRY(dead_letters) link;	/* broker->dead while is_listed, else dead_waiting */
	LIST_ENTRY(dead_letters) vhost_link;	/* vhost->letters */
	bool is_listed;
	bool keeps;			/* at least once */
	bool holds;			/* dead_letters_hold() said so */
	/* Owned, each with its length before it (NULL: not set): where they went until a policy was cleared. */
	uint8_t *last_exchange, *last_key;
	struct wheel_node retry;
};

enum { LETTER_NAME_MAX = 255 };

static inline uint64_t
letter_seq(const struct entry *e)
{
	return e->seq_flags >> 8;
}

static inline enum death_reason
letter_reason(const struct entry *e)
{
	return (enum death_reason)(e->seq_flags >> ENTRY_DEATH_SHIFT & 7);
}

/* A name with its length before it. Returns how many bytes that takes. */
static inline size_t
letter_put_name(uint8_t *p, struct span s)
{
	p[0] = (uint8_t)s.n;
	if (s.n > 0)
		memcpy(p + 1, s.p, s.n);
	return 1 + s.n;
}

/* Where a queue's letters go. Key p NULL: the message's own; exchange p NULL: nowhere any more. */
struct span dead_letters_exchange(const struct queue *q);
struct span dead_letters_key(const struct queue *q);

/* Sends one of d, which may be taken off then. False: it has to wait. *cost: what that was, in copied bytes, but for the queues
 * it entered, which are in broker->work. */
bool dead_letters_send(struct dead_letters *d, const struct entry *e, size_t *cost) MUSTUSE;

/* By enum death_reason: "rejected", ... as x-death has them. */
extern const char *const death_reasons[];

#endif
