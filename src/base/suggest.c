/* SPDX-License-Identifier: Apache-2.0
 * Nearest word: see the header. Distances are counted in eighths of a letter. */
#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

enum { LETTER = 8, CASE = 1, WORD_MAX = 64 };

static unsigned
change_cost(char a, char b)
{
	if (a == b)
		return 0;
	return tolower((unsigned char)a) == tolower((unsigned char)b) ? CASE : LETTER;
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Both lengths are at most WORD_MAX. Three rows of the usual table are enough. */
static unsigned
distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned rows[3][WORD_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= nb; j++)
		last[j] = (unsigned)j * LETTER;
	for (size_t i = 1; i <= na; i++) {
		unsigned *free_row = before;

		row[0] = (unsigned)i * LETTER;
		for (size_t j = 1; j <= nb; j++) {
			unsigned d = last[j - 1] + change_cost(a[i - 1], b[j - 1]);

			d = least(d, least(last[j], row[j - 1]) + LETTER);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = least(d, before[j - 2] + LETTER);
			row[j] = d;
		}
		before = last;
		last = row;
		row = free_row;
	}
	return last[nb];
}

const char *
suggest_nearest(const char *word, const char *const *words, size_t n)
{
	size_t length = strlen(word);
	unsigned allowed, best;
	const char *nearest = NULL;

	if (length == 0 || length > WORD_MAX)
		return NULL;
	/* A third of the word, from one letter up to three. */
	allowed = length < 6 ? 1 : length < 9 ? 2 : 3;
	best = allowed * LETTER + 1;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(words[i]);
		unsigned d;

		if (len > WORD_MAX)
			continue;
		d = distance(word, length, words[i], len);
		/* A word of which every letter changed is not near, however short. */
		if (d < best && d < least((unsigned)length, (unsigned)len) * LETTER) {
			best = d;
			nearest = words[i];
		}
	}
	return nearest;
}
