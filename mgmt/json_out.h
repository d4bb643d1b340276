/* SPDX-License-Identifier: Apache-2.0
 * JSON as text, written field by field, for documents of which there are many: no tree is made of them. It knows which
 * columns are wanted ("name,message_stats.publish"), so that a document is described once, by a function that offers all of
 * its fields; and it can catch one value instead of writing anything, which is what lists are sorted by. */
#ifndef MGMT_JSON_OUT_H
#define MGMT_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

struct columns;

/* "a,b.c": NULL for none. Columns that name nothing are wanted, too: they leave nothing over. */
struct columns *columns_new(const char *text);
void columns_free(struct columns **cp);

/* One value that was caught. In order: numbers, false, null, true, texts, as RabbitMQ sorts. What is not there, or is no
 * scalar, is 0. */
enum scalar_kind { SCALAR_NUMBER, SCALAR_FALSE, SCALAR_NULL, SCALAR_TRUE, SCALAR_TEXT };
struct scalar {
	enum scalar_kind kind;
	double number;
	struct span text; /* in the writer's memory: good until the next one is caught */
};

enum { JSON_DEPTH = 128 };

struct json_out {
	char *p; /* owned */
	size_t n, cap;
	const struct columns *wanted[JSON_DEPTH]; /* borrowed; of each level, NULL: all */
	const struct columns *next;               /* of the value that follows */
	unsigned depth;
	bool comma;
	struct scalar *caught; /* not NULL: nothing is written */
	bool has_caught;       /* what was to be caught: nothing that follows is of interest */
};

/* columns: borrowed, NULL: all. */
void json_out_init(struct json_out *o, const struct columns *columns);
void json_out_catch(struct json_out *o, const struct columns *columns, struct scalar *to);
void json_out_fini(struct json_out *o);

/* Inside an object: the next value is that of `name`. False: nobody wants it, and no value may be written. */
bool out_key_n(struct json_out *o, const char *name, size_t n) MUSTUSE;
#define out_key(o, literal) out_key_n(o, literal, sizeof(literal) - 1)
/* The same for names that are made: bytes that are no UTF-8 become U+FFFD. */
bool out_key_span(struct json_out *o, struct span name) MUSTUSE;

/* Inside an object: is any of these names wanted? NULL ends them. For what takes longer to find out than to write. */
bool out_wants(const struct json_out *o, const char *const *names) MUSTUSE;

void out_begin(struct json_out *o, char bracket); /* { or [ */
/* } or ]. An object that the columns left nothing of is an empty list, as in RabbitMQ. */
void out_end(struct json_out *o, char bracket);

void out_int(struct json_out *o, int64_t v);
void out_uint(struct json_out *o, uint64_t v);
void out_number(struct json_out *o, double v); /* never like an integer: 0.0; what is no number: null */
void out_truth(struct json_out *o, bool v);
void out_null(struct json_out *o);
void out_text(struct json_out *o, struct span v); /* bytes that are no UTF-8 become U+FFFD */
void out_text_or_null(struct json_out *o, struct span v); /* p NULL: null */
void out_raw(struct json_out *o, struct span json);     /* a whole value */

/* name and value, if somebody wants them */
#define OUT_PUT(o, literal, fn, value)           \
	do {                                      \
		if (out_key(o, literal))         \
			fn(o, value);             \
	} while (0)
#define OUT_INT(o, literal, value) OUT_PUT(o, literal, out_uint, value)
#define OUT_TRUTH(o, literal, value) OUT_PUT(o, literal, out_truth, value)
#define OUT_TEXT(o, literal, value) OUT_PUT(o, literal, out_text, span_str(value))
#define OUT_SPAN(o, literal, value) OUT_PUT(o, literal, out_text, value)
#define OUT_TEXT_OR_NULL(o, literal, value)                      \
	do {                                                      \
		if (!out_key(o, literal))                         \
			break;                                    \
		if ((value) != NULL)                              \
			out_text(o, span_str(value));             \
		else                                              \
			out_null(o);                              \
	} while (0)
#define OUT_NULL(o, literal)             \
	do {                              \
		if (out_key(o, literal)) \
			out_null(o);  \
	} while (0)

#endif
