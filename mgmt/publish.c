/* SPDX-License-Identifier: Apache-2.0
 * POST /api/exchanges/:vhost/:exchange/publish, and a batch of the same. The answer comes when a confirm would. */
#include "mgmt/publish.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/publisher.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/base64.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

enum { BATCH_MAX = 1000, SLICE_US = 1500, DECODE_HERE = 64 << 10 };

static const char *const needed[] = { "routing_key", "properties", "payload", "payload_encoding",
	NULL };

/* Publishes what body says, which has all that is needed. NULL, or the reason why it was refused (owned). */
static json_t *
publish(struct publisher *p, const json_t *body, struct span exchange, bool *routed)
{
	struct span key = json_span(json_object_get(body, "routing_key"));
	const struct error *e;
	enum published how;
	json_t *problem;
	struct msg *m;

	*routed = false;
	if (key.p == NULL || key.n > 255)
		return json_string("routing_key is a string of at most 255 bytes");
	m = message_of_json(body, exchange, key, &problem);
	if (m == NULL)
		return problem;
	e = publisher_publish(p, m, &how);
	if (e != NULL)
		return json_sprintf("%u %s", e->code, e->text);
	*routed = how == PUBLISHED_ROUTED;
	return how == PUBLISHED_REFUSED
	           ? json_string("rejected Unable to publish message. Check queue limits.")
	           : NULL;
}

static bool
may_begin(struct request *r)
{
	const char *why = publisher_hold(r->m->broker);

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
	void (*then)(struct request *r);
};

/* A payload becomes the bytes that it stands for; what is wrong stays, to be refused. */
static void
decode(json_t *message)
{
	json_t *text = json_object_get(message, "payload"), *bytes;
	struct span s = json_span(text),
	            encoding = json_span(json_object_get(message, "payload_encoding"));
	char *out;
	size_t n;

	if (s.n == 0 || encoding.p == NULL || !span_is(encoding, "base64"))
		return;
	out = try_malloc(s.n);
	n = out != NULL ? base64_decode((const char *)s.p, s.n, out) : 0;
	bytes = n > 0 ? json_stringn_nocheck(out, n) : NULL;
	if (bytes != NULL) {
		(void)json_object_set_new(message, "payload", bytes);
		(void)json_object_set_new(message, "payload_encoding", json_string("string"));
	}
	free(out);
}

static void
on_run(struct request_job *job)
{
	json_t *body = ((struct decode_job *)job)->body, *item;
	size_t i;

	decode(body);
	json_array_foreach(json_object_get(body, "messages"), i, item) decode(item);
}

/* Meanwhile things may have gone. */
static void
on_done(struct request_job *job)
{
	struct decode_job *j = (struct decode_job *)job;
	void (*then)(struct request *) = j->then;
	struct request *r = job->r;

	json_decref(j->body);
	free(j);
	if (r == NULL)
		return;
	r->user = user_find(r->m->broker, span_str(r->user_name));
	r->vhost = vhost_find(r->m->broker, request_arg(r, 0));
	if (r->user == NULL || r->vhost == NULL)
		reply_error(r, 404, "not_found", "vhost_or_user_not_found");
	else
		then(r);
}

static void
decode_first(struct request *r, void (*then)(struct request *r))
{
	struct decode_job *j;

	if (request_raw(r).n < DECODE_HERE) {
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

/* ---- one message ---- */

static void
publish_one(struct request *r)
{
	struct publisher *p;
	struct client client;
	struct store_wait wait;
	json_t *problem;
	bool routed;

	acting_client(&client, r);
	p = publisher_new(&client);
	problem = publish(p, r->body, exchange_arg(r, 1), &routed);
	wait = publisher_wait(p);
	publisher_free(&p);
	if (problem != NULL)
		reply_json(
		    r, 400, json_pack("{s:s, s:o}", "error", "bad_request", "reason", problem));
	else
		reply_when(r, wait, 200, json_pack("{s:b}", "routed", routed));
}

void
route_publish(struct request *r)
{
	if (body_has(r, needed) && may_begin(r))
		decode_first(r, publish_one);
}

/* ---- batches ---- */

/* Goes on turn by turn: the user and the vhost may go meanwhile. */
struct batch {
	TAILQ_ENTRY(batch) link;
	struct request *r; /* borrowed: deferred, or we are within its handler */
	struct client client;
	struct user *user; /* one reference */
	uint64_t vhost_id;
	char *vhost, *exchange; /* owned */
	size_t exchange_len;
	struct publisher *publisher;
	json_t *results;
};

static json_t *
publish_item(struct batch *b, const json_t *item)
{
	bool routed = false;
	json_t *problem = NULL;

	for (const char *const *name = needed; *name != NULL && problem == NULL; name++) {
		if (json_object_get(item, *name) == NULL)
			problem = json_sprintf("key_missing,%s", *name);
	}
	if (problem == NULL)
		problem =
		    publish(b->publisher, item, span_of(b->exchange, b->exchange_len), &routed);
	return problem != NULL ? json_pack("{s:b, s:o}", "routed", 0, "error", problem)
	                       : json_pack("{s:b}", "routed", routed);
}

static bool
may_go_on(const struct batch *b)
{
	const struct vhost *vh = vhost_find(b->client.broker, span_str(b->vhost));

	return vh != NULL && vh->id == b->vhost_id && !b->user->is_deleted;
}

/* True: all of it was tried. */
static bool
publish_some(struct batch *b)
{
	const json_t *messages = json_object_get(b->r->body, "messages");
	uint64_t until_us = clock_mono_us() + SLICE_US;
	bool ok = may_go_on(b);
	size_t i;

	while ((i = json_array_size(b->results)) < json_array_size(messages)) {
		(void)json_array_append_new(b->results,
		    ok ? publish_item(b, json_array_get(messages, i))
		       : json_pack("{s:b, s:s}", "routed", 0, "error", "vhost_or_user_not_found"));
		if (clock_mono_us() >= until_us)
			return i + 1 == json_array_size(messages);
	}
	return true;
}

static void
batch_free(struct batch *b)
{
	publisher_free(&b->publisher);
	user_unref(&b->user);
	json_decref(b->results);
	free(b->vhost);
	free(b->exchange);
	free(b);
}

static void
finish(struct batch *b)
{
	struct store_wait wait = publisher_wait(b->publisher);
	json_t *body = json_pack("{s:O}", "results", b->results);
	struct request *r = b->r;

	batch_free(b);
	reply_when(r, wait, 200, body);
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
publish_batch(struct request *r)
{
	struct batch *b = batch_new(r);

	if (publish_some(b)) {
		finish(b);
		return;
	}
	request_defer(r);
	TAILQ_INSERT_TAIL(&r->m->batches, b, link);
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
