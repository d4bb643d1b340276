/* SPDX-License-Identifier: Apache-2.0
 * Listening sockets: IPv4, IPv6, dual stack ("::"). At most 64 accepts a turn. Descriptors: a reserve is kept;
 * when the limit of connections or descriptors is reached, a new connection is accepted, told by being closed,
 * counted and logged (rate limited), and accepting rests 100 ms instead of spinning. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <stdint.h>

#include "base/attr.h"
#include "net/loop.h"

struct listener;
struct config;

/* fd is non-blocking, close-on-exec, TCP_NODELAY and keepalive as settings say; it is the callee's now. */
typedef void listener_fn(void *arg, int fd);

struct listener_stats {
	uint64_t accepted, refused, errors;
	uint32_t open; /* kept by listener_closed() */
};

/* Listens on one address and port. NULL: *error is a static text that says what failed and what to do
 * ("port 5672 on :: is taken by another process: stop it or choose another with --port"). */
struct listener *listener_open(struct loop *l, const struct config *cfg, const char *address,
    uint16_t port, uint32_t max_open, listener_fn *fn, void *arg, const char **error) MUSTUSE;
void listener_stop(struct listener *ls); /* accepts nothing more */
void listener_free(struct listener **lsp);
void listener_closed(struct listener *ls);         /* one that was accepted is gone */
uint16_t listener_port(const struct listener *ls); /* the real one where 0 was asked for */
const char *listener_address(const struct listener *ls);
const struct listener_stats *listener_stats(const struct listener *ls);

/* Only the socket, bound and listening, for who accepts by other means: a descriptor, or -1 with *error
 * as above. */
int listener_socket(
    const struct config *cfg, const char *address, uint16_t port, const char **error) MUSTUSE;

/* Raises the soft limit of descriptors to the hard one; returns the limit. */
uint64_t listener_raise_descriptors(void);

#endif
