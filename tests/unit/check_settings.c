/* SPDX-License-Identifier: Apache-2.0
 * hermes.yml as text: what is taken, and the exact words for what is not. */
#include "settings.h"
#include "settings_apply.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "tests/unit/settings_said.h"

static struct settings s;
static struct problems p;

static void
load(const char *text)
{
	problems_fini(&p);
	settings_fini(&s);
	p.file = "hermes.yml";
	settings_load_text(&s, text, strlen(text), &p);
	s.file = xstrdup("hermes.yml");
	settings_finish(&s, &p);
}

static void
setup(void)
{
	unsetenv("HERMES_T_UNSET");
	setenv("HERMES_T", "value", 1);
	setenv("HERMES_T_EMPTY", "", 1);
	setenv("HERMES_T_PORT", "4711", 1);
	setenv("HERMES_T_EVIL", "x\nnode:\n  port: 1 # {[", 1);
}

static void
teardown(void)
{
	problems_fini(&p);
	settings_fini(&s);
}

static const struct wrong {
	const char *text, *said;
} wrongs[] = {
	{ "node:\n  port: 1\n  lisen: '::'\n",
	    "hermes.yml:3:3: unknown key 'lisen' in node; nearest: 'listen'" },
	{ "nod: {port: 1}\n", "hermes.yml:1:1: unknown key 'nod'; nearest: 'node'" },
	{ "queus: []\n", "hermes.yml:1:1: unknown key 'queus'; nearest: 'queues'" },
	{ "memory_limit: 1GiB\n",
	    "hermes.yml:1:1: unknown key 'memory_limit'; nearest: 'limit' under 'memory:'" },
	{ "node.port: 1\n",
	    "hermes.yml:1:1: unknown key 'node.port'; nearest: 'port' under 'node:'" },
	{ "port: 1\n", "hermes.yml:1:1: unknown key 'port'; nearest: 'port' under 'node:'" },
	{ "node:\n\tport: 1\n", "hermes.yml:2:1: found character that cannot start any token while "
	                        "scanning for the next "
	                        "token: a tab; YAML is indented with blanks" },
	{ "zzzzzzzzzzzz: 1\n", "hermes.yml:1:1: unknown key 'zzzzzzzzzzzz'" },
	{ "node: 5\n", "hermes.yml:1:1: node: must have keys with values under it" },
	{ "- a\n", "hermes.yml:1:1: settings must be keys with values, such as 'node:'" },
	{ "just text", "hermes.yml:1:1: settings must be keys with values, such as 'node:'" },
	{ "node:\n  port: {a: b}\n",
	    "hermes.yml:2:3: node.port: must be a single value, not keys with values" },
	{ "node:\n  port: [1]\n", "hermes.yml:2:3: node.port: must be a single value, not a list" },
	{ "node:\n  port:\n", "hermes.yml:2:3: node.port: has no value; write \"\" for an empty "
	                      "text, or remove the key" },
	{ "node:\n  port: 66000\n",
	    "hermes.yml:2:3: node.port: 66000 is out of range: 0 to 65535" },
	{ "node:\n  port: x\n", "hermes.yml:2:3: node.port: 'x' is not a number" },
	{ "node: {port: 1,\n port: 2}\n",
	    "hermes.yml:2:2: key 'port' stands here a second time; first in line 1" },
	{ "node: {port: 1}\nlog:\nnode: {}\n",
	    "hermes.yml:3:1: key 'node' stands here a second time; first in line 1" },
	{ "node: {port: 1}\n---\nlog: {}\n",
	    "hermes.yml:2:1: a second document; settings are one" },
	{ "node:\n  listen: []\n", "hermes.yml:2:3: node.listen: the list is empty" },
	{ "node:\n  listen: [[1]]\n",
	    "hermes.yml:2:12: node.listen: each item must be a single value" },
	{ "node:\n  listen:\n  - '::'\n  - 1.2.3\n",
	    "hermes.yml:4:5: node.listen: '1.2.3' is neither an IP address (such as 127.0.0.1, "
	    "::1, or :: for all) nor a name" },
	{ "node: &a {port: 1}\n",
	    "hermes.yml:1:7: anchors (&), aliases (*) and tags (!) are not taken here" },
	{ "node: *a\n",
	    "hermes.yml:1:7: anchors (&), aliases (*) and tags (!) are not taken here" },
	{ "node: {port: !!int 1}\n",
	    "hermes.yml:1:14: anchors (&), aliases (*) and tags (!) are not taken here" },
	{ "log: {file: \"a\\0b\"}\n", "hermes.yml:1:13: a value has a NUL in it" },
	{ "? [a]\n: b\n", "hermes.yml:1:3: a key must be a word" },
	{ "store:\n  sync: 50 ms\n",
	    "hermes.yml:2:3: store.sync: '50 ms' is not always, never, or a time from 1ms to 60s "
	    "with its unit (such as 50ms)" },
	{ "store:\n  journal_max: 64MiB\n  journal_file_size: 32MiB\n",
	    "hermes.yml:2:3: store.journal_max: must be at least four times "
	    "store.journal_file_size" },
	{ "prometheus: {port: 5672}\n",
	    "hermes.yml:1:14: prometheus.port: is the same as node.port" },
	{ "policies:\n  a: b\n", "hermes.yml:1:1: policies: must be a list" },
	{ "default_user:\n  name: me\n",
	    "hermes.yml:2:3: default_user.name: default_user needs a password as well" },
	{ "limits:\n  output: 2MiB\n  output_max: 1MiB\n",
	    "hermes.yml:3:3: limits.output_max: must not be less than limits.output" },
	{ "limits:\n  http_body: 100MiB\n",
	    "hermes.yml: limits.http_bodies: must not be less than limits.http_body" },
	{ "limits: {http_body: 1KiB}\n",
	    "hermes.yml:1:10: limits.http_body: 1KiB is out of range: 64KiB to 1GiB" },
	/* variables */
	{ "log:\n  file: ${HERMES_T_UNSET}\n",
	    "hermes.yml:2:9: the environment variable HERMES_T_UNSET is not set; set it, or write "
	    "${HERMES_T_UNSET:-default}" },
	{ "log: {file: '${1}'}\n",
	    "hermes.yml:1:13: '${1}' names no variable; write $${ for the text ${" },
	{ "log: {file: '${}'}\n",
	    "hermes.yml:1:13: '${}' names no variable; write $${ for the text ${" },
	{ "log: {file: '${A'}\n", "hermes.yml:1:13: '${' without '}'; write $${ for the text ${" },
	{ "node: {port: '${HERMES_T}'}\n", "hermes.yml:1:8: node.port: 'value' is not a number" },
	/* topology */
	{ "queues: 5\n", "hermes.yml:1:1: queues: must be a list" },
	{ "queues:\n- 5\n", "hermes.yml:2:3: queues: each entry must have keys with values" },
	{ "queues:\n- durable: true\n", "hermes.yml:2:3: queue: needs the key 'name'" },
	{ "queues:\n- name: ''\n", "hermes.yml:2:3: queue '': name must not be empty" },
	{ "queues:\n- name: q\n  durable: ja\n",
	    "hermes.yml:3:3: queue 'q': durable: 'ja' is neither true nor false" },
	{ "queues:\n- name: q\n  durabel: true\n",
	    "hermes.yml:3:3: unknown key 'durabel' in queues; nearest: 'durable'" },
	{ "queues:\n- name: q\n  arguments: [1]\n",
	    "hermes.yml:3:3: queue 'q': arguments must be keys with values" },
	{ "queues:\n- name: [q]\n", "hermes.yml:2:3: queue: name must be a single value" },
	{ "bindings:\n- source: a\n",
	    "hermes.yml:2:3: binding from 'a': needs the key 'destination'" },
	{ "queues:\n- name: ~\n", "hermes.yml:2:3: queue '~': name has no value" },
	/* vhosts, users, policies */
	{ "vhosts:\n- name: v\n- {name: w}\n- name: v\n",
	    "hermes.yml:4:3: vhost 'v' stands here a second time; first in line 2" },
	{ "vhosts:\n- name: v\n  limits: {max-conections: 3}\n",
	    "hermes.yml:3:12: unknown key 'max-conections' in limits of vhost 'v'; nearest: "
	    "'max-connections'" },
	{ "vhosts:\n- name: v\n  limits: {max-queues: many}\n",
	    "hermes.yml:3:12: vhost 'v': max-queues must be a whole number" },
	{ "vhosts:\n- name: v\n  limits: 3\n",
	    "hermes.yml:3:3: vhost 'v': limits must be keys with values" },
	{ "vhosts:\n- name: v\n  tags: {a: b}\n",
	    "hermes.yml:3:3: vhost 'v': tags must be a list of texts" },
	{ "users:\n- username: a\n",
	    "hermes.yml:2:3: user 'a': needs the key 'password', or 'password_hash' (\"\": none, "
	    "nobody logs in with one)" },
	{ "users:\n- password: a\n", "hermes.yml:2:3: user: needs the key 'username'" },
	{ "users:\n- {username: a, pasword: b}\n",
	    "hermes.yml:2:4: user 'a': needs the key 'password', or 'password_hash' (\"\": none, "
	    "nobody logs in with one)\n"
	    "hermes.yml:2:17: unknown key 'pasword' in users; nearest: 'password'" },
	{ "users:\n- username: a\n  password: ''\n",
	    "hermes.yml:3:3: user 'a': password must not be empty" },
	{ "users:\n- username: a\n  password: ~\n",
	    "hermes.yml:3:3: user 'a': password has no value" },
	{ "users:\n- username: a\n  password: [secret]\n",
	    "hermes.yml:3:3: user 'a': password must be a single value" },
	{ "users:\n- username: a\n  password: b\n  password_hash: ''\n",
	    "hermes.yml:3:3: user 'a': has both password and password_hash" },
	{ "users:\n- username: a\n  password_hash: '?'\n",
	    "hermes.yml:3:3: user 'a': password_hash is no base64 of a hash of the kind "
	    "rabbit_password_hashing_sha256" },
	{ "users:\n- username: a\n  password_hash: ''\n  hashing_algorithm: sha1\n",
	    "hermes.yml:4:3: user 'a': hashing_algorithm is none of: "
	    "rabbit_password_hashing_sha256, "
	    "rabbit_password_hashing_sha512, rabbit_password_hashing_md5, "
	    "hermes_password_hashing_pbkdf2_sha512" },
	{ "users:\n- {username: a, password: b, hashing_algorithm: x}\n",
	    "hermes.yml:2:4: user 'a': hashing_algorithm belongs to password_hash" },
	{ "users:\n- {username: a, password: b, vhost: v}\n",
	    "hermes.yml:2:4: user 'a': vhost says where permissions hold; give them" },
	{ "users:\n- username: a\n  password: b\n  permissions: ['', '']\n",
	    "hermes.yml:4:3: user 'a': permissions must be three patterns: [configure, write, "
	    "read]" },
	{ "users:\n- username: a\n  password: b\n  permissions: {configure: a}\n",
	    "hermes.yml:4:3: user 'a': permissions must be a list of texts\n"
	    "hermes.yml:4:3: user 'a': permissions must be three patterns: [configure, write, "
	    "read]" },
	{ "users:\n- {username: a, password: b}\n- {username: a, password: c}\n",
	    "hermes.yml:3:4: user 'a' stands here a second time; first in line 2" },
	{ "policies:\n- {name: p, patern: a, definition: {max-length: 1}}\n",
	    "hermes.yml:2:4: policy 'p': needs the key 'pattern'\n"
	    "hermes.yml:2:13: unknown key 'patern' in policies; nearest: 'pattern'" },
	{ "policies:\n- {name: p, pattern: a}\n",
	    "hermes.yml:2:4: policy 'p': needs the key 'definition'" },
	{ "policies:\n- {name: p, pattern: a, definition: 5}\n",
	    "hermes.yml:2:25: policy 'p': definition must be keys with values" },
	{ "policies:\n- name: p\n  pattern: a\n  priority: high\n  definition: {max-length: 1}\n",
	    "hermes.yml:4:3: policy 'p': priority must be a whole number" },
	{ "policies:\n- name: p\n  pattern: a\n  priority: '1'\n  definition: {max-length: 1}\n",
	    "hermes.yml:4:3: policy 'p': priority must be a whole number" },
	{ "operator_policies:\n- {name: p, pattern: a, apply_to: queues, definition: {a: 1}}\n",
	    "hermes.yml:2:25: unknown key 'apply_to' in operator_policies; nearest: 'apply-to'" },
	{ "policies:\n- {name: p, pattern: a, definition: {a: 1}}\n"
	  "- {name: p, vhost: v, pattern: a, definition: {a: 1}}\n"
	  "- {name: p, vhost: /, pattern: b, definition: {a: 1}}\n",
	    "hermes.yml:4:4: policy 'p' stands here a second time; first in line 2" },
	/* all of them, not the first one */
	{ "node:\n  prt: 1\nlog:\n  level: loud\nlimits:\n  queues: x\n",
	    "hermes.yml:2:3: unknown key 'prt' in node; nearest: 'port'\n"
	    "hermes.yml:4:3: log.level: 'loud' is none of: error, warning, info, debug\n"
	    "hermes.yml:6:3: limits.queues: 'x' is not a number" },
};

