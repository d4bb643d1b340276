/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/letters.h"

#include <inttypes.h>
#include <stdio.h>

const char *
letter_id_text(uint64_t seq, uint8_t priority, char out[LETTER_ID_SIZE])
{
	if (priority == 0)
		(void)snprintf(out, LETTER_ID_SIZE, "%" PRIu64, seq);
	else
		(void)snprintf(out, LETTER_ID_SIZE, "%" PRIu64 ".%u", seq, priority);
	return out;
}

/* Digits from *at on, up to `most`. */
static bool
read_number(struct span s, size_t *at, uint64_t most, uint64_t *out)
{
	size_t from = *at;

	for (*out = 0; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9'; ++*at) {
		*out = *out * 10 + (uint64_t)(s.p[*at] - '0');
		if (*out > most)
			return false;
	}
	return *at > from;
}

bool
letter_id_parse(struct span text, struct letter_id *out)
{
	uint64_t priority = 0;
	size_t at = 0;

	if (!read_number(text, &at, UINT64_MAX >> 8, &out->seq))
		return false;
	if (at < text.n && text.p[at] == '.') {
		at++;
		if (!read_number(text, &at, UINT8_MAX, &priority))
			return false;
	}
	out->priority = (uint8_t)priority;
	return at == text.n;
}
