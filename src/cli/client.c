/* SPDX-License-Identifier: Apache-2.0
 * Connecting for the commands that talk AMQP. The socket is made here and not by the library, because the library
 * does not say why a connection failed. */
#include "cli/client.h"

#include <amqp_tcp_socket.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/client_tls.h"
#include "cli/login.h"

enum { CONNECT_S = 10, FRAME_MAX = 131072 };

/* "Connection refused" in the middle of a line. */
static void
lower(char *out, size_t n, const char *text)
{
	snprintf(out, n, "%s", text);
	out[0] = (char)tolower((unsigned char)out[0]);
}

static int
connect_one(const struct addrinfo *a)
{
	const struct timeval limit = { .tv_sec = CONNECT_S };
	const int one = 1;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	/* the limit of a send is the limit of connect too: socket(7) */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	/* the library keeps no time limit on a socket that blocks */
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
		return fd;
	err = errno == EINPROGRESS ? ETIMEDOUT : errno;
	close(fd);
	return -err;
}

/* A connected socket or -1. */
static int
connect_to(struct cli *c, const char *host, int port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	char service[16], why[128];
	int fd = -EADDRNOTAVAIL, rc;

	snprintf(service, sizeof service, "%d", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0) {
		cli_fail(c, "cannot reach %s:%d: %s", host, port, gai_strerror(rc));
		return -1;
	}
	for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
		fd = connect_one(a);
	freeaddrinfo(list);
	if (fd >= 0)
		return fd;
	lower(why, sizeof why, strerror(-fd));
	cli_fail(c, "cannot reach %s:%d: %s; is the node running? hermes server", host, port, why);
	return -1;
}

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

/* What --amqp says, with the defaults of what it leaves out. `url` is cut up and must stay. */
static bool
parse_address(struct cli *c, char *url, struct amqp_connection_info *info)
{
	amqp_default_connection_info(info);
	if (url != NULL && amqp_parse_url(url, info) != AMQP_STATUS_OK) {
		cli_misuse(
		    c, "--amqp: not an address such as amqp://USER:PASSWORD@HOST:PORT/VHOST");
		return false;
	}
	if (url == NULL)
		info->host = (char *)(uintptr_t) "127.0.0.1";
	if (info->vhost == NULL || info->vhost[0] == '\0')
		info->vhost = (char *)(uintptr_t) "/";
	return true;
}

/* HOST:PORT is an address, too. */
static const char *
behind_scheme(const char *url)
{
	const char *mark = strstr(url, "://");

	return mark != NULL ? mark + 3 : url;
}

static char *
with_scheme(const char *url)
{
	return xasprintf("%s%s", behind_scheme(url) == url ? "amqp://" : "", url);
}

/* Does --amqp on the command line, not that of the environment, name a user (or a vhost)? */
static bool
address_names(const struct cli *c, char what)
{
	const char *url = cli_count(c, "amqp") > 0 ? cli_value(c, "amqp") : NULL;

	return url != NULL && strchr(behind_scheme(url), what) != NULL;
}

/* An option, else what the address on the command line says, else the environment, else the address. */
static const char *
option_or(const struct cli *c, const char *name, char mark, const char *address)
{
	const char *value = cli_value(c, name);

	if (value == NULL || (cli_count(c, name) == 0 && address_names(c, mark)))
		return address;
	return value;
}

/* The library makes it guest where the address has none. NULL: *status, and it was said. */
static char *
password_of(struct cli *c, const char *user, const struct amqp_connection_info *info, int *status)
{
	const char *url = cli_value(c, "amqp"), *host = url != NULL ? behind_scheme(url) : NULL,
	           *at = host != NULL ? strchr(host, '@') : NULL;
	bool has_login = at != NULL,
	     has_password = has_login && memchr(host, ':', (size_t)(at - host)) != NULL,
	     is_guest = !has_login && cli_value(c, "user") == NULL;
	bool is_of_address = has_password && strcmp(user, info->user) == 0;

	return login_password(c, user, is_of_address || is_guest ? info->password : NULL,
	    has_login && cli_count(c, "amqp") > 0, status);
}

