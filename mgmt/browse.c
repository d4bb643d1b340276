/* SPDX-License-Identifier: Apache-2.0
 * A walk (broker/peek.h) for each request: what is in memory is there at once, what lies on disk is read by workers. Only
 * messages are kept meanwhile, which never change; a long answer is written by a worker. */
#include "mgmt/browse.h"

#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/death.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "broker/peek.h"
#include "mgmt/acting.h"
#include "mgmt/json_out.h"
#include "mgmt/letters.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "net/loop.h"

enum {
	COUNT = 50, /* messages of an answer, if nobody says how many */
	COUNT_MAX = 1000,
	SHOWN = 64 << 10, /* bytes of a payload: the same */
	ANSWER_MAX = 32 << 20,
	HELD_MAX = 64 << 20, /* bodies that are shown in part only */
	MESSAGE_COST = 256,
	WRITE_HERE = 256 << 10,
	AT_ONCE = 16, /* requests that wait */
	BATCH = 32,
	SLICE_US = 1500,
	WAIT_MAX_MS = 10000
};

struct looked {
	struct entry e; /* one reference */
	uint8_t priority;
};

struct answer {
	struct request_job job; /* first */
	struct looked *seen;    /* owned */
	size_t n;
	uint64_t bytes, held;
	uint64_t offset, ready;
	bool deaths; /* of dead letters */
	struct payload_form form;
	struct json_out out;
};

struct browse {
	TAILQ_ENTRY(browse) link;
	struct request *r; /* borrowed: deferred, or we are within its handler */
	uint64_t vhost_id, queue_id;
	char *vhost; /* owned */
	uint64_t count, until_ms;
	struct peek peek;
	struct answer *answer; /* owned until it is written */
};

/* ---- the answer ---- */

static void
answer_free(struct answer *a)
{
	for (size_t i = 0; i < a->n; i++)
		msg_unref(&a->seen[i].e.m);
	json_out_fini(&a->out);
	free(a->seen);
	free(a);
}

static void
put_keys(struct json_out *o, struct span keys)
{
	struct field f;
	size_t at = 0;

	out_begin(o, '[');
	while (keys.p != NULL && array_next(keys, &at, &f)) {
		if (f.kind == 'S')
			out_text(o, f.bytes);
	}
	out_end(o, ']');
}

static void
put_first(struct json_out *o, const struct death_history *h)
{
	out_begin(o, '{');
	OUT_PUT(o, "exchange", out_text_or_null, h->first.exchange);
	OUT_PUT(o, "routing_keys", put_keys, h->first.keys);
	OUT_PUT(o, "queue", out_text_or_null, h->first.queue);
	OUT_PUT(o, "reason", out_text_or_null, h->first.reason);
	OUT_INT(o, "time", h->first.time_s);
	out_end(o, '}');
}

static void
put_deaths(struct json_out *o, const struct msg *m)
{
	struct death_history h;
	struct span headers;

	if (!props_find(msg_props(m), PROP_HEADERS, &headers) || !death_read(headers, &h)) {
		OUT_NULL(o, "reason");
		OUT_INT(o, "count", 0);
		OUT_NULL(o, "first_death");
		return;
	}
	OUT_PUT(o, "reason", out_text_or_null, h.reason);
	OUT_INT(o, "count", h.count);
	OUT_PUT(o, "first_death", put_first, &h);
}

static void
write_message(struct answer *a, const struct looked *l)
{
	struct json_out *o = &a->out;
	char id[LETTER_ID_SIZE];

	out_begin(o, '{');
	OUT_TEXT(o, "id", letter_id_text(l->e.seq_flags >> 8, l->priority, id));
	OUT_INT(o, "size", l->e.m->body_size);
	OUT_INT(o, "arrived", l->e.m->arrived_ms);
	if (a->deaths)
		put_deaths(o, l->e.m);
	message_write_fields(o, &l->e, -1, &a->form);
	out_end(o, '}');
}

static void
write_answer(struct request_job *job)
{
	struct answer *a = (struct answer *)job;
	struct json_out *o = &a->out;

	json_out_init(o, NULL);
	out_begin(o, '{');
	if (out_key(o, "messages")) {
		out_begin(o, '[');
		/* as text bytes may be six times as long */
		for (size_t i = 0; i < a->n && o->n < ANSWER_MAX; i++)
			write_message(a, &a->seen[i]);
		out_end(o, ']');
	}
	OUT_INT(o, "offset", a->offset);
	OUT_INT(o, "ready", a->ready);
	out_end(o, '}');
}

static void
send_answer(struct request_job *job)
{
	struct answer *a = (struct answer *)job;

	if (job->r != NULL)
		reply_out(job->r, &a->out);
	answer_free(a);
}

static void
browse_free(struct browse *w)
{
	peek_fini(&w->peek);
	if (w->answer != NULL)
		answer_free(w->answer);
	free(w->vhost);
	free(w);
}

static void
finish(struct browse *w)
{
	struct answer *a = w->answer;
	struct request *r = w->r;

	w->answer = NULL;
	browse_free(w);
	a->job.run = write_answer;
	a->job.done = send_answer;
	if (a->bytes > WRITE_HERE)
		request_work(r, &a->job);
	else
		request_run(r, &a->job);
}

/* ---- the messages ---- */

static struct queue *
find_queue(const struct browse *w)
{
	const struct vhost *vh = vhost_find(w->r->m->broker, span_str(w->vhost));

	return vh != NULL && vh->id == w->vhost_id ? queue_find_id(vh, w->queue_id) : NULL;
}