START_TEST(wrong_text)
{
	load(wrongs[_i].text);
	ck_assert_str_eq(problems_said(&p), wrongs[_i].said);
}
END_TEST

/* Whatever libyaml says of it, the line is there. */
static const struct wrong broken[] = {
	{ "node:\n\tport: 1\n", "hermes.yml:2:1: " },
	{ "node: {port: 1\n", "hermes.yml:2:1: " },
	{ "a: 'b\n", "hermes.yml:2:1: " },
	{ "a: \xff\n", "hermes.yml:1:" },
	{ "a: b: c\n", "hermes.yml:1:" },
	{ "node:\n- a\n b\n", "hermes.yml:" },
};

START_TEST(broken_text)
{
	load(broken[_i].text);
	ck_assert_uint_ge(p.count, 1);
	ck_assert_msg(
	    strncmp(p.item[0], broken[_i].said, strlen(broken[_i].said)) == 0, "%s", p.item[0]);
}
END_TEST

/* What is right before the mistake, and wrong, is said as well. */
START_TEST(broken_behind_a_mistake)
{
	load("node: {prt: 1}\nlog: {level: x\n");
	ck_assert_uint_ge(p.count, 2);
	ck_assert_ptr_nonnull(strstr(problems_said(&p), "unknown key 'prt' in node"));
}
END_TEST

