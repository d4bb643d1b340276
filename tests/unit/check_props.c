/* SPDX-License-Identifier: Apache-2.0
 * Content properties: every set of flags, every truncation, rewriting, expiration. */
#include "broker/props.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

/* One value per property, in the order of the flags. */
static const struct {
	uint16_t flag;
	struct span raw;
} values[] = {
	{ PROP_CONTENT_TYPE, SPAN_LIT("\1c") },
	{ PROP_CONTENT_ENCODING, SPAN_LIT("\0") },
	{ PROP_HEADERS, SPAN_LIT("\0\0\0\3\1aV") },
	{ PROP_DELIVERY_MODE, SPAN_LIT("\2") },
	{ PROP_PRIORITY, SPAN_LIT("\11") },
	{ PROP_CORRELATION_ID, SPAN_LIT("\3cor") },
	{ PROP_REPLY_TO, SPAN_LIT("\2rt") },
	{ PROP_EXPIRATION, SPAN_LIT("\00260") },
	{ PROP_MESSAGE_ID, SPAN_LIT("\3mid") },
	{ PROP_TIMESTAMP, SPAN_LIT("\xff\xff\xff\xff\xff\xff\xff\xff") },
	{ PROP_TYPE, SPAN_LIT("\1t") },
	{ PROP_USER_ID, SPAN_LIT("\5guest") },
	{ PROP_APP_ID, SPAN_LIT("\1a") },
	{ PROP_CLUSTER_ID, SPAN_LIT("\1x") },
};

static size_t
build(uint16_t flags, uint8_t *out)
{
	size_t n = 2, i;

	put_be16(out, flags);
	for (i = 0; i < COUNT_OF(values); i++) {
		if ((flags & values[i].flag) == 0)
			continue;
		memcpy(out + n, values[i].raw.p, values[i].raw.n);
		n += values[i].raw.n;
	}
	return n;
}

static bool
is(struct span s, bool there, const char *what)
{
	return there ? s.p != NULL && span_is(s, what) : s.p == NULL;
}

START_TEST(test_every_set)
{
	struct props pr;
	struct span found, want;
	uint8_t raw[128];
	const unsigned fixed = PROP_DELIVERY_MODE | PROP_PRIORITY | PROP_TIMESTAMP;
	unsigned flags, i;
	size_t n, length;

	for (flags = 0; flags < 65536; flags += 4) {
		n = build((uint16_t)flags, raw);
		ck_assert_int_eq(props_scan(span_of(raw, n), &pr), 0);
		ck_assert_uint_eq(pr.flags, flags);
		ck_assert_uint_eq(pr.delivery_mode, flags & PROP_DELIVERY_MODE ? 2 : 0);
		ck_assert_uint_eq(pr.priority, flags & PROP_PRIORITY ? 9 : 0);
		ck_assert(is(pr.reply_to, flags & PROP_REPLY_TO, "rt"));
		ck_assert(is(pr.expiration, flags & PROP_EXPIRATION, "60"));
		ck_assert(is(pr.user_id, flags & PROP_USER_ID, "guest"));
		ck_assert(is(pr.headers, flags & PROP_HEADERS, "\1aV"));
		for (i = 0; i < COUNT_OF(values); i++) {
			bool there = props_find(span_of(raw, n), values[i].flag, &found);

			ck_assert_int_eq(there, (flags & values[i].flag) != 0);
			want = values[i].raw;
			length = values[i].flag == PROP_HEADERS ? 4 : (values[i].flag & fixed) == 0;
			want = span_of(want.p + length, want.n - length);
			ck_assert(!there || span_eq(found, want));
		}
		ck_assert_int_eq(props_scan(span_of(raw, n + 1), &pr), -EINVAL);
		ck_assert_int_eq(props_scan(span_of(raw, n - 1), &pr), -EINVAL);
	}
}
END_TEST

/* Whatever it has, headers and expiration come and go, and nothing else changes. */
START_TEST(test_written_as)
{
	const unsigned changed = PROP_HEADERS | PROP_EXPIRATION;
	const struct span none = span_of(NULL, 0);
	uint8_t raw[128], want[128], got[128];
	struct props pr;

	for (unsigned flags = 0; flags < 65536; flags += 4) {
		size_t n = build((uint16_t)flags, raw);

		ck_assert_int_eq(props_scan(span_of(raw, n), &pr), 0);
		for (unsigned i = 0; i < 4; i++) {
			unsigned to = (flags & ~changed) | (i & 1 ? PROP_HEADERS : 0u) |
			              (i & 2 ? PROP_EXPIRATION : 0u);
			struct span headers = i & 1 ? SPAN_LIT("\1aV") : none,
			            expiration = i & 2 ? SPAN_LIT("60") : none;
			size_t length = build((uint16_t)to, want);

			ck_assert_uint_eq(
			    props_write_as(span_of(raw, n), &pr, headers, expiration, NULL),
			    length);
			ck_assert_uint_eq(
			    props_write_as(span_of(raw, n), &pr, headers, expiration, got), length);
			ck_assert_mem_eq(got, want, length);
		}
	}
}
END_TEST

