/* SPDX-License-Identifier: Apache-2.0
 * Who waits for a node on a terminal is told so after a second: what for, how much was sent, for how long. */
#ifndef CLI_WAITING_H
#define CLI_WAITING_H

#include <stddef.h>

struct evhttp_connection;
struct event_base;
struct waiting;

/* `doing`, such as "importing", and conn are borrowed; size: bytes that are to be sent. NULL: there is no terminal. */
struct waiting *waiting_new(struct event_base *base, struct evhttp_connection *conn, const char *doing, size_t size);
/* Sets it to NULL and takes the line away. Without it the loop of `base` goes on for ever. */
void waiting_free(struct waiting **w);

#endif
