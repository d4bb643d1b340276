/* SPDX-License-Identifier: Apache-2.0
 * libevent's HTTP server, bounded.
 *
 * evhttp of libevent 2.1 neither counts its connections nor says when one goes, and its time limit begins
 * anew with each byte. Both are had through the hook that makes a connection's bufferevent: we keep a
 * reference to it. evhttp ends one by telling the peer (shutdown), clearing the callbacks and dropping its
 * reference; by the missing callbacks a sweep knows the dead, and our reference going closes the socket. (The
 * socket must not be closed before the bufferevent's events are gone: its number would be used again. A filter
 * that tells when it is freed would be neater, but evhttp ends a connection when the filter is empty, with the
 * answer still in the bufferevent below it.) The sweep also shuts down the sockets whose request took too long,
 * which evhttp sees as the peer's end.
 *
 * When accept fails for want of descriptors, or all connections are taken, the listening sockets rest. In the
 * second case the connections that were silent longest are ended, so that a crowd that only sits there keeps
 * nobody else out for long.
 *
 * The lengths of the pieces of a chunked body stand on lines that evhttp does not bound: framing.h does.
 *
 * What evhttp cannot read it answers itself, with a page of HTML; on its way out that becomes JSON. */
#include "mgmt/http.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "mgmt/bridge.h"
#include "mgmt/framing.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/transport.h"

enum {
	SWEEP_MS = 100,
	REST_MS = 100,
	ACCEPTS_A_TURN = 64,
	EVICT = 64, /* connections ended at once to make room */
	ERROR_PAGE_MAX = 4096, /* bytes of evhttp's, with their head; what is longer is ours */
	METHODS = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
	          EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH
};

/* Of one accepted connection; goes with the sweep that finds evhttp done with it. */
struct http_conn {
	struct http *http;       /* borrowed: holds us */
	struct bufferevent *bev; /* a counted reference */
	uint64_t since_ms;       /* accepted, or the last complete request */
	size_t input;            /* bytes that came since then */
	size_t output;           /* bytes that the peer has not taken */
	uint64_t taken;          /* by the socket since since_ms */
	struct framing framing;  /* of all that came */
	bool ended;              /* shut down by us */
	bool answering;          /* the output is ours, not evhttp's */
	bool deferred;           /* the answer comes later */
	bool streams;            /* and has no end */
	TAILQ_ENTRY(http_conn) link;
};

TAILQ_HEAD(http_conn_list, http_conn);

struct http {
	struct loop *loop;        /* borrowed */
	const struct config *cfg; /* borrowed */
	struct evhttp *ev;        /* owned, and with it the listening sockets */
	struct evconnlistener *listener[CONFIG_LISTEN_MAX + 1]; /* borrowed from ev */
	unsigned listeners;
	struct gate *gate; /* borrowed; NULL: none */
	struct bridge
	    *bridge; /* owned; NULL: no port passes the gate. Its socket is the last of listener */
	http_fn *fn;
	void *arg;                     /* borrowed: the caller's */
	struct http_conn_list conns;   /* in the order of since_ms */
	struct wheel_node sweep, rest; /* sweep is armed only while there are connections */
	bool full;                     /* not listening because of that */
	uint64_t turn;                 /* of the loop, in which the last was accepted */
	unsigned accepts;              /* in that turn */
	struct http_stats stats;
	LIST_ENTRY(http) link;
};

static LIST_HEAD(, http) servers = LIST_HEAD_INITIALIZER(servers);

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
rest(struct http *h, uint64_t ms)
{
	set_listening(h, false);
	wheel_arm(h->loop->wheel, &h->rest, h->loop->now_ms + ms);
}

/* evhttp sees it as the peer's end. */
static void
end(struct http_conn *c)
{
	c->ended = true;
	(void)shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
}

