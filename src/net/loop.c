/* SPDX-License-Identifier: Apache-2.0
 * The event loop of the core thread.
 *
 * libevent reports; the work is done by the functions of a turn, so that a callback of libevent only puts
 * a transport on a list. A transport that is not read is not registered for reading, yet its end must be
 * seen. libevent's EV_CLOSED does not do for that: epoll answers a reset with EPOLLERR, which libevent
 * 2.1 hands to events for reading and writing only, so that the loop would spin. Such descriptors are
 * therefore put into a second epoll set, which is itself one readable descriptor of the loop. */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/transport.h"
#include "net/transport_priv.h"

struct loop_events {
	struct event *timer;   /* the one timer that libevent holds: the wheel's next */
	struct event *hangup;  /* the second epoll set has something */
	uint64_t timer_due_ms; /* 0: not armed */
	uint64_t flush_seq;
	uint32_t answers; /* moved to the head of the dirty list since the last flush */
	int hangup_fd;
};

static void
on_timer(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct loop *l = arg;

	l->events->timer_due_ms = 0;
}

static void
on_hangup(evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct epoll_event ev[64];
	int n = epoll_wait(fd, ev, (int)COUNT_OF(ev), 0);

	(void)arg;
	for (int i = 0; i < n; i++)
		transport_hangup(ev[i].data.ptr);
}

void
loop_watch_hangup(struct loop *l, struct transport *t, int fd)
{
	/* one shot: the owner may take its time to close */
	struct epoll_event ev = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = t };

	if (epoll_ctl(l->events->hangup_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		log_error(
		    "epoll_ctl failed: %s; the end of a peer that is not read will be seen late",
		    strerror(errno));
}

void
loop_unwatch_hangup(struct loop *l, int fd)
{
	int rc = epoll_ctl(l->events->hangup_fd, EPOLL_CTL_DEL, fd, NULL);

	assert(rc == 0 || errno == ENOENT); /* ENOENT: adding had failed, and was logged */
}

struct loop_watch {
	struct event *event; /* owned */
	loop_watch_fn *fn;
	void *arg;
};

static void
on_watched(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct loop_watch *w = arg;

	w->fn(w->arg);
}

struct loop_watch *
loop_watch(struct loop *l, int fd, loop_watch_fn *fn, void *arg)
{
	struct loop_watch *w = xcalloc(1, sizeof *w);

	w->fn = fn;
	w->arg = arg;
	w->event = event_new(l->base, fd, EV_READ | EV_PERSIST, on_watched, w);
	if (w->event == NULL || event_add(w->event, NULL) < 0) {
		log_error("descriptor %d cannot be watched", fd);
		abort();
	}
	return w;
}

void
loop_unwatch(struct loop_watch **wp)
{
	struct loop_watch *w = *wp;

	if (w == NULL)
		return;
	*wp = NULL;
	event_free(w->event);
	free(w);
}

static struct event_base *
base_new(void)
{
	struct event_config *cfg = event_config_new();
	struct event_base *base = NULL;

	if (cfg == NULL)
		return NULL;
	if (event_config_set_flag(
	        cfg, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) == 0)
		base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	return base;
}

struct loop *
loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof *l);
	struct loop_events *e = xcalloc(1, sizeof *e);

	l->events = e;
	l->base = base_new();
	e->hangup_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->base == NULL || e->hangup_fd < 0) {
		log_error("the event loop cannot be made: %s", strerror(errno));
		abort();
	}
	l->now_ms = clock_now_ms();
	l->wheel = wheel_new(l->now_ms);
	TAILQ_INIT(&l->readable);
	TAILQ_INIT(&l->strangers);
	TAILQ_INIT(&l->dirty);
	TAILQ_INIT(&l->closing);
	TAILQ_INIT(&l->closed);
	l->tail_room = LOOP_TAIL_ROOM;
	l->share_us = LOOP_TURN_US;
	l->input = xmalloc(l->tail_room + LOOP_READ_MAX);
	e->timer = evtimer_new(l->base, on_timer, l);
	e->hangup = event_new(l->base, e->hangup_fd, EV_READ | EV_PERSIST, on_hangup, l);
	if (e->timer == NULL || e->hangup == NULL || event_add(e->hangup, NULL) < 0) {
		log_error("the event loop cannot be made: no memory for its events");
		abort();
	}
	return l;
}

void
loop_free(struct loop **lp)
{
	struct loop *l = *lp;
	struct transport *t;
	struct chunk *k;

	if (l == NULL)
		return;
	*lp = NULL;
	while ((t = TAILQ_FIRST(&l->closing)) != NULL)
		transport_close(t);
	loop_reap(l);
	while ((k = l->spare_chunks) != NULL) {
		l->spare_chunks = k->next;
		free(k);
	}
	event_free(l->events->timer);
	event_free(l->events->hangup);
	close(l->events->hangup_fd);
	event_base_free(l->base);
	wheel_free(&l->wheel);
	transport_tls_loop_free(l);
	free(l->events);
	free(l->input);
	free(l);
}

