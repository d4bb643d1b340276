/* SPDX-License-Identifier: Apache-2.0
 * Keys of session tickets. A ticket is a session, sealed and given to the client to keep: whoever has its key reads what was
 * said in that session, so keys do not live long. There are two: the current one seals, and the one before opens as well, so
 * that a ticket is good for as long as a key is current, at least. Older ones are overwritten.
 *
 * The core thread changes them, threads of handshakes use them at the same time. */
#ifndef NET_TLS_TICKETS_H
#define NET_TLS_TICKETS_H

#include <stdbool.h>

#include <openssl/ssl.h>

#include "base/attr.h"

struct tls_tickets;

struct tls_tickets *tls_tickets_new(void);
void tls_tickets_free(struct tls_tickets **tp);
/* A new key is the current one, and the current one the one before. */
void tls_tickets_next(struct tls_tickets *t);
/* Sessions that come by ctx, or change to it by SNI, have these keys; t has to outlive their handshakes. Several contexts
 * may share them. */
bool tls_tickets_use(struct tls_tickets *t, SSL_CTX *ctx) MUSTUSE;

#endif
