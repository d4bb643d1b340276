/* SPDX-License-Identifier: Apache-2.0
 * x-delayed-message: an exchange that keeps a message for as many milliseconds as its header x-delay says, and routes it
 * then, through the bindings of then, as the type that its argument x-delayed-type names. What waits belongs to the
 * exchange and goes with it; it is no queue, and nothing reaches it by a name.
 *
 * Memory does not grow with what waits. The newest 65,536 messages, at most 16 MiB, are in memory, in a heap by due time (the
 * buffer). One that is full is sealed and moved, in order of due time, to a lane of its own (a run), which lies in files
 * from then on, but for its first messages: so every run is read from its beginning as it becomes due, and the next
 * message is the least of the heads of the runs and of the buffer. A moved message is one record of the store: there it
 * enters, here it leaves.
 *
 *	lane 256, 257	of the exchange's id: buffers, in order of arrival; one comes in while the other is moved
 *	lane 258 ...	runs, in order of due time; one that is empty is used again
 *
 * Sequence numbers rise over all lanes of an exchange, and a run's are drawn when the buffer is sealed: so messages of the
 * same due time are in order of arrival by their numbers, those of runs before those of buffers, also after a restart.
 *
 * A durable exchange keeps all that waits through a restart, also messages that are not persistent; these are kept in
 * memory only while the disk holds publishers up. */
#ifndef BROKER_DELAY_H
#define BROKER_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "store/store.h"

struct broker;
struct delay;
struct delay_lane;
struct exchange;
struct msg;

/* ---- the header (delay_header.c) ---- */

#define DELAY_MAX 315360000000ull /* ms; ten years */
enum delay_wish { DELAY_NONE, DELAY_WANTED, DELAY_INVALID };

/* What a message with these headers asks for: an integer of any width or digits as text. *ms: of a wanted one. */
enum delay_wish delay_wish(struct span headers, uint64_t *ms);
const struct error *delay_refuse(struct span headers); /* 406: an invalid one */
uint64_t delay_due_ms(const struct msg *m);            /* of one that waits */
/* The headers with the sign of x-delay changed, as those who get the message see it. Owned bytes (free()); NULL: no
 * memory. */
uint8_t *delay_negate(struct span headers, size_t *n) MUSTUSE;

/* ---- what waits (delay.c) ---- */

struct delay *delay_new(struct exchange *x);
void delay_free(struct delay **dp); /* drops what waits; of a durable exchange after store_gone() */

/* Takes m (a reference of its own) for the time that its headers ask for. What a confirm has to wait for. */
struct store_wait delay_publish(struct delay *d, struct msg *m);
struct exchange *delay_find(const struct broker *b, uint64_t id); /* the exchange; NULL: it is gone */
uint64_t delay_messages(const struct delay *d); /* that wait */

/* For broker.c: messages that have become due, moves, files; bounded. True: there is more. */
bool delays_run(struct broker *b);

/* ---- the store's side (delay_lane.c) ---- */

enum { DELAY_LANE_FIRST = LANE_LATER };
/* For persist.c: lanes from DELAY_LANE_FIRST on are ours; a delay_lane owns them. */
void delay_restore_lane(struct broker *b, uint64_t exchange, uint32_t number);
void delays_unlink(struct broker *b); /* the store goes */
uint64_t delay_spilled(struct delay_lane *l, uint64_t through, bool is_behind);
void delay_loaded(struct delay_lane *l, struct msg *m, uint64_t seq, uint64_t due_ms);
void delay_load_done(struct delay_lane *l);
void delay_lost(struct delay_lane *l, uint64_t count);

#endif
