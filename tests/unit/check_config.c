/* SPDX-License-Identifier: Apache-2.0
 * The key table walked row by row: every key can be set, every bound holds, every default is a value of its own row. */
#include "base/config.h"
#include "base/config_parse.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/machine.h"

static struct config c;
static char err[CONFIG_ERROR_MAX];

static void
setup(void)
{
	config_init(&c);
	err[0] = '\0';
}

static void
teardown(void)
{
	config_fini(&c);
}

static const struct cfg_key *
row(const char *path)
{
	const struct cfg_key *k = config_find(path, strlen(path));

	ck_assert_msg(k != NULL, "no key %s", path);
	return k;
}

static bool
is_number(const struct cfg_key *k)
{
	return k->parse != NULL;
}

START_TEST(table_is_sound)
{
	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		ck_assert_ptr_eq(
		    config_find(k->path, strlen(k->path)), k); /* no path stands twice */
		ck_assert_msg(k->text != NULL && k->text[0] != '\0', "%s has no help", k->path);
		if (k->type == CFG_U16 || k->type == CFG_U64 ||
		    (k->type == CFG_U32 && k->words == NULL)) {
			ck_assert_msg(
			    is_number(k) && k->kind != NULL, "%s cannot be read", k->path);
			ck_assert_msg(
			    k->def != NULL && k->min <= k->max && k->max > 0, "%s", k->path);
		}
		if (k->type == CFG_U16)
			ck_assert_uint_le(k->max, UINT16_MAX);
		if (k->type == CFG_U32)
			ck_assert_uint_le(k->max, UINT32_MAX);
		if (k->flags & CFG_RELOAD)
			ck_assert(k->type != CFG_STR && k->type != CFG_LIST);
		if (k->type == CFG_STR)
			ck_assert_msg(k->max > 0, "%s has no bound", k->path);
	}
}
END_TEST

START_TEST(every_default_is_a_value)
{
	char shown[1200];

	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if (k->def == NULL)
			continue;
		ck_assert_msg(config_set(&c, k, k->def, err), "%s", err);
		/* what is shown can be written again and is the same */
		config_show(&c, k, shown, sizeof shown);
		ck_assert_msg(shown[0] != '\0', "%s shows nothing", k->path);
		ck_assert_msg(config_set(&c, k, shown, err), "%s", err);
	}
	ck_assert_uint_eq(c.port, 5672);
	ck_assert_uint_eq(c.management_port, 15672);
	ck_assert(c.management_enabled);
	ck_assert_uint_eq(c.listen.count, 1);
	ck_assert_str_eq(c.listen.item[0], "::");
	ck_assert_uint_eq(c.log_level, LOG_INFO);
	ck_assert_uint_eq(c.frame_max, 131072);
	ck_assert_uint_eq(c.channel_max, 2047);
	ck_assert_uint_eq(c.heartbeat_s, 60);
	ck_assert_uint_eq(c.connections, 0);
	ck_assert_uint_eq(c.message_size, 128u << 20);
	ck_assert_uint_eq(c.handshake_ms, 10000);
	ck_assert_ptr_null(c.default_user);
	ck_assert_str_eq(c.data_dir, "/var/lib/hermes");
	ck_assert_str_eq(c.compat_version, "3.13.7");
}
END_TEST

