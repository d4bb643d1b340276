/* SPDX-License-Identifier: Apache-2.0
 * hermes consume: messages as they come, of a queue, or of an exchange through a queue of its own that goes with the
 * command. A message is acknowledged after it was written to standard output: at once while few come, many together
 * while many do. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/message_print.h"

enum { LOOK_MS = 200, WAIT_MAX_MS = 24 * 3600 * 1000, NAME_MAX_BYTES = 255 };

static const char TAG[] = "hermes"; /* of the consumer */

struct consume {
	struct client_conn conn;
	struct message_print print;
	amqp_bytes_t queue; /* owned if there is an exchange: NULL until it was made; else the command line's */
	const char *exchange;
	uint64_t count, prefetch, wait_ms; /* count and wait_ms 0: without end */
	uint64_t got, open, tag; /* written; of these not acknowledged yet; the last one */
	bool no_ack;
};

static volatile sig_atomic_t stop;

static void
on_signal(int n)
{
	(void)n;
	stop = 1;
}

/* The first signal ends it in order, the second one at once. */
static void
watch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static bool
settle(struct consume *k)
{
	if (k->open == 0)
		return true;
	if (!message_print_flush(&k->print))
		return false;
	if (!k->no_ack && amqp_basic_ack(k->conn.amqp, 1, k->tag, 1) != AMQP_STATUS_OK) {
		cli_fail(k->conn.cli,
		    "the last %" PRIu64 " messages were not acknowledged; they stay in the queue",
		    k->open);
		return false;
	}
	k->open = 0;
	return true;
}

static bool
take(struct consume *k, const amqp_envelope_t *e)
{
	const struct message_way way = { .exchange = e->exchange,
		.routing_key = e->routing_key,
		.redelivered = e->redelivered,
		.consumer_tag = &e->consumer_tag };

	if (!message_print(&k->print, &way, &e->message))
		return false;
	k->got++;
	k->open++;
	k->tag = e->delivery_tag;
	/* near the end nothing is settled, for the node would send more than is shown */
	if (k->count > 0 && k->count - k->got < k->prefetch)
		return true;
	return k->open * 2 < k->prefetch || settle(k);
}

/* Something else than a message came. False: said what. */
static bool
take_other(struct consume *k)
{
	amqp_rpc_reply_t reply = { .reply_type = AMQP_RESPONSE_SERVER_EXCEPTION };
	amqp_frame_t frame;
	int rc = amqp_simple_wait_frame(k->conn.amqp, &frame);

	if (rc != AMQP_STATUS_OK) {
		reply = (amqp_rpc_reply_t){ .reply_type = AMQP_RESPONSE_LIBRARY_EXCEPTION,
			.library_error = rc };
		return client_fine(&k->conn, reply, "the connection ended");
	}
	if (frame.frame_type != AMQP_FRAME_METHOD)
		return true;
	if (frame.payload.method.id == AMQP_BASIC_CANCEL_METHOD) {
		cli_fail(k->conn.cli, "the node ended it: the queue was deleted");
		return false;
	}
	reply.reply = frame.payload.method;
	return client_fine(&k->conn, reply, "the node ended it");
}

/* One message, if one comes within the time. *came: it did. False: said why. */
static bool
consume_one(struct consume *k, int within_ms, bool *came)
{
	struct timeval limit = { .tv_usec = within_ms * 1000 };
	amqp_rpc_reply_t reply;
	amqp_envelope_t e;
	bool fine;

	amqp_maybe_release_buffers(k->conn.amqp);
	reply = amqp_consume_message(k->conn.amqp, &e, &limit, 0);
	*came = reply.reply_type == AMQP_RESPONSE_NORMAL;
	if (*came) {
		fine = take(k, &e);
		amqp_destroy_envelope(&e);
		return fine;
	}
	if (reply.library_error == AMQP_STATUS_TIMEOUT)
		return true;
	if (reply.library_error == AMQP_STATUS_UNEXPECTED_STATE)
		return take_other(k);
	return client_fine(&k->conn, reply, "the connection ended");
}

static bool
consume_all(struct consume *k)
{
	uint64_t last_ms = clock_now_ms();
	bool came = true;

	while (!stop && (k->count == 0 || k->got < k->count)) {
		/* nothing more is here: what was written is settled before the wait */
		if (!came && !settle(k))
			return false;
		if (!consume_one(k, k->open > 0 ? 0 : LOOK_MS, &came))
			return false;
		if (came)
			last_ms = clock_now_ms();
		else if (k->wait_ms > 0 && clock_now_ms() >= last_ms + k->wait_ms)
			break;
	}
	/* for what is settled the node sends no more */
	amqp_basic_cancel(k->conn.amqp, 1, amqp_cstring_bytes(TAG));
	return client_fine(&k->conn, amqp_get_rpc_reply(k->conn.amqp), "the node ended it") &&
	       settle(k);
}

