/* SPDX-License-Identifier: Apache-2.0
 * The handshake: protocol header, start, tune, open. Until the login nothing is kept of what a peer sends but a few
 * short texts that it says of itself, and no refusal before connection.open is told in words, except that of a login to
 * clients that understand it (authentication_failure_close). */
#include "amqp/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/codec.h"
#include "amqp/connection.h"
#include "amqp/frame.h"
#include "amqp/method.h"
#include "base/config.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "broker/broker.h"
#include "broker/event.h"
#include "broker/limits.h"
#include "broker/login.h"
#include "broker/permission.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "net/tls.h"

static const uint8_t our_header[HANDSHAKE_HEADER] = { 'A', 'M', 'Q', 'P', 0, 0, 9, 1 };

/* --- protocol header ------------------------------------------------------------------------------ */

/* What a peer that does not speak 0-9-1 seems to speak. */
static const struct {
	const char *begins;
	size_t n;
	const char *what;
} others[] = {
	{ "AMQP\0\1\0\0", 8, "AMQP 1.0; Hermes speaks AMQP 0-9-1" },
	{ "AMQP\3\1\0\0", 8, "AMQP 1.0 with SASL; Hermes speaks AMQP 0-9-1" },
	{ "AMQP\2\1\0\0", 8, "AMQP 1.0 with TLS; Hermes speaks AMQP 0-9-1" },
	{ "AMQP", 4, "another version of AMQP; Hermes speaks AMQP 0-9-1" },
	{ "\x16\x03", 2, "TLS (a ClientHello); this port takes plain AMQP 0-9-1" },
	{ "PROXY ", 6,
	    "a header of the PROXY protocol, from an address that is not in proxy.trusted" },
	{ "\r\n\r\n\0\r\n", 7,
	    "a header of the PROXY protocol, from an address that is not in proxy.trusted" },
	{ "GET ", 4, "HTTP; this port takes AMQP 0-9-1, the management port HTTP" },
	{ "POST ", 5, "HTTP; this port takes AMQP 0-9-1, the management port HTTP" },
	{ "PUT ", 4, "HTTP; this port takes AMQP 0-9-1, the management port HTTP" },
	{ "HEAD ", 5, "HTTP; this port takes AMQP 0-9-1, the management port HTTP" },
	{ "DELETE ", 7, "HTTP; this port takes AMQP 0-9-1, the management port HTTP" },
	{ "OPTIONS ", 8, "HTTP; this port takes AMQP 0-9-1, the management port HTTP" },
	{ "HTTP/", 5, "HTTP; this port takes AMQP 0-9-1, the management port HTTP" },
	{ "", 0, "none that is known here; this port takes AMQP 0-9-1" },
};

static void
refuse_header(struct connection *c, const uint8_t *p)
{
	size_t i = 0;

	while (memcmp(p, others[i].begins, others[i].n) != 0)
		i++;
	connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
	    "connection refused: the protocol is %s. First bytes: %02x %02x %02x %02x %02x %02x "
	    "%02x %02x",
	    others[i].what, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
	transport_write(c->io, our_header, sizeof our_header);
	connection_finish(c, true, NULL);
}

static amqp_table_entry_t
entry_text(const char *key, const char *value)
{
	amqp_table_entry_t e = { .key = amqp_cstring_bytes(key) };

	e.value.kind = AMQP_FIELD_KIND_UTF8;
	e.value.value.bytes = amqp_cstring_bytes(value);
	return e;
}

static amqp_table_entry_t
entry_true(const char *key)
{
	amqp_table_entry_t e = { .key = amqp_cstring_bytes(key) };

	e.value.kind = AMQP_FIELD_KIND_BOOLEAN;
	e.value.value.boolean = 1;
	return e;
}

static bool
has_certificate(const struct connection *c)
{
	return c->client.tls != NULL && c->client.tls->subject != NULL;
}

