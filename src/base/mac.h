/* SPDX-License-Identifier: Apache-2.0
 * A keyed code over bytes that go out to a client and come back, so that nobody else can have made
 * them: direct reply-to addresses carry one. The key lives as long as the process. Core thread
 * only. */
#ifndef BASE_MAC_H
#define BASE_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { MAC_SIZE = 16, MAC_PASSWORD_SIZE = 32 };

void mac_init(void); /* a new random key: what was computed before is no longer right */
void mac_compute(const void *p, size_t n, uint8_t out[MAC_SIZE]);
bool mac_verify(
    const void *p, size_t n, const uint8_t mac[MAC_SIZE]) MUSTUSE; /* in constant time */

/* What is kept of a password: PBKDF2 with HMAC-SHA-256 (RFC 8018, 5.2). 0.25 us an iteration, and
 * 0.9 ms the first time. The other compares two results in constant time. */
void mac_password(const void *password, size_t n, const uint8_t salt[16], uint32_t iterations,
    uint8_t out[MAC_PASSWORD_SIZE]);
bool mac_same(const void *a, const void *b, size_t n) MUSTUSE;

#endif
