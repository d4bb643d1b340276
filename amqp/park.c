/* SPDX-License-Identifier: Apache-2.0
 * Channels that a memory alarm keeps from publishing (DESIGN: ownership, bounds, back pressure).
 *
 * Over the watermark a channel that publishes is parked: its frames are kept as they came, from
 * that publish on, because an ack behind a publish may mean that the result is published. The
 * connection goes on to be read for its other channels, until it holds PARKED_MAX bytes of such
 * frames. A channel that also takes messages may go on with as many publishes as deliveries it
 * held when the alarm began or got since: it adds no more than it takes, and its acks are reached.
 * Over the hard limit that ends, and one that holds deliveries is closed, so that they go back.
 *
 * amqp->parked is in the order of parking, but for channels that got a delivery meanwhile: they
 * stand at the head, because they may go on before the alarm ends. */
#include <assert.h>
#include <stdlib.h>

#include "amqp/channel.h"
#include "amqp/frame.h"
#include "base/mem.h"
#include "broker/broker.h"

enum {
	PARKED_MAX = 256 << 10,      /* bytes of frames a connection */
	PARKED_LOW = PARKED_MAX / 2, /* reading goes on */
	RUN_BYTES = 256 << 10,       /* replayed in one turn */
	RUN_CHANNELS = 64
};

/* --- keeping ------------------------------------------------------------ */

static bool
reserve(struct parked *k, size_t n)
{
	size_t cap = k->cap == 0 ? 256 : k->cap;
	uint8_t *grown;

	while (cap < k->n + n)
		cap *= 2;
	if (cap == k->cap)
		return true;
	grown = try_realloc(k->p, cap);
	if (grown == NULL)
		return false;
	mem_add(MEM_INPUT, cap - k->cap);
	k->p = grown;
	k->cap = cap;
	return true;
}

static void
drop(struct parked *k)
{
	mem_sub(MEM_INPUT, k->cap);
	free(k->p);
	*k = (struct parked){ 0 };
}

static void
count(struct connection *c, size_t n)
{
	c->parked_bytes += n;
	if (c->parked_bytes >= PARKED_MAX)
		transport_pause(c->io, PAUSE_PARKED);
}

static void
uncount(struct connection *c, size_t n)
{
	assert(c->parked_bytes >= n);
	c->parked_bytes -= n;
	if (c->parked_bytes < PARKED_LOW)
		transport_resume(c->io, PAUSE_PARKED);
}

void
channel_keep_parked(struct channel *ch, const uint8_t *frame, size_t n)
{
	if (!reserve(&ch->parked, n)) {
		connection_refuse(ch->conn, ch->id,
		    error_make(E_RESOURCE_ERROR, "no memory for frames of a blocked channel"), 0,
		    0);
		return;
	}
	memcpy(ch->parked.p + ch->parked.n, frame, n);
	ch->parked.n += n;
	count(ch->conn, n);
}

void
park_forget(struct channel *ch)
{
	size_t n = ch->parked.n - ch->parked.at;

	if (!ch->is_parked)
		return;
	TAILQ_REMOVE(&ch->conn->amqp->parked, ch, parked_link);
	ch->is_parked = false;
	drop(&ch->parked);
	uncount(ch->conn, n);
}

/* --- parking ------------------------------------------------------------ */

/* The session counts deliveries up all the time; with each alarm the count begins anew. */
static uint64_t
allowance(struct channel *ch)
{
	struct session *s = &ch->session;
	uint64_t alarm = s->broker->memory.alarms;

	if (ch->alarm != alarm) {
		ch->alarm = alarm;
		s->allowance = session_unacked(s);
	}
	return s->allowance;
}

static void
park(struct channel *ch)
{
	struct connection *c = ch->conn;

	ch->is_parked = true;
	ch->parked_since_ms = c->amqp->broker->now_ms;
	TAILQ_INSERT_TAIL(&c->amqp->parked, ch, parked_link);
	c->amqp->broker->stats.parked++;
	c->amqp->told_blocked = true;
	connection_tell_blocked(c, "low on memory");
}

static const struct error *
too_short(const struct channel *ch)
{
	ch->conn->amqp->broker->stats.alarm_closed++;
	return error_make(E_PRECONDITION_FAILED,
	    "memory is short: the channel publishes while it holds %u unacknowledged messages",
	    session_unacked(&ch->session));
}

bool
channel_park(struct channel *ch, const uint8_t *frame, size_t n, const struct error **error)
{
	struct session *s = &ch->session;
	struct memory *memory = &s->broker->memory;

	*error = NULL;
	(void)memory_check(memory, s->broker->now_ms);
	if (!memory_short(memory))
		return false;
	if (memory->state == MEMORY_HARD && session_unacked(s) > 0) {
		*error = too_short(ch);
		return true;
	}
	if (memory->state == MEMORY_HIGH && allowance(ch) > 0) {
		s->allowance--;
		return false;
	}
	park(ch);
	channel_keep_parked(ch, frame, n);
	return true;
}