/* Sees to it that libevent wakes us no later than the wheel has work. Waking early costs one turn,
 * arming anew costs a heap operation each turn: so a timer that is due earlier stays. */
static void
arm_timer(struct loop *l, int64_t wait_ms)
{
	struct loop_events *e = l->events;
	struct timeval tv = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
	uint64_t due = l->now_ms + (uint64_t)wait_ms;

	if (e->timer_due_ms != 0 && e->timer_due_ms <= due)
		return;
	if (event_add(e->timer, &tv) == 0)
		e->timer_due_ms = due;
}

void
loop_wait(struct loop *l, bool busy)
{
	int64_t wait_ms;
	int flags = EVLOOP_ONCE;

	busy = busy || l->readable_count + l->stranger_count > 0 || !TAILQ_EMPTY(&l->dirty);
	if (!busy) {
		wait_ms = wheel_wait(l->wheel, l->now_ms);
		if (wait_ms == 0)
			busy = true;
		else if (wait_ms > 0)
			arm_timer(l, wait_ms);
	}
	if (busy)
		flags |= EVLOOP_NONBLOCK;
	(void)event_base_loop(l->base, flags);
	l->turns++;
	l->now_ms = clock_now_ms();
	(void)wheel_run(l->wheel, l->now_ms, LOOP_TIMERS);
}

/* Who asked for something does not wait behind deliveries to thousands of others. */
static void
answers_first(struct loop *l, struct transport *t)
{
	if (!t->is_dirty)
		return;
	TAILQ_REMOVE(&l->dirty, t, dirty_link);
	TAILQ_INSERT_HEAD(&l->dirty, t, dirty_link);
	l->events->answers++;
}

/* At most n of the list; the rest is first in the next turn. */
static void
read_list(struct loop *l, struct transport_list *list, uint32_t n, size_t quota, uint64_t until_us)
{
	for (; n > 0 && !TAILQ_EMPTY(list); n--) {
		struct transport *t = TAILQ_FIRST(list);

		transport_unmark_readable(t);
		transport_read(t, quota);
		answers_first(l, t);
		if (n > 1 && clock_mono_us() >= until_us)
			break;
	}
}

void
loop_read(struct loop *l)
{
	uint32_t n = l->readable_count + l->stranger_count;
	size_t quota;
	uint64_t until_us, least_us;

	/* what became writable goes first: the floors above learn this turn who has room again */
	if (!TAILQ_EMPTY(&l->dirty))
		loop_flush(l);
	if (n == 0)
		return;
	until_us = clock_mono_us() + LOOP_TURN_US;
	l->share_us = LOOP_TURN_US / n > LOOP_SHARE_US ? LOOP_TURN_US / n : LOOP_SHARE_US;
	quota = LOOP_TURN_BYTES / n;
	if (quota > LOOP_READ_MAX)
		quota = LOOP_READ_MAX;
	if (quota < LOOP_READ_MIN)
		quota = LOOP_READ_MIN;
	read_list(l, &l->readable, l->readable_count, quota, until_us);
	if (l->stranger_count == 0)
		return;
	least_us = clock_mono_us() + LOOP_STRANGERS_US;
	read_list(
	    l, &l->strangers, l->stranger_count, quota, until_us > least_us ? until_us : least_us);
}

void
loop_flush(struct loop *l)
{
	uint64_t seq = ++l->events->flush_seq, until_us = clock_mono_us() + LOOP_TURN_US;
	uint32_t least = l->events->answers + LOOP_FLUSH_MIN, n = 0;
	struct transport *t;

	l->events->answers = 0;
	/* one that reached its bound goes back to the end, and is met there with this flush's number */
	while ((t = TAILQ_FIRST(&l->dirty)) != NULL && t->io->flush_seq != seq) {
		TAILQ_REMOVE(&l->dirty, t, dirty_link);
		t->is_dirty = false;
		t->io->flush_seq = seq;
		transport_flush(t);
		/* The rest is for the next turn. At least some are not answers, so that nobody waits for ever. */
		if (++n >= least && n % LOOP_CLOCK_EACH == 0 && clock_mono_us() >= until_us)
			break;
	}
}

void
loop_reap(struct loop *l)
{
	struct transport *t;
	uint64_t now_us;

	while ((t = TAILQ_FIRST(&l->closed)) != NULL) {
		TAILQ_REMOVE(&l->closed, t, closed_link);
		transport_free(t);
	}
	now_us = clock_mono_us();
	if (turn_time_is_due(&l->turn_time, now_us))
		turn_time_note(&l->turn_time, now_us, clock_cpu_us());
}

void
loop_trim(struct loop *l)
{
	for (uint32_t n = (l->spare_count + 1) / 2; n > 0; n--) {
		struct chunk *k = l->spare_chunks;

		l->spare_chunks = k->next;
		l->spare_count--;
		free(k);
	}
}