START_TEST(test_truncated)
{
	struct props pr = { .flags = 77 };
	uint8_t raw[128], *copy;
	size_t n = build(0xfffc, raw), i;

	for (i = 0; i < n; i++) {
		copy = xmalloc(i > 0 ? i : 1);
		memcpy(copy, raw, i);
		ck_assert_int_eq(props_scan(span_of(copy, i), &pr), -EINVAL);
		free(copy);
	}
	ck_assert_uint_eq(pr.flags, 77);
}
END_TEST

static const struct {
	struct span raw;
	int rc;
} forms[] = {
	{ SPAN_LIT("\0\0"), 0 }, { SPAN_LIT("\0\1"), -EINVAL }, /* more flags: there are none */
	{ SPAN_LIT("\0\2"), -EINVAL },                          /* no such property */
	{ SPAN_LIT("\x80\0\5ab"), -EINVAL },                    /* short string too short */
	{ SPAN_LIT("\x20\0\0\0\0\x09\1a"), -EINVAL },           /* table too short */
	{ SPAN_LIT("\x20\0\0\0\0\4\1aZ\0"), -EINVAL },          /* unknown type */
	{ SPAN_LIT("\x20\0\0\0\0\4\0Z\xde\xad"), -EINVAL }, { SPAN_LIT("\x20\0\0\0\0\0"), 0 },
	{ SPAN_LIT("\x20\0\xff\xff\xff\xff"), -EINVAL },
	{ SPAN_LIT("\x20\0\0\0\0\2\0V\0"), -EINVAL }, /* a byte too many */
};

START_TEST(test_form)
{
	struct props pr;

	ck_assert_int_eq(props_scan(forms[_i].raw, &pr), forms[_i].rc);
}
END_TEST

START_TEST(test_empty_is_not_absent)
{
	struct props pr;

	ck_assert_int_eq(props_scan(SPAN_LIT("\x21\x10\0\0\0\0\0\0"), &pr), 0);
	ck_assert(pr.headers.p != NULL && pr.headers.n == 0);
	ck_assert(pr.expiration.p != NULL && pr.expiration.n == 0);
	ck_assert(pr.user_id.p != NULL && pr.user_id.n == 0);
}
END_TEST

/* Every combination of what is there and what is asked for. */
START_TEST(test_rewrite)
{
	struct span headers = SPAN_LIT("\2xyV"), none = { NULL, 0 }, reply = SPAN_LIT("somebody");
	const struct span *asked[] = { NULL, &headers, &none };
	struct props pr, got;
	uint8_t raw[128], *out;
	unsigned flags, h, r;
	int n;

	for (flags = 0; flags < 65536; flags += 4 * 7) {
		size_t len = build((uint16_t)flags, raw);

		ck_assert_int_eq(props_scan(span_of(raw, len), &pr), 0);
		for (h = 0; h < 3; h++) {
			for (r = 0; r < 2; r++) {
				n = props_rewrite(
				    span_of(raw, len), &pr, asked[h], r ? &reply : NULL, &out);
				ck_assert_int_gt(n, 0);
				ck_assert_int_eq(props_scan(span_of(out, (size_t)n), &got), 0);
				ck_assert(
				    is(got.reply_to, flags & PROP_REPLY_TO, r ? "somebody" : "rt"));
				ck_assert(is(got.headers, (flags & PROP_HEADERS) && h != 2,
				    h == 1 ? "\2xyV" : "\1aV"));
				ck_assert(is(got.user_id, flags & PROP_USER_ID, "guest"));
				free(out);
			}
		}
	}
	mem_fail_try(1, 0);
	ck_assert_int_eq(
	    props_rewrite(span_of(raw, build(0, raw)), &pr, NULL, NULL, &out), -ENOMEM);
}
END_TEST

static const struct {
	const char *text;
	int rc;
	uint64_t ms;
} expirations[] = {
	{ "0", 0, 0 },
	{ "-0", 0, 0 },
	{ "+5", 0, 5 },
	{ "05", 0, 5 },
	{ "00000000000000000000000000000005", 0, 5 },
	{ "4294967296", 0, 4294967296 },
	{ "315360000000", 0, 315360000000 },
	{ "315360000001", -EINVAL, 0 },
	{ "18446744073709551617", -EINVAL, 0 },
	{ "99999999999999999999999999999999999999", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
	{ "-", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "--5", -EINVAL, 0 },
	{ " 5", -EINVAL, 0 },
	{ "5 ", -EINVAL, 0 },
	{ "5x", -EINVAL, 0 },
	{ "1.5", -EINVAL, 0 },
	{ "abc", -EINVAL, 0 },
};

START_TEST(test_expiration)
{
	uint64_t ms = 0;

	ck_assert_int_eq(props_expiration(span_str(expirations[_i].text), &ms), expirations[_i].rc);
	ck_assert_uint_eq(ms, expirations[_i].ms);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("props");
	TCase *t = tcase_create("props");
	SRunner *r;
	int failed;

	tcase_add_test(t, test_every_set);
	tcase_add_test(t, test_written_as);
	tcase_add_test(t, test_truncated);
	tcase_add_loop_test(t, test_form, 0, COUNT_OF(forms));
	tcase_add_test(t, test_empty_is_not_absent);
	tcase_add_test(t, test_rewrite);
	tcase_add_loop_test(t, test_expiration, 0, COUNT_OF(expirations));
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
