/* SPDX-License-Identifier: Apache-2.0
 * The key table and what is done with a row. */
#include "base/config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_parse.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/net_range.h"
#include "base/utf8.h"

enum { FILE_NAME_MAX = 4000, HOST_NAME_BYTES = 253 };

static const char *const level_words[] = { "error", "warning", "info", "debug", NULL };
static const char *const format_words[] = { "text", "json", NULL };
static const char *const verify_words[] = { "none", "optional", "required", NULL };
static const char *const login_from_words[] = { "common_name", "distinguished_name",
	"subject_alternative_name", NULL };
static const char *const san_words[] = { "dns", "email", "uri", "ip", "other_name", NULL };
static const char *const version_words[] = { "1.2", "1.3", NULL };
static const char *const password_words[] = { "sha256", "sha512", "pbkdf2", NULL };

/* The kind of storage follows from the field itself. */
#define CFG(p, field) \
	.path = p, .offset = offsetof(struct config, field), \
	.type = _Generic(((struct config *)0)->field, bool: CFG_BOOL, uint16_t: CFG_U16, \
	    uint32_t: CFG_U32, uint64_t: CFG_U64, char *: CFG_STR, struct config_list: CFG_LIST)
#define NUMBER .parse = cfg_parse_number, .kind = "a number"
#define SIZE .parse = cfg_parse_size, .kind = "a size (such as 64KiB, 1MiB, 2GiB)"
#define MS .parse = cfg_parse_ms, .kind = "a time (such as 500ms, 10s, 5m, 1h)"
#define SECONDS .parse = cfg_parse_seconds, .kind = "a time in whole seconds (such as 60, 60s, 5m)"

