/* SPDX-License-Identifier: Apache-2.0
 * Jobs over HTTP: moves of messages, replays of dead letters, and how far they are. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/queue.h"
#include "broker/transfer.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/letters.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/rows.h"

/* ---- as JSON ---- */

static const char *const states[] = { "running", "done", "cancelled", "failed" };

static json_t *
text_of(const struct name_copy *c)
{
	return json_text(span_of(c->p, c->n));
}

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)(n < INT64_MAX ? n : INT64_MAX));
}

static json_t *
destination_of(const struct transfer *t)
{
	if (t->to_queue.p != NULL)
		return json_pack("{s:o}", "queue", text_of(&t->to_queue));
	return json_pack("{s:o, s:o}", "exchange", text_of(&t->exchange), "routing_key",
	    t->key.p != NULL ? text_of(&t->key) : json_null());
}

static json_t *
reasons_of(const struct transfer *t)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < t->reasons; i++) {
		json_t *name = json_text(span_str(t->reason[i].text));

		json_object_set_new(all, json_string_value(name), number(t->reason[i].count));
		json_decref(name);
	}
	return all;
}

static json_t *
job_json(const struct transfer *t)
{
	bool runs = t->state == TRANSFER_RUNNING;
	uint64_t gone = t->done + t->failed;
	json_t *j = json_pack("{s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "id",
	    number(t->id), "kind", t->kind == TRANSFER_MOVE ? "move" : "replay", "vhost",
	    text_of(&t->vhost), "queue", text_of(&t->queue), "state", states[t->state], "total",
	    number(t->total), "done", number(t->done), "failed", number(t->failed), "left",
	    number(runs && t->total > gone ? t->total - gone : 0), "reasons", reasons_of(t));

	if (t->kind == TRANSFER_MOVE)
		json_object_set_new(j, "destination", destination_of(t));
	json_object_set_new(j, "rate", t->rate > 0 ? number(t->rate) : json_null());
	json_object_set_new(j, "rate_now", number(transfer_rate(t)));
	json_object_set_new(
	    j, "reason", t->why[0] != '\0' ? json_text(span_str(t->why)) : json_null());
	json_object_set_new(
	    j, "waiting", runs && t->waits != NULL ? json_text(span_str(t->waits)) : json_null());
	json_object_set_new(j, "user", text_of(&t->user));
	json_object_set_new(j, "started", number(t->started_ms));
	json_object_set_new(j, "ended", runs ? json_null() : number(t->ended_ms));
	return j;
}

/* ---- the jobs there are ---- */

/* The vhost that it is in; NULL: that is gone. */
static struct vhost *
vhost_of(const struct broker *b, const struct transfer *t)
{
	struct vhost *vh = vhost_find(b, span_of(t->vhost.p, t->vhost.n));

	return vh != NULL && vh->id == t->vhost_id ? vh : NULL;
}

static bool
may_see(const struct request *r, const struct transfer *t)
{
	const struct vhost *vh = vhost_of(r->m->broker, t);

	return (r->user->tags & TAG_ADMINISTRATOR) != 0 ||
	       (vh != NULL && permission_vhost(r->user, vh));
}

static int
later_first(const void *a, const void *b)
{
	const struct transfer *const *x = a, *const *y = b;

	return (*x)->id > (*y)->id ? -1 : (*x)->id < (*y)->id;
}

void
route_jobs(struct request *r)
{
	struct transfer *all[TRANSFERS_MAX], *t = NULL;
	json_t *rows = json_array();
	size_t n = 0;

	while (n < TRANSFERS_MAX && (t = transfer_next(r->m->broker, t)) != NULL) {
		if (may_see(r, t))
			all[n++] = t;
	}
	qsort(all, n, sizeof all[0], later_first);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(rows, job_json(all[i]));
	reply_rows(r, rows);
}

/* NULL: it was answered. */
static struct transfer *
job_arg(struct request *r)
{
	struct letter_id id;
	struct transfer *t = NULL;

	if (letter_id_parse(request_arg(r, 0), &id) && id.priority == 0)
		t = transfer_find(r->m->broker, id.seq);
	if (t == NULL) {
		reply_not_found(r);
		return NULL;
	}
	if (may_see(r, t))
		return t;
	reply_not_authorised(r, "Access refused.");
	return NULL;
}

void
route_job(struct request *r)
{
	struct transfer *t = job_arg(r);

	if (t != NULL)
		reply_row(r, job_json(t));
}

