/* SPDX-License-Identifier: Apache-2.0
 * Listening sockets. When descriptors run out, accept() fails and leaves the connection in the queue, so
 * that the socket stays readable and a loop would spin. Each listener therefore holds one descriptor in
 * reserve: it is given up for a moment to accept the connection and close it, and accepting rests. */
#include "net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/transport.h"

enum { ACCEPTS_A_TURN = 64, REST_MS = 100 };

struct listener {
	struct loop *loop;   /* borrowed, outlives every listener */
	struct event *event; /* owned; NULL once stopped */
	int fd, reserve_fd;  /* owned; -1: none */
	struct wheel_node rest;
	uint32_t max_open; /* 0: no limit of its own */
	bool nodelay, keepalive;
	int idle_s, interval_s, probes; /* of keepalive; 0: the system's */
	uint16_t port;
	char *address; /* owned */
	listener_fn *fn;
	void *arg; /* borrowed: the caller's */
	struct listener_stats stats;
};

static struct log_limit refused_lines = { .burst = 20 };

static int
open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
rest(struct listener *ls)
{
	if (ls->event == NULL)
		return;
	(void)event_del(ls->event);
	wheel_arm(ls->loop->wheel, &ls->rest, ls->loop->now_ms + REST_MS);
}

static void
on_rested(struct wheel_node *node, UNUSED uint64_t now_ms)
{
	struct listener *ls = container_of(node, struct listener, rest);

	if (ls->event != NULL)
		(void)event_add(ls->event, NULL);
}

static void
refuse(struct listener *ls, int fd, const char *why)
{
	struct transport_addr peer;
	char text[80];

	ls->stats.refused++;
	bound_reached(BOUND_connections);
	transport_addr_of(fd, &peer, NULL);
	close(fd);
	if (!log_allowed(&refused_lines))
		return;
	(void)snprintf(
	    text, sizeof text, strchr(peer.host, ':') ? "[%s]:%u" : "%s:%u", peer.host, peer.port);
	log_line(LOG_WARNING, &(struct log_who){ .peer = text },
	    "connection to port %u refused: %s (%u open)", ls->port, why, ls->stats.open);
}

/* Accepts one with the reserve's descriptor, to tell it that there is no room. */
static bool
refuse_with_reserve(struct listener *ls)
{
	int fd;

	if (ls->reserve_fd < 0)
		return false;
	close(ls->reserve_fd);
	fd = accept4(ls->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		refuse(ls, fd, "the process has no descriptor left; raise its limit (ulimit -n)");
	ls->reserve_fd = open_reserve();
	return fd >= 0;
}

static void
set_options(const struct listener *ls, int fd)
{
	int one = 1;

	/* only speed or patience is lost where one of these fails (it does on a connection already reset) */
	if (ls->nodelay)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (ls->keepalive)
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	if (ls->keepalive && ls->idle_s != 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &ls->idle_s, sizeof ls->idle_s);
	if (ls->keepalive && ls->interval_s != 0)
		(void)setsockopt(
		    fd, IPPROTO_TCP, TCP_KEEPINTVL, &ls->interval_s, sizeof ls->interval_s);
	if (ls->keepalive && ls->probes != 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &ls->probes, sizeof ls->probes);
}

/* False: nothing more is to be had in this turn. *must_rest is set when there is no room. */
static bool
accept_one(struct listener *ls, bool *must_rest)
{
	static struct log_limit failed_lines = { .burst = 5 };
	int fd = accept4(ls->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 && errno == EAGAIN)
		return false;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		*must_rest = true;
		return refuse_with_reserve(ls);
	}
	if (fd < 0 && (errno == ENOBUFS || errno == ENOMEM || errno == EBADF || errno == EINVAL)) {
		ls->stats.errors++;
		if (log_allowed(&failed_lines))
			log_error("accept on port %u failed: %s", ls->port, strerror(errno));
		*must_rest = true;
		return false;
	}
	if (fd < 0) {
		ls->stats.errors++; /* this one connection failed before it was ours */
		return true;
	}
	if (ls->max_open != 0 && ls->stats.open >= ls->max_open) {
		*must_rest = true;
		refuse(ls, fd, "the limit of connections is reached");
		return true;
	}
	set_options(ls, fd);
	ls->stats.accepted++;
	ls->stats.open++;
	ls->fn(ls->arg, fd);
	return true;
}

static void
on_acceptable(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct listener *ls = arg;
	bool must_rest = false;

	for (unsigned i = 0; i < ACCEPTS_A_TURN && ls->event != NULL; i++)
		if (!accept_one(ls, &must_rest))
			break;
	if (must_rest)
		rest(ls);
}

/* --- opening -------------------------------------------------------------------------------------- */

