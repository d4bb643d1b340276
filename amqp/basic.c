/* SPDX-License-Identifier: Apache-2.0
 * The methods of the basic class but for publish (content.c, publish.c). */
#include <assert.h>
#include <inttypes.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/frame.h"
#include "amqp/method.h"
#include "amqp/names.h"
#include "amqp/park.h"
#include "amqp/reply_to.h"
#include "amqp/tx.h"
#include "base/random.h"
#include "broker/permission.h"
#include "broker/queue.h"
#include "broker/quorum.h"
#include "broker/table.h"
#include "broker/vhost.h"

const struct error *
basic_on_qos(const struct method_call *call)
{
	const amqp_basic_qos_t *args = call->decoded;

	if (args->prefetch_size != 0)
		return error_make(
		    E_NOT_IMPLEMENTED, "prefetch_size!=0 (%" PRIu32 ")", args->prefetch_size);
	/* As RabbitMQ has it, the one for consumers to come takes away the one over all. */
	session_set_limit(&call->ch->session, args->global ? args->prefetch_count : 0);
	if (!args->global)
		call->ch->session.prefetch = args->prefetch_count;
	codec_send_empty(call->conn, call->channel_id, AMQP_BASIC_QOS_OK_METHOD);
	return NULL;
}

/* --- consume, cancel ---------------------------------------------------- */

#define TIMEOUT_MAX_MS INT64_C(315360000000) /* ten years, the bound of all times in arguments */

static const struct error *
foreign(const struct queue *q, const char *argument)
{
	return error_make(E_PRECONDITION_FAILED,
	    "invalid arg '%s' for queue '%s' in vhost '%s' of queue type rabbit_%s_queue", argument,
	    q->name, q->vhost->name, q->quorum != NULL ? "quorum" : "classic");
}

/* Hermes' own (RabbitMQ has it for queues): how long a delivery may stay unacknowledged; 0: for ever. */
static const struct error *
check_timeout(const struct queue *q, struct consumer_spec *spec, struct span raw)
{
	struct field f;

	if (!table_find(raw, "x-consumer-timeout", &f))
		return NULL;
	if (!field_is_integer(&f))
		return error_make(E_PRECONDITION_FAILED,
		    "invalid arg 'x-consumer-timeout' for queue '%s' in vhost '%s': "
		    "\"expected integer, got %s\"",
		    q->name, q->vhost->name, field_type_name(&f));
	if (f.integer < 0 || f.integer > TIMEOUT_MAX_MS)
		return error_make(E_PRECONDITION_FAILED,
		    "invalid arg 'x-consumer-timeout' for queue '%s' in vhost '%s': {%s,%" PRId64
		    "}",
		    q->name, q->vhost->name, f.integer < 0 ? "value_negative" : "value_too_large",
		    f.integer);
	spec->has_timeout = true;
	spec->timeout_ms = (uint64_t)f.integer;
	return NULL;
}

/* What RabbitMQ knows of arguments of a consumer; others mean nothing. */
static const struct error *
check_arguments(const struct queue *q, struct consumer_spec *spec)
{
	struct span raw = table_span(spec->arguments);
	struct field f;

	if (table_find(raw, "x-priority", &f)) {
		if (!field_is_integer(&f))
			return error_make(E_PRECONDITION_FAILED,
			    "invalid arg 'x-priority' for queue '%s' in vhost '%s': "
			    "\"expected integer, got %s\"",
			    q->name, q->vhost->name, field_type_name(&f));
		spec->priority = f.integer > INT32_MAX   ? INT32_MAX
		                 : f.integer < INT32_MIN ? INT32_MIN
		                                         : (int32_t)f.integer;
	}
	if (table_find(raw, "x-cancel-on-ha-failover", &f) && q->quorum != NULL)
		return foreign(q, "x-cancel-on-ha-failover");
	if (table_find(raw, "x-cancel-on-ha-failover", &f) && f.kind != 't')
		return error_make(E_PRECONDITION_FAILED,
		    "invalid arg 'x-cancel-on-ha-failover' for queue '%s' in vhost '%s': "
		    "{unacceptable_type,%s}",
		    q->name, q->vhost->name, field_type_name(&f));
	if (table_find(raw, "x-stream-offset", &f))
		return foreign(q, "x-stream-offset");
	return check_timeout(q, spec, raw);
}

static const struct error *
consume(struct channel *ch, struct queue *q, const amqp_basic_consume_t *args, struct span tag)
{
	uint8_t prefix[FRAME_HEAD + 4 + 1 + 255] = { FRAME_METHOD };
	struct table *arguments = NULL;
	struct consumer_spec spec = {
		.tag = tag, .no_ack = args->no_ack, .exclusive = args->exclusive
	};
	struct consumer *k;
	const struct error *err = name_table(&args->arguments, &arguments);

	spec.arguments = arguments;
	if (err == NULL)
		err = check_arguments(q, &spec);
	if (err == NULL) {
		put_be16(prefix + 1, ch->id);
		put_be32(prefix + FRAME_HEAD, AMQP_BASIC_DELIVER_METHOD);
		prefix[FRAME_HEAD + 4] = (uint8_t)tag.n;
		memcpy(prefix + FRAME_HEAD + 5, tag.p, tag.n);
		spec.prefix = span_of(prefix, FRAME_HEAD + 5 + tag.n);
		err = session_consume(&ch->session, q, &spec, &k);
	}
	table_free(&arguments);
	return err;
}

