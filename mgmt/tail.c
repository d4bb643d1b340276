/* SPDX-License-Identifier: Apache-2.0
 * An answer without an end (https://html.spec.whatwg.org/multipage/server-sent-events.html). Events: `message`,
 * `left-out` {count} at most once a second, and `end` {reason}, behind which the connection is closed.
 *
 * What has come is written out some times a second, some of it a look, but only what the user may still see: rights are
 * looked at right before. A client that does not read fills first its own output, then its tap, and from then on misses
 * messages; one that takes nothing for 30 s is dropped. */
#include "mgmt/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/queue.h"
#include "broker/name.h"
#include "broker/tap.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/http.h"
#include "mgmt/json_out.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/loop.h"

enum {
	SLICE_US = 1500,
	LEFT_OUT_MS = 1000,
	TAGS = TAG_ADMINISTRATOR | TAG_MONITORING | TAG_POLICYMAKER | TAG_MANAGEMENT
};

struct tail {
	TAILQ_ENTRY(tail) link;
	struct request *r; /* borrowed: deferred */
	struct tap *tap;   /* owned */
	struct user *user; /* counted */
	uint64_t vhost_id;
	char *vhost, *name; /* owned; name: of what is watched */
	size_t name_len;
	const char *what; /* "exchange" or "queue" */
	uint64_t epoch;   /* the broker's permission_epoch when rights were looked at */
	uint64_t said_ms, counted_ms;
	uint64_t left_out; /* not told yet */
};

/* ---- may it go on? ---- */

/* NULL, or why not. */
static const char *
why_end(struct tail *t)
{
	const struct broker *b = t->r->m->broker;
	const struct vhost *vh;
	const char *ended;

	if (tap_exchange(t->tap) == NULL && tap_queue(t->tap) == NULL)
		return "what was watched is gone";
	if (!t->user->is_deleted && (t->user->tags & TAGS) == 0)
		return "the user may not use the HTTP API any more";
	if ((ended = request_login_ended(t->r)) != NULL)
		return ended;
	if (t->epoch == b->permission_epoch)
		return NULL;
	vh = vhost_find(b, span_str(t->vhost));
	if (vh == NULL || vh->id != t->vhost_id)
		return "what was watched is gone";
	if (!permission_vhost(t->user, vh) || permission_check_user(t->user, vh, PERM_READ, t->what,
	                                          span_of(t->name, t->name_len)) != NULL)
		return "the user may not read this any more";
	t->epoch = b->permission_epoch;
	return NULL;
}

/* Keys of a topic exchange that the user might not bind with are nothing for him. */
static bool
is_shown(const struct tail *t, const struct tapped *m)
{
	const struct exchange *x = tap_exchange(t->tap);

	return x == NULL || topic_permission_check(t->user, TOPIC_READ, x, m->key) == NULL;
}

/* ---- events ---- */

static void
put_message(struct evbuffer *out, const struct tapped *m)
{
	static const char head[] = "event: message\ndata: ";
	struct json_out o;

	json_out_init(&o, NULL);
	message_write_tapped(&o, m);
	reply_buffer_add(out, head, sizeof head - 1);
	reply_buffer_add(out, o.p, o.n);
	reply_buffer_add(out, "\n\n", 2);
	json_out_fini(&o);
}

static void
put_left_out(struct tail *t, struct evbuffer *out, uint64_t now_ms)
{
	char text[80];

	t->left_out += tap_left_out(t->tap);
	if (t->left_out == 0 || now_ms < t->counted_ms + LEFT_OUT_MS)
		return;
	(void)snprintf(text, sizeof text, "event: left-out\ndata: {\"count\":%llu}\n\n",
	    (unsigned long long)t->left_out);
	reply_buffer_add(out, text, strlen(text));
	t->left_out = 0;
	t->counted_ms = now_ms;
}