/* Ends those that were silent longest. */
static void
make_room(struct http *h, uint64_t now_ms)
{
	static struct log_limit lines = { .burst = 5 };
	unsigned n = 0;
	struct http_conn *c;

	TAILQ_FOREACH (c, &h->conns, link) {
		if (n == EVICT || now_ms < c->since_ms + HTTP_SILENT_MS)
			break;
		if (c->ended || c->deferred)
			continue;
		end(c);
		n++;
	}
	h->stats.evicted += n;
	if (n > 0 && log_allowed(&lines))
		log_warning("no room for another management connection: of %u that are open the "
		            "%u that were silent longest are ended",
		    h->stats.open, n);
}

static struct http *
find_server(const struct evconnlistener *el)
{
	struct http *h;

	LIST_FOREACH (h, &servers, link)
		for (unsigned i = 0; i < h->listeners; i++)
			if (h->listener[i] == el)
				return h;
	return NULL;
}

/* The argument is that of the other callback, and so evhttp's. */
static void
on_accept_error(struct evconnlistener *el, UNUSED void *arg)
{
	static struct log_limit lines = { .burst = 5 };
	struct http *h = find_server(el);

	assert(h != NULL);
	h->stats.accept_errors++;
	if (log_allowed(&lines))
		log_error("accept on the management port failed: %s", strerror(errno));
	make_room(h, h->loop->now_ms);
	rest(h, REST_MS);
}

/* --- what is held of answers that their clients do not take ------------------ */

static size_t
large_output(const struct http_conn *c)
{
	return c->output > HTTP_OUTPUT_SMALL ? c->output : 0;
}

static void
set_output(struct http *h, struct http_conn *c, size_t n)
{
	h->stats.output_large -= large_output(c);
	c->output = n;
	h->stats.output_large += large_output(c);
}

/* Of the large answers the one that has taken longest goes, if it has had some time, else c's own. */
static void
no_room_for_output(struct http *h, struct http_conn *c)
{
	static struct log_limit lines = { .burst = 5 };
	struct http_conn *old;

	TAILQ_FOREACH (old, &h->conns, link)
		if (large_output(old) > 0 && !old->ended && !old->deferred)
			break;
	if (old != NULL && h->loop->now_ms >= old->since_ms + HTTP_SILENT_MS)
		c = old;
	h->stats.too_much_output++;
	if (log_allowed(&lines))
		log_warning("HTTP answers that their clients have not taken yet take up %" PRIu64
		            " bytes: one of them is given up",
		    h->stats.output_large);
	set_output(h, c, 0);
	end(c);
}

static void
count_output(struct http_conn *c, size_t n, bool more)
{
	struct http *h = c->http;

	if (c->ended)
		return;
	set_output(h, c, n);
	while (more && h->stats.output_large > HTTP_OUTPUT_LARGE && large_output(c) > 0 &&
	       h->stats.output_large > large_output(c))
		no_room_for_output(h, c);
}

/* Turns a page of evhttp's into JSON with the same status. The end of the output is evhttp's to write at,
 * its start is the socket's: hence the thaw. */
static void
on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	struct http_conn *c = arg;
	char head[128], why[64] = "error";
	ev_ssize_t n;
	int status = 0;

	c->taken += info->n_deleted;
	count_output(c, info->orig_size + info->n_added - info->n_deleted, info->n_added > 0);
	if (c->answering || c->streams || info->n_added == 0 ||
	    evbuffer_get_length(out) > ERROR_PAGE_MAX ||
	    evbuffer_search(out, "\r\n\r\n<HTML>", 10, NULL).pos < 0)
		return;
	n = evbuffer_copyout(out, head, sizeof head - 1);
	head[n > 0 ? n : 0] = '\0';
	if (sscanf(head, "HTTP/1.%*d %d %63[^\r\n]", &status, why) < 1 || status < 400)
		return; /* behind a "100 Continue" that has not gone out yet it stays what it is */
	c->answering = true;
	(void)evbuffer_unfreeze(out, 1);
	(void)evbuffer_drain(out, evbuffer_get_length(out));
	(void)evbuffer_freeze(out, 1);
	(void)snprintf(head, sizeof head, "{\"error\":\"bad_request\",\"reason\":\"%s\"}", why);
	(void)evbuffer_add_printf(out,
	    "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n"
	    "Connection: close\r\n\r\n%s",
	    status, why, strlen(head), head);
	c->answering = false;
}