/* In the order of hermes.yml. */
const struct cfg_key cfg_keys[] = {
	{ CFG("node.name", node_given), .min = 1, .max = 255, .flags = CFG_SHOWN,
	    .text = "Name of the node. Without @ it is shown over HTTP as NAME@HOST. Default: "
	            "hermes@HOST." },
	{ CFG("node.listen", listen), .def = "::",
	    .text =
	        "Address or name, or list of them, for AMQP clients. \"::\" is every address, "
	        "IPv4 and IPv6; a name is looked up at the start, and all its addresses that the "
	        "machine has count." },
	{ CFG("node.port", port), NUMBER, .def = "5672", .max = UINT16_MAX,
	    .text = "Port for AMQP clients; 0 opens none." },
	{ CFG("tls.port", tls_port), NUMBER, .def = "0", .max = UINT16_MAX,
	    .text =
	        "Port for AMQP over TLS (5671 is usual), on the addresses of node.listen; 0 opens "
	        "none." },
	{ CFG("tls.certificate", tls_certificates), .flags = CFG_FILES,
	    .text =
	        "File with a certificate and those between it and its authority (PEM), or a list "
	        "of such files: a client gets the one for the name that it asks for, others the "
	        "first. Read again on SIGHUP." },
	{ CFG("tls.key", tls_keys), .flags = CFG_FILES,
	    .text = "File with the private key (PEM, without a password); a list in the order of "
	            "tls.certificate. Not given: the keys are in those files." },
	{ CFG("tls.ca", tls_ca), .max = 4000,
	    .text =
	        "File with the authorities that client certificates are checked against (PEM)." },
	{ CFG("tls.verify", tls_verify), .def = "none", .words = verify_words, .flags = CFG_RELOAD,
	    .text = "Client certificates. none: they are not asked for. optional: one that is "
	            "shown has "
	            "to be good. required: there is no connection without one." },
	{ CFG("tls.login_from", tls_login_from), .def = "common_name", .words = login_from_words,
	    .flags = CFG_RELOAD,
	    .text = "What of a client's certificate is the user's name for the mechanism EXTERNAL: "
	            "common_name, distinguished_name (RabbitMQ's default) or "
	            "subject_alternative_name." },
	{ CFG("tls.login_san", tls_login_san), .def = "dns", .words = san_words,
	    .flags = CFG_RELOAD,
	    .text = "Which kind of alternative name: dns, email, uri, ip or other_name." },
	{ CFG("tls.login_san_index", tls_login_san_index), NUMBER, .def = "0", .max = 1000,
	    .flags = CFG_RELOAD, .text = "Which one of that kind, from 0." },
	{ CFG("tls.min_version", tls_min_version), .def = "1.2", .words = version_words,
	    .flags = CFG_RELOAD, .text = "The oldest version of TLS that is taken: 1.2 or 1.3." },
	{ CFG("tls.tickets", tls_tickets_s), SECONDS, .def = "1h", .max = 7 * 24 * 3600,
	    .flags = CFG_RELOAD,
	    .text =
	        "How long a client may resume a session, which spares both the costly half of a "
	        "handshake; 0: never. A new key seals them as often; the one before still opens." },
	{ CFG("tls.handshakes", tls_handshakes), NUMBER, .def = "4096", .min = 16, .max = 1000000,
	    .flags = CFG_RELOAD,
	    .text =
	        "Connections that may be between accept and the end of their handshake; beyond it "
	        "the oldest that waits for its client goes." },
	{ CFG("proxy.trusted", proxy_trusted), .flags = CFG_RANGES,
	    .text = "Networks, or one, of load balancers (such as 10.0.0.0/8): their connections "
	            "have to "
	            "begin with a header of the PROXY protocol, version 1 or 2, whose address "
	            "counts as "
	            "the client's. Others' headers are refused. Default: nobody." },
	{ CFG("proxy.management", proxy_management), .def = "false",
	    .text = "Whether that is so on the ports for HTTP, too." },
	{ CFG("management.enabled", management_enabled), .def = "true",
	    .text = "Whether the HTTP API is there." },
	{ CFG("management.listen", management_listen),
	    .def = "::", .text = "Address or name, or list of them, for the HTTP API." },
	{ CFG("management.port", management_port), NUMBER, .def = "15672", .max = UINT16_MAX,
	    .text = "Port for the HTTP API; 0 opens none." },
	{ CFG("management.password_hash", password_kind), .def = "sha256", .words = password_words,
	    .text = "How passwords that are set over HTTP are kept: sha256 and sha512 as RabbitMQ "
	            "does, which its tools read and move; pbkdf2 makes stolen hashes costly to "
	            "guess." },
	{ CFG("management.tls_port", management_tls_port), NUMBER, .def = "0", .max = UINT16_MAX,
	    .text = "Port for the HTTP API over TLS (15671 is usual); 0 opens none." },
	{ CFG("management.path_prefix", management_prefix), .max = 200, .flags = CFG_PREFIX,
	    .text = "Path that stands before every path of the HTTP API and the console, such as "
	            "/hermes: for a reverse proxy that passes paths on as they are. Default: "
	            "none." },
	{ CFG("prometheus.enabled", prometheus_enabled), .def = "true",
	    .text = "Whether metrics have a port of their own, which asks for no login." },
	{ CFG("prometheus.listen", prometheus_listen),
	    .def = "::", .text = "Address or name, or list of them, for metrics." },
	{ CFG("prometheus.port", prometheus_port), NUMBER, .def = "15692", .max = UINT16_MAX,
	    .text = "Port for metrics, below /metrics; 0 opens none." },
	{ CFG("prometheus.tls_port", prometheus_tls_port), NUMBER, .def = "0", .max = UINT16_MAX,
	    .text = "Port for metrics over TLS (15691 is usual); 0 opens none." },
	{ CFG("log.level", log_level), .def = "info", .words = level_words, .flags = CFG_RELOAD,
	    .text = "error, warning, info or debug." },
	{ CFG("log.file", log_file), .def = "-", .min = 1, .max = 4000,
	    .text = "File that the log is appended to; \"-\" is standard error. SIGHUP opens it "
	            "again." },
	{ CFG("log.format", log_format), .def = "text", .words = format_words,
	    .text = "text, or json: one object a line." },
	{ CFG("store.path", data_dir), .def = "/var/lib/hermes", .min = 1, .max = 4000,
	    .text = "Data folder of the node; made when it is not there. No two nodes share one." },
	{ CFG("store.sync", store_sync), .parse = cfg_parse_sync,
	    .kind = "always, never, or a time from 1ms to 60s with its unit (such as 50ms)",
	    .def = "always", .max = UINT32_MAX,
	    .text = "What the confirm of a persistent message waits for. always: that it is "
	            "synced to disk. A time: that it is written; a sync follows within that time. "
	            "never: that it is written. What is written survives the end of the process, "
	            "what is synced that of the machine. Of a queue: its argument x-sync." },
	{ CFG("store.journal_file_size", journal_file_size), .parse = cfg_parse_auto_size,
	    .kind = "a size (such as 32MiB) or auto", .def = "auto", .min = MIB(1), .max = GIB(1),
	    .text = "Size of one file of the journal; auto: 32 MiB, less on a small disk." },
	{ CFG("store.journal_max", journal_max), SIZE, .def = "1GiB", .min = MIB(8),
	    .max = GIB(1024),
	    .text = "Size that the whole journal may have; beyond it publishers of persistent "
	            "messages wait." },
	{ CFG("store.queue_messages", queue_messages), NUMBER, .def = "65536", .min = 1024,
	    .max = 100000000,
	    .text = "Messages that a durable queue keeps in memory, unacknowledged ones among "
	            "them; the rest lies on disk only." },
	{ CFG("store.queue_bytes", queue_bytes), SIZE, .def = "32MiB", .min = MIB(1),
	    .max = GIB(1024), .text = "The same in bytes of message bodies." },
	{ CFG("store.retention_hours", retention_hours), NUMBER, .def = "0", .max = 87600,
	    .text = "How long a message that nobody takes is kept, in hours; 0: for ever." },
	{ CFG("memory.limit", memory_limit), .parse = cfg_parse_memory,
	    .kind = "a size or a percentage (such as 2GiB, 40%)", .def = "40%", .min = MIB(1),
	    .max = GIB(1 << 20),
	    .text = "Memory for messages, above which publishers are held back: a size, or a "
	            "percentage of what the "
	            "control group or the machine has." },
	{ CFG("memory.spill", memory_spill), .parse = cfg_parse_percent,
	    .kind = "a percentage (such as 50%)", .def = "50%", .max = 100,
	    .text = "Part of memory.limit above which long queues go to disk; 0%: they never do." },
	{ CFG("memory.deduplication", memory_deduplication), .parse = cfg_parse_percent,
	    .kind = "a percentage (such as 25%)", .def = "25%", .min = 1, .max = 100,
	    .text = "Part of memory.limit that the keys of deduplication may take, 32 bytes each, "
	            "also never more than a third of store.journal_max; beyond it the oldest keys "
	            "are forgotten early." },
	{ CFG("disk.min_free", disk_min_free), .parse = cfg_parse_free,
	    .kind = "a size or a percentage (such as 1GiB, 5%)", .def = "5%",
	    .max = CONFIG_SHARE + 100,
	    .text = "Free space on the disk of store.path below which publishers of persistent "
	            "messages wait: a size, or a percentage of the disk." },
	{ CFG("limits.frame_max", frame_max), SIZE, .def = "131072", .min = KIB(4), .max = KIB(128),
	    .text = "Largest frame, in bytes, proposed in connection.tune." },
	{ CFG("limits.channel_max", channel_max), NUMBER, .def = "2047", .min = 1,
	    .max = UINT16_MAX, .text = "Channels of a connection, proposed in connection.tune." },
	{ CFG("limits.heartbeat", heartbeat_s), SECONDS, .def = "60", .max = UINT16_MAX,
	    .flags = CFG_RELOAD,
	    .text = "Heartbeat proposed in connection.tune, in seconds; 0 proposes none." },
	{ CFG("limits.connections", connections), .parse = cfg_parse_auto,
	    .kind = "a number or auto", .def = "auto", .min = 1, .max = 10000000,
	    .text = "Connections; auto: what the limit of descriptors allows less a reserve." },
	{ CFG("limits.message_size", message_size), SIZE, .def = "128MiB", .min = 1, .max = GIB(4),
	    .text = "Largest message body; larger ones are refused at their header." },
	{ CFG("limits.unacknowledged", unacknowledged), NUMBER, .def = "65535", .min = 1,
	    .max = 1000000000,
	    .text = "Unacknowledged deliveries of a consumer whose client set no prefetch." },
	{ CFG("limits.quorum_delivery_limit", quorum_delivery_limit), NUMBER, .def = "0",
	    .max = 1000000000,
	    .text = "How often a message of a quorum queue that has no x-delivery-limit may come "
	            "back; 0: no limit (x-delivery-limit 0: what comes back is a dead letter)." },
	{ CFG("limits.consumer_timeout", consumer_timeout_ms), MS, .def = "0", .max = 315360000000,
	    .text = "How long a delivery may stay unacknowledged, where neither consumer nor queue "
	            "says so (x-consumer-timeout): then the consumer is cancelled and the message "
	            "goes back. 0: for ever." },
	{ CFG("limits.handshake", handshake_ms), MS, .def = "10s", .min = 100, .max = 600000,
	    .text = "Time that a client has from connecting to connection.open." },
	{ CFG("limits.output", output), SIZE, .def = "1MiB", .min = KIB(16), .max = GIB(1),
	    .text = "Output that waits for one connection, above which it gets no deliveries." },
	{ CFG("limits.output_max", output_max), SIZE, .def = "4MiB", .min = KIB(64), .max = GIB(4),
	    .text = "Output that waits for one connection, above which it is not read." },
	{ CFG("limits.content_in_flight", content_in_flight), SIZE, .def = "256MiB",
	    .min = KIB(128), .max = GIB(1024),
	    .text = "Messages of one connection that are not yet complete." },
	{ CFG("limits.http_body", http_body), SIZE, .def = "20MiB", .min = KIB(64), .max = GIB(1),
	    .text = "Body of one HTTP request that imports definitions or publishes; others may "
	            "have 1 MiB." },
	{ CFG("limits.http_bodies", http_bodies), SIZE, .def = "64MiB", .min = MIB(1),
	    .max = GIB(64),
	    .text = "Bodies of all HTTP requests that are coming in or wait to be read." },
	{ CFG("limits.http_values", http_values), SIZE, .def = "512MiB", .min = MIB(2),
	    .max = GIB(1024),
	    .text = "Memory that the values in long JSON bodies may take up together, at most half "
	            "of memory.limit; a body that alone holds more is refused with 413." },
	{ CFG("limits.consumers", consumers), NUMBER, .def = "0", .max = UINT32_MAX,
	    .text = "Consumers of the node; 0: no limit." },
	{ CFG("limits.queues", queues), NUMBER, .def = "0", .max = UINT32_MAX,
	    .text = "Queues of the node; 0: no limit." },
	{ CFG("limits.tails", tails), NUMBER, .def = "32", .max = 128, .flags = CFG_RELOAD,
	    .text = "Exchanges and queues that may be watched at a time over HTTP "
	            "(/api/hermes/tail), 256 KiB each; 0: none." },
	{ CFG("tcp.nodelay", tcp_nodelay), .def = "true",
	    .text = "TCP_NODELAY on accepted connections." },
	{ CFG("tcp.keepalive", tcp_keepalive), .def = "true",
	    .text = "SO_KEEPALIVE on accepted connections." },
	{ CFG("tcp.keepalive_idle", tcp_keepalive_idle_s), SECONDS, .def = "0", .max = 32767,
	    .text =
	        "How long a connection is silent before the kernel asks whether its peer is still "
	        "there; 0: as the system is set (two hours)." },
	{ CFG("tcp.keepalive_interval", tcp_keepalive_interval_s), SECONDS, .def = "0",
	    .max = 32767, .text = "Time between such questions; 0: as the system is set." },
	{ CFG("tcp.keepalive_count", tcp_keepalive_count), NUMBER, .def = "0", .max = 127,
	    .text =
	        "Questions without an answer after which the connection ends; 0: as the system is "
	        "set." },
	{ CFG("tcp.backlog", tcp_backlog), NUMBER, .def = "1024", .min = 1, .max = 65535,
	    .text = "Connections that the kernel holds until they are accepted." },
	{ CFG("default_user.name", default_user), .min = 1, .max = 255, .flags = CFG_SHOWN,
	    .text = "Administrator that stands in place of admin and guest." },
	{ CFG("default_user.password", default_password), .min = 1, .max = 1024,
	    .flags = CFG_SECRET, .text = "Password of default_user.name." },
	{ CFG("default_user.remote", default_user_remote), .def = "false",
	    .text = "Whether default_user may come from other machines." },
	{ CFG("default_user.vhost", default_vhost), .min = 1, .max = 255, .flags = CFG_SHOWN,
	    .text = "Vhost that the first start makes in place of /." },
	{ CFG("definitions.file", definitions_file), .max = 4000, .flags = CFG_SHOWN,
	    .text = "File of definitions (JSON, as RabbitMQ and Hermes export them, plain or "
	            "packed with gzip) that is imported at each start." },
	{ CFG("compat.product", compat_product), .def = "RabbitMQ", .min = 1, .max = 64,
	    .flags = CFG_SHOWN, .text = "Product that clients and tools are told." },
	{ CFG("compat.version", compat_version), .def = "3.13.7", .min = 1, .max = 64,
	    .flags = CFG_SHOWN, .text = "Version that clients and tools are told." },
};
const size_t cfg_key_count = COUNT_OF(cfg_keys);