static const char *const nothings[] = { "", "\n", "# only a comment\n", "---\n", "~\n", "null\n",
	"{}\n", "node:\nlog: ~\nqueues:\nusers: []\n", "%YAML 1.1\n---\n...\n" };

START_TEST(nothing_is_fine)
{
	load(nothings[_i]);
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_uint_eq(s.config.port, 5672);
}
END_TEST

START_TEST(values_arrive)
{
	load("node: {name: n1, listen: [127.0.0.1, '::1'], port: 1}\nmanagement: {listen: "
	     "127.0.0.2, enabled: false}\n"
	     "log: {level: debug, format: json, file: /tmp/x}\nstore: {path: /d, sync: 20ms, "
	     "retention_hours: 3}\nmemory: {limit: 256MiB, spill: 40%}\ndisk: {min_free: 2%}\n"
	     "limits: {heartbeat: 0, handshake: 500ms, connections: 17}\ntcp: {nodelay: false}\n"
	     "default_user: {name: me, password: pw, remote: true}\ntls: {port: 0}\nprometheus: "
	     "{enabled: false, listen: [127.0.0.3, '::1'], port: 7}\n");
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_str_eq(s.config.node_given, "n1");
	ck_assert_uint_eq(s.config.listen.count, 2);
	ck_assert_str_eq(s.config.listen.item[1], "::1");
	ck_assert_uint_eq(s.config.port, 1);
	ck_assert_str_eq(s.config.management_listen.item[0], "127.0.0.2");
	ck_assert(!s.config.management_enabled);
	ck_assert(!s.config.prometheus_enabled);
	ck_assert_str_eq(s.config.prometheus_listen.item[1], "::1");
	ck_assert_uint_eq(s.config.prometheus_port, 7);
	ck_assert_uint_eq(s.config.log_level, LOG_DEBUG);
	ck_assert_uint_eq(s.config.log_format, LOG_JSON);
	ck_assert_str_eq(s.config.data_dir, "/d");
	ck_assert_uint_eq(s.config.memory_limit, 256u << 20);
	ck_assert_uint_eq(s.config.heartbeat_s, 0);
	ck_assert_uint_eq(s.config.handshake_ms, 500);
	ck_assert_uint_eq(s.config.connections, 17);
	ck_assert_uint_eq(s.config.store_sync, 20);
	ck_assert_uint_eq(s.config.retention_hours, 3);
	ck_assert_uint_eq(s.config.memory_spill, 40);
	ck_assert_uint_eq(s.config.disk_min_free, CONFIG_SHARE + 2);
	ck_assert(!s.config.tcp_nodelay);
	ck_assert_str_eq(s.config.default_user, "me");
	ck_assert(s.config.default_user_remote);
}
END_TEST

