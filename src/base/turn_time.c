/* SPDX-License-Identifier: Apache-2.0 */
#include "base/turn_time.h"

static void
move_on(struct turn_time *t, uint64_t mono_us)
{
	uint64_t spans = (mono_us - t->span_us) / TURN_TIME_SPAN_US;

	if (spans == 0)
		return;
	t->before_us = spans == 1 ? t->now_us : 0;
	t->now_us = 0;
	t->span_us += spans * TURN_TIME_SPAN_US;
}

void
turn_time_note(struct turn_time *t, uint64_t mono_us, uint64_t cpu_us)
{
	uint64_t took = cpu_us - t->cpu_us;
	bool is_first = t->mono_us == 0; /* all that the start took */

	t->mono_us = mono_us;
	t->cpu_us = cpu_us;
	if (is_first) {
		t->span_us = mono_us;
		return;
	}
	move_on(t, mono_us);
	histogram_add(&t->turns, histogram_us, took, 1);
	if (took > t->max_us)
		t->max_us = took;
	if (took > t->latest_us)
		t->latest_us = took;
	if (took > t->now_us)
		t->now_us = took;
}

uint64_t
turn_time_lately(const struct turn_time *t, uint64_t mono_us)
{
	struct turn_time now = *t;

	move_on(&now, mono_us);
	return now.now_us > now.before_us ? now.now_us : now.before_us;
}
