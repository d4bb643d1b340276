/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

enum { EVERY_US = 200000, TEXT_MAX = 512 };

static bool stands; /* some line, on the one terminal that there is */

void
progress_init(struct progress *p, bool wanted)
{
	*p = (struct progress){ .is_shown_at_all = wanted && isatty(STDERR_FILENO) == 1 };
}

/* One that wrapped could not be taken away. */
static size_t
columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col - 1 : TEXT_MAX;
}

void
progress_show(struct progress *p, const char *fmt, ...)
{
	uint64_t now_us = clock_mono_us();
	char text[TEXT_MAX];
	va_list ap;

	if (!p->is_shown_at_all || now_us - p->shown_us < EVERY_US)
		return;
	p->shown_us = now_us;
	stands = true;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\r%.*s\x1b[K", (int)utf8_cut(text, strlen(text), columns()), text);
}

void
progress_clear(struct progress *p)
{
	if (p->shown_us != 0)
		progress_make_way();
	p->shown_us = 0;
}

void
progress_make_way(void)
{
	if (stands)
		fprintf(stderr, "\r\x1b[K");
	stands = false;
}