static void
send_start(struct connection *c)
{
	const struct config *cfg = c->amqp->cfg;
	amqp_table_entry_t can[] = {
		entry_true("publisher_confirms"),
		entry_true("exchange_exchange_bindings"),
		entry_true("basic.nack"),
		entry_true("consumer_cancel_notify"),
		entry_true("connection.blocked"),
		entry_true("consumer_priorities"),
		entry_true("authentication_failure_close"),
		entry_true("per_consumer_qos"),
		entry_true("direct_reply_to"),
	};
	amqp_table_entry_t capabilities = { .key = amqp_cstring_bytes("capabilities") };
	char platform[64];

	snprintf(platform, sizeof platform, "Hermes %s", c->amqp->version);
	capabilities.value.kind = AMQP_FIELD_KIND_TABLE;
	capabilities.value.value.table = (amqp_table_t){ (int)COUNT_OF(can), can };
	amqp_table_entry_t all[] = {
		capabilities,
		entry_text("cluster_name", cfg->node_name),
		entry_text("copyright", "Copyright (c) the authors of Hermes"),
		entry_text("hermes_version", c->amqp->version),
		entry_text("information",
		    "Hermes, an AMQP 0-9-1 message broker. Licensed under the Apache License 2.0"),
		entry_text("platform", platform),
		entry_text("product", cfg->compat_product),
		entry_text("version", cfg->compat_version),
	};
	amqp_connection_start_t args = {
		.version_major = 0,
		.version_minor = 9,
		.server_properties = { (int)COUNT_OF(all), all },
		.mechanisms = amqp_cstring_bytes(
		    has_certificate(c) ? "EXTERNAL PLAIN AMQPLAIN" : "PLAIN AMQPLAIN"),
		.locales = amqp_cstring_bytes("en_US"),
	};

	codec_send(c, 0, AMQP_CONNECTION_START_METHOD, &args);
}

void
handshake_header(struct connection *c, const uint8_t *p)
{
	/* 1 1 0 9 is what 0-9 has: RabbitMQ takes it for 0-9-1 */
	if (memcmp(p, our_header, sizeof our_header) != 0 && memcmp(p, "AMQP\1\1\0\11", 8) != 0) {
		refuse_header(c, p);
		return;
	}
	send_start(c);
	connection_set_state(c, CONN_STARTING);
}

/* --- start-ok ------------------------------------------------------------------------------------- */

enum { SAYS_MAX = 256 }; /* bytes kept of each text that a client says of itself */

static void
keep_text(char **to, amqp_bytes_t text)
{
	if (*to == NULL && text.len > 0)
		*to = xstrndup(text.bytes, utf8_cut(text.bytes, text.len, SAYS_MAX));
}

static void
read_capabilities(struct connection *c, const amqp_table_t *t)
{
	for (int i = 0; i < t->num_entries; i++) {
		const amqp_table_entry_t *e = &t->entries[i];
		struct span key = codec_span(e->key);
		bool yes = e->value.kind == AMQP_FIELD_KIND_BOOLEAN && e->value.value.boolean != 0;

		if (span_is(key, "authentication_failure_close"))
			c->failure_close = yes;
		else if (span_is(key, "consumer_cancel_notify"))
			c->client.cancel_notify = yes;
		else if (span_is(key, "connection.blocked"))
			c->can_blocked = yes;
	}
}

static void
read_properties(struct connection *c, const amqp_table_t *t)
{
	struct {
		const char *key;
		char **to;
	} texts[] = {
		{ "product", &c->client.product },
		{ "version", &c->client.version },
		{ "platform", &c->client.platform },
		{ "connection_name", &c->client.name },
	};

	for (int i = 0; i < t->num_entries; i++) {
		const amqp_table_entry_t *e = &t->entries[i];
		struct span key = codec_span(e->key);

		if (e->value.kind == AMQP_FIELD_KIND_TABLE && span_is(key, "capabilities"))
			read_capabilities(c, &e->value.value.table);
		if (e->value.kind != AMQP_FIELD_KIND_UTF8)
			continue;
		for (size_t k = 0; k < COUNT_OF(texts); k++)
			if (span_is(key, texts[k].key))
				keep_text(texts[k].to, e->value.value.bytes);
	}
}

