/* SPDX-License-Identifier: Apache-2.0
 * A channel's life, its confirms, and the broker's calls to it. */
#include "amqp/channel.h"

#include <stdlib.h>

#include "amqp/codec.h"
#include "amqp/confirm_wait.h"
#include "amqp/frame.h"
#include "amqp/park.h"
#include "amqp/reply_to.h"
#include "amqp/tx.h"
#include "base/config.h"
#include "base/mem.h"
#include "broker/event.h"

static void on_cancelled(struct consumer *k);
static void describe(const struct session *s, struct session_info *out);

const struct session_ops channel_session_ops = {
	.deliver = delivery_write,
	.cancelled = on_cancelled,
	.describe = describe,
};

struct channel *
channel_new(struct connection *c, uint16_t id)
{
	struct channel *ch = xcalloc(1, sizeof *ch);

	ch->conn = c;
	ch->id = id;
	ch->state = CHANNEL_OPEN;
	LIST_INIT(&ch->confirm_runs);
	session_init(&ch->session, &c->client, &channel_session_ops);
	event_channel(&ch->session, true);
	return ch;
}

static void
unlink_confirming(struct channel *ch)
{
	if (!ch->is_confirming)
		return;
	TAILQ_REMOVE(&ch->conn->amqp->confirming, ch, confirming_link);
	ch->is_confirming = false;
}

void
channel_end_session(struct channel *ch)
{
	if (ch->is_ended)
		return;
	/* What was taken is confirmed before the channel's end is told, as far as the output has room. */
	if (ch->mode == MODE_CONFIRM)
		channel_send_confirms(ch);
	event_channel(&ch->session, false);
	ch->is_ended = true;
	unlink_confirming(ch);
	confirm_wait_drop(ch);
	park_forget(ch);
	content_drop(ch);
	reply_to_cancel(ch);
	tx_free(ch); /* its settlements are open again before the session gives them back */
	confirms_fini(&ch->confirms);
	free(ch->memo);
	ch->memo = NULL;
	free(ch->last_queue);
	ch->last_queue = NULL;
	ch->last_queue_len = 0;
	if (likely(session_end(&ch->session)))
		return;
	ch->is_ending = true;
	ch->conn->ending++;
	TAILQ_INSERT_TAIL(&ch->conn->amqp->ending, ch, ending_link);
}

void
channel_ended(struct channel *ch)
{
	ch->is_ending = false;
	ch->conn->ending--;
	TAILQ_REMOVE(&ch->conn->amqp->ending, ch, ending_link);
}

bool
channel_must_wait(struct channel *ch)
{
	if (ch->conn->amqp->is_replaying)
		return false;
	channel_end_session(ch);
	if (ch->is_ending)
		transport_again(ch->conn->io);
	return ch->is_ending;
}

void
channel_free(struct channel **chp)
{
	struct channel *ch = *chp;

	*chp = NULL;
	channel_end_session(ch);
	if (ch->is_ending) {
		session_fini(&ch->session);
		channel_ended(ch);
	}
	free(ch);
}

/* --- confirms ----------------------------------------------------------- */

void
channel_mark_confirming(struct channel *ch)
{
	if (ch->is_confirming || ch->is_ended)
		return;
	ch->is_confirming = true;
	TAILQ_INSERT_TAIL(&ch->conn->amqp->confirming, ch, confirming_link);
}

/* basic.ack; basic.nack has one more bit, requeue, which means nothing here. */
static void
write_confirm(struct channel *ch, const struct confirm_out *out)
{
	enum { ARGS = 4 + 8 + 1, WHOLE = FRAME_OVERHEAD + ARGS };
	uint8_t *p = transport_room(ch->conn->io, WHOLE);

	p[0] = FRAME_METHOD;
	put_be16(p + 1, ch->id);
	put_be32(p + 3, ARGS);
	put_be32(p + FRAME_HEAD, out->ack ? AMQP_BASIC_ACK_METHOD : AMQP_BASIC_NACK_METHOD);
	put_be64(p + FRAME_HEAD + 4, out->tag);
	p[FRAME_HEAD + 12] = out->multiple;
	p[FRAME_HEAD + ARGS] = FRAME_END;
	transport_wrote(ch->conn->io, WHOLE);
}

void
channel_send_confirms(struct channel *ch)
{
	struct connection *c = ch->conn;
	const struct config *cfg = c->amqp->cfg;
	struct confirm_out out;

	unlink_confirming(ch);
	while (!c->client.output_full && confirm_take(&ch->confirms, &out)) {
		write_confirm(ch, &out);
		c->amqp->broker->stats.confirm += out.count;
		SESSION_COUNT(&ch->session, confirm, out.count);
		connection_check_output(c, cfg->output, cfg->output_max);
	}
}

/* --- the broker's calls ------------------------------------------------- */

/* Its queue is gone: who understands it is told (capability consumer_cancel_notify). */
static void
on_cancelled(struct consumer *k)
{
	struct channel *ch = channel_of(k->session);
	amqp_basic_cancel_t args = {
		.consumer_tag = codec_bytes(consumer_tag(k)),
		.nowait = 1,
	};

	if (ch->state == CHANNEL_OPEN && !ch->is_ended && ch->conn->client.cancel_notify)
		park_behind_answer(ch, AMQP_BASIC_CANCEL_METHOD, &args);
}

static void
describe(const struct session *s, struct session_info *out)
{
	const struct channel *ch = (const struct channel *)(const void *)s;

	*out = (struct session_info){
		.number = ch->id,
		.confirms = ch->mode == MODE_CONFIRM,
		.transactional = ch->mode == MODE_TX,
		.is_parked = ch->is_parked,
		.uncommitted = ch->tx != NULL ? tx_publishes(ch->tx) : 0,
		.acks_uncommitted = ch->tx != NULL ? tx_settlements(ch->tx) : 0,
	};
	if (ch->mode == MODE_CONFIRM)
		out->unconfirmed = ch->confirms.next - ch->confirms.low;
}
