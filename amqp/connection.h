/* SPDX-License-Identifier: Apache-2.0
 * One AMQP connection: its state from the protocol header to the end, its channels, its heartbeats, its errors.
 *
 *	HEADER -> STARTING -> (SECURING) -> TUNING -> OPENING -> OPEN -> CLOSING -> CLOSED
 *
 * CLOSING: we sent connection.close; everything but close and close-ok is dropped, for at most some seconds. Before OPEN
 * nothing but a login refusal is answered in words: the socket is closed, as RabbitMQ does. */
#ifndef AMQP_CONNECTION_H
#define AMQP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "amqp/amqp.h"
#include "base/attr.h"
#include "base/log.h"
#include "base/wheel.h"
#include "broker/client.h"
#include "broker/error.h"
#include "net/transport.h"

struct arrival;
struct channel;
struct listener;
struct login;

enum connection_state { CONN_HEADER, CONN_STARTING, CONN_SECURING, CONN_TUNING, CONN_OPENING, CONN_OPEN, CONN_CLOSING,
	CONN_CLOSED };

struct connection {
	struct client client;			/* the record the broker and management see */
	struct amqp *amqp;			/* borrowed */
	struct transport *io;			/* owned */
	struct listener *listener;		/* borrowed; NULL in tests */
	enum connection_state state;		/* written only by connection_set_state() */
	uint32_t frame_max;			/* negotiated: largest frame with its 8 bytes of frame around the payload */
	uint32_t payload_max;			/* largest payload that we take: CONN_EARLY_PAYLOAD, later frame_max. (8 more than it
						 * should be: as RabbitMQ does, for clients that leave the frame out of the sum) */
	uint16_t channel_max, heartbeat_s;
	bool blocked_told;			/* connection.blocked was sent */
	bool can_blocked;			/* client capabilities */
	bool failure_close;			/* authentication_failure_close */
	bool is_deaf;				/* input is thrown away: refused, or the frames cannot be told apart any more */
	struct channel **channel;		/* owned; by number - 1; grown to the largest number in use */
	uint32_t ending;			/* channels that are on amqp->ending, also some that have no number any more */
	bool is_leaving;			/* on amqp->leaving */
	uint32_t channel_slots, channel_count;	/* slots of the array; open or closing channels */
	uint64_t content_in_flight;		/* bytes of content not complete yet */
	uint64_t parked_bytes;			/* frames of parked channels */
	uint32_t parked_count;			/* parked channels */
	struct wheel_node timer;		/* handshake, then heartbeats, then the wait for close-ok */
	uint64_t heard_ms;			/* silence of the peer counts from here at the earliest */
	struct log_limit refusals;		/* lines about its own misuse */
	struct login *login;			/* the password is being looked at: nothing is read meanwhile; NULL: it is not */
	char *login_name;			/* owned: of whom, for the log */
	const char *mechanism;			/* static: by which it logs in */
	char *early_error;			/* owned: text of a login refusal that is held back a little; NULL: none */
	LIST_ENTRY(connection) leaving_link;	/* amqp->leaving */
	LIST_ENTRY(connection) link;		/* amqp->connections, then amqp->dead */
};

enum {
	CONN_EARLY_PAYLOAD = 8192,		/* before connection.tune-ok; RabbitMQ 3.13 has the same */
	CONN_CHANNELS_FIRST = 4,		/* slots of the channel array at first */
	CONN_TURN_AWAY_MS = 100,		/* how long a refused login waits for its answer */
	CONN_LINGER_MS = 5000,			/* how long we wait for close-ok, or for the peer to take what we sent */
	CONN_LINES = 1000,			/* of the log, in 10 s: that a connection begins or ends as it should */
	CONN_REFUSALS = 200,			/* and of each kind of misuse; of one connection's channels: */
	CONN_OWN_REFUSALS = 20
};

/* One that was accepted by ls (NULL: nobody counts it): the handshake begins; its time began with the accept. Takes over
 * what the arrival owns. */
