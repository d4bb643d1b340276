/* SPDX-License-Identifier: Apache-2.0
 * Tables as JSON and back. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/table.h"
#include "mgmt/json_table.h"

static const char *
there_and_back(const char *text)
{
	json_error_t e;
	json_t *j = json_loads(text, JSON_ALLOW_NUL, &e), *k;
	struct table *t;
	const char *wrong;

	ck_assert_msg(j != NULL, "%s", e.text);
	wrong = json_to_table(j, &t);
	if (wrong == NULL) {
		k = json_of_table(table_span(t));
		ck_assert(json_equal(j, k));
		json_decref(k);
	}
	table_free(&t);
	json_decref(j);
	return wrong;
}

static const char *const texts[] = {
	"{}",
	"{\"a\": 1, \"b\": -9223372036854775808, \"c\": 9223372036854775807}",
	"{\"t\": true, \"f\": false, \"n\": null, \"r\": 1.5}",
	"{\"s\": \"\", \"u\": \"\\u00e9\\u0000x\"}",
	"{\"\": {\"o\": {\"p\": []}}, \"list\": [1, \"2\", [3, {\"four\": 4.0}], {}]}",
};

START_TEST(same_again)
{
	ck_assert_ptr_null(there_and_back(texts[_i]));
}
END_TEST

/* What JSON has no type for. */
START_TEST(other_types)
{
	const struct field fields[] = {
		{ .name = SPAN_LIT("D"),
		    .kind = 'D',
		    .bytes = { (const uint8_t *)"\x02\x00\x00\x00\x7d", 5 } },
		{ .name = SPAN_LIT("T"), .kind = 'T', .integer = 1700000000 },
		{ .name = SPAN_LIT("x"), .kind = 'x', .bytes = SPAN_LIT("ab") },
		{ .name = SPAN_LIT("bad"), .kind = 'S', .bytes = SPAN_LIT("\xff") },
		{ .name = SPAN_LIT("nan"), .kind = 'd', .number = NAN },
		{ .name = SPAN_LIT("u"), .kind = 'u', .integer = 65535 }
	};
	struct table_writer w;
	json_t *j, *want;

	table_writer_init(&w, 4096);
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		table_put_field(&w, &fields[i]);
	ck_assert(!w.failed);
	j = json_of_table(span_of(w.p, w.n));
	want = json_pack("{s:f, s:i, s:s, s:s, s:n, s:i}", "D", 1.25, "T", 1700000000, "x", "ab",
	    "bad", "\xEF\xBF\xBD", "nan", "u", 65535);
	ck_assert(json_equal(j, want));
	json_decref(j);
	json_decref(want);
	table_writer_fini(&w);
}
END_TEST

START_TEST(refused)
{
	char *text = xmalloc(2 * JSON_TABLE_MAX), *p = text;
	struct table *t;
	json_t *j = json_string("x");

	ck_assert_str_eq(json_to_table(j, &t), "no JSON object");
	ck_assert_str_eq(json_to_table(NULL, &t), "no JSON object");
	json_decref(j);
	p += sprintf(p, "{\"");
	memset(p, 'n', 256);
	memcpy(p + 256, "\": 1}", 6);
	ck_assert_str_eq(there_and_back(text), "the name of a field is longer than 255 bytes");
	p = text + sprintf(text, "{\"s\": \"");
	memset(p, 'n', JSON_TABLE_MAX);
	memcpy(p + JSON_TABLE_MAX, "\"}", 3);
	ck_assert_str_eq(there_and_back(text), json_table_too_large);
	p = text;
	for (int i = 0; i < TABLE_DEPTH_MAX + 2; i++)
		p += sprintf(p, "{\"a\":");
	p += sprintf(p, "1");
	for (int i = 0; i < TABLE_DEPTH_MAX + 2; i++)
		p += sprintf(p, "}");
	ck_assert_str_eq(there_and_back(text), "nested too deeply");
	free(text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("json_table");
	TCase *t = tcase_create("json_table");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, same_again, 0, COUNT_OF(texts));
	tcase_add_test(t, other_types);
	tcase_add_test(t, refused);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