static const struct variable {
	const char *text, *file;
} variables[] = {
	{ "${HERMES_T}", "value" },
	{ "a${HERMES_T}b${HERMES_T}", "avaluebvalue" },
	{ "${HERMES_T_UNSET:-else}", "else" },
	{ "${HERMES_T_UNSET:-}x", "x" },
	{ "${HERMES_T_EMPTY:-else}", "else" },
	{ "x${HERMES_T_EMPTY}", "x" },
	{ "${HERMES_T:-else}", "value" },
	{ "$${HERMES_T}", "${HERMES_T}" },
	{ "$HERMES_T", "$HERMES_T" },
	{ "a$", "a$" },
	{ "$$", "$$" },
	{ "${HERMES_T_UNSET:-a:-b$c}", "a:-b$c" },
	{ "${HERMES_T_EVIL}", "x\nnode:\n  port: 1 # {[" },
};

START_TEST(variable)
{
	char text[256];

	snprintf(text, sizeof text, "log: {file: '%s'}\n", variables[_i].text);
	load(text);
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_str_eq(s.config.log_file, variables[_i].file);
	ck_assert_uint_eq(s.config.port, 5672);
}
END_TEST

START_TEST(variable_as_number)
{
	load("node: {port: ${HERMES_T_PORT}}\n");
	ck_assert_ptr_nonnull(strstr(
	    problems_said(&p), "hermes.yml:1:")); /* "{" is YAML's own there: quotes are needed */
	load("node: {port: \"${HERMES_T_PORT}\"}\n");
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_uint_eq(s.config.port, 4711);
	load("node:\n  port: ${HERMES_T_PORT}\n");
	ck_assert_uint_eq(s.config.port, 4711);
}
END_TEST

