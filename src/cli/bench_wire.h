/* SPDX-License-Identifier: Apache-2.0
 * AMQP 0-9-1 as bytes, for hermes bench: what a library would cost shall not be what is measured. A writer appends to a
 * piece of memory of somebody else, a reader walks one. Both keep a `failed`, looked at once at the end; what has failed
 * does nothing and reads zeros. Numbers of methods are those of librabbitmq's amqp_framing.h. */
#ifndef CLI_BENCH_WIRE_H
#define CLI_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
	WIRE_HEAD = 7,     /* type, channel and size of a frame */
	WIRE_OVERHEAD = 8, /* these and its end */
	WIRE_PROP_CONTENT_TYPE = 1 << 15,
	WIRE_PROP_CONTENT_ENCODING = 1 << 14,
	WIRE_PROP_HEADERS = 1 << 13,
	WIRE_PROP_DELIVERY_MODE = 1 << 12
};

struct wire_out {
	uint8_t *p; /* borrowed */
	size_t room, n;
	bool failed; /* something did not fit */
};

void wire_put(struct wire_out *w, const void *p, size_t n);
void wire_put8(struct wire_out *w, uint8_t v);
void wire_put16(struct wire_out *w, uint16_t v);
void wire_put32(struct wire_out *w, uint32_t v);
void wire_put64(struct wire_out *w, uint64_t v);
void wire_put_short(struct wire_out *w, const char *s); /* short string */
void wire_put_long(struct wire_out *w, const void *p, size_t n);

/* A table stands between begin, which gives the mark, and end. */
size_t wire_table_begin(struct wire_out *w);
void wire_table_end(struct wire_out *w, size_t mark);
void wire_entry_text(struct wire_out *w, const char *key, const char *value);
void wire_entry_number(struct wire_out *w, const char *key, int64_t value);
void wire_entry_bool(struct wire_out *w, const char *key, bool value);

/* The same of frames. */
size_t wire_frame_begin(struct wire_out *w, uint8_t type, uint16_t channel);
size_t wire_method_begin(struct wire_out *w, uint16_t channel, uint32_t method);
void wire_frame_end(struct wire_out *w, size_t mark);

struct wire_in {
	const uint8_t *p; /* borrowed */
	size_t n;         /* left */
	bool failed;
};

uint8_t wire_get8(struct wire_in *r);
uint16_t wire_get16(struct wire_in *r);
uint32_t wire_get32(struct wire_in *r);
uint64_t wire_get64(struct wire_in *r);
struct span wire_get_short(struct wire_in *r);
struct span wire_get_long(struct wire_in *r);

/* A 64-bit number in a table (its entries, without the length). False: it is not there, or the table is broken. */
bool wire_find_number(struct span table, const char *key, int64_t *value);

#endif