START_TEST(every_bound_holds)
{
	char text[64];

	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];
		struct config before = c;

		if (!is_number(k))
			continue;
		/* written in words and percentages: see ones[] */
		if (k->parse == cfg_parse_sync || k->parse == cfg_parse_percent ||
		    k->parse == cfg_parse_free)
			continue;
		/* seconds and milliseconds are told apart by their unit; sizes and numbers are plain */
		const char *unit = k->parse == cfg_parse_ms ? "ms" : "";

		snprintf(text, sizeof text, "%" PRIu64 "%s", k->min, unit);
		ck_assert_msg(config_set(&c, k, text, err), "%s", err);
		snprintf(text, sizeof text, "%" PRIu64 "%s", k->max, unit);
		ck_assert_msg(config_set(&c, k, text, err), "%s", err);
		before = c;
		snprintf(text, sizeof text, "%" PRIu64 "%s", k->max + 1, unit);
		ck_assert_msg(!config_set(&c, k, text, err), "%s took %s", k->path, text);
		ck_assert_msg(
		    strstr(err, "out of range") != NULL && strstr(err, k->path) == err, "%s", err);
		if (k->min > 0) {
			snprintf(text, sizeof text, "%" PRIu64 "%s", k->min - 1, unit);
			ck_assert_msg(!config_set(&c, k, text, err), "%s took %s", k->path, text);
			ck_assert_msg(strstr(err, "out of range") != NULL, "%s", err);
		}
		ck_assert_msg(!config_set(&c, k, "99999999999999999999999", err), "%s", k->path);
		ck_assert_msg(!config_set(&c, k, "-1", err), "%s", k->path);
		ck_assert_msg(!config_set(&c, k, "", err), "%s", k->path);
		ck_assert_msg(!config_set(&c, k, "1 ", err), "%s", k->path);
		ck_assert_msg(!config_set(&c, k, "abc", err), "%s", k->path);
		ck_assert_msg(strstr(err, k->kind) != NULL, "%s", err);
		ck_assert_mem_eq(&before, &c, sizeof c); /* a refusal changes nothing */
	}
}
END_TEST

START_TEST(texts_are_bounded)
{
	static char text[8000];

	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if (k->type != CFG_STR)
			continue;
		ck_assert_uint_lt(k->max + 1, sizeof text);
		memset(text, 'x', sizeof text);
		text[0] = k->flags & CFG_PREFIX ? '/' : 'x';
		text[k->max + 1] = '\0';
		ck_assert_msg(!config_set(&c, k, text, err), "%s", k->path);
		text[k->max] = '\0';
		ck_assert_msg(config_set(&c, k, text, err), "%s", err);
		if (k->min > 0)
			ck_assert_msg(!config_set(&c, k, "", err), "%s", k->path);
	}
}
END_TEST

