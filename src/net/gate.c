/* SPDX-License-Identifier: Apache-2.0
 * Sockets on their way in.
 *
 * The happy path: entered, its header read, its handshake done in two or three steps, each on a worker as soon as the peer
 * has sent something; then it is handed over. While a worker has it, nothing here touches its session or closes its
 * descriptor: whoever ends it then leaves that to the worker's answer. One that failed lingers for a moment, because a
 * socket closed with unread bytes is reset, and a reset destroys the alert that tells the peer why. */
#include "net/gate.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/net_range.h"
#include "base/wheel.h"
#include "base/worker.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/proxy_header.h"

enum {
	LINGER_MS = 1000,
	LINGER_READS = 8, /* of LINGER_BYTES, each time that there is something */
	LINGER_BYTES = 16 << 10,
	POLITE = 5,     /* the niceness of handshakes: running traffic comes first */
	LOG_LINES = 20, /* of a kind, in 10 s */
	EXPIRES_SOON_S = 14 * 24 * 3600
};

enum entry_state {
	ENTRY_PROXY, /* waits for a header */
	ENTRY_PEER,  /* waits for the peer's next words of the handshake */
	ENTRY_WORK,  /* a worker has it */
	ENTRY_LINGER /* has failed */
};

struct entry {
	struct worker_job job; /* first */
	struct gate *gate;     /* borrowed, as port */
	const struct gate_port *port;
	struct arrival a;    /* owns fd and tls */
	struct tls_set *set; /* counted */
	enum entry_state state;
	bool is_dead; /* ended while a worker had it */
	enum tls_result result;
	struct event event;
	struct wheel_node timer;
	TAILQ_ENTRY(entry) link;
	uint32_t header_n;
	uint8_t *header; /* owned: of the PROXY protocol, as far as it has come; NULL: nothing */
	char why[TLS_ERROR];
};

TAILQ_HEAD(entry_list, entry);

struct gate {
	struct worker_job job; /* first: reads the certificates again */
	struct loop *loop;     /* borrowed, as the next three */
	const struct config *cfg;
	struct workers *workers, *readers;
	struct tls_set *set;        /* counted: in force; NULL: none */
	struct wheel_node next_key; /* of its tickets */
	struct tls_options options; /* for the job */
	struct tls_set *fresh;      /* counted: what it read */
	char error[TLS_ERROR];
	bool is_loading, again, stopped;
	struct net_range trusted[CONFIG_LISTEN_MAX];
	uint32_t trusted_count;
	struct entry_list entries; /* owned, the oldest first */
	struct gate_stats stats;
};

/* ---- the log ---- */

static void
say(struct entry *e, struct log_limit *limit, const char *what, const char *why)
{
	char peer[80];

	if (!log_allowed(limit))
		return;
	(void)snprintf(peer, sizeof peer, strchr(e->a.peer.host, ':') ? "[%s]:%u" : "%s:%u",
	    e->a.peer.host, e->a.peer.port);
	log_line(LOG_WARNING, &(struct log_who){ .peer = peer }, "%s on port %u %s", what,
	    e->a.local.port, why);
}

/* ---- the end of one ---- */

static void
entry_free(struct entry *e)
{
	struct gate *g = e->gate;

	(void)event_del(&e->event);
	wheel_disarm(g->loop->wheel, &e->timer);
	TAILQ_REMOVE(&g->entries, e, link);
	g->stats.gate_waiting--;
	tls_set_unref(&e->set);
	free(e->header);
	free(e);
}

/* Without a word. */
static void
end(struct entry *e)
{
	if (e->state == ENTRY_WORK) {
		e->is_dead = true;
		return;
	}
	tls_session_free(&e->a.tls);
	close(e->a.fd);
	if (e->port->listener != NULL)
		listener_closed(e->port->listener);
	entry_free(e);
}

static void on_event(evutil_socket_t fd, short what, void *arg);

static void
watch(struct entry *e, short what)
{
	event_assign(&e->event, e->gate->loop->base, e->a.fd, what, on_event, e);
	if (event_add(&e->event, NULL) < 0)
		end(e);
}

/* What it sends is thrown away until it goes. */
static void
linger(struct entry *e)
{
	e->state = ENTRY_LINGER;
	tls_session_free(&e->a.tls);
	(void)shutdown(e->a.fd, SHUT_WR);
	wheel_arm(e->gate->loop->wheel, &e->timer, e->gate->loop->now_ms + LINGER_MS);
	watch(e, EV_READ);
}

