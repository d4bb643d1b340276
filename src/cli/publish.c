/* SPDX-License-Identifier: Apache-2.0
 * hermes publish: messages go out in confirm mode, at most WINDOW of them unconfirmed; the command is done when the
 * last one is confirmed, and has failed if one was returned or refused. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/text_safe.h"

enum { WINDOW = 1000, CONFIRM_S = 30, BODY_MAX = 512 << 20, HEADERS_MAX = 256 };

struct publish {
	struct client_conn conn;
	const char *exchange, *key;
	uint8_t *body; /* owned */
	size_t body_len;
	bool mandatory;
	amqp_basic_properties_t properties;
	amqp_table_entry_t header[HEADERS_MAX];
	char *header_text[HEADERS_MAX]; /* owned: name, then NUL, then value */
	int headers;
	uint64_t sent, settled, returned, refused;
	bool open[WINDOW]; /* by tag: sent and not settled */
	bool blocked; /* the node holds publishers back: nothing is confirmed until it says so */
};

/* --- what to publish ------------------------------------------------------- */

static bool
read_all(struct publish *p, int fd, const char *name)
{
	size_t cap = 0;
	ssize_t n;

	for (;;) {
		if (p->body_len == cap) {
			uint8_t *more = try_realloc(p->body, cap = cap > 0 ? cap * 2 : 64 << 10);

			if (more == NULL || cap > BODY_MAX * 2ul) {
				cli_fail(p->conn.cli, "%s is too large for a message", name);
				return false;
			}
			p->body = more;
		}
		n = read(fd, p->body + p->body_len, cap - p->body_len);
		if (n == 0)
			return true;
		if (n > 0)
			p->body_len += (size_t)n;
		else if (errno != EINTR)
			break;
	}
	cli_fail(p->conn.cli, "%s cannot be read: %s", name, strerror(errno));
	return false;
}

static bool
read_body(struct publish *p, struct cli *c)
{
	const char *text = cli_value(c, "body"), *file = cli_value(c, "file");
	bool fine;
	int fd;

	if (text != NULL) {
		p->body_len = strlen(text);
		p->body = (uint8_t *)xstrdup(text);
		return true;
	}
	if (file == NULL && isatty(STDIN_FILENO))
		fprintf(stderr, "the body is read from the terminal; Ctrl-D ends it\n");
	if (file == NULL || strcmp(file, "-") == 0)
		return read_all(p, STDIN_FILENO, "standard input");
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		cli_fail(c, "%s cannot be read: %s", file, strerror(errno));
		return false;
	}
	fine = read_all(p, fd, file);
	close(fd);
	return fine;
}

/* Texts of properties, by the names that AMQP gives them. */
static const struct property {
	const char *name;
	amqp_flags_t flag;
	size_t offset;
} texts[] = {
#define PROPERTY(f, flag)                                      \
	{                                                      \
#f, flag, offsetof(amqp_basic_properties_t, f) \
	}
	PROPERTY(content_type, AMQP_BASIC_CONTENT_TYPE_FLAG),
	PROPERTY(content_encoding, AMQP_BASIC_CONTENT_ENCODING_FLAG),
	PROPERTY(correlation_id, AMQP_BASIC_CORRELATION_ID_FLAG),
	PROPERTY(reply_to, AMQP_BASIC_REPLY_TO_FLAG),
	PROPERTY(expiration, AMQP_BASIC_EXPIRATION_FLAG),
	PROPERTY(message_id, AMQP_BASIC_MESSAGE_ID_FLAG),
	PROPERTY(type, AMQP_BASIC_TYPE_FLAG),
	PROPERTY(user_id, AMQP_BASIC_USER_ID_FLAG),
	PROPERTY(app_id, AMQP_BASIC_APP_ID_FLAG),
#undef PROPERTY
};

static bool
set_number(struct publish *p, const char *name, size_t n, const char *value)
{
	amqp_basic_properties_t *props = &p->properties;
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0)
		return false;
	if (n == 8 && memcmp(name, "priority", n) == 0 && v <= UINT8_MAX) {
		props->priority = (uint8_t)v;
		props->_flags |= AMQP_BASIC_PRIORITY_FLAG;
		return true;
	}
	if (n == 9 && memcmp(name, "timestamp", n) == 0) {
		props->timestamp = v;
		props->_flags |= AMQP_BASIC_TIMESTAMP_FLAG;
		return true;
	}
	return false;
}

/* Says what is wrong with NAME=VALUE, the name of which has n bytes. False, for the caller to return. */
static bool
bad_property(struct publish *p, const char *word, size_t n)
{
	static const char number[] = "must be a number from 0 to 255",
	                  seconds[] = "must be a number of seconds since 1970";
	const char *why = "must be NAME=VALUE of a property; 'hermes help publish' names them";

	if (n == 8 && memcmp(word, "priority", n) == 0)
		why = number;
	else if (n == 9 && memcmp(word, "timestamp", n) == 0)
		why = seconds;
	else if (n > 0 && strlen(word + n + 1) > 255)
		why = "has more than 255 bytes";
	cli_misuse(p->conn.cli, "--property %.100s: %s", word, why);
	return false;
}

