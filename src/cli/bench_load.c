/* SPDX-License-Identifier: Apache-2.0
 * A turn of the loop: epoll says what can be read or written, then each connection with something to do gets one read and
 * one batch of writes. Events are edge-triggered; a connection that is not done keeps its place in the list.
 *
 * A run publishes, then waits until all is confirmed, taken in and delivered, then acknowledges the rest. */
#include "cli/bench_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/bench_client.h"
#include "cli/bench_stop.h"

enum {
	PUBLISHER_OUT = 192 << 10,
	PUBLISHER_OUT_MANY = 24 << 10, /* where there are more than MANY */
	MANY = 100,
	CONSUMER_OUT = 16 << 10,
	EVENTS = 256,
	SECOND_NS = 1000000000,
	MS_NS = 1000000,
	TICK_NS = 100 * MS_NS,
	STALL_NS = 3 * TICK_NS,
	QUANTUM_NS = 50000 /* what falls due within it goes out at once */
};

struct load {
	struct bench_run run;
	struct bench_broker *broker; /* borrowed */
	const struct bench_options *o;
	uint32_t n; /* clients that are open */
	struct bench_client **todo,
	    **next; /* owned: who has something to do, in this turn and the next one */
	uint32_t todo_n, next_n;
	int epoll;
	uint64_t released;         /* messages that fell due */
	uint64_t published_before; /* the end of the warm-up */
	int64_t warm_ns;           /* measuring begins; publishing ends: */
	int64_t end_ns;            /* INT64_MAX: by count */
	int64_t consume_ns;        /* of a backlog: consumers began; 0: not yet */
	int64_t stop_ns;           /* Ctrl-C: the end, whatever is under way; INT64_MAX: not yet */
	int64_t tick_ns, second_ns;
	double cpu_before;
	bool is_warm, draining;
	struct bench_progress progress;
};

static double
own_cpu_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
enqueue(struct load *l, struct bench_client *k)
{
	if (k->c->queued || k->c->dead)
		return;
	k->c->queued = true;
	l->next[l->next_n++] = k;
}

/* ---- setting up ---- */

static size_t
out_room(const struct load *l, bool is_publisher)
{
	if (!is_publisher)
		return CONSUMER_OUT;
	return l->o->publishers > MANY ? PUBLISHER_OUT_MANY : PUBLISHER_OUT;
}

static bool
open_client(struct load *l, uint32_t i)
{
	struct bench_client *k = &l->run.client[i];
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.ptr = k };
	uint64_t count = l->o->count, publishers = l->o->publishers;

	k->run = &l->run;
	k->is_publisher = i < publishers;
	k->index = k->is_publisher ? i : i - (uint32_t)publishers;
	k->quota = count > 0 ? count / publishers + (i < count % publishers) : UINT64_MAX;
	k->c = bench_conn_open(l->broker, out_room(l, k->is_publisher));
	if (k->c == NULL)
		return false;
	k->c->readable = k->c->writable = true;
	if (!(k->is_publisher ? bench_publisher_init(k) : bench_consumer_init(k)))
		return false;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, k->c->fd, &e) == 0)
		return true;
	bench_conn_fail(l->broker, k->c, "epoll: %s", strerror(errno));
	return false;
}

/* Those that are open already wait for the others. */
static void
keep_alive(struct load *l)
{
	int64_t now = bench_now();

	if (now < l->tick_ns)
		return;
	l->tick_ns = now + SECOND_NS;
	for (uint32_t i = 0; i < l->n; i++) {
		l->run.client[i].c->last_read = now;
		bench_conn_tick(l->run.client[i].c, now);
	}
}

static void
raise_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

static bool
set_up(struct load *l)
{
	uint32_t n = (uint32_t)(l->o->publishers + l->o->consumers);

	raise_descriptors();
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		bench_conn_fail(l->broker, NULL, "epoll: %s", strerror(errno));
		return false;
	}
	l->run.client = xcalloc(n, sizeof *l->run.client);
	l->todo = xcalloc(n, sizeof(void *));
	l->next = xcalloc(n, sizeof(void *));
	for (; l->n < n; l->n++) {
		if (bench_stop_asked())
			return false;
		if (!open_client(l, l->n)) {
			bench_client_fini(&l->run.client[l->n]);
			return false;
		}
		keep_alive(l);
	}
	if (l->o->verify)
		l->run.verify = bench_verify_new((uint32_t)l->o->queues);
	l->run.messages = bench_messages_new(l->o, l->run.client[0].c);
	return l->run.messages != NULL;
}

/* ---- phases ---- */

/* At the start, and again when the warm-up is over. What is verified is so from the start. */
static void
start_measuring(struct load *l, int64_t now)
{
	struct bench_report *r = l->run.r;
	uint64_t duplicates = r->duplicates, out_of_order = r->out_of_order, damaged = r->damaged;

	memset(r, 0, sizeof *r);
	r->duplicates = duplicates;
	r->out_of_order = out_of_order;
	r->damaged = damaged;
	l->cpu_before = own_cpu_s();
	l->warm_ns = now;
	l->published_before = l->run.published;
}

