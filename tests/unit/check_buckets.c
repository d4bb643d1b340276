/* SPDX-License-Identifier: Apache-2.0
 * The hash that grows by one bucket at a time, against a list of what is in it. */
#include "base/buckets.h"

#include <check.h>
#include <stdlib.h>

#include "base/attr.h"
#include "tests/sim/rnd.h"

enum { THINGS = 20000, STEPS = 200000, HASHES = 5000, CHAIN = 24 };

struct thing {
	struct bucket_node node; /* first */
	bool is_in;
};

static struct thing thing[THINGS];

static uint64_t
hash_of(uint32_t i)
{
	/* Several things of the same hash; most of them far apart in their upper bits, too. */
	return (i % HASHES) * 0x9E3779B97F4A7C15ull;
}

static bool
is_found(const struct buckets *b, const struct thing *t, uint64_t hash)
{
	struct bucket_node *n;

	for (n = buckets_first(b, hash); n != NULL; n = buckets_next(n)) {
		if (n->hash != hash)
			ck_abort_msg("one of another hash");
		if (n == &t->node)
			return true;
	}
	return false;
}

static void
check_all(const struct buckets *b, size_t count)
{
	if (b->count != count)
		ck_abort_msg("%zu are in it, not %zu", b->count, count);
	for (uint32_t i = 0; i < THINGS; i++) {
		if (is_found(b, &thing[i], hash_of(i)) != thing[i].is_in)
			ck_abort_msg("thing %u is %s", i, thing[i].is_in ? "not found" : "found");
	}
}

START_TEST(what_is_in_it_is_found)
{
	struct buckets b = { 0 };
	struct rnd r = rnd_of((uint64_t)_i);
	size_t count = 0;

	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t i = (uint32_t)rnd(&r, THINGS);

		/* More come than go, and later more go. */
		if (rnd(&r, 4) == 0 ? step < STEPS / 2 : step >= STEPS / 2) {
			if (thing[i].is_in) {
				buckets_remove(&b, &thing[i].node);
				count--;
			}
			thing[i].is_in = false;
		} else if (!thing[i].is_in) {
			buckets_add(&b, &thing[i].node, hash_of(i));
			thing[i].is_in = true;
			count++;
		}
		if (step % (STEPS / 20) == 0)
			check_all(&b, count);
	}
	for (uint32_t i = 0; i < THINGS; i++) {
		if (thing[i].is_in)
			buckets_remove(&b, &thing[i].node);
	}
	/* Nothing is left to free. */
	ck_assert(b.part == NULL && b.count == 0);
}
END_TEST

START_TEST(the_newest_of_a_hash_is_first)
{
	struct buckets b = { 0 };
	struct bucket_node n[3];

	for (int i = 0; i < 3; i++)
		buckets_add(&b, &n[i], 7);
	ck_assert_ptr_eq(buckets_first(&b, 7), &n[2]);
	ck_assert_ptr_eq(buckets_next(&n[2]), &n[1]);
	buckets_remove(&b, &n[1]);
	ck_assert_ptr_eq(buckets_next(&n[2]), &n[0]);
	ck_assert_ptr_null(buckets_next(&n[0]));
	buckets_remove(&b, &n[2]);
	buckets_remove(&b, &n[0]);
	ck_assert_ptr_null(buckets_first(&b, 7));
}
END_TEST

/* No bucket holds many, at any number of them, and each addition makes one bucket at most. */
START_TEST(it_grows_with_each)
{
	static struct bucket_node n[100000];
	struct buckets b = { 0 };

	for (uint32_t i = 0; i < COUNT_OF(n); i++) {
		size_t before = b.low + b.split, length = 0;

		buckets_add(&b, &n[i], i * 0x9E3779B97F4A7C15ull);
		if (i > 0 && b.low + b.split > before + 1)
			ck_abort_msg("grew from %zu to %zu buckets", before, b.low + b.split);
		for (const struct bucket_node *k = *buckets_slot(&b, n[i].hash); k != NULL;
		     k = k->next)
			length++;
		if (length > CHAIN)
			ck_abort_msg("%zu in a bucket of %zu", length, b.low + b.split);
	}
	ck_assert_uint_eq(b.low + b.split, COUNT_OF(n));
	for (uint32_t i = 0; i < COUNT_OF(n); i++)
		buckets_remove(&b, &n[i]);
	ck_assert_ptr_null(b.part);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("buckets");
	TCase *t = tcase_create("buckets");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, what_is_in_it_is_found, 0, 3);
	tcase_add_test(t, the_newest_of_a_hash_is_first);
	tcase_add_test(t, it_grows_with_each);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
