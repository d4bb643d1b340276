/* SPDX-License-Identifier: Apache-2.0
 * JSON as text: escapes, columns, values that are caught; and tables in them. */
#include "mgmt/json_out.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "broker/table.h"
#include "mgmt/json_table.h"
#include "mgmt/table_out.h"

static struct json_out o;
static char text[4096];

/* A document with a bit of everything. */
static void
write_document(struct json_out *to)
{
	out_begin(to, '{');
	OUT_TEXT(to, "name", "q");
	OUT_INT(to, "messages", 7);
	if (out_key(to, "messages_details")) {
		out_begin(to, '{');
		OUT_PUT(to, "rate", out_number, 0.5);
		out_end(to, '}');
	}
	OUT_TRUTH(to, "durable", true);
	OUT_NULL(to, "policy");
	if (out_key(to, "arguments")) {
		out_begin(to, '{');
		out_end(to, '}');
	}
	if (out_key(to, "consumers")) {
		out_begin(to, '[');
		for (int i = 0; i < 2; i++) {
			out_begin(to, '{');
			OUT_TEXT(to, "tag", i == 0 ? "a" : "b");
			OUT_INT(to, "n", (uint64_t)i);
			out_end(to, '}');
		}
		out_end(to, ']');
	}
	out_end(to, '}');
}

static const char *
document(const char *columns)
{
	struct columns *c = columns_new(columns);

	json_out_init(&o, c);
	write_document(&o);
	ck_assert_uint_lt(o.n, sizeof text);
	memcpy(text, o.p, o.n);
	text[o.n] = '\0';
	json_out_fini(&o);
	columns_free(&c);
	return text;
}

START_TEST(whole_document)
{
	ck_assert_str_eq(document(NULL),
	    "{\"name\":\"q\",\"messages\":7,\"messages_details\":{\"rate\":0.5},\"durable\":true,"
	    "\"policy\":null,\"arguments\":{},\"consumers\":[{\"tag\":\"a\",\"n\":0},{\"tag\":"
	    "\"b\",\"n\":1}]}");
}
END_TEST

static const struct {
	const char *columns, *want;
} selections[] = {
	{ "name", "{\"name\":\"q\"}" },
	{ "messages,name", "{\"name\":\"q\",\"messages\":7}" },
	{ "name,name", "{\"name\":\"q\"}" },
	{ "messages_details.rate", "{\"messages_details\":{\"rate\":0.5}}" },
	{ "messages_details", "{\"messages_details\":{\"rate\":0.5}}" },
	{ "messages_details.rate,messages_details", "{\"messages_details\":{\"rate\":0.5}}" },
	{ "messages_details.none", "{\"messages_details\":[]}" },
	{ "consumers.tag", "{\"consumers\":[{\"tag\":\"a\"},{\"tag\":\"b\"}]}" },
	{ "arguments", "{\"arguments\":{}}" },
	{ "none", "[]" },
	{ "", "[]" },
	{ ",,", "[]" },
	{ "nam", "[]" },
	{ "names", "[]" },
};

START_TEST(columns_are_left)
{
	ck_assert_str_eq(document(selections[_i].columns), selections[_i].want);
}
END_TEST

static const struct {
	const char *path;
	struct scalar want;
	bool is_there;
} catches[] = {
	{ "messages", { SCALAR_NUMBER, 7, { NULL, 0 } }, true },
	{ "messages_details.rate", { SCALAR_NUMBER, 0.5, { NULL, 0 } }, true },
	{ "durable", { SCALAR_TRUE, 0, { NULL, 0 } }, true },
	{ "policy", { SCALAR_NULL, 0, { NULL, 0 } }, true },
	{ "name", { SCALAR_TEXT, 0, { (const uint8_t *)"q", 1 } }, true },
	{ "messages_details", { SCALAR_NUMBER, 0, { NULL, 0 } }, false },
	{ "arguments", { SCALAR_NUMBER, 0, { NULL, 0 } }, false },
	{ "consumers", { SCALAR_NUMBER, 0, { NULL, 0 } }, false },
	{ "none", { SCALAR_NUMBER, 0, { NULL, 0 } }, false },
	{ "name.none", { SCALAR_NUMBER, 0, { NULL, 0 } }, false },
};

START_TEST(one_value_is_caught)
{
	struct columns *c = columns_new(catches[_i].path);
	struct scalar got;

	json_out_catch(&o, c, &got);
	write_document(&o);
	ck_assert_int_eq(o.has_caught, catches[_i].is_there);
	ck_assert_int_eq(got.kind, catches[_i].want.kind);
	ck_assert_double_eq(got.number, catches[_i].want.number);
	if (got.kind == SCALAR_TEXT)
		ck_assert(span_eq(got.text, catches[_i].want.text));
	json_out_fini(&o);
	columns_free(&c);
}
END_TEST

START_TEST(what_is_wanted_is_known_before)
{
	static const char *const names[] = { "memory", "name", NULL };
	static const struct {
		const char *columns;
		bool want;
	} some[] = { { NULL, true }, { "name", true }, { "memory.none,a", true }, { "a,b", false },
		{ "names", false }, { "", false } };

	for (size_t i = 0; i < COUNT_OF(some); i++) {
		struct columns *c = columns_new(some[i].columns);

		json_out_init(&o, c);
		out_begin(&o, '{');
		ck_assert_int_eq(out_wants(&o, names), some[i].want);
		out_end(&o, '}');
		json_out_fini(&o);
		columns_free(&c);
	}
}
END_TEST