START_TEST(problems_are_bounded)
{
	char text[4096];
	size_t n = 0;

	for (int i = 0; i < PROBLEMS_MAX + 7; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "wrong%d: 1\n", i);
	load(text);
	ck_assert_uint_eq(p.count, PROBLEMS_MAX);
	ck_assert_uint_eq(p.more, 7);
}
END_TEST

START_TEST(depth_is_bounded)
{
	char text[5000];

	memset(text, '[', sizeof text);
	text[sizeof text - 1] = '\0';
	load(text);
	ck_assert_str_eq(problems_said(&p), "hermes.yml:1:33: nested deeper than 32");
	memset(text, ' ', sizeof text);
	memcpy(text, "queues: [{name: q, arguments: {a: ", 34);
	memset(text + 34, '[', 28);
	memset(text + 34 + 28, ']', 28);
	memcpy(text + 34 + 56, "}}]\n", 5);
	load(text);
	ck_assert_str_eq(problems_said(&p), "");
}
END_TEST

START_TEST(values_are_bounded)
{
	char *text = xmalloc(100000);

	memset(text, 'x', 100000);
	memcpy(text, "node: {name: ", 13);
	memcpy(text + 99990, "}\n", 3);
	load(text);
	ck_assert_str_eq(problems_said(&p),
	    "hermes.yml:1:14: values are too long: at most 65536 bytes each, 16777216 together");
	free(text);
	text = xmalloc(900000);
	memcpy(text, "queues: [", 10);
	for (size_t n = 9; n < 890000; n += 2)
		memcpy(text + n, "1,", 3);
	load(text);
	ck_assert_ptr_nonnull(strstr(problems_said(&p), ": more than 200000 values"));
	free(text);
}
END_TEST

