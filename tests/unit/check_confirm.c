/* SPDX-License-Identifier: Apache-2.0
 * Confirms, against a naive model: one outcome per tag, `multiple` covers no tag that is open, nacked or confirmed
 * already, and what can be said is said. */
#include <check.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "broker/confirm.h"

enum { TAGS = 5000 };
enum outcome { NONE, ACKED, NACKED };

static struct confirms c;
static enum outcome is[TAGS + 2], said[TAGS + 2];
static uint64_t last, low_said;
static uint32_t state;

static uint32_t
rnd(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static void
set_up(void)
{
	confirms_init(&c, 1000);
	for (int i = 0; i < TAGS + 2; i++)
		is[i] = said[i] = NONE;
	last = 0;
	low_said = 1;
}

static void
tear_down(void)
{
	confirms_fini(&c);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}

static void
say(const struct confirm_out *out)
{
	uint64_t from = out->multiple ? low_said : out->tag, covered = 0;

	ck_assert(out->tag >= 1 && out->tag <= last);
	for (uint64_t t = from; t <= out->tag; t++) {
		if (said[t] != NONE && out->multiple && t < out->tag)
			ck_abort_msg("multiple %lu covers %lu again", out->tag, t);
		if (said[t] != NONE || is[t] != (out->ack ? ACKED : NACKED))
			ck_abort_msg(
			    "%lu: said %d before, is %d, ack %d", t, said[t], is[t], out->ack);
		said[t] = is[t];
		covered++;
	}
	ck_assert_uint_eq(out->count, covered);
	while (low_said <= last && said[low_said] != NONE)
		low_said++;
}

static void
take_all(void)
{
	struct confirm_out out;

	while (confirm_take(&c, &out))
		say(&out);
	for (uint64_t t = low_said; t <= last; t++) {
		if (said[t] != is[t])
			ck_abort_msg("%lu has an outcome and was not said", t);
	}
}

START_TEST(random_outcomes)
{
	uint32_t settled_of_10 = (uint32_t)_i % 11, nacks_of_10 = (uint32_t)_i / 11;
	uint64_t open[1000], n_open = 0;

	state = 77777 + (uint32_t)_i;
	while (last < TAGS || n_open > 0) {
		if (last < TAGS && (n_open == 0 || rnd(2) == 0)) {
			bool settled = rnd(10) < settled_of_10;
			uint64_t tag = confirm_open(&c, settled);

			if (tag != 0) {
				ck_assert_uint_eq(tag, ++last);
				if (settled)
					is[tag] = ACKED;
				else
					open[n_open++] = tag;
			} else {
				ck_assert_uint_gt(n_open, 0);
			}
		}
		if (n_open > 0 && (rnd(2) == 0 || last == TAGS)) {
			uint64_t i = rnd(4) == 0 ? rnd((uint32_t)n_open) : 0, tag = open[i];
			bool ack = rnd(10) >= nacks_of_10;

			for (n_open--; i < n_open; i++)
				open[i] = open[i + 1];
			confirm_settle(&c, tag, ack);
			is[tag] = ack ? ACKED : NACKED;
		}
		if (rnd(30) == 0)
			take_all();
	}
	take_all();
	ck_assert(!confirm_pending(&c));
	ck_assert_uint_eq(c.open, 0);
	ck_assert_uint_eq(low_said, TAGS + 1);
}
END_TEST

START_TEST(nothing_is_kept_while_all_settle_at_once)
{
	struct confirm_out out;

	for (uint64_t i = 1; i <= 5000000; i++) {
		if (confirm_open(&c, true) != i)
			ck_abort();
	}
	ck_assert_ptr_null(c.state);
	ck_assert(confirm_take(&c, &out));
	ck_assert_uint_eq(out.tag, 5000000);
	ck_assert_uint_eq(out.count, 5000000);
	ck_assert(out.ack && out.multiple);
	ck_assert(!confirm_take(&c, &out));
	ck_assert_uint_eq(confirm_open(&c, true), 5000001);
	ck_assert(confirm_take(&c, &out));
	ck_assert(out.ack && !out.multiple);
}
END_TEST

/* K1 */
START_TEST(refused_in_the_middle)
{
	static const struct {
		uint64_t tag;
		bool ack;
	} expected[] = { { 1, true }, { 2, false }, { 3, true } };
	struct confirm_out out;

	for (uint64_t i = 1; i <= 3; i++)
		ck_assert_uint_eq(confirm_open(&c, false), i);
	confirm_settle(&c, 3, true);
	confirm_settle(&c, 2, false);
	confirm_settle(&c, 1, true);
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		ck_assert(confirm_take(&c, &out));
		ck_assert_uint_eq(out.tag, expected[i].tag);
		ck_assert_int_eq(out.ack, expected[i].ack);
		ck_assert(!out.multiple);
	}
	ck_assert(!confirm_take(&c, &out));
}
END_TEST