/* amqp_login, telling who connects, and that a consumer wants to hear when its queue is deleted. */
static amqp_rpc_reply_t
log_in_as(struct client_conn *k, const char *vhost, const char *user, const char *password)
{
	char name[64];
	amqp_table_entry_t notify = { .key = amqp_cstring_bytes("consumer_cancel_notify"),
		.value = { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 } };
	amqp_table_entry_t entries[] = {
		{ .key = amqp_cstring_bytes("capabilities"),
		    .value = { .kind = AMQP_FIELD_KIND_TABLE, .value.table = { 1, &notify } } },
		{ .key = amqp_cstring_bytes("connection_name"),
		    .value = { .kind = AMQP_FIELD_KIND_UTF8 } },
	};
	const amqp_table_t properties = { COUNT_OF(entries), entries };

	snprintf(name, sizeof name, "hermes %s", cli_command_name(k->cli));
	entries[1].value.value.bytes = amqp_cstring_bytes(name);
	return amqp_login_with_properties(k->amqp, vhost, AMQP_DEFAULT_MAX_CHANNELS, FRAME_MAX, 0,
	    &properties, AMQP_SASL_METHOD_PLAIN, user, password);
}

static bool
log_in(struct client_conn *k, const struct amqp_connection_info *info, const char *user,
    const char *password)
{
	const char *vhost = option_or(k->cli, "vhost", '/', info->vhost);
	const struct timeval limit = { .tv_sec = CONNECT_S };
	amqp_rpc_reply_t reply;
	char doing[400];

	snprintf(doing, sizeof doing,
	    "the node at %s:%d does not let user '%.64s' into vhost '%.64s' (see --user, "
	    "--password-file, --vhost)",
	    info->host, info->port, user, vhost);
	/* an HTTP port, say, waits for the rest of what it takes for a request, and says nothing */
	if (amqp_set_handshake_timeout(k->amqp, &limit) != AMQP_STATUS_OK)
		abort();
	reply = log_in_as(k, vhost, user, password);
	if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
		cli_fail(k->cli,
		    "%s:%d does not answer as an AMQP 0-9-1 broker: %s; is it the AMQP port?",
		    info->host, info->port, amqp_error_string2(reply.library_error));
		return false;
	}
	if (!client_fine(k, reply, doing))
		return false;
	amqp_channel_open(k->amqp, 1);
	return client_fine(k, amqp_get_rpc_reply(k->amqp), "cannot open a channel");
}

static int
open_tls(struct client_conn *k, const struct amqp_connection_info *info, const char *user,
    const char *password)
{
	const struct timeval limit = { .tv_sec = CONNECT_S };

	k->amqp = amqp_new_connection();
	if (k->amqp != NULL && client_tls_open(k->cli, k->amqp, info->host, info->port, &limit) &&
	    log_in(k, info, user, password))
		return CLI_OK;
	client_close(k);
	return CLI_FAILED;
}

int
client_open(struct client_conn *k, struct cli *c)
{
	const char *given = cli_value(c, "amqp");
	char *url = given != NULL ? with_scheme(given) : NULL, *password = NULL;
	const char *user;
	struct amqp_connection_info info;
	amqp_socket_t *socket_of;
	int status = CLI_FAILED, fd;

	*k = (struct client_conn){ .cli = c };
	if (!parse_address(c, url, &info)) {
		status = CLI_USAGE;
		goto out;
	}
	user = option_or(c, "user", '@', info.user);
	if ((password = password_of(c, user, &info, &status)) == NULL)
		goto out;
	if (info.ssl) {
		status = open_tls(k, &info, user, password);
		goto out;
	}
	if ((fd = connect_to(c, info.host, info.port)) < 0)
		goto out;
	k->amqp = amqp_new_connection();
	socket_of = k->amqp != NULL ? amqp_tcp_socket_new(k->amqp) : NULL;
	if (socket_of == NULL) {
		close(fd);
		cli_fail(c, "no memory");
	} else {
		amqp_tcp_socket_set_sockfd(socket_of, fd);
		if (log_in(k, &info, user, password))
			status = CLI_OK;
	}
	if (status != CLI_OK)
		client_close(k);
out:
	free(password);
	free(url);
	return status;
}

void
client_close(struct client_conn *k)
{
	if (k->amqp == NULL)
		return;
	/* what went wrong was said; the process ends anyway */
	(void)amqp_connection_close(k->amqp, AMQP_REPLY_SUCCESS);
	(void)amqp_destroy_connection(k->amqp);
	k->amqp = NULL;
}
