/* SPDX-License-Identifier: Apache-2.0
 * Start, turn, stop.
 *
 * Start: data folder, descriptors, log, broker, what the store has, the lists of the settings, then the ports; "agent is
 * ready" when every port accepts. Stop (SIGTERM, SIGINT): no new connections, connection.close 320 to every client, up to
 * STOP_MS for their close-ok, then everything goes in the reverse order, and what is still to be written is synced. A
 * second signal ends the process at once. */
#include "node.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "amqp/amqp.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/slab.h"
#include "base/version.h"
#include "base/worker.h"
#include "broker/broker.h"
#include "broker/drain.h"
#include "crash.h"
#include "data_dir.h"
#include "mgmt/mgmt.h"
#include "net/gate.h"
#include "net/listen_addresses.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/transport.h"
#include "node_definitions.h"
#include "node_settings.h"
#include "node_store.h"
#include "notify.h"
#include "settings.h"

enum {
	STOP_MS = 5000, /* for close-ok of all clients */
	HOUSEKEEPING_MS = 1000,
	STATUS_MS = 10000,  /* between two lines for the service manager */
	FLUSHES_A_TURN = 4, /* rounds of "a consumer was freed by a flush, so deliver again" */
	HASHERS_MAX = 4,
	GREETERS_MAX = 4,
	RESERVE = 64 /* descriptors that connections never get */
};

static const int signal_numbers[] = { SIGTERM, SIGINT, SIGHUP };

/* A listener with what its callbacks need. */
struct port {
	struct node *node;         /* borrowed: holds us */
	struct listener *listener; /* owned */
	struct gate_port gate;
};

struct node {
	const struct node_start *start; /* borrowed */
	struct settings *settings;      /* borrowed */
	struct config *cfg;             /* borrowed: in settings */
	struct loop *loop;              /* owned, as all below */
	struct broker *broker;
	struct node_store store;
	struct node_settings reload;
	struct workers
	    *hashers; /* of passwords: apart from the store's, which they would keep waiting */
	struct loop_watch *hashed;
	struct workers *greeters; /* of handshakes of TLS; NULL: there are none */
	struct loop_watch *greeted;
	struct gate *gate;
	struct amqp *amqp;
	struct mgmt *mgmt;                       /* NULL: switched off */
	struct port port[2 * CONFIG_LISTEN_MAX]; /* for plain TCP and TLS */
	uint32_t ports, connections_max;
	struct event *signal[COUNT_OF(signal_numbers)];
	struct wheel_node housekeeping;
	struct notify notify;
	struct wheel_node watchdog;
	uint64_t status_ms; /* when its next line is due */
	bool reloading;     /* the manager waits for the end of it */
	struct pid_file pid_file;
	int lock_fd;
	uint64_t stop_by_ms; /* 0: not stopping */
};

static void tell_reloaded(struct node *n);

/* --- the turn -------------------------------------------------------------- */

/* One turn of the loop (DESIGN: threads). Returns whether there is more to do without waiting for events. */
static bool
turn(struct node *n, bool busy)
{
	struct loop *l = n->loop;
	struct broker *b = n->broker;

	loop_wait(l, busy);
	b->now_ms = l->now_ms;
	loop_read(l);
	busy = node_settings_run(&n->reload);
	if (unlikely(n->reloading))
		tell_reloaded(n);
	busy |= broker_run(b);
	busy |= amqp_run(n->amqp);
	if (n->mgmt != NULL)
		busy |= mgmt_run(n->mgmt);
	/* Before the flush: the disk works meanwhile. */
	busy |= node_store_turn(&n->store, l->now_ms);
	loop_flush(l);
	/* What a flush made room for is delivered at once, a few times. Where the bounds of a turn are used up
	 * already, it waits for the next one: sockets are to be read, too. */
	for (unsigned i = 0;
	     i < FLUSHES_A_TURN && !busy && !loop_has_output(l) && !TAILQ_EMPTY(&b->runnable);
	     i++) {
		busy = broker_run(b);
		busy |= amqp_run(n->amqp);
		busy |= node_store_turn(&n->store, l->now_ms);
		loop_flush(l);
	}
	amqp_reap(n->amqp);
	broker_reap(b);
	loop_reap(l);
	return busy || !TAILQ_EMPTY(&b->runnable);
}