static void
put_events(struct tail *t, struct evbuffer *out, uint64_t until_us)
{
	uint64_t now_ms = t->r->m->loop->now_ms;
	struct tapped m;

	while (evbuffer_get_length(out) < TAIL_OUTPUT_MAX && clock_mono_us() < until_us &&
	       tap_take(t->tap, &m)) {
		if (is_shown(t, &m))
			put_message(out, &m);
	}
	put_left_out(t, out, now_ms);
	if (evbuffer_get_length(out) > 0)
		t->said_ms = now_ms;
	if (now_ms >= t->said_ms + TAIL_KEEPALIVE_MS) {
		reply_buffer_add(out, ":\n\n", 3);
		t->said_ms = now_ms;
	}
}

/* ---- the life of one ---- */

static void
tail_free(struct tail *t)
{
	struct mgmt *m = t->r->m;

	TAILQ_REMOVE(&m->tails.all, t, link);
	tap_free(&t->tap);
	user_unref(&t->user);
	free(t->vhost);
	free(t->name);
	free(t);
}

/* The request goes, too. */
static void
finish(struct tail *t)
{
	struct request *r = t->r;

	tail_free(t);
	http_stream_end(r->http, r->ev);
	request_free(r);
}

static void
say_end(struct tail *t, const char *why)
{
	struct evbuffer *out = reply_buffer();
	char text[120];

	(void)snprintf(text, sizeof text, "event: end\ndata: {\"reason\":\"%s\"}\n\n", why);
	reply_buffer_add(out, text, strlen(text));
	http_stream_write(t->r->ev, out);
	evbuffer_free(out);
}

static void
look_after(struct tail *t, uint64_t until_us)
{
	size_t waiting = http_stream_waiting(t->r->ev);
	struct evbuffer *out;
	const char *why;

	if (waiting == SIZE_MAX) {
		finish(t);
	} else if ((why = why_end(t)) != NULL) {
		say_end(t, why);
		finish(t);
	} else if (waiting < TAIL_OUTPUT_MAX) {
		out = reply_buffer();
		put_events(t, out, until_us);
		if (evbuffer_get_length(out) > 0)
			http_stream_write(t->r->ev, out);
		evbuffer_free(out);
	}
}

/* So that the loop has a turn for them. */
static void
on_timer(struct wheel_node *node UNUSED, uint64_t now_ms UNUSED)
{
}

static void
arm(struct mgmt *m)
{
	m->tails.next_ms = m->loop->now_ms + TAIL_FLUSH_MS;
	m->tails.timer.fire = on_timer;
	wheel_arm(m->loop->wheel, &m->tails.timer, m->tails.next_ms);
}

void
tails_run(struct mgmt *m)
{
	uint64_t until_us;
	struct tail *t, *last, *next;

	if (likely(TAILQ_EMPTY(&m->tails.all)) || m->loop->now_ms < m->tails.next_ms)
		return;
	until_us = clock_mono_us() + SLICE_US;
	last = TAILQ_LAST(&m->tails.all, tail_list);
	for (t = TAILQ_FIRST(&m->tails.all); t != NULL; t = next) {
		next = t != last ? TAILQ_NEXT(t, link) : NULL;
		/* the next look begins with those that this one has no time for */
		if (clock_mono_us() >= until_us)
			break;
		TAILQ_REMOVE(&m->tails.all, t, link);
		TAILQ_INSERT_TAIL(&m->tails.all, t, link);
		look_after(t, until_us);
	}
	if (!TAILQ_EMPTY(&m->tails.all))
		arm(m);
}

void
tails_stop(struct mgmt *m)
{
	struct tail *t, *next;

	wheel_disarm(m->loop->wheel, &m->tails.timer);
	for (t = TAILQ_FIRST(&m->tails.all); t != NULL; t = next) {
		next = TAILQ_NEXT(t, link);
		if (http_stream_waiting(t->r->ev) == SIZE_MAX)
			finish(t);
		else
			tail_free(t); /* the server has the rest */
	}
}

