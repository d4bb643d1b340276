/* SPDX-License-Identifier: Apache-2.0
 * POST /api/exchanges/:vhost/:exchange/publish, and a batch of the same. The answer comes when a confirm would. What is long
 * is decoded by a worker, and put together piece by piece, turn by turn. */
#include "mgmt/publish.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/bound.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "broker/broker.h"
#include "broker/drain.h"
#include "broker/error.h"
#include "broker/publisher.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

enum { BATCH_MAX = 1000, SLICE_US = 1000 };

static const char *const needed[] = { "routing_key", "properties", "payload", "payload_encoding",
	NULL };
static const char gone[] = "vhost_or_user_not_found";

static bool
may_begin(struct request *r)
{
	const struct broker *b = r->m->broker;
	const char *why = drain_is_on(b) ? drain_reason(b) : publisher_hold(b);

	if (exchange_arg(r, 1).n > 255) {
		reply_bad(r, "the name of an exchange is at most 255 bytes long");
		return false;
	}
	if (why == NULL)
		return true;
	reply_error(r, 503, "service_unavailable", why);
	return false;
}

/* ---- long payloads ---- */

/* Of a large body, base64 is decoded by a worker. Until that is done nobody else looks at the body. The request may be
 * gone when a worker begins, for the node stops: the body is the job's as well. */
struct decode_job {
	struct request_job job; /* first */
	json_t *body;           /* one reference */
	bool no_memory;
	void (*then)(struct request *r);
};

/* What stands around the place where a text stops being base64, and is none itself: it is refused for it, and nobody has
 * to look at the rest again. */
static json_t *
excerpt(struct span text)
{
	enum { AROUND = 40 };
	char out[2 * AROUND];
	size_t n;
	const char *p = (const char *)text.p;
	size_t at = base64_valid_length(p, text.n), from = at > AROUND ? at - AROUND : 0;

	if (at == text.n) /* it is the length that is wrong */
		return json_string("A");
	n = utf8_cut(p + from, text.n - from, 2 * AROUND);
	return base64_decode(p + from, n, out) == 0 ? json_stringn(p + from, n) : json_string("A");
}

/* A payload becomes the bytes that it stands for. False: no memory. */
static bool
decode(json_t *message)
{
	json_t *text = json_object_get(message, "payload"), *bytes;
	struct span s = json_span(text),
	            encoding = json_span(json_object_get(message, "payload_encoding"));
	char *out;
	size_t n;

	if (s.n == 0 || encoding.p == NULL || !span_is(encoding, "base64"))
		return true;
	out = try_malloc(s.n);
	if (out == NULL)
		return false;
	n = base64_decode((const char *)s.p, s.n, out);
	bytes = n > 0 ? json_stringn_nocheck(out, n) : excerpt(s);
	free(out);
	if (bytes == NULL)
		return false;
	(void)json_object_set_new(message, "payload", bytes);
	if (n > 0)
		(void)json_object_set_new(message, "payload_encoding", json_string("string"));
	return true;
}

static void
on_run(struct request_job *job)
{
	struct decode_job *j = (struct decode_job *)job;
	json_t *item;
	size_t i;

	j->no_memory = !decode(j->body);
	json_array_foreach(json_object_get(j->body, "messages"), i, item)
	{
		j->no_memory |= !decode(item);
	}
}

/* Meanwhile things may have gone. */
static void
on_done(struct request_job *job)
{
	struct decode_job *j = (struct decode_job *)job;
	void (*then)(struct request *) = j->then;
	bool no_memory = j->no_memory;
	struct request *r = job->r;

	json_decref(j->body);
	free(j);
	if (r == NULL)
		return;
	r->user = request_user(r);
	r->vhost = vhost_find(r->m->broker, request_arg(r, 0));
	if (r->user == NULL || r->vhost == NULL)
		reply_error(r, 404, "not_found", gone);
	else if (no_memory)
		reply_error(r, 503, "service_unavailable", "no memory for the message");
	else
		then(r);
}

