/* SPDX-License-Identifier: Apache-2.0
 * Bridges: see the header.
 *
 * A crossing is two transports, outside to the client and inside to the server. What comes in by one goes out by the other;
 * when one ends, the other sends what waits and is closed. The inside's socket has a name in the kernel that nobody can
 * have beside it, and by that name the server finds out whose connection it is. */
#include "mgmt/bridge.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/gate.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/transport.h"

enum { PORTS_MAX = 2 * CONFIG_LISTEN_MAX, BACKLOG = 1024, LINGER_MS = 5000 };

struct crossing;

struct side {
	struct crossing *crossing; /* borrowed: holds us */
	struct transport *io;      /* owned */
};

struct crossing {
	struct bridge *bridge;     /* borrowed */
	struct listener *listener; /* borrowed */
	struct side outside, inside;
	struct transport_addr peer;
	bool is_tls;
	uint64_t id;
	LIST_ENTRY(crossing) link;
};

struct bridge_port {
	struct bridge *bridge; /* borrowed: holds us */
	struct gate_port gate;
};

struct bridge {
	struct loop *loop; /* borrowed, as the next */
	struct gate *gate;
	uint32_t max;
	struct bridge_port port[PORTS_MAX];
	unsigned ports;
	char
	    name[64]; /* of the listening socket, without the NUL in front of names in the kernel */
	uint64_t last_id;
	LIST_HEAD(, crossing) crossings; /* owned */
};

/* ---- names in the kernel ---- */

static socklen_t
set_name(struct sockaddr_un *un, const struct bridge *b, uint64_t id)
{
	int n;

	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (id == 0)
		n = snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "%s", b->name);
	else
		n = snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "%s-%" PRIu64, b->name, id);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int
bridge_socket(struct bridge *b, const char **error)
{
	struct sockaddr_un un;
	socklen_t n = set_name(&un, b, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&un, n) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	*error = "a local socket for HTTP over TLS cannot be opened";
	if (fd >= 0)
		close(fd);
	return -1;
}

/* A socket connected with the server's; -1: errno. */
static int
connect_inside(const struct bridge *b, uint64_t id)
{
	struct sockaddr_un un;
	socklen_t n = set_name(&un, b, id);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), saved;

	if (fd >= 0 && bind(fd, (struct sockaddr *)&un, n) == 0) {
		n = set_name(&un, b, 0);
		if (connect(fd, (struct sockaddr *)&un, n) == 0)
			return fd;
	}
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

bool
bridge_peer(const struct bridge *b, int fd, struct transport_addr *peer, bool *is_tls)
{
	struct sockaddr_un un = { .sun_family = AF_UNSPEC };
	socklen_t n = sizeof un;
	const struct crossing *c;
	size_t len = strlen(b->name);
	uint64_t id;

	/* zeros follow the name */
	if (getpeername(fd, (struct sockaddr *)&un, &n) < 0 || un.sun_family != AF_UNIX ||
	    memcmp(un.sun_path + 1, b->name, len) != 0 || un.sun_path[1 + len] != '-')
		return false;
	un.sun_path[sizeof un.sun_path - 1] = '\0';
	id = strtoull(un.sun_path + 2 + len, NULL, 10);
	LIST_FOREACH (c, &b->crossings, link) {
		if (c->id != id)
			continue;
		*peer = c->peer;
		*is_tls = c->is_tls;
		return true;
	}
	return false;
}

/* ---- a crossing ---- */

static struct side *
other_side(struct side *s)
{
	return s == &s->crossing->outside ? &s->crossing->inside : &s->crossing->outside;
}

static size_t
on_bytes(void *owner, uint8_t *p, size_t n)
{
	struct side *s = owner, *to = other_side(s);

	transport_write(to->io, p, n);
	if (to->io->pending >= BRIDGE_HIGH)
		transport_pause(s->io, PAUSE_OUTPUT);
	return n;
}

static void
on_room(void *owner)
{
	struct side *s = owner;

	transport_resume(other_side(s)->io, PAUSE_OUTPUT);
}

static void
crossing_free(struct crossing *c)
{
	listener_closed(c->listener);
	LIST_REMOVE(c, link);
	free(c);
}