/* False: not an address. Names are none; listen_addresses.h makes addresses of them. */
static bool
resolve(const char *address, uint16_t port, struct sockaddr_storage *ss, socklen_t *n)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (inet_pton(AF_INET, address, &in.sin_addr) == 1) {
		*n = sizeof in;
		memcpy(ss, &in, sizeof in);
		return true;
	}
	if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1) {
		*n = sizeof in6;
		memcpy(ss, &in6, sizeof in6);
		return true;
	}
	return false;
}

static bool
is_any_v6(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)ss)->sin6_addr);
}

/* A bound, listening socket or -1 with errno. "::" takes IPv4 too. */
static int
open_socket(const struct sockaddr_storage *ss, socklen_t n, int backlog)
{
	int one = 1, zero = 0, saved;
	int fd = socket(ss->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
	    (ss->ss_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY,
	                                      is_any_v6(ss) ? &zero : &one, sizeof one) == 0) &&
	    bind(fd, (const struct sockaddr *)ss, n) == 0 && listen(fd, backlog) == 0)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static const char *
open_error(const char *address, uint16_t port, int err)
{
	static char text[256];
	const char *hint = strerror(err);

	if (err == EADDRINUSE)
		hint = "is taken by another process: stop it, or choose another port";
	else if (err == EACCES)
		hint = "may not be opened by this user: choose a port above 1023, or grant "
		       "CAP_NET_BIND_SERVICE";
	else if (err == EADDRNOTAVAIL)
		hint = "cannot be opened: the machine does not have this address";
	else if (err == EAFNOSUPPORT)
		hint = "cannot be opened: the machine has no IPv6; listen on 0.0.0.0";
	(void)snprintf(text, sizeof text, "port %u on %.80s %s", port, address, hint);
	return text;
}

int
listener_socket(const struct config *cfg, const char *address, uint16_t port, const char **error)
{
	struct sockaddr_storage ss;
	socklen_t n;
	int fd;

	if (!resolve(address, port, &ss, &n)) {
		*error = open_error(address, port, EADDRNOTAVAIL);
		return -1;
	}
	fd = open_socket(&ss, n, (int)cfg->tcp_backlog);
	if (fd < 0 && errno == EAFNOSUPPORT && is_any_v6(&ss)) {
		log_warning(
		    "the machine has no IPv6: port %u listens on 0.0.0.0 instead of ::", port);
		return listener_socket(cfg, "0.0.0.0", port, error);
	}
	if (fd < 0)
		*error = open_error(address, port, errno);
	return fd;
}

struct listener *
listener_open(struct loop *l, const struct config *cfg, const char *address, uint16_t port,
    uint32_t max_open, listener_fn *fn, void *arg, const char **error)
{
	struct listener *ls;
	struct transport_addr local;
	int fd = listener_socket(cfg, address, port, error);

	if (fd < 0)
		return NULL;
	transport_addr_of(fd, NULL, &local);
	ls = xcalloc(1, sizeof *ls);
	*ls = (struct listener){ .loop = l,
		.fd = fd,
		.reserve_fd = open_reserve(),
		.rest = { .fire = on_rested },
		.max_open = max_open,
		.nodelay = cfg->tcp_nodelay,
		.keepalive = cfg->tcp_keepalive,
		.idle_s = (int)cfg->tcp_keepalive_idle_s,
		.interval_s = (int)cfg->tcp_keepalive_interval_s,
		.probes = (int)cfg->tcp_keepalive_count,
		.port = local.port,
		.address = xstrdup(local.host),
		.fn = fn,
		.arg = arg };
	ls->event = event_new(l->base, fd, EV_READ | EV_PERSIST, on_acceptable, ls);
	if (ls->event == NULL || event_add(ls->event, NULL) < 0) {
		*error = open_error(address, port, ENOMEM);
		listener_free(&ls);
		return NULL;
	}
	return ls;
}

void
listener_stop(struct listener *ls)
{
	if (ls->fd < 0)
		return;
	wheel_disarm(ls->loop->wheel, &ls->rest);
	if (ls->event != NULL)
		event_free(ls->event);
	ls->event = NULL;
	close(ls->fd);
	ls->fd = -1;
	if (ls->reserve_fd >= 0)
		close(ls->reserve_fd);
	ls->reserve_fd = -1;
}

void
listener_free(struct listener **lsp)
{
	struct listener *ls = *lsp;

	if (ls == NULL)
		return;
	*lsp = NULL;
	listener_stop(ls);
	free(ls->address);
	free(ls);
}

void
listener_closed(struct listener *ls)
{
	if (ls->stats.open > 0)
		ls->stats.open--;
}

uint16_t
listener_port(const struct listener *ls)
{
	return ls->port;
}

const char *
listener_address(const struct listener *ls)
{
	return ls->address;
}

const struct listener_stats *
listener_stats(const struct listener *ls)
{
	return &ls->stats;
}

uint64_t
listener_raise_descriptors(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return 1024;
	if (lim.rlim_cur < lim.rlim_max) {
		struct rlimit raised = { .rlim_cur = lim.rlim_max, .rlim_max = lim.rlim_max };

		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			lim = raised;
	}
	return lim.rlim_cur;
}
