/* SPDX-License-Identifier: Apache-2.0
 * Channels that a memory alarm keeps from publishing (DESIGN: ownership, bounds, back pressure).
 *
 * Over the watermark a channel that publishes is parked: its frames are kept as they came, from
 * that publish on, because an ack behind a publish may mean that the result is published. The
 * connection goes on to be read for its other channels, until it holds most_parked() bytes of such
 * frames. A channel that also takes messages may go on with as many publishes as deliveries it
 * held when the alarm began or got since: it adds no more than it takes, and its acks are reached.
 * Over the hard limit that ends, and one that holds deliveries is closed, so that they go back.
 *
 * connection.close waits for parked channels of its connection as if all had been read in order,
 * so that what was published before it is not lost; but not where the connection holds deliveries:
 * these go back now. What is dropped is counted and logged.
 *
 * amqp->parked is in the order of parking, but those that may go on before the alarm ends stand at
 * the head, or the first that may not would keep them from their acks: who got a delivery, and
 * with each new alarm (the counts begin anew) and after the hard limit all that have an allowance. */
#include <assert.h>
#include <stdlib.h>

#include "amqp/channel.h"
#include "amqp/frame.h"
#include "base/mem.h"
#include "broker/broker.h"

enum {
	PARKED_MAX = 256 << 10,      /* bytes of frames a connection */
	PARKED_FEW = 16 << 10,       /* the same, where many of them are what memory is short of */
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

/* Does anything come back by its being read? */
static bool
takes_messages(const struct connection *c)
{
	const struct session *s;

	LIST_FOREACH (s, &c->client.sessions, link) {
		if (s->consumer_count > 0 || session_unacked(s) > 0)
			return true;
	}
	return false;
}

/* A hundred publishers at full speed would keep 25 MiB. */
static size_t
most_parked(const struct connection *c)
{
	if (mem_held[MEM_INPUT] < c->amqp->broker->memory.limit / 16 || takes_messages(c))
		return PARKED_MAX;
	return PARKED_FEW;
}

static void
count(struct connection *c, size_t n)
{
	c->parked_bytes += n;
	if (c->parked_bytes >= most_parked(c))
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

/* Off the list; what it kept is the caller's. */
static struct parked
unpark(struct channel *ch)
{
	struct parked k = ch->parked;

	TAILQ_REMOVE(&ch->conn->amqp->parked, ch, parked_link);
	ch->is_parked = false;
	ch->parked = (struct parked){ 0 };
	uncount(ch->conn, k.n - k.at);
	return k;
}

/* Frames that nobody will handle any more. */
static void
lose(struct connection *c, uint16_t id, struct parked *k)
{
	size_t n = k->n - k->at;

	if (n > 0) {
		c->amqp->broker->stats.parked_dropped += n;
		connection_log(c, LOG_WARNING,
		    "channel %u: %zu bytes of frames that waited for memory were dropped", id, n);
	}
	drop(k);
}

void
park_forget(struct channel *ch)
{
	struct parked k;

	if (!ch->is_parked)
		return;
	k = unpark(ch);
	lose(ch->conn, ch->id, &k);
}

bool
park_delays_close(struct connection *c)
{
	for (uint32_t i = 0; i < c->channel_slots; i++) {
		if (c->channel[i] != NULL && session_unacked(&c->channel[i]->session) > 0)
			return false;
	}
	transport_pause(c->io, PAUSE_PARKED);
	return true;
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

static bool
may_go_on(struct channel *ch)
{
	return !memory_short(&ch->session.broker->memory) || allowance(ch) > 0;
}

void
park_on_room(struct channel *ch)
{
	/* over the hard limit nobody goes on, and those that hold deliveries have to be first */
	if (ch->session.broker->memory.state != MEMORY_HARD && may_go_on(ch))
		park_on_delivery(ch);
}

/* --- going on ----------------------------------------------------------- */

/* Those that may not go on move behind those that may. */
static void
order_anew(struct amqp *a)
{
	struct channel *last = TAILQ_LAST(&a->parked, parked_list), *ch = NULL, *next;

	for (next = TAILQ_FIRST(&a->parked); next != NULL && ch != last;) {
		ch = next;
		next = TAILQ_NEXT(ch, parked_link);
		if (may_go_on(ch))
			continue;
		TAILQ_REMOVE(&a->parked, ch, parked_link);
		TAILQ_INSERT_TAIL(&a->parked, ch, parked_link);
	}
}

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
	if (may_go_on(ch))
		TAILQ_INSERT_HEAD(&a->parked, ch, parked_link);
	else
		TAILQ_INSERT_TAIL(&a->parked, ch, parked_link);
	count(ch->conn, k->n - k->at);
}

/* Handles kept frames up to and with the next one after which the channel is open. On one that is
 * not they cannot wait: all are dropped but those that close it and open it again. */
static void
replay(struct connection *c, uint16_t id, struct parked *k)
{
	struct channel *ch;

	do {
		k->at += frame_handle(c, k->p + k->at, k->p + k->n);
		ch = connection_channel(c, id);
	} while (
	    k->at < k->n && c->state == CONN_OPEN && (ch == NULL || ch->state != CHANNEL_OPEN));
}

/* Handles at most `budget` bytes of what the channel kept, at least one frame; returns how many.
 * The channel may be closed by them, another one opened under its number, or the connection be
 * gone: it lives until the end of the turn. */
static size_t
resume(struct amqp *a, struct channel *ch, size_t budget, struct frame_share *share)
{
	struct connection *c = ch->conn;
	uint16_t id = ch->id;
	struct parked k = unpark(ch);
	size_t start = k.at;

	while (k.at < k.n && k.at - start < budget && c->state == CONN_OPEN) {
		replay(c, id, &k);
		ch = connection_channel(c, id);
		if ((ch != NULL && ch->is_parked) || (c->io->paused & PAUSE_OUTPUT) != 0 ||
		    frame_share_used(c, share))
			break;
	}
	budget = k.at - start;
	if (k.at < k.n && c->state == CONN_OPEN)
		keep_rest(a, connection_channel(c, id), &k);
	else
		lose(c, id, &k);
	if (c->parked_bytes == 0 && !memory_short(&a->broker->memory))
		connection_tell_unblocked(c);
	return budget;
}

static void
close_holder(struct channel *ch)
{
	struct connection *c = ch->conn;
	uint16_t id = ch->id;
	struct parked k = unpark(ch);

	connection_refuse(c, id, too_short(ch), 60, 40);
	/* the client may have closed it too, and waits for the answer to that */
	replay(c, id, &k);
	lose(c, id, &k);
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
			close_holder(ch);
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

bool
parked_run(struct amqp *a)
{
	struct memory *memory = &a->broker->memory;
	struct frame_share share = { 0 };
	size_t left = RUN_BYTES, used;
	struct channel *ch;

	(void)memory_check(memory, a->broker->now_ms);
	if (memory->state == MEMORY_HARD) {
		a->alarm_seen = 0;
		return close_holders(a);
	}
	a->hard_seen = false;
	if (memory->state == MEMORY_HIGH && a->alarm_seen != memory->alarms)
		order_anew(a);
	a->alarm_seen = memory->alarms;
	for (unsigned i = 0; i < RUN_CHANNELS && left > 0 && (ch = TAILQ_FIRST(&a->parked)) != NULL;
	     i++) {
		if (!may_go_on(ch))
			return false;
		if ((ch->conn->io->paused & PAUSE_OUTPUT) != 0) {
			/* its turn comes when it has taken its output: park_on_room */
			TAILQ_REMOVE(&a->parked, ch, parked_link);
			TAILQ_INSERT_TAIL(&a->parked, ch, parked_link);
			continue;
		}
		used = resume(a, ch, left, &share);
		left -= used < left ? used : left;
		if (frame_share_used(ch->conn, &share))
			left = 0;
		(void)memory_check(memory, a->broker->now_ms);
	}
	if (TAILQ_EMPTY(&a->parked) && a->told_blocked && !memory_short(memory))
		tell_all(a);
	return left < RUN_BYTES && !TAILQ_EMPTY(&a->parked) && memory->state != MEMORY_HARD;
}
