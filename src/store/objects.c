/* SPDX-License-Identifier: Apache-2.0
 * Objects: what the broker wants to have again after a restart, as bytes under a kind and an id. The store keeps where
 * each one's newest PUT stands; the bytes only from recovery until store_linked(). */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/lane.h"
#include "store/store_priv.h"
#include "store/window_priv.h"

struct object_key {
	uint64_t kind, id;
};

struct object {
	struct object_key key;
	uint64_t lsn;              /* of its newest PUT, held; LSN_OPEN; 0: that was damaged */
	bool is_told;              /* that a restart loses it */
	uint8_t *state;            /* owned; NULL after store_linked() */
	size_t n;                  /* bytes of its state */
	struct bucket_node by_key; /* in store->objects_by_key */
	TAILQ_ENTRY(object) link;  /* store->objects */
};

static const struct sync_setting now = { SYNC_POLICY_ALWAYS, 0 }, soon = { SYNC_POLICY_MS, 1000 };

static uint64_t
hash_key(uint64_t kind, uint64_t id)
{
	uint64_t h = (id + 1) * 0x9E3779B97F4A7C15ull ^ kind * 0xD6E8FEB86659FD93ull;

	return h ^ h >> 32;
}

static struct object *
find(const struct store *s, enum object_kind kind, uint64_t id)
{
	struct bucket_node *n = buckets_first(&s->objects_by_key, hash_key(kind, id));

	for (; n != NULL; n = buckets_next(n)) {
		struct object *o = container_of(n, struct object, by_key);

		if (o->key.kind == kind && o->key.id == id)
			return o;
	}
	return NULL;
}

bool
object_exists(const struct store *s, enum object_kind kind, uint64_t id)
{
	return find(s, kind, id) != NULL;
}

uint64_t
object_lsn(const struct store *s, enum object_kind kind, uint64_t id)
{
	const struct object *o = find(s, kind, id);

	return o != NULL ? o->lsn : 0;
}

void
object_set_lsn(struct store *s, enum object_kind kind, uint64_t id, uint64_t lsn)
{
	struct object *o = find(s, kind, id);

	if (o != NULL && o->lsn == LSN_OPEN)
		lane_move_hold(s, &o->lsn, lsn);
	s->objects_lsn = lsn;
}

static void
free_object(struct store *s, struct object *o)
{
	lane_move_hold(s, &o->lsn, 0);
	s->journal_live.object_bytes -= o->n;
	TAILQ_REMOVE(&s->objects, o, link);
	buckets_remove(&s->objects_by_key, &o->by_key);
	free(o->state);
	free(o);
}

void
apply_put(struct store *s, const struct op_object *put, uint64_t lsn)
{
	struct object *o = find(s, put->kind, put->id);

	if (o == NULL) {
		o = xcalloc(1, sizeof *o);
		o->key = (struct object_key){ put->kind, put->id };
		TAILQ_INSERT_TAIL(&s->objects, o, link);
		buckets_add(&s->objects_by_key, &o->by_key, hash_key(put->kind, put->id));
	}
	lane_move_hold(s, &o->lsn, lsn);
	s->journal_live.object_bytes += put->state.n;
	s->journal_live.object_bytes -= o->n;
	o->n = put->state.n;
	if (!s->recovering)
		return;
	free(o->state);
	o->state = xmalloc(o->n + 1);
	if (o->n > 0)
		memcpy(o->state, put->state.p, o->n);
}

/* Lanes for what is due later have any numbers; their owner always used one of the first two. */
static void
close_later_lanes(struct store *s, uint64_t id)
{
	struct lane *l, *next;

	if (lane_find(s, (struct op_lane){ id, LANE_LATER }) == NULL &&
	    lane_find(s, (struct op_lane){ id, LANE_LATER + 1 }) == NULL)
		return;
	for (l = TAILQ_FIRST(&s->lanes); l != NULL; l = next) {
		next = TAILQ_NEXT(l, all_link);
		if (l->name.queue == id && l->name.lane >= LANE_LATER)
			lane_close(&l);
	}
}

void
apply_gone(struct store *s, const struct op_object *gone)
{
	struct object *o = find(s, gone->kind, gone->id);
	struct window *w;

	if (o != NULL)
		free_object(s, o);
	/* Live, their owner closes them. */
	if (!s->recovering)
		return;
	w = window_find(s, gone->id);
	if (w != NULL)
		window_close(&w);
	if (gone->kind == OBJECT_EXCHANGE)
		close_later_lanes(s, gone->id);
	if (gone->kind != OBJECT_QUEUE)
		return;
	for (uint32_t number = 0; number <= s->top_lane; number++) {
		struct lane *l = lane_find(s, (struct op_lane){ gone->id, number });

		if (l != NULL)
			lane_close(&l);
	}
}

