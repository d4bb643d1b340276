/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of README.md with rabbitmq-c. */
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define BIG (10u << 20)
#define WAIT_S 30

static const char *host;
static int port;
static char prefix[64], work[80];

static void
ok(const char *name)
{
	printf("ok %s\n", name);
	fflush(stdout);
}

static void
ask(const char *what)
{
	puts(what);
	fflush(stdout);
}

#define must(condition) must_be((condition), #condition, __LINE__)

static void
must_be(bool condition, const char *text, int line)
{
	if (condition)
		return;
	fprintf(stderr, "line %d: not so: %s\n", line, text);
	exit(1);
}

static amqp_bytes_t
b(const char *text)
{
	return amqp_cstring_bytes(text);
}

static bool
equal(amqp_bytes_t bytes, const char *text)
{
	return bytes.len == strlen(text) && memcmp(bytes.bytes, text, bytes.len) == 0;
}

#define ENTRY(name, k, field, v)                            \
	{                                                   \
		b(name),                                    \
		{                                           \
			.kind = (k), .value = {.field = v } \
		}                                           \
	}

/* --- connection ------------------------------------------------------------ */

static amqp_connection_state_t
connect_to(int heartbeat)
{
	/* The library does not ask by itself to be told when a consumer's queue is gone. */
	amqp_table_entry_t notify =
	    ENTRY("consumer_cancel_notify", AMQP_FIELD_KIND_BOOLEAN, boolean, 1);
	amqp_table_entry_t capabilities =
	    ENTRY("capabilities", AMQP_FIELD_KIND_TABLE, table, ((amqp_table_t){ 1, &notify }));
	amqp_table_t properties = { 1, &capabilities };
	amqp_connection_state_t c = amqp_new_connection();
	amqp_socket_t *socket = amqp_tcp_socket_new(c);

	must(socket != NULL);
	must(amqp_socket_open(socket, host, port) == 0);
	must(amqp_login_with_properties(c, "/", 0, AMQP_DEFAULT_FRAME_SIZE, heartbeat, &properties,
	         AMQP_SASL_METHOD_PLAIN, "guest", "guest")
	         .reply_type == AMQP_RESPONSE_NORMAL);
	return c;
}

static void
good(amqp_connection_state_t c)
{
	must(amqp_get_rpc_reply(c).reply_type == AMQP_RESPONSE_NORMAL);
}

static void
open_channel(amqp_connection_state_t c, amqp_channel_t ch)
{
	amqp_channel_open(c, ch);
	good(c);
}

static uint32_t
count(amqp_connection_state_t c)
{
	amqp_queue_declare_ok_t *q =
	    amqp_queue_declare(c, 1, b(work), 1, 1, 0, 0, amqp_empty_table);

	good(c);
	return q->message_count;
}

static void
declare(amqp_connection_state_t c)
{
	amqp_queue_declare(c, 1, b(work), 0, 1, 0, 0, amqp_empty_table);
	good(c);
}

/* --- publishing: channel 1 is in confirm mode ------------------------------- */

static uint64_t published, confirmed;

/* Waits for a method on channel 1; the library answers for itself what else a server may send. */
static amqp_method_t
wait_method(amqp_connection_state_t c)
{
	struct timeval timeout = { WAIT_S, 0 };
	amqp_frame_t frame;

	amqp_maybe_release_buffers(c);
	must(amqp_simple_wait_frame_noblock(c, &frame, &timeout) == AMQP_STATUS_OK);
	must(frame.frame_type == AMQP_FRAME_METHOD && frame.channel == 1);
	return frame.payload.method;
}

static void
wait_confirms(amqp_connection_state_t c)
{
	while (confirmed < published) {
		amqp_method_t m = wait_method(c);
		amqp_basic_ack_t *ack = m.decoded;

		must(m.id == AMQP_BASIC_ACK_METHOD);
		must(ack->multiple || ack->delivery_tag == confirmed + 1);
		confirmed = ack->delivery_tag;
	}
}