static bool
set_property(struct publish *p, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t n = equals != NULL ? (size_t)(equals - word) : 0;

	if (equals != NULL && strlen(equals + 1) <= 255) {
		for (size_t i = 0; i < COUNT_OF(texts); i++) {
			if (strlen(texts[i].name) != n || memcmp(texts[i].name, word, n) != 0)
				continue;
			*(amqp_bytes_t *)(void *)((char *)&p->properties + texts[i].offset) =
			    amqp_cstring_bytes(equals + 1);
			p->properties._flags |= texts[i].flag;
			return true;
		}
		if (set_number(p, word, n, equals + 1))
			return true;
	}
	return bad_property(p, word, n);
}

static bool
set_header(struct publish *p, const char *word)
{
	const char *equals = strchr(word, '=');
	amqp_table_entry_t *e = &p->header[p->headers];
	char *copy;

	if (equals == NULL || equals == word || equals - word > 255) {
		cli_misuse(p->conn.cli, "--header %.100s: must be NAME=VALUE", word);
		return false;
	}
	copy = xstrdup(word);
	copy[equals - word] = '\0';
	p->header_text[p->headers++] = copy;
	e->key = amqp_cstring_bytes(copy);
	e->value.kind = AMQP_FIELD_KIND_UTF8;
	e->value.value.bytes = amqp_cstring_bytes(copy + (equals - word) + 1);
	return true;
}

/* False: said why; the usage is wrong. */
static bool
read_options(struct publish *p, struct cli *c)
{
	p->exchange = cli_value(c, "exchange");
	p->key = cli_value(c, "key");
	p->mandatory = !cli_switch(c, "no-mandatory");
	if (p->key == NULL && p->exchange[0] == '\0') {
		cli_misuse(
		    c, "--key is missing: the queue's name, or the routing key of --exchange");
		return false;
	}
	if (p->key == NULL)
		p->key = "";
	if (strlen(p->key) > 255 || strlen(p->exchange) > 255) {
		cli_misuse(c, "names and keys have at most 255 bytes");
		return false;
	}
	if (cli_given(c, "body") && cli_given(c, "file")) {
		cli_misuse(c, "--body and --file exclude each other");
		return false;
	}
	if (cli_switch(c, "mandatory") && !p->mandatory) {
		cli_misuse(c, "--mandatory and --no-mandatory exclude each other");
		return false;
	}
	if (cli_switch(c, "declare") && p->exchange[0] != '\0') {
		cli_misuse(c,
		    "--declare makes a queue with the key's name; with --exchange it is of no use");
		return false;
	}
	if (cli_switch(c, "persistent")) {
		p->properties.delivery_mode = 2;
		p->properties._flags |= AMQP_BASIC_DELIVERY_MODE_FLAG;
	}
	for (size_t i = 0; i < cli_count(c, "property"); i++)
		if (!set_property(p, cli_nth(c, "property", i)))
			return false;
	for (size_t i = 0; i < cli_count(c, "header"); i++)
		if (p->headers == HEADERS_MAX || !set_header(p, cli_nth(c, "header", i)))
			return false;
	if (p->headers > 0) {
		p->properties.headers = (amqp_table_t){ p->headers, p->header };
		p->properties._flags |= AMQP_BASIC_HEADERS_FLAG;
	}
	return true;
}

/* --- publishing ------------------------------------------------------------ */

static bool
take_return(struct publish *p, const amqp_basic_return_t *r)
{
	amqp_message_t message;
	amqp_rpc_reply_t reply;

	if (p->returned++ == 0)
		cli_fail(p->conn.cli,
		    "returned: %d %.*s (exchange '%s', key '%s'); no queue takes it%s",
		    r->reply_code, (int)r->reply_text.len, (char *)r->reply_text.bytes, p->exchange,
		    p->key, p->exchange[0] == '\0' ? ": --declare makes one" : "");
	reply = amqp_read_message(p->conn.amqp, 1, &message, 0);
	if (!client_fine(&p->conn, reply, "reading a returned message failed"))
		return false;
	amqp_destroy_message(&message);
	return true;
}

/* An outcome for a tag, or for all open ones up to it. The node may settle single tags out of order. */
static void
settle(struct publish *p, uint64_t tag, bool multiple, bool refused)
{
	uint64_t first = p->sent > WINDOW ? p->sent - WINDOW + 1 : 1;

	if (!multiple && tag > first)
		first = tag;
	for (uint64_t t = first; t <= tag && t <= p->sent; t++) {
		if (!p->open[t % WINDOW])
			continue;
		p->open[t % WINDOW] = false;
		p->settled++;
		p->refused += refused;
	}
}

static void
tell_blocked(struct publish *p, const amqp_connection_blocked_t *m)
{
	char *said = xstrndup(m->reason.bytes, m->reason.len), *reason = text_safe_line(said);

	p->blocked = true;
	(void)cli_fail(p->conn.cli, "the node holds publishers back: %s; waiting", reason);
	free(reason);
	free(said);
}

