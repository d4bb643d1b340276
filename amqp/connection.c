/* SPDX-License-Identifier: Apache-2.0
 * A connection from accept to its end.
 *
 * The happy path: connection_new, the handshake (handshake.c), frames (frame.c), the client's connection.close,
 * connection_finish, connection_free by amqp_reap.
 *
 * Otherwise: connection_refuse says why in connection.close and waits for close-ok, at most CONN_LINGER_MS; before OPENING
 * nothing is said. on_end is the peer's going without a word. Whichever it is, the broker's side of all channels ends
 * there and then, so that messages are back and exclusive names are free before the peer hears of it; memory is freed
 * at the end of the turn, because a caller further up may still look at it. */
#include "amqp/connection.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/frame.h"
#include "amqp/handshake.h"
#include "amqp/method.h"
#include "amqp/park.h"
#include "base/config.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/event.h"
#include "broker/login.h"
#include "broker/msg.h"
#include "net/gate.h"
#include "net/listener.h"

static void on_room(void *conn);
static void on_end(void *conn, enum transport_end why, int err);
static void on_unref(void *piece);

static void client_moved(const struct client *client, struct traffic_stats *out, uint64_t *pending);

static const struct client_ops client_ops = { .traffic = client_moved };

static const struct transport_ops transport_ops = {
	.on_bytes = connection_on_bytes,
	.on_room = on_room,
	.on_end = on_end,
	.unref = on_unref,
};

/* --- life ----------------------------------------------------------------------------------------- */

/* What is shown of TLS; kept with the client, which may outlive the session. */
static void
keep_tls(struct client *client, const struct tls_info *info)
{
	struct client_tls *t;

	if (info == NULL)
		return;
	t = client->tls = xcalloc(1, sizeof *t);
	t->protocol = info->protocol;
	t->cipher = info->cipher;
	t->hash = info->hash;
	t->key_exchange = info->key_exchange;
	if (info->subject == NULL)
		return;
	t->subject = xstrdup(info->subject);
	t->issuer = xstrdup(info->issuer);
	t->validity = xstrdup(info->validity);
}

static void
set_addresses(struct connection *c, const struct arrival *from)
{
	memcpy(c->client.peer_host, from->peer.host, sizeof c->client.peer_host);
	memcpy(c->client.host, from->local.host, sizeof c->client.host);
	c->client.peer_port = from->peer.port;
	c->client.port = from->local.port;
	c->client.loopback = from->peer.loopback;
}

struct connection *
connection_new(struct amqp *a, const struct arrival *from, struct listener *ls)
{
	const struct config *cfg = a->cfg;
	struct connection *c = xcalloc(1, sizeof *c);
	/* One frame that is not whole yet, or what is left of a read when reading stops in the middle of it. */
	size_t tail_max = (size_t)cfg->frame_max + FRAME_OVERHEAD + LOOP_READ_MAX;

	c->amqp = a;
	c->io = transport_new(a->loop, from->fd, &transport_ops, c, tail_max, cfg->output / 2);
	transport_set_stranger(
	    c->io, true); /* until it has logged in: a wrong password costs us a hash */
	if (unlikely(from->tls != NULL))
		transport_set_tls(c->io, from->tls);
	set_addresses(c, from);
	c->listener = ls;
	client_init(&c->client, a->broker);
	c->client.ops = &client_ops;
	keep_tls(&c->client, transport_tls_info(c->io));
	c->client.connected_at_ms = a->loop->now_ms;
	c->payload_max = CONN_EARLY_PAYLOAD;
	c->refusals.burst = CONN_OWN_REFUSALS;
	c->frame_max = FRAME_MIN;
	LIST_INSERT_HEAD(&a->connections, c, link);
	a->connection_count++;
	connection_set_state(c, CONN_HEADER);
	connection_timer_handshake(c, from->since_ms);
	return c;
}

void
connection_free(struct connection **cp)
{
	struct connection *c = *cp;

	*cp = NULL;
	assert(c->state == CONN_CLOSED);
	for (uint32_t i = 0; i < c->channel_slots; i++)
		if (c->channel[i] != NULL)
			channel_free(&c->channel[i]);
	assert(c->ending == 0 && !c->is_leaving);
	client_fini(&c->client);
	LIST_REMOVE(c, link);
	free(c->channel);
	free(c->early_error);
	free(c->login_name);
	free(c);
}