static const struct one {
	const char *path, *value;
	const char *error; /* NULL: taken */
} ones[] = {
	{ "store.sync", "always", NULL },
	{ "store.sync", "never", NULL },
	{ "store.sync", "50ms", NULL },
	{ "store.sync", "60s", NULL },
	{ "store.sync", "",
	    "store.sync: '' is not always, never, or a time from 1ms to 60s with its unit (such as "
	    "50ms)" },
	{ "store.sync", "0",
	    "store.sync: '0' is not always, never, or a time from 1ms to 60s with its unit (such "
	    "as 50ms)" },
	{ "store.sync", "50",
	    "store.sync: '50' is not always, never, or a time from 1ms to 60s with its unit (such "
	    "as 50ms)" },
	{ "store.sync", "61s",
	    "store.sync: '61s' is not always, never, or a time from 1ms to 60s with its unit (such "
	    "as 50ms)" },
	{ "store.journal_file_size", "auto", NULL },
	{ "store.journal_file_size", "32MiB", NULL },
	{ "store.journal_file_size", "Auto",
	    "store.journal_file_size: 'Auto' is not a size (such as 32MiB) or auto" },
	{ "store.retention_hours", "0", NULL },
	{ "store.retention_hours", "87601",
	    "store.retention_hours: 87601 is out of range: 0 to 87600" },
	{ "memory.spill", "50%", NULL },
	{ "memory.spill", "50", "memory.spill: '50' is not a percentage (such as 50%)" },
	{ "memory.spill", "0%", NULL },
	{ "memory.spill", "101%", "memory.spill: 101% is out of range: 0% to 100%" },
	{ "memory.deduplication", "1%", NULL },
	{ "memory.deduplication", "0%", "memory.deduplication: 0% is out of range: 1% to 100%" },
	{ "disk.min_free", "0", NULL },
	{ "disk.min_free", "0%", NULL },
	{ "disk.min_free", "1GiB", NULL },
	{ "disk.min_free", "0% 0",
	    "disk.min_free: '0% 0' is not a size or a percentage (such as 1GiB, 5%)" },
	{ "disk.min_free", "101%", "disk.min_free: 101% is out of range: 0 to 100%" },
	{ "tls.verify", "none", NULL },
	{ "tls.verify", "yes", "tls.verify: 'yes' is none of: none, optional, required" },
	{ "tls.key", "", NULL },
	{ "tls.certificate", "/etc/a b.pem", NULL },
	{ "tls.tickets", "8d", "tls.tickets: 8d is out of range: 0 to 604800" },
	{ "proxy.trusted", "10.0.0.0/8", NULL },
	{ "proxy.trusted", "10.0.0.1/8",
	    "proxy.trusted: '10.0.0.1/8' is not a network (such as 10.0.0.0/8, 2001:db8::/32) or "
	    "an IP "
	    "address" },
	{ "proxy.trusted", "",
	    "proxy.trusted: '' is not a network (such as 10.0.0.0/8, 2001:db8::/32) or an IP "
	    "address" },
	{ "prometheus.enabled", "false", NULL },
	{ "prometheus.enabled", "true", NULL },
	{ "prometheus.port", "65536", "prometheus.port: 65536 is out of range: 0 to 65535" },
	{ "management.path_prefix", "", NULL },
	{ "management.path_prefix", "/mq", NULL },
	{ "management.path_prefix", "/a-b/c.d~_", NULL },
	{ "management.path_prefix", "mq",
	    "management.path_prefix: 'mq' is not a path (such as /hermes: a slash before each "
	    "piece, none at the end)" },
	{ "management.path_prefix", "/mq/",
	    "management.path_prefix: '/mq/' is not a path (such as /hermes: a slash before each "
	    "piece, none at the end)" },
	{ "management.path_prefix", "/a/../b",
	    "management.path_prefix: '/a/../b' is not a path (such as /hermes: a slash before each "
	    "piece, none at the end)" },
	{ "management.path_prefix", "/a;Path=/",
	    "management.path_prefix: '/a;Path=/' is not a path (such as /hermes: a slash before "
	    "each "
	    "piece, none at the end)" },
	{ "node.port", "70000", "node.port: 70000 is out of range: 0 to 65535" },
	{ "node.port", "abc", "node.port: 'abc' is not a number" },
	{ "node.port", "+1", "node.port: '+1' is not a number" },
	{ "node.port", "0x10", "node.port: '0x10' is not a number" },
	{ "node.listen", "127.0.0.300",
	    "node.listen: '127.0.0.300' is neither an IP address (such as 127.0.0.1, ::1, or :: "
	    "for "
	    "all) nor a name" },
	{ "node.listen", "[::1]",
	    "node.listen: '[::1]' is neither an IP address (such as 127.0.0.1, ::1, or :: for all) "
	    "nor a name" },
	{ "node.listen", "localhost:5672",
	    "node.listen: 'localhost:5672' is neither an IP address (such as 127.0.0.1, ::1, or :: "
	    "for all) nor a name" },
	{ "node.listen", "a..b",
	    "node.listen: 'a..b' is neither an IP address (such as 127.0.0.1, ::1, or :: for all) "
	    "nor a name" },
	{ "node.listen", "",
	    "node.listen: '' is neither an IP address (such as 127.0.0.1, ::1, or :: for all) nor "
	    "a "
	    "name" },
	{ "node.listen", "localhost", NULL },
	{ "node.listen", "broker-1.example", NULL },
	{ "node.listen", "127.0.0.1", NULL },
	{ "node.listen", "fe80::1", NULL },
	{ "log.level", "loud", "log.level: 'loud' is none of: error, warning, info, debug" },
	{ "log.format", "json", NULL },
	{ "tcp.nodelay", "yes", "tcp.nodelay: 'yes' is neither true nor false" },
	{ "limits.heartbeat", "5m", NULL },
	{ "limits.heartbeat", "500ms",
	    "limits.heartbeat: '500ms' is not a time in whole seconds (such as 60, 60s, 5m)" },
	{ "limits.output", "1KiB", "limits.output: 1KiB is out of range: 16KiB to 1GiB" },
	{ "limits.handshake", "1h", "limits.handshake: 1h is out of range: 100ms to 600s" },
	{ "limits.connections", "auto", NULL },
	{ "limits.connections", "0", "limits.connections: 0 is out of range: 1 to 10000000" },
	{ "memory.limit", "101%",
	    "memory.limit: '101%' is not a size or a percentage (such as 2GiB, 40%)" },
	{ "memory.limit", "0%",
	    "memory.limit: '0%' is not a size or a percentage (such as 2GiB, 40%)" },
	{ "memory.limit", "256MiB", NULL },
	{ "memory.limit", "100%", NULL },
	{ "default_user.name", "", "default_user.name: must not be empty" },
	/* what is shown as JSON and in the log is text; paths and passwords may be any bytes */
	{ "node.name", "a\nb", "node.name: has control characters, or bytes that are no UTF-8" },
	{ "node.name", "a\xff", "node.name: has control characters, or bytes that are no UTF-8" },
	{ "node.name", "gr\xc3\xbc\xc3\x9f", NULL },
	{ "default_user.name", "\x7f",
	    "default_user.name: has control characters, or bytes that are no UTF-8" },
	{ "compat.product", "\xc0\x80",
	    "compat.product: has control characters, or bytes that are no UTF-8" },
	{ "compat.version", "3\t",
	    "compat.version: has control characters, or bytes that are no UTF-8" },
	{ "store.path", "/tmp/\xff", NULL },
	{ "default_user.password", "\x01\xff", NULL },
	/* other notations of YAML are refused, never read as something else */
	{ "node.port", "010", NULL }, /* ten: not octal */
	{ "node.port", "0o10", "node.port: '0o10' is not a number" },
	{ "node.port", "5_672", "node.port: '5_672' is not a number" },
	{ "node.port", "1:30", "node.port: '1:30' is not a number" },
	{ "node.port", "5672.0", "node.port: '5672.0' is not a number" },
	{ "tcp.nodelay", "True", "tcp.nodelay: 'True' is neither true nor false" },
	{ "memory.limit", "18446744073709551616",
	    "memory.limit: 18446744073709551616 is out of range: 1MiB to 1048576GiB" },
	{ "memory.limit", "17179869184GiB",
	    "memory.limit: 17179869184GiB is out of range: 1MiB to 1048576GiB" },
	{ "memory.limit", "-1GiB",
	    "memory.limit: '-1GiB' is not a size or a percentage (such as 2GiB, 40%)" },
};