const struct cfg_key *
config_find(const char *path, size_t n)
{
	for (size_t i = 0; i < cfg_key_count; i++)
		if (strlen(cfg_keys[i].path) == n && memcmp(cfg_keys[i].path, path, n) == 0)
			return &cfg_keys[i];
	return NULL;
}

static void *
field_of(const struct config *c, const struct cfg_key *k)
{
	return (char *)(uintptr_t)c + k->offset;
}

static bool PRINTF(3, 4) fail(char err[], const struct cfg_key *k, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(err, CONFIG_ERROR_MAX, "%s: ", k->path);

	assert(n > 0 && n < CONFIG_ERROR_MAX);
	va_start(ap, fmt);
	vsnprintf(err + n, (size_t)(CONFIG_ERROR_MAX - n), fmt, ap);
	va_end(ap);
	return false;
}

static bool
is_auto(const struct cfg_key *k)
{
	return k->parse == cfg_parse_auto || k->parse == cfg_parse_auto_size;
}

static bool
set_number(struct config *c, const struct cfg_key *k, const char *value, char err[])
{
	void *field = field_of(c, k);
	char least[32], most[32];
	uint64_t v = 0;
	int rc = k->parse(k, value, &v);

	if (rc == -EINVAL)
		return fail(err, k, "'%.64s' is not %s", value, k->kind);
	if (rc != 0 || v < k->min || v > k->max) {
		cfg_show_number(k, k->min, least, sizeof least);
		cfg_show_number(k, k->max, most, sizeof most);
		return fail(err, k, "%.64s is out of range: %s to %s", value, least, most);
	}
	if (is_auto(k) && strcmp(value, "auto") == 0)
		v = 0;
	if (k->type == CFG_U16)
		*(uint16_t *)field = (uint16_t)v;
	else if (k->type == CFG_U32)
		*(uint32_t *)field = (uint32_t)v;
	else
		*(uint64_t *)field = v;
	return true;
}

