/* SPDX-License-Identifier: Apache-2.0
 * hermes get: messages one by one with basic.get. A message is acknowledged after it was written to standard output,
 * so that a full pipe or disk loses none. With --requeue all go back together at the end, in their order. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/message_print.h"

enum { POLL_MS = 20, WAIT_MAX_MS = 24 * 3600 * 1000 };

struct get {
	struct client_conn conn;
	struct message_print print;
	const char *queue;
	uint64_t count, got, wait_ms, last_tag;
	bool no_ack, requeue;
};

/* Takes one message. *empty: there was none. False: said why. */
static bool
get_one(struct get *g, bool *empty)
{
	amqp_rpc_reply_t reply;
	const amqp_basic_get_ok_t *ok;
	amqp_message_t m;
	bool fine;

	amqp_maybe_release_buffers(g->conn.amqp);
	reply = amqp_basic_get(g->conn.amqp, 1, amqp_cstring_bytes(g->queue), g->no_ack);
	if (!client_fine(&g->conn, reply, "cannot get from the queue"))
		return false;
	*empty = reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD;
	if (*empty)
		return true;
	ok = reply.reply.decoded;
	if (!client_fine(
	        &g->conn, amqp_read_message(g->conn.amqp, 1, &m, 0), "cannot read the message"))
		return false;
	fine = message_print(&g->print,
	           &(struct message_way){
	               ok->exchange, ok->routing_key, ok->redelivered, NULL, ok->message_count },
	           &m) &&
	       message_print_flush(&g->print);
	amqp_destroy_message(&m);
	if (!fine)
		return false;
	g->got++;
	g->last_tag = ok->delivery_tag;
	if (g->no_ack || g->requeue)
		return true;
	if (amqp_basic_ack(g->conn.amqp, 1, ok->delivery_tag, 0) == AMQP_STATUS_OK)
		return true;
	cli_fail(g->conn.cli, "the message was not acknowledged; it stays in the queue");
	return false;
}

static bool
get_all(struct get *g)
{
	uint64_t until_ms = clock_now_ms() + g->wait_ms;
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000 };
	bool empty = false;

	while (g->got < g->count) {
		if (!get_one(g, &empty))
			return false;
		if (!empty)
			continue;
		if (g->got > 0 || clock_now_ms() >= until_ms)
			break;
		nanosleep(&pause, NULL);
	}
	if (g->requeue && g->got > 0 &&
	    amqp_basic_nack(g->conn.amqp, 1, g->last_tag, 1, 1) != AMQP_STATUS_OK) {
		cli_fail(g->conn.cli,
		    "the messages were not put back; the node does it when the connection ends");
		return false;
	}
	return true;
}

/* basic.get says no more than that there is nothing for us. *held: so many messages are there all the same, at two looks
 * with another try between them. */
static bool
look_again(struct get *g, uint32_t *held)
{
	bool empty = true;

	for (int i = 0; i < 2 && empty; i++) {
		const amqp_queue_declare_ok_t *ok = amqp_queue_declare(
		    g->conn.amqp, 1, amqp_cstring_bytes(g->queue), 1, 0, 0, 0, amqp_empty_table);

		*held = ok != NULL ? ok->message_count : 0; /* NULL: it is gone by now */
		if (*held == 0)
			return true;
		if (i == 0 && !get_one(g, &empty))
			return false;
	}
	return true;
}

static int
say_nothing(const struct cli *c, uint32_t held)
{
	if (held == 0)
		return cli_fail(c, "queue is empty");
	return cli_fail(c,
	    "queue is paused and keeps its %" PRIu32
	    " message%s; 'hermes queue resume' lets them go (not paused: they have expired and "
	    "wait for room where dead letters go)",
	    held, held == 1 ? "" : "s");
}

int
cmd_get(struct cli *c)
{
	struct get g = { .conn.cli = c,
		.queue = cli_arg(c, 0),
		.count = 1,
		.no_ack = cli_switch(c, "no-ack"),
		.requeue = cli_switch(c, "requeue"),
		.print = message_print_of(c) };
	const char *wait = cli_value(c, "wait");
	uint32_t held = 0;
	int status;
	bool fine;

	if (!cli_number(c, "count", 1, 1000000000, &g.count))
		return CLI_USAGE;
	if (g.no_ack && g.requeue)
		return cli_misuse(c, "--no-ack and --requeue exclude each other");
	if (wait != NULL && (units_parse_ms(wait, &g.wait_ms) != 0 || g.wait_ms > WAIT_MAX_MS))
		return cli_misuse(c, "--wait: '%.64s' is not a time such as 500ms, 5s, 1m", wait);
	if (strlen(g.queue) > 255)
		return cli_misuse(c, "names have at most 255 bytes");
	if ((status = client_open(&g.conn, c)) != CLI_OK)
		return status;
	fine = get_all(&g) && (g.got > 0 || look_again(&g, &held));
	client_close(&g.conn);
	if (fine && g.got == 0)
		return say_nothing(c, held);
	return fine ? CLI_OK : CLI_FAILED;
}