static const struct error *
consume_queue(const struct method_call *call, struct span name, struct span tag)
{
	const amqp_basic_consume_t *args = call->decoded;
	const struct client *client = &call->conn->client;
	const struct error *err = permission_check(client, PERM_READ, "queue", name);
	struct queue *q;

	if (err == NULL)
		err = queue_lookup(client->vhost, name, client, &q);
	if (err == NULL)
		err = consume(call->ch, q, args, tag);
	return err;
}

const struct error *
basic_on_consume(const struct method_call *call)
{
	const amqp_basic_consume_t *args = call->decoded;
	char generated[sizeof "amq.ctag-" + RANDOM_NAME_SIZE];
	struct span name, tag = codec_span(args->consumer_tag);
	amqp_basic_consume_ok_t ok;
	const struct error *err = name_queue(call->ch, args->queue, &name);

	if (err != NULL)
		return err;
	if (tag.n > 0 && session_find(&call->ch->session, tag) != NULL)
		return error_make(
		    E_NOT_ALLOWED, "attempt to reuse consumer tag '%.*s'", SPAN_FMT(tag));
	if (tag.n == 0) {
		memcpy(generated, "amq.ctag-", 9);
		random_name(generated + 9);
		tag = span_str(generated);
	}
	if (reply_to_is_queue(name))
		err = reply_to_consume(call->ch, tag, args->no_ack);
	else
		err = consume_queue(call, name, tag);
	if (err != NULL || args->nowait)
		return err;
	ok.consumer_tag = codec_bytes(tag);
	codec_send(call->conn, call->channel_id, AMQP_BASIC_CONSUME_OK_METHOD, &ok);
	return NULL;
}

const struct error *
basic_on_cancel(const struct method_call *call)
{
	const amqp_basic_cancel_t *args = call->decoded;
	struct channel *ch = call->ch;
	struct span tag = codec_span(args->consumer_tag), reply = reply_to_tag(ch);
	amqp_basic_cancel_ok_t ok = { .consumer_tag = args->consumer_tag };
	struct consumer *k = session_find(&ch->session, tag);

	if (reply.p != NULL && span_eq(reply, tag))
		reply_to_cancel(ch);
	else if (k != NULL)
		session_cancel(&ch->session, k);
	if (!args->nowait)
		codec_send(call->conn, ch->id, AMQP_BASIC_CANCEL_OK_METHOD, &ok);
	return NULL;
}

/* --- get ---------------------------------------------------------------- */

const struct error *
basic_on_get(const struct method_call *call)
{
	const amqp_basic_get_t *args = call->decoded;
	const struct client *client = &call->conn->client;
	amqp_basic_get_empty_t empty = { .cluster_id = amqp_empty_bytes };
	struct span name;
	struct queue *q;
	struct entry e;
	uint64_t tag;
	uint32_t left;
	const struct error *err = name_queue(call->ch, args->queue, &name);

	if (err == NULL)
		err = permission_check(client, PERM_READ, "queue", name);
	if (err == NULL)
		err = queue_lookup(client->vhost, name, client, &q);
	if (err == NULL && q->quorum != NULL)
		err = quorum_check_get(q);
	if (err != NULL)
		return err;
	switch (session_get(&call->ch->session, q, args->no_ack, &e, &tag, &left)) {
	case GET_GOT:
		delivery_write_get(call->ch, &e, tag, left, q->quorum != NULL);
		msg_unref(&e.m);
		break;
	case GET_EMPTY:
		codec_send(call->conn, call->channel_id, AMQP_BASIC_GET_EMPTY_METHOD, &empty);
		break;
	case GET_LATER: park_for_load(call); break;
	}
	return NULL;
}

/* --- settling ----------------------------------------------------------- */

enum { BIT_MULTIPLE = 1, BIT_NACK_REQUEUE = 2, BIT_REJECT_REQUEUE = 1 };

static inline const struct error *
settle(struct channel *ch, uint64_t tag, bool multiple, enum settle how)
{
	if (unlikely(ch->mode == MODE_TX))
		return tx_settle(ch, tag, multiple, how);
	return session_settle(&ch->session, tag, multiple, how);
}

const struct error *
basic_on_ack(const struct method_call *call)
{
	const uint8_t *p = call->raw.p;

	return settle(call->ch, get_be64(p), p[8] & BIT_MULTIPLE, SETTLE_ACK);
}

const struct error *
basic_on_nack(const struct method_call *call)
{
	const uint8_t *p = call->raw.p;

	return settle(call->ch, get_be64(p), p[8] & BIT_MULTIPLE,
	    p[8] & BIT_NACK_REQUEUE ? SETTLE_REQUEUE : SETTLE_REJECT);
}

const struct error *
basic_on_reject(const struct method_call *call)
{
	const uint8_t *p = call->raw.p;

	return settle(call->ch, get_be64(p), false,
	    p[8] & BIT_REJECT_REQUEUE ? SETTLE_REQUEUE : SETTLE_REJECT);
}

static const struct error *
recover(struct channel *ch, bool requeue)
{
	if (!requeue)
		return error_make(E_NOT_IMPLEMENTED, "requeue=false");
	session_recover(&ch->session);
	return NULL;
}

const struct error *
basic_on_recover_async(const struct method_call *call)
{
	const amqp_basic_recover_async_t *args = call->decoded;

	return recover(call->ch, args->requeue);
}

const struct error *
basic_on_recover(const struct method_call *call)
{
	const amqp_basic_recover_t *args = call->decoded;
	const struct error *err = recover(call->ch, args->requeue);

	if (err == NULL)
		codec_send_empty(call->conn, call->channel_id, AMQP_BASIC_RECOVER_OK_METHOD);
	return err;
}
