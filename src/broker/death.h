/* SPDX-License-Identifier: Apache-2.0
 * What a message's headers say of its deaths, in RabbitMQ's form: x-death, a list of tables, the newest first, one for
 * each queue and reason; x-first-death-reason, -queue and -exchange, written with the first. Headers come from clients:
 * whatever they hold is taken as it is. */
#ifndef BROKER_DEATH_H
#define BROKER_DEATH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "broker/table.h"

struct death {
	struct span reason, queue;
	struct span exchange, key;	/* that the message came by */
	struct span expiration;		/* its own; p NULL: none */
	uint64_t time_s;
	bool drops_cc;			/* it goes on by another key: CC is left out */
};

enum { DEATH_EVENTS_MAX = 64 };	/* tables in x-death: with more, those at its end are left out */

/* The headers of the message after this death. `older`: how many tables of earlier deaths may stay. */
void death_write(struct table_writer *w, struct span headers, const struct death *d, unsigned older);

/* Did the message die in the queue of this name, or come by this exchange before some death? headers.p NULL: no. */
bool death_was_in(struct span headers, struct span queue);
bool death_came_by(struct span headers, struct span exchange);

/* What they say to an operator. The first death is that of x-first-death-queue and -reason, or the earliest. Spans point into the
 * headers; p NULL: it is not said. */
struct death_history {
	uint64_t count;			/* deaths in all */
	struct span reason;		/* of the last one */
	struct {
		struct span queue, reason, exchange;
		struct span keys;	/* content of an array */
		struct span expiration;	/* that it had, and lost then */
		uint64_t time_s;
	} first;
};
/* False: it never died. headers.p NULL: no. */
bool death_read(struct span headers, struct death_history *out);

enum { DEATH_PATH_MAX = 128 };	/* deaths looked at for a cycle */

/* The queues in which a message died since somebody rejected it, from its headers, which it points into. */
struct death_path {
	struct span queue[DEATH_PATH_MAX];
	unsigned n;
};
void death_path_read(struct span headers, struct death_path *out);

/* Would the message, put into the queue of this name, go round without anybody having rejected it? */
bool death_is_cycle(const struct death_path *path, struct span queue);

#endif
