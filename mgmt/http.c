/* SPDX-License-Identifier: Apache-2.0
 * libevent's HTTP server, bounded.
 *
 * evhttp of libevent 2.1 neither counts its connections nor says when one goes, and its time limit begins
 * anew with each byte. Both are had through the hook that makes a connection's bufferevent: we keep a
 * reference to it. evhttp ends one by telling the peer (shutdown), clearing the callbacks and dropping its
 * reference; by the missing callbacks a sweep knows the dead, and our reference going closes the socket. (The
 * socket must not be closed before the bufferevent's events are gone: its number would be used again.) (A filter that tells when it is
 * freed would be neater, but evhttp ends a connection when the filter is empty, with the answer still in
 * the bufferevent below it.) The sweep also shuts down the sockets whose request took too long, which
 * evhttp sees as the peer's end.
 *
 * When accept fails for want of descriptors, or all connections are taken, the listening sockets rest. */
#include "mgmt/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/transport.h"

enum {
	SWEEP_MS = 100,
	REST_MS = 100,
	METHODS = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
	          EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH
};

/* Of one accepted connection; lives exactly as long as its bufferevent. */
struct http_conn {
	struct http *http;       /* borrowed; outlives its connections */
	struct bufferevent *bev; /* borrowed: evhttp owns it */
	uint64_t since_ms;       /* accepted, or the last complete request */
	LIST_ENTRY(http_conn) link;
};

LIST_HEAD(http_conn_list, http_conn);

struct http {
	struct loop *loop; /* borrowed */
	struct evhttp *ev; /* owned, and with it the listening sockets */
	struct evconnlistener *listener[CONFIG_LISTEN_MAX]; /* borrowed from ev */
	unsigned listeners;
	http_fn *fn;
	void *arg; /* borrowed: the caller's */
	struct http_conn_list conns;
	struct wheel_node sweep, rest; /* sweep is armed only while there are connections */
	bool full;                     /* not listening because of that */
	struct http_stats stats;
};

static void
set_listening(struct http *h, bool on)
{
	for (unsigned i = 0; i < h->listeners; i++)
		(void)(on ? evconnlistener_enable(h->listener[i])
		          : evconnlistener_disable(h->listener[i]));
}

static void
on_rested(struct wheel_node *node, UNUSED uint64_t now_ms)
{
	struct http *h = container_of(node, struct http, rest);

	if (!h->full)
		set_listening(h, true);
}

static void
on_accept_error(UNUSED struct evconnlistener *el, void *arg)
{
	static struct log_limit lines = { .burst = 5 };
	struct http *h = arg;

	h->stats.accept_errors++;
	if (log_allowed(&lines))
		log_error("accept on the management port failed: %s", strerror(errno));
	set_listening(h, false);
	wheel_arm(h->loop->wheel, &h->rest, h->loop->now_ms + REST_MS);
}

static void
conn_free(struct http *h, struct http_conn *c)
{
	LIST_REMOVE(c, link);
	(void)bufferevent_decref(c->bev);
	free(c);
	h->stats.open--;
}

/* Has evhttp let go of it? */
static bool
is_dead(const struct http_conn *c)
{
	bufferevent_data_cb on_read, on_write;
	bufferevent_event_cb on_event;
	void *arg;

	bufferevent_getcb(c->bev, &on_read, &on_write, &on_event, &arg);
	return on_event == NULL;
}

static void
sweep(struct http *h, uint64_t now_ms)
{
	struct http_conn *c, *next;

	for (c = LIST_FIRST(&h->conns); c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		if (is_dead(c)) {
			conn_free(h, c);
		} else if (now_ms >= c->since_ms + HTTP_REQUEST_MS) {
			h->stats.timed_out++;
			c->since_ms = now_ms;
			(void)shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
		}
	}
	if (h->full && h->stats.open < HTTP_CONNECTIONS) {
		h->full = false;
		if (!wheel_armed(&h->rest))
			set_listening(h, true);
	}
}

static void
on_sweep(struct wheel_node *node, uint64_t now_ms)
{
	struct http *h = container_of(node, struct http, sweep);

	sweep(h, now_ms);
	if (h->stats.open > 0)
		wheel_arm(h->loop->wheel, node, now_ms + SWEEP_MS);
}

