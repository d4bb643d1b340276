/* SPDX-License-Identifier: Apache-2.0
 * The two families of heap memory, and the failures that tests ask for. */
#include "base/mem.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/slab.h"

/* Larger than any address space; volatile, so that the compiler does not see it. */
static volatile size_t too_much = SIZE_MAX / 2 - 100;

START_TEST(x_family_gives_memory)
{
	static const char with_nul[4] = { 'a', '\0', 'b', 'c' };
	char *p = xmalloc(0), *s;

	ck_assert_ptr_nonnull(p);
	p = xrealloc(p, 100);
	memset(p, 7, 100);
	p = xrealloc(p, 0);
	ck_assert_ptr_nonnull(p);
	free(p);

	p = xcalloc(3, 5);
	for (int i = 0; i < 15; i++)
		ck_assert_int_eq(p[i], 0);
	free(p);

	s = xstrdup("hare");
	ck_assert_str_eq(s, "hare");
	free(s);
	s = xstrndup(with_nul, sizeof with_nul);
	ck_assert_mem_eq(s, with_nul, sizeof with_nul);
	ck_assert_int_eq(s[4], '\0');
	free(s);
	s = xstrndup(NULL, 0);
	ck_assert_str_eq(s, "");
	free(s);
	s = xasprintf("%d-%s", 5, "x");
	ck_assert_str_eq(s, "5-x");
	free(s);
}
END_TEST

START_TEST(x_family_aborts)
{
	void *p = NULL;

	switch (_i) {
	case 0: p = xmalloc(too_much); break;
	case 1: p = xcalloc(too_much, 16); break;
	case 2: p = xrealloc(NULL, too_much); break;
	case 3: p = xstrndup("", SIZE_MAX); break;
	default: break;
	}
	/* Not reached. */
	free(p);
}
END_TEST

START_TEST(try_family_returns_null)
{
	uint64_t before = mem_try_failures();
	char *p = try_malloc(8), *q;

	ck_assert_ptr_nonnull(p);
	memcpy(p, "unharmed", 8);
	ck_assert_ptr_null(try_malloc(too_much));
	ck_assert_ptr_null(try_realloc(p, too_much));
	ck_assert_mem_eq(p, "unharmed", 8);
	q = try_realloc(p, 4096);
	ck_assert_ptr_nonnull(q);
	ck_assert_mem_eq(q, "unharmed", 8);
	free(q);
	ck_assert_uint_eq(mem_try_failures(), before + 2);
}
END_TEST

/* One allocation of each kind in turn; true if it succeeded. */
static bool
try_one(int kind)
{
	static const size_t sizes[] = { 100, 20 << 10, 300 << 10 };
	uint32_t home;
	void *p;

	if (kind < 3) {
		p = slab_try_alloc(sizes[kind], &home);
		if (p != NULL)
			slab_free(p, home, sizes[kind]);
		return p != NULL;
	}
	p = kind == 3 ? try_malloc(10) : try_realloc(NULL, 10);
	free(p);
	return p != NULL;
}

START_TEST(failure_is_injected_once)
{
	for (unsigned long n = 1; n <= 10; n++) {
		mem_fail_try(n, 0);
		for (unsigned long i = 1; i <= 12; i++)
			ck_assert_msg(try_one((int)(i % 5)) == (i != n), "n %lu, call %lu", n, i);
	}
}
END_TEST

START_TEST(failure_is_injected_for_ever)
{
	mem_fail_try(3, 1);
	for (int i = 1; i <= 12; i++)
		ck_assert_int_eq(try_one(i % 5), i < 3);
	mem_fail_try(0, 0);
	for (int i = 0; i < 5; i++)
		ck_assert(try_one(i));
}
END_TEST

START_TEST(counts_by_kind)
{
	uint64_t before = mem_total();

	for (int k = 0; k < MEM_KINDS; k++) {
		ck_assert_str_ne(mem_kind_name((enum mem_kind)k), "");
		mem_add((enum mem_kind)k, 100 + (size_t)k);
		ck_assert_uint_ge(mem_held[k], 100 + (uint64_t)k);
	}
	ck_assert_uint_eq(mem_total(), before + 100 * MEM_KINDS + MEM_KINDS * (MEM_KINDS - 1) / 2);
	for (int k = 0; k < MEM_KINDS; k++)
		mem_sub((enum mem_kind)k, 100 + (size_t)k);
	ck_assert_uint_eq(mem_total(), before);
}
END_TEST

START_TEST(trim_only_after_a_fall)
{
	ck_assert(!mem_trim());
	mem_add(MEM_OUTPUT, 100 << 20);
	ck_assert(!mem_trim());
	mem_sub(MEM_OUTPUT, 30 << 20);
	ck_assert(!mem_trim());
	mem_sub(MEM_OUTPUT, 3 << 20);
	ck_assert(mem_trim());
	mem_sub(MEM_OUTPUT, 67 << 20);
	/* Not again within 5 s. */
	ck_assert(!mem_trim());
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mem");
	TCase *t = tcase_create("mem");
	SRunner *r = srunner_create(s);
	int failed;

	mem_init();
	tcase_add_test(t, x_family_gives_memory);
	tcase_add_loop_test_raise_signal(t, x_family_aborts, SIGABRT, 0, 4);
	tcase_add_test(t, try_family_returns_null);
	tcase_add_test(t, failure_is_injected_once);
	tcase_add_test(t, failure_is_injected_for_ever);
	tcase_add_test(t, counts_by_kind);
	tcase_add_test(t, trim_only_after_a_fall);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
