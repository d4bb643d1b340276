/* SPDX-License-Identifier: Apache-2.0
 * Connections of hermes bench opened, kept alive and closed. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/bench_conn.h"
#include "cli/bench_frames.h"
#include "cli/bench_stop.h"
#include "cli/client_tls.h"

enum {
	CALL_MS = 60000,
	OPEN_MS = 10000,
	STOP_MS = 10000,
	CLOSE_MS = 5000,
	LOOK_MS = 500, /* a signal may come just before it is waited */
	HEARTBEAT_S = 60,
	FRAME_MIN = 4096
};

int
bench_broker_init(struct bench_broker *b, struct cli *c)
{
	int status;

	*b = (struct bench_broker){ .cli = c };
	if ((status = client_address_read(&b->address, c)) != CLI_OK)
		return status;
	if (strlen(b->address.user) > UINT8_MAX || strlen(b->address.vhost) > UINT8_MAX) {
		client_address_fini(&b->address);
		return cli_misuse(c, "names have at most 255 bytes");
	}
	b->in = xmalloc(BENCH_IN_SIZE);
	return CLI_OK;
}

void
bench_broker_fini(struct bench_broker *b)
{
	SSL_free(b->tls);
	free(b->in);
	client_address_fini(&b->address);
	*b = (struct bench_broker){ 0 };
}

/* ---- waiting ---- */

/* Milliseconds of a time that are left. Who has pressed Ctrl-C does not wait for long. */
static int
left_ms(int64_t since, int timeout_ms)
{
	int64_t left;

	if (bench_stop_asked() && timeout_ms > STOP_MS)
		timeout_ms = STOP_MS;
	left = timeout_ms - (bench_now() - since) / 1000000;
	return left > 0 ? (int)left : 0;
}

static const char *
why_silent(const struct bench_conn *c, uint32_t method)
{
	if (method == AMQP_CONNECTION_START_METHOD)
		return "; is it the AMQP port?";
	return c->blocked ? "; it reads nothing of publishers that it holds back" : "";
}

static bool
wait_for(struct bench_conn *c, uint32_t method, int timeout_ms)
{
	int64_t since = bench_now();

	c->want = method;
	while (c->want != 0 && !c->dead) {
		int left = left_ms(since, timeout_ms);

		(void)bench_conn_wait(c, left < LOOK_MS ? left : LOOK_MS);
		if (left == 0 && c->want != 0)
			bench_conn_fail(c->broker, c,
			    "the broker has not answered for %d s (%s is due)%s",
			    (int)((bench_now() - since) / 1000000000), amqp_method_name(method),
			    why_silent(c, method));
	}
	return c->want == 0;
}

bool
bench_conn_call(struct bench_conn *c, struct wire_out *w, uint32_t answer)
{
	if (bench_conn_commit(c, w))
		return wait_for(c, answer, CALL_MS);
	bench_conn_fail(c->broker, c, "a name is too long for the protocol");
	return false;
}

/* ---- TLS ---- */

/* The authorities and the certificate are read once. */
static SSL *
new_session(struct bench_broker *b)
{
	if (b->tls != NULL)
		return client_tls_next(b->cli, b->tls, b->address.host);
	if ((b->tls = client_tls_new(b->cli, b->address.host)) == NULL)
		return NULL;
	SSL_up_ref(b->tls);
	return b->tls;
}

static void
tls_failed(struct bench_conn *c)
{
	const char *why = ERR_reason_error_string(ERR_peek_error());
	long verdict = SSL_get_verify_result(c->tls);

	if (verdict != X509_V_OK)
		why = X509_verify_cert_error_string(verdict);
	bench_conn_fail(c->broker, c, "cannot talk TLS with %s port %d: %s (see --ca-file)",
	    c->broker->address.host, c->broker->address.port,
	    why != NULL ? why : "the broker hung up");
}