static void
on_lingering(struct entry *e)
{
	uint8_t buf[LINGER_BYTES];

	for (unsigned i = 0; i < LINGER_READS; i++) {
		ssize_t n = recv(e->a.fd, buf, sizeof buf, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			end(e);
			return;
		}
	}
	watch(e, EV_READ);
}

/* It is through. */
static void
pass(struct entry *e)
{
	const struct gate_port *port = e->port;
	struct arrival a = e->a;

	entry_free(e);
	port->fn(port->arg, &a);
}

/* ---- TLS ---- */

static void
be_polite(void)
{
	static _Thread_local bool is_polite;

	if (!is_polite)
		(void)setpriority(PRIO_PROCESS, 0, POLITE); /* of this thread: see sched(7) */
	is_polite = true;
}

static void
handshake(struct worker_job *job)
{
	struct entry *e = container_of(job, struct entry, job);

	be_polite();
	e->result = tls_session_handshake(e->a.tls, e->why);
}

static void
handshake_failed(struct entry *e)
{
	static struct log_limit lines = { .burst = LOG_LINES };
	char why[TLS_ERROR + 16];

	e->gate->stats.tls_failures++;
	(void)snprintf(why, sizeof why, "failed: %s", e->why);
	say(e, &lines, "handshake of TLS", why);
	linger(e);
}

static void
handshake_stepped(struct worker_job *job)
{
	struct entry *e = container_of(job, struct entry, job);
	struct gate *g = e->gate;

	e->state = ENTRY_PEER;
	g->stats.gate_working--;
	if (e->is_dead) {
		end(e);
		return;
	}
	switch (e->result) {
	case TLS_WANT_READ: watch(e, EV_READ); break;
	case TLS_WANT_WRITE: watch(e, EV_WRITE); break;
	case TLS_FAILED: handshake_failed(e); break;
	case TLS_DONE:
		g->stats.tls_handshakes++;
		g->stats.tls_resumed += tls_session_info(e->a.tls)->is_resumed;
		pass(e);
		break;
	}
}

static void
submit(struct entry *e)
{
	e->state = ENTRY_WORK;
	e->gate->stats.gate_working++;
	e->job.run = handshake;
	e->job.done = handshake_stepped;
	workers_submit(e->gate->workers, &e->job);
}

/* Its words are waited for, so that no worker begins with one that says nothing. */
static void
begin_tls(struct entry *e)
{
	e->set = tls_set_ref(e->gate->set);
	e->a.tls = tls_session_new(e->set, e->a.fd);
	e->state = ENTRY_PEER;
	watch(e, EV_READ);
}

/* ---- the PROXY protocol ---- */

static void
proxy_failed(struct entry *e, const char *why)
{
	static struct log_limit lines = { .burst = LOG_LINES };
	char text[160];

	e->gate->stats.proxy_failures++;
	(void)snprintf(text, sizeof text, "refused: %s", why);
	say(e, &lines, "connection", text);
	linger(e);
}

/* Loopback is what both ends say: who comes by a balancer that does not know from where is not taken to be here. */
static void
take_addresses(struct entry *e, const struct proxy_header *h)
{
	bool loopback = e->a.peer.loopback;

	e->gate->stats.proxied++;
	if (!h->has_addresses) {
		e->a.peer.loopback = loopback && h->is_own;
		return;
	}
	e->a.peer = h->peer;
	e->a.peer.loopback = h->peer.loopback && loopback;
	e->a.local = h->local;
}

static void
through_proxy(struct entry *e, const struct proxy_header *h)
{
	take_addresses(e, h);
	free(e->header);
	e->header = NULL;
	if (e->port->is_tls)
		begin_tls(e);
	else
		pass(e);
}

