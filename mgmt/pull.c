/* SPDX-License-Identifier: Apache-2.0
 * Messages are got by a session of the request's own, and stay with it until the answer is complete: then they are
 * acknowledged, returned or rejected, all of them at once. So none is got twice, and they keep their order. What takes
 * longer than a slice, or has to be read from disk, goes on in the turns to come. */
#include "mgmt/pull.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/queue.h"
#include "broker/quorum.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/json_out.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/loop.h"

enum {
	SLICE_US = 1500,
	ANSWER_MAX = 32 << 20,  /* bytes: at so many no more messages are got; */
	HELD_MAX = 64 << 20,    /* the same of bodies that are shown in part only */
	MESSAGE_COST = 256,     /* of a message beside its body, about */
	WRITE_HERE = 256 << 10, /* a longer answer is written by a worker */
	WAIT_MAX_MS = 10000     /* for messages that are being read */
};

/* A message that was got; one reference. */
struct got {
	struct entry e;
	uint32_t left;
	int64_t count; /* see message_write() */
};

/* Becomes the answer: nothing of the broker but messages, which never change. */
struct answer {
	struct request_job job; /* first */
	struct got *got;        /* owned */
	size_t n, cap;
	uint64_t bytes, held; /* of the answer, about; of bodies */
	struct payload_form form;
	struct json_out out;
};

struct pull {
	TAILQ_ENTRY(pull) link;
	struct request *r; /* borrowed: deferred, or we are within its handler */
	struct client client;
	struct session session;
	uint64_t vhost_id, queue_id;
	char *vhost; /* owned */
	uint64_t left, loads, until_ms;
	uint64_t max_bytes;
	bool no_ack;
	enum settle how;
	struct answer *answer; /* owned until it is written */
};

/* ---- what was asked ---- */

static const struct ack_mode {
	const char *name;
	bool no_ack;
	enum settle how;
} ack_modes[] = {
	{ "ack_requeue_true", false, SETTLE_LOST },
	{ "reject_requeue_true", false, SETTLE_REQUEUE },
	{ "ack_requeue_false", true, SETTLE_ACK },
	{ "reject_requeue_false", false, SETTLE_REJECT },
};

static bool
read_modes(struct request *r, struct pull *p)
{
	struct span mode = json_span(json_object_get(r->body, "ackmode"));
	struct span encoding = json_span(json_object_get(r->body, "encoding"));
	size_t i = 0;

	while (i < COUNT_OF(ack_modes) && !span_is(mode, ack_modes[i].name))
		i++;
	if (mode.p == NULL || i == COUNT_OF(ack_modes)) {
		reply_bad(r, "unknown ackmode");
		return false;
	}
	p->no_ack = ack_modes[i].no_ack;
	p->how = ack_modes[i].how;
	p->answer->form.base64 = encoding.p != NULL && span_is(encoding, "base64");
	if (!p->answer->form.base64 && (encoding.p == NULL || !span_is(encoding, "auto"))) {
		reply_bad(r, "Unsupported encoding. Please use auto or base64.");
		return false;
	}
	return true;
}

static bool
read_body(struct request *r, struct pull *p)
{
	static const char *const needed[] = { "ackmode", "count", "encoding", NULL };
	int64_t count, n;

	if (!body_has(r, needed) || !body_integer(r, "count", &count) || !read_modes(r, p))
		return false;
	p->left = count > 0 ? (uint64_t)count : 0;
	p->answer->form.truncate = UINT64_MAX;
	p->max_bytes = ANSWER_MAX;
	if (json_object_get(r->body, "truncate") != NULL) {
		if (!body_integer(r, "truncate", &n))
			return false;
		p->answer->form.truncate = n > 0 ? (uint64_t)n : 0;
	}
	if (json_object_get(r->body, "max_bytes") != NULL) {
		if (!body_integer(r, "max_bytes", &n))
			return false;
		if (n > 0 && n < ANSWER_MAX)
			p->max_bytes = (uint64_t)n;
	}
	return true;
}

/* ---- the messages ---- */

/* The queue, if it is still there and so is everything else. */
static struct queue *
find_queue(const struct pull *p)
{
	const struct broker *b = p->client.broker;
	const struct vhost *vh = vhost_find(b, span_str(p->vhost));

	if (vh == NULL || vh->id != p->vhost_id || request_user(p->r) == NULL)
		return NULL;
	return queue_find_id(vh, p->queue_id);
}

static void
keep(struct answer *a, const struct entry *e, uint32_t left, int64_t count)
{
	uint64_t body = e->m->body_size, shown = body < a->form.truncate ? body : a->form.truncate;

	if (a->n == a->cap) {
		a->cap = a->cap > 0 ? a->cap * 2 : 16;
		a->got = xrealloc(a->got, a->cap * sizeof *a->got);
	}
	a->got[a->n++] = (struct got){ *e, left, count };
	a->bytes += MESSAGE_COST + shown;
	a->held += body;
}

static bool
is_full(const struct pull *p)
{
	return p->left == 0 || p->answer->bytes >= p->max_bytes || p->answer->held >= HELD_MAX;
}

