/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;

static void
on_signal(int n)
{
	(void)n;
	asked = 1;
}

void
bench_stop_watch(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

bool
bench_stop_asked(void)
{
	return asked != 0;
}
