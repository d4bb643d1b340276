/* SPDX-License-Identifier: Apache-2.0
 * Channels that wait for the disk.
 *
 * Answers: a declare, a bind, a delete, a purge, a commit is done at once, but its -ok is a promise, so it is held back
 * until the store has what it says, and with it what comes behind it on that channel. Those who wait stand in the order
 * of their positions, because positions only rise.
 *
 * Persistent messages, when the disk is full or the store is too far behind: the channel is parked at the message's
 * header, which says what it is. With a full disk its client is told. Everything else goes on, acks before all. So it is
 * where a queue gets more than the store can take out of memory, but then for those only who publish to it, and for all
 * of their messages, as the others take up memory, too.
 *
 * So it is, too, where a queue gives up messages faster than dead letters find their way: their list would grow.
 *
 * basic.get from a queue whose next messages are being read: it is handled again after the next read. */
#include <stdlib.h>
#include <string.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/frame.h"
#include "amqp/method.h"
#include "amqp/park.h"
#include "base/config.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/persist.h"
#include "broker/exchange.h"
#include "broker/props.h"
#include "broker/route.h"
#include "broker/vhost.h"

/* --- answers ------------------------------------------------------------ */

void
park_answer(const struct method_call *call, struct store_wait wait, uint32_t id, void *args)
{
	struct channel *ch = call->ch;

	if (!persist_must_wait(ch->conn->amqp->broker, wait)) {
		codec_send(ch->conn, ch->id, id, args);
		return;
	}
	park_put(ch, wait.durable ? PARK_DURABLE : PARK_WRITTEN);
	ch->parked_until = wait;
	ch->parked.answer = codec_frame(ch->id, id, args, &ch->parked.answer_len);
}

void
park_object_answer(const struct method_call *call, bool survives, uint32_t id, void *args)
{
	struct store_wait wait = { 0 };

	if (survives)
		wait = persist_objects_wait(call->conn->amqp->broker);
	park_answer(call, wait, id, args);
}

void
park_behind_answer(struct channel *ch, uint32_t id, void *args)
{
	struct parked *k = &ch->parked;
	uint8_t *frame;
	size_t n;

	if (k->answer == NULL) {
		codec_send(ch->conn, ch->id, id, args);
		return;
	}
	frame = codec_frame(ch->id, id, args, &n);
	k->answer = xrealloc(k->answer, k->answer_len + n);
	memcpy(k->answer + k->answer_len, frame, n);
	k->answer_len += n;
	free(frame);
}

static void
write_answer(struct channel *ch)
{
	const struct config *cfg = ch->conn->amqp->cfg;
	struct parked *k = &ch->parked;

	transport_write(ch->conn->io, k->answer, k->answer_len);
	free(k->answer);
	k->answer = NULL;
	connection_check_output(ch->conn, cfg->output, cfg->output_max);
}

static void
release_answers(struct amqp *a, enum park_reason reason)
{
	struct channel *ch;

	while ((ch = TAILQ_FIRST(&a->parked[reason])) != NULL &&
	       !persist_must_wait(a->broker, ch->parked_until)) {
		write_answer(ch);
		park_put(ch, PARK_DUE);
	}
}

/* --- reading ------------------------------------------------------------ */

void
park_for_load(const struct method_call *call)
{
	struct channel *ch = call->ch;

	park_put(ch, PARK_LOAD);
	ch->loads = ch->conn->amqp->broker->loads;
	channel_keep_parked(ch, call->frame.p, call->frame.n);
}

void
park_for_turn(const struct method_call *call)
{
	park_put(call->ch, PARK_DUE);
	channel_keep_parked(call->ch, call->frame.p, call->frame.n);
}

static void
release_loads(struct amqp *a)
{
	struct channel *ch;

	while ((ch = TAILQ_FIRST(&a->parked[PARK_LOAD])) != NULL && ch->loads != a->broker->loads)
		park_put(ch, PARK_DUE);
}

/* --- persistent messages ------------------------------------------------ */

/* Quorum queues keep all messages. */
static bool
goes_to_quorum(const struct channel *ch, const struct props *pr)
{
	const uint8_t *names = ch->content.kept;
	const struct vhost *vh = ch->session.client->vhost;
	const struct route *r;
	struct exchange *x;

	if (vh->broker->stats.quorum_queues == 0)
		return false;
	x = exchange_find(vh, span_of(names + 1, names[0]));
	if (x == NULL)
		return false;
	names += 1 + names[0];
	r = route_find(x, span_of(names + 1, names[0]), pr->headers);
	for (uint32_t i = 0; r != NULL && i < r->count; i++)
		if (r->queue[i]->quorum != NULL)
			return true;
	return false;
}