static bool
set_word(struct config *c, const struct cfg_key *k, const char *value, char err[])
{
	char list[128];
	size_t used = 0;

	for (uint32_t i = 0; k->words[i] != NULL; i++) {
		int n;

		if (strcmp(k->words[i], value) == 0) {
			*(uint32_t *)field_of(c, k) = i;
			return true;
		}
		n = snprintf(
		    list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", k->words[i]);
		assert(n > 0 && (size_t)n < sizeof list - used);
		used += (size_t)n;
	}
	return fail(err, k, "'%.64s' is none of: %s", value, list);
}

static bool
set_bool(struct config *c, const struct cfg_key *k, const char *value, char err[])
{
	bool yes = strcmp(value, "true") == 0;

	if (!yes && strcmp(value, "false") != 0)
		return fail(err, k, "'%.64s' is neither true nor false", value);
	*(bool *)field_of(c, k) = yes;
	return true;
}

static bool
is_printable(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return utf8_valid(s, n);
}

/* "", or pieces of letters, digits and -._~, each behind a slash; none is . or .. */
static bool
is_prefix(const char *s)
{
	while (*s == '/') {
		size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		                         "0123456789-._~");

		if (n == 0 || strspn(s + 1, ".") == n)
			return false;
		s += 1 + n;
	}
	return *s == '\0';
}