/* --- what is held of requests ------------------------------------------------ */

static void
set_input(struct http *h, struct http_conn *c, size_t n)
{
	if (c->input > HTTP_INPUT_SMALL)
		h->stats.input_large -= c->input;
	c->input = n;
	if (c->input > HTTP_INPUT_SMALL)
		h->stats.input_large += c->input;
}

/* There is no room for c's body: the large one that has taken longest goes in its place, if it has had some time, else
 * c's own. (The list is in the order of since_ms.) */
static void
no_room_for_input(struct http *h, struct http_conn *c)
{
	static struct log_limit lines = { .burst = 5 };
	struct http_conn *old;

	TAILQ_FOREACH (old, &h->conns, link)
		if (old->input > HTTP_INPUT_SMALL && !old->ended && !old->deferred)
			break;
	if (old != NULL && h->loop->now_ms >= old->since_ms + HTTP_SILENT_MS)
		c = old;
	h->stats.too_much_input++;
	if (log_allowed(&lines))
		log_warning("bodies of HTTP requests take up %" PRIu64
		            " bytes (limits.http_bodies): one that is not whole yet is given up",
		    h->stats.input_large);
	set_input(h, c, 0);
	end(c);
}

/* The last n bytes of the input. False: evhttp must not go on with them. */
static bool
look_at_input(struct http_conn *c, struct evbuffer *in, size_t n)
{
	uint64_t unseen = framing_unseen(&c->framing);
	struct evbuffer_ptr at;
	struct evbuffer_iovec v[8];
	bool ok = true;

	if (unseen >= n) {
		framing_skip(&c->framing, n);
		return true;
	}
	while (ok && n > 0) {
		size_t from = evbuffer_get_length(in) - n;
		int pieces;

		if (evbuffer_ptr_set(in, &at, from, EVBUFFER_PTR_SET) < 0)
			return false;
		pieces = evbuffer_peek(in, (ev_ssize_t)n, &at, v, COUNT_OF(v));
		for (int i = 0; ok && n > 0 && i < pieces && i < (int)COUNT_OF(v); i++) {
			size_t len = v[i].iov_len < n ? v[i].iov_len : n;

			ok = framing_feed(&c->framing, v[i].iov_base, len);
			n -= len;
		}
	}
	return ok;
}

static void
on_input(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
	struct http_conn *c = arg;

	if (info->n_added == 0)
		return;
	if (!c->ended && !look_at_input(c, in, info->n_added)) {
		c->http->stats.too_much_input++;
		end(c);
	}
	if (c->ended) { /* what was under way: evhttp has nothing to look at any more */
		(void)evbuffer_drain(in, evbuffer_get_length(in));
		return;
	}
	set_input(c->http, c, c->input + info->n_added);
	if (c->http->stats.input_large > c->http->cfg->http_bodies && c->input > HTTP_INPUT_SMALL)
		no_room_for_input(c->http, c);
}

