/* SPDX-License-Identifier: Apache-2.0
 * Frames (0-9-1, 4.2.3): walked in place, checked before anything is allocated for them.
 *	octet type, short channel, long size, payload, CE */
#ifndef AMQP_FRAME_H
#define AMQP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_HEARTBEAT = 8, FRAME_END = 0xCE };
enum { FRAME_HEAD = 7, FRAME_OVERHEAD = 8, FRAME_MIN = 4096 };

struct connection;

/* Handles all whole frames in p[0..n); returns how many bytes were taken. Stops at the first connection error. */
size_t frame_walk(struct connection *c, uint8_t *p, size_t n);

/* One frame that is complete and well-formed at the outside (also for frames of a parked channel, replayed). Returns
 * bytes taken from p on, which may be more than this frame (publish in one go). */
size_t frame_handle(struct connection *c, uint8_t *p, const uint8_t *end);

#endif
