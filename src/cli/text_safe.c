/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "cli/text_safe.h"

#include <assert.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { ESCAPE_MAX = 10 }; /* bytes that one byte may become: \U0001f407 */

/* Characters without a width of their own that turn the direction of what follows. */
static bool
turns_direction(uint32_t c)
{
	return c == 0x61c || (c >= 0x200e && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Columns of a character, -1 if it is not to be shown. The C library knows, in a locale that has UTF-8; without
 * that locale each takes one. */
static int
width_of(uint32_t c, bool has_locale)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || turns_direction(c))
		return -1;
	return has_locale ? wcwidth((wchar_t)c) : 1;
}

static size_t
escape(char *out, uint32_t c, bool is_byte)
{
	return (size_t)snprintf(out, ESCAPE_MAX + 1,
	    is_byte      ? "\\x%02x"
	    : c > 0xffff ? "\\U%08x"
	                 : "\\u%04x",
	    c);
}

static size_t
make_safe(const char *s, size_t n, char *out, bool has_locale, size_t *columns)
{
	size_t at = 0;

	*columns = 0;
	for (size_t i = 0, len; i < n; i += len) {
		uint32_t c = 0;
		size_t decoded = utf8_decode((const uint8_t *)s + i, n - i, &c);
		int width = decoded > 0 ? width_of(c, has_locale) : -1;

		len = decoded > 0 ? decoded : 1;
		if (width >= 0) {
			memcpy(out + at, s + i, len);
			at += len;
			*columns += (size_t)width;
		} else {
			bool is_byte = decoded <= 1;
			size_t added = escape(out + at, is_byte ? (uint8_t)s[i] : c, is_byte);

			at += added;
			*columns += added;
		}
	}
	out[at] = '\0';
	return at;
}

/* Kept until the end: to make it anew takes longer than all the rest. */
static locale_t
utf8_locale(void)
{
	static locale_t locale;
	static bool was_asked_for;

	if (!was_asked_for)
		locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	was_asked_for = true;
	return locale;
}

char *
text_safe(const char *s, size_t n, size_t *columns)
{
	locale_t utf8 = utf8_locale(), old = (locale_t)0;
	char *out = xmalloc(n * ESCAPE_MAX + 1);
	size_t width, len;

	if (utf8 != (locale_t)0)
		old = uselocale(utf8);
	len = make_safe(s, n, out, utf8 != (locale_t)0, &width);
	if (utf8 != (locale_t)0)
		(void)uselocale(old);
	if (columns != NULL)
		*columns = width;
	return xrealloc(out, len + 1);
}

char *
text_safe_line(const char *s)
{
	char *line = xstrdup(s), *safe;
	size_t at = 0;

	for (; *s != '\0'; s++) {
		if (*s != '\n' && *s != '\r') {
			line[at++] = *s;
			continue;
		}
		while (at > 0 && line[at - 1] == ' ')
			at--;
		s += strspn(s, "\r\n ") - 1;
		if (at > 0 && s[1] != '\0')
			line[at++] = ' ';
	}
	safe = text_safe(line, at, NULL);
	free(line);
	return safe;
}

char *
text_safe_format(const char *fmt, ...)
{
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);
	va_list ap;

	if (f == NULL)
		abort();
	va_start(ap, fmt);
	for (; *fmt != '\0'; fmt++) {
		char *safe;

		if (*fmt != '%') {
			fputc(*fmt, f);
			continue;
		}
		if (*++fmt == '%') {
			fputc('%', f);
			continue;
		}
		assert(*fmt == 's');
		safe = va_arg(ap, char *);
		safe = text_safe(safe, strlen(safe), NULL);
		fputs(safe, f);
		free(safe);
	}
	va_end(ap);
	if (fclose(f) != 0)
		abort();
	return out;
}

size_t
text_safe_json(int fd)
{
	return isatty(fd) == 1 ? JSON_ENSURE_ASCII : 0;
}
