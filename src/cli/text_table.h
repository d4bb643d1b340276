/* SPDX-License-Identifier: Apache-2.0
 * Rows and columns of text, made safe to print (text_safe.h). For people they are aligned, numbers to the right;
 * for programs the cells of a row are parted by tabs. */
#ifndef CLI_TEXT_TABLE_H
#define CLI_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct text_table;

struct text_table *text_table_new(size_t columns); /* at least 1 */
void text_table_free(struct text_table **tp);

/* Adds the next cell, from left to right and row after row; the n bytes are copied. */
void text_table_add(struct text_table *t, const char *s, size_t n, bool is_number);

/* Prints the whole rows that are there. */
void text_table_print(const struct text_table *t, FILE *out, bool aligned);

#endif
