/* SPDX-License-Identifier: Apache-2.0
 * Frames (0-9-1, 4.2.3): walked in place, checked before anything is allocated for them.
 *	octet type, short channel, long size, payload, CE */
#ifndef AMQP_FRAME_H
#define AMQP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_HEARTBEAT = 8, FRAME_END = 0xCE };
enum { FRAME_HEAD = 7, FRAME_OVERHEAD = 8, FRAME_MIN = 4096 };

struct connection;

/* The time that requests of one connection may take before it is others' turn (loop->share_us): a frame of 60 bytes can
 * ask for a millisecond of work, and thousands of them come in one read. The clock is looked at each time the broker's
 * count of work has risen by FRAME_LOOK; the share begins with the first look. All zero: nothing used yet. */
enum { FRAME_LOOK = 256 };
struct frame_share {
	uint64_t look, until_us;
};
bool frame_share_used(const struct connection *c, struct frame_share *s);

/* Handles all whole frames in p[0..n), or as many as its share of time allows: then the rest is shown again in the next
 * turn. Returns how many bytes were taken. Stops at the first connection error. */
size_t frame_walk(struct connection *c, uint8_t *p, size_t n);

/* One frame that is complete and well-formed at the outside (also for frames of a parked channel, replayed). Returns
 * bytes taken from p on: they may be more than this frame (publish in one go), or none when reading was paused because
 * it has to wait (connection.close behind parked channels). */
size_t frame_handle(struct connection *c, uint8_t *p, const uint8_t *end);

#endif
