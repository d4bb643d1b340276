/* SPDX-License-Identifier: Apache-2.0
 * The methods of the queue class. The order of checks is RabbitMQ's: an empty name is replaced by
 * that of the queue declared last, rights, then what exists. */
#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/method.h"
#include "amqp/names.h"
#include "amqp/park.h"
#include "amqp/reply_to.h"
#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/lease.h"
#include "broker/permission.h"
#include "broker/persist.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/topic_permission.h"
#include "broker/vhost.h"

static void
send_declare_ok(const struct method_call *call, struct span name, uint64_t messages,
    uint32_t consumers, bool durable)
{
	amqp_queue_declare_ok_t ok = {
		.queue = codec_bytes(name),
		.message_count = queue_count32(messages),
		.consumer_count = consumers,
	};

	park_object_answer(call, durable, AMQP_QUEUE_DECLARE_OK_METHOD, &ok);
}

/* The pseudo queue of direct reply-to, and addresses, answer as if they were queues, so that who
 * is asked can see whether who asked is still there. */
static const struct error *
declare_reply_to(const struct method_call *call, struct span name)
{
	const amqp_queue_declare_t *args = call->decoded;
	const struct vhost *vh = call->conn->client.vhost;

	if (!reply_to_is_queue(name) && !reply_to_exists(call->conn->amqp, vh, name))
		return error_make(
		    E_NOT_FOUND, "no queue '%.*s' in vhost '%s'", SPAN_FMT(name), vh->name);
	name_declared(call->ch, name);
	if (!args->nowait)
		send_declare_ok(call, name, 0, 1, false);
	return NULL;
}

static const struct error *
declare(const struct method_call *call, struct span name, struct queue **q)
{
	const amqp_queue_declare_t *args = call->decoded;
	struct client *client = &call->conn->client;
	struct table *arguments = NULL;
	const struct error *err = name_table(&args->arguments, &arguments);
	struct queue_spec spec = {
		.name = name,
		.durable = args->durable,
		.auto_delete = args->auto_delete,
		.exclusive = args->exclusive,
		.arguments = arguments,
	};

	if (err == NULL)
		err = queue_declare(client->vhost, &spec, client, q);
	table_free(&arguments);
	return err;
}

const struct error *
queue_on_declare(const struct method_call *call)
{
	const amqp_queue_declare_t *args = call->decoded;
	const struct client *client = &call->conn->client;
	const struct error *err;
	uint8_t buf[255];
	struct span name = name_clean(args->queue, buf);
	struct queue *q;

	if (span_starts(name, REPLY_TO_QUEUE))
		return declare_reply_to(call, name);
	if (args->passive)
		err = queue_lookup(client->vhost, name, client, &q);
	else
		err = declare(call, name, &q);
	if (err != NULL)
		return err;
	name = span_of(q->name, q->name_len);
	name_declared(call->ch, name);
	if (args->passive)
		q->broker->stats.queues_declared++;
	if (!args->passive || !args->nowait) /* who does not want to know has not used it */
		lease_renew(q);
	if (!args->nowait)
		send_declare_ok(call, name, q->ready, q->consumer_count, q->durable);
	return NULL;
}

/* An empty key together with an empty queue name means the queue's name. */
static struct span
bind_key(const struct channel *ch, amqp_bytes_t queue, amqp_bytes_t key)
{
	if (queue.len == 0 && key.len == 0)
		return span_of(ch->last_queue, ch->last_queue_len);
	return codec_span(key);
}

/* *survives: whether the binding does. */
typedef const struct error *change_fn(const struct client *client, struct span queue,
    struct span exchange, struct span key, const struct table *arguments, bool *survives);

static const struct error *
add(const struct client *client, struct span queue, struct span exchange, struct span key,
    const struct table *arguments, bool *survives)
{
	struct exchange *x;
	struct queue *q;
	const struct error *err = exchange_lookup(client->vhost, exchange, &x);

	if (err == NULL)
		err = queue_lookup(client->vhost, queue, client, &q);
	if (err == NULL)
		err = binding_add(x, q, NULL, key, arguments);
	*survives = err == NULL && x->durable && q->durable;
	return err;
}