START_TEST(one_value)
{
	const struct one *o = &ones[_i];
	bool taken = config_set(&c, row(o->path), o->value, err);

	ck_assert_msg(taken == (o->error == NULL), "%s: %s: %s", o->path, o->value, err);
	if (o->error != NULL)
		ck_assert_str_eq(err, o->error);
}
END_TEST

START_TEST(percent_of_memory)
{
	ck_assert(config_set(&c, row("memory.limit"), "50%", err));
	ck_assert_uint_eq(c.memory_limit, machine_memory() / 100 * 50);
}
END_TEST

START_TEST(addresses_are_bounded)
{
	const struct cfg_key *k = row("node.listen");

	config_clear(&c, k);
	for (int i = 0; i < CONFIG_LISTEN_MAX; i++)
		ck_assert(config_add(&c, k, "127.0.0.1", err));
	ck_assert(!config_add(&c, k, "127.0.0.1", err));
	ck_assert_uint_eq(c.listen.count, CONFIG_LISTEN_MAX);
	ck_assert(config_set(&c, k, "::1", err)); /* one replaces all */
	ck_assert_uint_eq(c.listen.count, 1);
}
END_TEST

static unsigned
mistakes(const struct cfg_key **k)
{
	const struct cfg_key *other;
	unsigned at = 0, n = 0;

	while (config_check(&c, &at, k, &other, err))
		n++;
	return n;
}

