/* SPDX-License-Identifier: Apache-2.0
 * What a JSON text would be once it is parsed, found out in one pass without parsing it: two bytes of text become up to a
 * hundred of memory. */
#ifndef MGMT_JSON_SCAN_H
#define MGMT_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct json_scan {
	unsigned depth;	 /* of arrays and objects; a bracket inside a string is none */
	uint64_t values; /* and names of members */
	uint64_t memory; /* bytes that jansson takes for them, at most */
};

/* Of any text; of what is no JSON the figures say nothing, but the parser stops where it stops being JSON, and what it has
 * made until then is within them. */
void json_scan(struct span text, struct json_scan *out);

#endif
