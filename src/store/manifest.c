/* SPDX-License-Identifier: Apache-2.0 */
#include "store/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"

enum { LINE_MAX_BYTES = 256 };

#define FIRST_LINE "hermes-snapshot 1\n"
#define SUM_LINE "sum %016" PRIx64 "\n"
enum { SUM_LINE_BYTES = 21 };

static void PRINTF(2, 3) add(struct manifest *m, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (m->cap - m->n < LINE_MAX_BYTES) {
		m->cap = m->cap == 0 ? 4096 : m->cap * 2;
		m->p = xrealloc(m->p, m->cap);
	}
	va_start(ap, fmt);
	n = vsnprintf(m->p + m->n, m->cap - m->n, fmt, ap);
	va_end(ap);
	m->n += n > 0 && n < LINE_MAX_BYTES ? (size_t)n : 0;
}

void
manifest_init(struct manifest *m)
{
	*m = (struct manifest){ 0 };
	add(m, "%s", FIRST_LINE);
}

void
manifest_fini(struct manifest *m)
{
	free(m->p);
	*m = (struct manifest){ 0 };
}

void
manifest_add(struct manifest *m, const char *name, uint64_t size)
{
	add(m, "%" PRIu64 " %s\n", size, name);
}

void
manifest_seal(struct manifest *m)
{
	add(m, SUM_LINE, (uint64_t)XXH3_64bits(m->p, m->n));
}

/* `store`, or a plain name in one of the two folders. */
static bool
is_name(const char *name)
{
	const char *rest = NULL;

	if (strcmp(name, "store") == 0)
		return true;
	if (strncmp(name, "journal/", 8) == 0)
		rest = name + 8;
	else if (strncmp(name, "segments/", 9) == 0)
		rest = name + 9;
	return rest != NULL && *rest != '\0' && *rest != '.' &&
	       rest[strspn(rest, "0123456789abcdefghijklmnopqrstuvwxyz-.")] == '\0';
}

/* "SIZE NAME" without its end. */
static bool
take_line(const char *line, size_t n, char name[LINE_MAX_BYTES], uint64_t *size)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < n && line[i] >= '0' && line[i] <= '9'; i++) {
		if (v > (UINT64_MAX >> 1) / 10)
			return false;
		v = v * 10 + (uint64_t)(line[i] - '0');
	}
	if (i == 0 || i >= n || line[i] != ' ' || n - i - 1 >= LINE_MAX_BYTES)
		return false;
	memcpy(name, line + i + 1, n - i - 1);
	name[n - i - 1] = '\0';
	*size = v;
	return strlen(name) == n - i - 1 && is_name(name);
}

/* Are the first and the last line right? */
static int
check_frame(const char *p, size_t n)
{
	static const char any[] = "hermes-snapshot ";
	size_t first = sizeof FIRST_LINE - 1;
	char sum[SUM_LINE_BYTES + 1];

	if (n < first + SUM_LINE_BYTES || memcmp(p, any, sizeof any - 1) != 0)
		return -EBADMSG;
	(void)snprintf(sum, sizeof sum, SUM_LINE, (uint64_t)XXH3_64bits(p, n - SUM_LINE_BYTES));
	if (memcmp(p + n - SUM_LINE_BYTES, sum, SUM_LINE_BYTES) != 0)
		return -EBADMSG;
	return memcmp(p, FIRST_LINE, first) == 0 ? 0 : -EPROTONOSUPPORT;
}

int
manifest_each(const char *p, size_t n, manifest_fn *f, void *arg)
{
	int e = check_frame(p, n);
	const char *end = p + n - SUM_LINE_BYTES;

	if (e != 0)
		return e;
	for (const char *line = p + sizeof FIRST_LINE - 1, *next; line < end; line = next + 1) {
		char name[LINE_MAX_BYTES];
		uint64_t size;

		next = memchr(line, '\n', (size_t)(end - line));
		if (next == NULL || !take_line(line, (size_t)(next - line), name, &size))
			return -EBADMSG;
		if ((e = f(arg, name, size)) != 0)
			return e;
	}
	return 0;
}
