/* SPDX-License-Identifier: Apache-2.0
 * Compression of answers (RFC 1952), the only content coding there is. */
#ifndef MGMT_GZIP_H
#define MGMT_GZIP_H

#include <stdbool.h>

struct evbuffer;

/* Does this Accept-Encoding (NULL: none) take gzip? (RFC 9110, 12.5.3) */
bool gzip_accepted(const char *header);

/* Appends `in`, compressed, to `out`; `in` is as before. On any thread. */
void gzip_buffer(struct evbuffer *in, struct evbuffer *out);

#endif
