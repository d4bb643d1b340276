/* SPDX-License-Identifier: Apache-2.0
 * Headers of the PROXY protocol of any bytes: what is whole is so wherever the bytes were cut, and addresses come out as
 * text that is an address. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/net_range.h"
#include "net/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *why = NULL;
	struct proxy_header h, cut;
	struct net_range r;
	uint8_t *piece;
	enum proxy_result result = proxy_parse(data, n, &h, &why);

	if (n > PROXY_HEADER_MAX) {
		assert(result != PROXY_MORE);
		return 0;
	}
	if (result == PROXY_BAD)
		assert(why != NULL && why[0] != '\0');
	if (result != PROXY_DONE)
		return 0;
	assert(h.used > 0 && h.used <= n && h.used <= PROXY_HEADER_MAX);
	if (h.has_addresses)
		assert(net_range_parse(h.peer.host, &r) && net_range_parse(h.local.host, &r));
	for (size_t len = 0; len < h.used; len++) {
		piece = malloc(len + 1); /* so that reading behind it is seen */
		memcpy(piece, data, len);
		assert(proxy_parse(piece, len, &cut, &why) == PROXY_MORE);
		free(piece);
	}
	return 0;
}