/* --- what the service manager is told ------------------------------------------ */

static void
say_status(struct node *n, uint64_t now_ms)
{
	const struct broker *b = n->broker;

	if (n->stop_by_ms != 0) {
		notify_status(&n->notify, "stopping; clients that are to go: %" PRIu32,
		    n->amqp->connection_count);
		return;
	}
	if (now_ms < n->status_ms)
		return;
	n->status_ms = now_ms + STATUS_MS;
	notify_status(&n->notify,
	    "connections: %" PRIu32 ", queues: %" PRIu64 ", messages ready: %" PRIu64 "%s%s%s",
	    n->amqp->connection_count, b->stats.queues, b->stats.messages_ready,
	    drain_is_on(b) ? "; drained for maintenance: publishers wait" : "",
	    memory_short(&b->memory) ? "; memory alarm: publishers are held back" : "",
	    b->disk_low ? "; disk alarm: publishers are held back" : "");
}

/* A core thread that hangs gives no sign of life. */
static void
on_watchdog(struct wheel_node *w, uint64_t now_ms)
{
	struct node *n = container_of(w, struct node, watchdog);

	notify_alive(&n->notify);
	wheel_arm(n->loop->wheel, w, now_ms + n->notify.watchdog_ms);
}

static void
tell_ready(struct node *n)
{
	notify_ready(&n->notify);
	say_status(n, n->loop->now_ms);
	n->watchdog.fire = on_watchdog;
	if (n->notify.watchdog_ms > 0)
		on_watchdog(&n->watchdog, n->loop->now_ms);
}

static void
tell_reloaded(struct node *n)
{
	if (node_settings_busy(&n->reload))
		return;
	n->reloading = false;
	if (n->stop_by_ms == 0)
		notify_ready(&n->notify);
}

static void
on_housekeeping(struct wheel_node *w, uint64_t now_ms)
{
	struct node *n = container_of(w, struct node, housekeeping);

	slab_trim();
	loop_trim(n->loop);
	mem_trim();
	(void)memory_check(&n->broker->memory, now_ms);
	node_store_each_second(&n->store);
	say_status(n, now_ms);
	wheel_arm(n->loop->wheel, w, now_ms + HOUSEKEEPING_MS);
}

/* --- signals --------------------------------------------------------------- */

static void
stop(struct node *n, const char *signal_name)
{
	if (n->stop_by_ms != 0) {
		log_warning("%s a second time: stopping at once", signal_name);
		log_flush();
		pid_file_remove(&n->pid_file);
		_exit(1);
	}
	log_info("%s: stopping", signal_name);
	notify_stopping(&n->notify);
	n->stop_by_ms = clock_now_ms() + STOP_MS;
	n->broker->closing = true;
	say_status(n, n->stop_by_ms);
	for (uint32_t i = 0; i < n->ports; i++)
		listener_stop(n->port[i].listener);
	gate_stop(n->gate);
	amqp_stop(n->amqp, "shutdown");
}

static void
on_signal(evutil_socket_t number, short what UNUSED, void *arg)
{
	struct node *n = arg;

	if (number == SIGHUP) {
		log_reopen();
		notify_reloading(&n->notify);
		n->reloading = true;
		node_settings_reload(&n->reload);
	} else {
		stop(n, number == SIGINT ? "SIGINT" : "SIGTERM");
	}
}

/* Signals that come before the loop is there wait for it, so that a node that is told to stop while it starts stops in
 * the usual way. Threads made meanwhile leave them to the core thread for good. */
static void
hold_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT_OF(signal_numbers); i++)
		sigaddset(&set, signal_numbers[i]);
	pthread_sigmask(how, &set, NULL);
}

static void
watch_signals(struct node *n)
{
	for (size_t i = 0; i < COUNT_OF(signal_numbers); i++) {
		n->signal[i] = evsignal_new(n->loop->base, signal_numbers[i], on_signal, n);
		if (n->signal[i] == NULL || evsignal_add(n->signal[i], NULL) != 0) {
			log_error("signal %d cannot be watched", signal_numbers[i]);
			abort();
		}
	}
}

/* --- start ----------------------------------------------------------------- */

