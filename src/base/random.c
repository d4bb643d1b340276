/* SPDX-License-Identifier: Apache-2.0
 * Random bytes: see the header. */
#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base64.h"
#include "base/log.h"

enum { RANDOM_NAME_BYTES = 16 };
_Static_assert(BASE64URL_SIZE(RANDOM_NAME_BYTES) == RANDOM_NAME_SIZE, "of its name");

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
	uint8_t raw[RANDOM_NAME_BYTES];

	random_bytes(raw, sizeof raw);
	base64url_encode(raw, sizeof raw, out);
}
