/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "net/tls_names.h"

static const struct {
	const char *name, *host;
	unsigned fits;
} pairs[] = {
	{ "a.org", "a.org", 2 },
	{ "a.org", "b.org", 0 },
	{ "a.org", "x.a.org", 0 },
	{ "*.a.org", "x.a.org", 1 },
	{ "*.a.org", "*.a.org", 2 },
	{ "*.a.org", "a.org", 0 },
	{ "*.a.org", ".a.org", 0 },
	{ "*.a.org", "x.y.a.org", 0 }, /* one label, no more */
	{ "*.a.org", "xa.org", 0 },
	{ "*.org", "a.org", 0 }, /* not a whole domain of domains */
	{ "x*.a.org", "xy.a.org", 0 },
	{ "*", "a", 0 },
	{ "*.", "a.", 0 },
};

START_TEST(names_fit)
{
	ck_assert_uint_eq(tls_name_fits(pairs[_i].name, pairs[_i].host), pairs[_i].fits);
}
END_TEST

static void
add(struct tls_names *t, const char *name)
{
	tls_names_add(t, name, (uint32_t)strlen(name));
}

START_TEST(the_best_is_chosen)
{
	struct tls_names t[4] = { { 0 } };
	const struct tls_names *all[] = { &t[0], &t[1], &t[2], &t[3] };
	char host[600];

	add(&t[0], "first.org");
	add(&t[1], "*.Example.ORG");
	add(&t[2], "x.example.org.");
	add(&t[2], "*.example.org");
	/* t[3] has no name */
	ck_assert_uint_eq(
	    tls_names_choose(all, 4, "x.example.org"), 2); /* the same comes before a wildcard */
	ck_assert_uint_eq(tls_names_choose(all, 4, "Y.EXAMPLE.org"), 1); /* and of two the first */
	ck_assert_uint_eq(tls_names_choose(all, 4, "y.example.org."), 1);
	ck_assert_uint_eq(tls_names_choose(all, 4, "example.org"), 0);
	ck_assert_uint_eq(tls_names_choose(all, 4, "first.org"), 0);
	ck_assert_uint_eq(tls_names_choose(all, 4, NULL), 0);
	ck_assert_uint_eq(tls_names_choose(all, 4, ""), 0);
	ck_assert_uint_eq(tls_names_choose(all, 4, "."), 0);
	memset(host, 'a', sizeof host);
	host[sizeof host - 1] = '\0';
	ck_assert_uint_eq(tls_names_choose(all, 4, host), 0);
	for (unsigned i = 0; i < COUNT_OF(t); i++)
		tls_names_fini(&t[i]);
}
END_TEST

START_TEST(names_are_bounded)
{
	struct tls_names t = { 0 };
	char name[TLS_NAME_MAX + 2];

	memset(name, 'a', sizeof name);
	tls_names_add(&t, name, TLS_NAME_MAX + 1);
	tls_names_add(&t, name, 0);
	tls_names_add(&t, ".", 1);
	ck_assert_uint_eq(t.count, 0);
	for (unsigned i = 0; i < TLS_NAMES_MAX + 10; i++)
		tls_names_add(&t, name, 1 + i % TLS_NAME_MAX);
	ck_assert_uint_eq(t.count, TLS_NAMES_MAX);
	tls_names_fini(&t);
	ck_assert_uint_eq(t.count, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tls_names");
	TCase *t = tcase_create("all");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, names_fit, 0, (int)COUNT_OF(pairs));
	tcase_add_test(t, the_best_is_chosen);
	tcase_add_test(t, names_are_bounded);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