START_TEST(keys_together)
{
	const struct cfg_key *k;

	ck_assert_uint_eq(mistakes(&k), 0);
	c.output_max = c.output - 1;
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(k->path, "limits.output_max");
	c.output_max = c.output;
	c.http_bodies = c.http_body - 1;
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(k->path, "limits.http_bodies");
	c.http_bodies = c.http_body;
	ck_assert(config_set(&c, row("default_user.name"), "me", err));
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(err, "default_user.name: default_user needs a password as well");
	ck_assert(config_set(&c, row("default_user.password"), "secret", err));
	ck_assert_uint_eq(mistakes(&k), 0);
	c.management_port = c.port;
	c.journal_max = MIB(8);
	c.journal_file_size = MIB(8);
	ck_assert_uint_eq(mistakes(&k), 2);
	c.management_enabled = false;
	c.journal_max = MIB(32);
	ck_assert_uint_eq(mistakes(&k), 0);
	c.prometheus_port = c.port;
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(err, "prometheus.port: is the same as node.port");
	c.prometheus_enabled = false;
	ck_assert_uint_eq(mistakes(&k), 0);
	c.prometheus_enabled = c.management_enabled = true;
	c.prometheus_port = c.management_port = 1;
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(err, "prometheus.port: is the same as management.port");
}
END_TEST

START_TEST(tls_keys_together)
{
	const struct cfg_key *k;

	c.tls_port = 5671;
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(err, "tls.certificate: is needed where a port for TLS is opened");
	ck_assert(config_set(&c, row("tls.certificate"), "a", err));
	ck_assert_uint_eq(mistakes(&k), 0);
	ck_assert(config_set(&c, row("tls.key"), "k", err));
	ck_assert_uint_eq(mistakes(&k), 0);
	ck_assert(config_add(&c, row("tls.certificate"), "b", err));
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(k->path, "tls.key");
	ck_assert(config_set(&c, row("tls.key"), "", err));
	c.tls_verify = 1;
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(err, "tls.ca: is needed where tls.verify is not none");
	ck_assert(config_set(&c, row("tls.ca"), "ca", err));
	ck_assert_uint_eq(mistakes(&k), 0);
	c.management_tls_port = c.tls_port;
	ck_assert_uint_eq(mistakes(&k), 1);
	ck_assert_str_eq(err, "management.tls_port: is the same as tls.port");
	c.prometheus_tls_port = c.port;
	ck_assert_uint_eq(mistakes(&k), 2);
	ck_assert_str_eq(err, "prometheus.tls_port: is the same as node.port");
}
END_TEST

START_TEST(secrets_are_not_shown)
{
	char shown[64];

	ck_assert(config_set(&c, row("default_user.password"), "hunter2", err));
	config_show(&c, row("default_user.password"), shown, sizeof shown);
	ck_assert_str_eq(shown, "********");
}
END_TEST

START_TEST(names_of_nodes)
{
	char host[128], want[256];

	machine_host(host, sizeof host);
	config_complete(&c);
	snprintf(want, sizeof want, "hermes@%s", host);
	ck_assert_str_eq(c.node_given, want);
	ck_assert_str_eq(c.node_name, want);
	ck_assert(config_set(&c, row("node.name"), "one", err));
	config_complete(&c);
	snprintf(want, sizeof want, "one@%s", host);
	ck_assert_str_eq(c.node_given, "one");
	ck_assert_str_eq(c.node_name, want);
	ck_assert(config_set(&c, row("node.name"), "one@there", err));
	config_complete(&c);
	ck_assert_str_eq(c.node_name, "one@there");
}
END_TEST

START_TEST(reload_takes_what_it_may)
{
	struct config fresh;

	config_init(&fresh);
	ck_assert(config_set(&fresh, row("log.level"), "debug", err));
	ck_assert(config_set(&fresh, row("node.port"), "1", err));
	ck_assert(!config_same(&c, &fresh, row("node.port")));
	ck_assert(config_same(&c, &fresh, row("node.listen")));
	ck_assert(config_same(&c, &fresh, row("default_user.name")));
	config_reload(&c, &fresh);
	ck_assert_uint_eq(c.log_level, LOG_DEBUG);
	ck_assert_uint_eq(c.port, 5672);
	config_fini(&fresh);
}
END_TEST

