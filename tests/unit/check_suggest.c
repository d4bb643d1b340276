/* SPDX-License-Identifier: Apache-2.0
 * The nearest word, or none. */
#include "base/suggest.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = { "listen", "port", "management", "management.port",
	"prometheus.port", "limits.heartbeat", "limits.handshake", "tls", "log.level", "log.file",
	"server", "status", "get" };

static const struct {
	const char *word, *nearest;
} cases[] = {
	{ "listen", "listen" },
	{ "lisen", "listen" },
	{ "lsiten", "listen" },
	{ "listten", "listen" },
	{ "listem", "listen" },
	{ "LISTEN", "listen" }, /* six eighths of a letter */
	{ "Status", "status" },
	{ "staus", "status" },
	{ "prot", "port" },
	{ "prt", "port" },
	{ "pxyt", NULL },
	{ "tsl", "tls" },
	{ "xyz", NULL },
	{ "x", NULL },
	{ "", NULL },
	{ "managment.port", "management.port" },
	{ "manegemant.prot", "management.port" },
	{ "prometeus.port", "prometheus.port" },
	{ "limits.hartbeat", "limits.heartbeat" },
	{ "log.levle", "log.level" },
	{ "something.else.entirely", NULL },
};

START_TEST(nearest)
{
	const char *got = suggest_nearest(cases[_i].word, words, sizeof words / sizeof words[0]);

	if (cases[_i].nearest == NULL) {
		ck_assert_msg(got == NULL, "%s: %s", cases[_i].word, got);
		return;
	}
	ck_assert_msg(got != NULL && strcmp(got, cases[_i].nearest) == 0, "%s: %s", cases[_i].word,
	    got != NULL ? got : "none");
}
END_TEST

START_TEST(long_words_are_harmless)
{
	char word[4000];
	const char *const one[] = { word };

	memset(word, 'a', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	ck_assert_ptr_null(suggest_nearest(word, words, 3));
	ck_assert_ptr_null(suggest_nearest("aaaa", one, 1));
	ck_assert_ptr_null(suggest_nearest("aaaa", NULL, 0));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("suggest");
	TCase *t = tcase_create("suggest");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, nearest, 0, (int)(sizeof cases / sizeof cases[0]));
	tcase_add_test(t, long_words_are_harmless);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
