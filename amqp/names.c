/* SPDX-License-Identifier: Apache-2.0
 * Names and argument tables in methods: see the header. */
#include "amqp/names.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/table.h"

const struct error *
name_queue(const struct channel *ch, amqp_bytes_t given, struct span *out)
{
	*out = codec_span(given);
	if (out->n > 0)
		return NULL;
	if (ch->last_queue == NULL)
		return error_make(E_NOT_FOUND, "no previously declared queue");
	*out = span_of(ch->last_queue, ch->last_queue_len);
	return NULL;
}

void
name_declared(struct channel *ch, struct span name)
{
	char *copy = xstrndup((const char *)name.p, name.n);

	free(ch->last_queue);
	ch->last_queue = copy;
	ch->last_queue_len = (uint16_t)name.n;
}

struct span
name_clean(amqp_bytes_t given, uint8_t *buf)
{
	struct span name = codec_span(given);
	size_t n = 0;

	assert(name.n <= 255); /* a short string */
	if (name.n == 0 ||
	    (memchr(name.p, '\n', name.n) == NULL && memchr(name.p, '\r', name.n) == NULL))
		return name;
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] != '\n' && name.p[i] != '\r')
			buf[n++] = name.p[i];
	}
	return span_of(buf, n);
}

const struct error *
name_table(const amqp_table_t *given, struct table **out)
{
	int rc = table_from_amqp(given, out);

	if (rc == -ENOMEM)
		return error_make(E_RESOURCE_ERROR, "no memory for an argument table");
	return rc == 0 ? NULL : error_make(E_SYNTAX_ERROR, "argument table cannot be read");
}

const struct error *
name_not_default(struct span exchange)
{
	if (exchange.n == 0)
		return error_make(
		    E_ACCESS_REFUSED, "operation not permitted on the default exchange");
	return NULL;
}