static const char *
string(struct span s)
{
	json_out_init(&o, NULL);
	out_text(&o, s);
	memcpy(text, o.p, o.n);
	text[o.n] = '\0';
	json_out_fini(&o);
	return text;
}

START_TEST(texts)
{
	ck_assert_str_eq(string(SPAN_LIT("")), "\"\"");
	ck_assert_str_eq(
	    string(SPAN_LIT("a\"b\\c\n\t\x01\x7f")), "\"a\\\"b\\\\c\\n\\t\\u0001\x7f\"");
	ck_assert_str_eq(string(SPAN_LIT("a\0b")), "\"a\\u0000b\"");
	ck_assert_str_eq(string(SPAN_LIT("\xc5\xbc\xe2\x82\xac")), "\"\xc5\xbc\xe2\x82\xac\"");
	ck_assert_str_eq(string(SPAN_LIT("\xff\xc5")), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}
END_TEST

static const char *
number(double v)
{
	json_out_init(&o, NULL);
	out_number(&o, v);
	memcpy(text, o.p, o.n);
	text[o.n] = '\0';
	json_out_fini(&o);
	return text;
}

START_TEST(numbers)
{
	static const double some[] = { 0.1, 1.0 / 3, 1e300, 5e-324, 123456789.125, -2.5, 1e15,
		0.2 };

	ck_assert_str_eq(number(0), "0.0");
	ck_assert_str_eq(number(3), "3.0");
	ck_assert_str_eq(number(0.1), "0.1");
	ck_assert_str_eq(number((double)NAN), "null");
	for (size_t i = 0; i < COUNT_OF(some); i++)
		ck_assert_double_eq(strtod(number(some[i]), NULL), some[i]);
}
END_TEST

/* ---- tables ---- */

static const char *const same[] = {
	"{}",
	"{\"a\":1}",
	"{\"a\":-9223372036854775808,\"b\":9223372036854775807}",
	"{\"t\":true,\"f\":false,\"s\":\"\xc5\xbc\",\"e\":\"\"}",
	"{\"d\":1.5,\"n\":-0.25}",
	"{\"l\":[1,\"two\",[],{},[true]],\"t\":{\"u\":{\"v\":[{\"w\":1}]}}}",
};

START_TEST(table_as_text)
{
	json_t *j = json_loads(same[_i], 0, NULL);
	struct table *t = NULL;

	ck_assert_ptr_nonnull(j);
	ck_assert_ptr_null(json_to_table(j, &t));
	ck_assert_int_eq(table_check(table_span(t), TABLE_DEPTH_MAX), 0);
	json_out_init(&o, NULL);
	out_table(&o, table_span(t));
	ck_assert_uint_eq(o.n, strlen(same[_i]));
	ck_assert_mem_eq(o.p, same[_i], o.n);
	json_out_fini(&o);
	json_decref(j);
	table_free(&t);
}
END_TEST

/* Kinds that JSON does not make. */
START_TEST(other_kinds)
{
	static const uint8_t raw[] =
	    "\1bb\xfe\1uu\xff\xff\1ii\xff\xff\xff\xff\1TT\0\0\0\0\0\0\0\5\1DD"
	    "\2\0\0\0\x7d\1VV\1xx\0\0\0\2\xff\x61";
	struct span s = span_of(raw, sizeof raw - 1);

	ck_assert_int_eq(table_check(s, 4), 0);
	json_out_init(&o, NULL);
	out_table(&o, s);
	memcpy(text, o.p, o.n);
	text[o.n] = '\0';
	json_out_fini(&o);
	ck_assert_str_eq(text,
	    "{\"b\":-2,\"u\":65535,\"i\":4294967295,\"T\":5,\"D\":1.25,\"V\":null,"
	    "\"x\":\"\xef\xbf\xbd\x61\"}");
}
END_TEST

/* n fields, the names of which come again from `names` on. */
START_TEST(names_that_stand_twice)
{
	static const struct {
		unsigned n, names;
	} sizes[] = { { 2, 1 }, { 3, 2 }, { 16, 5 }, { 17, 16 }, { 500, 1 }, { 500, 499 } };
	struct table_writer w;
	char want[10000], *to = want;

	table_writer_init(&w, 100000);
	for (unsigned i = 0; i < sizes[_i].n; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "k%u", i % sizes[_i].names);
		table_put_field(
		    &w, &(struct field){ .name = span_str(name), .kind = 'l', .integer = i });
		if (i + sizes[_i].names >= sizes[_i].n) /* the last of its name */
			to += snprintf(to, (size_t)(want + sizeof want - to), "%s\"%s\":%u",
			    to == want ? "{" : ",", name, i);
	}
	ck_assert_int_lt(to - want, (int)sizeof want - 1);
	(void)snprintf(to, (size_t)(want + sizeof want - to), "}");
	json_out_init(&o, NULL);
	out_table(&o, span_of(w.p, w.n));
	ck_assert_uint_eq(o.n, strlen(want));
	ck_assert_mem_eq(o.p, want, o.n);
	json_out_fini(&o);
	table_writer_fini(&w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("json_out");
	TCase *t = tcase_create("json_out");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, whole_document);
	tcase_add_loop_test(t, columns_are_left, 0, COUNT_OF(selections));
	tcase_add_loop_test(t, one_value_is_caught, 0, COUNT_OF(catches));
	tcase_add_test(t, what_is_wanted_is_known_before);
	tcase_add_test(t, texts);
	tcase_add_test(t, numbers);
	tcase_add_loop_test(t, table_as_text, 0, COUNT_OF(same));
	tcase_add_test(t, other_kinds);
	tcase_add_loop_test(t, names_that_stand_twice, 0, 6);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
