/* SPDX-License-Identifier: Apache-2.0
 * UTF-8: see the header. */
#include "base/utf8.h"

#include <string.h>

static bool
continues(uint8_t b)
{
	return (b & 0xc0) == 0x80;
}

size_t
utf8_decode(const uint8_t *p, size_t n, uint32_t *code)
{
	/* The least code point that needs so many bytes. */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len;
	uint32_t c;

	if (n == 0)
		return 0;
	if (p[0] < 0x80) {
		*code = p[0];
		return 1;
	}
	if (p[0] < 0xc0 || p[0] >= 0xf8)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	c = p[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if (!continues(p[i]))
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*code = c;
	return len;
}

size_t
utf8_cut(const char *s, size_t n, size_t max)
{
	const uint8_t *p = (const uint8_t *)s;
	uint32_t code;

	if (n <= max)
		return n;
	/* The character that would be cut begins at most three bytes before the end. */
	for (size_t back = 0; back <= 3 && back <= max; back++) {
		size_t at = max - back;

		if (continues(p[at]))
			continue;
		return utf8_decode(p + at, n - at, &code) > back ? at : max;
	}
	return max;
}

bool
utf8_valid(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint32_t code;

	while (n > 0) {
		uint64_t eight;
		size_t len;

		if (n >= sizeof eight) {
			memcpy(&eight, p, sizeof eight);
			if ((eight & 0x8080808080808080u) == 0) {
				p += sizeof eight;
				n -= sizeof eight;
				continue;
			}
		}
		len = utf8_decode(p, n, &code);
		if (len == 0)
			return false;
		p += len;
		n -= len;
	}
	return true;
}
