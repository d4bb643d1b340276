/* SPDX-License-Identifier: Apache-2.0
 * From the protocol header to connection.open-ok (0-9-1, 2.2.4). The methods' handlers are in methods.def. */
#ifndef AMQP_HANDSHAKE_H
#define AMQP_HANDSHAKE_H

#include <stdint.h>

struct connection;

enum { HANDSHAKE_HEADER = 8 }; /* bytes of a protocol header */

/* The first eight bytes. What is not AMQP 0-9-1 is named in the log, answered with our header and closed. */
void handshake_header(struct connection *c, const uint8_t *p);

#endif