static void
begin(struct load *l)
{
	int64_t now = bench_now();

	start_measuring(l, now);
	l->run.start_ns = l->run.now = l->run.progress = now;
	l->is_warm = l->o->warmup_ms == 0;
	l->stop_ns = l->end_ns = INT64_MAX;
	if (l->o->duration_ms > 0)
		l->end_ns = now + (int64_t)(l->o->warmup_ms + l->o->duration_ms) * MS_NS;
	l->tick_ns = now;
	l->second_ns = now + SECOND_NS;
	bench_progress_init(&l->progress, l->o, now);
	for (uint32_t i = 0; i < l->n; i++) {
		l->run.client[i].c->last_read = now;
		enqueue(l, &l->run.client[i]);
	}
}

static const char *
phase(const struct load *l)
{
	return l->consume_ns > 0 ? "emptying the backlog"
	       : l->draining     ? "waiting for the rest"
	       : l->is_warm      ? "running"
	                         : "warming up";
}

static void
tick(struct load *l, int64_t now)
{
	l->tick_ns = now + TICK_NS;
	if (!l->is_warm && now >= l->run.start_ns + (int64_t)l->o->warmup_ms * MS_NS) {
		l->is_warm = true;
		start_measuring(l, now);
	}
	if (now < l->second_ns)
		return;
	l->second_ns = now + SECOND_NS;
	bench_progress_show(&l->progress, l->run.r, phase(l), l->run.published, l->run.delivered,
	    l->o->consumers > 0 ? bench_in_flight(&l->run) : 0, now);
	for (uint32_t i = 0; i < l->n; i++)
		bench_conn_tick(l->run.client[i].c, now);
}

static bool
has_taken_all(struct load *l)
{
	for (uint32_t i = 0; i < l->o->publishers; i++)
		if (!bench_publisher_done(&l->run.client[i]))
			return false;
	return true;
}

/* All of a backlog is there. */
static void
begin_consumers(struct load *l, int64_t now)
{
	l->consume_ns = l->run.progress = now;
	for (uint32_t i = (uint32_t)l->o->publishers; i < l->n; i++)
		bench_consumer_begin(&l->run.client[i]);
}

/* True: the run is over. */
static bool
advance(struct load *l, int64_t now)
{
	int64_t drain = (int64_t)l->o->drain_ms * MS_NS;

	if (bench_stop_asked() && l->stop_ns == INT64_MAX)
		l->stop_ns = now + 2 * drain;
	if (!l->draining) {
		bool is_counted = l->o->count > 0 && l->run.published >= l->o->count;

		if (now < l->end_ns && !is_counted && l->stop_ns == INT64_MAX)
			return false;
		l->draining = l->run.stopped = true;
		l->run.progress = now;
	}
	l->run.r->is_complete = has_taken_all(l);
	if (l->run.r->is_complete && l->o->backlog && l->consume_ns == 0)
		begin_consumers(l, now);
	if (l->run.r->is_complete && (l->o->consumers == 0 || bench_in_flight(&l->run) == 0))
		return true;
	if (now - l->run.progress > drain)
		return true;
	l->run.r->is_complete = false;
	return now > l->stop_ns;
}

/* ---- turns ---- */

/* Will a message fall due? */
static bool
has_due(const struct load *l)
{
	return l->o->rate > 0 && !l->run.stopped && (l->o->count == 0 || l->released < l->o->count);
}

static void
release_due(struct load *l, int64_t now)
{
	while (has_due(l) && bench_due_ns(&l->run, l->released) <= now) {
		enqueue(l, &l->run.client[l->released % l->o->publishers]);
		l->released++;
	}
}

static int64_t
sleep_ns(const struct load *l, int64_t now)
{
	int64_t until = l->tick_ns;

	if (l->next_n > 0)
		return 0;
	if (has_due(l) && bench_due_ns(&l->run, l->released) < until) {
		until = bench_due_ns(&l->run, l->released);
		if (until < now + QUANTUM_NS)
			until = now + QUANTUM_NS;
	}
	if (!l->run.stopped && l->end_ns < until)
		until = l->end_ns;
	return until > now ? until - now : 0;
}