/* Looks at what there is, and takes no byte behind the header. */
static void
read_header(struct entry *e)
{
	struct proxy_header h;
	const char *why = "";
	enum proxy_result result;
	ssize_t n;
	size_t take;

	if (e->header == NULL)
		e->header = xmalloc(PROXY_HEADER_MAX);
	n = recv(e->a.fd, e->header + e->header_n, PROXY_HEADER_MAX - e->header_n, MSG_PEEK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		watch(e, EV_READ);
		return;
	}
	if (n <= 0) { /* probes of load balancers come and go */
		end(e);
		return;
	}
	result = proxy_parse(e->header, e->header_n + (size_t)n, &h, &why);
	if (result == PROXY_BAD) {
		proxy_failed(e, why);
		return;
	}
	take = result == PROXY_DONE ? h.used - e->header_n : (size_t)n;
	if (recv(e->a.fd, e->header + e->header_n, take, 0) != (ssize_t)take) {
		end(e);
		return;
	}
	e->header_n += (uint32_t)take;
	if (result == PROXY_DONE)
		through_proxy(e, &h);
	else
		watch(e, EV_READ);
}

/* ---- events ---- */

static void
on_event(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct entry *e = arg;

	switch (e->state) {
	case ENTRY_PROXY: read_header(e); break;
	case ENTRY_PEER: submit(e); break;
	case ENTRY_LINGER: on_lingering(e); break;
	case ENTRY_WORK: break; /* not watched */
	}
}

static void
on_time(struct wheel_node *node, UNUSED uint64_t now_ms)
{
	static struct log_limit lines = { .burst = LOG_LINES };
	struct entry *e = container_of(node, struct entry, timer);
	char why[96];

	if (e->state != ENTRY_LINGER) {
		e->gate->stats.gate_timeouts++;
		bound_reached(BOUND_handshake);
		(void)snprintf(why, sizeof why, "not done after %" PRIu64 " ms (limits.handshake)",
		    e->gate->cfg->handshake_ms);
		say(e, &lines,
		    e->state == ENTRY_PROXY ? "header of the PROXY protocol" : "handshake of TLS",
		    why);
	}
	end(e);
}

/* ---- entering ---- */

static bool
is_trusted(const struct gate *g, int fd)
{
	struct sockaddr_storage ss = { .ss_family = AF_UNSPEC };
	socklen_t n = sizeof ss;

	if (g->trusted_count == 0 || getpeername(fd, (struct sockaddr *)&ss, &n) < 0)
		return false;
	for (uint32_t i = 0; i < g->trusted_count; i++)
		if (net_range_has(&g->trusted[i], &ss))
			return true;
	return false;
}

/* Ends the one that has kept us waiting for longest. False: workers have all of them. */
static bool
make_room(struct gate *g)
{
	static struct log_limit lines = { .burst = LOG_LINES };
	struct entry *e;

	TAILQ_FOREACH (e, &g->entries, link)
		if (e->state != ENTRY_WORK)
			break;
	if (e == NULL)
		return false;
	if (e->state != ENTRY_LINGER) { /* else it was over, and told of */
		g->stats.gate_evicted++;
		say(e, &lines, "handshake", "given up to make room for others (tls.handshakes)");
	}
	end(e);
	return true;
}

static void
refuse(struct gate *g, const struct gate_port *port, int fd)
{
	static struct log_limit lines = { .burst = LOG_LINES };

	g->stats.gate_refused++;
	close(fd);
	if (port->listener != NULL)
		listener_closed(port->listener);
	if (log_allowed(&lines))
		log_warning("connection refused: %" PRIu64
		            " handshakes are being worked on (tls.handshakes)",
		    g->stats.gate_working);
}

static void
enter(struct gate *g, const struct gate_port *port, int fd, bool has_header)
{
	struct entry *e = xcalloc(1, sizeof *e);

	e->gate = g;
	e->port = port;
	e->a.fd = fd;
	e->a.since_ms = g->loop->now_ms;
	transport_addr_of(fd, &e->a.peer, &e->a.local);
	e->timer.fire = on_time;
	wheel_arm(g->loop->wheel, &e->timer, g->loop->now_ms + g->cfg->handshake_ms);
	TAILQ_INSERT_TAIL(&g->entries, e, link);
	g->stats.gate_waiting++;
	if (has_header) {
		e->state = ENTRY_PROXY;
		watch(e, EV_READ);
	} else {
		begin_tls(e);
	}
}