static void
conn_free(struct http *h, struct http_conn *c)
{
	TAILQ_REMOVE(&h->conns, c, link);
	set_input(h, c, 0);
	set_output(h, c, 0);
	(void)evbuffer_remove_cb(bufferevent_get_output(c->bev), on_output, c);
	(void)evbuffer_remove_cb(bufferevent_get_input(c->bev), on_input, c);
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

static bool
is_overdue(const struct http_conn *c, uint64_t now_ms)
{
	return !c->ended && !c->deferred &&
	       now_ms >= c->since_ms + HTTP_REQUEST_MS + c->taken / HTTP_OUTPUT_RATE;
}

static void
sweep(struct http *h, uint64_t now_ms)
{
	struct http_conn *c, *next;

	for (c = TAILQ_FIRST(&h->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (is_dead(c)) {
			conn_free(h, c);
		} else if (is_overdue(c, now_ms)) {
			h->stats.timed_out++;
			end(c);
		}
	}
	if (!h->full)
		return;
	if (h->stats.open >= HTTP_CONNECTIONS) {
		make_room(h, now_ms);
		return;
	}
	h->full = false;
	if (!wheel_armed(&h->rest))
		set_listening(h, true);
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

	c->http = h;
	c->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (c->bev == NULL) {
		log_error("no memory for a management connection");
		abort(); /* a few hundred bytes: see base/mem.h */
	}
	bufferevent_incref(c->bev);
	/* bounds what one that is dead may still read until it is swept */
	bufferevent_setwatermark(c->bev, EV_READ, 0, HTTP_HEADERS_MAX + h->cfg->http_body);
	c->since_ms = h->loop->now_ms;
	h->stats.accepted++;
	sweep(h, h->loop->now_ms);
	TAILQ_INSERT_TAIL(&h->conns, c, link);
	if (evbuffer_add_cb(bufferevent_get_output(c->bev), on_output, c) == NULL ||
	    evbuffer_add_cb(bufferevent_get_input(c->bev), on_input, c) == NULL)
		log_error("no memory to watch a management connection");
	if (h->turn != h->loop->turns)
		h->accepts = 0;
	h->turn = h->loop->turns;
	if (++h->stats.open >= HTTP_CONNECTIONS) {
		h->full = true;
		set_listening(h, false);
	} else if (++h->accepts == ACCEPTS_A_TURN) {
		rest(h, 1);
	}
	if (!wheel_armed(&h->sweep))
		wheel_arm(h->loop->wheel, &h->sweep, h->loop->now_ms + SWEEP_MS);
	return c->bev;
}

static struct http_conn *
find_conn(struct http *h, const struct bufferevent *bev)
{
	struct http_conn *c;

	TAILQ_FOREACH (c, &h->conns, link)
		if (c->bev == bev)
			return c;
	return NULL;
}

/* Its time: a request is whole, or its answer is. */
static void
begin_anew(struct http *h, struct http_conn *c)
{
	c->since_ms = h->loop->now_ms;
	c->taken = 0;
	TAILQ_REMOVE(&h->conns, c, link);
	TAILQ_INSERT_TAIL(&h->conns, c, link);
}

static bool
is_number(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && text[n + strspn(text + n, " \t")] == '\0';
}

/* May a proxy before us have seen another end of the request than evhttp, which takes the first length, and a coding that
 * it does not know for none? Then what stands behind it may be somebody else's. (RFC 9112, 6.3) */
static bool
is_ambiguous(struct evhttp_request *req)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
	const char *length = evhttp_find_header(headers, "Content-Length");
	const struct evkeyval *h;

	TAILQ_FOREACH (h, headers, next) {
		if (strcasecmp(h->key, "Transfer-Encoding") == 0 &&
		    (strcasecmp(h->value, "chunked") != 0 || length != NULL))
			return true;
		if (strcasecmp(h->key, "Content-Length") == 0 &&
		    (!is_number(h->value) || strcmp(h->value, length) != 0))
			return true;
	}
	return false;
}

/* False: it came by our local socket, and not through the bridge. */
static bool
find_peer(const struct http *h, int fd, struct transport_addr *peer, bool *is_tls)
{
	struct sockaddr_storage ss = { .ss_family = AF_UNSPEC };
	socklen_t n = sizeof ss;

	if (h->bridge != NULL && getsockname(fd, (struct sockaddr *)&ss, &n) == 0 &&
	    ss.ss_family == AF_UNIX)
		return bridge_peer(h->bridge, fd, peer, is_tls);
	*is_tls = false;
	transport_addr_of(fd, peer, NULL);
	return true;
}

bool
http_is_secure(const struct http *h, struct evhttp_request *req)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	struct transport_addr peer;
	bool is_tls;

	return conn != NULL &&
	       find_peer(
	           h, bufferevent_getfd(evhttp_connection_get_bufferevent(conn)), &peer, &is_tls) &&
	       is_tls;
}

