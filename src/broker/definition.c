/* SPDX-License-Identifier: Apache-2.0
 * Fields of stored objects, written and found. Where they come from the disk every length is looked at. */
#include "broker/definition.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { HEAD = 5, NAME_MAX_BYTES = 255 };

void
definition_put(struct definition *d, enum definition_tag tag, struct span bytes)
{
	uint32_t n = htole32((uint32_t)bytes.n);
	uint8_t *to;

	if (d->cap - d->n < HEAD + bytes.n) {
		d->cap = (d->n + HEAD + bytes.n) * 2;
		d->p = xrealloc(d->p, d->cap);
	}
	to = d->p + d->n;
	to[0] = (uint8_t)tag;
	memcpy(to + 1, &n, sizeof n);
	if (bytes.n > 0)
		memcpy(to + HEAD, bytes.p, bytes.n);
	d->n += HEAD + bytes.n;
}

void
definition_put_number(struct definition *d, enum definition_tag tag, uint64_t v)
{
	uint64_t le = htole64(v);

	definition_put(d, tag, span_of(&le, sizeof le));
}

void
definition_fini(struct definition *d)
{
	free(d->p);
	*d = (struct definition){ 0 };
}

bool
definition_next(struct span *state, enum definition_tag tag, struct span *out)
{
	struct span left = *state;
	uint32_t n;

	while (left.n >= HEAD) {
		uint8_t found = left.p[0];

		memcpy(&n, left.p + 1, sizeof n);
		n = le32toh(n);
		if (n > left.n - HEAD)
			return false;
		*out = span_of(left.p + HEAD, n);
		left = span_of(left.p + HEAD + n, left.n - HEAD - n);
		if (found == tag) {
			*state = left;
			return true;
		}
	}
	return false;
}

bool
definition_find(struct span state, enum definition_tag tag, struct span *out)
{
	struct span found;

	if (!definition_next(&state, tag, &found))
		return false;
	*out = found;
	return true;
}

uint64_t
definition_number(struct span state, enum definition_tag tag)
{
	struct span bytes;
	uint64_t v;

	if (!definition_find(state, tag, &bytes) || bytes.n != sizeof v)
		return 0;
	memcpy(&v, bytes.p, sizeof v);
	return le64toh(v);
}

bool
definition_short(struct span state, enum definition_tag tag, struct span *out)
{
	return definition_find(state, tag, out) && out->n <= NAME_MAX_BYTES;
}

bool
definition_name(struct span state, enum definition_tag tag, struct span *out)
{
	return definition_short(state, tag, out) &&
	       (out->n == 0 || memchr(out->p, '\0', out->n) == NULL);
}