void
gate_enter(struct gate *g, const struct gate_port *port, int fd)
{
	bool has_header = port->may_proxy && is_trusted(g, fd);
	struct arrival a;

	if (!has_header && !port->is_tls) {
		a = (struct arrival){ .fd = fd, .since_ms = g->loop->now_ms };
		transport_addr_of(fd, &a.peer, &a.local);
		port->fn(port->arg, &a);
		return;
	}
	if (g->stopped || (g->stats.gate_waiting >= g->cfg->tls_handshakes && !make_room(g)))
		refuse(g, port, fd);
	else
		enter(g, port, fd, has_header);
}

/* ---- certificates ---- */

static void
say_expiry(const struct tls_set *set)
{
	const char *file;
	int64_t at = tls_set_expiry(set, &file), now = (int64_t)time(NULL);

	if (at <= now)
		log_warning("the certificate in %s has expired", file);
	else if (at - now < EXPIRES_SOON_S)
		log_warning(
		    "the certificate in %s expires in %" PRId64 " hours", file, (at - now) / 3600);
}

static void
await_key(struct gate *g)
{
	uint64_t key_ms = tls_set_key_ms(g->set);

	wheel_disarm(g->loop->wheel, &g->next_key);
	if (key_ms != 0)
		wheel_arm(g->loop->wheel, &g->next_key, g->loop->now_ms + key_ms);
}

static void
on_next_key(struct wheel_node *w, UNUSED uint64_t now_ms)
{
	struct gate *g = container_of(w, struct gate, next_key);

	tls_set_next_key(g->set);
	log_debug("TLS has a new key for session tickets");
	await_key(g);
}

bool
gate_load(struct gate *g, char err[TLS_ERROR])
{
	struct tls_options o;

	tls_options_of(g->cfg, &o);
	g->set = tls_set_load(&o, err);
	if (g->set == NULL)
		return false;
	say_expiry(g->set);
	await_key(g);
	return true;
}

static void
load(struct worker_job *job)
{
	struct gate *g = container_of(job, struct gate, job);

	g->fresh = tls_set_load(&g->options, g->error);
}

static void
loaded(struct worker_job *job)
{
	struct gate *g = container_of(job, struct gate, job);

	g->is_loading = false;
	if (g->stopped || g->again) {
		tls_set_unref(&g->fresh);
	} else if (g->fresh == NULL) {
		log_error("%s; the certificates in force stay", g->error);
	} else {
		tls_set_unref(&g->set);
		g->set = g->fresh;
		g->fresh = NULL;
		log_info("certificates were read again");
		say_expiry(g->set);
		await_key(g);
	}
	if (g->again && !g->stopped)
		gate_reload(g);
}

void
gate_reload(struct gate *g)
{
	if (g->set == NULL)
		return;
	g->again = g->is_loading;
	if (g->again)
		return;
	g->is_loading = true;
	tls_options_of(g->cfg, &g->options);
	g->job.run = load;
	g->job.done = loaded;
	workers_submit(g->readers, &g->job);
}

/* ---- the gate ---- */

struct gate *
gate_new(struct loop *l, const struct config *cfg, struct workers *workers, struct workers *readers)
{
	struct gate *g = xcalloc(1, sizeof *g);

	g->loop = l;
	g->cfg = cfg;
	g->workers = workers;
	g->readers = readers;
	g->next_key.fire = on_next_key;
	TAILQ_INIT(&g->entries);
	for (uint32_t i = 0; i < cfg->proxy_trusted.count; i++)
		g->trusted_count +=
		    net_range_parse(cfg->proxy_trusted.item[i], &g->trusted[g->trusted_count]);
	return g;
}

uint32_t
gate_waiting(const struct gate *g)
{
	return (uint32_t)g->stats.gate_waiting;
}

const struct gate_stats *
gate_stats(const struct gate *g)
{
	return &g->stats;
}

int64_t
gate_expiry(const struct gate *g, const char **file)
{
	return g->set != NULL ? tls_set_expiry(g->set, file) : 0;
}

void
gate_stop(struct gate *g)
{
	struct entry *e, *next;

	g->stopped = true;
	wheel_disarm(g->loop->wheel, &g->next_key);
	for (e = TAILQ_FIRST(&g->entries); e != NULL; e = next) {
		next = TAILQ_NEXT(e, link);
		end(e);
	}
}

void
gate_free(struct gate **gp)
{
	struct gate *g = *gp;

	if (g == NULL)
		return;
	*gp = NULL;
	gate_stop(g);
	assert(TAILQ_EMPTY(&g->entries));
	tls_set_unref(&g->set);
	free(g);
}