void
park_on_delivery(struct channel *ch)
{
	struct parked_list *list = &ch->conn->amqp->parked;

	assert(ch->is_parked);
	TAILQ_REMOVE(list, ch, parked_link);
	TAILQ_INSERT_HEAD(list, ch, parked_link);
}

/* --- going on ----------------------------------------------------------- */

/* The frames that were not replayed wait on: behind one that was parked again, or as they were. */
static void
keep_rest(struct amqp *a, struct channel *ch, struct parked *k)
{
	if (ch->is_parked) {
		channel_keep_parked(ch, k->p + k->at, k->n - k->at);
		drop(k);
		return;
	}
	ch->is_parked = true;
	ch->parked = *k;
	TAILQ_INSERT_HEAD(&a->parked, ch, parked_link);
	count(ch->conn, k->n - k->at);
}

/* Handles at most `budget` bytes of what the channel kept, at least one frame; returns how many.
 * The channel may be closed by them, another one opened under its number, or the connection be
 * gone: it lives until the end of the turn. */
static size_t
resume(struct amqp *a, struct channel *ch, size_t budget)
{
	struct connection *c = ch->conn;
	struct parked k = ch->parked;
	uint16_t id = ch->id;
	size_t start = k.at;

	TAILQ_REMOVE(&a->parked, ch, parked_link);
	ch->is_parked = false;
	ch->parked = (struct parked){ 0 };
	uncount(c, k.n - k.at);
	while (k.at < k.n && k.at - start < budget && c->state == CONN_OPEN) {
		k.at += frame_handle(c, k.p + k.at, k.p + k.n);
		ch = connection_channel(c, id);
		if ((ch != NULL && ch->is_parked) || (c->io->paused & PAUSE_OUTPUT) != 0)
			break;
	}
	budget = k.at - start;
	ch = connection_channel(c, id);
	if (k.at < k.n && c->state == CONN_OPEN && ch != NULL && ch->state == CHANNEL_OPEN)
		keep_rest(a, ch, &k);
	else
		drop(&k);
	if (c->parked_bytes == 0 && !memory_short(&a->broker->memory))
		connection_tell_unblocked(c);
	return budget;
}

/* Hard limit: those that hold deliveries are closed. All were looked at once when it began; later
 * it is those at the head. True: there are more. */
static bool
close_holders(struct amqp *a)
{
	bool scan = !a->hard_seen;
	struct channel *ch = TAILQ_FIRST(&a->parked), *next;
	unsigned closed = 0;

	for (; ch != NULL && closed < RUN_CHANNELS; ch = next) {
		next = TAILQ_NEXT(ch, parked_link);
		if (session_unacked(&ch->session) > 0) {
			connection_refuse(ch->conn, ch->id, too_short(ch), 60, 40);
			closed++;
		} else if (!scan)
			return false;
	}
	a->hard_seen = ch == NULL;
	return ch != NULL;
}

/* Connections that were told of the alarm and whose parked channels went in another way. */
static void
tell_all(struct amqp *a)
{
	struct connection *c;

	LIST_FOREACH (c, &a->connections, link) {
		if (c->parked_bytes == 0)
			connection_tell_unblocked(c);
	}
	a->told_blocked = false;
}

static bool
may_go_on(struct channel *ch)
{
	return !memory_short(&ch->session.broker->memory) || allowance(ch) > 0;
}

bool
parked_run(struct amqp *a)
{
	struct memory *memory = &a->broker->memory;
	size_t left = RUN_BYTES, used;
	struct channel *ch;

	(void)memory_check(memory, a->broker->now_ms);
	if (memory->state == MEMORY_HARD)
		return close_holders(a);
	a->hard_seen = false;
	for (unsigned i = 0; i < RUN_CHANNELS && left > 0 && (ch = TAILQ_FIRST(&a->parked)) != NULL;
	     i++) {
		if (!may_go_on(ch))
			return false;
		if ((ch->conn->io->paused & PAUSE_OUTPUT) != 0) {
			/* its turn comes when it has taken its output */
			TAILQ_REMOVE(&a->parked, ch, parked_link);
			TAILQ_INSERT_TAIL(&a->parked, ch, parked_link);
			continue;
		}
		used = resume(a, ch, left);
		left -= used < left ? used : left;
		(void)memory_check(memory, a->broker->now_ms);
	}
	if (TAILQ_EMPTY(&a->parked) && a->told_blocked && !memory_short(memory))
		tell_all(a);
	return left < RUN_BYTES && !TAILQ_EMPTY(&a->parked) && memory->state != MEMORY_HARD;
}