static void
decode_first(struct request *r, void (*then)(struct request *r))
{
	struct decode_job *j;

	if (!r->is_long) {
		then(r);
		return;
	}
	j = xcalloc(1, sizeof *j);
	j->then = then;
	j->body = json_incref(r->body);
	j->job.run = on_run;
	j->job.done = on_done;
	request_work(r, &j->job);
}

/* ---- messages, one by one ---- */

/* What a request publishes: one message, or a batch of them. Goes on turn by turn: the user and the vhost may go
 * meanwhile. */
struct batch {
	TAILQ_ENTRY(batch) link;
	struct request *r; /* borrowed: deferred, or we are within its handler */
	struct client client;
	struct user *user; /* one reference */
	uint64_t vhost_id;
	char *vhost, *exchange; /* owned */
	size_t exchange_len;
	const json_t *messages; /* borrowed from the request's body; NULL: that is the message */
	struct publisher *publisher;
	struct message_draft draft; /* of the message that it is at */
	bool is_drafting;
	json_t *results;
};

static bool
may_go_on(const struct batch *b)
{
	const struct vhost *vh = vhost_find(b->client.broker, span_str(b->vhost));

	return vh != NULL && vh->id == b->vhost_id && !b->user->is_deleted;
}

static json_t *
check_size(const struct batch *b)
{
	uint64_t limit = b->client.broker->cfg->message_size;
	const struct error *e;

	if (b->draft.payload.n <= limit)
		return NULL;
	bound_reached(BOUND_message_size);
	e = error_make(E_PRECONDITION_FAILED,
	    "message size %zu is larger than configured max size %" PRIu64, b->draft.payload.n,
	    limit);
	return json_sprintf("%u %s", e->code, e->text);
}

/* NULL, or what is wrong with it (owned). */
static json_t *
begin(struct batch *b, const json_t *item)
{
	struct span key = json_span(json_object_get(item, "routing_key"));
	json_t *problem = NULL;

	if (!may_go_on(b))
		return json_string(gone);
	for (const char *const *name = needed; *name != NULL && problem == NULL; name++) {
		if (json_object_get(item, *name) == NULL)
			problem = json_sprintf("key_missing,%s", *name);
	}
	if (problem == NULL && (key.p == NULL || key.n > 255))
		problem = json_string("routing_key is a string of at most 255 bytes");
	if (problem == NULL)
		problem =
		    message_begin(&b->draft, item, span_of(b->exchange, b->exchange_len), key);
	return problem != NULL ? problem : check_size(b);
}

/* The message is whole. */
static json_t *
publish(struct batch *b, bool *routed)
{
	const struct error *e;
	enum published how;

	if (!may_go_on(b))
		return json_string(gone);
	e = publisher_publish(b->publisher, message_end(&b->draft), &how);
	if (e != NULL)
		return json_sprintf("%u %s", e->code, e->text);
	*routed = how == PUBLISHED_ROUTED;
	return how == PUBLISHED_REFUSED
	           ? json_string("rejected Unable to publish message. Check queue limits.")
	           : NULL;
}

static void
note(struct batch *b, json_t *problem, bool routed)
{
	message_drop(&b->draft);
	b->is_drafting = false;
	(void)json_array_append_new(
	    b->results, problem != NULL ? json_pack("{s:b, s:o}", "routed", 0, "error", problem)
	                                : json_pack("{s:b}", "routed", routed));
}

/* One step with the message that it is at. */
static void
step(struct batch *b, const json_t *item)
{
	json_t *problem = NULL;
	bool routed = false;

	if (!b->is_drafting)
		problem = begin(b, item);
	else if (!message_is_whole(&b->draft))
		problem = message_go_on(&b->draft);
	b->is_drafting = problem == NULL;
	if (problem == NULL && !message_is_whole(&b->draft))
		return;
	if (problem == NULL)
		problem = publish(b, &routed);
	note(b, problem, routed);
}

