/* SPDX-License-Identifier: Apache-2.0
 * Random bytes: see the header. */
#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"

void
random_bytes(void *p, size_t n)
{
	uint8_t *at = p;

	while (n > 0) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0) {
			if (errno == EINTR)
				continue;
			log_error("no random bytes from the kernel: %s", strerror(errno));
			log_flush();
			abort();
		}
		at += got;
		n -= (size_t)got;
	}
}

void
random_name(char out[RANDOM_NAME_SIZE])
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint8_t raw[16];
	uint32_t bits = 0, n_bits = 0;
	size_t n = 0;

	random_bytes(raw, sizeof raw);
	for (size_t i = 0; i < sizeof raw; i++) {
		bits = bits << 8 | raw[i];
		for (n_bits += 8; n_bits >= 6; n_bits -= 6)
			out[n++] = digits[bits >> (n_bits - 6) & 63];
	}
	out[n++] = digits[bits << (6 - n_bits) & 63];
	out[n] = '\0';
}
