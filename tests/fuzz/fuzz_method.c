/* SPDX-License-Identifier: Apache-2.0
 * Arguments of any bytes against every row of methods.def. What method_check() lets pass the codec decodes, and encodes
 * to as many bytes again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/codec.h"
#include "amqp/method.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The lengths only: unused bits and booleans other than 0 and 1 are not kept. Encoding reads all that was decoded. */
static void
encode(uint32_t id, void *decoded, struct span raw)
{
	uint8_t *out = malloc(raw.n + 1);
	amqp_bytes_t room = { raw.n, out };

	assert(amqp_encode_method(id, decoded, room) == (int)raw.n);
	free(out);
}

static void
decode(const struct method *m, struct span raw)
{
	uint32_t id = (uint32_t)m->class_id << 16 | m->method_id;
	void *decoded;

	(void)method_texts_valid(m, raw);
	/* rabbitmq-c has no struct for it; its handler reads the arguments as they came */
	if (m == &methods[METHOD_CONNECTION_UPDATE_SECRET])
		return;
	decoded = codec_decode(id, raw);
	assert(decoded != NULL);
	encode(id, decoded, raw);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n > 64 << 10)
		return 0;
	codec_init();
	for (int i = 0; i < METHOD_COUNT; i++)
		if (method_check(&methods[i], span_of(p, n)))
			decode(&methods[i], span_of(p, n));
	codec_fini();
	return 0;
}
