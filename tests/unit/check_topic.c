/* SPDX-License-Identifier: Apache-2.0
 * The topic trie against a matcher that does what the definition says, and its steps on hostile patterns. */
#include "broker/exchange_type/topic.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/binding.h"
#include "naive_topic.h"

static struct binding *
add(struct topic *t, const char *pattern)
{
	size_t n = strlen(pattern);
	struct binding *b = xcalloc(1, sizeof *b + n);

	b->key_len = (uint8_t)n;
	memcpy(b->key, pattern, n);
	topic_add(t, b);
	return b;
}

static void
drop(struct topic *t, struct binding *b)
{
	topic_remove(t, b);
	free(b);
}

static bool
count(void *arg, struct binding *b)
{
	(void)b;
	++*(unsigned *)arg;
	return true;
}

/* source: used as a flag here, "was hit". */
static struct exchange *const hit_mark = (struct exchange *)&hit_mark;

static bool
mark(void *arg, struct binding *b)
{
	(void)arg;
	ck_assert_ptr_null(b->source); /* each once */
	b->source = hit_mark;
	return true;
}

static unsigned
matches(struct topic *t, const char *key)
{
	unsigned n = 0;

	ck_assert(topic_match(t, span_str(key), UINT32_MAX, count, &n));
	return n;
}

static const struct {
	const char *pattern, *key;
	bool match;
} cases[] = {
	{ "a.#", "a", true },
	{ "a.#", "a.b.c", true },
	{ "#.b", "b", true },
	{ "#.b", "a.a.b", true },
	{ "#.b", "b.a", false },
	{ "*.#.c", "c", false },
	{ "*.#.c", "a.c", true },
	{ "*.#.c", "a.b.b.c", true },
	{ "", "", true },
	{ "", "a", false },
	{ "*", "", false },
	{ "#", "", true },
	{ "#.#.#.#.#", "", true },
	{ "#.#.#.#.#", "a.b.c.d.e.f", true },
	{ "#.*", "", false },
	{ "*.*", ".", true },
	{ "*.", "a.", true },
	{ "*.", "a", false },
	{ "a..b", "a..b", true },
	{ "a.*.b", "a..b", true },
	{ "*", "#", true },
	{ "a.b", "a.*", false },
	{ "a*", "ab", false },
	{ "##", "a", false },
};

START_TEST(test_case)
{
	struct topic *t = topic_new();
	struct binding *b = add(t, cases[_i].pattern);

	ck_assert_int_eq(naive_topic(cases[_i].pattern, cases[_i].key), cases[_i].match);
	ck_assert_uint_eq(matches(t, cases[_i].key), cases[_i].match);
	drop(t, b);
	ck_assert_uint_eq(matches(t, cases[_i].key), 0);
	topic_free(&t);
	ck_assert_ptr_null(t);
}
END_TEST

static uint64_t seed = 88172645463325252u;

static unsigned
below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 16) % n;
}

static void
random_key(char *out, unsigned words_max, bool pattern)
{
	static const char *const words[] = { "a", "b", "", "aa", "*", "#" };
	unsigned n = below(words_max + 1), i;

	*out = '\0';
	for (i = 0; i < n; i++) {
		if (i > 0)
			strncat(out, ".", 2);
		strncat(out, words[below(pattern ? 6 : 4)], 3);
	}
}

/* Patterns come and go; every key finds just those that the definition says. */
START_TEST(test_against_naive)
{
	struct topic *t = topic_new();
	struct binding *b[60] = { 0 };
	char text[60], pattern[256];
	unsigned round, i, k;

	for (round = 0; round < 1500; round++) {
		i = below(COUNT_OF(b));
		if (b[i] != NULL)
			drop(t, b[i]);
		random_key(pattern, 6, true);
		b[i] = below(4) == 0 ? NULL : add(t, pattern);
		for (k = 0; k < 5; k++) {
			random_key(text, 7, false);
			ck_assert(topic_match(t, span_str(text), UINT32_MAX, mark, NULL));
			for (i = 0; i < COUNT_OF(b); i++) {
				if (b[i] == NULL)
					continue;
				memcpy(pattern, b[i]->key, b[i]->key_len);
				pattern[b[i]->key_len] = '\0';
				ck_assert_msg((b[i]->source != NULL) == naive_topic(pattern, text),
				    "pattern '%s', key '%s'", pattern, text);
				b[i]->source = NULL;
			}
		}
	}
	for (i = 0; i < COUNT_OF(b); i++) {
		if (b[i] != NULL)
			drop(t, b[i]);
	}
	ck_assert_uint_eq(topic_nodes(t), 1);
	topic_free(&t);
}
END_TEST

/* "#.a.#.a. ... .b" against "a.a.a. ...": without a match, which is what makes matchers go back and try again. */
START_TEST(test_linear)
{
	struct topic *t = topic_new();
	char pattern[256] = "#", key[256] = "a";
	struct binding *b[3];
	uint64_t before;
	unsigned i, words = 1;

	for (i = 0; i < 60; i++)
		strncat(pattern, ".a.#", 5);
	strncat(pattern, ".b", 3);
	for (; words < 127; words++)
		strncat(key, ".a", 3);
	b[0] = add(t, pattern);
	b[1] = add(t, "#.#.#.#.#.#.#.#.*.#.#.#.b");
	b[2] = add(t, "*.#.*.#.*.#.*.#.*.#.*.#.*.#.b");
	before = topic_steps(t);
	ck_assert_uint_eq(matches(t, key), 0);
	ck_assert_uint_le(topic_steps(t) - before, (words + 1) * topic_nodes(t));
	ck_assert_uint_gt(topic_steps(t) - before, 0);
	for (i = 0; i < 3; i++)
		drop(t, b[i]);
	topic_free(&t);
}
END_TEST

/* A run of # is one node, and looking a key up does not touch the other patterns. */
START_TEST(test_many)
{
	struct topic *t = topic_new();
	struct binding **b = xcalloc(10000, sizeof(struct binding *)), *run = add(t, "#.#.#.#.#");
	char key[40];
	uint64_t before;
	unsigned i;

	ck_assert_uint_eq(topic_nodes(t), 2);
	drop(t, run);
	for (i = 0; i < 10000; i++) {
		snprintf(key, sizeof key, "site%u.room%u.n%u", i % 10, i % 100, i);
		b[i] = add(t, key);
	}
	before = topic_steps(t);
	ck_assert_uint_eq(matches(t, "site3.room3.n103"), 1);
	ck_assert_uint_le(topic_steps(t) - before, 4);
	for (i = 0; i < 10000; i++)
		drop(t, b[i]);
	free(b);
	ck_assert_uint_eq(topic_nodes(t), 1);
	topic_free(&t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("topic");
	TCase *t = tcase_create("topic");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, test_case, 0, COUNT_OF(cases));
	tcase_add_test(t, test_against_naive);
	tcase_add_test(t, test_linear);
	tcase_add_test(t, test_many);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
