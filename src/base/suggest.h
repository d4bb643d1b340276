/* SPDX-License-Identifier: Apache-2.0
 * "Did you mean ...?" for unknown keys, commands and options. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/* The one of n words that is nearest to `word` by letters added, left out, changed or swapped with
 * their neighbour, borrowed from `words`; NULL if none is near. A letter in the wrong case counts
 * an eighth. */
const char *suggest_nearest(const char *word, const char *const *words, size_t n);

#endif
