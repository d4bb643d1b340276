/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions that users write: in permissions, policies, and filters of lists. PCRE2, matched byte by byte and
 * anywhere unless anchored, as RabbitMQ does, with bounds on what one match may cost. Core thread only.
 *
 * What a match costs is counted in steps: items of the pattern that were tried, in all places of the subject together.
 * PCRE2's own limit begins anew at each place, so that one match on a name of 255 bytes could take 255 times as long. A
 * step is 15 to 45 ns on a machine of 2020; most matches take none or a few. */
#ifndef BROKER_PATTERN_H
#define BROKER_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

enum {
	PATTERN_LEN_MAX = 4096,
	PATTERN_STEPS_MAX = 10000,	/* of a match: some hundred microseconds */
	PATTERN_STEPS_WORK = 32		/* so many are a unit of broker->work */
};

struct pattern;

/* A text and its length without NUL in it. NULL: it is no regular expression, or too long; `why` says so ("missing
 * terminating ] for character class at byte 1"). ".*" is not even run. */
struct pattern *pattern_new(struct span text, char *why, size_t n) MUSTUSE;
void pattern_free(struct pattern **pp);
size_t pattern_size(const struct pattern *p);	/* bytes; NULL: 0 */

enum pattern_result { PATTERN_NO, PATTERN_YES, PATTERN_TOO_LONG };

/* PATTERN_TOO_LONG: it was not known after `most` steps; the caller decides what that means, and says so. *took: the steps
 * that there were, which the caller counts as work. */
enum pattern_result pattern_match(const struct pattern *p, struct span subject, uint32_t most, uint32_t *took) MUSTUSE;

#endif
