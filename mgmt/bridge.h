/* SPDX-License-Identifier: Apache-2.0
 * Ports whose connections pass the gate (TLS, PROXY protocol) before libevent's HTTP server gets them. It can only accept
 * by itself, so it does from a local socket, and what goes through there is plain: one state machine for HTTP and HTTPS.
 * At most BRIDGE_HIGH bytes wait in each direction; then the other side is not read. */
#ifndef MGMT_BRIDGE_H
#define MGMT_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct bridge;
struct config;
struct gate;
struct loop;
struct transport_addr;

enum { BRIDGE_HIGH = 256 << 10 };

/* max: connections of a port. */
struct bridge *bridge_new(struct loop *l, struct gate *g, uint32_t max);
/* The listening socket for the server, which owns it; -1: *error is a static text. */
int bridge_socket(struct bridge *b, const char **error) MUSTUSE;
/* One more port; false: *error is a static text (net/listener.h). */
bool bridge_listen(struct bridge *b, const struct config *cfg, const char *address, uint16_t port, bool is_tls,
    const char **error) MUSTUSE;
/* Whose connection the server has accepted as fd. False: it is none of ours. */
bool bridge_peer(const struct bridge *b, int fd, struct transport_addr *peer, bool *is_tls);
/* The i-th port. */
bool bridge_port(const struct bridge *b, unsigned i, struct transport_addr *out, bool *is_tls);
void bridge_free(struct bridge **bp); /* closes everything */

#endif
