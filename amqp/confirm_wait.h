/* SPDX-License-Identifier: Apache-2.0
 * Confirms of persistent messages: none leaves before the store has what it is for. */
#ifndef AMQP_CONFIRM_WAIT_H
#define AMQP_CONFIRM_WAIT_H

#include <stdint.h>
#include <sys/queue.h>

#include "store/store.h"

struct amqp;
struct channel;

/* Tags of one channel after one another that were published in one turn and wait for the same position. */
struct confirm_run {
	struct channel *ch; /* borrowed: the channel drops its runs when it ends */
	uint64_t first, last;
	struct store_wait wait; /* of the last one */
	uint64_t turn, since_us; /* of the first one */
	TAILQ_ENTRY(confirm_run) link;       /* amqp->confirm_runs, or amqp->spare_runs */
	LIST_ENTRY(confirm_run) channel_link; /* channel->confirm_runs, the newest first */
};

/* The tag was opened and not settled; it is once `wait` is reached. */
void confirm_wait_add(struct channel *ch, uint64_t tag, struct store_wait wait);
/* Settles what has been reached. Looks at nothing else: the runs of all channels stand in the order of their waits. */
void confirm_wait_run(struct amqp *a);
/* The channel ends: nobody wants to know any more. */
void confirm_wait_drop(struct channel *ch);
void confirm_wait_fini(struct amqp *a);

#endif