/* Whoever started it, and who may configure the queue. */
static bool
may_cancel(const struct request *r, const struct transfer *t)
{
	const struct vhost *vh = vhost_of(r->m->broker, t);

	if ((r->user->tags & TAG_ADMINISTRATOR) != 0 || t->user_id == r->user->id)
		return true;
	return vh != NULL && permission_check_user(r->user, vh, PERM_CONFIGURE, "queue",
	                         span_of(t->queue.p, t->queue.n)) == NULL;
}

void
route_job_cancel(struct request *r)
{
	struct transfer *t = job_arg(r);

	if (t == NULL)
		return;
	if (!may_cancel(r, t)) {
		reply_not_authorised(r, "Access refused.");
		return;
	}
	transfer_cancel(t);
	reply_empty(r, 204);
}

/* ---- new ones ---- */

/* A number above 0, if it is there. False: it was answered. */
static bool
read_number(struct request *r, const char *name, uint64_t def, uint64_t most, uint64_t *out)
{
	json_t *v = json_object_get(r->body, name);
	int64_t n;

	*out = def;
	if (v == NULL || json_is_null(v))
		return true;
	if (!body_integer(r, name, &n))
		return false;
	if (n < 1 || (uint64_t)n > most) {
		reply_bad(
		    r, "%s has to be a number from 1 to %llu", name, (unsigned long long)most);
		return false;
	}
	*out = (uint64_t)n;
	return true;
}

static void
begin(struct request *r, const struct transfer_spec *spec)
{
	const struct error *e;
	struct transfer *t;

	e = transfer_start(spec, &t);
	if (e != NULL)
		reply_refused(r, e);
	else
		reply_json(r, 202, job_json(t));
}

/* False: it was answered. */
static bool
read_destination(struct request *r, const struct client *client, struct transfer_spec *spec)
{
	json_t *to = json_object_get(r->body, "destination");
	json_t *key = json_object_get(to, "routing_key");
	const struct error *e;

	if (json_is_string(to)) {
		e = queue_lookup(r->vhost, json_span(to), client, &spec->to_queue);
		if (e != NULL)
			reply_refused(r, e);
		return e == NULL;
	}
	spec->exchange = json_span(json_object_get(to, "exchange"));
	if (span_is(spec->exchange, "amq.default"))
		spec->exchange = SPAN_LIT("");
	spec->key = json_span(key);
	if (spec->exchange.p != NULL && spec->exchange.n <= 255 && spec->key.n <= 255 &&
	    (key == NULL || json_is_null(key) || json_is_string(key)))
		return true;
	reply_bad(r, "destination has to be the name of a queue, or "
	             "{\"exchange\": name, \"routing_key\": key} of up to 255 bytes each");
	return false;
}

void
route_move(struct request *r)
{
	struct client client;
	struct transfer_spec spec = { .kind = TRANSFER_MOVE, .user = r->user };

	spec.queue = queue_for(r, &client, PERM_READ);
	if (spec.queue == NULL || !read_destination(r, &client, &spec) ||
	    !read_number(r, "count", UINT64_MAX, INT64_MAX, &spec.most) ||
	    !read_number(r, "rate", 0, TRANSFER_RATE_MAX, &spec.rate))
		return;
	begin(r, &spec);
}

/* False: it was answered. */
static bool
read_ids(struct request *r, struct transfer_spec *spec)
{
	json_t *ids = json_object_get(r->body, "ids"), *id;
	bool all = json_is_true(json_object_get(r->body, "all"));
	size_t i;

	if (all && ids == NULL)
		return true;
	if (all || !json_is_array(ids) || json_array_size(ids) == 0) {
		reply_bad(r, "either ids, a list, or \"all\": true has to be there");
		return false;
	}
	if (json_array_size(ids) > TRANSFER_LETTERS_MAX) {
		reply_bad(r, "ids has more than %d entries", TRANSFER_LETTERS_MAX);
		return false;
	}
	spec->chosen = xcalloc(json_array_size(ids), sizeof *spec->chosen);
	json_array_foreach(ids, i, id)
	{
		if (json_is_string(id) &&
		    letter_id_parse(json_span(id), &spec->chosen[spec->chosen_count])) {
			spec->chosen_count++;
			continue;
		}
		free(spec->chosen);
		reply_bad(r, "ids[%zu] is no id of a message", i);
		return false;
	}
	return true;
}

void
route_replay(struct request *r)
{
	struct client client;
	struct transfer_spec spec = {
		.kind = TRANSFER_REPLAY, .user = r->user, .most = UINT64_MAX
	};

	spec.queue = queue_for(r, &client, PERM_READ);
	if (spec.queue == NULL || !read_number(r, "rate", 0, TRANSFER_RATE_MAX, &spec.rate) ||
	    !read_ids(r, &spec))
		return;
	begin(r, &spec);
}
