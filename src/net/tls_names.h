/* SPDX-License-Identifier: Apache-2.0
 * Names that a certificate is for, and which certificate a client means by the name that it asks for (SNI, RFC 6066, 3). */
#ifndef NET_TLS_NAMES_H
#define NET_TLS_NAMES_H

#include <stdint.h>

enum { TLS_NAMES_MAX = 256, TLS_NAME_MAX = 255 };

struct tls_names {
	char **name; /* owned, each too: lower case */
	uint32_t count;
};

/* Keeps a name; one that is too long, or the 257th, is not kept. */
void tls_names_add(struct tls_names *t, const char *name, uint32_t n);
void tls_names_fini(struct tls_names *t);

/* How well a name of a certificate fits: 2 it is the same, 1 "*.example.org" stands for it, which is one label; 0 not. */
unsigned tls_name_fits(const char *name, const char *host);
/* The index of the one that fits best, of several the first; the first of all where none does, or host is NULL. */
uint32_t tls_names_choose(const struct tls_names *const *all, uint32_t n, const char *host);

#endif
