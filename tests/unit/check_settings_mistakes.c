/* SPDX-License-Identifier: Apache-2.0
 * All mistakes of hermes.yml in one run, each with its place; and files that are no settings at all. */
#include "settings.h"
#include "settings_apply.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "tests/unit/settings_said.h"

static struct settings s;
static struct problems p;

static void
teardown(void)
{
	problems_fini(&p);
	settings_fini(&s);
}

/* As `hermes server --check` does it. */
static void
try_bytes(const char *text, size_t n)
{
	struct broker *b;
	struct wheel *w;

	teardown();
	p = (struct problems){ .file = "h.yml" };
	settings_load_text(&s, text, n, &p);
	s.file = xstrdup("h.yml");
	settings_finish(&s, &p);
	w = wheel_new(0);
	b = broker_new(&s.config, w, 0);
	settings_declare(&s, b, &p);
	problems_sort(&p);
	broker_free(&b);
	wheel_free(&w);
}

static void
try(const char *text)
{
	try_bytes(text, strlen(text));
}

static const struct wrong {
	const char *text, *said;
} wrongs[] = {
	/* an unknown key and one of the wrong type hide nothing of the broker's */
	{ "node: {prt: 1}\nqueues:\n- {name: q, durable: ja}\n- {name: amq.q}\n",
	    "h.yml:1:8: unknown key 'prt' in node; nearest: 'port'\n"
	    "h.yml:3:13: queue 'q': durable: 'ja' is neither true nor false\n"
	    "h.yml:4:4: queue 'amq.q': ACCESS_REFUSED - queue name 'amq.q' contains reserved "
	    "prefix 'amq.*'" },
	/* nor does an entry that is there twice; and whoever names it finds it */
	{ "vhosts:\n- name: v\n- name: v\n"
	  "exchanges:\n- {name: x, vhost: v, typ: topic}\n- {name: y, vhost: v, type: 5}\n"
	  "bindings:\n- {source: x, destination: y, destination_type: exchange, vhost: v}\n"
	  "- {source: x, destination: z, vhost: v}\n",
	    "h.yml:3:3: vhost 'v' stands here a second time; first in line 2\n"
	    "h.yml:5:23: unknown key 'typ' in exchanges; nearest: 'type'\n"
	    "h.yml:6:4: exchange 'y': COMMAND_INVALID - unknown exchange type '5'\n"
	    "h.yml:8:4: binding from 'x': NOT_FOUND - no exchange 'y' in vhost 'v'\n"
	    "h.yml:9:4: binding from 'x': NOT_FOUND - no queue 'z' in vhost 'v'" },
	/* the same of a vhost and a queue that are made with their name only */
	{ "vhosts: [{name: v, default_queue_type: none, descripton: a}]\n"
	  "queues: [{name: q, vhost: v, arguments: {x-queue-type: none}, durable: 1}]\n"
	  "bindings: [{source: amq.topic, destination: q, vhost: v}]\n",
	    "h.yml:1:46: unknown key 'descripton' in vhosts; nearest: 'description'\n"
	    "h.yml:2:63: queue 'q': durable: '1' is neither true nor false" },
	/* what a list of an unknown name may have is not missed */
	{ "vhost: [{name: v}]\nqueues: [{name: q, vhost: v}, {name: amq.q}]\n",
	    "h.yml:1:1: unknown key 'vhost'; nearest: 'vhosts'\n"
	    "h.yml:2:32: queue 'amq.q': ACCESS_REFUSED - queue name 'amq.q' contains reserved "
	    "prefix 'amq.*'" },
	{ "vhosts: {name: v}\nusers:\n- {username: a, password: b, permissions: ['(', '', ''], "
	  "vhost: [v, /]}\n",
	    "h.yml:1:1: vhosts: must be a list\n"
	    "h.yml:3:4: permissions of user 'a': PRECONDITION_FAILED - " },
	/* a user without a password is one that nobody tries */
	{ "users:\n- {username: a}\n- {username: b, password: c, permissions: [a, '[', b]}\n",
	    "h.yml:2:4: user 'a': needs the key 'password', or 'password_hash' (\"\": none, nobody "
	    "logs in with one)\n"
	    "h.yml:3:4: permissions of user 'b': PRECONDITION_FAILED - " },
	{ "users:\n- {username: a, password: b}\n- {username: a, password: c}\n"
	  "policies:\n- {name: p, pattern: '(', definition: {max-length: 1}, prority: 1}\n"
	  "- {name: q, pattern: a, definition: {max-lenght: 1}}\n",
	    "h.yml:3:4: user 'a' stands here a second time; first in line 2\n"
	    "h.yml:5:56: unknown key 'prority' in policies; nearest: 'priority'\n"
	    "h.yml:6:4: policy 'q': PRECONDITION_FAILED - Validation failed " },
	/* definitions that stand elsewhere */
	{ "topic_permissions: []\nparameters: [{a: b}]\nglobal_parameters:\npermissions: []\n"
	  "users: [{username: a, password: b, topic_permissions: []}]\nvhosts: [{name: v, tracing: "
	  "true}]\n",
	    "h.yml:1:1: topic_permissions: not taken here; it belongs into a file of definitions "
	    "(JSON), which definitions.file names\n"
	    "h.yml:2:1: parameters: not taken here; it belongs\n"
	    "h.yml:3:1: global_parameters: not taken here; it belongs\n"
	    "h.yml:4:1: permissions: not taken here; they stand with each user: permissions: "
	    "[configure, write, read]\n"
	    "h.yml:5:36: topic_permissions in users: not taken here; it belongs into a file of "
	    "definitions (JSON), which definitions.file names\n"
	    "h.yml:6:20: tracing in vhosts: not taken here; it belongs" },
	/* keys that do not go together: all of them, but none that was refused alone */
	{ "limits: {output: 2MiB, output_max: 1MiB}\nmanagement: {port: 5672}\n",
	    "h.yml:1:24: limits.output_max: must not be less than limits.output\n"
	    "h.yml:2:14: management.port: is the same as node.port" },
	{ "limits: {output: 2MB?, output_max: 512KiB}\ndefault_user: {name: me, password: [a]}\n",
	    "h.yml:1:10: limits.output: '2MB?' is not a size (such as 64KiB, 1MiB, 2GiB)\n"
	    "h.yml:2:26: default_user.password: must be a single value, not a list" },
	/* what is behind a mistake of form cannot be told */
	{ "default_user: {name: me}\nlog: {level: x}\nusers: [{]\n",
	    "h.yml:2:7: log.level: 'x' is none of: error, warning, info, debug\n"
	    "h.yml:3:10: did not find expected node content while parsing a flow node" },
	/* a key twice is a mistake of its own, and its second value is not looked at */
	{ "users:\n- {username: a, password: b, permissions: ['', '', ''], permissions: 5}\n",
	    "h.yml:2:57: key 'permissions' stands here a second time; first in line 2" },
	{ "users: [{username: a, password: b}]\nusers: [{username: a, password: c}]\nlog: 5\n"
	  "log: {lvel: info}\n",
	    "h.yml:2:1: key 'users' stands here a second time; first in line 1\n"
	    "h.yml:2:10: user 'a' stands here a second time; first in line 1\n"
	    "h.yml:3:1: log: must have keys with values under it\n"
	    "h.yml:4:1: key 'log' stands here a second time; first in line 3\n"
	    "h.yml:4:7: unknown key 'lvel' in log; nearest: 'level'" },
};