static bool
open_tls(struct bench_conn *c)
{
	int64_t since = bench_now();
	int rc, left;

	if ((c->tls = new_session(c->broker)) == NULL) {
		c->broker->failed = true; /* it was said */
		return false;
	}
	(void)SSL_set_mode(
	    c->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (SSL_set_fd(c->tls, c->fd) != 1)
		abort();
	for (;;) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };

		ERR_clear_error();
		if ((rc = SSL_connect(c->tls)) == 1)
			return true;
		rc = SSL_get_error(c->tls, rc);
		if (rc == SSL_ERROR_WANT_WRITE)
			p.events = POLLOUT;
		else if (rc != SSL_ERROR_WANT_READ)
			break;
		left = left_ms(since, OPEN_MS);
		(void)poll(&p, 1, left < LOOK_MS ? left : LOOK_MS);
		if (left == 0) {
			bench_conn_fail(c->broker, c, "%s port %d has not answered in TLS for %d s",
			    c->broker->address.host, c->broker->address.port,
			    (int)((bench_now() - since) / 1000000000));
			return false;
		}
	}
	tls_failed(c);
	return false;
}

/* ---- logging in ---- */

static void
start_ok(struct bench_conn *c)
{
	static const char *const can[] = { "publisher_confirms", "basic.nack", "connection.blocked",
		"consumer_cancel_notify", "authentication_failure_close" };
	const struct client_address *a = &c->broker->address;
	struct wire_out w = bench_conn_begin(c, 0, AMQP_CONNECTION_START_OK_METHOD);
	size_t table = wire_table_begin(&w), capabilities, user = strlen(a->user),
	       password = strlen(a->password);

	wire_entry_text(&w, "product", "hermes bench");
	wire_entry_text(&w, "connection_name", "hermes bench");
	wire_put_short(&w, "capabilities");
	wire_put8(&w, AMQP_FIELD_KIND_TABLE);
	capabilities = wire_table_begin(&w);
	for (size_t i = 0; i < COUNT_OF(can); i++)
		wire_entry_bool(&w, can[i], true);
	wire_table_end(&w, capabilities);
	wire_table_end(&w, table);
	wire_put_short(&w, "PLAIN");
	wire_put32(&w, (uint32_t)(user + password + 2));
	wire_put8(&w, 0);
	wire_put(&w, a->user, user);
	wire_put8(&w, 0);
	wire_put(&w, a->password, password);
	wire_put_short(&w, "en_US");
	if (!bench_conn_commit(c, &w))
		bench_conn_fail(c->broker, c, "the password is too long");
}

