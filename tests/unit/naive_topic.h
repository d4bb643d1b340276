/* SPDX-License-Identifier: Apache-2.0
 * Topic matching as its definition says, by recursion: what the trie is compared with. */
#ifndef TESTS_NAIVE_TOPIC_H
#define TESTS_NAIVE_TOPIC_H

#include <stdbool.h>
#include <string.h>

/* p and k point to words with dots between them; NULL: no word is left. */
static inline const char *
naive_rest(const char *s)
{
	const char *dot = strchr(s, '.');

	return dot != NULL ? dot + 1 : NULL;
}

static inline size_t
naive_word(const char *s)
{
	return strcspn(s, ".");
}

static inline bool
naive_words(const char *p, const char *k)
{
	size_t n;

	if (p == NULL)
		return k == NULL;
	n = naive_word(p);
	if (n == 1 && *p == '#')
		return naive_words(naive_rest(p), k) ||
		       (k != NULL && naive_words(p, naive_rest(k)));
	if (k == NULL)
		return false;
	if (!(n == 1 && *p == '*') && (naive_word(k) != n || memcmp(p, k, n) != 0))
		return false;
	return naive_words(naive_rest(p), naive_rest(k));
}

static inline bool
naive_topic(const char *pattern, const char *key)
{
	return naive_words(*pattern != '\0' ? pattern : NULL, *key != '\0' ? key : NULL);
}

#endif
