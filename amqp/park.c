/* SPDX-License-Identifier: Apache-2.0
 * Frames of parked channels: kept as they came, and handled when the channel goes on. See the header.
 *
 * A channel stands on exactly one list of amqp->parked, by what it waits for. connection.close waits for parked channels
 * of its connection as if all had been read in order, so that what was published before it is not lost; but not where
 * an alarm holds them and the connection holds deliveries: these go back now. What is dropped is counted and logged. */
#include "amqp/park.h"

#include <assert.h>
#include <stdlib.h>

#include "amqp/channel.h"
#include "amqp/frame.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/drain.h"

enum {
	PARKED_MAX = 256 << 10,     /* bytes of frames a connection */
	PARKED_FEW = 16 << 10,      /* the same, where many of them are what memory is short of */
	PARKED_LOW = PARKED_MAX / 2 /* reading goes on */
};

bool
park_is_alarm(const struct amqp *a)
{
	return drain_holds_publishers(a->broker) || a->hold_text != NULL;
}

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
	free(k->answer);
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
	assert(ch->is_parked);
	if (n == 0)
		return;
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

/* --- on the lists and off them ------------------------------------------ */

/* PARK_DUE is no wait. */
static struct back_pressure *
pressure_of(const struct channel *ch)
{
	static const enum pressure by_reason[PARK_REASONS] = { [PARK_MEMORY] = PRESSURE_memory,
		[PARK_STORE] = PRESSURE_disk,
		[PARK_LAG] = PRESSURE_queue,
		[PARK_LETTERS] = PRESSURE_letters,
		[PARK_WRITTEN] = PRESSURE_journal,
		[PARK_DURABLE] = PRESSURE_journal,
		[PARK_LOAD] = PRESSURE_read,
		[PARK_DUE] = PRESSURES };
	enum pressure p = by_reason[ch->parked_for];

	return ch->is_parked && p != PRESSURES ? &ch->conn->amqp->broker->pressure[p] : NULL;
}

static void
uncount_wait(const struct channel *ch)
{
	struct back_pressure *p = pressure_of(ch);

	if (p != NULL)
		p->now--;
}

static void
count_wait(const struct channel *ch)
{
	struct back_pressure *p = pressure_of(ch);

	if (p != NULL) {
		p->now++;
		p->times++;
	}
}

void
park_put(struct channel *ch, enum park_reason reason)
{
	uncount_wait(ch);
	if (ch->is_parked)
		TAILQ_REMOVE(&ch->conn->amqp->parked[ch->parked_for], ch, parked_link);
	else
		ch->conn->parked_count++;
	ch->is_parked = true;
	ch->parked_for = reason;
	TAILQ_INSERT_TAIL(&ch->conn->amqp->parked[reason], ch, parked_link);
	count_wait(ch);
}

struct parked
park_take(struct channel *ch)
{
	struct parked k = ch->parked;

	uncount_wait(ch);
	TAILQ_REMOVE(&ch->conn->amqp->parked[ch->parked_for], ch, parked_link);
	ch->is_parked = false;
	ch->parked = (struct parked){ 0 };
	ch->conn->parked_count--;
	uncount(ch->conn, k.n - k.at);
	return k;
}

void
park_lose(struct connection *c, uint16_t id, struct parked *k)
{
	size_t n = k->n - k->at;

	if (n > 0) {
		c->amqp->broker->stats.parked_dropped += n;
		connection_log(c, LOG_WARNING,
		    "channel %u: %zu bytes of frames that waited were dropped", id, n);
	}
	drop(k);
}

void
park_forget(struct channel *ch)
{
	struct parked k;

	if (!ch->is_parked)
		return;
	k = park_take(ch);
	park_lose(ch->conn, ch->id, &k);
}

/* Waits of the store end by themselves, but for those at a full disk. */
static bool
waits_for_alarm(const struct channel *ch)
{
	return ch->parked_for == PARK_MEMORY ||
	       (ch->parked_for == PARK_STORE && ch->conn->amqp->hold_text != NULL);
}