/* NUL, name, NUL, password: no other identity in front, nothing behind (RFC 4616, as RabbitMQ reads it). */
static bool
read_plain(struct span r, struct span *name, struct span *password)
{
	const uint8_t *sep;

	if (r.n < 2 || r.p[0] != 0)
		return false;
	sep = memchr(r.p + 1, 0, r.n - 1);
	if (sep == NULL)
		return false;
	*name = span_of(r.p + 1, (size_t)(sep - r.p) - 1);
	*password = span_of(sep + 1, r.n - (size_t)(sep - r.p) - 1);
	return password->n == 0 || memchr(password->p, 0, password->n) == NULL;
}

/* A table without its length: long strings LOGIN and PASSWORD, in any order, among others. */
static bool
read_amqplain(struct span r, struct span *name, struct span *password)
{
	struct field login, secret;

	if (table_check(r, TABLE_DEPTH_MAX) != 0 || !table_find(r, "LOGIN", &login) ||
	    !table_find(r, "PASSWORD", &secret) || login.kind != 'S' || secret.kind != 'S')
		return false;
	*name = login.bytes;
	*password = secret.bytes;
	return true;
}

static const struct {
	const char *name;
	bool (*read)(struct span response, struct span *name, struct span *password);
} mechanisms[] = {
	{ "PLAIN", read_plain },
	{ "AMQPLAIN", read_amqplain },
};

static void
refuse_login(struct connection *c, const char *mechanism, struct span name, const char *why)
{
	const struct error *e;

	name.n = name.n > 255 ? 255 : name.n;
	connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
	    "login refused for user '%.*s' using mechanism %s: %s", SPAN_FMT(name), mechanism, why);
	event_login(&c->client, name, mechanism, why);
	if (c->failure_close) {
		e = error_make(E_LOGIN_REFUSED,
		    "Login was refused using authentication mechanism %s. "
		    "For details see the broker logfile.",
		    mechanism);
		c->early_error = xstrdup(e->text);
		c->client.broker->stats.errors_connection++;
	}
	connection_turn_away(c);
}

static void
send_tune(struct connection *c)
{
	const struct config *cfg = c->amqp->cfg;
	amqp_connection_tune_t args = {
		.channel_max = cfg->channel_max,
		.frame_max = cfg->frame_max,
		.heartbeat = (uint16_t)cfg->heartbeat_s,
	};

	codec_send(c, 0, AMQP_CONNECTION_TUNE_METHOD, &args);
}

/* u NULL: refused. */
static void
logged_in(struct connection *c, struct user *u, struct span name, const char *why)
{
	if (u == NULL) {
		refuse_login(c, c->mechanism, name, why);
		return;
	}
	transport_set_stranger(c->io, false);
	client_set_user(&c->client, u);
	c->client.mechanism = xstrdup(c->mechanism);
	event_login(&c->client, span_str(u->name), c->mechanism, NULL);
	send_tune(c);
	connection_set_state(c, CONN_TUNING);
}

static void
on_login(void *conn, struct user *u, const char *why)
{
	struct connection *c = conn;

	transport_resume(c->io, PAUSE_LOGIN);
	logged_in(c, u, span_str(c->login_name), why);
}

/* The name stands in the certificate, whatever the client's response is. */
static void
login_external(struct connection *c)
{
	const struct tls_info *info = transport_tls_info(c->io);
	struct span name = info->login != NULL ? span_str(info->login) : span_of(NULL, 0);
	const char *why = info->no_login;
	struct user *u = NULL;

	c->mechanism = "EXTERNAL";
	if (info->login != NULL)
		u = login_proved(c->client.broker, name, c->client.loopback, &why);
	logged_in(c, u, name, why);
}

/* Kept for whoever looks at the connection; no longer than CONN_EARLY_PAYLOAD, and what cannot be kept is not shown. */
static void
keep_properties(struct connection *c, const amqp_table_t *t)
{
	if (c->client.properties == NULL && table_from_amqp(t, &c->client.properties) == 0)
		mem_add(MEM_TOPOLOGY, table_size(c->client.properties));
}