/* The body of a HEAD is none to evhttp: it would take it for the next request, which nobody sent. */
static bool
leaves_body(struct evhttp_request *req)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
	const char *length = evhttp_find_header(headers, "Content-Length");

	if (evhttp_request_get_command(req) != EVHTTP_REQ_HEAD)
		return false;
	return evhttp_find_header(headers, "Transfer-Encoding") != NULL ||
	       (length != NULL && length[strspn(length, "0")] != '\0');
}

static void
on_request(struct evhttp_request *req, void *arg)
{
	struct http *h = arg;
	struct bufferevent *bev =
	    evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct http_conn *c = find_conn(h, bev);
	struct transport_addr peer;
	bool is_tls;

	assert(c != NULL && !c->answering); /* made by make_conn, and not dead */
	begin_anew(h, c);
	if (is_ambiguous(req)) {
		evhttp_send_error(req, HTTP_BADREQUEST, NULL);
		return;
	}
	h->stats.requests++;
	if (leaves_body(req))
		(void)evhttp_add_header(
		    evhttp_request_get_output_headers(req), "connection", "close");
	/* the real address: what the request says of itself decides nothing */
	if (!find_peer(h, bufferevent_getfd(bev), &peer, &is_tls)) {
		evhttp_send_error(req, HTTP_BADREQUEST, NULL);
		return;
	}
	c->answering = true;
	h->fn(h->arg, req, &peer);
	c->answering = false;
	if (!c->deferred)
		set_input(h, c, evbuffer_get_length(bufferevent_get_input(bev)));
}

/* evhttp ends the process when it reads something while an answer is due, so it has to read nothing; that also ends its
 * time limit. Sending the answer makes it read again. */
void
http_defer(struct http *h, struct evhttp_request *req)
{
	struct bufferevent *bev =
	    evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct http_conn *c = find_conn(h, bev);

	assert(c != NULL && !c->deferred);
	c->deferred = true;
	(void)bufferevent_disable(bev, EV_READ);
}

void
http_resume(struct http *h, struct evhttp_request *req)
{
	struct http_conn *c =
	    find_conn(h, evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));

	assert(c != NULL && c->deferred);
	c->deferred = false;
	set_input(h, c, evbuffer_get_length(bufferevent_get_input(c->bev)));
	begin_anew(h, c);
}

void
http_body_gone(struct http *h, struct evhttp_request *req)
{
	struct http_conn *c =
	    find_conn(h, evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));

	if (c != NULL && c->deferred)
		set_input(h, c, evbuffer_get_length(bufferevent_get_input(c->bev)));
}

/* Writing makes evhttp read again, by which it sees the client go; what the client sends is counted like the beginning of
 * a request. That the client sends nothing must not end it. */
void
http_stream_begin(struct http *h, struct evhttp_request *req)
{
	static const struct timeval limit = { HTTP_REQUEST_MS / 1000, 0 };
	struct bufferevent *bev =
	    evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct http_conn *c = find_conn(h, bev);

	assert(c != NULL && c->deferred);
	c->streams = true;
	(void)evhttp_add_header(evhttp_request_get_output_headers(req), "connection", "close");
	(void)bufferevent_set_timeouts(bev, NULL, &limit);
	evhttp_send_reply_start(req, HTTP_OK, NULL);
}

void
http_stream_write(struct evhttp_request *req, struct evbuffer *data)
{
	evhttp_send_reply_chunk(req, data);
}