/* ---- the routes ---- */

static bool
read_query(struct request *r, struct tap_spec *spec)
{
	const char *key = request_query(r, "routing_key");
	uint64_t rate, body;

	if (key != NULL)
		spec->key = span_str(key);
	if (spec->key.n > 255) {
		reply_bad(r, "routing_key is longer than 255 bytes");
		return false;
	}
	if (!query_number(r, "rate", TAIL_RATE, TAP_RATE_MAX, &rate) ||
	    !query_number(r, "max_bytes", TAIL_BODY, TAP_BODY_MAX, &body))
		return false;
	if (rate == 0) {
		reply_bad(r, "rate has to be 1 at least");
		return false;
	}
	spec->rate = (uint32_t)rate;
	spec->body = (uint32_t)body;
	return true;
}

static struct tap *
open_tap(struct request *r, const struct tap_spec *spec)
{
	struct mgmt *m = r->m;
	struct tap_stats *s = &m->broker->tap.stats;
	const struct tail *t;
	unsigned own = 0;

	TAILQ_FOREACH (t, &m->tails.all, link)
		own += t->user == r->user;
	if (own < TAILS_OF_USER && s->open < m->cfg->tails)
		return tap_new(m->broker, spec);
	s->refused++;
	return NULL;
}

static void
start(struct request *r, const struct tap_spec *spec, const char *what, struct span name)
{
	struct evbuffer *hello;
	struct mgmt *m = r->m;
	struct tap *tap;
	struct tail *t;

	if (evhttp_request_get_command(r->ev) == EVHTTP_REQ_HEAD) {
		reply_empty(r, 200);
		return;
	}
	tap = open_tap(r, spec);
	if (tap == NULL) {
		reply_error(r, 503, "too_many", "too many tails are open");
		return;
	}
	t = xcalloc(1, sizeof *t);
	t->r = r;
	t->tap = tap;
	t->user = user_ref(r->user);
	t->vhost = xstrdup(r->vhost->name);
	t->vhost_id = r->vhost->id;
	t->name = xstrndup(SPAN_CHARS(name), name.n);
	t->name_len = name.n;
	t->what = what;
	t->epoch = m->broker->permission_epoch;
	t->said_ms = m->loop->now_ms;
	if (TAILQ_EMPTY(&m->tails.all))
		arm(m);
	TAILQ_INSERT_TAIL(&m->tails.all, t, link);
	reply_stream(r, "text/event-stream");
	hello = reply_buffer();
	reply_buffer_add(hello, ":\n\n", 3); /* so that clients see at once that it has begun */
	http_stream_write(r->ev, hello);
	evbuffer_free(hello);
}

void
route_tail_exchange(struct request *r)
{
	struct tap_spec spec = { .exchange = exchange_find(r->vhost, exchange_arg(r, 1)) };
	const struct error *e;

	if (spec.exchange == NULL) {
		reply_not_found(r);
		return;
	}
	e = permission_check_user(r->user, r->vhost, PERM_READ, "exchange", exchange_arg(r, 1));
	if (e != NULL)
		reply_refused(r, e);
	else if (read_query(r, &spec))
		start(r, &spec, "exchange", exchange_arg(r, 1));
}

void
route_tail_queue(struct request *r)
{
	struct tap_spec spec = { .queue = queue_arg(r, 1) };
	struct client client;
	const struct error *e;

	if (spec.queue == NULL) {
		reply_not_found(r);
		return;
	}
	acting_client(&client, r);
	e = permission_check(&client, PERM_READ, "queue", request_arg(r, 1));
	if (e == NULL) /* not another client's exclusive one */
		e = queue_lookup(r->vhost, request_arg(r, 1), &client, &spec.queue);
	if (e != NULL)
		reply_refused(r, e);
	else if (read_query(r, &spec))
		start(r, &spec, "queue", request_arg(r, 1));
}