START_TEST(files)
{
	char dir[] = "/tmp/hermes-settings-XXXXXX", name[64], *big;
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(name, sizeof name, "%s/a.yml", dir);
	settings_load(&s, name, &p);
	ck_assert_uint_eq(p.count, 1);
	ck_assert_ptr_nonnull(
	    strstr(problems_said(&p), "/a.yml: cannot be read: No such file or directory"));
	settings_fini(&s);
	problems_fini(&p);

	settings_load(&s, dir, &p);
	ck_assert_ptr_nonnull(strstr(problems_said(&p), ": is not a file"));
	settings_fini(&s);
	problems_fini(&p);

	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs("node: {port: 77}\n", f);
	fclose(f);
	settings_load(&s, name, &p);
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_uint_eq(s.config.port, 77);
	settings_fini(&s);

	big = xmalloc(SETTINGS_FILE_MAX + 1);
	memset(big, '\n', SETTINGS_FILE_MAX + 1);
	f = fopen(name, "w");
	fwrite(big, 1, SETTINGS_FILE_MAX + 1, f);
	fclose(f);
	free(big);
	settings_load(&s, name, &p);
	ck_assert_ptr_nonnull(strstr(problems_said(&p), ": is larger than 1 MiB"));
	unlink(name);
	rmdir(dir);
}
END_TEST

START_TEST(user_from_environment)
{
	load("default_user: {name: file, password: file}\n");
	settings_environment(&s, &p);
	ck_assert_str_eq(s.config.default_user, "file");
	ck_assert(!s.config.default_user_remote);
	setenv("HERMES_DEFAULT_USER", "env", 1);
	settings_environment(&s, &p);
	ck_assert_str_eq(problems_said(&p),
	    "environment: HERMES_DEFAULT_USER and HERMES_DEFAULT_PASS go together; "
	    "HERMES_DEFAULT_PASS is not set");
	problems_fini(&p);
	setenv("HERMES_DEFAULT_PASS", "", 1);
	settings_environment(&s, &p);
	ck_assert_str_eq(problems_said(&p), "environment: HERMES_DEFAULT_PASS: must not be empty");
	problems_fini(&p);
	setenv("HERMES_DEFAULT_PASS", "word", 1);
	settings_environment(&s, &p);
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_str_eq(s.config.default_user, "env");
	ck_assert_str_eq(s.config.default_password, "word");
	ck_assert(s.config.default_user_remote);
	/* The names of another image's stand in for those that are not set. */
	ck_assert_ptr_null(s.config.default_vhost);
	setenv("RABBITMQ_DEFAULT_USER", "theirs", 1);
	setenv("RABBITMQ_DEFAULT_VHOST", "shop", 1);
	settings_environment(&s, &p);
	ck_assert_str_eq(s.config.default_user, "env");
	ck_assert_str_eq(s.config.default_vhost, "shop");
	unsetenv("HERMES_DEFAULT_USER");
	settings_environment(&s, &p);
	ck_assert_str_eq(s.config.default_user, "theirs");
	ck_assert_str_eq(s.config.default_password, "word");
	setenv("RABBITMQ_DEFAULT_VHOST", "", 1);
	settings_environment(&s, &p);
	ck_assert_str_eq(
	    problems_said(&p), "environment: RABBITMQ_DEFAULT_VHOST: must not be empty");
}
END_TEST

/* --- topology -------------------------------------------------------------- */

static const char topology[] =
    "vhosts:\n"
    "- {name: /, default_queue_type: classic}\n"
    "- {name: v2, default_queue_type: quorum}\n"
    "exchanges:\n"
    "- {name: orders, vhost: /, type: topic, durable: true}\n"
    "- {name: inner, internal: true, auto_delete: false, type: fanout}\n"
    "queues:\n"
    "- {name: created, vhost: /, durable: true, auto_delete: false}\n"
    "- {name: created, vhost: v2, durable: false}\n"
    "bindings:\n"
    "- {source: orders, destination: created, routing_key: 'order.#', vhost: /}\n"
    "- {source: orders, destination: inner, destination_type: exchange}\n";