/* True: that is all. */
static bool
get_some(struct pull *p)
{
	uint64_t until_us = clock_mono_us() + SLICE_US, tag;
	struct queue *q = find_queue(p);
	struct entry e;
	uint32_t left;

	while (q != NULL && !is_full(p)) {
		enum get got = session_get(&p->session, q, p->no_ack, &e, &tag, &left);

		if (got == GET_LATER) {
			p->loads = p->client.broker->loads;
			return p->client.broker->now_ms >= p->until_ms;
		}
		if (got == GET_EMPTY)
			return true;
		keep(p->answer, &e, left, q->quorum != NULL ? (int64_t)e.acquired : -1);
		p->left--;
		if (clock_mono_us() >= until_us && !is_full(p)) {
			p->loads = UINT64_MAX; /* go on in any case */
			return false;
		}
	}
	return true;
}

/* ---- the answer ---- */

static void
answer_free(struct answer *a)
{
	for (size_t i = 0; i < a->n; i++)
		msg_unref(&a->got[i].e.m);
	json_out_fini(&a->out);
	free(a->got);
	free(a);
}

static void
write_answer(struct request_job *job)
{
	struct answer *a = (struct answer *)job;

	json_out_init(&a->out, NULL);
	out_begin(&a->out, '[');
	for (size_t i = 0; i < a->n; i++)
		message_write(&a->out, &a->got[i].e, a->got[i].left, a->got[i].count, &a->form);
	out_end(&a->out, ']');
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
pull_free(struct pull *p)
{
	session_fini(&p->session);
	if (p->answer != NULL)
		answer_free(p->answer);
	free(p->vhost);
	free(p);
}

static void
finish(struct pull *p)
{
	struct answer *a = p->answer;
	struct request *r = p->r;

	if (!p->no_ack && session_unacked(&p->session) > 0)
		(void)!session_settle(&p->session, 0, true, p->how);
	p->answer = NULL;
	pull_free(p);
	a->job.run = write_answer;
	a->job.done = send_answer;
	if (a->bytes > WRITE_HERE)
		request_work(r, &a->job);
	else
		request_run(r, &a->job);
}

/* So that the loop has a turn for them. */
static void
on_timer(struct wheel_node *node UNUSED, uint64_t now_ms UNUSED)
{
}

static void
arm(struct mgmt *m)
{
	const struct pull *p = TAILQ_FIRST(&m->pulls);
	uint64_t due_ms = UINT64_MAX;

	for (; p != NULL; p = TAILQ_NEXT(p, link)) {
		uint64_t own = p->loads == UINT64_MAX ? 0 : p->until_ms;

		due_ms = own < due_ms ? own : due_ms;
	}
	m->pulls_timer.fire = on_timer;
	if (due_ms != UINT64_MAX)
		wheel_arm(m->loop->wheel, &m->pulls_timer, due_ms);
}

void
pulls_run(struct mgmt *m)
{
	struct pull *p, *next;
	bool is_slow = false;

	for (p = TAILQ_FIRST(&m->pulls); p != NULL && !is_slow; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->loads == m->broker->loads && m->broker->now_ms < p->until_ms)
			continue;
		/* one that has much to do takes its slice, and the turn */
		is_slow = p->loads == UINT64_MAX;
		TAILQ_REMOVE(&m->pulls, p, link);
		if (get_some(p))
			finish(p);
		else
			TAILQ_INSERT_TAIL(&m->pulls, p, link);
		arm(m);
	}
}

void
pulls_stop(struct mgmt *m)
{
	struct pull *p;

	wheel_disarm(m->loop->wheel, &m->pulls_timer);
	while ((p = TAILQ_FIRST(&m->pulls)) != NULL) {
		TAILQ_REMOVE(&m->pulls, p, link);
		pull_free(p);
	}
}

/* ---- the route ---- */

static void
start(struct request *r, struct pull *p, const struct queue *q)
{
	static const struct session_ops none = { NULL, NULL, NULL };

	/* the user may be deleted meanwhile: nothing that lasts may lean on it */
	p->client.user = NULL;
	session_init(&p->session, &p->client, &none);
	p->r = r;
	p->vhost = xstrdup(r->vhost->name);
	p->vhost_id = r->vhost->id;
	p->queue_id = q->id;
	p->until_ms = p->client.broker->now_ms + WAIT_MAX_MS;
	if (get_some(p)) {
		finish(p);
		return;
	}
	request_defer(r);
	TAILQ_INSERT_TAIL(&r->m->pulls, p, link);
	arm(r->m);
}

void
route_get(struct request *r)
{
	struct pull *p = xcalloc(1, sizeof *p);
	const struct error *e;
	struct queue *q;

	p->answer = xcalloc(1, sizeof *p->answer);
	if (!read_body(r, p)) {
		free(p->answer);
		free(p);
		return;
	}
	acting_client(&p->client, r);
	e = permission_check(&p->client, PERM_READ, "queue", request_arg(r, 1));
	if (e == NULL)
		e = queue_lookup(r->vhost, request_arg(r, 1), &p->client, &q);
	if (e == NULL) {
		start(r, p, q);
		return;
	}
	free(p->answer);
	free(p);
	if (e->id == E_NOT_FOUND)
		reply_error(r, 404, "not_found", e->text);
	else if (e->id == E_ACCESS_REFUSED)
		reply_not_authorised(r, e->text);
	else
		reply_amqp_error(r, e);
}
