/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text_table.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/text_safe.h"

struct cell {
	char *text; /* owned */
	size_t width;
	bool is_number;
};

struct text_table {
	size_t columns, count, capacity; /* cells */
	struct cell *cell;               /* owned, row after row */
	size_t *width;                   /* owned: of each column */
};

struct text_table *
text_table_new(size_t columns)
{
	struct text_table *t = xcalloc(1, sizeof *t);

	assert(columns > 0);
	t->columns = columns;
	t->width = xcalloc(columns, sizeof *t->width);
	return t;
}

void
text_table_free(struct text_table **tp)
{
	struct text_table *t = *tp;

	*tp = NULL;
	for (size_t i = 0; i < t->count; i++)
		free(t->cell[i].text);
	free(t->cell);
	free(t->width);
	free(t);
}

void
text_table_add(struct text_table *t, const char *s, size_t n, bool is_number)
{
	size_t column = t->count % t->columns;
	struct cell *k;

	if (t->count == t->capacity) {
		t->capacity = t->capacity > 0 ? t->capacity * 2 : 256;
		t->cell = xrealloc(t->cell, t->capacity * sizeof *t->cell);
	}
	k = &t->cell[t->count++];
	k->text = text_safe(s, n, &k->width);
	k->is_number = is_number;
	if (k->width > t->width[column])
		t->width[column] = k->width;
}

static void
print_aligned(const struct text_table *t, const struct cell *k, size_t column, FILE *out)
{
	int blanks = (int)(t->width[column] - k->width);

	if (column > 0)
		fputs("  ", out);
	if (k->is_number)
		fprintf(out, "%*s%s", blanks, "", k->text);
	else if (column + 1 < t->columns)
		fprintf(out, "%s%*s", k->text, blanks, "");
	else
		fputs(k->text, out);
}

void
text_table_print(const struct text_table *t, FILE *out, bool aligned)
{
	for (size_t i = 0; i < t->count - t->count % t->columns; i++) {
		size_t column = i % t->columns;

		if (aligned)
			print_aligned(t, &t->cell[i], column, out);
		else
			fprintf(out, "%s%s", column > 0 ? "\t" : "", t->cell[i].text);
		if (column + 1 == t->columns)
			fputc('\n', out);
	}
}