START_TEST(topology_is_read)
{
	load(topology);
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_uint_eq(s.vhosts.count, 2);
	ck_assert_uint_eq(s.exchanges.count, 2);
	ck_assert_str_eq(s.exchanges.item[1].vhost, "/");
	ck_assert(s.exchanges.item[1].internal && s.exchanges.item[1].durable);
	ck_assert_uint_eq(s.queues.count, 2);
	ck_assert_uint_eq(s.queues.item[1].at.line, 9);
	ck_assert(!s.queues.item[1].durable && s.queues.item[0].durable);
	ck_assert_uint_eq(s.bindings.count, 2);
	ck_assert_str_eq(s.bindings.item[0].routing_key, "order.#");
	ck_assert_str_eq(s.bindings.item[1].routing_key, "");
	ck_assert_str_eq(s.bindings.item[0].destination_type, "queue");
}
END_TEST

static const struct argument {
	const char *yaml;
	uint8_t kind;
	int64_t integer;
	const char *text;
} arguments[] = {
	{ "5", 'l', 5, NULL },
	{ "-5", 'l', -5, NULL },
	{ "9223372036854775807", 'l', INT64_MAX, NULL },
	{ "9223372036854775808", 'd', 0, NULL },
	{ "1.5", 'd', 0, NULL },
	{ "1e3", 'd', 0, NULL },
	{ "'5'", 'S', 0, "5" },
	{ "\"true\"", 'S', 0, "true" },
	{ "true", 't', 1, NULL },
	{ "false", 't', 0, NULL },
	{ "yes", 'S', 0, "yes" },
	{ "e", 'S', 0, "e" },
	{ "1.2.3", 'S', 0, "1.2.3" },
	{ "~", 'V', 0, NULL },
	{ "[1, a]", 'A', 0, NULL },
	{ "{b: {c: d}}", 'F', 0, NULL },
	{ "'${HERMES_T_PORT}'", 'S', 0, "4711" },
};

START_TEST(argument)
{
	const struct argument *a = &arguments[_i];
	struct field f;
	char text[256];

	snprintf(text, sizeof text, "queues:\n- name: q\n  arguments:\n    first: 1\n    k: %s\n",
	    a->yaml);
	load(text);
	ck_assert_str_eq(problems_said(&p), "");
	ck_assert_ptr_nonnull(s.queues.item[0].arguments);
	ck_assert_int_eq(table_check(table_span(s.queues.item[0].arguments), TABLE_DEPTH_MAX), 0);
	ck_assert(table_find(table_span(s.queues.item[0].arguments), "k", &f));
	ck_assert_int_eq(f.kind, a->kind);
	if (a->kind == 'l')
		ck_assert_int_eq(f.integer, a->integer);
	if (a->kind == 't')
		ck_assert_int_eq(f.truth, a->integer);
	if (a->text != NULL)
		ck_assert(span_is(f.bytes, a->text));
}
END_TEST

static void
declare_in_new_broker(struct broker **b, struct wheel **w)
{
	*w = wheel_new(0);
	*b = broker_new(&s.config, *w, 0);
	settings_declare(&s, *b, &p);
}

START_TEST(topology_is_declared)
{
	struct broker *b;
	struct wheel *w;
	struct vhost *vh;
	struct exchange *x;

	load(topology);
	declare_in_new_broker(&b, &w);
	ck_assert_str_eq(problems_said(&p), "");
	vh = vhost_find(b, span_str("/"));
	ck_assert_ptr_nonnull(vh);
	ck_assert_ptr_nonnull(queue_find(vh, span_str("created")));
	x = exchange_find(vh, span_str("orders"));
	ck_assert_ptr_nonnull(x);
	ck_assert_uint_eq(x->binding_count, 2);
	vh = vhost_find(b, span_str("v2"));
	ck_assert_str_eq(vh->default_queue_type, "quorum");
	ck_assert_ptr_nonnull(queue_find(vh, span_str("created")));
	ck_assert(permission_vhost(user_find(b, SPAN_LIT("guest")), vh)); /* somebody can open it */
	broker_free(&b);
	wheel_free(&w);
}
END_TEST