static void
send(amqp_connection_state_t c, const char *key, bool mandatory, amqp_bytes_t body,
    amqp_basic_properties_t *props)
{
	must(amqp_basic_publish(c, 1, amqp_empty_bytes, b(key), mandatory, 0, props, body) ==
	     AMQP_STATUS_OK);
	published++;
}

static void
put(amqp_connection_state_t c, const char *body)
{
	amqp_basic_properties_t props = { ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
		.delivery_mode = 2 };

	send(c, work, false, b(body), &props);
	wait_confirms(c);
}

/* --- consuming ------------------------------------------------------------- */

static void
consume(
    amqp_connection_state_t c, amqp_channel_t ch, const char *queue, const char *tag, bool no_ack)
{
	amqp_basic_consume(c, ch, b(queue), b(tag), 0, no_ack, 0, amqp_empty_table);
	good(c);
}

static void
cancel(amqp_connection_state_t c, const char *tag)
{
	amqp_basic_cancel(c, 1, b(tag));
	good(c);
}

static amqp_envelope_t
next(amqp_connection_state_t c)
{
	struct timeval timeout = { WAIT_S, 0 };
	amqp_envelope_t envelope;

	amqp_maybe_release_buffers(c);
	must(amqp_consume_message(c, &envelope, &timeout, 0).reply_type == AMQP_RESPONSE_NORMAL);
	return envelope;
}

static uint64_t
expect(amqp_connection_state_t c, const char *body, bool redelivered)
{
	amqp_envelope_t envelope = next(c);
	uint64_t tag = envelope.delivery_tag;

	must(equal(envelope.message.body, body));
	must(envelope.redelivered == redelivered);
	must(equal(envelope.routing_key, work));
	amqp_destroy_envelope(&envelope);
	return tag;
}

static void
nothing(amqp_connection_state_t c)
{
	struct timeval timeout = { 0, 0 };
	amqp_frame_t frame;

	must(amqp_simple_wait_frame_noblock(c, &frame, &timeout) == AMQP_STATUS_TIMEOUT);
}

static void
ack(amqp_connection_state_t c, uint64_t tag, bool multiple)
{
	must(amqp_basic_ack(c, 1, tag, multiple) == AMQP_STATUS_OK);
}

/* A message read with basic.get; false if the queue is empty. */
static bool
get(amqp_connection_state_t c, bool no_ack, amqp_basic_get_ok_t *got, amqp_message_t *message)
{
	amqp_rpc_reply_t reply = amqp_basic_get(c, 1, b(work), no_ack);

	must(reply.reply_type == AMQP_RESPONSE_NORMAL);
	if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD)
		return false;
	must(reply.reply.id == AMQP_BASIC_GET_OK_METHOD);
	*got = *(amqp_basic_get_ok_t *)reply.reply.decoded;
	must(amqp_read_message(c, 1, message, 0).reply_type == AMQP_RESPONSE_NORMAL);
	return true;
}

/* --- steps ------------------------------------------------------------------ */

static void
step_confirms(amqp_connection_state_t c)
{
	amqp_basic_properties_t props = { ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
		.delivery_mode = 2 };
	amqp_message_t message;
	amqp_method_t m;
	amqp_basic_return_t *back;
	char body[16];

	amqp_confirm_select(c, 1);
	good(c);
	for (int i = 0; i < 100; i++) {
		snprintf(body, sizeof body, "%d", i);
		send(c, work, true, b(body), &props);
	}
	wait_confirms(c);
	must(count(c) == 100);
	ok("confirm");

	snprintf(body, sizeof body, "lost");
	char nowhere[80];
	snprintf(nowhere, sizeof nowhere, "%snowhere", prefix);
	send(c, nowhere, true, b(body), NULL);
	m = wait_method(c);
	must(m.id == AMQP_BASIC_RETURN_METHOD);
	back = m.decoded;
	must(back->reply_code == 312 && equal(back->reply_text, "NO_ROUTE") &&
	     equal(back->routing_key, nowhere));
	must(amqp_read_message(c, 1, &message, 0).reply_type == AMQP_RESPONSE_NORMAL);
	must(equal(message.body, "lost"));
	amqp_destroy_message(&message);
	wait_confirms(c);
	ok("return");
}

