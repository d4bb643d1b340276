/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 as RFC 3629 has it: no surrogates, nothing above U+10FFFF, no overlong forms. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the character at p, 1 to 4, and its code point; 0 if n bytes do not begin with one. */
size_t utf8_decode(const uint8_t *p, size_t n, uint32_t *code);

/* The largest length up to max that splits no character of the n bytes at s. Bytes that are no
 * UTF-8 may be cut anywhere. */
size_t utf8_cut(const char *s, size_t n, size_t max);

bool utf8_valid(const void *p, size_t n);

#endif
