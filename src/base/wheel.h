/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical timer wheel with a resolution of 1 ms. One node per thing with a due time, embedded
 * in that thing; arming and disarming are O(1). Time comes in as an argument. */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

struct wheel;
struct wheel_node;
typedef void wheel_fn(struct wheel_node *, uint64_t now_ms);

struct wheel_node {
	struct wheel_node *next, **prev; /* prev == NULL: not armed */
	uint64_t due_ms;
	wheel_fn *fire; /* called once, after the node was disarmed; may arm again */
};

struct wheel *wheel_new(uint64_t now_ms);
void wheel_free(struct wheel **wp); /* nodes still armed are left alone */

/* Arms n, again if it was armed. A due time not after now fires at the next wheel_run. */
void wheel_arm(struct wheel *w, struct wheel_node *n, uint64_t due_ms);
void wheel_disarm(struct wheel *w, struct wheel_node *n); /* harmless when not armed */

static inline bool
wheel_armed(const struct wheel_node *n)
{
	return n->prev != 0;
}

/* Fires at most max nodes that are due, in order of their due time to the millisecond (those that
 * were due when they were armed: in the order of arming). Returns how many fired; there may be more
 * if it is max, and after a jump over many thousands: wheel_wait is 0 then. A node armed for now or
 * earlier by a callback fires at the next call. */
unsigned wheel_run(struct wheel *w, uint64_t now_ms, unsigned max);

/* Milliseconds until wheel_run has work (0: at once; may be early, never late), or -1 if nothing is
 * armed. */
int64_t wheel_wait(const struct wheel *w, uint64_t now_ms);

#endif
