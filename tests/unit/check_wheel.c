/* SPDX-License-Identifier: Apache-2.0
 * The timer wheel against a model that looks at every node. */
#include "base/wheel.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 300 };

/* What a callback does beside being counted. */
enum reaction { NOTHING, AGAIN_NOW, AGAIN_LATER, STOP_ANOTHER, ARM_ANOTHER, AGAIN_PAST, REACTIONS };

struct timer {
	struct wheel_node node;
	bool armed;   /* by the model */
	uint64_t due; /* by the model: not before the last run when it was armed */
	bool late;    /* it was due when it was armed: no order is promised */
	uint64_t armed_in_run;
	enum reaction reaction;
};

static struct wheel *w;
static struct timer timers[NODES];
static uint64_t seed, run_number, run_ms, last_due;
static bool in_run;

/* ck_assert writes to a file at each call, which would take minutes here. */
#define REQUIRE(ok, ...)                           \
	do {                                       \
		if (!(ok))                         \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Mostly near, sometimes absurdly far. */
static uint64_t
random_span(void)
{
	return next_random() >>
	       (next_random() % 4 == 0 ? next_random() % 64 : 50 + next_random() % 14);
}

static uint64_t
later_than(uint64_t t, uint64_t span)
{
	return t + span < t ? UINT64_MAX : t + span;
}

static void
arm(struct timer *t, uint64_t due)
{
	wheel_arm(w, &t->node, due);
	REQUIRE(wheel_armed(&t->node), "not armed");
	t->armed = true;
	t->late = due <= run_ms;
	t->due = t->late ? run_ms : due;
	t->armed_in_run = in_run ? run_number : 0;
}

static void
disarm(struct timer *t)
{
	wheel_disarm(w, &t->node);
	REQUIRE(!wheel_armed(&t->node), "still armed");
	t->armed = false;
}

static void
on_fire(struct wheel_node *n, uint64_t now_ms)
{
	struct timer *t = (struct timer *)(void *)n, *other = &timers[next_random() % NODES];

	REQUIRE(now_ms == run_ms, "another time");
	REQUIRE(!wheel_armed(n), "armed while it fires");
	REQUIRE(t->armed, "fired though not armed");
	REQUIRE(t->due <= now_ms, "fired early");
	REQUIRE(t->late || t->due >= last_due, "fired after one that was due later");
	REQUIRE(t->armed_in_run != run_number, "armed by this run for its own time, and fired");
	if (!t->late)
		last_due = t->due;
	t->armed = false;
	switch (t->reaction) {
	case AGAIN_NOW: arm(t, next_random() % 2 ? now_ms : next_random() % (now_ms + 1)); break;
	case AGAIN_PAST: arm(t, 0); break;
	case AGAIN_LATER: arm(t, later_than(now_ms, random_span())); break;
	case STOP_ANOTHER: disarm(other); break;
	case ARM_ANOTHER: arm(other, later_than(now_ms, random_span() % 100)); break;
	default: break;
	}
}

/* The earliest due time in the model, UINT64_MAX if nothing is armed. */
static uint64_t
model_first(bool *any)
{
	uint64_t first = UINT64_MAX;

	*any = false;
	for (int i = 0; i < NODES; i++) {
		REQUIRE(timers[i].armed == wheel_armed(&timers[i].node), "armed or not?");
		if (!timers[i].armed)
			continue;
		*any = true;
		if (timers[i].due < first)
			first = timers[i].due;
	}
	return first;
}

static void
check_wait(uint64_t now)
{
	bool any;
	uint64_t first = model_first(&any);
	int64_t wait = wheel_wait(w, now);

	if (!any) {
		REQUIRE(wait == -1, "nothing armed, wait %lld", (long long)wait);
		return;
	}
	REQUIRE(wait >= 0, "armed, and wait %lld", (long long)wait);
	REQUIRE((uint64_t)wait <= (first > now ? first - now : 0), "late: wait %lld, first in %llu",
	    (long long)wait, (unsigned long long)(first > now ? first - now : 0));
}

static void
run(uint64_t now, unsigned max)
{
	unsigned fired;

	run_ms = now;
	run_number++;
	last_due = 0;
	in_run = true;
	fired = wheel_run(w, now, max);
	in_run = false;
	REQUIRE(fired <= max, "fired %u of at most %u", fired, max);
	if (fired == max)
		return;
	for (int i = 0; i < NODES; i++)
		REQUIRE(
		    !timers[i].armed || timers[i].due > now || timers[i].armed_in_run == run_number,
		    "due, and not fired");
}

static void
world(uint64_t start)
{
	w = wheel_new(start);
	memset(timers, 0, sizeof timers);
	for (int i = 0; i < NODES; i++)
		timers[i].node.fire = on_fire;
	run_ms = start;
	run_number = 1;
	ck_assert_int_eq(wheel_wait(w, start), -1);
}

START_TEST(against_the_model)
{
	static const uint64_t starts[] = { 0, 1, 1764459600123, UINT64_MAX / 2 - 5,
		UINT64_MAX - ((uint64_t)1 << 50) };
	uint64_t now = starts[_i % 5];

	seed = 0x9e3779b97f4a7c15u + (uint64_t)_i * 7919;
	world(now);
	for (int step = 0; step < 4000; step++) {
		for (uint64_t ops = next_random() % 6; ops > 0; ops--) {
			struct timer *t = &timers[next_random() % NODES];

			t->reaction = (enum reaction)(next_random() % REACTIONS);
			if (next_random() % 3 == 0)
				disarm(t);
			else if (next_random() % 10 == 0)
				arm(t, next_random() % (now + 1));
			else
				arm(t, later_than(now, random_span()));
		}
		check_wait(now);
		if (next_random() % 3 == 0 && wheel_wait(w, now) > 0)
			now = later_than(now, (uint64_t)wheel_wait(w, now));
		else
			now = later_than(now, next_random() >> (64 - 1 - next_random() % 20));
		if (next_random() % 200 == 0)
			now = later_than(now, next_random() >> (20 + next_random() % 40));
		run(now, next_random() % 4 == 0 ? (unsigned)(next_random() % 10) : 100000);
		check_wait(now);
	}
	wheel_free(&w);
	ck_assert_ptr_null(w);
}
END_TEST

/* Every distance up to a few digits fires in its millisecond, when the wheel is run at each of
 * wheel_wait's. */
START_TEST(exact_to_the_millisecond)
{
	for (uint64_t span = 1; span < 70000; span = span < 300 ? span + 1 : span + span / 3) {
		uint64_t now = 1764459600000 + span * 37, due = now + span;
		unsigned wakes = 0;

		world(now);
		arm(&timers[0], due);
		while (timers[0].armed) {
			int64_t wait = wheel_wait(w, now);

			ck_assert_int_gt(wait, 0);
			now += (uint64_t)wait;
			ck_assert_uint_le(now, due);
			run(now, 10);
			wakes++;
		}
		ck_assert_uint_eq(now, due);
		ck_assert_uint_le(wakes, 4);
		wheel_free(&w);
	}
}
END_TEST

/* Those who always come again for the same moment do not keep others from their turn. */
START_TEST(nobody_starves)
{
	uint64_t now = 1000;

	seed = 5;
	world(now);
	for (int i = 0; i < 100; i++) {
		timers[i].reaction = AGAIN_PAST;
		arm(&timers[i], now);
	}
	arm(&timers[200], now + 3);
	for (int i = 0; i < 60 && timers[200].armed; i++) {
		now++;
		run_ms = now;
		in_run = true;
		last_due = 0;
		for (int k = 0; k < NODES; k++)
			timers[k].armed_in_run = 0;
		run_number++;
		ck_assert_uint_eq(wheel_run(w, now, 10), 10);
		in_run = false;
	}
	ck_assert(!timers[200].armed);
	wheel_free(&w);
}
END_TEST

/* More nodes in one far slot than a run spreads: all fire in the end, and until then there is no
 * wait. */
static unsigned many_fired;

static void
count_fire(struct wheel_node *n, uint64_t now_ms)
{
	(void)n;
	(void)now_ms;
	many_fired++;
}

START_TEST(many_in_one_slot)
{
	enum { MANY = 50000 };
	struct wheel_node *nodes = calloc(MANY, sizeof *nodes);
	uint64_t now = 0;
	unsigned runs = 0;

	ck_assert_ptr_nonnull(nodes);
	w = wheel_new(0);
	many_fired = 0;
	for (int i = 0; i < MANY; i++) {
		nodes[i].fire = count_fire;
		wheel_arm(w, &nodes[i], 300000 + (uint64_t)i % 7);
	}
	now = 300010;
	while (many_fired < MANY) {
		ck_assert_int_eq(wheel_wait(w, now), 0);
		(void)wheel_run(w, now, MANY);
		ck_assert_uint_lt(++runs, 20);
	}
	ck_assert_uint_gt(runs, 1);
	ck_assert_int_eq(wheel_wait(w, now), -1);
	wheel_free(&w);
	free(nodes);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wheel");
	TCase *t = tcase_create("wheel");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, against_the_model, 0, 25);
	tcase_add_test(t, exact_to_the_millisecond);
	tcase_add_test(t, nobody_starves);
	tcase_add_test(t, many_in_one_slot);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