static bool
set_text(struct config *c, const struct cfg_key *k, const char *value, char err[])
{
	char **field = field_of(c, k);
	size_t n = strlen(value);

	if (n < k->min)
		return fail(err, k, "must not be empty");
	if (n > k->max)
		return fail(err, k, "is longer than %" PRIu64 " bytes", k->max);
	if (k->flags & CFG_SHOWN && !is_printable(value, n))
		return fail(err, k, "has control characters, or bytes that are no UTF-8");
	if (k->flags & CFG_PREFIX && !is_prefix(value))
		return fail(err, k,
		    "'%.64s' is not a path (such as /hermes: a slash before each piece, none at "
		    "the "
		    "end)",
		    value);
	free(*field);
	*field = xstrdup(value);
	return true;
}

bool
config_set(struct config *c, const struct cfg_key *k, const char *value, char err[])
{
	if (k->words != NULL)
		return set_word(c, k, value, err);
	switch (k->type) {
	case CFG_BOOL: return set_bool(c, k, value, err);
	case CFG_U16:
	case CFG_U32:
	case CFG_U64: return set_number(c, k, value, err);
	case CFG_STR: return set_text(c, k, value, err);
	case CFG_LIST: break;
	}
	config_clear(c, k);
	/* "" is how a file is taken back that a template has */
	return (k->flags & CFG_FILES && value[0] == '\0') || config_add(c, k, value, err);
}

