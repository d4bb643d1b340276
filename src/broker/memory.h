/* SPDX-License-Identifier: Apache-2.0
 * The node's memory against its limit (memory.limit), and what follows (DESIGN: ownership, bounds, back pressure).
 * Watermark: the limit; hard limit: 10 % above. The alarm clears at 95 % of the limit, so that it does not flutter. */
#ifndef BROKER_MEMORY_H
#define BROKER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "broker/error.h"

enum memory_state { MEMORY_FINE, MEMORY_HIGH, MEMORY_HARD };

struct memory {
	uint64_t limit, hard, clear;	/* bytes; limit 0: none */
	uint64_t spill;			/* above it long queues go to disk (pressure.h); 0: never */
	enum memory_state state;
	uint64_t since_ms;		/* when the alarm began or ended */
	uint64_t alarms;		/* times it went from fine to high */
};

void memory_init(struct memory *m, uint64_t limit);

/* Looks at mem_total() and moves the state. Cheap: called once a turn and before each publish is let through.
 * True: the state changed (logged here). */
bool memory_check(struct memory *m, uint64_t now_ms);

static inline bool
memory_short(const struct memory *m)
{
	return m->state != MEMORY_FINE;
}

/* Do long queues have to go to disk? */
static inline bool
memory_spills(const struct memory *m)
{
	return m->spill != 0 && unlikely(mem_total() > m->spill);
}

/* Is there room for one more queue, exchange, binding or consumer? They may take half of the limit: nothing drains them,
 * and whoever comes to drain queues while messages fill the node has to get his. The same of what operators make. 406
 * "cannot WHAT 'NAME' in vhost ..."; vhost NULL: it is in none. */
const struct error *memory_check_topology(const struct memory *m, const char *what, struct span name, const char *vhost)
    MUSTUSE;

#endif