static const struct {
	const char *name, *shown; /* RabbitMQ's word in refusals; what management shows */
} states[] = {
	[CONN_HEADER] = { "pre_init", "starting" },
	[CONN_STARTING] = { "starting", "starting" },
	[CONN_SECURING] = { "securing", "starting" },
	[CONN_TUNING] = { "tuning", "tuning" },
	[CONN_OPENING] = { "opening", "opening" },
	[CONN_OPEN] = { "running", "running" },
	[CONN_CLOSING] = { "closing", "closing" },
	[CONN_CLOSED] = { "closed", "closed" },
};

const char *
connection_state_name(enum connection_state s)
{
	return states[s].name;
}

void
connection_set_state(struct connection *c, enum connection_state to)
{
	/* forwards only; every state may end in CLOSING or CLOSED */
	assert(to > c->state || (to == CONN_HEADER && c->state == CONN_HEADER));
	c->state = to;
	c->client.state = states[to].shown;
}

static void
leave(struct connection *c)
{
	if (c->is_leaving || (c->ending == 0 && client_leave(&c->client)))
		return;
	c->client.is_leaving = true;
	c->is_leaving = true;
	LIST_INSERT_HEAD(&c->amqp->leaving, c, leaving_link);
}

void
connection_end_sessions(struct connection *c)
{
	for (uint32_t i = 0; i < c->channel_slots; i++) {
		struct channel *ch = c->channel[i];

		if (ch == NULL || ch->state != CHANNEL_OPEN)
			continue;
		ch->state = CHANNEL_CLOSING;
		channel_end_session(ch);
	}
	leave(c);
}

bool
connection_must_wait(struct connection *c)
{
	for (uint32_t i = 0; i < c->channel_slots; i++) {
		struct channel *ch = c->channel[i];

		if (ch == NULL || ch->state != CHANNEL_OPEN)
			continue;
		if (session_must_wait(&ch->session)) {
			transport_again(c->io);
			return true;
		}
		ch->state = CHANNEL_CLOSING;
		channel_end_session(ch);
	}
	leave(c);
	if (c->is_leaving)
		transport_again(c->io);
	return c->is_leaving;
}

void
connection_finish(struct connection *c, bool flush, const char *reason)
{
	struct amqp *a = c->amqp;

	if (c->state == CONN_CLOSED)
		return;
	connection_end_sessions(c);
	connection_timer_stop(c);
	client_end_traffic(&c->client);
	if (c->mechanism != NULL) /* it said who it is */
		event_connection(&c->client, false);
	connection_set_state(c, CONN_CLOSED);
	c->is_deaf = true;
	login_cancel(&c->login);
	if (reason != NULL)
		connection_log_some(c, LOG_INFO, CONN_LINES, "connection closed: %s", reason);
	if (flush)
		transport_close_after_flush(c->io, CONN_LINGER_MS);
	else
		transport_close(c->io);
	if (c->listener != NULL)
		listener_closed(c->listener);
	LIST_REMOVE(c, link);
	LIST_INSERT_HEAD(&a->dead, c, link);
	a->connection_count--;
}

/* --- what the record of the client is asked -------------------------------------------------------- */

static struct connection *
connection_of(const struct client *client)
{
	return container_of((uintptr_t)client, struct connection, client);
}

static void
client_moved(const struct client *client, struct traffic_stats *out, uint64_t *pending)
{
	const struct transport *t = connection_of(client)->io;

	*out = (struct traffic_stats){
		.recv_oct = t->bytes_in,
		.recv_cnt = t->reads,
		.send_oct = t->bytes_out,
		.send_cnt = t->writes,
	};
	*pending = t->pending;
}

/* --- the transport's calls ------------------------------------------------------------------------ */

size_t
connection_on_bytes(void *conn, uint8_t *p, size_t n)
{
	struct connection *c = conn;
	size_t used = 0;

	if (c->is_deaf)
		return n;
	if (unlikely(c->state == CONN_HEADER)) {
		if (n < HANDSHAKE_HEADER)
			return 0;
		handshake_header(c, p);
		if (c->is_deaf)
			return n;
		used = HANDSHAKE_HEADER;
	}
	return used + frame_walk(c, p + used, n - used);
}

