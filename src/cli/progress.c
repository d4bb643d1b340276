/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { EVERY_US = 200000 };

void
progress_init(struct progress *p, bool wanted)
{
	*p = (struct progress){ .is_shown_at_all = wanted && isatty(STDERR_FILENO) == 1 };
}

void
progress_show(struct progress *p, const char *fmt, ...)
{
	uint64_t now_us = clock_mono_us();
	va_list ap;

	if (!p->is_shown_at_all || now_us - p->shown_us < EVERY_US)
		return;
	p->shown_us = now_us;
	fprintf(stderr, "\r");
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\x1b[K");
	(void)fflush(stderr);
}

void
progress_clear(struct progress *p)
{
	if (p->shown_us != 0)
		fprintf(stderr, "\r\x1b[K");
	p->shown_us = 0;
}