static void
step_consume(amqp_connection_state_t c)
{
	char body[16];

	consume(c, 1, work, "all", false);
	for (int i = 0; i < 100; i++) {
		snprintf(body, sizeof body, "%d", i);
		uint64_t tag = expect(c, body, false);
		if (i < 50 || i == 99)
			ack(c, tag, i == 99);
	}
	cancel(c, "all");
	must(count(c) == 0);
	ok("consume");
}

static void
step_prefetch(amqp_connection_state_t c)
{
	uint64_t tags[10];
	char body[16];
	int n = 0;

	for (int i = 0; i < 10; i++) {
		snprintf(body, sizeof body, "%d", i);
		put(c, body);
	}
	amqp_basic_qos(c, 1, 0, 3, 0);
	good(c);
	consume(c, 1, work, "few", false);
	for (; n < 3; n++) {
		snprintf(body, sizeof body, "%d", n);
		tags[n] = expect(c, body, false);
	}
	must(count(c) == 7);
	nothing(c);
	for (int i = 0; i < 10; i++) {
		ack(c, tags[i], false);
		if (n == 10)
			continue;
		snprintf(body, sizeof body, "%d", n);
		tags[n++] = expect(c, body, false);
		must(i > 0 || count(c) == 6);
	}
	cancel(c, "few");
	amqp_basic_qos(c, 1, 0, 0, 0);
	good(c);
	must(count(c) == 0);
	ok("prefetch");
}

static void
step_nack(amqp_connection_state_t c)
{
	uint64_t tag, a, bb;

	put(c, "a");
	put(c, "b");
	put(c, "c");
	consume(c, 1, work, "some", false);
	expect(c, "a", false);
	expect(c, "b", false);
	tag = expect(c, "c", false);
	must(amqp_basic_nack(c, 1, tag, 1, 1) == AMQP_STATUS_OK);
	a = expect(c, "a", true);
	bb = expect(c, "b", true);
	expect(c, "c", true);
	must(amqp_basic_reject(c, 1, a, 0) == AMQP_STATUS_OK);
	must(amqp_basic_reject(c, 1, bb, 1) == AMQP_STATUS_OK);
	ack(c, expect(c, "b", true), true);
	cancel(c, "some");
	must(count(c) == 0);
	ok("nack");
}

static void
step_get(amqp_connection_state_t c)
{
	amqp_basic_get_ok_t got;
	amqp_message_t message;

	put(c, "one");
	put(c, "two");
	must(get(c, false, &got, &message));
	must(got.message_count == 1 && !got.redelivered && equal(message.body, "one"));
	amqp_destroy_message(&message);
	ack(c, got.delivery_tag, false);
	must(get(c, true, &got, &message));
	must(equal(message.body, "two"));
	amqp_destroy_message(&message);
	must(!get(c, false, &got, &message));
	ok("get");
}

/* Tables are compared as they are encoded; RabbitMQ keeps the order of a table. */
static void
same_table(amqp_table_t one, amqp_table_t other)
{
	char buf[2][4096];
	amqp_bytes_t bytes[2] = { { sizeof buf[0], buf[0] }, { sizeof buf[1], buf[1] } };
	size_t used[2] = { 0, 0 };

	must(amqp_encode_table(bytes[0], &one, &used[0]) == AMQP_STATUS_OK);
	must(amqp_encode_table(bytes[1], &other, &used[1]) == AMQP_STATUS_OK);
	must(used[0] == used[1] && memcmp(buf[0], buf[1], used[0]) == 0);
}

