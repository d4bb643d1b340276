/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <stdbool.h>
#include <stdint.h>

#define DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* Of a digit; high: those that stand for 62 and 63. -1: it is none. */
static int
value(char c, const char high[3])
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == high[0])
		return 62;
	return c == high[1] ? 63 : -1;
}

static void
encode(const uint8_t *p, size_t n, const char *digits, bool pads, char *out)
{
	while (n > 0) {
		size_t now = n < 3 ? n : 3;
		uint32_t bits = (uint32_t)p[0] << 16;

		if (now > 1)
			bits |= (uint32_t)p[1] << 8;
		if (now > 2)
			bits |= p[2];
		for (unsigned i = 0; i < 4; i++) {
			if (i <= now)
				*out++ = digits[bits >> (18 - 6 * i) & 63];
			else if (pads)
				*out++ = '=';
		}
		p += now;
		n -= now;
	}
	*out = '\0';
}

void
base64_encode(const void *in, size_t n, char *out)
{
	encode(in, n, DIGITS "+/", true, out);
}

void
base64url_encode(const void *in, size_t n, char *out)
{
	encode(in, n, DIGITS "-_", false, out);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

size_t
base64_valid_length(const char *in, size_t n)
{
	bool padded = false;

	for (size_t i = 0; i < n; i++) {
		if (!is_blank(in[i]) && in[i] != '=' && (padded || value(in[i], "+/") < 0))
			return i;
		padded |= in[i] == '=';
	}
	return n;
}

size_t
base64_decode(const char *in, size_t n, char *out)
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t written = 0, digits = 0, pads = 0;

	for (size_t i = 0; i < n; i++) {
		int v = value(in[i], "+/");

		if (is_blank(in[i]))
			continue;
		if (in[i] == '=') {
			pads++;
			continue;
		}
		if (v < 0 || pads > 0)
			return 0;
		digits++;
		bits = bits << 6 | (uint32_t)v;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[written++] = (char)(bits >> have & 0xFF);
		}
	}
	return pads <= 2 && (digits + pads) % 4 == 0 ? written : 0;
}

size_t
base64url_decode(const void *in, size_t n, void *out)
{
	const char *from = in;
	uint8_t *to = out;
	uint32_t bits = 0;
	unsigned have = 0;

	for (size_t i = 0; i < n; i++) {
		int v = value(from[i], "-_");

		if (v < 0)
			return 0;
		bits = bits << 6 | (uint32_t)v;
		have += 6;
		if (have >= 8) {
			have -= 8;
			*to++ = (uint8_t)(bits >> have);
		}
	}
	return (size_t)(to - (uint8_t *)out);
}