/* On standard error, where whoever starts a node looks, and in the log if that is elsewhere. */
static void PRINTF(2, 3) say_failed(struct node *n, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	log_flush(); /* the reason comes last, not before what led to it */
	fprintf(stderr, "hermes server: %s\n", text);
	notify_status(&n->notify, "%s", text);
	if (strcmp(n->cfg->log_file, "-") != 0)
		log_error("%s", text);
}

/* What `connections: auto` means, and a bound for a number that the descriptors do not allow. */
static uint32_t
connections_allowed(const struct node *n)
{
	uint64_t limit = listener_raise_descriptors();
	uint64_t reserve = limit < 8 * RESERVE ? limit / 8 : RESERVE, most = limit - reserve;

	if (most > UINT32_MAX)
		most = UINT32_MAX;
	if (n->cfg->connections == 0)
		return (uint32_t)most;
	if (n->cfg->connections > most) {
		log_warning("limits.connections: %" PRIu32
		            " is more than the limit of descriptors allows; "
		            "it is %" PRIu64 " (ulimit -n)",
		    n->cfg->connections, most);
		return (uint32_t)most;
	}
	return n->cfg->connections;
}

/* Each listener counts its own; with several addresses the sum is bounded here. */
static void
on_accept(void *arg, int fd)
{
	static struct log_limit lines = { .burst = 5 };
	struct port *port = arg;
	struct node *n = port->node;
	struct transport_addr peer;

	if (n->amqp->connection_count + gate_waiting(n->gate) < n->connections_max) {
		gate_enter(n->gate, &port->gate, fd);
		return;
	}
	transport_addr_of(fd, &peer, NULL);
	close(fd);
	listener_closed(port->listener);
	if (log_allowed(&lines))
		log_line(LOG_WARNING, &(struct log_who){ .peer = peer.host },
		    "connection from port %u refused: %" PRIu32 " are open, which is the limit",
		    peer.port, n->amqp->connection_count);
}

static void
on_arrival(void *arg, const struct arrival *a)
{
	struct port *port = arg;

	amqp_arrive(port->node->amqp, a, port->listener);
}

/* On each address. number 0: none. */
static bool
open_port(struct node *n, const struct config_list *addresses, uint16_t number, bool is_tls,
    const char **error)
{
	for (uint32_t i = 0; number != 0 && i < addresses->count; i++) {
		struct port *port = &n->port[n->ports];

		port->node = n;
		port->listener = listener_open(n->loop, n->cfg, addresses->item[i], number,
		    n->connections_max, on_accept, port, error);
		if (port->listener == NULL)
			return false;
		port->gate = (struct gate_port){ .listener = port->listener,
			.is_tls = is_tls,
			.may_proxy = true,
			.fn = on_arrival,
			.arg = port };
		n->ports++;
	}
	return true;
}

static bool
open_ports(struct node *n)
{
	struct config_list addresses;
	const char *error;
	bool fine;

	n->connections_max = connections_allowed(n);
	fine = listen_addresses(&n->cfg->listen, &addresses, &error) &&
	       open_port(n, &addresses, n->cfg->port, false, &error) &&
	       open_port(n, &addresses, n->cfg->tls_port, true, &error);
	listen_addresses_free(&addresses);
	if (!fine)
		say_failed(n, "%s (see --port, --listen)", error);
	return fine;
}

static void
describe_ports(void *arg, mgmt_port_fn *f, void *f_arg)
{
	const struct node *n = arg;

	for (uint32_t i = 0; i < n->ports; i++)
		f(f_arg, n->port[i].gate.is_tls ? "amqp/ssl" : "amqp",
		    listener_address(n->port[i].listener), listener_port(n->port[i].listener));
}

static void
describe_disk(void *arg, uint64_t *available, uint64_t *least)
{
	const struct node *n = arg;

	*available = n->store.space.available;
	*least = node_store_least_free(&n->store);
}