/* Does the message have to be kept? */
static bool
is_to_be_kept(const struct channel *ch, const uint8_t *frame, uint32_t size)
{
	enum { FIXED = 12 }; /* class, weight, body size */
	struct props pr;

	return size > FIXED &&
	       props_scan(span_of(frame + FRAME_HEAD + FIXED, size - FIXED), &pr) == 0 &&
	       (pr.delivery_mode == 2 || goes_to_quorum(ch, &pr));
}

static void
tell_blocked(struct channel *ch)
{
	struct amqp *a = ch->conn->amqp;

	a->broker->stats.parked++;
	a->told_blocked = true;
	connection_tell_blocked(ch->conn, a->hold_text);
}

void
park_note_lag(struct channel *ch, struct store_wait wait)
{
	struct broker *b = ch->conn->amqp->broker;

	ch->lags_behind_disk = wait.lags;
	if (wait.lags)
		ch->lag = store_last_lag(b->store);
	ch->lags_behind_letters = b->letters_late;
	ch->letters_eased = b->letters_eased;
	b->letters_late = false;
}

/* Some queue's are few again: whoever waits for another's is parked at its next message. */
static inline bool
waits_for_letters(const struct channel *ch)
{
	return ch->lags_behind_letters &&
	       ch->letters_eased == ch->conn->amqp->broker->letters_eased;
}

static bool
still_lags(struct channel *ch)
{
	const struct broker *b = ch->conn->amqp->broker;

	ch->lags_behind_disk = ch->lags_behind_disk && store_lane_lags(b->store, ch->lag);
	ch->lags_behind_letters = waits_for_letters(ch);
	return ch->lags_behind_disk || ch->lags_behind_letters;
}

bool
park_header(struct channel *ch, const uint8_t *frame, uint32_t size)
{
	bool held = ch->conn->amqp->hold != STORE_FINE && is_to_be_kept(ch, frame, size);

	ch->lags = ch->lags && still_lags(ch);
	if (!ch->lags && !held)
		return false;
	if (held) {
		park_put(ch, PARK_STORE);
	} else if (ch->lags_behind_letters) {
		park_put(ch, PARK_LETTERS);
		ch->conn->amqp->broker->stats.dead_letters_late++;
	} else {
		park_put(ch, PARK_LAG);
	}
	if (held && ch->conn->amqp->hold_text != NULL)
		tell_blocked(ch);
	channel_keep_parked(ch, frame, FRAME_OVERHEAD + (size_t)size);
	return true;
}

/* Each waits for a queue of its own: they are gone through when some lag has ended. */
static void
release_lags(struct amqp *a)
{
	struct store *s = a->broker->store;
	struct channel *ch, *next;

	if (s == NULL || a->lags_ended == store_lags_ended(s))
		return;
	a->lags_ended = store_lags_ended(s);
	for (ch = TAILQ_FIRST(&a->parked[PARK_LAG]); ch != NULL; ch = next) {
		next = TAILQ_NEXT(ch, parked_link);
		if (!store_lane_lags(s, ch->lag))
			park_put(ch, PARK_DUE);
	}
}

/* What holds them, looked at once a turn: a turn takes in no more than some MiB. */
static void
look(struct amqp *a)
{
	const char *before = a->hold_text;
	const struct broker *b = a->broker;
	struct channel *ch;

	a->hold = b->store != NULL ? store_hold(b->store) : STORE_FINE;
	if (b->disk_low)
		a->hold = STORE_DISK_FULL;
	/* a disk that is only behind goes on in a moment: nobody is told */
	a->hold_text = a->hold != STORE_BACKLOG ? persist_hold(b) : NULL;
	if (a->hold_text != NULL && before == NULL) {
		/* it was only behind when they were parked */
		TAILQ_FOREACH (ch, &a->parked[PARK_STORE], parked_link)
			tell_blocked(ch);
	}
}

void
park_store_run(struct amqp *a)
{
	struct channel *ch;

	release_answers(a, PARK_WRITTEN);
	release_answers(a, PARK_DURABLE);
	release_loads(a);
	look(a);
	while (a->hold == STORE_FINE && (ch = TAILQ_FIRST(&a->parked[PARK_STORE])) != NULL)
		park_put(ch, PARK_DUE);
	release_lags(a);
	/* In the order in which they were noted, but for few turns' difference. */
	while ((ch = TAILQ_FIRST(&a->parked[PARK_LETTERS])) != NULL && !waits_for_letters(ch))
		park_put(ch, PARK_DUE);
}