/* Of a host, as DNS has them. A last part that begins with a digit is a mistyped address. */
static bool
is_host_name(const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
	                  others[] = "0123456789-_.";
	const char *dot = strrchr(s, '.'), *last = dot != NULL ? dot + 1 : s;
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (strchr(letters, s[i]) == NULL && strchr(others, s[i]) == NULL)
			return false;
	return n <= HOST_NAME_BYTES && strchr("-.", s[0]) == NULL && strstr(s, "..") == NULL &&
	       last[0] != '\0' && strchr(letters, last[0]) != NULL;
}

static bool
check_item(const struct cfg_key *k, const char *value, char err[])
{
	unsigned char address[sizeof(struct in6_addr)];
	struct net_range range;

	if (k->flags & CFG_FILES) {
		if (value[0] == '\0')
			return fail(err, k, "must not be empty");
		return strlen(value) <= FILE_NAME_MAX ||
		       fail(err, k, "is longer than %d bytes", FILE_NAME_MAX);
	}
	if (k->flags & CFG_RANGES)
		return net_range_parse(value, &range) ||
		       fail(err, k,
		           "'%.64s' is not a network (such as 10.0.0.0/8, 2001:db8::/32) or an IP "
		           "address",
		           value);
	if (inet_pton(AF_INET, value, address) == 1 || inet_pton(AF_INET6, value, address) == 1 ||
	    is_host_name(value))
		return true;
	return fail(err, k,
	    "'%.64s' is neither an IP address (such as 127.0.0.1, ::1, or :: for all) nor a name",
	    value);
}

bool
config_add(struct config *c, const struct cfg_key *k, const char *value, char err[])
{
	struct config_list *list = field_of(c, k);

	assert(k->type == CFG_LIST);
	if (!check_item(k, value, err))
		return false;
	if (list->count == CONFIG_LISTEN_MAX)
		return fail(err, k, "has more than %d %s", CONFIG_LISTEN_MAX,
		    k->flags & CFG_FILES    ? "files"
		    : k->flags & CFG_RANGES ? "networks"
		                            : "addresses");
	list->item[list->count++] = xstrdup(value);
	return true;
}

void
config_clear(struct config *c, const struct cfg_key *k)
{
	struct config_list *list = field_of(c, k);

	if (k->type != CFG_LIST)
		return;
	while (list->count > 0)
		free(list->item[--list->count]);
}