static bool
open_management(struct node *n)
{
	const struct mgmt_node_info info = { .version = HERMES_VERSION,
		.started_ms = n->loop->now_ms,
		.ports = describe_ports,
		.disk = describe_disk,
		.arg = n,
		.config_file = n->settings->file,
		.connections_max = n->connections_max,
		.no_api = !n->cfg->management_enabled ||
		          (n->cfg->management_port == 0 && n->cfg->management_tls_port == 0),
		.metrics = n->cfg->prometheus_enabled &&
		           (n->cfg->prometheus_port != 0 || n->cfg->prometheus_tls_port != 0),
		.gate = n->gate,
		.workers = n->store.workers };
	const char *error;

	if (info.no_api && !info.metrics)
		return true;
	n->mgmt = mgmt_start(n->loop, n->broker, n->cfg, &info, &error);
	if (n->mgmt == NULL)
		say_failed(n, "%s (see --management-port, --prometheus-port, --listen)", error);
	return n->mgmt != NULL;
}

static void
on_hashed(void *arg)
{
	struct node *n = arg;

	workers_take(n->hashers);
}

/* Half of the processors at most, and not many. */
static void
open_hashers(struct node *n)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	n->hashers = workers_new(processors < 4 ? 1 : processors < 8 ? 2 : HASHERS_MAX);
	n->hashed = loop_watch(n->loop, workers_fd(n->hashers), on_hashed, n);
	n->broker->hashers = n->hashers;
}

static void
on_greeted(void *arg)
{
	struct node *n = arg;

	workers_take(n->greeters);
}

/* Half of the processors for handshakes, and not many: what connects again all at once shall not keep the rest waiting. */
static bool
open_gate(struct node *n)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	char err[TLS_ERROR];

	if (n->cfg->tls_certificates.count > 0) {
		n->greeters = workers_new(processors < 4 ? 1 : processors < 8 ? 2 : GREETERS_MAX);
		n->greeted = loop_watch(n->loop, workers_fd(n->greeters), on_greeted, n);
	}
	n->gate = gate_new(n->loop, n->cfg, n->greeters, n->store.workers);
	if (n->greeters == NULL || gate_load(n->gate, err))
		return true;
	say_failed(n, "%s", err);
	return false;
}

static void
on_settings_read(void *arg)
{
	struct node *n = arg;

	gate_reload(n->gate);
}

static void
say_ready(const struct node *n)
{
	struct transport_addr a;
	bool is_tls;

	for (uint32_t i = 0; i < n->ports; i++)
		log_info("amqp%s listens on %s port %u", n->port[i].gate.is_tls ? " over TLS" : "",
		    listener_address(n->port[i].listener), listener_port(n->port[i].listener));
	for (unsigned i = 0; n->mgmt != NULL && mgmt_listener(n->mgmt, i, &a, &is_tls); i++)
		log_info("management%s listens on %s port %u", is_tls ? " over TLS" : "", a.host,
		    a.port);
	for (unsigned i = 0; n->mgmt != NULL && mgmt_metrics_listener(n->mgmt, i, &a, &is_tls); i++)
		log_info(
		    "metrics%s listen on %s port %u", is_tls ? " over TLS" : "", a.host, a.port);
	log_info("agent is ready, node=%s", n->cfg->node_given);
	log_debug("ready after %" PRIu64 " us", clock_since_start_us());
}

/* Everything that can be refused. Returns the exit status to end with, or -1: it runs. */
static int
start_all(struct node *n)
{
	char err[DATA_DIR_ERROR], why[STORE_ERROR], definitions[DEFINITIONS_ERROR];
	int rc;

	if ((n->lock_fd = data_dir_open(n->cfg->data_dir, err)) < 0) {
		fprintf(stderr, "hermes server: %s\n", err);
		return 1;
	}
	rc = log_open((enum log_level)n->cfg->log_level, (enum log_format)n->cfg->log_format,
	    n->cfg->log_file);
	if (rc != 0) {
		fprintf(stderr, "hermes server: log file %s cannot be opened: %s\n",
		    n->cfg->log_file, strerror(-rc));
		return 1;
	}
	crash_install();
	log_info("hermes %s starts, data in %s", HERMES_VERSION, n->cfg->data_dir);
	if (n->start->pid_file != NULL &&
	    !pid_file_prepare(&n->pid_file, n->start->pid_file, err)) {
		say_failed(n, "%s", err);
		return 1;
	}
	n->loop = loop_new();
	n->broker = broker_new(n->cfg, n->loop->wheel, n->loop->now_ms);
	n->store.pid_file = &n->pid_file;
	notify_status(&n->notify, "reading the data in %s", n->cfg->data_dir);
	if (!node_store_open(&n->store, n->loop, n->broker, n->cfg, why)) {
		say_failed(n, "data in %s: %s", n->cfg->data_dir, why);
		return 1;
	}
	open_hashers(n);
	n->amqp = amqp_new(n->loop, n->broker, n->cfg, HERMES_VERSION);
	n->reload.broker = n->broker;
	n->reload.readers = n->store.workers;
	n->reload.hashers = n->hashers;
	n->reload.on_read = on_settings_read;
	n->reload.on_read_arg = n;
	node_settings_begin(&n->reload);
	if (!node_definitions_import(n->broker, n->hashers, definitions)) {
		say_failed(n, "%s", definitions);
		return 2;
	}
	if (!open_gate(n) || !open_ports(n) || !open_management(n))
		return 1;
	if (!pid_file_publish(&n->pid_file, err)) {
		say_failed(n, "%s", err);
		return 1;
	}
	watch_signals(n);
	return -1;
}

