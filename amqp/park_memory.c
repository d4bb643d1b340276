/* SPDX-License-Identifier: Apache-2.0
 * Channels that a memory alarm, or maintenance (broker/drain.h), keeps from publishing.
 *
 * Over the watermark a channel is parked at its next publish. One that also takes messages may go on with as many
 * publishes as deliveries it held when the alarm began or got since: it adds no more than it takes, and its acks are
 * reached. Over the hard limit that ends, and one that holds deliveries is closed, so that they go back.
 *
 * amqp->parked[PARK_MEMORY] is in the order of parking, but those that may go on before the alarm ends stand at
 * the head, or the first that may not would keep them from their acks: who got a delivery, and
 * with each new alarm (the counts begin anew) and after the hard limit all that have an allowance. */
#include <assert.h>

#include "amqp/channel.h"
#include "amqp/frame.h"
#include "amqp/park.h"
#include "broker/broker.h"
#include "broker/drain.h"

/* Times that publishers began to wait. */
static uint64_t
alarms(const struct broker *b)
{
	return b->memory.alarms + b->drains;
}

/* The session counts deliveries up all the time; with each alarm the count begins anew. In maintenance whoever has consumers
 * may publish one more, what he made of a message that he acknowledged before. */
static uint64_t
allowance(struct channel *ch)
{
	struct session *s = &ch->session;
	uint64_t alarm = alarms(s->broker);

	if (ch->alarm != alarm) {
		ch->alarm = alarm;
		session_allow(s, session_unacked(s) + (drain_is_on(s->broker) && s->tags > 0));
	}
	return session_allowance(s);
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
	if (!drain_holds_publishers(s->broker))
		return false;
	if (memory->state == MEMORY_HARD && session_unacked(s) > 0) {
		*error = too_short(ch);
		return true;
	}
	if (memory->state != MEMORY_HARD && allowance(ch) > 0) {
		session_allow(s, allowance(ch) - 1);
		return false;
	}
	park_put(ch, PARK_MEMORY);
	s->broker->stats.parked++;
	ch->conn->amqp->told_blocked = true;
	connection_tell_blocked(
	    ch->conn, memory_short(memory) ? "low on memory" : drain_reason(s->broker));
	channel_keep_parked(ch, frame, n);
	return true;
}

static void
to_the_head(struct channel *ch)
{
	struct parked_list *list = &ch->conn->amqp->parked[PARK_MEMORY];

	TAILQ_REMOVE(list, ch, parked_link);
	TAILQ_INSERT_HEAD(list, ch, parked_link);
}

void
park_on_delivery(struct channel *ch)
{
	assert(ch->is_parked);
	if (ch->parked_for == PARK_MEMORY)
		to_the_head(ch);
}

bool
park_memory_goes_on(struct channel *ch)
{
	return !drain_holds_publishers(ch->session.broker) || allowance(ch) > 0;
}

void
park_on_room(struct channel *ch)
{
	/* over the hard limit nobody goes on, and those that hold deliveries have to be first */
	if (ch->parked_for == PARK_MEMORY && ch->session.broker->memory.state != MEMORY_HARD &&
	    park_memory_goes_on(ch))
		to_the_head(ch);
}

/* Those that may not go on move behind those that may. */
static void
order_anew(struct parked_list *list)
{
	struct channel *last = TAILQ_LAST(list, parked_list), *ch = NULL, *next;

	for (next = TAILQ_FIRST(list); next != NULL && ch != last;) {
		ch = next;
		next = TAILQ_NEXT(ch, parked_link);
		if (park_memory_goes_on(ch))
			continue;
		TAILQ_REMOVE(list, ch, parked_link);
		TAILQ_INSERT_TAIL(list, ch, parked_link);
	}
}

static void
close_holder(struct channel *ch)
{
	struct connection *c = ch->conn;
	uint16_t id = ch->id;
	struct parked k = park_take(ch);

	connection_refuse(c, id, too_short(ch), 60, 40);
	/* the client may have closed it too, and waits for the answer to that */
	park_replay(c, id, &k);
	park_lose(c, id, &k);
}

/* Hard limit: those that hold deliveries are closed. All were looked at once when it began; later
 * it is those at the head. True: there are more. */
static bool
close_holders(struct amqp *a)
{
	bool scan = !a->hard_seen;
	struct channel *ch = TAILQ_FIRST(&a->parked[PARK_MEMORY]), *next;
	unsigned closed = 0;

	for (; ch != NULL && closed < PARK_RUN_CHANNELS; ch = next) {
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

bool
park_memory_run(struct amqp *a, size_t *left, struct frame_share *share)
{
	struct parked_list *list = &a->parked[PARK_MEMORY];
	struct memory *memory = &a->broker->memory;
	size_t before = *left, used;
	struct channel *ch;

	(void)memory_check(memory, a->broker->now_ms);
	if (memory->state == MEMORY_HARD) {
		a->alarm_seen = 0;
		return close_holders(a);
	}
	a->hard_seen = false;
	if (drain_holds_publishers(a->broker) && a->alarm_seen != alarms(a->broker))
		order_anew(list);
	a->alarm_seen = alarms(a->broker);
	for (unsigned i = 0; i<PARK_RUN_CHANNELS && * left> 0; i++) {
		if ((ch = TAILQ_FIRST(list)) == NULL || !park_memory_goes_on(ch))
			return false;
		if ((ch->conn->io->paused & PAUSE_OUTPUT) != 0) {
			/* its turn comes when it has taken its output: park_on_room */
			park_put(ch, PARK_MEMORY);
			continue;
		}
		used = park_resume(a, ch, *left, share);
		*left -= used < *left ? used : *left;
		if (frame_share_used(ch->conn, share))
			*left = 0;
		(void)memory_check(memory, a->broker->now_ms);
	}
	return *left < before && !TAILQ_EMPTY(list) && memory->state != MEMORY_HARD;
}
