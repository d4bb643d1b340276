/* SPDX-License-Identifier: Apache-2.0
 * Class channel: open, close, flow; and access.request, which is answered for clients from before 0-9-1. */
#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/connection.h"
#include "amqp/method.h"
#include "base/bound.h"
#include "base/config.h"
#include "broker/broker.h"
#include "broker/limits.h"

const struct error *
channel_open(const struct method_call *call)
{
	struct connection *c = call->conn;
	amqp_channel_open_ok_t ok = { .channel_id = amqp_empty_bytes };
	const struct error *e = limits_check_channel(c->client.user);
	struct channel *ch;

	if (e != NULL)
		return e;
	/* RabbitMQ counts channels only and takes every number. So do we up to what connection.tune proposed; above
	 * it the table of channels would be as large as the client likes. */
	if (call->channel_id > c->amqp->cfg->channel_max) {
		bound_reached(BOUND_channel_max);
		return error_make(E_NOT_ALLOWED, "channel number %u is above channel_max (%u)",
		    call->channel_id, c->amqp->cfg->channel_max);
	}
	ch = channel_new(c, call->channel_id);
	if (!connection_add_channel(c, ch, call->channel_id)) {
		channel_free(&ch);
		return error_make(E_RESOURCE_ERROR, "no memory for channel %u", call->channel_id);
	}
	codec_send(c, call->channel_id, AMQP_CHANNEL_OPEN_OK_METHOD, &ok);
	return NULL;
}

const struct error *
channel_close(const struct method_call *call)
{
	const amqp_channel_close_t *args = call->decoded;
	struct connection *c = call->conn;
	struct channel *ch = call->ch;
	struct span text = codec_span(args->reply_text);

	if (args->reply_code >= 300)
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "client closes channel %u: %u %.*s", ch->id, args->reply_code, SPAN_FMT(text));
	ch->state = CHANNEL_CLOSING;
	channel_end_session(ch);
	codec_send_empty(c, ch->id, AMQP_CHANNEL_CLOSE_OK_METHOD);
	connection_drop_channel(c, ch->id);
	return NULL;
}

const struct error *
channel_flow(const struct method_call *call)
{
	const amqp_channel_flow_t *args = call->decoded;
	amqp_channel_flow_ok_t ok = { .active = 1 };

	if (!args->active)
		return error_make(E_NOT_IMPLEMENTED, "active=false");
	codec_send(call->conn, call->channel_id, AMQP_CHANNEL_FLOW_OK_METHOD, &ok);
	return NULL;
}

/* Answers to what we did not ask: flow-ok; cancel-ok (ours carry nowait); close-ok on an open channel (on one that we
 * closed frame.c takes it). */
const struct error *
channel_unimplemented(UNUSED const struct method_call *call)
{
	return error_make(E_COMMAND_INVALID, "unimplemented method");
}

const struct error *
access_request(const struct method_call *call)
{
	amqp_access_request_ok_t ok = { .ticket = 1 };

	codec_send(call->conn, call->channel_id, AMQP_ACCESS_REQUEST_OK_METHOD, &ok);
	return NULL;
}
