/* SPDX-License-Identifier: Apache-2.0
 * Borrowed runs of bytes, and big-endian numbers in them (network order, as AMQP has it). */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed run of bytes: whoever holds one says why the bytes outlive it. p may be NULL when n is 0. */
struct span {
	const uint8_t *p;
	size_t n;
};

#define SPAN_LIT(s) ((struct span) { (const uint8_t *)(s), sizeof(s) - 1 })

static inline struct span
span_of(const void *p, size_t n)
{
	return (struct span) { p, n };
}

static inline struct span
span_str(const char *s)
{
	return (struct span) { (const uint8_t *)s, strlen(s) };
}

static inline bool
span_eq(struct span a, struct span b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool
span_is(struct span a, const char *s)
{
	return span_eq(a, span_str(s));
}

static inline bool
span_starts(struct span a, const char *s)
{
	size_t n = strlen(s);

	return a.n >= n && memcmp(a.p, s, n) == 0;
}

/* printf("%.*s", SPAN_FMT(s)) */
#define SPAN_FMT(s) (int)(s).n, (s).n > 0 ? (const char *)(s).p : ""

static inline uint16_t
get_be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return __builtin_bswap16(v);
}

static inline uint32_t
get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return __builtin_bswap32(v);
}

static inline uint64_t
get_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return __builtin_bswap64(v);
}

static inline void
put_be16(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof v);
}

static inline void
put_be32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof v);
}

static inline void
put_be64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof v);
}

/* A short string, as AMQP has it: at most 255 bytes. Returns the place behind it. */
static inline uint8_t *
put_short_string(uint8_t *p, struct span s)
{
	*p++ = (uint8_t)s.n;
	if (s.n > 0)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

#endif
