/* SPDX-License-Identifier: Apache-2.0
 * What the files of TLS share. */
#ifndef NET_TLS_PRIV_H
#define NET_TLS_PRIV_H

#include <openssl/ssl.h>

#include "base/config.h"
#include "net/tls.h"
#include "net/tls_names.h"
#include "net/tls_tickets.h"

struct tls_certificate {
	SSL_CTX *ctx;		/* owned */
	struct tls_names names; /* that it is for */
	int64_t expires;	/* seconds since 1970 */
	char *file;		/* owned */
};

struct tls_set {
	uint32_t refs;
	uint32_t count; /* at least 1; the first is for clients that name no other */
	struct tls_certificate certificate[CONFIG_LISTEN_MAX];
	uint32_t login_from, login_san, login_san_index;
	struct tls_tickets *tickets; /* owned; of all certificates. NULL: there are none */
	uint64_t tickets_s;	     /* as in the options */
};

/* tls_peer.c: what the handshake has shown; fills *out, whose texts are the caller's. */
void tls_info_fill(struct tls_info *out, SSL *ssl, const struct tls_set *set);
void tls_info_fini(struct tls_info *info);

/* Says what went wrong last on this thread, and forgets it. ssl may be NULL. */
void tls_say_error(SSL *ssl, char *out, size_t n);

#endif