START_TEST(window_is_bounded)
{
	struct confirm_out out;
	uint64_t n = 0;

	ck_assert_uint_eq(confirm_open(&c, true), 1);
	ck_assert_uint_eq(confirm_open(&c, false), 2);
	while (confirm_open(&c, true) != 0)
		n++;
	ck_assert_uint_eq(n, 999);
	ck_assert_uint_eq(confirm_open(&c, false), 0);
	ck_assert_uint_le(mem_held[MEM_ENTRIES], 1024);
	for (n = 0; confirm_take(&c, &out); n++)
		ck_assert(!out.multiple); /* 1, then those behind the open one */
	ck_assert_uint_eq(n, 1000);
	confirm_settle(&c, 2, true);
	ck_assert(confirm_take(&c, &out));
	ck_assert_uint_eq(out.tag, 2);
	ck_assert(!out.multiple);
	ck_assert(!confirm_take(&c, &out));
	ck_assert_uint_ne(confirm_open(&c, false), 0);
}
END_TEST

/* Ranges say the same as their tags one by one would. */
START_TEST(ranges)
{
	uint64_t from[64] = { 0 }, to[64] = { 0 };
	unsigned n = 0;

	state = 4711 + (uint32_t)_i;
	while (last < TAGS || n > 0) {
		if (last < TAGS && n < COUNT_OF(from) && rnd(2) == 0) {
			from[n] = last + 1;
			for (uint32_t k = 1 + rnd(40); k > 0 && last < TAGS; k--)
				if (confirm_open(&c, false) != 0)
					last++;
			to[n] = last;
			if (to[n] >= from[n])
				n++;
		}
		if (n > 0 && (last == TAGS || rnd(2) == 0)) {
			unsigned i = rnd(3) == 0 ? rnd(n) : 0;
			bool ack = rnd(4) != 0;

			confirm_settle_range(&c, from[i], to[i], ack);
			for (uint64_t t = from[i]; t <= to[i]; t++)
				is[t] = ack ? ACKED : NACKED;
			for (n--; i < n; i++) {
				from[i] = from[i + 1];
				to[i] = to[i + 1];
			}
		}
		if (rnd(5) == 0)
			take_all();
	}
	take_all();
	ck_assert_uint_eq(c.open, 0);
	ck_assert_uint_eq(low_said, TAGS + 1);
}
END_TEST

/* What one sync has covered is one frame. */
START_TEST(a_range_is_one_frame)
{
	struct confirm_out out;

	for (uint64_t i = 1; i <= 500; i++)
		ck_assert_uint_eq(confirm_open(&c, false), i);
	confirm_settle_range(&c, 1, 400, true);
	ck_assert(confirm_take(&c, &out));
	ck_assert(out.ack && out.multiple);
	ck_assert_uint_eq(out.tag, 400);
	ck_assert_uint_eq(out.count, 400);
	ck_assert(!confirm_take(&c, &out));
	confirm_settle_range(&c, 401, 500, true);
	ck_assert(confirm_take(&c, &out));
	ck_assert_uint_eq(out.tag, 500);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("confirm");
	TCase *t = tcase_create("confirm");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, random_outcomes, 0, 44);
	tcase_add_test(t, nothing_is_kept_while_all_settle_at_once);
	tcase_add_test(t, refused_in_the_middle);
	tcase_add_test(t, window_is_bounded);
	tcase_add_loop_test(t, ranges, 0, 20);
	tcase_add_test(t, a_range_is_one_frame);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
