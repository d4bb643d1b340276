/* SPDX-License-Identifier: Apache-2.0
 * Connecting for the commands that talk AMQP. The socket is not made by the library, because the library does not say
 * why a connection failed. */
#include "cli/client.h"

#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/client_address.h"
#include "cli/client_tls.h"

enum { CONNECT_S = 10, CLOSE_S = 5, FRAME_MAX = 131072 };

/* The server's reason for closing, or NULL if the answer is none. */
static void
close_text(const amqp_method_t *m, char *out, size_t n)
{
	if (m->id == AMQP_CONNECTION_CLOSE_METHOD) {
		const amqp_connection_close_t *close = m->decoded;

		snprintf(out, n, "%d %.*s", close->reply_code, (int)close->reply_text.len,
		    (char *)close->reply_text.bytes);
	} else if (m->id == AMQP_CHANNEL_CLOSE_METHOD) {
		const amqp_channel_close_t *close = m->decoded;

		snprintf(out, n, "%d %.*s", close->reply_code, (int)close->reply_text.len,
		    (char *)close->reply_text.bytes);
	} else {
		snprintf(out, n, "an unexpected answer (%s)", amqp_method_name(m->id));
	}
}

bool
client_fine(struct client_conn *k, amqp_rpc_reply_t reply, const char *doing)
{
	char text[400];

	if (reply.reply_type == AMQP_RESPONSE_NORMAL)
		return true;
	if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION)
		close_text(&reply.reply, text, sizeof text);
	else
		snprintf(text, sizeof text, "%s", amqp_error_string2(reply.library_error));
	cli_fail(k->cli, "%s: %s", doing, text);
	return false;
}

/* amqp_login, telling who connects, that a consumer wants to hear when its queue is deleted, and a publisher when it is held
 * back. */
static amqp_rpc_reply_t
log_in_as(struct client_conn *k, const char *vhost, const char *user, const char *password)
{
	char name[64];
	const amqp_field_value_t yes = { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 };
	amqp_table_entry_t can[] = {
		{ .key = amqp_cstring_bytes("consumer_cancel_notify"), .value = yes },
		{ .key = amqp_cstring_bytes("connection.blocked"), .value = yes },
	};
	amqp_table_entry_t entries[] = {
		{ .key = amqp_cstring_bytes("capabilities"),
		    .value = { .kind = AMQP_FIELD_KIND_TABLE,
		        .value.table = { k->hears_blocked ? 2 : 1, can } } },
		{ .key = amqp_cstring_bytes("connection_name"),
		    .value = { .kind = AMQP_FIELD_KIND_UTF8 } },
	};
	const amqp_table_t properties = { COUNT_OF(entries), entries };

	snprintf(name, sizeof name, "hermes %s", cli_command_name(k->cli));
	entries[1].value.value.bytes = amqp_cstring_bytes(name);
	return amqp_login_with_properties(k->amqp, vhost, AMQP_DEFAULT_MAX_CHANNELS, FRAME_MAX, 0,
	    &properties, AMQP_SASL_METHOD_PLAIN, user, password);
}

/* The login itself, and not the vhost: 403 stands for that only until a channel is open. */
static bool
is_login_refused(const amqp_rpc_reply_t *reply)
{
	return reply->reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
	       reply->reply.id == AMQP_CONNECTION_CLOSE_METHOD &&
	       ((const amqp_connection_close_t *)reply->reply.decoded)->reply_code ==
	           AMQP_ACCESS_REFUSED;
}

static bool
log_in(struct client_conn *k, const struct client_address *a)
{
	const struct timeval limit = { .tv_sec = CONNECT_S };
	amqp_rpc_reply_t reply;
	char doing[400];

	snprintf(doing, sizeof doing,
	    "the node at %s:%d does not let user '%.64s' into vhost '%.64s' (see --user, "
	    "--password-file, --vhost)",
	    a->host, a->port, a->user, a->vhost);
	/* an HTTP port, say, waits for the rest of what it takes for a request, and says nothing */
	if (amqp_set_handshake_timeout(k->amqp, &limit) != AMQP_STATUS_OK)
		abort();
	reply = log_in_as(k, a->vhost, a->user, a->password);
	if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
		cli_fail(k->cli,
		    "%s:%d does not answer as an AMQP 0-9-1 broker: %s; is it the AMQP port?",
		    a->host, a->port, amqp_error_string2(reply.library_error));
		return false;
	}
	if (is_login_refused(&reply))
		snprintf(doing, sizeof doing,
		    "the node at %s:%d does not let user '%.64s' in: wrong name or password, or an "
		    "account that works from the node's own machine only (see "
		    "--user, --password-file)",
		    a->host, a->port, a->user);
	if (!client_fine(k, reply, doing))
		return false;
	amqp_channel_open(k->amqp, 1);
	return client_fine(k, amqp_get_rpc_reply(k->amqp), "cannot open a channel");
}

static bool
open_tls(struct client_conn *k, const struct client_address *a)
{
	const struct timeval limit = { .tv_sec = CONNECT_S };

	k->amqp = amqp_new_connection();
	return k->amqp != NULL && client_tls_open(k->cli, k->amqp, a->host, a->port, &limit);
}

static bool
open_plain(struct client_conn *k, const struct client_address *a)
{
	int fd = client_connect(k->cli, a);
	amqp_socket_t *socket_of;

	if (fd < 0)
		return false;
	k->amqp = amqp_new_connection();
	socket_of = k->amqp != NULL ? amqp_tcp_socket_new(k->amqp) : NULL;
	if (socket_of == NULL) {
		close(fd);
		cli_fail(k->cli, "no memory");
		return false;
	}
	amqp_tcp_socket_set_sockfd(socket_of, fd);
	return true;
}

/* A command that waits for messages, or for a node that holds it back, hears within a minute that the machine is gone. No
 * heartbeats: what waits for a pager sends none. Where the system has no such option it waits as it would have. */
static void
watch_peer(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 20 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 10 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, 60000 },
	};

	for (size_t i = 0; i < COUNT_OF(options); i++)
		(void)!setsockopt(fd, options[i].level, options[i].name, &options[i].value,
		    sizeof options[i].value);
}

int
client_open(struct client_conn *k, struct cli *c)
{
	struct client_address a;
	int status = client_address_read(&a, c);

	*k = (struct client_conn){ .cli = c, .hears_blocked = k->hears_blocked };
	if (status != CLI_OK)
		return status;
	if (a.is_tls ? open_tls(k, &a) : open_plain(k, &a)) {
		watch_peer(amqp_get_sockfd(k->amqp));
		status = log_in(k, &a) ? CLI_OK : CLI_FAILED;
	} else {
		status = CLI_FAILED;
	}
	if (status != CLI_OK)
		client_close(k);
	client_address_fini(&a);
	return status;
}

void
client_close(struct client_conn *k)
{
	const struct timeval limit = { .tv_sec = CLOSE_S };

	if (k->amqp == NULL)
		return;
	/* a node that holds publishers back reads nothing */
	(void)amqp_set_rpc_timeout(k->amqp, &limit);
	/* what went wrong was said; the process ends anyway */
	(void)amqp_connection_close(k->amqp, AMQP_REPLY_SUCCESS);
	(void)amqp_destroy_connection(k->amqp);
	k->amqp = NULL;
}