/* What is not there is unbound already, whoever owns the queue. */
static const struct error *
take(const struct client *client, struct span queue, struct span exchange, struct span key,
    const struct table *arguments, bool *survives)
{
	struct exchange *x = exchange_find(client->vhost, exchange);
	struct queue *q = queue_find(client->vhost, queue);
	const struct error *err;

	*survives = (x == NULL || x->durable) && (q == NULL || q->durable);
	if (x == NULL || q == NULL || !binding_exists(x, q, NULL, key, arguments))
		return NULL;
	err = queue_lookup(client->vhost, queue, client, &q);
	if (err == NULL)
		err = binding_remove(x, q, NULL, key, arguments);
	return err;
}

/* What bind and unbind share: names and rights. */
static const struct error *
change_binding(const struct method_call *call, const amqp_queue_bind_t *args, change_fn *change,
    bool *survives)
{
	const struct client *client = &call->conn->client;
	uint8_t queue_buf[255], exchange_buf[255];
	struct span queue, key, exchange = name_clean(args->exchange, exchange_buf);
	struct table *arguments = NULL;
	const struct error *err = name_queue(call->ch, args->queue, &queue);

	if (err != NULL)
		return err;
	queue = name_clean(codec_bytes(queue), queue_buf);
	err = permission_check(client, PERM_WRITE, "queue", queue);
	if (err == NULL)
		err = name_not_default(exchange);
	if (err == NULL)
		err = permission_check(client, PERM_READ, "exchange", exchange);
	key = bind_key(call->ch, args->queue, args->routing_key);
	if (err == NULL)
		err = topic_permission_check_name(client, TOPIC_READ, exchange, key);
	if (err == NULL)
		err = name_table(&args->arguments, &arguments);
	if (err == NULL)
		err = change(client, queue, exchange, key, arguments, survives);
	table_free(&arguments);
	return err;
}

const struct error *
queue_on_bind(const struct method_call *call)
{
	const amqp_queue_bind_t *args = call->decoded;
	bool survives;
	const struct error *err = change_binding(call, args, add, &survives);

	if (err == NULL && !args->nowait)
		park_object_answer(call, survives, AMQP_QUEUE_BIND_OK_METHOD, NULL);
	return err;
}

const struct error *
queue_on_unbind(const struct method_call *call)
{
	const amqp_queue_unbind_t *args = call->decoded;
	const amqp_queue_bind_t same = {
		.queue = args->queue,
		.exchange = args->exchange,
		.routing_key = args->routing_key,
		.arguments = args->arguments,
	};
	bool survives;
	const struct error *err = change_binding(call, &same, take, &survives);

	if (err == NULL)
		park_object_answer(call, survives, AMQP_QUEUE_UNBIND_OK_METHOD, NULL);
	return err;
}

const struct error *
queue_on_purge(const struct method_call *call)
{
	const amqp_queue_purge_t *args = call->decoded;
	const struct client *client = &call->conn->client;
	struct store_wait wait = { 0 };
	amqp_queue_purge_ok_t ok;
	struct span name;
	struct queue *q;
	const struct error *err = name_queue(call->ch, args->queue, &name);

	if (err == NULL)
		err = permission_check(client, PERM_READ, "queue", name);
	if (err == NULL)
		err = queue_lookup(client->vhost, name, client, &q);
	if (err != NULL)
		return err;
	ok.message_count = queue_purge(q);
	if (args->nowait)
		return NULL;
	if (q->durable)
		wait = persist_all_wait(client->broker);
	park_answer(call, wait, AMQP_QUEUE_PURGE_OK_METHOD, &ok);
	return NULL;
}

const struct error *
queue_on_delete(const struct method_call *call)
{
	const amqp_queue_delete_t *args = call->decoded;
	const struct client *client = &call->conn->client;
	amqp_queue_delete_ok_t ok = { .message_count = 0 };
	uint8_t buf[255];
	struct span name;
	struct queue *q;
	bool survives = true;
	const struct error *err = name_queue(call->ch, args->queue, &name);

	if (err != NULL)
		return err;
	name = name_clean(codec_bytes(name), buf);
	err = permission_check(client, PERM_CONFIGURE, "queue", name);
	/* a missing one is deleted already */
	if (err == NULL && queue_find(client->vhost, name) != NULL) {
		err = queue_lookup(client->vhost, name, client, &q);
		if (err == NULL && !args->if_unused && !args->if_empty && bindings_thin_queue(q)) {
			park_for_turn(call);
			return NULL;
		}
		if (err == NULL) {
			survives = q->durable;
			err = queue_delete(q, args->if_unused, args->if_empty, &ok.message_count);
		}
	}
	if (err == NULL && !args->nowait)
		park_object_answer(call, survives, AMQP_QUEUE_DELETE_OK_METHOD, &ok);
	return err;
}