static const struct wrong refusals[] = {
	{ "queues:\n- {name: q, vhost: none}\n",
	    "hermes.yml:2:4: no vhost 'none' here; add it to vhosts" },
	{ "exchanges:\n- {name: x, type: nonsense}\n",
	    "hermes.yml:2:4: exchange 'x': COMMAND_INVALID - " },
	{ "exchanges:\n- {name: amq.direct, type: fanout}\n",
	    "hermes.yml:2:4: exchange 'amq.direct': PRECONDITION_FAILED - " },
	{ "vhosts:\n- {name: v, default_queue_type: none-such}\n",
	    "hermes.yml:2:4: vhost 'v': PRECONDITION_FAILED - unknown default queue type "
	    "'none-such'" },
	{ "queues:\n- {name: amq.x}\n", "hermes.yml:2:4: queue 'amq.x': ACCESS_REFUSED - " },
	{ "queues:\n- name: q\n  arguments: {x-max-age: 5}\n",
	    "hermes.yml:2:3: queue 'q': PRECONDITION_FAILED - invalid arg 'x-max-age'" },
	{ "queues: [{name: q}, {name: q,\ndurable: false}]\n",
	    "hermes.yml:1:22: queue 'q': PRECONDITION_FAILED - inequivalent arg 'durable'" },
	{ "bindings:\n- {source: none, destination: q}\n",
	    "hermes.yml:2:4: binding from 'none': NOT_FOUND - " },
	{ "bindings:\n- {source: amq.topic, destination: q}\n",
	    "hermes.yml:2:4: binding from 'amq.topic': NOT_FOUND - " },
	{ "bindings:\n- {source: amq.topic, destination: q, destination_type: file}\n",
	    "hermes.yml:2:4: binding from 'amq.topic': destination_type must be queue or "
	    "exchange" },
};

START_TEST(topology_is_refused)
{
	struct broker *b;
	struct wheel *w;

	load(refusals[_i].text);
	ck_assert_str_eq(problems_said(&p), "");
	declare_in_new_broker(&b, &w);
	ck_assert_uint_eq(p.count, 1);
	ck_assert_msg(
	    strncmp(p.item[0], refusals[_i].said, strlen(refusals[_i].said)) == 0, "%s", p.item[0]);
	broker_free(&b);
	wheel_free(&w);
}
END_TEST

static const struct wrong again[] = {
	{ "vhosts: [{name: v}]\nqueues: [{name: q}]\nexchanges: [{name: x, type: topic}]\n"
	  "bindings: [{source: x, destination: q, routing_key: k}]\n",
	    "" },
	{ "queues: [{name: q, durable: false}]\n",
	    "hermes.yml:1:11: queue 'q': PRECONDITION_FAILED - inequivalent arg 'durable' for "
	    "queue "
	    "'q' in vhost '/': received 'false' but current is 'true'. It was there already; "
	    "delete it, or change its entry" },
	{ "exchanges: [{name: x, type: fanout}]\n",
	    "hermes.yml:1:14: exchange 'x': PRECONDITION_FAILED - inequivalent arg 'type' for "
	    "exchange 'x' in vhost '/': received 'fanout' but current is 'topic'. It was there "
	    "already; delete it, or change its entry" },
};

/* What the store had is there before the settings are looked at. */
START_TEST(topology_is_there_already)
{
	struct broker *b;
	struct wheel *w;

	load(again[0].text);
	declare_in_new_broker(&b, &w);
	load(again[_i].text);
	settings_declare(&s, b, &p);
	ck_assert_str_eq(problems_said(&p), again[_i].said);
	broker_free(&b);
	wheel_free(&w);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("settings");
	TCase *t = tcase_create("settings");
	SRunner *r = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, wrong_text, 0, COUNT_OF(wrongs));
	tcase_add_loop_test(t, broken_text, 0, COUNT_OF(broken));
	tcase_add_test(t, broken_behind_a_mistake);
	tcase_add_loop_test(t, nothing_is_fine, 0, COUNT_OF(nothings));
	tcase_add_test(t, values_arrive);
	tcase_add_loop_test(t, variable, 0, COUNT_OF(variables));
	tcase_add_test(t, variable_as_number);
	tcase_add_test(t, problems_are_bounded);
	tcase_add_test(t, depth_is_bounded);
	tcase_add_test(t, values_are_bounded);
	tcase_add_test(t, files);
	tcase_add_test(t, user_from_environment);
	tcase_add_test(t, topology_is_read);
	tcase_add_loop_test(t, argument, 0, COUNT_OF(arguments));
	tcase_add_test(t, topology_is_declared);
	tcase_add_loop_test(t, topology_is_refused, 0, COUNT_OF(refusals));
	tcase_add_loop_test(t, topology_is_there_already, 0, COUNT_OF(again));
	suite_add_tcase(suite, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