void
config_init(struct config *c)
{
	char err[CONFIG_ERROR_MAX];

	*c = (struct config){ 0 };
	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if (k->def != NULL && !config_set(c, k, k->def, err)) {
			/* a percentage of very little memory */
			assert(k->parse == cfg_parse_memory);
			c->memory_limit = k->min;
		}
	}
}

void
config_fini(struct config *c)
{
	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if (k->type == CFG_STR)
			free(*(char **)field_of(c, k));
		config_clear(c, k);
	}
	free(c->node_name);
	*c = (struct config){ 0 };
}

enum port { PORT_AMQP, PORT_AMQPS, PORT_HTTP, PORT_HTTPS, PORT_METRICS, PORT_METRICS_TLS, PORTS };
static const char *const port_paths[PORTS] = { "node.port", "tls.port", "management.port",
	"management.tls_port", "prometheus.port", "prometheus.tls_port" };

static bool
output_is_too_much(const struct config *c)
{
	return c->output_max < c->output;
}

static bool
bodies_are_too_small(const struct config *c)
{
	return c->http_bodies < c->http_body;
}

static bool
journal_is_too_small(const struct config *c)
{
	return c->journal_max / 4 < c->journal_file_size;
}

static bool
password_is_missing(const struct config *c)
{
	return c->default_user != NULL && c->default_password == NULL;
}

static bool
name_is_missing(const struct config *c)
{
	return c->default_user == NULL && c->default_password != NULL;
}

static bool
has_tls(const struct config *c)
{
	return c->tls_port != 0 || (c->management_enabled && c->management_tls_port != 0) ||
	       (c->prometheus_enabled && c->prometheus_tls_port != 0);
}

static bool
certificate_is_missing(const struct config *c)
{
	return has_tls(c) && c->tls_certificates.count == 0;
}

static bool
keys_are_not_theirs(const struct config *c)
{
	return c->tls_keys.count != 0 && c->tls_keys.count != c->tls_certificates.count;
}

static bool
ca_is_missing(const struct config *c)
{
	return c->tls_verify != 0 && (c->tls_ca == NULL || c->tls_ca[0] == '\0');
}

/* The ports as the settings have them; 0: not opened. */
static uint16_t
port_of(const struct config *c, enum port p)
{
	switch (p) {
	case PORT_AMQP: return c->port;
	case PORT_AMQPS: return c->tls_port;
	case PORT_HTTP: return c->management_enabled ? c->management_port : 0;
	case PORT_HTTPS: return c->management_enabled ? c->management_tls_port : 0;
	case PORT_METRICS: return c->prometheus_enabled ? c->prometheus_port : 0;
	default: return c->prometheus_enabled ? c->prometheus_tls_port : 0;
	}
}

/* Are the n-th two of them one? False behind the last, which *more says. */
static bool
ports_are_one(const struct config *c, unsigned n, enum port *a, enum port *b, bool *more)
{
	for (unsigned i = 1; i < PORTS; i++)
		for (unsigned k = 0; k < i; k++) {
			if (n-- != 0)
				continue;
			*a = i;
			*b = k;
			return port_of(c, i) != 0 && port_of(c, i) == port_of(c, k);
		}
	*more = false;
	return false;
}

static const struct rule {
	bool (*is_broken)(const struct config *c);
	const char *path, *other, *text;
} rules[] = {
	{ output_is_too_much, "limits.output_max", "limits.output",
	    "must not be less than limits.output" },
	{ bodies_are_too_small, "limits.http_bodies", "limits.http_body",
	    "must not be less than limits.http_body" },
	{ journal_is_too_small, "store.journal_max", "store.journal_file_size",
	    "must be at least four times store.journal_file_size" },
	{ password_is_missing, "default_user.name", "default_user.password",
	    "default_user needs a password as well" },
	{ name_is_missing, "default_user.password", "default_user.name",
	    "default_user needs a name as well" },
	{ certificate_is_missing, "tls.certificate", "tls.port",
	    "is needed where a port for TLS is opened" },
	{ keys_are_not_theirs, "tls.key", "tls.certificate",
	    "there must be as many as in tls.certificate, in the same order" },
	{ ca_is_missing, "tls.ca", "tls.verify", "is needed where tls.verify is not none" },
};

