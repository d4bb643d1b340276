/* SPDX-License-Identifier: Apache-2.0
 * Class connection once it is open: close, close-ok, update-secret. */
#include "amqp/codec.h"
#include "amqp/connection.h"
#include "amqp/method.h"

enum { UPDATE_SECRET_OK = 10 << 16 | 71 }; /* RabbitMQ's extension */

const struct error *
connection_close(const struct method_call *call)
{
	const amqp_connection_close_t *args = call->decoded;
	struct connection *c = call->conn;
	struct span text = codec_span(args->reply_text);

	if (args->reply_code >= 300)
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "client closes the connection: %u %.*s", args->reply_code, SPAN_FMT(text));
	/* before close-ok, so that whoever reads it finds its messages back and its names free */
	connection_end_sessions(c);
	codec_send_empty(c, 0, AMQP_CONNECTION_CLOSE_OK_METHOD);
	connection_finish(c, true, "by the client");
	return NULL;
}

const struct error *
connection_close_ok(const struct method_call *call)
{
	connection_finish(call->conn, true, "by the server, as told before");
	return NULL;
}

/* Tokens are not used for logins here, so that there is nothing to renew; RabbitMQ without them answers the same. */
const struct error *
connection_update_secret(const struct method_call *call)
{
	codec_send_empty(call->conn, 0, UPDATE_SECRET_OK);
	return NULL;
}
