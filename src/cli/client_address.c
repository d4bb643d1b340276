/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client_address.h"

#include <amqp.h>
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
#include "cli/login.h"

enum { CONNECT_S = 10 };

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

int
client_connect(struct cli *c, const struct client_address *a)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	char service[16], why[128];
	int fd = -EADDRNOTAVAIL, rc;

	snprintf(service, sizeof service, "%d", a->port);
	rc = getaddrinfo(a->host, service, &hints, &list);
	if (rc != 0) {
		cli_fail(c, "cannot reach %s:%d: %s", a->host, a->port, gai_strerror(rc));
		return -1;
	}
	for (const struct addrinfo *i = list; i != NULL && fd < 0; i = i->ai_next)
		fd = connect_one(i);
	freeaddrinfo(list);
	if (fd >= 0)
		return fd;
	lower(why, sizeof why, strerror(-fd));
	cli_fail(c, "cannot reach %s:%d: %s%s", a->host, a->port, why,
	    fd == -EMFILE ? " for this command; see ulimit -n"
	                  : "; is the node running? hermes server");
	return -1;
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

int
client_address_read(struct client_address *a, struct cli *c)
{
	const char *given = cli_value(c, "amqp");
	struct amqp_connection_info info;
	int status = CLI_USAGE;

	*a = (struct client_address){ .url = given != NULL ? with_scheme(given) : NULL };
	if (parse_address(c, a->url, &info)) {
		a->host = info.host;
		a->port = info.port;
		a->is_tls = info.ssl;
		a->vhost = option_or(c, "vhost", '/', info.vhost);
		a->user = option_or(c, "user", '@', info.user);
		a->password = password_of(c, a->user, &info, &status);
		if (a->password != NULL)
			return CLI_OK;
	}
	client_address_fini(a);
	return status;
}

void
client_address_fini(struct client_address *a)
{
	free(a->password);
	free(a->url);
	*a = (struct client_address){ 0 };
}