static void
step_properties(amqp_connection_state_t c)
{
	char long_id[256];
	amqp_table_entry_t deep[] = { ENTRY("b", AMQP_FIELD_KIND_UTF8, bytes, b("deep")) };
	amqp_table_entry_t inner[] = {
		ENTRY("a", AMQP_FIELD_KIND_TABLE, table, ((amqp_table_t){ 1, deep })),
		ENTRY("e", AMQP_FIELD_KIND_TABLE, table, ((amqp_table_t){ 0, NULL })),
	};
	amqp_field_value_t list[] = {
		{ .kind = AMQP_FIELD_KIND_I32, .value = { .i32 = 1 } },
		{ .kind = AMQP_FIELD_KIND_UTF8, .value = { .bytes = b("two") } },
		{ .kind = AMQP_FIELD_KIND_TABLE, .value = { .table = { 2, inner } } },
	};
	amqp_table_entry_t entries[] = {
		ENTRY("bool", AMQP_FIELD_KIND_BOOLEAN, boolean, 1),
		ENTRY("i8", AMQP_FIELD_KIND_I8, i8, -7),
		ENTRY("u8", AMQP_FIELD_KIND_U8, u8, 200),
		ENTRY("i16", AMQP_FIELD_KIND_I16, i16, -300),
		ENTRY("u16", AMQP_FIELD_KIND_U16, u16, 60000),
		ENTRY("i32", AMQP_FIELD_KIND_I32, i32, INT32_MIN),
		ENTRY("u32", AMQP_FIELD_KIND_U32, u32, UINT32_MAX),
		ENTRY("i64", AMQP_FIELD_KIND_I64, i64, INT64_MIN),
		ENTRY("f32", AMQP_FIELD_KIND_F32, f32, 1.5f),
		ENTRY("f64", AMQP_FIELD_KIND_F64, f64, -0.1),
		ENTRY("decimal", AMQP_FIELD_KIND_DECIMAL, decimal, ((amqp_decimal_t){ 2, 314 })),
		ENTRY("text", AMQP_FIELD_KIND_UTF8, bytes, b("Gr\303\274\303\237e")),
		ENTRY("empty", AMQP_FIELD_KIND_UTF8, bytes, amqp_empty_bytes),
		ENTRY("list", AMQP_FIELD_KIND_ARRAY, array, ((amqp_array_t){ 3, list })),
		ENTRY("time", AMQP_FIELD_KIND_TIMESTAMP, u64, 1709209815),
		ENTRY("table", AMQP_FIELD_KIND_TABLE, table, ((amqp_table_t){ 2, inner })),
		ENTRY("nothing", AMQP_FIELD_KIND_VOID, u8, 0),
		ENTRY("bytes", AMQP_FIELD_KIND_BYTES, bytes, ((amqp_bytes_t){ 3, "\0\377\200" })),
	};
	amqp_basic_properties_t sent = {
		._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_CONTENT_ENCODING_FLAG |
		          AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
		          AMQP_BASIC_PRIORITY_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG |
		          AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_EXPIRATION_FLAG |
		          AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TIMESTAMP_FLAG |
		          AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_USER_ID_FLAG | AMQP_BASIC_APP_ID_FLAG |
		          AMQP_BASIC_CLUSTER_ID_FLAG,
		.content_type = b("text/plain"),
		.content_encoding = b("utf-8"),
		.headers = { sizeof entries / sizeof entries[0], entries },
		.delivery_mode = 2,
		.priority = 9,
		.reply_to = b("somewhere"),
		.expiration = b("60000"),
		.message_id = b("m-1"),
		.timestamp = 1709209815,
		.type = b("kind"),
		.user_id = b("guest"),
		.app_id = b("steps"),
		.cluster_id = b("cluster"),
	};
	amqp_basic_get_ok_t got;
	amqp_message_t message;
	amqp_basic_properties_t *p = &message.properties;

	memset(long_id, 'c', 255);
	long_id[255] = '\0';
	sent.correlation_id = b(long_id);
	send(c, work, false, b("x"), &sent);
	wait_confirms(c);
	must(get(c, true, &got, &message));
	must(p->_flags == sent._flags);
	must(equal(p->content_type, "text/plain") && equal(p->content_encoding, "utf-8"));
	must(p->delivery_mode == 2 && p->priority == 9 && p->timestamp == 1709209815);
	must(equal(p->correlation_id, long_id) && equal(p->reply_to, "somewhere") &&
	     equal(p->expiration, "60000"));
	must(equal(p->message_id, "m-1") && equal(p->type, "kind") && equal(p->user_id, "guest"));
	must(equal(p->app_id, "steps") && equal(p->cluster_id, "cluster"));
	same_table(p->headers, sent.headers);
	amqp_destroy_message(&message);
	ok("properties");
}