/* What is said may go on where a library has the words. */
START_TEST(all_in_one_run)
{
	const char *rest, *want = wrongs[_i].said;

	try(wrongs[_i].text);
	rest = problems_said(&p);
	while (*want != '\0') {
		size_t n = strcspn(want, "\n");

		ck_assert_msg(strncmp(rest, want, n) == 0, "%s\n--- expected ---\n%s",
		    problems_said(&p), want);
		rest += strcspn(rest, "\n");
		rest += *rest == '\n';
		want += n + (want[n] == '\n');
	}
	ck_assert_msg(*rest == '\0', "more than expected: %s", rest);
}
END_TEST

static const struct bytes {
	const char *text;
	size_t n;
	const char *said;
} bytes[] = {
#define BYTES(t) t, sizeof(t) - 1
	{ BYTES("\xef\xbb\xbflog: {level: info}\r\nnode:\r\n  port: 0\r\n"), "" },
	{ BYTES("log: {level: info}\r\nnode:\r\n  prt: 0\r\n"),
	    "h.yml:3:3: unknown key 'prt' in node; nearest: 'port'" },
	{ BYTES("log: {level: 'a\0b'}\nnode: {prt: 1}\n"),
	    "h.yml:1:7: log.level: 'a_b' is none of: error, warning, info, debug\n"
	    "h.yml:1:16: byte 0x00 is a control character\n"
	    "h.yml:2:8: unknown key 'prt' in node; nearest: 'port'" },
	{ BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0"), "h.yml:1:1: byte 0x00 is a control character" },
	{ BYTES("# \xc3\xa4\xc3\xb6 \x1b[2J\nlog: {}\n"), "h.yml:1:6: byte 0x1b is a control "
	                                                  "character" },
	{ BYTES("log:\n  level: \xff\n"),
	    "h.yml:2:3: log.level: '_' is none of: error, warning, info, debug\n"
	    "h.yml:2:10: byte 0xff is no UTF-8" },
	{ BYTES("\xff\xfel\0o\0g\0"), "h.yml:1:1: this is UTF-16; settings are UTF-8" },
	{ BYTES("log:\n\tlevel: info\n"),
	    "h.yml:2:1: found character that cannot start any token while scanning for the next "
	    "token: a tab; YAML is indented with blanks" },
	{ BYTES("a: &a [x]\nb: &b [*a, *a]\n"), "h.yml:1:1: unknown key 'a'\n"
	                                        "h.yml:1:4: anchors (&), aliases (*) and tags (!) "
	                                        "are not taken here" },
};

START_TEST(no_text)
{
	try_bytes(bytes[_i].text, bytes[_i].n);
	ck_assert_msg(strncmp(problems_said(&p), bytes[_i].said, strlen(bytes[_i].said)) == 0, "%s",
	    problems_said(&p));
	ck_assert_uint_le(p.count, 11);
	if (bytes[_i].said[0] == '\0')
		ck_assert_uint_eq(p.count, 0);
}
END_TEST

/* libyaml reads many kilobytes ahead, and counts none of them when it finds what it does not take. */
START_TEST(far_behind)
{
	char *text = xmalloc(40000);
	size_t n = (size_t)snprintf(text, 100, "node: {prt: 1}\n");
	unsigned line = 2;
	char where[100];

	for (; n < 30000; line++)
		n += (size_t)snprintf(text + n, 100, "# %zu\n", n);
	snprintf(text + n, 100, "log: {level: \xc2\x90}\n"); /* of ISO 6429 */
	try(text);
	ck_assert_uint_eq(p.count, 2);
	ck_assert_ptr_nonnull(strstr(problems_said(&p), "h.yml:1:8: unknown key 'prt'"));
	snprintf(where, sizeof where, "h.yml:%u:14: control characters are not allowed", line);
	ck_assert_ptr_nonnull(strstr(problems_said(&p), where));
	free(text);
}
END_TEST

/* A refusal has its end, however long its names are. */
START_TEST(long_refusals_are_whole)
{
	char text[2000], name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	snprintf(text, sizeof text,
	    "queues: [{name: %s}]\nbindings: [{source: amq.topic, destination: %s, "
	    "destination_type: exchange}]\n"
	    "policies: [{name: p, pattern: a, apply-to: %s, definition: {max-length: 1}}]\n",
	    name, name, name);
	try(text);
	ck_assert_uint_eq(p.count, 2);
	ck_assert_ptr_nonnull(strstr(p.item[0], "nnn' in vhost '/'"));
	ck_assert_ptr_nonnull(strstr(p.item[1], "'streams', 'exchanges' or 'all'"));
}
END_TEST

/* As much work as one megabyte can make. */
static const struct heavy {
	const char *head, *each, *after, *said; /* after a number; NULL: no number */
} heavies[] = {
	{ "{", "a", ",", "more than 4096 keys in one place" },
	{ "queues: [", "{},", NULL, "queue: needs the key 'name'" },
	{ "users: [", "{usrname: a, x", ": b},", "unknown key 'usrname' in users" },
	{ "queues: [{name: q, arguments: {a: [", "[],", NULL, "more than 200000 values" },
	{ "", "? ", NULL, "" },
	{ "", "- ", NULL, "" },
	{ "", "a: {", NULL, "nested deeper than 32" },
	{ "a: \"", "${HOME}", NULL, "" },
	{ "vhosts: [", "{name: v},", NULL, "vhost 'v' stands here a second time" },
	{ "x: [{", "}, {", NULL, "" },
};

START_TEST(work_is_bounded)
{
	char *text = xmalloc(SETTINGS_FILE_MAX + 64);
	size_t n = (size_t)snprintf(text, 64, "%s", heavies[_i].head);
	uint64_t begin;

	while (n < SETTINGS_FILE_MAX - 64) {
		const struct heavy *h = &heavies[_i];

		n += (size_t)(h->after == NULL
		                  ? snprintf(text + n, 64, "%s", h->each)
		                  : snprintf(text + n, 64, "%s%zu%s", h->each, n, h->after));
	}
	begin = clock_cpu_us();
	try_bytes(text, n);
	ck_assert_uint_le(clock_cpu_us() - begin, 10000000); /* sanitized, on a slow machine */
	ck_assert_uint_ge(p.count, 1);
	ck_assert_msg(strstr(problems_said(&p), heavies[_i].said) != NULL, "%s", problems_said(&p));
	free(text);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("settings_mistakes");
	TCase *t = tcase_create("settings_mistakes");
	SRunner *r = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, all_in_one_run, 0, COUNT_OF(wrongs));
	tcase_add_loop_test(t, no_text, 0, COUNT_OF(bytes));
	tcase_add_test(t, far_behind);
	tcase_add_test(t, long_refusals_are_whole);
	tcase_add_loop_test(t, work_is_bounded, 0, COUNT_OF(heavies));
	suite_add_tcase(suite, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