static bool
take_method(struct publish *p, const amqp_method_t *m)
{
	switch (m->id) {
	case AMQP_BASIC_ACK_METHOD: {
		const amqp_basic_ack_t *ack = m->decoded;

		settle(p, ack->delivery_tag, ack->multiple, false);
		return true;
	}
	case AMQP_BASIC_NACK_METHOD: {
		const amqp_basic_nack_t *nack = m->decoded;

		settle(p, nack->delivery_tag, nack->multiple, true);
		return true;
	}
	case AMQP_BASIC_RETURN_METHOD: return take_return(p, m->decoded);
	case AMQP_CONNECTION_BLOCKED_METHOD: tell_blocked(p, m->decoded); return true;
	case AMQP_CONNECTION_UNBLOCKED_METHOD: p->blocked = false; return true;
	default: {
		amqp_rpc_reply_t reply = { .reply_type = AMQP_RESPONSE_SERVER_EXCEPTION,
			.reply = *m };

		return client_fine(&p->conn, reply, "refused");
	}
	}
}

/* A frame, if one comes in time, however long that is while publishers are held back. AMQP_STATUS_TIMEOUT: none came; other
 * failures were said. */
static int
take_frame(struct publish *p, const struct timeval *limit)
{
	amqp_frame_t frame;
	int rc;

	amqp_maybe_release_buffers(p->conn.amqp);
	rc = amqp_simple_wait_frame_noblock(p->conn.amqp, &frame, p->blocked ? NULL : limit);
	if (rc == AMQP_STATUS_OK && frame.frame_type == AMQP_FRAME_METHOD &&
	    !take_method(p, &frame.payload.method))
		return AMQP_STATUS_CONNECTION_CLOSED;
	if (rc != AMQP_STATUS_OK && rc != AMQP_STATUS_TIMEOUT)
		cli_fail(p->conn.cli, "no confirmation from the node: %s", amqp_error_string2(rc));
	return rc;
}

/* Waits until all that was sent is settled. */
static bool
wait_settled(struct publish *p)
{
	const struct timeval limit = { .tv_sec = CONFIRM_S };

	while (p->settled < p->sent) {
		int rc = take_frame(p, &limit);

		if (rc == AMQP_STATUS_TIMEOUT)
			cli_fail(
			    p->conn.cli, "no confirmation from the node within %d s", CONFIRM_S);
		if (rc != AMQP_STATUS_OK)
			return false;
	}
	return true;
}

/* What has come by now; a node that holds publishers back is waited for before more is sent, which it would not read. */
static bool
take_frames(struct publish *p)
{
	const struct timeval none = { 0 };
	int rc;

	while ((rc = take_frame(p, &none)) == AMQP_STATUS_OK)
		;
	return rc == AMQP_STATUS_TIMEOUT;
}

static bool
prepare(struct publish *p, struct cli *c)
{
	if (cli_switch(c, "declare")) {
		amqp_queue_declare(
		    p->conn.amqp, 1, amqp_cstring_bytes(p->key), 0, 1, 0, 0, amqp_empty_table);
		if (!client_fine(
		        &p->conn, amqp_get_rpc_reply(p->conn.amqp), "the queue cannot be made"))
			return false;
	}
	amqp_confirm_select(p->conn.amqp, 1);
	return client_fine(&p->conn, amqp_get_rpc_reply(p->conn.amqp), "the node does not confirm");
}

static bool
publish_all(struct publish *p, uint64_t count)
{
	while (p->sent < count) {
		int rc = amqp_basic_publish(p->conn.amqp, 1, amqp_cstring_bytes(p->exchange),
		    amqp_cstring_bytes(p->key), p->mandatory, 0, &p->properties,
		    (amqp_bytes_t){ p->body_len, p->body });

		if (rc != AMQP_STATUS_OK) {
			cli_fail(p->conn.cli, "cannot publish: %s", amqp_error_string2(rc));
			return false;
		}
		p->sent++;
		p->open[p->sent % WINDOW] = true;
		if (!take_frames(p) || (p->sent - p->settled >= WINDOW && !wait_settled(p)))
			return false;
	}
	return wait_settled(p);
}

static int
run(struct publish *p, struct cli *c, uint64_t count)
{
	int status;

	if (!read_body(p, c))
		return CLI_FAILED;
	if ((status = client_open(&p->conn, c)) != CLI_OK)
		return status;
	if (!prepare(p, c) || !publish_all(p, count))
		return CLI_FAILED;
	if (p->refused > 0)
		return cli_fail(c, "%" PRIu64 " of %" PRIu64 " messages were refused by the node",
		    p->refused, count);
	if (p->returned > 0)
		return CLI_FAILED;
	if (count == 1)
		puts("published");
	else
		printf("published %" PRIu64 " messages\n", count);
	return CLI_OK;
}

int
cmd_publish(struct cli *c)
{
	struct publish p = { .conn = { .cli = c, .hears_blocked = true } };
	uint64_t count = 1;
	int status = CLI_USAGE;

	if (cli_number(c, "count", 1, 1000000000, &count) && read_options(&p, c))
		status = run(&p, c, count);
	client_close(&p.conn);
	for (int i = 0; i < p.headers; i++)
		free(p.header_text[i]);
	free(p.body);
	return status;
}