/* A queue of its own, bound with each --key, or with the empty one. */
static bool
make_queue(struct consume *k)
{
	const struct cli *c = k->conn.cli;
	size_t keys = cli_count(c, "key");
	amqp_queue_declare_ok_t *made =
	    amqp_queue_declare(k->conn.amqp, 1, amqp_empty_bytes, 0, 0, 1, 1, amqp_empty_table);

	if (!client_fine(&k->conn, amqp_get_rpc_reply(k->conn.amqp), "a queue cannot be made"))
		return false;
	k->queue = amqp_bytes_malloc_dup(made->queue);
	for (size_t i = 0; i < (keys > 0 ? keys : 1); i++) {
		amqp_queue_bind(k->conn.amqp, 1, k->queue, amqp_cstring_bytes(k->exchange),
		    amqp_cstring_bytes(keys > 0 ? cli_nth(c, "key", i) : ""), amqp_empty_table);
		if (!client_fine(&k->conn, amqp_get_rpc_reply(k->conn.amqp),
		        "the queue cannot be bound to the exchange"))
			return false;
	}
	return true;
}

static bool
begin(struct consume *k)
{
	uint16_t prefetch = (uint16_t)k->prefetch;

	/* no more is taken than is shown */
	if (k->count > 0 && k->count < prefetch)
		prefetch = (uint16_t)k->count;
	if (k->exchange != NULL && !make_queue(k))
		return false;
	amqp_basic_qos(k->conn.amqp, 1, 0, prefetch, 0);
	if (!client_fine(&k->conn, amqp_get_rpc_reply(k->conn.amqp), "the prefetch is refused"))
		return false;
	amqp_basic_consume(
	    k->conn.amqp, 1, k->queue, amqp_cstring_bytes(TAG), 0, k->no_ack, 0, amqp_empty_table);
	return client_fine(
	    &k->conn, amqp_get_rpc_reply(k->conn.amqp), "cannot consume from the queue");
}

/* CLI_OK, or what is wrong with the command line, which was said. */
static int
read_options(struct consume *k, struct cli *c)
{
	const char *wait = cli_value(c, "wait"), *queue = cli_arg(c, 0);

	if (!cli_number(c, "count", 1, 1000000000000, &k->count) ||
	    !cli_number(c, "prefetch", 1, UINT16_MAX, &k->prefetch))
		return CLI_USAGE;
	if (wait != NULL &&
	    (units_parse_ms(wait, &k->wait_ms) != 0 || k->wait_ms == 0 || k->wait_ms > WAIT_MAX_MS))
		return cli_misuse(c, "--wait: '%.64s' is not a time such as 500ms, 5s, 1m", wait);
	if ((queue == NULL) == (k->exchange == NULL))
		return cli_misuse(c, "of a QUEUE and --exchange NAME it has to be one");
	if (k->exchange == NULL && cli_count(c, "key") > 0)
		return cli_misuse(c, "--key is of use with --exchange only");
	for (size_t i = 0; i < cli_count(c, "key"); i++)
		if (strlen(cli_nth(c, "key", i)) > NAME_MAX_BYTES)
			return cli_misuse(c, "a routing key has at most 255 bytes");
	if (strlen(queue != NULL ? queue : k->exchange) > NAME_MAX_BYTES)
		return cli_misuse(c, "names have at most 255 bytes");
	if (queue != NULL)
		k->queue = amqp_cstring_bytes(queue);
	return CLI_OK;
}

int
cmd_consume(struct cli *c)
{
	struct consume k = { .conn.cli = c,
		.print = message_print_of(c),
		.exchange = cli_value(c, "exchange"),
		.no_ack = cli_switch(c, "no-ack"),
		.prefetch = 100 };
	int status = read_options(&k, c);
	bool fine;

	if (status != CLI_OK || (status = client_open(&k.conn, c)) != CLI_OK)
		return status;
	watch_signals();
	fine = begin(&k) && consume_all(&k);
	client_close(&k.conn);
	if (k.exchange != NULL)
		amqp_bytes_free(k.queue);
	if (!fine)
		return CLI_FAILED;
	if (k.count > 0 && k.got < k.count && !stop)
		return cli_fail(c, "%" PRIu64 " of %" PRIu64 " messages came", k.got, k.count);
	return CLI_OK;
}