/* The record stands at lsn; 0: in the open one. */
static void
was_appended(struct store *s, enum object_kind kind, uint64_t id, uint64_t lsn)
{
	if (lsn != 0)
		s->objects_lsn = lsn;
	else
		record_remember_object(s, kind, id);
}

void
store_put(struct store *s, enum object_kind kind, uint64_t id, struct span state)
{
	struct op_object o = { kind, id, state };
	uint64_t lsn;
	uint8_t *p = store_append(s, (uint32_t)op_object_size(&o), 1, now, &lsn);

	op_put_encode(&o, p);
	apply_put(s, &o, lsn != 0 ? lsn : LSN_OPEN);
	was_appended(s, kind, id, lsn);
}

void
object_gone(struct store *s, enum object_kind kind, uint64_t id)
{
	struct op_object o = { kind, id, { NULL, 0 } };
	uint64_t lsn;
	uint8_t *p;

	if (kind == OBJECT_QUEUE)
		store_flush(s);
	p = store_append(s, (uint32_t)op_object_size(&o), 1, now, &lsn);
	op_gone_encode(&o, p);
	apply_gone(s, &o);
	was_appended(s, kind, id, lsn);
}

void
store_gone(struct store *s, enum object_kind kind, uint64_t id)
{
	if (object_exists(s, kind, id))
		object_gone(s, kind, id);
}

void
object_put_again(struct store *s, const struct op_object *o)
{
	uint64_t lsn;
	uint8_t *p = store_append(s, (uint32_t)op_object_size(o), 1, soon, &lsn);

	assert(lsn != 0);
	op_put_encode(o, p);
	apply_put(s, o, lsn);
}

static int
by_id(const void *a, const void *b)
{
	const struct object *const *x = a, *const *y = b;

	return (*x)->key.id < (*y)->key.id ? -1 : (*x)->key.id > (*y)->key.id;
}

void
store_each_object(struct store *s, enum object_kind kind, store_object_fn *f, void *arg)
{
	struct object *o, **all = xcalloc(s->objects_by_key.count + 1, sizeof(struct object *));
	size_t n = 0;

	TAILQ_FOREACH (o, &s->objects, link) {
		if (o->key.kind == kind)
			all[n++] = o;
	}
	qsort(all, n, sizeof all[0], by_id);
	for (size_t i = 0; i < n; i++)
		f(arg, all[i]->key.id, span_of(all[i]->state, all[i]->n));
	free(all);
}

void
objects_forget_states(struct store *s)
{
	struct object *o;

	TAILQ_FOREACH (o, &s->objects, link) {
		free(o->state);
		o->state = NULL;
	}
}

bool
store_is_lost(const struct store *s, enum object_kind kind, uint64_t id)
{
	const struct object *o = find(s, kind, id);

	return o != NULL && o->lsn == 0;
}

static void
tell_lost(struct store *s, uint32_t file)
{
	struct object *o;

	TAILQ_FOREACH (o, &s->objects, link) {
		if (o->lsn != 0 || o->is_told)
			continue;
		log_error("store: object %" PRIu64 " of kind %" PRIu64
		          " was damaged in journal file %" PRIu32
		          "; it is as it was, but a restart loses it",
		    o->key.id, o->key.kind, file);
		s->stats.damaged++;
		o->is_told = true;
	}
}

void
objects_lost(struct store *s, uint32_t file)
{
	struct object *o;
	uint64_t n = 0;

	TAILQ_FOREACH (o, &s->objects, link) {
		if (o->lsn == 0 || o->lsn == LSN_OPEN || lsn_file(o->lsn) != file)
			continue;
		lane_move_hold(s, &o->lsn, 0);
		o->is_told = false;
		n++;
	}
	if (n == 0)
		return;
	log_warning("store: the records of %" PRIu64 " objects in journal file %" PRIu32
	            " were damaged; they are written again",
	    n, file);
	if (s->ops->put_again != NULL)
		s->ops->put_again(s->arg);
	tell_lost(s, file);
}

void
objects_free(struct store *s)
{
	struct object *o;

	while ((o = TAILQ_FIRST(&s->objects)) != NULL)
		free_object(s, o);
}
