/* SPDX-License-Identifier: Apache-2.0
 * confirm.select: publisher confirms (https://www.rabbitmq.com/docs/confirms). */
#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/method.h"

enum {
	/* Open tags of one channel: 16 million bytes of state at most. What is transient settles
	 * at once. */
	CONFIRMS_OPEN_MAX = 16 << 20
};

const struct error *
confirm_on_select(const struct method_call *call)
{
	const amqp_confirm_select_t *args = call->decoded;
	struct channel *ch = call->ch;

	if (ch->mode == MODE_TX)
		return error_make(E_PRECONDITION_FAILED, "cannot switch from tx to confirm mode");
	if (ch->mode == MODE_PLAIN) {
		confirms_init(&ch->confirms, CONFIRMS_OPEN_MAX);
		ch->mode = MODE_CONFIRM;
	}
	if (!args->nowait)
		codec_send_empty(call->conn, ch->id, AMQP_CONFIRM_SELECT_OK_METHOD);
	return NULL;
}
