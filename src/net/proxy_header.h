/* SPDX-License-Identifier: Apache-2.0
 * The header of the PROXY protocol, versions 1 (a line of text) and 2 (binary), by which a load balancer says whose
 * connection it brings: HAProxy's proxy-protocol.txt. Who may say so decides the caller; nothing here reads a socket. */
#ifndef NET_PROXY_HEADER_H
#define NET_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/transport.h"

enum {
	PROXY_LINE_MAX = 107,	 /* bytes of version 1, its CR LF among them */
	PROXY_HEADER_MAX = 4096	 /* of version 2; what stands behind the addresses is not looked at */
};

enum proxy_result { PROXY_MORE, PROXY_DONE, PROXY_BAD };

struct proxy_header {
	size_t used;		/* bytes of the header */
	bool has_addresses;	/* false: LOCAL or UNKNOWN, such as a health check: those of the socket hold */
	bool is_own;		/* LOCAL: the sender's own connection, that it brings for nobody */
	struct transport_addr peer, local;
};

/* The first n bytes of a connection. PROXY_MORE: all of them belong to a header that is not whole yet. PROXY_BAD: it is
 * none, and *why (static text) says what is wrong. */
enum proxy_result proxy_parse(const uint8_t *p, size_t n, struct proxy_header *out, const char **why);

/* Do the bytes begin as such a header does? For a hint to who sends one that nobody expects. */
bool proxy_begins(const uint8_t *p, size_t n);

#endif
