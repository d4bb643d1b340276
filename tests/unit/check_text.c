/* SPDX-License-Identifier: Apache-2.0
 * What the commands print and ask for: names with any byte, tables, paths. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"
#include "cli/text_table.h"

static const struct {
	const char *bytes;
	size_t n;
	const char *safe;
	size_t columns;
} names[] = {
	{ "", 0, "", 0 },
	{ "plain", 5, "plain", 5 },
	{ "^app\\.x", 7, "^app\\.x", 7 }, /* a backslash stays */
	{ "a\tb\nc", 5, "a\\x09b\\x0ac", 11 },
	{ "\x1b[31m", 5, "\\x1b[31m", 8 },
	{ "nul\0in", 6, "nul\\x00in", 9 },
	{ "\x7f", 1, "\\x7f", 4 },
	{ "f\xc3\xbcr", 4, "f\xc3\xbcr", 3 },
	{ "\xe4\xb8\xad\xe6\x96\x87", 6, "\xe4\xb8\xad\xe6\x96\x87", 4 }, /* two columns each */
	{ "e\xcc\x81", 3, "e\xcc\x81", 1 },                               /* combining: none */
	{ "\xf0\x9f\x90\x87", 4, "\xf0\x9f\x90\x87", 2 },
	{ "\xc2\x9b", 2, "\\u009b", 6 },     /* CSI in one character */
	{ "\xe2\x80\xae", 3, "\\u202e", 6 }, /* right to left */
	{ "\xe2\x80\xa8", 3, "\\u2028", 6 }, /* line separator */
	{ "\xf3\xa0\x80\x81", 4, "\xf3\xa0\x80\x81", 0 },
	{ "\xff\xfe", 2, "\\xff\\xfe", 8 },
	{ "a\xc3", 2, "a\\xc3", 5 },
	{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80", 12 },
};

START_TEST(name_is_safe)
{
	size_t columns = 77;
	char *safe = text_safe(names[_i].bytes, names[_i].n, &columns);

	ck_assert_str_eq(safe, names[_i].safe);
	ck_assert_uint_eq(columns, names[_i].columns);
	free(safe);
}
END_TEST

START_TEST(no_byte_begins_an_escape_sequence)
{
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++) {
			const char bytes[] = { (char)a, (char)b };
			char *safe = text_safe(bytes, 2, NULL);

			for (const char *p = safe; *p != '\0'; p++)
				ck_assert_msg(
				    (unsigned char)*p >= 0x20 && *p != 0x7f, "%u %u", a, b);
			ck_assert_ptr_null(strstr(safe, "\xc2\x9b"));
			free(safe);
		}
}
END_TEST

static const struct {
	const char *text, *line;
} lines[] = {
	{ "", "" },
	{ "one", "one" },
	{ "Validation failed\n\npattern is no text\n", "Validation failed pattern is no text" },
	{ "\n\n a \r\n b", "a b" },
	{ "a\x1b[0m\nb", "a\\x1b[0m b" },
	{ "\n", "" },
};

START_TEST(reason_is_one_line)
{
	char *line = text_safe_line(lines[_i].text);

	ck_assert_str_eq(line, lines[_i].line);
	free(line);
}
END_TEST

START_TEST(format_makes_its_names_safe)
{
	char *text = text_safe_format("100 %% of '%s' in '%s'", "a\nb", "/");

	ck_assert_str_eq(text, "100 % of 'a\\x0ab' in '/'");
	free(text);
}
END_TEST

/* The table of two columns as text. */
static char *
printed(bool aligned)
{
	static const struct {
		const char *s;
		bool is_number;
	} cells[] = { { "name", false }, { "n", false }, { "\xe4\xb8\xad", false }, { "7", true },
		{ "a\tb", false }, { "1234", true }, { "", false }, { "x", false },
		{ "row that has no end", false } };
	struct text_table *t = text_table_new(2);
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);

	for (size_t i = 0; i < COUNT_OF(cells); i++)
		text_table_add(t, cells[i].s, strlen(cells[i].s), cells[i].is_number);
	text_table_print(t, f, aligned);
	text_table_free(&t);
	ck_assert_ptr_null(t);
	fclose(f);
	return out;
}

START_TEST(table_for_programs)
{
	char *out = printed(false);

	ck_assert_str_eq(out, "name\tn\n\xe4\xb8\xad\t7\na\\x09b\t1234\n\tx\n");
	free(out);
}
END_TEST

START_TEST(table_for_people)
{
	char *out = printed(true);

	ck_assert_str_eq(out, "name                 n\n"
	                      "\xe4\xb8\xad                      7\n"
	                      "a\\x09b               1234\n"
	                      "                     x\n");
	free(out);
}
END_TEST

START_TEST(table_grows)
{
	struct text_table *t = text_table_new(3);
	char *out = NULL;
	size_t n = 0, rows = 0;
	FILE *f = open_memstream(&out, &n);

	for (int i = 0; i < 3000; i++)
		text_table_add(t, "cell", 4, false);
	text_table_print(t, f, true);
	text_table_free(&t);
	fclose(f);
	for (const char *p = out; (p = strchr(p, '\n')) != NULL; p++)
		rows++;
	ck_assert_uint_eq(rows, 1000);
	ck_assert_uint_eq(n, 1000 * strlen("cell  cell  cell\n"));
	free(out);
}
END_TEST

START_TEST(path_of_names)
{
	char *path =
	    HTTP_PATH("/api/bindings/*/e/*/q/*", "/", "a/b?c#d e+f%2F", "\xc3\xa4\xff-._~*\n&=;:@");

	ck_assert_str_eq(path, "/api/bindings/%2F/e/a%2Fb%3Fc%23d%20e%2Bf%252F/q/"
	                       "%C3%A4%FF-._~%2A%0A%26%3D%3B%3A%40");
	free(path);
	path = HTTP_PATH("*", "");
	ck_assert_str_eq(path, "");
	free(path);
}
END_TEST

/* What is encoded is what the other side has after decoding: no byte is lost. */
START_TEST(path_keeps_every_byte)
{
	for (unsigned byte = 1; byte < 256; byte++) {
		const char name[] = { (char)byte, '\0' };
		char *path = HTTP_PATH("/*", name);
		unsigned value = 0;

		if (path[1] == '%')
			ck_assert_int_eq(sscanf(path, "/%%%2X", &value), 1);
		else
			value = (unsigned char)path[1];
		ck_assert_uint_eq(value, byte);
		ck_assert_ptr_null(strpbrk(path, " ?#&;+\\\"<>"));
		free(path);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("text");
	TCase *t = tcase_create("text");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, name_is_safe, 0, COUNT_OF(names));
	tcase_add_test(t, no_byte_begins_an_escape_sequence);
	tcase_add_loop_test(t, reason_is_one_line, 0, COUNT_OF(lines));
	tcase_add_test(t, format_makes_its_names_safe);
	tcase_add_test(t, table_for_programs);
	tcase_add_test(t, table_for_people);
	tcase_add_test(t, table_grows);
	tcase_add_test(t, path_of_names);
	tcase_add_test(t, path_keeps_every_byte);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