/* The lower of two bounds, 0 being none. */
static uint32_t
lower(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static void
tune_ok(struct bench_conn *c)
{
	struct wire_in r = { .p = c->reply, .n = c->reply_n };
	uint16_t channel_max = wire_get16(&r);
	struct wire_out w;

	c->frame_max = lower(wire_get32(&r), BENCH_FRAME_MAX);
	c->heartbeat_s = (uint16_t)lower(wire_get16(&r), HEARTBEAT_S);
	if (r.failed || c->frame_max < FRAME_MIN) {
		bench_conn_fail(c->broker, c, "what answers breaks the protocol: connection.tune");
		return;
	}
	w = bench_conn_begin(c, 0, AMQP_CONNECTION_TUNE_OK_METHOD);
	wire_put16(&w, channel_max);
	wire_put32(&w, c->frame_max);
	wire_put16(&w, c->heartbeat_s);
	(void)bench_conn_commit(c, &w);
}

static bool
log_in(struct bench_conn *c)
{
	static const uint8_t greeting[] = { 'A', 'M', 'Q', 'P', 0, 0, 9, 1 };
	struct wire_out w;

	memcpy(bench_conn_room(c, sizeof greeting), greeting, sizeof greeting);
	bench_conn_wrote(c, sizeof greeting);
	/* an HTTP port, say, waits for the rest of what it takes for a request */
	if (!wait_for(c, AMQP_CONNECTION_START_METHOD, OPEN_MS))
		return false;
	start_ok(c);
	if (!wait_for(c, AMQP_CONNECTION_TUNE_METHOD, OPEN_MS))
		return false;
	tune_ok(c);
	w = bench_conn_begin(c, 0, AMQP_CONNECTION_OPEN_METHOD);
	wire_put_short(&w, c->broker->address.vhost);
	wire_put_short(&w, "");
	wire_put8(&w, 0);
	if (!bench_conn_call(c, &w, AMQP_CONNECTION_OPEN_OK_METHOD))
		return false;
	w = bench_conn_begin(c, BENCH_CHANNEL, AMQP_CHANNEL_OPEN_METHOD);
	wire_put_short(&w, "");
	return bench_conn_call(c, &w, AMQP_CHANNEL_OPEN_OK_METHOD);
}

struct bench_conn *
bench_conn_open(struct bench_broker *b, size_t out_room)
{
	struct bench_conn *c = xcalloc(1, sizeof *c);

	c->broker = b;
	c->out = xmalloc(out_room);
	c->out_room = out_room;
	c->frame_max = BENCH_FRAME_MAX;
	c->last_read = c->last_write = bench_now();
	c->fd = client_connect(b->cli, &b->address);
	if (c->fd < 0)
		b->failed = true; /* it was said */
	else if ((!b->address.is_tls || open_tls(c)) && log_in(c)) {
		b->connected = true;
		return c;
	}
	c->dead = true;
	bench_conn_close(&c);
	return NULL;
}

void
bench_conn_close(struct bench_conn **cp)
{
	struct bench_conn *c = *cp;
	int64_t since = bench_now();
	struct wire_out w;

	*cp = NULL;
	if (c == NULL)
		return;
	c->ops = NULL;
	c->leaving = true;
	/* what waits goes first, if it goes at all; after a failure nobody waits for each connection */
	while (
	    !c->dead && !c->broker->failed && c->pending > 0 && !bench_conn_flush(c) && !c->dead) {
		(void)bench_conn_wait(c, LOOK_MS);
		c->dead = c->dead || left_ms(since, CLOSE_MS) == 0;
	}
	if (!c->dead) {
		c->closing = true;
		w = bench_conn_begin(c, 0, AMQP_CONNECTION_CLOSE_METHOD);
		wire_put16(&w, AMQP_REPLY_SUCCESS);
		wire_put_short(&w, "bye");
		wire_put32(&w, 0);
		/* where messages wait the answer waits behind them */
		if (bench_conn_commit(c, &w) && bench_conn_flush(c) && !c->broker->failed &&
		    !c->blocked)
			(void)wait_for(c, AMQP_CONNECTION_CLOSE_OK_METHOD, CLOSE_MS);
	}
	SSL_free(c->tls);
	if (c->fd >= 0)
		close(c->fd);
	free(c->out);
	free(c->tail);
	free(c);
}

void
bench_conn_tick(struct bench_conn *c, int64_t now)
{
	static const uint8_t beat[] = { AMQP_FRAME_HEARTBEAT, 0, 0, 0, 0, 0, 0, AMQP_FRAME_END };
	int64_t period = (int64_t)c->heartbeat_s * 1000000000;
	uint8_t *p;

	if (period == 0 || c->dead)
		return;
	if (now - c->last_read > 2 * period) {
		bench_conn_fail(
		    c->broker, c, "nothing has come from the broker for %d s", 2 * c->heartbeat_s);
		return;
	}
	if (c->wrote) {
		c->wrote = false;
		c->last_write = now;
	}
	if (now - c->last_write < period / 2 || c->pending > 0)
		return;
	if ((p = bench_conn_room(c, sizeof beat)) != NULL) {
		memcpy(p, beat, sizeof beat);
		bench_conn_wrote(c, sizeof beat);
		(void)bench_conn_flush(c);
	}
}
