/* SPDX-License-Identifier: Apache-2.0
 * One channel: a session of the broker plus what the protocol adds: content that comes in,
 * confirms, transactions, direct reply-to, parking (park.h). */
#ifndef AMQP_CHANNEL_H
#define AMQP_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "amqp/amqp.h"
#include "amqp/connection.h"
#include "base/attr.h"
#include "base/bytes.h"
#include "broker/confirm.h"
#include "broker/publish.h"
#include "broker/session.h"

struct confirm_run;
struct reply_to;
struct tx;

/* CLOSING: its session has ended. Where we sent channel.close, frames are dropped until close-ok. */
enum channel_state { CHANNEL_OPEN, CHANNEL_CLOSING };
enum channel_mode { MODE_PLAIN, MODE_CONFIRM, MODE_TX };
/* What kind of frame is expected next. */
enum content_state { CONTENT_NONE, CONTENT_HEADER, CONTENT_BODY };

/* A publish whose frames did not all stand in one read: names and header are kept, then the
 * message is filled. */
struct content {
	uint8_t *kept; /* owned: names (with CE), then the header frame; NULL in the fast case */
	uint32_t names_len, meta_len, kept_cap;
	uint64_t body_size, received;
	uint64_t charged; /* bytes counted against connection and node */
	struct msg *m;    /* owned; NULL until the first body frame */
	struct msg_piece *last;
	bool mandatory, immediate;
};

struct parked { /* frames as they came, to be handled when the channel goes on */
	uint8_t *p;
	size_t n, at, cap;
	uint8_t *answer; /* owned: a frame to be written first; NULL: none */
	size_t answer_len;
};

struct channel {
	struct session session;  /* must be first: session_ops callbacks find the channel by it */
	struct connection *conn; /* borrowed: owns us */
	uint16_t id;
	enum channel_state state;
	enum channel_mode mode;
	enum content_state content_state;
	struct content content;
	struct confirms confirms;
	LIST_HEAD(, confirm_run) confirm_runs; /* owned: tags that wait for the store (confirm_wait.h) */
	struct publish_memo *memo; /* owned, made at the first publish */
	struct tx *tx;             /* owned, MODE_TX only */
	struct reply_to *reply_to; /* owned: the channel consumes from amq.rabbitmq.reply-to */
	char *last_queue; /* owned: queue that an empty name means; length in last_queue_len */
	uint16_t last_queue_len;
	bool is_confirming, is_parked;
	bool is_ended; /* channel_end_session() was called: only the number is still in use */
	bool is_ending; /* then: its session goes in the turns to come (amqp->ending) */
	enum park_reason parked_for; /* while is_parked */
	struct parked parked;
	struct store_wait parked_until; /* PARK_WRITTEN, PARK_DURABLE */
	bool lags; /* its last message, or transaction, went to a queue that lags, for either reason: */
	bool lags_behind_disk; /* the lane of one is: */
	struct op_lane lag;
	bool lags_behind_letters; /* too many dead letters of one wait for their turn: */
	uint64_t letters_eased;   /* the broker's, then */
	uint64_t loads;                 /* PARK_LOAD: broker->loads when it was parked */
	uint64_t alarm; /* the memory alarm or maintenance that session_allowance() belongs to */
	TAILQ_ENTRY(channel) confirming_link, parked_link, ending_link;
	struct channel *dead_next; /* amqp->dead_channels: closed, freed at the end of the turn */
};

static inline struct channel *
channel_of(struct session *s)
{
	return (struct channel *)(void *)s;
}

/* Open; the caller puts it into the connection's table. */
struct channel *channel_new(struct connection *c, uint16_t id);
/* Everything it holds goes back or away; unlinked from lists; freed. The caller takes it out of
 * the table. */
void channel_free(struct channel **chp);
/* The broker's side ends (deliveries requeued, consumers gone) while the protocol's waits for
 * close-ok. Where it has very many consumers it is_ending for some turns. */
void channel_end_session(struct channel *ch);
void channel_ended(struct channel *ch); /* for amqp.c: now it is over */
/* Before channel.close is answered. True: not all is gone, and the frame is to be shown again. */
bool channel_must_wait(struct channel *ch);

/* One whole frame of content that is due (content_state); size is the payload's. The refusal is
 * one of basic.publish. */
const struct error *channel_on_header(struct channel *ch, const uint8_t *frame, uint32_t size);
const struct error *channel_on_body(struct channel *ch, const uint8_t *frame, uint32_t size);
/* basic.publish whose three frames stand in p..end whole: false if they do not, then the slow path
 * is taken. *used: bytes of all three. */
bool channel_publish_fast(struct channel *ch, const uint8_t *p, const uint8_t *end, size_t *used,
    const struct error **error);

/* What follows a whole message, from whichever path it came: checks, routing, return, delivery,
 * confirm. Takes over the reference of m; pr are its properties, scanned from its own bytes. */
const struct error *channel_publish(struct channel *ch, struct msg *m, const struct props *pr,
    bool mandatory, bool immediate) MUSTUSE;
/* Of park_store.c, for channel_note_lag(): what the channel's next message has to wait for. */
void park_note_lag(struct channel *ch, struct store_wait wait);
/* A message went into queues: if one of them lags, the channel's next one has to wait. */
static inline void
channel_note_lag(struct channel *ch, struct broker *b, struct store_wait wait)
{
	ch->lags = wait.lags | b->letters_late;
	if (unlikely(ch->lags))
		park_note_lag(ch, wait);
}
/* No queue takes m: returned if mandatory, else dropped; counted. */
void channel_unroutable(struct channel *ch, struct msg *m, bool mandatory);
/* Forgets content that is not complete. */
void content_drop(struct channel *ch);

/* Confirms to be sent at the end of the turn. channel_send_confirms() writes what is settled and
 * takes the channel off amqp->confirming; while the connection's output is over its bound it
 * writes nothing: channel_mark_confirming() puts it on the list again when there is room (on_room
 * does so for each channel of the connection that has pending ones). */
void channel_mark_confirming(struct channel *ch);
void channel_send_confirms(struct channel *ch);

/* Write one message with its method, header and body frames to the channel's output, and look at
 * the bounds of that. prefix: as in struct consumer. */
void delivery_write(struct consumer *k, const struct entry *e, uint64_t tag);
void delivery_write_reply(
    struct channel *ch, const uint8_t *prefix, size_t prefix_len, uint64_t tag, struct msg *m);
/* counted: from a quorum queue. */
void delivery_write_get(struct channel *ch, const struct entry *e, uint64_t tag, uint32_t left, bool counted);
void delivery_write_return(struct channel *ch, struct msg *m);
extern const struct session_ops channel_session_ops;

#endif
