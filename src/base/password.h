/* SPDX-License-Identifier: Apache-2.0
 * What is kept of a password, and whether another one is the same. RabbitMQ's kinds are a salt of 4 bytes and one round of
 * a digest over salt and password, which is what its tools read, write and move from node to node; ours is PBKDF2 with
 * HMAC-SHA-512 (RFC 8018, 5.2), which costs whoever has stolen hashes some 30 ms a guess. Any thread, after
 * password_init(). */
#ifndef BASE_PASSWORD_H
#define BASE_PASSWORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

enum password_kind { /* stored: numbers are never given another meaning */
	PASSWORD_NONE,	/* nobody logs in with a password */
	PASSWORD_SHA256,
	PASSWORD_SHA512,
	PASSWORD_MD5,	/* of very old RabbitMQ's, for import only */
	PASSWORD_PBKDF2,
	PASSWORD_KINDS
};

enum {
	PASSWORD_LEN_MAX = 1024,	/* bytes of a password */
	PASSWORD_HASH_MAX = 128,	/* bytes of what is kept */
	PASSWORD_COST = 30000,		/* iterations of PBKDF2: about 30 ms */
	PASSWORD_COST_MAX = 500000	/* what an import may ask for */
};

struct password {
	enum password_kind kind;
	uint32_t n;
	/* salt, digest; of PBKDF2: iterations (big-endian), 16 bytes of salt, 64 of result. What an import brought may have
	 * any length: then it matches nothing. */
	uint8_t bytes[PASSWORD_HASH_MAX];
};

void password_init(void); /* once, before there are other threads; 0.5 ms the first time */

/* text: at most PASSWORD_LEN_MAX bytes. cost: iterations, of PBKDF2 only. */
void password_make(struct password *p, enum password_kind kind, struct span text, uint32_t cost);
bool password_is(const struct password *p, struct span text) MUSTUSE;
/* From an import: false where bytes cannot be kept, or are of a form that this kind does not have. */
bool password_from(struct password *p, enum password_kind kind, struct span bytes) MUSTUSE;

/* Making or checking one takes so long that it belongs on a worker. */
static inline bool
password_is_slow(enum password_kind kind)
{
	return kind == PASSWORD_PBKDF2;
}

/* "rabbit_password_hashing_sha256", as RabbitMQ calls it. PASSWORD_KINDS: unknown. */
const char *password_kind_name(enum password_kind kind);
enum password_kind password_kind_find(struct span name);

#endif