static void
step_bodies(amqp_connection_state_t c)
{
	unsigned char *big = malloc(BIG);
	amqp_envelope_t envelope;

	must(big != NULL);
	for (unsigned i = 0; i < BIG; i++)
		big[i] = (unsigned char)(i ^ i >> 8);
	send(c, work, false, amqp_empty_bytes, NULL);
	send(c, work, false, (amqp_bytes_t){ BIG, big }, NULL);
	send(c, work, false, amqp_empty_bytes, NULL);
	wait_confirms(c);
	consume(c, 1, work, "large", true);
	expect(c, "", false);
	envelope = next(c);
	must(
	    envelope.message.body.len == BIG && memcmp(envelope.message.body.bytes, big, BIG) == 0);
	amqp_destroy_envelope(&envelope);
	expect(c, "", false);
	cancel(c, "large");
	free(big);
	ok("bodies");
}

static void
step_rpc(void)
{
	amqp_connection_state_t c = connect_to(60); /* no confirms between what it waits for */
	amqp_basic_properties_t props = {
		._flags = AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG,
		.reply_to = b("amq.rabbitmq.reply-to"),
		.correlation_id = b("7"),
	};
	amqp_envelope_t envelope;

	open_channel(c, 1);
	open_channel(c, 2);
	consume(c, 1, "amq.rabbitmq.reply-to", "replies", true);
	consume(c, 2, work, "server", true);
	must(amqp_basic_publish(c, 1, amqp_empty_bytes, b(work), 0, 0, &props, b("question")) ==
	     AMQP_STATUS_OK);

	envelope = next(c);
	must(envelope.channel == 2 && equal(envelope.message.body, "question"));
	props._flags = AMQP_BASIC_CORRELATION_ID_FLAG;
	props.correlation_id = envelope.message.properties.correlation_id;
	must(amqp_basic_publish(c, 2, amqp_empty_bytes, envelope.message.properties.reply_to, 0, 0,
	         &props, b("ANSWER")) == AMQP_STATUS_OK);
	amqp_destroy_envelope(&envelope);

	envelope = next(c);
	must(envelope.channel == 1 && equal(envelope.message.body, "ANSWER"));
	must(equal(envelope.message.properties.correlation_id, "7"));
	amqp_destroy_envelope(&envelope);
	must(amqp_connection_close(c, AMQP_REPLY_SUCCESS).reply_type == AMQP_RESPONSE_NORMAL);
	amqp_destroy_connection(c);
	ok("rpc");
}

static void
step_cancel(amqp_connection_state_t c)
{
	amqp_method_t m;

	consume(c, 1, work, "none", false);
	cancel(c, "none");
	put(c, "after");
	must(count(c) == 1);
	nothing(c);

	amqp_queue_purge(c, 1, b(work));
	good(c);
	open_channel(c, 2);
	consume(c, 1, work, "gone", false);
	amqp_queue_delete(c, 2, b(work), 0, 0);
	good(c);
	m = wait_method(c);
	must(m.id == AMQP_BASIC_CANCEL_METHOD);
	must(equal(((amqp_basic_cancel_t *)m.decoded)->consumer_tag, "gone"));
	must(amqp_channel_close(c, 2, AMQP_REPLY_SUCCESS).reply_type == AMQP_RESPONSE_NORMAL);
	ok("cancel");
}

