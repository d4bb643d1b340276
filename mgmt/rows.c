/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "mgmt/request.h"

enum { COLUMN_LEN_MAX = 256 };

/* The value at "a.b"; NULL: there is none. Borrowed. */
static json_t *
value_at(json_t *row, const char *path, size_t n)
{
	while (row != NULL) {
		const char *dot = memchr(path, '.', n);
		size_t piece = dot != NULL ? (size_t)(dot - path) : n;
		char key[COLUMN_LEN_MAX];

		if (piece >= sizeof key)
			return NULL;
		memcpy(key, path, piece);
		key[piece] = '\0';
		row = json_object_get(row, key);
		if (dot == NULL)
			return row;
		path = dot + 1;
		n -= piece + 1;
	}
	return NULL;
}

/* --- columns ---------------------------------------------------------------------- */

static void
copy_column(json_t *from, json_t *to, const char *path, size_t n)
{
	json_t *value = value_at(from, path, n);
	const char *dot;

	if (value == NULL)
		return;
	while ((dot = memchr(path, '.', n)) != NULL) {
		char key[COLUMN_LEN_MAX];
		size_t piece = (size_t)(dot - path);
		json_t *inner;

		memcpy(key, path, piece);
		key[piece] = '\0';
		inner = json_object_get(to, key);
		if (!json_is_object(inner)) {
			inner = json_object();
			(void)json_object_set_new(to, key, inner);
		}
		to = inner;
		path = dot + 1;
		n -= piece + 1;
	}
	if (n < COLUMN_LEN_MAX) {
		char key[COLUMN_LEN_MAX];

		memcpy(key, path, n);
		key[n] = '\0';
		(void)json_object_set(to, key, value);
	}
}

/* Takes row. What is reduced to nothing is [], as from RabbitMQ. */
static json_t *
reduced(json_t *row, const char *columns)
{
	json_t *to = json_object();
	unsigned count = 0;

	for (const char *p = columns; count < ROWS_COLUMNS_MAX; count++) {
		size_t n = strcspn(p, ",");

		if (n > 0)
			copy_column(row, to, p, n);
		if (p[n] == '\0')
			break;
		p += n + 1;
	}
	json_decref(row);
	if (json_object_size(to) > 0)
		return to;
	json_decref(to);
	return json_array();
}

/* --- sorting ------------------------------------------------------------------------ */

struct sorted {
	json_t *row, *key; /* key borrowed from row */
	size_t at;         /* where it was: equals stay in order */
};

static int
compare_keys(const json_t *a, const json_t *b)
{
	double x, y;

	if (json_is_string(a) && json_is_string(b))
		return strcmp(json_string_value(a), json_string_value(b));
	if (json_is_number(a) && json_is_number(b)) {
		x = json_number_value(a);
		y = json_number_value(b);
		return (x > y) - (x < y);
	}
	/* what is not there comes first */
	return (a != NULL ? (int)json_typeof(a) + 1 : 0) -
	       (b != NULL ? (int)json_typeof(b) + 1 : 0);
}

static int
compare(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	int c = compare_keys(x->key, y->key);

	return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

static json_t *
sorted_by(json_t *rows, const char *path, bool reverse)
{
	size_t n = json_array_size(rows);
	struct sorted *s = xcalloc(n + 1, sizeof *s);
	json_t *to = json_array();

	for (size_t i = 0; i < n; i++) {
		s[i].row = json_array_get(rows, i);
		s[i].key = value_at(s[i].row, path, strlen(path));
		s[i].at = i;
	}
	qsort(s, n, sizeof *s, compare);
	for (size_t i = 0; i < n; i++)
		(void)json_array_append(to, s[reverse ? n - 1 - i : i].row);
	free(s);
	json_decref(rows);
	return to;
}

void
reply_rows(struct request *r, json_t *rows)
{
	const char *sort = request_query(r, "sort"), *reverse = request_query(r, "sort_reverse"),
	           *columns = request_query(r, "columns");

	if (sort != NULL && *sort != '\0')
		rows = sorted_by(rows, sort, reverse != NULL && strcmp(reverse, "true") == 0);
	for (size_t i = 0; columns != NULL && i < json_array_size(rows); i++)
		(void)json_array_set_new(
		    rows, i, reduced(json_incref(json_array_get(rows, i)), columns));
	reply_json(r, 200, rows);
}

void
reply_row(struct request *r, json_t *row)
{
	const char *columns = request_query(r, "columns");

	reply_json(r, 200, columns != NULL ? reduced(row, columns) : row);
}
