/* SPDX-License-Identifier: Apache-2.0
 * TLS of client commands: which authorities are trusted (--ca, else the system's) and which certificate is shown (--cert,
 * --key). A node whose certificate is not good for the name in its address is not talked to. */
#ifndef CLI_CLIENT_TLS_H
#define CLI_CLIENT_TLS_H

#include <openssl/types.h>

#include "base/attr.h"
#include "cli/cli.h"

struct amqp_connection_state_t_;
struct timeval;

/* A session for a connection to host; the caller frees it. NULL: it was said. */
SSL *client_tls_new(struct cli *c, const char *host) MUSTUSE;
/* One more like it. */
SSL *client_tls_next(struct cli *c, SSL *before, const char *host) MUSTUSE;
/* Opens AMQP over TLS, up to the handshake of TLS. False: it was said. */
bool client_tls_open(struct cli *c, struct amqp_connection_state_t_ *amqp, const char *host, int port,
    const struct timeval *limit) MUSTUSE;

#endif
