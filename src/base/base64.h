/* SPDX-License-Identifier: Apache-2.0
 * Base64 (RFC 4648, 4), as RabbitMQ takes it, and base64url without padding (5). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

/* Bytes that n bytes become, NUL included. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)
#define BASE64URL_SIZE(n) (((n)*8 + 5) / 6 + 1)

void base64_encode(const void *in, size_t n, char *out);
void base64url_encode(const void *in, size_t n, char *out);

/* Decodes n characters into `out`, which has room for n bytes. Blanks and line ends anywhere mean nothing, as base64(1) cuts
 * lines; what is not base64, also where padding is missing, gives 0. Returns the number of bytes. */
size_t base64_decode(const char *in, size_t n, char *out);
/* Of base64url all n have to be digits, and out has room for BASE64URL_DECODED(n) bytes. What the last digit has too much is
 * not looked at. */
#define BASE64URL_DECODED(n) ((n)*6 / 8)
size_t base64url_decode(const void *in, size_t n, void *out);

/* How many characters at the beginning may be base64. n of what base64_decode refuses: its length or padding is wrong. */
size_t base64_valid_length(const char *in, size_t n);

#endif
