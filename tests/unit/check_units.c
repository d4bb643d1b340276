/* SPDX-License-Identifier: Apache-2.0
 * Sizes, times and shares as people write them. */
#include "base/units.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

enum kind { SIZE, TIME, PERCENT };

static const uint64_t untouched = 4711;

static const struct {
	enum kind kind;
	const char *s;
	int r;
	uint64_t value;
} cases[] = {
	{ SIZE, "0", 0, 0 },
	{ SIZE, "1048576", 0, 1048576 },
	{ SIZE, "512B", 0, 512 },
	{ SIZE, "1KiB", 0, 1024 },
	{ SIZE, "32MiB", 0, 32 << 20 },
	{ SIZE, "2GiB", 0, (uint64_t)2 << 30 },
	{ SIZE, "1TiB", 0, (uint64_t)1 << 40 },
	{ SIZE, "10kB", 0, 10000 },
	{ SIZE, "10KB", 0, 10000 },
	{ SIZE, "10MB", 0, 10000000 },
	{ SIZE, "3GB", 0, 3000000000u },
	{ SIZE, "1TB", 0, 1000000000000u },
	{ SIZE, "18446744073709551615", 0, UINT64_MAX },
	{ SIZE, "18446744073709551616", -ERANGE, 0 },
	{ SIZE, "99999999999999999999999", -ERANGE, 0 },
	{ SIZE, "16777215TiB", 0, (uint64_t)16777215 << 40 },
	{ SIZE, "16777216TiB", -ERANGE, 0 },
	{ SIZE, "", -EINVAL, 0 },
	{ SIZE, "MiB", -EINVAL, 0 },
	{ SIZE, "-1", -EINVAL, 0 },
	{ SIZE, "+1", -EINVAL, 0 },
	{ SIZE, " 1", -EINVAL, 0 },
	{ SIZE, "1 MiB", -EINVAL, 0 },
	{ SIZE, "1MiB ", -EINVAL, 0 },
	{ SIZE, "1mib", -EINVAL, 0 },
	{ SIZE, "1.5MiB", -EINVAL, 0 },
	{ SIZE, "0x10", -EINVAL, 0 },
	{ SIZE, "10s", -EINVAL, 0 },
	{ SIZE, "40%", -EINVAL, 0 },
	{ TIME, "0", 0, 0 },
	{ TIME, "10", 0, 10000 },
	{ TIME, "50ms", 0, 50 },
	{ TIME, "10s", 0, 10000 },
	{ TIME, "5m", 0, 300000 },
	{ TIME, "1h", 0, 3600000 },
	{ TIME, "2d", 0, 172800000 },
	{ TIME, "18446744073709551615ms", 0, UINT64_MAX },
	{ TIME, "18446744073709551s", 0, 18446744073709551000u },
	{ TIME, "18446744073709552s", -ERANGE, 0 },
	{ TIME, "18446744073709552", -ERANGE, 0 },
	{ TIME, "", -EINVAL, 0 },
	{ TIME, "1MiB", -EINVAL, 0 },
	{ TIME, "1h30m", -EINVAL, 0 },
	{ TIME, "-5s", -EINVAL, 0 },
	{ PERCENT, "0%", 0, 0 },
	{ PERCENT, "40%", 0, 40 },
	{ PERCENT, "100%", 0, 100 },
	{ PERCENT, "101%", -ERANGE, 0 },
	{ PERCENT, "99999999999999999999%", -ERANGE, 0 },
	{ PERCENT, "40", -EINVAL, 0 },
	{ PERCENT, "%", -EINVAL, 0 },
	{ PERCENT, "40%%", -EINVAL, 0 },
	{ PERCENT, "4.5%", -EINVAL, 0 },
};

START_TEST(parses)
{
	uint64_t v = untouched;
	unsigned percent = (unsigned)untouched;
	int r;

	switch (cases[_i].kind) {
	case SIZE: r = units_parse_size(cases[_i].s, &v); break;
	case TIME: r = units_parse_ms(cases[_i].s, &v); break;
	default:
		r = units_parse_percent(cases[_i].s, &percent);
		v = percent;
		break;
	}
	ck_assert_msg(r == cases[_i].r, "\"%s\": %d instead of %d", cases[_i].s, r, cases[_i].r);
	ck_assert_uint_eq(v, r == 0 ? cases[_i].value : untouched);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("units");
	TCase *t = tcase_create("units");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, parses, 0, (int)(sizeof cases / sizeof cases[0]));
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