bool
park_delays_close(struct connection *c)
{
	bool holds_deliveries = false;

	for (uint32_t i = 0; i < c->channel_slots; i++) {
		struct channel *ch = c->channel[i];

		if (ch == NULL)
			continue;
		if (ch->is_parked && !waits_for_alarm(ch)) {
			holds_deliveries = false;
			break;
		}
		holds_deliveries |= session_unacked(&ch->session) > 0;
	}
	if (holds_deliveries)
		return false;
	transport_pause(c->io, PAUSE_PARKED);
	return true;
}

/* --- going on ----------------------------------------------------------- */

/* The frames that were not replayed wait on: behind one that was parked again, or as they were. */
static void
keep_rest(struct channel *ch, struct parked *k, enum park_reason reason)
{
	struct parked_list *list;

	if (ch->is_parked) {
		channel_keep_parked(ch, k->p + k->at, k->n - k->at);
		drop(k);
		return;
	}
	park_put(ch, reason == PARK_MEMORY ? PARK_MEMORY : PARK_DUE);
	ch->parked = *k;
	list = &ch->conn->amqp->parked[ch->parked_for];
	if (reason != PARK_MEMORY || park_memory_goes_on(ch)) {
		TAILQ_REMOVE(list, ch, parked_link);
		TAILQ_INSERT_HEAD(list, ch, parked_link);
	}
	count(ch->conn, k->n - k->at);
}

/* All are dropped on a channel that is not open, but those that close it and open it again. */
void
park_replay(struct connection *c, uint16_t id, struct parked *k)
{
	struct channel *ch;

	do {
		c->amqp->is_replaying = true;
		k->at += frame_handle(c, k->p + k->at, k->p + k->n);
		c->amqp->is_replaying = false;
		ch = connection_channel(c, id);
	} while (
	    k->at < k->n && c->state == CONN_OPEN && (ch == NULL || ch->state != CHANNEL_OPEN));
}

size_t
park_resume(struct amqp *a, struct channel *ch, size_t budget, struct frame_share *share)
{
	struct connection *c = ch->conn;
	enum park_reason reason = ch->parked_for;
	uint16_t id = ch->id;
	struct parked k = park_take(ch);
	size_t start = k.at;

	while (k.at < k.n && k.at - start < budget && c->state == CONN_OPEN) {
		park_replay(c, id, &k);
		ch = connection_channel(c, id);
		if ((ch != NULL && ch->is_parked) || (c->io->paused & PAUSE_OUTPUT) != 0 ||
		    frame_share_used(c, share))
			break;
	}
	budget = k.at - start;
	if (k.at < k.n && c->state == CONN_OPEN)
		keep_rest(connection_channel(c, id), &k, reason);
	else
		park_lose(c, id, &k);
	if (c->parked_count == 0 && !park_is_alarm(a))
		connection_tell_unblocked(c);
	return budget;
}

/* Those that wait for nothing but their share. */
static bool
run_due(struct amqp *a, size_t *left, struct frame_share *share)
{
	struct parked_list *list = &a->parked[PARK_DUE];
	struct channel *ch;
	size_t before = *left, used;

	for (unsigned i = 0; i < PARK_RUN_CHANNELS && *left != 0; i++) {
		if ((ch = TAILQ_FIRST(list)) == NULL)
			break;
		if ((ch->conn->io->paused & PAUSE_OUTPUT) != 0) {
			park_put(ch, PARK_DUE); /* behind the others */
			continue;
		}
		used = park_resume(a, ch, *left, share);
		*left -= used < *left ? used : *left;
		if (frame_share_used(ch->conn, share))
			*left = 0;
	}
	return *left < before && !TAILQ_EMPTY(list);
}

/* Connections that were told of an alarm and whose parked channels went in another way. */
static void
tell_all(struct amqp *a)
{
	struct connection *c;

	LIST_FOREACH (c, &a->connections, link)
		connection_tell_unblocked(c);
	a->told_blocked = false;
}

bool
parked_run(struct amqp *a)
{
	struct frame_share share = { 0 };
	size_t left = PARK_RUN_BYTES;
	bool more;

	park_store_run(a);
	more = run_due(a, &left, &share);
	more |= park_memory_run(a, &left, &share);
	if (a->told_blocked && !park_is_alarm(a) && TAILQ_EMPTY(&a->parked[PARK_MEMORY]) &&
	    TAILQ_EMPTY(&a->parked[PARK_STORE]) && TAILQ_EMPTY(&a->parked[PARK_DUE]))
		tell_all(a);
	return more;
}
