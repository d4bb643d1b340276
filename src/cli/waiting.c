/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/waiting.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/progress.h"

enum { EVERY_MS = 250, FIRST_US = 1000000 };

struct waiting {
	struct progress progress;
	struct evhttp_connection *conn; /* borrowed */
	struct event *timer;            /* owned */
	const char *doing;              /* borrowed */
	size_t size;
	uint64_t since_us;
};

/* Bytes that the kernel has not taken yet. */
static size_t
left_of(struct waiting *w)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(w->conn);

	return bev != NULL ? evbuffer_get_length(bufferevent_get_output(bev)) : 0;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct waiting *w = arg;
	uint64_t us = clock_mono_us() - w->since_us;
	size_t left = left_of(w);

	(void)fd;
	(void)what;
	if (us < FIRST_US)
		return;
	if (left > 0 && left < w->size)
		progress_show(&w->progress, "%s: %zu of %zu KiB sent, %" PRIu64 " s", w->doing,
		    (w->size - left) >> 10, w->size >> 10, us / 1000000);
	else
		progress_show(
		    &w->progress, "%s: the node is at it, %" PRIu64 " s", w->doing, us / 1000000);
}

struct waiting *
waiting_new(struct event_base *base, struct evhttp_connection *conn, const char *doing, size_t size)
{
	const struct timeval every = { .tv_usec = EVERY_MS * 1000 };
	struct waiting *w = xcalloc(1, sizeof *w);

	progress_init(&w->progress, true);
	w->conn = conn;
	w->doing = doing;
	w->size = size;
	w->since_us = clock_mono_us();
	w->timer = event_new(base, -1, EV_PERSIST, on_timer, w);
	if (w->timer == NULL || event_add(w->timer, &every) != 0)
		abort();
	if (!w->progress.is_shown_at_all)
		waiting_free(&w);
	return w;
}

void
waiting_free(struct waiting **w)
{
	if (*w == NULL)
		return;
	progress_clear(&(*w)->progress);
	event_free((*w)->timer);
	free(*w);
	*w = NULL;
}