size_t
http_stream_waiting(const struct evhttp_request *req)
{
	/* evhttp takes it off the request that it still owes to us */
	struct evhttp_connection *conn =
	    evhttp_request_get_connection((struct evhttp_request *)(uintptr_t)req);

	if (conn == NULL)
		return SIZE_MAX;
	return evbuffer_get_length(bufferevent_get_output(evhttp_connection_get_bufferevent(conn)));
}

void
http_stream_end(struct http *h, struct evhttp_request *req)
{
	if (http_stream_waiting(req) != SIZE_MAX)
		http_resume(h, req);
	evhttp_send_reply_end(req);
}

struct http *
http_new(struct loop *l, const struct config *cfg, struct gate *gate, http_fn *fn, void *arg)
{
	struct http *h = xcalloc(1, sizeof *h);

	h->loop = l;
	h->cfg = cfg;
	h->fn = fn;
	h->arg = arg;
	h->gate = gate;
	h->sweep.fire = on_sweep;
	h->rest.fire = on_rested;
	TAILQ_INIT(&h->conns);
	h->ev = evhttp_new(l->base);
	if (h->ev == NULL) {
		log_error("no memory for the HTTP server");
		abort();
	}
	evhttp_set_allowed_methods(h->ev, METHODS);
	evhttp_set_max_headers_size(h->ev, HTTP_HEADERS_MAX);
	evhttp_set_max_body_size(h->ev, (ev_ssize_t)cfg->http_body);
	evhttp_set_timeout(h->ev, HTTP_REQUEST_MS / 1000);
	evhttp_set_default_content_type(h->ev, NULL);
	evhttp_set_bevcb(h->ev, make_conn, h);
	evhttp_set_gencb(h->ev, on_request, h);
	LIST_INSERT_HEAD(&servers, h, link);
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
	LIST_REMOVE(h, link);
	evhttp_free(h->ev); /* and with it the listening sockets and all connections */
	while ((c = TAILQ_FIRST(&h->conns)) != NULL)
		conn_free(h, c);
	bridge_free(&h->bridge);
	wheel_disarm(h->loop->wheel, &h->sweep);
	wheel_disarm(h->loop->wheel, &h->rest);
	free(h);
}

/* The server accepts from fd, a listening socket. */
static bool
accept_from(struct http *h, int fd, const char **error)
{
	struct evconnlistener *el;

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

static bool
open_bridge(struct http *h, const char **error)
{
	int fd;

	if (h->bridge != NULL)
		return true;
	h->bridge = bridge_new(h->loop, h->gate, 2 * HTTP_CONNECTIONS);
	fd = bridge_socket(h->bridge, error);
	return fd >= 0 && accept_from(h, fd, error);
}

bool
http_listen(struct http *h, const struct config *cfg, const char *address, uint16_t port,
    bool is_tls, const char **error)
{
	int fd;

	if (is_tls || (cfg->proxy_management && cfg->proxy_trusted.count > 0))
		return open_bridge(h, error) &&
		       bridge_listen(h->bridge, cfg, address, port, is_tls, error);
	if (h->listeners == COUNT_OF(h->listener)) {
		*error = "too many addresses to listen on";
		return false;
	}
	fd = listener_socket(cfg, address, port, error);
	return fd >= 0 && accept_from(h, fd, error);
}

bool
http_port(const struct http *h, unsigned i, struct transport_addr *out, bool *is_tls)
{
	unsigned plain = h->listeners - (h->bridge != NULL);

	if (i >= plain)
		return h->bridge != NULL && bridge_port(h->bridge, i - plain, out, is_tls);
	*is_tls = false;
	transport_addr_of(evconnlistener_get_fd(h->listener[i]), NULL, out);
	return true;
}

const struct http_stats *
http_stats(struct http *h)
{
	sweep(h, h->loop->now_ms);
	return &h->stats;
}
