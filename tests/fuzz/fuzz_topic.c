/* SPDX-License-Identifier: Apache-2.0
 * Patterns and keys of any bytes, one a line: lines that begin with ! are keys, others patterns. Every key is matched
 * within words x nodes steps, and afterwards nothing of the patterns is left. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/binding.h"
#include "broker/exchange_type/topic.h"

enum { PATTERNS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool
count(void *arg, struct binding *b)
{
	assert(b != NULL);
	++*(size_t *)arg;
	return true;
}

static struct binding *
add(struct topic *t, struct span pattern)
{
	struct binding *b = xcalloc(1, sizeof *b + pattern.n);

	b->key_len = (uint8_t)pattern.n;
	if (pattern.n > 0)
		memcpy(b->key, pattern.p, pattern.n);
	topic_add(t, b);
	return b;
}

static void
match(struct topic *t, struct span key, size_t patterns)
{
	uint64_t before = topic_steps(t);
	size_t words = 1, hits = 0, i;

	for (i = 0; i < key.n; i++)
		words += key.p[i] == '.';
	topic_match(t, key, UINT32_MAX, count, &hits);
	assert(hits <= patterns);
	assert(topic_steps(t) - before <= (words + 1) * topic_nodes(t));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct topic *t = topic_new();
	struct binding *b[PATTERNS];
	struct span rest = span_of(data, n), line;
	size_t patterns = 0, i;
	const uint8_t *end;

	while (rest.n > 0) {
		end = memchr(rest.p, '\n', rest.n);
		line = span_of(rest.p, end != NULL ? (size_t)(end - rest.p) : rest.n);
		rest = span_of(rest.p + line.n, rest.n - line.n);
		if (end != NULL)
			rest = span_of(rest.p + 1, rest.n - 1);
		if (line.n > 0 && line.p[0] == '!')
			match(t, span_of(line.p + 1, line.n - 1), patterns);
		else if (line.n <= 255 && patterns < PATTERNS)
			b[patterns++] = add(t, line);
	}
	for (i = 0; i < patterns; i++) {
		topic_remove(t, b[i]);
		free(b[i]);
	}
	assert(topic_nodes(t) == 1);
	topic_free(&t);
	return 0;
}
