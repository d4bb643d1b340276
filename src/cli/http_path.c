/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/http_path.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static char *
encode(char *out, const char *name)
{
	static const char plain[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	static const char hex[] = "0123456789ABCDEF";

	for (; *name != '\0'; name++) {
		uint8_t byte = (uint8_t)*name;

		if (strchr(plain, *name) != NULL) {
			*out++ = *name;
		} else {
			*out++ = '%';
			*out++ = hex[byte >> 4];
			*out++ = hex[byte & 15];
		}
	}
	return out;
}

char *
http_path(const char *pattern, const char *const *names, size_t n)
{
	size_t size = strlen(pattern) + 1, next = 0;
	char *path, *out;

	for (size_t i = 0; i < n; i++)
		size += 3 * strlen(names[i]);
	path = out = xmalloc(size);
	for (; *pattern != '\0'; pattern++) {
		if (*pattern != '*') {
			*out++ = *pattern;
			continue;
		}
		assert(next < n);
		out = encode(out, names[next++]);
	}
	assert(next == n);
	*out = '\0';
	return path;
}