static void
step_error(amqp_connection_state_t c)
{
	char missing[80], wanted[128];
	amqp_rpc_reply_t reply;
	amqp_channel_close_t *close;
	amqp_channel_close_ok_t close_ok = { 0 };

	snprintf(missing, sizeof missing, "%smissing", prefix);
	snprintf(wanted, sizeof wanted, "NOT_FOUND - no queue '%s'", missing);
	open_channel(c, 2);
	amqp_queue_declare(c, 2, b(missing), 1, 0, 0, 0, amqp_empty_table);
	reply = amqp_get_rpc_reply(c);
	must(reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
	     reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD);
	close = reply.reply.decoded;
	must(close->reply_code == 404);
	must(close->reply_text.len >= strlen(wanted));
	must(memcmp(close->reply_text.bytes, wanted, strlen(wanted)) == 0);
	must(amqp_send_method(c, 2, AMQP_CHANNEL_CLOSE_OK_METHOD, &close_ok) == AMQP_STATUS_OK);
	open_channel(c, 2);
	must(amqp_channel_close(c, 2, AMQP_REPLY_SUCCESS).reply_type == AMQP_RESPONSE_NORMAL);
	ok("error");
}

/* Waits until the library says that the connection is lost. */
static int
await_loss(amqp_connection_state_t c)
{
	struct timeval timeout = { WAIT_S, 0 };
	amqp_frame_t frame;
	int status = amqp_simple_wait_frame_noblock(c, &frame, &timeout);

	must(status != AMQP_STATUS_OK && status != AMQP_STATUS_TIMEOUT);
	return status;
}

static amqp_connection_state_t
step_reconnect(amqp_connection_state_t c)
{
	declare(c);
	put(c, "first");
	put(c, "second");
	consume(c, 1, work, "before", false);
	ack(c, expect(c, "first", false), false);
	expect(c, "second", false);
	must(count(c) == 0);
	ask("cut");
	await_loss(c);
	amqp_destroy_connection(c);

	c = connect_to(60);
	open_channel(c, 1);
	consume(c, 1, work, "after", false);
	ack(c, expect(c, "second", true), false);
	cancel(c, "after");
	must(count(c) == 0);
	amqp_queue_delete(c, 1, b(work), 0, 0);
	good(c);
	ok("reconnect");
	return c;
}

static void
step_heartbeat(void)
{
	amqp_connection_state_t quiet = connect_to(2);
	struct timeval timeout = { 5, 0 };
	amqp_frame_t frame;

	must(amqp_simple_wait_frame_noblock(quiet, &frame, &timeout) == AMQP_STATUS_TIMEOUT);
	open_channel(quiet, 1);
	ask("freeze");
	must(await_loss(quiet) == AMQP_STATUS_HEARTBEAT_TIMEOUT);
	amqp_destroy_connection(quiet);
	ok("heartbeat");
}

int
main(int argc, char **argv)
{
	amqp_connection_state_t c;

	must(argc == 3);
	host = argv[1];
	port = (int)strtol(argv[2], NULL, 10);
	must(port > 0 && port < 65536);
	snprintf(prefix, sizeof prefix, "clients.c.%ld.", (long)getpid());
	snprintf(work, sizeof work, "%swork", prefix);

	c = connect_to(60);
	open_channel(c, 1);
	declare(c);
	ok("connect");
	step_confirms(c);
	step_consume(c);
	step_prefetch(c);
	step_nack(c);
	step_get(c);
	step_properties(c);
	step_bodies(c);
	step_rpc();
	step_cancel(c);
	step_error(c);
	c = step_reconnect(c);
	step_heartbeat();

	amqp_destroy_connection(c); /* frozen as well */
	c = connect_to(60);
	open_channel(c, 1);
	must(amqp_channel_close(c, 1, AMQP_REPLY_SUCCESS).reply_type == AMQP_RESPONSE_NORMAL);
	must(amqp_connection_close(c, AMQP_REPLY_SUCCESS).reply_type == AMQP_RESPONSE_NORMAL);
	must(amqp_destroy_connection(c) == AMQP_STATUS_OK);
	ok("close");
	return 0;
}
