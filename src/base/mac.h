/* SPDX-License-Identifier: Apache-2.0
 * A keyed code over bytes that go out to a client and come back, so that nobody else can have made
 * them: direct reply-to addresses carry one. The key lives as long as the process. Core thread
 * only. And what else OpenSSL does for this floor: digests of passwords. */
#ifndef BASE_MAC_H
#define BASE_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

enum { MAC_SIZE = 16 };

void mac_init(void); /* a new random key: what was computed before is no longer right */
void mac_compute(const void *p, size_t n, uint8_t out[MAC_SIZE]);
bool mac_verify(
    const void *p, size_t n, const uint8_t mac[MAC_SIZE]) MUSTUSE; /* in constant time */

/* Digests and PBKDF2, for password.c. Any thread, once digest_init() was called, which takes 0.5 ms the first time. */
enum digest { DIGEST_SHA256, DIGEST_SHA512, DIGEST_MD5, DIGESTS };
enum { DIGEST_SIZE_MAX = 64, PBKDF2_SALT = 16, PBKDF2_RESULT = 64 };
void digest_init(void);
/* Of salt and text, one behind the other: bytes written to out. 0: this machine forbids this digest. */
size_t digest_salted(
    enum digest d, struct span salt, struct span text, uint8_t out[DIGEST_SIZE_MAX]);
/* With HMAC-SHA-512 (RFC 8018, 5.2); about 1 us an iteration. */
void pbkdf2_sha512(const uint8_t salt[PBKDF2_SALT], uint32_t iterations, struct span text,
    uint8_t out[PBKDF2_RESULT]);

/* In constant time. */
bool mac_same(const void *a, const void *b, size_t n) MUSTUSE;

#endif
