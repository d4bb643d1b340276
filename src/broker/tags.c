/* SPDX-License-Identifier: Apache-2.0
 * Lists of tags. */
#include "broker/tags.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/name.h"

static size_t
size_of(const struct tags *t)
{
	size_t n = t->count * sizeof *t->item;

	for (uint32_t i = 0; i < t->count; i++)
		n += strlen(t->item[i]) + 1;
	return n;
}

const struct error *
tags_set(struct tags *t, const struct span *item, uint32_t count)
{
	const struct error *e;
	struct tags made = { NULL, count };

	if (count > TAGS_MAX)
		return error_make(
		    E_PRECONDITION_FAILED, "%u tags, at most %d are allowed", count, TAGS_MAX);
	for (uint32_t i = 0; i < count; i++)
		if ((e = name_check("a tag", item[i])) != NULL)
			return e;
	if (count > 0)
		made.item = xcalloc(count, sizeof *made.item);
	for (uint32_t i = 0; i < count; i++)
		made.item[i] = xstrndup(SPAN_CHARS(item[i]), item[i].n);
	mem_add(MEM_TOPOLOGY, size_of(&made));
	tags_fini(t);
	*t = made;
	return NULL;
}

void
tags_fini(struct tags *t)
{
	mem_sub(MEM_TOPOLOGY, size_of(t));
	for (uint32_t i = 0; i < t->count; i++)
		free(t->item[i]);
	free(t->item);
	*t = (struct tags){ 0 };
}

bool
tags_have(const struct tags *t, const char *tag)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (strcmp(t->item[i], tag) == 0)
			return true;
	return false;
}

static struct span
trimmed(const uint8_t *p, size_t n)
{
	while (n > 0 && *p == ' ') {
		p++;
		n--;
	}
	while (n > 0 && p[n - 1] == ' ')
		n--;
	return span_of(p, n);
}

bool
tags_split(struct span s, struct span tag[TAGS_MAX], uint32_t *count)
{
	*count = 0;
	while (s.n > 0) {
		const uint8_t *comma = memchr(s.p, ',', s.n);
		size_t n = comma != NULL ? (size_t)(comma - s.p) : s.n;
		struct span one = trimmed(s.p, n);

		if (one.n > 0 && *count == TAGS_MAX)
			return false;
		if (one.n > 0)
			tag[(*count)++] = one;
		n += comma != NULL;
		s = span_of(s.p + n, s.n - n);
	}
	return true;
}
