/* SPDX-License-Identifier: Apache-2.0
 * Time limits of a connection: the handshake, then heartbeats, then the wait for close-ok. One node of the wheel; what it
 * means follows from the state.
 *
 * Heartbeats (0-9-1, 4.2.7): nothing is armed anew when bytes move. The node looks at the times of the last read and the
 * last write when it fires. A heartbeat is written when nothing was written for half the interval and nothing waits for
 * the socket: bytes that wait say the same. A peer that was silent for two intervals is let go; while we do not read it,
 * its silence proves nothing and does not count. */
#include "amqp/connection.h"

#include <stdio.h>

#include "amqp/frame.h"
#include "base/bound.h"
#include "base/config.h"
#include "broker/broker.h"
#include "net/loop.h"

static void
heartbeat_write(struct connection *c)
{
	static const uint8_t frame[FRAME_OVERHEAD] = { FRAME_HEARTBEAT, 0, 0, 0, 0, 0, 0,
		FRAME_END };

	transport_write(c->io, frame, sizeof frame);
}

static void
heartbeat_fire(struct connection *c, uint64_t now_ms)
{
	uint64_t half_ms = (uint64_t)c->heartbeat_s * 500, heard_ms, write_at_ms, drop_at_ms;

	if (c->io->paused != 0)
		c->heard_ms = now_ms;
	heard_ms = c->io->last_read_ms > c->heard_ms ? c->io->last_read_ms : c->heard_ms;
	drop_at_ms = heard_ms + 4 * half_ms;
	if (now_ms >= drop_at_ms) {
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "missed heartbeats from client, timeout: %us", c->heartbeat_s);
		connection_finish(c, false, NULL);
		return;
	}
	write_at_ms = c->io->last_write_ms + half_ms;
	if (now_ms >= write_at_ms || c->io->pending > 0) {
		if (c->io->pending == 0)
			heartbeat_write(c);
		write_at_ms = now_ms + half_ms;
	}
	wheel_arm(
	    c->amqp->loop->wheel, &c->timer, write_at_ms < drop_at_ms ? write_at_ms : drop_at_ms);
}

/* The moment that a refused login had to wait is over. */
static void
turn_away_fire(struct connection *c)
{
	struct error e = { .id = E_LOGIN_REFUSED,
		.code = error_defs[E_LOGIN_REFUSED].code,
		.scope = ERROR_CONNECTION };

	if (c->early_error == NULL || c->state >= CONN_OPENING) {
		connection_finish(c, true, "refused during the handshake");
		return;
	}
	snprintf(e.text, sizeof e.text, "%s", c->early_error);
	connection_say_close(c, &e);
}

static void
fire(struct wheel_node *node, uint64_t now_ms)
{
	struct connection *c = container_of(node, struct connection, timer);

	if (c->is_deaf) {
		turn_away_fire(c);
		return;
	}
	switch (c->state) {
	case CONN_HEADER:
	case CONN_STARTING:
	case CONN_SECURING:
	case CONN_TUNING:
	case CONN_OPENING:
		bound_reached(BOUND_handshake);
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "handshake not done after %lu ms (limits.handshake), in state %s",
		    (unsigned long)c->amqp->cfg->handshake_ms, connection_state_name(c->state));
		connection_finish(c, false, NULL);
		break;
	case CONN_OPEN: heartbeat_fire(c, now_ms); break;
	case CONN_CLOSING: connection_finish(c, false, "no close-ok came in time"); break;
	case CONN_CLOSED: break;
	}
}

static void
arm(struct connection *c, uint64_t ms)
{
	c->timer.fire = fire;
	wheel_arm(c->amqp->loop->wheel, &c->timer, c->amqp->loop->now_ms + ms);
}

void
connection_timer_handshake(struct connection *c, uint64_t since_ms)
{
	uint64_t end_ms = since_ms + c->amqp->cfg->handshake_ms, now_ms = c->amqp->loop->now_ms;

	arm(c, end_ms > now_ms ? end_ms - now_ms : 0);
}

void
connection_timer_heartbeats(struct connection *c)
{
	c->heard_ms = c->amqp->loop->now_ms;
	if (c->heartbeat_s == 0)
		connection_timer_stop(c);
	else
		arm(c, (uint64_t)c->heartbeat_s * 500);
}

void
connection_timer_closing(struct connection *c, uint64_t ms)
{
	arm(c, ms);
}

void
connection_timer_stop(struct connection *c)
{
	wheel_disarm(c->amqp->loop->wheel, &c->timer);
}