bool
config_check(const struct config *c, unsigned *n, const struct cfg_key **k,
    const struct cfg_key **other, char err[])
{
	enum port a, b;
	bool more = true;

	while (*n < COUNT_OF(rules)) {
		const struct rule *r = &rules[(*n)++];

		if (!r->is_broken(c))
			continue;
		*k = config_find(r->path, strlen(r->path));
		*other = config_find(r->other, strlen(r->other));
		return !fail(err, *k, "%s", r->text);
	}
	while (more) {
		if (!ports_are_one(c, (*n)++ - (unsigned)COUNT_OF(rules), &a, &b, &more))
			continue;
		*k = config_find(port_paths[a], strlen(port_paths[a]));
		*other = config_find(port_paths[b], strlen(port_paths[b]));
		return !fail(err, *k, "is the same as %s", (*other)->path);
	}
	return false;
}

void
config_complete(struct config *c)
{
	char host[128];

	machine_host(host, sizeof host);
	if (c->node_given == NULL || c->node_given[0] == '\0') {
		free(c->node_given);
		c->node_given = xasprintf("hermes@%s", host);
	}
	free(c->node_name);
	c->node_name = strchr(c->node_given, '@') != NULL ? xstrdup(c->node_given)
	                                                  : xasprintf("%s@%s", c->node_given, host);
}

static uint64_t
number_of(const struct config *c, const struct cfg_key *k)
{
	const void *field = field_of(c, k);

	switch (k->type) {
	case CFG_BOOL: return *(const bool *)field;
	case CFG_U16: return *(const uint16_t *)field;
	case CFG_U32: return *(const uint32_t *)field;
	case CFG_U64: return *(const uint64_t *)field;
	default: return 0;
	}
}

static void
show_list(const struct config_list *list, char *out, size_t n)
{
	size_t used = 0;

	for (uint32_t i = 0; i < list->count && used < n; i++)
		used += (size_t)snprintf(
		    out + used, n - used, "%s%s", i == 0 ? "" : ", ", list->item[i]);
}

void
config_show(const struct config *c, const struct cfg_key *k, char *out, size_t n)
{
	assert(n > 0);
	out[0] = '\0';
	if (k->type == CFG_LIST) {
		show_list(field_of(c, k), out, n);
	} else if (k->type == CFG_STR) {
		const char *s = *(char **)field_of(c, k);

		snprintf(out, n, "%s", s == NULL ? "" : k->flags & CFG_SECRET ? "********" : s);
	} else if (k->words != NULL) {
		snprintf(out, n, "%s", k->words[number_of(c, k)]);
	} else if (k->type == CFG_BOOL) {
		snprintf(out, n, "%s", number_of(c, k) ? "true" : "false");
	} else if (is_auto(k) && number_of(c, k) == 0) {
		snprintf(out, n, "auto");
	} else {
		cfg_show_number(k, number_of(c, k), out, n);
	}
}

static bool
same_list(const struct config_list *a, const struct config_list *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (strcmp(a->item[i], b->item[i]) != 0)
			return false;
	return true;
}

bool
config_same(const struct config *a, const struct config *b, const struct cfg_key *k)
{
	if (k->type == CFG_STR) {
		const char *s = *(char **)field_of(a, k), *t = *(char **)field_of(b, k);

		return s == NULL || t == NULL ? s == t : strcmp(s, t) == 0;
	}
	return k->type == CFG_LIST ? same_list(field_of(a, k), field_of(b, k))
	                           : number_of(a, k) == number_of(b, k);
}

void
config_reload(struct config *into, const struct config *from)
{
	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];
		void *field = field_of(into, k);

		if (!(k->flags & CFG_RELOAD))
			continue;
		if (k->type == CFG_BOOL)
			*(bool *)field = number_of(from, k);
		else if (k->type == CFG_U16)
			*(uint16_t *)field = (uint16_t)number_of(from, k);
		else if (k->type == CFG_U32)
			*(uint32_t *)field = (uint32_t)number_of(from, k);
		else {
			assert(k->type ==
			       CFG_U64); /* texts and lists stay: others keep pointers into them */
			*(uint64_t *)field = number_of(from, k);
		}
	}
}
