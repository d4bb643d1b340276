/* SPDX-License-Identifier: Apache-2.0
 * The JSON body of a request. */
#ifndef MGMT_BODY_H
#define MGMT_BODY_H

#include "base/bytes.h"
#include "mgmt/request.h"

/* Reads the body into r->body and calls `then`, at once or, for a long one, when a worker has parsed it. An empty body is
 * {}. What is no JSON object is answered with 400 not_json. */
void body_read(struct request *r, void (*then)(struct request *r));

/* The same for a part of the body. */
void body_read_text(struct request *r, struct span text, void (*then)(struct request *r));

/* Parses; NULL: *why (static text) says what is wrong. At most REQUEST_DEPTH_MAX deep. On any thread. */
json_t *body_parse(struct span text, const char **why);

#endif