/* The output fell well under its bound: what waited for that goes on. */
static void
on_room(void *conn)
{
	struct connection *c = conn;

	if (c->state == CONN_CLOSED)
		return;
	c->client.output_full = false;
	transport_resume(c->io, PAUSE_OUTPUT);
	for (uint32_t i = 0; i < c->channel_slots; i++) {
		struct channel *ch = c->channel[i];

		if (ch == NULL || ch->state != CHANNEL_OPEN)
			continue;
		if (confirm_pending(&ch->confirms))
			channel_mark_confirming(ch);
		if (ch->is_parked)
			park_on_room(ch);
	}
	client_output_room(&c->client);
}

static const char *
end_text(const struct connection *c, int err)
{
	if (transport_tls_why(c->io)[0] != '\0')
		return transport_tls_why(c->io);
	return err != 0 ? strerror(err) : "error of the socket";
}

static void
log_end(const struct connection *c, enum transport_end why, int err)
{
	switch (why) {
	case END_HANGUP:
		/* probes of load balancers open and close without a byte */
		if (c->state == CONN_HEADER && c->io->bytes_in == 0)
			connection_log(c, LOG_DEBUG, "connection closed without a byte");
		else if (c->is_deaf)
			connection_log(
			    c, LOG_DEBUG, "connection closed: the refused client is gone");
		else if (c->state < CONN_OPEN)
			connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
			    "client closed TCP connection during the handshake, in state %s",
			    connection_state_name(c->state));
		else if (c->state == CONN_OPEN)
			connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
			    "client unexpectedly closed TCP connection");
		else
			connection_log_some(c, LOG_INFO, CONN_LINES,
			    "connection closed: client closed TCP connection without close-ok");
		break;
	case END_RESET:
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "client unexpectedly closed TCP connection: %s in state %s",
		    err != 0 ? strerror(err) : "reset", connection_state_name(c->state));
		break;
	case END_STALLED:
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "connection closed: the client took no byte for 30 s, %zu wait for it",
		    c->io->pending);
		break;
	case END_ERROR:
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS, "connection closed: %s%s",
		    transport_tls_why(c->io)[0] != '\0' ? "TLS: " : "", end_text(c, err));
		break;
	}
}

static void
on_end(void *conn, enum transport_end why, int err)
{
	struct connection *c = conn;

	log_end(c, why, err);
	connection_finish(c, false, NULL);
}

static void
on_unref(void *piece)
{
	struct msg *m = piece;

	msg_unref(&m);
}

/* --- refusals ------------------------------------------------------------------------------------- */

static void
log_refusal(struct connection *c, const char *what, uint16_t channel_id, const struct error *e)
{
	const struct method *m = method_find(e->class_id, e->method_id);
	char method[64] = "", channel[32] = "";

	if (!log_allowed(&c->refusals))
		return;
	if (m != NULL)
		snprintf(method, sizeof method, ", %s", method_name(m));
	else if (e->class_id != 0)
		snprintf(method, sizeof method, ", method %u.%u", e->class_id, e->method_id);
	if (channel_id != 0)
		snprintf(channel, sizeof channel, ", channel %u", channel_id);
	connection_log_some(c, LOG_WARNING, CONN_REFUSALS, "%s in state %s%s%s: %u %s", what,
	    connection_state_name(c->state), channel, method, e->code, e->text);
}

static void
send_close(struct connection *c, const struct error *e)
{
	amqp_connection_close_t args = {
		.reply_code = e->code,
		.reply_text = codec_bytes(error_reply_text(e)),
		.class_id = e->class_id,
		.method_id = e->method_id,
	};

	codec_send(c, 0, AMQP_CONNECTION_CLOSE_METHOD, &args);
}

void
connection_turn_away(struct connection *c)
{
	assert(c->state < CONN_OPENING);
	c->is_deaf = true;
	transport_pause(c->io, PAUSE_CLOSING);
	connection_timer_closing(c, CONN_TURN_AWAY_MS);
}

void
connection_say_close(struct connection *c, const struct error *e)
{
	connection_end_sessions(c);
	send_close(c, e);
	connection_set_state(c, CONN_CLOSING);
	c->is_deaf = false;
	/* only close and close-ok are looked at from here on, and nothing is kept of what comes */
	transport_resume(c->io, PAUSE_PARKED | PAUSE_CLOSING);
	connection_timer_closing(c, CONN_LINGER_MS);
}