const struct error *
connection_start_ok(const struct method_call *call)
{
	const amqp_connection_start_ok_t *args = call->decoded;
	struct connection *c = call->conn;
	struct span mechanism = codec_span(args->mechanism), name, password;
	const char *why = "";
	struct user *u;
	size_t i = 0;

	read_properties(c, &args->client_properties);
	if (span_is(mechanism, "EXTERNAL") && has_certificate(c)) {
		keep_properties(c, &args->client_properties);
		login_external(c);
		return NULL;
	}
	while (i < COUNT_OF(mechanisms) && !span_is(mechanism, mechanisms[i].name))
		i++;
	if (i == COUNT_OF(mechanisms)) {
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "connection refused: unknown authentication mechanism '%.*s'",
		    SPAN_FMT(mechanism));
		connection_turn_away(c);
		return NULL;
	}
	if (!mechanisms[i].read(codec_span(args->response), &name, &password)) {
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "connection refused: the response is not one of mechanism %s",
		    mechanisms[i].name);
		connection_turn_away(c);
		return NULL;
	}
	const struct credentials who = { .name = name,
		.password = password,
		.address = c->client.peer_host,
		.loopback = c->client.loopback };

	c->mechanism = mechanisms[i].name;
	keep_properties(c, &args->client_properties);
	u = login_begin(c->client.broker, &who, on_login, c, &c->login, &why);
	if (c->login != NULL) {
		free(c->login_name);
		c->login_name = xstrndup((const char *)name.p, name.n);
		transport_pause(c->io, PAUSE_LOGIN);
		return NULL;
	}
	logged_in(c, u, name, why);
	return NULL;
}

const struct error *
connection_secure_ok(const struct method_call *call)
{
	/* neither mechanism sends connection.secure, so that no connection is ever in the state for this */
	return error_make(E_COMMAND_INVALID, "%s without a challenge", method_name(call->method));
}

/* --- tune-ok, open -------------------------------------------------------------------------------- */

/* The client may go below what we proposed, but not above it or to "no limit". */
static bool
check_tuned(
    const struct connection *c, const char *what, uint32_t value, uint32_t least, uint32_t most)
{
	if (value >= least && value <= most)
		return true;
	connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
	    "connection refused: %s %u in connection.tune-ok is not within %u to %u", what, value,
	    least, most);
	return false;
}

const struct error *
connection_tune_ok(const struct method_call *call)
{
	const amqp_connection_tune_ok_t *args = call->decoded;
	struct connection *c = call->conn;
	const struct config *cfg = c->amqp->cfg;

	if (!check_tuned(c, "frame-max", args->frame_max, FRAME_MIN, cfg->frame_max) ||
	    !check_tuned(c, "channel-max", args->channel_max, 1, cfg->channel_max)) {
		connection_turn_away(c);
		return NULL;
	}
	c->frame_max = c->client.frame_max = args->frame_max;
	c->payload_max = args->frame_max;
	c->channel_max = c->client.channel_max = args->channel_max;
	c->heartbeat_s = args->heartbeat;
	c->client.heartbeat_s = args->heartbeat;
	connection_set_state(c, CONN_OPENING);
	return NULL;
}

const struct error *
connection_open(const struct method_call *call)
{
	const amqp_connection_open_t *args = call->decoded;
	struct connection *c = call->conn;
	struct span name = codec_span(args->virtual_host);
	struct vhost *vh = vhost_find(c->client.broker, name);
	amqp_connection_open_ok_t ok = { .known_hosts = amqp_empty_bytes };
	const struct error *e;

	if (vh == NULL)
		return error_make(E_NOT_ALLOWED, "vhost %.*s not found", SPAN_FMT(name));
	e = limits_check_connection(vh, c->client.user);
	if (e != NULL)
		return e;
	if (!permission_vhost(c->client.user, vh))
		return error_make(E_NOT_ALLOWED, "access to vhost '%s' refused for user '%s'",
		    vh->name, c->client.user->name);
	client_set_vhost(&c->client, vh);
	event_connection(&c->client, true);
	codec_send(c, 0, AMQP_CONNECTION_OPEN_OK_METHOD, &ok);
	connection_set_state(c, CONN_OPEN);
	connection_timer_heartbeats(c);
	connection_log_some(c, LOG_INFO, CONN_LINES,
	    "user '%s' authenticated and granted access to vhost '%s'%s%s", c->client.user->name,
	    vh->name, c->client.name != NULL ? ", connection name: " : "",
	    c->client.name != NULL ? c->client.name : "");
	return NULL;
}