static void
wait_events(struct load *l, int64_t ns)
{
	static bool is_coarse; /* a kernel without epoll_pwait2, or one that does not allow it */
	struct epoll_event e[EVENTS];
	struct timespec t = { .tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS };
	int n = is_coarse ? -1 : epoll_pwait2(l->epoll, e, EVENTS, &t, NULL);

	is_coarse = is_coarse || (n < 0 && errno != EINTR);
	if (is_coarse)
		n = epoll_wait(l->epoll, e, EVENTS, (int)(ns / MS_NS));
	for (int i = 0; i < n; i++) {
		struct bench_client *k = e[i].data.ptr;

		if ((e[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
			k->c->readable = true;
		if ((e[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
			k->c->hung_up = true;
		if ((e[i].events & EPOLLOUT) != 0)
			k->c->writable = true;
		enqueue(l, k);
	}
}

static void
serve(struct load *l, struct bench_client *k)
{
	bool more = false;

	k->c->queued = false;
	if (k->c->readable)
		bench_conn_read(k->c, &l->run.now);
	if (k->c->dead)
		return;
	if (k->is_publisher) {
		more = bench_publisher_work(k);
	} else {
		bench_consumer_ack(k, false);
		(void)bench_conn_flush(k->c);
	}
	if (k->c->readable || more)
		enqueue(l, k);
}

static void
turn(struct load *l)
{
	struct bench_client **list = l->next;
	uint64_t max = l->o->in_flight;

	l->todo_n = l->next_n;
	l->next = l->todo;
	l->todo = list;
	l->next_n = 0;
	for (uint32_t i = 0; i < l->todo_n; i++)
		serve(l, list[i]);
	if (l->run.full && bench_in_flight(&l->run) <= max - max / 8 - 1) {
		l->run.full = false;
		for (uint32_t i = 0; i < l->o->publishers; i++)
			enqueue(l, &l->run.client[i]);
	}
}

/* While we did not run, nothing could come. */
static void
forgive(struct load *l, int64_t ns)
{
	l->run.progress += ns;
	for (uint32_t i = 0; i < l->n; i++)
		l->run.client[i].c->last_read += ns;
}

static void
loop(struct load *l)
{
	int64_t before = bench_now();

	while (!l->broker->failed) {
		int64_t now = bench_now();

		if (now - before > STALL_NS)
			forgive(l, now - before);
		before = now;

		if (now >= l->tick_ns)
			tick(l, now);
		if (advance(l, now))
			break;
		release_due(l, now);
		wait_events(l, sleep_ns(l, now));
		turn(l);
	}
	bench_progress_clear(&l->progress);
}

/* ---- the end ---- */

static void
count_lost(struct load *l)
{
	const struct bench_options *o = l->o;
	struct bench_report *r = l->run.r;
	uint64_t refused = l->run.refused * bench_copies(o);

	if (l->run.verify == NULL) {
		r->lost = bench_in_flight(&l->run);
		return;
	}
	for (uint32_t i = 0; i < o->publishers; i++)
		for (uint32_t q = 0; q < o->queues; q++)
			if (o->to_all || q == i % o->queues)
				r->lost +=
				    bench_verify_missing(l->run.verify, q, i, l->run.client[i].seq);
	r->lost -= r->lost < refused ? r->lost : refused;
}

/* Seconds from one to the other. */
static double
since(int64_t from, int64_t to)
{
	return to > from ? (double)(to - from) / 1e9 : 0;
}

static void
take_stock(struct load *l)
{
	struct bench_report *r = l->run.r;

	for (uint32_t i = 0; i < l->n; i++) {
		struct bench_client *k = &l->run.client[i];

		if (!k->is_publisher && !k->c->dead && l->o->ack > 0) {
			bench_consumer_ack(k, true);
			(void)bench_conn_flush(k->c);
		}
		r->unconfirmed += k->outstanding;
	}
	r->own_cpu_s = own_cpu_s() - l->cpu_before;
	r->published = l->run.published - l->published_before;
	r->unsent = l->released > l->run.published ? l->released - l->run.published : 0;
	r->publish_s = since(l->warm_ns, l->run.last_publish);
	r->confirm_s = since(l->warm_ns, l->run.last_confirm);
	r->deliver_s = since(l->consume_ns > 0 ? l->consume_ns : l->warm_ns, l->run.last_delivery);
	r->blocked = l->broker->blocked;
	r->is_stopped = l->stop_ns != INT64_MAX;
	r->is_warm = l->is_warm;
	r->has_failed = l->broker->failed;
	r->is_complete = r->is_complete && !r->has_failed;
	if (r->is_complete && l->o->consumers > 0)
		count_lost(l);
}

bool
bench_load_run(struct bench_broker *b, const struct bench_options *o, struct bench_report *r)
{
	struct load l = { .broker = b, .o = o, .run = { .o = o, .r = r } };
	bool has_begun = set_up(&l);

	if (has_begun) {
		begin(&l);
		loop(&l);
		take_stock(&l);
	}
	for (uint32_t i = 0; i < l.n; i++)
		bench_client_fini(&l.run.client[i]);
	if (l.epoll >= 0)
		close(l.epoll);
	bench_messages_free(&l.run.messages);
	bench_verify_free(&l.run.verify);
	free(l.run.client);
	free(l.todo);
	free(l.next);
	return has_begun;
}
