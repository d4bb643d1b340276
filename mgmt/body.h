/* SPDX-License-Identifier: Apache-2.0
 * The JSON body of a request. */
#ifndef MGMT_BODY_H
#define MGMT_BODY_H

#include "base/bytes.h"
#include "mgmt/request.h"

enum {
	BODY_SHORT_MAX = 1 << 20, /* of what is no import and no message */
	BODY_PARSE_HERE = 64 << 10, /* a longer one is parsed by a worker, */
	BODY_MEMORY_HERE = 1 << 20  /* or one that becomes more than that */
};

/* Reads a body of at most `max` bytes into r->body and calls `then`, at once or, for a long one, when a worker has parsed
 * it; the bytes are gone then. An empty body is {}. With Content-Encoding: gzip a worker unpacks it, and `max` holds for what
 * comes out as well; another coding is answered with 415. What is longer, or would take up more memory than
 * limits.http_values allows, is answered with 413, or with 503 if it is for other bodies that it has no room; what is no JSON
 * object with 400 not_json. */
void body_read(struct request *r, size_t max, void (*then)(struct request *r));

/* The same for a body that may be a form (multipart/form-data): then its field of this name (static text). */
void body_read_field(struct request *r, size_t max, const char *field, void (*then)(struct request *r));

/* Parses; NULL: *why (static text) says what is wrong. At most REQUEST_DEPTH_MAX deep. On any thread. */
json_t *body_parse(struct span text, const char **why);

/* Whoever takes r->body takes r->body_memory with it, and ends both here: a worker frees what is large. */
void body_free(struct mgmt *m, json_t **body, uint64_t *memory);
/* What is held of all bodies that a worker parsed: bytes, at most. */
uint64_t body_memory_held(void);

#endif