static void
on_end(void *owner, UNUSED enum transport_end why, UNUSED int err)
{
	static struct log_limit lines = { .burst = 20 };
	struct side *s = owner, *to = other_side(s);

	if (transport_tls_why(s->io)[0] != '\0' && log_allowed(&lines))
		log_warning("HTTP connection from %s closed: TLS: %s", s->crossing->peer.host,
		    transport_tls_why(s->io));
	transport_close(s->io);
	transport_close_after_flush(to->io, LINGER_MS);
	crossing_free(s->crossing);
}

static void
on_unref(UNUSED void *piece)
{
}

static const struct transport_ops ops = {
	.on_bytes = on_bytes, .on_room = on_room, .on_end = on_end, .unref = on_unref
};

static void
side_init(struct side *s, struct crossing *c, int fd)
{
	s->crossing = c;
	s->io = transport_new(c->bridge->loop, fd, &ops, s, 0, BRIDGE_HIGH / 2);
	transport_set_stranger(s->io, true); /* as all of HTTP: after those who send messages */
}

static void
on_arrival(void *arg, const struct arrival *a)
{
	static struct log_limit lines = { .burst = 5 };
	struct bridge_port *port = arg;
	struct bridge *b = port->bridge;
	uint64_t id = ++b->last_id;
	int fd = connect_inside(b, id);
	struct tls_session *tls = a->tls;
	struct crossing *c;

	if (fd < 0) {
		if (log_allowed(&lines))
			log_warning("HTTP connection from %s refused: %s", a->peer.host,
			    errno == EAGAIN ? "too many wait" : strerror(errno));
		tls_session_free(&tls);
		close(a->fd);
		listener_closed(port->gate.listener);
		return;
	}
	c = xcalloc(1, sizeof *c);
	c->bridge = b;
	c->listener = port->gate.listener;
	c->id = id;
	c->peer = a->peer;
	c->is_tls = tls != NULL;
	side_init(&c->outside, c, a->fd);
	if (tls != NULL)
		transport_set_tls(c->outside.io, tls);
	side_init(&c->inside, c, fd);
	LIST_INSERT_HEAD(&b->crossings, c, link);
}

/* ---- ports ---- */

static void
on_accept(void *arg, int fd)
{
	struct bridge_port *port = arg;

	gate_enter(port->bridge->gate, &port->gate, fd);
}

bool
bridge_listen(struct bridge *b, const struct config *cfg, const char *address, uint16_t number,
    bool is_tls, const char **error)
{
	struct bridge_port *port = &b->port[b->ports];

	if (b->ports == PORTS_MAX) {
		*error = "too many addresses to listen on";
		return false;
	}
	port->bridge = b;
	port->gate = (struct gate_port){
		.is_tls = is_tls, .may_proxy = cfg->proxy_management, .fn = on_arrival, .arg = port
	};
	port->gate.listener =
	    listener_open(b->loop, cfg, address, number, b->max, on_accept, port, error);
	b->ports += port->gate.listener != NULL;
	return port->gate.listener != NULL;
}

bool
bridge_port(const struct bridge *b, unsigned i, struct transport_addr *out, bool *is_tls)
{
	if (i >= b->ports)
		return false;
	*out = (struct transport_addr){ .port = listener_port(b->port[i].gate.listener) };
	(void)snprintf(
	    out->host, sizeof out->host, "%s", listener_address(b->port[i].gate.listener));
	*is_tls = b->port[i].gate.is_tls;
	return true;
}

struct bridge *
bridge_new(struct loop *l, struct gate *g, uint32_t max)
{
	struct bridge *b = xcalloc(1, sizeof *b);
	char unique[RANDOM_NAME_SIZE];

	b->loop = l;
	b->gate = g;
	b->max = max;
	random_name(unique);
	(void)snprintf(b->name, sizeof b->name, "hermes-http-%s", unique);
	LIST_INIT(&b->crossings);
	return b;
}

void
bridge_free(struct bridge **bp)
{
	struct bridge *b = *bp;
	struct crossing *c;

	if (b == NULL)
		return;
	*bp = NULL;
	while ((c = LIST_FIRST(&b->crossings)) != NULL) {
		transport_close(c->outside.io);
		transport_close(c->inside.io);
		crossing_free(c);
	}
	for (unsigned i = 0; i < b->ports; i++)
		listener_free(&b->port[i].gate.listener);
	free(b);
}
