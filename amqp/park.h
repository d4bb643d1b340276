/* SPDX-License-Identifier: Apache-2.0
 * Channels that cannot go on now (DESIGN: ownership, bounds, back pressure). Their frames are kept as they come and
 * handled when they may: order within a channel is never changed, because an ack behind a publish may mean that the
 * result is published, and what stands behind a declare may need what it declares. Other channels of the connection
 * go on; it is read until it holds PARKED_MAX bytes of such frames.
 *
 *	park.c		keeping frames, and going on
 *	park_memory.c	the memory alarm
 *	park_store.c	what has to wait for the disk */
#ifndef AMQP_PARK_H
#define AMQP_PARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "amqp/amqp.h"
#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "store/store.h"

struct channel;
struct connection;
struct frame_share;
struct method_call;

/* A channel is parked, and later frames come: they are kept. */
void channel_keep_parked(struct channel *ch, const uint8_t *frame, size_t n);
/* The channel goes: what it kept is dropped. */
void park_forget(struct channel *ch);
/* Resumes those that may go on; true: more to do. */
bool parked_run(struct amqp *a);
/* connection.close came while channels are parked: does it have to wait? True: reading stops before it. */
bool park_delays_close(struct connection *c);
/* Is there a reason that connection.blocked is for? */
bool park_is_alarm(const struct amqp *a);

/* ---- memory ---- */

/* Asked with each basic.publish while drain_holds_publishers(): does memory, or maintenance, keep this channel from
 * publishing now? True: the frame is kept (if the connection holds too many it is not read), or *error is set and the
 * channel must be closed instead (hard limit, 406). False: handle it. *error is NULL unless refused. */
bool channel_park(struct channel *ch, const uint8_t *frame, size_t n, const struct error **error);
/* A parked channel got a delivery: it may publish one more. */
void park_on_delivery(struct channel *ch);
/* A parked channel whose connection was not read because of its output, which has room again. */
void park_on_room(struct channel *ch);

/* ---- the store ---- */

/* The answer to a method that changed what survives: written when that is reached, until then the channel is parked.
 * args as for codec_send(); NULL: none. */
void park_answer(const struct method_call *call, struct store_wait wait, uint32_t id, void *args);
/* The same for a method about objects: queues, exchanges, bindings. survives: what it is about does, or is unknown. */
void park_object_answer(const struct method_call *call, bool survives, uint32_t id, void *args);
/* Sends what follows from the channel's last method: behind the answer to that, if it is held back. Clients take what comes
 * before for something else: a cancelled consumer whose queue they deleted themselves is no surprise only after delete-ok. */
void park_behind_answer(struct channel *ch, uint32_t id, void *args);
/* The method cannot be handled before something is read from disk: it is kept and handled again. */
void park_for_load(const struct method_call *call);
/* It goes on in a later turn, or in this one if that has room: it is kept and handled again. */
void park_for_turn(const struct method_call *call);
/* Asked with each content header while a->hold is not STORE_FINE. True: the message is persistent, and the frame is
 * kept. */
bool park_header(struct channel *ch, const uint8_t *frame, uint32_t size);

/* ---- between the files of the module ---- */

void park_put(struct channel *ch, enum park_reason reason);	/* at the tail of that list */
struct parked park_take(struct channel *ch);	/* off its list; what it kept is the caller's */
/* Handles at most `budget` bytes of what it kept, at least one frame; returns how many. The channel may be closed by
 * them, another one opened under its number, or the connection be gone: it lives until the end of the turn. */
size_t park_resume(struct amqp *a, struct channel *ch, size_t budget, struct frame_share *share);
/* Handles kept frames up to and with the next one after which the channel is open: on one that is not they cannot
 * wait. */
void park_replay(struct connection *c, uint16_t id, struct parked *k);
void park_lose(struct connection *c, uint16_t id, struct parked *k);	/* nobody will handle them any more */

/* What one turn handles of kept frames. */
enum { PARK_RUN_BYTES = 256 << 10, PARK_RUN_CHANNELS = 64 };

/* park_memory.c. Both use up *left; true: there is more to do. */
bool park_memory_run(struct amqp *a, size_t *left, struct frame_share *share);
bool park_memory_goes_on(struct channel *ch);
/* park_store.c: who waited for the store and need not any more goes to PARK_DUE. */
void park_store_run(struct amqp *a);

#endif