static size_t
message_count(const struct batch *b)
{
	return b->messages != NULL ? json_array_size(b->messages) : 1;
}

/* True: all of it was tried. */
static bool
publish_some(struct batch *b)
{
	uint64_t until_us = clock_mono_us() + SLICE_US;
	size_t i;

	while ((i = json_array_size(b->results)) < message_count(b)) {
		step(b, b->messages != NULL ? json_array_get(b->messages, i) : b->r->body);
		if (clock_mono_us() >= until_us)
			break;
	}
	return json_array_size(b->results) == message_count(b);
}

static void
batch_free(struct batch *b)
{
	message_drop(&b->draft);
	publisher_free(&b->publisher);
	user_unref(&b->user);
	json_decref(b->results);
	free(b->vhost);
	free(b->exchange);
	free(b);
}

static void
reply_one(struct request *r, struct store_wait wait, json_t *result)
{
	json_t *problem = json_object_get(result, "error");

	if (problem == NULL)
		reply_when(r, wait, 200, json_incref(result));
	else if (json_is_string(problem) && span_is(json_span(problem), gone))
		reply_error(r, 404, "not_found", gone);
	else
		reply_json(
		    r, 400, json_pack("{s:s, s:O}", "error", "bad_request", "reason", problem));
}

static void
finish(struct batch *b)
{
	struct store_wait wait = publisher_wait(b->publisher);
	json_t *results = json_incref(b->results);
	struct request *r = b->r;
	bool is_batch = b->messages != NULL;

	batch_free(b);
	if (is_batch)
		reply_when(r, wait, 200, json_pack("{s:O}", "results", results));
	else
		reply_one(r, wait, json_array_get(results, 0));
	json_decref(results);
}

bool
batches_run(struct mgmt *m)
{
	struct batch *b = TAILQ_FIRST(&m->batches);

	if (b == NULL)
		return false;
	TAILQ_REMOVE(&m->batches, b, link);
	if (publish_some(b))
		finish(b);
	else
		TAILQ_INSERT_TAIL(&m->batches, b, link);
	return !TAILQ_EMPTY(&m->batches);
}

void
batches_stop(struct mgmt *m)
{
	struct batch *b;

	while ((b = TAILQ_FIRST(&m->batches)) != NULL) {
		TAILQ_REMOVE(&m->batches, b, link);
		batch_free(b);
	}
}

static struct batch *
batch_new(struct request *r)
{
	struct batch *b = xcalloc(1, sizeof *b);
	struct span exchange = exchange_arg(r, 1);

	acting_client(&b->client, r);
	b->r = r;
	b->user = user_ref(r->user);
	b->vhost = xstrdup(r->vhost->name);
	b->vhost_id = r->vhost->id;
	b->exchange = xstrndup(exchange.n > 0 ? (const char *)exchange.p : "", exchange.n);
	b->exchange_len = exchange.n;
	b->publisher = publisher_new(&b->client);
	b->results = json_array();
	return b;
}

static void
start(struct request *r, const json_t *messages)
{
	struct batch *b = batch_new(r);

	b->messages = messages;
	if (publish_some(b)) {
		finish(b);
		return;
	}
	request_defer(r);
	TAILQ_INSERT_TAIL(&r->m->batches, b, link);
}

/* ---- routes ---- */

static void
publish_one(struct request *r)
{
	start(r, NULL);
}

static void
publish_batch(struct request *r)
{
	start(r, json_object_get(r->body, "messages"));
}

void
route_publish(struct request *r)
{
	if (body_has(r, needed) && may_begin(r))
		decode_first(r, publish_one);
}

void
route_publish_batch(struct request *r)
{
	json_t *messages = json_object_get(r->body, "messages");

	if (!json_is_array(messages) || json_array_size(messages) > BATCH_MAX) {
		reply_bad(r, "messages is a list of at most %d", BATCH_MAX);
		return;
	}
	if (may_begin(r))
		decode_first(r, publish_batch);
}