static void
fail(struct connection *c, uint16_t channel_id, const struct error *e)
{
	if (c->state >= CONN_CLOSING || c->is_deaf)
		return;
	c->client.broker->stats.errors_connection++;
	log_refusal(c, "connection error", channel_id, e);
	if (c->state < CONN_OPENING)
		connection_turn_away(c);
	else
		connection_say_close(c, e);
}

void
connection_fail_deaf(struct connection *c, const struct error *e)
{
	if (c->state == CONN_CLOSING) {
		connection_finish(c, true, "what came after connection.close cannot be told apart");
		return;
	}
	fail(c, 0, e);
	if (c->state == CONN_CLOSING)
		connection_finish(c, true, NULL);
}

static void
channel_fail(struct connection *c, struct channel *ch, const struct error *e)
{
	amqp_channel_close_t args = {
		.reply_code = e->code,
		.reply_text = codec_bytes(error_reply_text(e)),
		.class_id = e->class_id,
		.method_id = e->method_id,
	};

	assert(ch->state == CHANNEL_OPEN);
	c->client.broker->stats.errors_channel++;
	log_refusal(c, "channel error", ch->id, e);
	ch->state = CHANNEL_CLOSING;
	channel_end_session(ch);
	codec_send(c, ch->id, AMQP_CHANNEL_CLOSE_METHOD, &args);
}

void
connection_refuse(struct connection *c, uint16_t channel_id, const struct error *e,
    uint16_t class_id, uint16_t method_id)
{
	struct channel *ch = connection_channel(c, channel_id);
	struct error named = *e; /* the caller's is overwritten by the next refusal */

	named.class_id = class_id;
	named.method_id = method_id;
	if (c->state != CONN_OPEN || e->scope == ERROR_CONNECTION || ch == NULL)
		fail(c, channel_id, &named);
	else if (ch->state == CHANNEL_OPEN)
		channel_fail(c, ch, &named);
}

/* --- channel table -------------------------------------------------------------------------------- */

bool
connection_add_channel(struct connection *c, struct channel *ch, uint16_t id)
{
	uint32_t slots = c->channel_slots != 0 ? c->channel_slots : CONN_CHANNELS_FIRST;
	struct channel **grown;

	assert(id > 0 && connection_channel(c, id) == NULL);
	while (slots < id)
		slots *= 2;
	if (slots != c->channel_slots) {
		grown = try_realloc(c->channel, slots * sizeof(*grown));
		if (grown == NULL)
			return false;
		memset(grown + c->channel_slots, 0, (slots - c->channel_slots) * sizeof(*grown));
		c->channel = grown;
		c->channel_slots = slots;
	}
	c->channel[id - 1] = ch;
	c->channel_count++;
	return true;
}

void
connection_drop_channel(struct connection *c, uint16_t id)
{
	struct channel *ch = connection_channel(c, id);

	assert(ch != NULL && ch->state == CHANNEL_CLOSING);
	c->channel[id - 1] = NULL;
	c->channel_count--;
	ch->dead_next = c->amqp->dead_channels;
	c->amqp->dead_channels = ch;
}

/* --- blocked, unblocked --------------------------------------------------------------------------- */

void
connection_tell_blocked(struct connection *c, const char *reason)
{
	amqp_connection_blocked_t args = { .reason = codec_bytes(span_str(reason)) };

	if (c->blocked_told || c->state != CONN_OPEN)
		return;
	c->blocked_told = true;
	c->client.state = "blocked";
	connection_log_some(c, LOG_INFO, CONN_REFUSALS, "publishing is blocked: %s", reason);
	if (c->can_blocked)
		codec_send(c, 0, AMQP_CONNECTION_BLOCKED_METHOD, &args);
}

void
connection_tell_unblocked(struct connection *c)
{
	if (!c->blocked_told || c->state != CONN_OPEN)
		return;
	c->blocked_told = false;
	c->client.state = states[c->state].shown;
	connection_log_some(c, LOG_INFO, CONN_REFUSALS, "publishing is no longer blocked");
	if (c->can_blocked)
		codec_send_empty(c, 0, AMQP_CONNECTION_UNBLOCKED_METHOD);
}