struct connection *connection_new(struct amqp *a, const struct arrival *from, struct listener *ls);
void connection_free(struct connection **cp);	/* after connection_finish, at the end of a turn */

/* ops->on_bytes of the transport. */
size_t connection_on_bytes(void *conn, uint8_t *p, size_t n);
void connection_set_state(struct connection *c, enum connection_state to);
const char *connection_state_name(enum connection_state s);

/* One line about this connection. */
#define connection_log(c, level, ...) log_line((level), &(c)->client.who, __VA_ARGS__)
/* The same where clients decide how many there are: one that does the same wrong thing in a loop, a crowd that connects
 * again and again. At most `lines` from this place in 10 s, and how many were held back. */
#define connection_log_some(c, level, lines, ...) \
	do { \
		static struct log_limit log_some = { .burst = (lines) }; \
		if (log_allowed(&log_some)) \
			connection_log(c, level, __VA_ARGS__); \
	} while (0)

/* The one way out, safe to call twice: channels go, the client's record goes, the transport is closed (after a flush if
 * `flush`), the struct is freed by amqp_reap(). reason is for the log. */
void connection_finish(struct connection *c, bool flush, const char *reason);

/* Sends channel.close and lets the channel drain until close-ok, or connection.close and waits for close-ok, by the
 * refusal's scope; before OPENING the connection is closed without a word. Logged. class_id and method_id name the
 * method that was refused (0, 0: none). */
void connection_refuse(struct connection *c, uint16_t channel_id, const struct error *e, uint16_t class_id,
    uint16_t method_id);

/* Output bookkeeping after something was written: sets client.output_full and PAUSE_OUTPUT by the two bounds. Called at
 * the end of each handled frame and by deliveries. */
static inline void
connection_check_output(struct connection *c, uint64_t output, uint64_t output_max)
{
	if (unlikely(c->io->pending >= output)) {
		c->client.output_full = true;
		if (c->io->pending >= output_max)
			transport_pause(c->io, PAUSE_OUTPUT);
	}
}

static inline struct channel *
connection_channel(const struct connection *c, uint16_t id)
{
	return id > 0 && id <= c->channel_slots ? c->channel[id - 1] : NULL;
}

/* The broker's side of everything it holds ends: unacknowledged messages go back, exclusive queues go. Where that is very
 * much the rest follows in the turns to come; nothing is delivered any more, and the queues cannot be found. */
void connection_end_sessions(struct connection *c);
/* The same as far as a turn allows, before connection.close is answered. True: not all is back, and the frame is to be
 * shown again. */
bool connection_must_wait(struct connection *c);
/* An error after which the bytes that follow cannot be told apart: nothing is read any more, not even close-ok. */
void connection_fail_deaf(struct connection *c, const struct error *e);
/* Sends connection.close and waits for its answer, without counting or logging. */
void connection_say_close(struct connection *c, const struct error *e);
/* Before OPENING no refusal is told in words. The peer is let go a moment later, so that guessing costs time. */
void connection_turn_away(struct connection *c);

/* Channel table. connection_add_channel: false: no memory. connection_drop_channel takes it out; it is freed at the
 * end of the turn, because whoever called may still look at it. */
bool connection_add_channel(struct connection *c, struct channel *ch, uint16_t id) MUSTUSE;
void connection_drop_channel(struct connection *c, uint16_t id);

/* connection_timer.c: one node, used for one thing after the other. */
void connection_timer_handshake(struct connection *c, uint64_t since_ms);
void connection_timer_heartbeats(struct connection *c);		/* also stops the handshake's */
void connection_timer_closing(struct connection *c, uint64_t ms);
void connection_timer_stop(struct connection *c);

/* connection.blocked / unblocked, if the client understands them. */
void connection_tell_blocked(struct connection *c, const char *reason);
void connection_tell_unblocked(struct connection *c);

#endif
