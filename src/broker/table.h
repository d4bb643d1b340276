/* SPDX-License-Identifier: Apache-2.0
 * Field tables (0-9-1, 4.2.5.5, with RabbitMQ's type tags) as the bytes they came as: checked once for form and
 * depth, then read in place. Rabbitmq-c's decoded tables become such bytes by table_from_amqp(). */
#ifndef BROKER_TABLE_H
#define BROKER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

enum { TABLE_DEPTH_MAX = 64 };

struct amqp_table_t_;

/* An owned table: `raw` is what stands behind the 32-bit length on the wire. NULL stands for the empty table
 * wherever a `const struct table *` is taken. */
struct table {
	uint32_t n;
	uint8_t raw[];
};

/* One field, in place. */
struct field {
	struct span name;
	uint8_t kind;		/* tag: t b B s u I i l L f d D S x T V A F */
	bool truth;		/* t */
	int64_t integer;	/* b B s u I i l, T and L as bits */
	double number;		/* f d */
	struct span bytes;	/* S x: the bytes; A F: what stands behind their length; D: 5 bytes */
};

/* Checks the content of a table (without its length). 0, or -EINVAL for wrong form, -E2BIG for too deep. */
int table_check(struct span raw, unsigned depth_max) MUSTUSE;
/* The same for a message's headers; *has_cc: a field CC or BCC stands in it. */
int table_check_headers(struct span raw, unsigned depth_max, bool *has_cc) MUSTUSE;

/* Walks a checked table: returns false at the end. *at starts at 0. Also for arrays (name stays empty). */
bool table_next(struct span raw, size_t *at, struct field *f);
bool array_next(struct span raw, size_t *at, struct field *f);
bool table_find(struct span raw, const char *name, struct field *f);

static inline struct span
table_span(const struct table *t)
{
	return t != NULL ? span_of(t->raw, t->n) : span_of(NULL, 0);
}

/* Bytes that it takes. */
static inline size_t
table_size(const struct table *t)
{
	return t != NULL ? sizeof *t + t->n : 0;
}

struct table *table_from_raw(struct span raw) MUSTUSE;		/* copies a checked table; NULL if empty */
int table_try_copy(struct span raw, struct table **out) MUSTUSE;	/* the same; 0, -ENOMEM or -E2BIG */
/* Copies a decoded table. *out NULL if empty. 0 or -EINVAL (cannot be encoded), -E2BIG (over 1 MiB or too deep),
 * -ENOMEM. */
int table_from_amqp(const struct amqp_table_t_ *in, struct table **out) MUSTUSE;
void table_free(struct table **tp);

/* Same fields in any order with equal values, types included: identity of a binding's arguments. False also when there
 * is no memory to compare tables in different order. */
bool table_equal(const struct table *a, const struct table *b);
/* Equal as a headers exchange sees it: integers of every width alike, nested tables byte for byte kind for kind. */
bool field_equal(const struct field *a, const struct field *b);

bool field_is_integer(const struct field *f);
/* RabbitMQ's name of the type in its refusals: signedint, longstr, bool, double, void, array, table, ... */
const char *field_type_name(const struct field *f);
/* The value as RabbitMQ's texts print it ('5', 'true', 'abc'), cut to n. */
const char *field_text(const struct field *f, char *buf, size_t n);
/* The same with strings as Erlang writes them: <<"abc">>. */
const char *field_term(const struct field *f, char *buf, size_t n);

/* Growing writer for tables that Hermes makes or changes. `failed` is sticky (out of memory, over `max`). */
struct table_writer {
	uint8_t *p;
	uint32_t n, cap, max;
	bool failed, no_memory;		/* no_memory: that is why; else it would be longer than max */
};
void table_writer_init(struct table_writer *w, uint32_t max);
void table_writer_fini(struct table_writer *w);
void table_put_field(struct table_writer *w, const struct field *f);	/* any field, name and all */
void table_put_item(struct table_writer *w, const struct field *f);	/* of an array: without its name */
void table_put_raw(struct table_writer *w, struct span bytes);
void table_put_string(struct table_writer *w, const char *name, const char *value);
void table_put_bool(struct table_writer *w, const char *name, bool value);
void table_put_text(struct table_writer *w, const char *name, struct span value);
/* As I, or as l where it needs more than 31 bits. */
void table_put_number(struct table_writer *w, const char *name, uint64_t value);
/* Nested table; array, of texts: the mark is given back to table_end. */
uint32_t table_begin(struct table_writer *w, const char *name);
uint32_t table_begin_array(struct table_writer *w, const char *name);
void table_put_item_text(struct table_writer *w, struct span value);
void table_end(struct table_writer *w, uint32_t mark);

#endif