static void
stop_all(struct node *n)
{
	for (uint32_t i = 0; i < n->ports; i++)
		listener_stop(n->port[i].listener);
	if (n->gate != NULL)
		gate_stop(n->gate);
	loop_unwatch(&n->greeted);
	if (n->greeters != NULL)
		workers_free(&n->greeters);
	if (n->mgmt != NULL)
		mgmt_stop(&n->mgmt);
	if (n->amqp != NULL)
		amqp_free(&n->amqp);
	for (uint32_t i = 0; i < n->ports; i++)
		listener_free(&n->port[i].listener);
	for (size_t i = 0; i < COUNT_OF(n->signal); i++)
		if (n->signal[i] != NULL)
			event_free(n->signal[i]);
	node_settings_stop(&n->reload);
	loop_unwatch(&n->hashed);
	if (n->hashers != NULL)
		workers_free(&n->hashers);
	node_store_close(&n->store);
	node_settings_fini(&n->reload);
	gate_free(&n->gate);
	if (n->broker != NULL)
		broker_free(&n->broker);
	if (n->loop != NULL)
		loop_free(&n->loop);
	pid_file_remove(&n->pid_file);
	if (n->lock_fd >= 0)
		close(n->lock_fd);
}

/* Are the last bytes to clients whose connections are closed already on their way? */
static bool
flushed(const struct node *n)
{
	const struct transport *t;

	TAILQ_FOREACH (t, &n->loop->closing, closed_link) {
		if (t->pending > 0)
			return false;
	}
	return true;
}

static bool
stopped(const struct node *n)
{
	if (n->stop_by_ms == 0)
		return false;
	if (amqp_idle(n->amqp) && flushed(n))
		return true;
	if (n->loop->now_ms < n->stop_by_ms)
		return false;
	log_warning(
	    "%" PRIu32 " clients did not answer connection.close", n->amqp->connection_count);
	return true;
}

int
node_run(const struct node_start *start)
{
	struct node n = { .start = start,
		.settings = start->settings,
		.cfg = &start->settings->config,
		.reload = { .start = start, .settings = start->settings },
		.lock_fd = -1 };
	bool busy = false;
	int status;

	signal(SIGPIPE, SIG_IGN);
	hold_signals(SIG_BLOCK);
	notify_open(&n.notify);
	status = start_all(&n);
	if (status < 0) {
		n.housekeeping.fire = on_housekeeping;
		wheel_arm(n.loop->wheel, &n.housekeeping, n.loop->now_ms + HOUSEKEEPING_MS);
		node_store_each_second(&n.store);
		say_ready(&n);
		tell_ready(&n);
		hold_signals(SIG_UNBLOCK);
		while (!stopped(&n))
			busy = turn(&n, busy);
		/* one more signal now would end the process before the log is written */
		hold_signals(SIG_BLOCK);
		wheel_disarm(n.loop->wheel, &n.housekeeping);
		wheel_disarm(n.loop->wheel, &n.watchdog);
		status = 0;
	}
	stop_all(&n);
	notify_close(&n.notify);
	if (status == 0)
		log_info("stopped");
	log_close();
	return status;
}