/* --- machine --------------------------------------------------------------- */

static char root[64];

static void
put(const char *path, const char *text)
{
	char name[512];
	FILE *f;

	snprintf(name, sizeof name, "%s%s", root, path);
	for (char *p = name + strlen(root) + 1; *p != '\0'; p++)
		if (*p == '/') {
			*p = '\0';
			mkdir(name, 0700);
			*p = '/';
		}
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void
make_root(void)
{
	snprintf(root, sizeof root, "/tmp/hermes-machine-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	put("/proc/meminfo", "MemFree: 1 kB\nMemTotal:       1048576 kB\n");
}

static void
drop_root(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

#define GROUP "/sys/fs/cgroup"
static const struct group {
	const char *groups;  /* /proc/self/cgroup */
	const char *file[6]; /* path, text, ... */
	uint64_t want;
} groups[] = {
	{ "0::/\n", { NULL }, 1ull << 30 },
	{ "0::/a/b\n", { GROUP "/a/b/memory.max", "536870912\n" }, 512ull << 20 },
	/* the least on the way to the root counts */
	{ "0::/a/b\n",
	    { GROUP "/a/b/memory.max", "536870912\n", GROUP "/a/memory.max", "1048576\n" },
	    1 << 20 },
	{ "0::/a/b\n", { GROUP "/a/b/memory.max", "max\n", GROUP "/memory.max", "2097152\n" },
	    2 << 20 },
	/* a limit above what the machine has is none */
	{ "0::/a\n", { GROUP "/a/memory.max", "99999999999999\n" }, 1ull << 30 },
	/* a container that sees the host's path: only the root is there */
	{ "0::/../../x\n", { GROUP "/memory.max", "3145728\n" }, 3 << 20 },
	{ "5:cpu,memory:/d\n0::/\n", { GROUP "/memory/d/memory.limit_in_bytes", "4194304\n" },
	    4 << 20 },
	{ "5:memory:/d\n", { GROUP "/memory/memory.limit_in_bytes", "9223372036854771712\n" },
	    1ull << 30 },
	{ "5:memory:/host/path\n", { GROUP "/memory/memory.limit_in_bytes", "5242880\n" },
	    5 << 20 },
	/* other controllers have no say */
	{ "5:memoryx,cpu:/d\n", { GROUP "/memory/d/memory.limit_in_bytes", "4194304\n" },
	    1ull << 30 },
	{ "nonsense\n:\n5:memory\n\n", { NULL }, 1ull << 30 },
	{ "0::/a\n", { GROUP "/a/memory.max", "rubbish\n" }, 1ull << 30 },
};

START_TEST(memory_of_a_group)
{
	const struct group *g = &groups[_i];

	make_root();
	put("/proc/self/cgroup", g->groups);
	for (size_t i = 0; i + 1 < COUNT_OF(g->file) && g->file[i] != NULL; i += 2)
		put(g->file[i], g->file[i + 1]);
	ck_assert_uint_eq(machine_memory_at(root), g->want);
	drop_root();
}
END_TEST

START_TEST(memory_of_this_machine)
{
	ck_assert_uint_gt(machine_memory(), 16 << 20);
	ck_assert_uint_gt(machine_memory_at("/nowhere"), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("config");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, table_is_sound);
	tcase_add_test(t, every_default_is_a_value);
	tcase_add_test(t, every_bound_holds);
	tcase_add_test(t, texts_are_bounded);
	tcase_add_loop_test(t, one_value, 0, COUNT_OF(ones));
	tcase_add_test(t, percent_of_memory);
	tcase_add_test(t, addresses_are_bounded);
	tcase_add_test(t, keys_together);
	tcase_add_test(t, tls_keys_together);
	tcase_add_test(t, secrets_are_not_shown);
	tcase_add_test(t, names_of_nodes);
	tcase_add_test(t, reload_takes_what_it_may);
	tcase_add_loop_test(t, memory_of_a_group, 0, COUNT_OF(groups));
	tcase_add_test(t, memory_of_this_machine);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
