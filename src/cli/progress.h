/* SPDX-License-Identifier: Apache-2.0
 * One line on standard error that tells how far a long piece of work is, where that is a terminal; taken away at the end, and
 * before anything else is said there. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct progress {
	bool is_shown_at_all; /* there is a terminal */
	uint64_t shown_us;    /* 0: nothing is shown now */
};

/* wanted false: nothing is ever shown. */
void progress_init(struct progress *p, bool wanted);
/* In place of what was shown, at most five times a second; cut at the edge of the terminal. */
void progress_show(struct progress *p, const char *fmt, ...) PRINTF(2, 3);
void progress_clear(struct progress *p); /* before output, and at the end */
/* Whatever line stands there goes; what it tells of shows it again. cli_fail() and its like do it by themselves. */
void progress_make_way(void);

#endif