static struct bufferevent *
make_conn(struct event_base *base, void *arg)
{
	struct http *h = arg;
	struct http_conn *c = xcalloc(1, sizeof *c);

	c->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (c->bev == NULL) {
		log_error("no memory for a management connection");
		abort(); /* a few hundred bytes: see base/mem.h */
	}
	bufferevent_incref(c->bev);
	/* bounds what one that is dead may still read until it is swept */
	bufferevent_setwatermark(c->bev, EV_READ, 0, HTTP_HEADERS_MAX + HTTP_BODY_MAX);
	c->since_ms = h->loop->now_ms;
	h->stats.accepted++;
	sweep(h, h->loop->now_ms);
	LIST_INSERT_HEAD(&h->conns, c, link);
	if (++h->stats.open >= HTTP_CONNECTIONS) {
		h->full = true;
		set_listening(h, false);
	}
	if (!wheel_armed(&h->sweep))
		wheel_arm(h->loop->wheel, &h->sweep, h->loop->now_ms + SWEEP_MS);
	return c->bev;
}

static void
on_request(struct evhttp_request *req, void *arg)
{
	struct http *h = arg;
	struct bufferevent *bev =
	    evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct transport_addr peer;
	struct http_conn *c;

	LIST_FOREACH (c, &h->conns, link)
		if (c->bev == bev)
			c->since_ms = h->loop->now_ms;
	h->stats.requests++;
	/* the real address: what the request says of itself decides nothing */
	transport_addr_of(bufferevent_getfd(bev), &peer, NULL);
	h->fn(h->arg, req, &peer);
}

struct http *
http_new(struct loop *l, http_fn *fn, void *arg)
{
	struct http *h = xcalloc(1, sizeof *h);

	h->loop = l;
	h->fn = fn;
	h->arg = arg;
	h->sweep.fire = on_sweep;
	h->rest.fire = on_rested;
	LIST_INIT(&h->conns);
	h->ev = evhttp_new(l->base);
	if (h->ev == NULL) {
		log_error("no memory for the HTTP server");
		abort();
	}
	evhttp_set_allowed_methods(h->ev, METHODS);
	evhttp_set_max_headers_size(h->ev, HTTP_HEADERS_MAX);
	evhttp_set_max_body_size(h->ev, HTTP_BODY_MAX);
	evhttp_set_timeout(h->ev, HTTP_REQUEST_MS / 1000);
	evhttp_set_default_content_type(h->ev, NULL);
	evhttp_set_bevcb(h->ev, make_conn, h);
	evhttp_set_gencb(h->ev, on_request, h);
	return h;
}

void
http_free(struct http **hp)
{
	struct http *h = *hp;
	struct http_conn *c;

	if (h == NULL)
		return;
	*hp = NULL;
	evhttp_free(h->ev); /* and with it the listening sockets and all connections */
	while ((c = LIST_FIRST(&h->conns)) != NULL)
		conn_free(h, c);
	wheel_disarm(h->loop->wheel, &h->sweep);
	wheel_disarm(h->loop->wheel, &h->rest);
	free(h);
}

bool
http_listen(struct http *h, const struct config *cfg, const char *address, uint16_t port,
    const char **error)
{
	struct evconnlistener *el;
	int fd;

	if (h->listeners == COUNT_OF(h->listener)) {
		*error = "too many addresses to listen on";
		return false;
	}
	fd = listener_socket(cfg, address, port, error);
	if (fd < 0)
		return false;
	/* evhttp brings the callback; without one it is not enabled yet */
	el = evconnlistener_new(
	    h->loop->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (el == NULL || evhttp_bind_listener(h->ev, el) == NULL) {
		close(fd);
		*error = "no memory for a listening socket";
		return false;
	}
	evconnlistener_set_error_cb(el, on_accept_error);
	h->listener[h->listeners++] = el;
	return true;
}

bool
http_port(const struct http *h, unsigned i, struct transport_addr *out)
{
	if (i >= h->listeners)
		return false;
	transport_addr_of(evconnlistener_get_fd(h->listener[i]), NULL, out);
	return true;
}

const struct http_stats *
http_stats(struct http *h)
{
	sweep(h, h->loop->now_ms);
	return &h->stats;
}