/* The request was deferred: may its user see this still? False: it was answered. */
static bool
still_may(const struct browse *w)
{
	struct request *r = w->r;
	const struct user *u = request_user(r);
	const struct vhost *vh = vhost_find(r->m->broker, span_str(w->vhost));

	if (request_login_ended(r) != NULL) {
		reply_error(r, 401, "not_authorized", "Login failed");
		return false;
	}
	if (vh == NULL || vh->id != w->vhost_id) {
		reply_not_found(r);
		return false;
	}
	if (permission_check_user(u, vh, PERM_READ, "queue", request_arg(r, 1)) == NULL)
		return true;
	reply_not_authorised(r, "Access refused.");
	return false;
}

static bool
is_full(const struct browse *w)
{
	const struct answer *a = w->answer;

	return a->n == w->count || a->bytes >= ANSWER_MAX || a->held >= HELD_MAX;
}

static void
keep(struct browse *w, const struct entry *e)
{
	struct answer *a = w->answer;
	uint64_t body = e->m->body_size, shown = body < a->form.truncate ? body : a->form.truncate;

	a->seen[a->n++] = (struct looked){ *e, w->peek.priority };
	a->bytes += MESSAGE_COST + e->m->meta_len + shown;
	a->held += body;
}

enum step { STEP_DONE, STEP_LATER, STEP_MORE };

static enum step
look_at_some(struct browse *w)
{
	uint64_t until_us = clock_mono_us() + SLICE_US;
	struct queue *q = find_queue(w);
	struct entry e[BATCH];
	unsigned n;

	while (q != NULL && !is_full(w)) {
		uint64_t left = w->count - w->answer->n;
		enum peek_result found =
		    peek_next(&w->peek, q, e, left < BATCH ? (unsigned)left : BATCH, &n);

		for (unsigned i = 0; i < n; i++)
			keep(w, &e[i]);
		if (found == PEEK_END)
			return STEP_DONE;
		if (found == PEEK_LATER)
			return w->r->m->broker->now_ms >= w->until_ms ? STEP_DONE : STEP_LATER;
		if (clock_mono_us() >= until_us && !is_full(w))
			return STEP_MORE;
	}
	return STEP_DONE;
}

static void
on_timer(struct wheel_node *node UNUSED, uint64_t now_ms UNUSED)
{
}

/* The worker's end makes a turn; but not that of memory, or a disk, being short. */
static void
arm(struct mgmt *m)
{
	m->browses.timer.fire = on_timer;
	if (!TAILQ_EMPTY(&m->browses.all))
		wheel_arm(m->loop->wheel, &m->browses.timer, m->broker->now_ms + 100);
}

bool
browses_run(struct mgmt *m)
{
	struct browse *w, *next;
	bool more = false;

	for (w = TAILQ_FIRST(&m->browses.all); w != NULL && !more; w = next) {
		enum step s = look_at_some(w);

		next = TAILQ_NEXT(w, link);
		if (s == STEP_DONE) {
			TAILQ_REMOVE(&m->browses.all, w, link);
			m->browses.count--;
			if (still_may(w))
				finish(w);
			else
				browse_free(w);
		}
		more = s == STEP_MORE;
	}
	if (m->browses.count > 0 && !wheel_armed(&m->browses.timer))
		arm(m);
	return more;
}

void
browses_stop(struct mgmt *m)
{
	struct browse *w;

	wheel_disarm(m->loop->wheel, &m->browses.timer);
	while ((w = TAILQ_FIRST(&m->browses.all)) != NULL) {
		TAILQ_REMOVE(&m->browses.all, w, link);
		browse_free(w);
	}
	m->browses.count = 0;
}

/* ---- the routes ---- */

static void
start(struct request *r, struct queue *q, bool deaths, uint64_t count, uint64_t offset,
    uint64_t shown)
{
	struct browse *w = xcalloc(1, sizeof *w);
	struct answer *a = w->answer = xcalloc(1, sizeof *a);

	w->r = r;
	w->vhost = xstrdup(r->vhost->name);
	w->vhost_id = r->vhost->id;
	w->queue_id = q->id;
	w->count = count;
	w->until_ms = r->m->broker->now_ms + WAIT_MAX_MS;
	a->seen = xcalloc(count + 1, sizeof *a->seen);
	a->offset = offset;
	a->ready = q->ready;
	a->deaths = deaths;
	a->form.truncate = shown;
	peek_skip(&w->peek, q, offset);
	if (look_at_some(w) == STEP_DONE) {
		finish(w);
		return;
	}
	request_defer(r);
	TAILQ_INSERT_TAIL(&r->m->browses.all, w, link);
	r->m->browses.count++;
	arm(r->m);
}

static void
browse(struct request *r, bool deaths)
{
	struct client client;
	struct queue *q = queue_for(r, &client, PERM_READ);
	uint64_t count, offset, shown;

	if (q == NULL || !query_number(r, "count", COUNT, COUNT_MAX, &count) ||
	    !query_number(r, "offset", 0, UINT64_MAX, &offset) ||
	    !query_number(r, "max_bytes", SHOWN, UINT64_MAX, &shown))
		return;
	if (r->m->browses.count < AT_ONCE) {
		start(r, q, deaths, count, offset, shown);
		return;
	}
	bound_reached(BOUND_browses);
	reply_error(r, 429, "too_many_requests", "too many look into queues at once");
}

void
route_browse(struct request *r)
{
	browse(r, false);
}

void
route_letters(struct request *r)
{
	browse(r, true);
}
