/* SPDX-License-Identifier: Apache-2.0
 * Direct reply-to. An address is
 *
 *	amq.rabbitmq.reply-to. base64url( connection id, consumer id, code )
 *
 * with two numbers of 8 bytes, big-endian, and 16 bytes of a keyed code over both (base/mac), so
 * that nobody can make up the address of somebody else. The consumer's id is never used again: an
 * address dies with the consumer that it was made for. It is valid in its vhost only.
 *
 * Replies are not limited by prefetch and wait in no queue. Who takes replies slower than they
 * come fills his output: past the hard bound (limits.output_max) replies to him are dropped and
 * counted, because nothing else keeps those who answer from filling the node's memory. */
#include "amqp/reply_to.h"

#include <stdlib.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/frame.h"
#include "base/base64.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mac.h"
#include "base/mem.h"
#include "broker/map.h"

enum {
	RAW = 8 + 8 + MAC_SIZE,
	ENCODED = BASE64URL_SIZE(RAW) - 1, /* 43 characters */
	PREFIX = sizeof REPLY_TO_PREFIX - 1,
	ADDRESS = PREFIX + ENCODED
};

struct reply_to {
	uint64_t id;
	struct channel *ch; /* borrowed: owns us */
	uint64_t last;      /* the message (amqp->reply_number) that came last */
	UT_hash_handle hh;  /* in amqp->reply_to, by id */
	char address[ADDRESS + 1];
	uint8_t tag_len;
	uint8_t prefix[FRAME_HEAD + 4 + 1 +
	               255]; /* the deliver frame up to the tag, as a consumer has it */
};

/* Only the ids: whether the rest is right, the comparison with the whole address shows. */
static bool
decode_id(const uint8_t *text, uint64_t *id)
{
	uint8_t raw[RAW];

	if (base64url_decode(text, ENCODED, raw) == 0)
		return false;
	*id = get_be64(raw + 8);
	return true;
}

/* In a time that tells nothing about where the first difference is. */
static bool
same_address(const uint8_t *a, const char *b)
{
	unsigned differ = 0;

	for (size_t i = 0; i < ADDRESS; i++)
		differ |= a[i] ^ (uint8_t)b[i];
	return differ == 0;
}

static void
make_address(struct reply_to *r)
{
	uint8_t raw[RAW];

	put_be64(raw, r->ch->conn->client.id);
	put_be64(raw + 8, r->id);
	mac_compute(raw, 16, raw + 16);
	memcpy(r->address, REPLY_TO_PREFIX, PREFIX);
	base64url_encode(raw, sizeof raw, r->address + PREFIX);
}

static struct reply_to *
find(struct amqp *a, const struct vhost *vh, struct span address)
{
	struct reply_to *r;
	uint64_t id;

	if (address.n != ADDRESS || !decode_id(address.p + PREFIX, &id))
		return NULL;
	HASH_FIND(hh, a->reply_to, &id, sizeof id, r);
	if (r == NULL || !same_address(address.p, r->address) || r->ch->session.client->vhost != vh)
		return NULL;
	return r;
}

const struct error *
reply_to_consume(struct channel *ch, struct span tag, bool no_ack)
{
	struct amqp *a = ch->conn->amqp;
	struct reply_to *r;

	if (!no_ack)
		return error_make(E_PRECONDITION_FAILED, "reply consumer cannot acknowledge");
	if (ch->reply_to != NULL)
		return error_make(E_PRECONDITION_FAILED, "reply consumer already set");
	r = xcalloc(1, sizeof *r);
	r->ch = ch;
	r->id = ++a->broker->next_id;
	r->tag_len = (uint8_t)tag.n;
	r->prefix[0] = FRAME_METHOD;
	put_be16(r->prefix + 1, ch->id);
	put_be32(r->prefix + FRAME_HEAD, AMQP_BASIC_DELIVER_METHOD);
	r->prefix[FRAME_HEAD + 4] = r->tag_len;
	memcpy(r->prefix + FRAME_HEAD + 5, tag.p, tag.n);
	make_address(r);
	HASH_ADD(hh, a->reply_to, id, sizeof r->id, r);
	ch->reply_to = r;
	return NULL;
}

void
reply_to_cancel(struct channel *ch)
{
	struct reply_to *r = ch->reply_to;

	if (r == NULL)
		return;
	HASH_DEL(ch->conn->amqp->reply_to, r);
	free(r);
	ch->reply_to = NULL;
}

struct span
reply_to_tag(const struct channel *ch)
{
	const struct reply_to *r = ch->reply_to;

	return r != NULL ? span_of(r->prefix + FRAME_HEAD + 5, r->tag_len) : span_of(NULL, 0);
}

struct span
reply_to_address(const struct channel *ch)
{
	return ch->reply_to != NULL ? span_of(ch->reply_to->address, ADDRESS) : span_of(NULL, 0);
}

bool
reply_to_exists(struct amqp *a, const struct vhost *vh, struct span address)
{
	return find(a, vh, address) != NULL;
}

void
reply_to_begin(struct amqp *a)
{
	a->reply_number++;
}

void
reply_to_deliver(struct amqp *a, const struct vhost *vh, struct span address, struct msg *m)
{
	static struct log_limit limit = { .burst = 5 };
	struct reply_to *r = find(a, vh, address);
	struct connection *c;

	if (r == NULL) {
		a->broker->stats.drop_unroutable++;
		return;
	}
	if (r->last == a->reply_number)
		return;
	r->last = a->reply_number;
	c = r->ch->conn;
	if (c->io->pending >= a->cfg->output_max) {
		a->broker->stats.reply_to_dropped++;
		if (log_allowed(&limit))
			log_line(LOG_WARNING, &c->client.who,
			    "channel %u: a direct reply was dropped, the client does not take "
			    "them: %zu bytes wait",
			    r->ch->id, c->io->pending);
		return;
	}
	a->broker->stats.reply_to++;
	delivery_write_reply(r->ch, r->prefix, (size_t)FRAME_HEAD + 5 + r->tag_len,
	    session_free_tag(&r->ch->session), m);
}
