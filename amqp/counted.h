/* SPDX-License-Identifier: Apache-2.0
 * The content header of a message from a quorum queue, with how often it came back in its headers. */
#ifndef AMQP_COUNTED_H
#define AMQP_COUNTED_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct msg;

/* m's header frame with `x-delivery-count`, and, where it is not 0, `x-acquired-count`: both `count`, for every way back
 * counts. A publisher's own fields of these names make room. Owned, of *n bytes; the channel number is the caller's to
 * write. NULL: no memory, or a frame longer than max: then it goes out as it came. */
uint8_t *counted_header(const struct msg *m, uint32_t count, uint32_t max, size_t *n) MUSTUSE;

#endif
