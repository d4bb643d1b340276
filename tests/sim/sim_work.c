/* SPDX-License-Identifier: Apache-2.0
 * Random work: each step is one thing that the broker, the loop, the journal thread or a worker does. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_priv.h"
#include "tests/sim/sim.h"

enum { FAN_OUT = 4, PICKS = 64 };

uint64_t
sim_last_lsn(const struct sim *s)
{
	return s->store->last_lsn;
}

static struct model_lane *
any_lane(struct sim *s, bool durable)
{
	uint32_t n = s->model.lanes, at = n > 0 ? (uint32_t)rnd(&s->r, n) : 0;

	for (uint32_t i = 0; i < n; i++) {
		struct model_lane *l = s->model.lane[(at + i) % n];

		if (l->is_open && l->durable == durable)
			return l;
	}
	return NULL;
}

static struct model_entry *
any_entry(struct sim *s, struct model_lane *l, enum model_where where)
{
	struct model_entry *found = NULL;
	uint64_t skip = rnd_chance(&s->r, 50) ? 0 : rnd(&s->r, PICKS);

	for (uint32_t i = l->low; i < l->n; i++) {
		if (l->e[i].where == where) {
			found = &l->e[i];
			if (skip-- == 0)
				break;
		}
	}
	return found;
}

static void
add_wait(struct sim *s, struct store_wait w)
{
	if (w.lsn == 0)
		return;
	if (s->waits == s->waits_cap) {
		s->waits_cap = s->waits_cap * 2 + 64;
		s->wait = xrealloc(s->wait, s->waits_cap * sizeof *s->wait);
	}
	s->wait[s->waits++] = w;
}

void
sim_take_positions(struct sim *s)
{
	uint32_t kept = 0;

	s->durable = journal_durable(s->store->journal);
	s->written = journal_written(s->store->journal);
	SIM_CHECK(s, s->durable <= s->written, "durable is behind written");
	for (uint32_t i = 0; i < s->waits; i++) {
		uint64_t *to = s->wait[i].durable ? &s->confirmed_durable : &s->confirmed_written;

		if (!store_reached(s->store, s->wait[i]))
			s->wait[kept++] = s->wait[i];
		else if (s->wait[i].lsn > *to)
			*to = s->wait[i].lsn;
	}
	s->waits = kept;
}

void
sim_turn(struct sim *s)
{
	s->now_ms += rnd(&s->r, s->turn_ms);
	(void)store_turn(s->store, s->next_id, s->now_ms);
	model_end_turn(&s->model, sim_last_lsn(s));
}

/* ---- messages ---- */

static uint64_t
body_size(struct sim *s)
{
	uint64_t n = rnd(&s->r, 200);

	if (n == 0)
		return 0;
	if (n == 1)
		return rnd(&s->r, s->cfg.journal_file_size * 3 < SIM_BODY_MAX
		                      ? s->cfg.journal_file_size * 3
		                      : SIM_BODY_MAX);
	if (n < 6)
		return rnd(&s->r, 9000);
	return rnd(&s->r, s->body_usual);
}

static void *
new_item(struct sim *s, bool persistent, uint32_t *index)
{
	struct model_msg *m = model_new_msg(&s->model, index);

	m->body_size = body_size(s);
	m->flags = persistent ? MSG_FLAG_PERSISTENT : 0;
	m->prio = (uint8_t)rnd(&s->r, 256);
	m->arrived_ms = s->now_ms;
	if (rnd_chance(&s->r, 40))
		m->expires_ms = s->now_ms + rnd(&s->r, 2000) + 1;
	if (rnd_chance(&s->r, 5))
		m->due_ms = s->now_ms + rnd(&s->r, 100000) + 1;
	return sim_item_new(s, *index);
}

static uint64_t
take_seq(struct sim *s, struct model_lane *l)
{
	uint64_t seq = l->next_seq;

	if (rnd_chance(&s->r, 3))
		seq += rnd(&s->r, 5);
	l->next_seq = seq + 1;
	return seq;
}

static bool
is_always(const struct sim *s, const struct model_lane *l)
{
	return (l->sync.policy == SYNC_POLICY_DEFAULT ? s->cfg.sync.policy : l->sync.policy) ==
	       SYNC_POLICY_ALWAYS;
}

/* To n lanes; the entries' LSN is 0 while a record is open. */
static void
publish(struct sim *s, struct model_entry_ref *to, uint32_t *n_to)
{
	struct model_lane *lane[FAN_OUT];
	struct lane_place place[FAN_OUT];
	struct window_key key[SIM_KEYS];
	struct store_wait w;
	uint32_t keys, n = 0, index,
	               want = rnd_chance(&s->r, 70) ? 1 : 1 + (uint32_t)rnd(&s->r, FAN_OUT);
	bool always = false;
	void *item;

	for (uint32_t k = 0; k < want; k++) {
		struct model_lane *l = any_lane(s, true);
		bool is_new = l != NULL;

		for (uint32_t i = 0; i < n; i++)
			is_new = is_new && lane[i] != l;
		if (is_new)
			lane[n++] = l;
	}
	if (n == 0)
		return;
	item = new_item(s, true, &index);
	for (uint32_t i = 0; i < n; i++) {
		place[i] = (struct lane_place){ lane[i]->lane, take_seq(s, lane[i]) };
		always = always || is_always(s, lane[i]);
		if (i > 0)
			sim_store_ops.ref(item);
	}
	keys = sim_window_keys(s, key);
	w = store_publish_keys(s->store, place, n, item, key, keys);
	if (w.lsn != 0)
		sim_window_record(s, w.lsn);
	for (uint32_t i = 0; i < n; i++) {
		struct model_entry *e = model_add(lane[i], place[i].seq, index, true, w.lsn);

		e->item = item;
		if (to != NULL)
			to[(*n_to)++] = (struct model_entry_ref){ lane[i], e->seq };
	}
	s->published_bytes += s->model.msg[index].body_size + 200 * n + 60 * keys;
	if (to != NULL)
		return;
	SIM_CHECK(s, w.lsn != 0 && w.durable == always,
	    "a publish waits for %llu, %d; it should be %d", (unsigned long long)w.lsn, w.durable,
	    always);
	add_wait(s, w);
}

static void
step_publish(struct sim *s)
{
	uint64_t n = 1 + rnd(&s->r, 8);

	while (n-- > 0 && store_hold(s->store) == STORE_FINE)
		publish(s, NULL, NULL);
}

static void
step_volatile(struct sim *s)
{
	struct model_lane *l = any_lane(s, true);
	struct model_entry *e;
	uint32_t index;
	void *item;

	if (l == NULL)
		return;
	item = new_item(s, false, &index);
	e = model_add(l, take_seq(s, l), index, false, 0);
	e->item = item;
	(void)lane_add_volatile(l->lane, e->seq, item);
}

void
sim_ack(struct sim *s, struct model_lane *l, struct model_entry *e, enum ack_reason why)
{
	model_remove(e, model_now(&s->model, sim_last_lsn(s)));
	lane_ack(l->lane, e->seq, s->model.msg[e->msg].body_size, why);
	sim_item_unref(e->item);
	e->item = NULL;
}

/* So that chains become sparse. */
static bool
is_kept(const struct sim *s, const struct model_entry *e)
{
	return s->keep_every > 0 && e->seq % s->keep_every == 0;
}

/* In memory, and nothing unread before it; a lane may have unread ones of which the model does not know, after damage. */
static bool
is_next(const struct model_lane *l, const struct model_entry *e)
{
	return e->item != NULL &&
	       (!l->ghosts || lane_unread(l->lane) == 0 || e->seq < l->lane->read_seq);
}

static void
step_deliver(struct sim *s)
{
	struct model_lane *l = any_lane(s, rnd_chance(&s->r, 95));
	uint64_t n = 1 + rnd(&s->r, 12);
	struct model_entry *e;

	while (l != NULL && n-- > 0 && (e = model_first_ready(l)) != NULL && is_next(l, e)) {
		e->where = MODEL_OUT;
		s->delivered++;
		if (e->seq > l->delivered) {
			l->delivered = e->seq;
			l->marked = model_now(&s->model, sim_last_lsn(s));
		}
		lane_mark_delivered(l->lane, e->seq);
		if (!is_kept(s, e) && (rnd_chance(&s->r, 30) || s->keep_every > 0))
			sim_ack(s, l, e, ACK_ACKED);
	}
}

static void
step_ack(struct sim *s)
{
	struct model_lane *l = any_lane(s, rnd_chance(&s->r, 95));
	uint64_t n = 1 + rnd(&s->r, 12);
	struct model_entry *e;

	while (l != NULL && n-- > 0 && (e = any_entry(s, l, MODEL_OUT)) != NULL && !is_kept(s, e))
		sim_ack(s, l, e, ACK_ACKED);
	/* Dropped or expired at the head. */
	if (l != NULL && rnd_chance(&s->r, 20) && (e = model_first_ready(l)) != NULL &&
	    e->item != NULL)
		sim_ack(s, l, e, rnd_chance(&s->r, 50) ? ACK_EXPIRED : ACK_DROPPED);
}

static void
step_requeue(struct sim *s)
{
	struct model_lane *l = any_lane(s, rnd_chance(&s->r, 95));
	uint64_t n = 1 + rnd(&s->r, 6);
	struct model_entry *e;

	while (l != NULL && n-- > 0 && (e = any_entry(s, l, MODEL_OUT)) != NULL) {
		struct op_state state = e->state;

		state.redelivered = true;
		state.deliveries += (uint32_t)rnd(&s->r, 2);
		state.acquired++;
		e->where = MODEL_READY;
		model_set_state(e, &state, model_now(&s->model, sim_last_lsn(s)));
		lane_set_state(l->lane, e->seq, &state);
	}
}

static void
step_purge(struct sim *s)
{
	struct model_lane *l = any_lane(s, true);
	struct model_when when = model_now(&s->model, sim_last_lsn(s));
	uint64_t first = 0;

	if (l == NULL)
		return;
	for (uint32_t i = l->low; i < l->n; i++) {
		if (l->e[i].where == MODEL_OUT)
			first = l->e[i].seq + 1;
	}
	for (uint32_t i = l->low; i < l->n; i++) {
		struct model_entry *e = &l->e[i];

		if (e->where != MODEL_READY)
			continue;
		if (e->seq < first && e->item != NULL) {
			sim_ack(s, l, e, ACK_PURGED);
			continue;
		}
		SIM_CHECK(s, e->seq >= first, "unread ones before one that was given out");
	}
	lane_ack_from(l->lane, first, ACK_PURGED);
	for (uint32_t i = l->low; i < l->n; i++) {
		struct model_entry *e = &l->e[i];

		if (e->where != MODEL_READY)
			continue;
		model_remove(e, when);
		if (e->item != NULL)
			sim_item_unref(e->item);
		e->item = NULL;
	}
	l->lost = 0;
	SIM_CHECK(s, lane_unread(l->lane) == 0, "unread ones after a purge");
}

/* A commit, or a dead letter: all or nothing. */
static void
step_atomic(struct sim *s)
{
	struct model_entry_ref added[FAN_OUT * 4], acked[FAN_OUT];
	uint32_t n_added = 0, n_acked = 0;
	struct store_wait w;

	if (store_hold(s->store) != STORE_FINE)
		return;
	store_begin(s->store);
	for (uint64_t n = rnd(&s->r, 5); n > 0 || n_added + n_acked == 0; n--) {
		publish(s, added, &n_added);
		if (n <= 1)
			break;
	}
	for (uint64_t n = rnd(&s->r, FAN_OUT + 1); n > 0; n--) {
		struct model_lane *l = any_lane(s, true);
		struct model_entry *e = l == NULL ? NULL : any_entry(s, l, MODEL_OUT);

		if (e == NULL)
			continue;
		sim_ack(s, l, e, rnd_chance(&s->r, 50) ? ACK_ACKED : ACK_MOVED);
		if (e->persistent)
			acked[n_acked++] = (struct model_entry_ref){ l, e->seq };
	}
	w = store_end(s->store);
	SIM_CHECK(s, w.lsn != 0 || n_added == 0, "a record without a place");
	sim_window_record(s, w.lsn);
	for (uint32_t i = 0; i < n_added; i++)
		model_find(added[i].lane, added[i].seq)->published = w.lsn;
	for (uint32_t i = 0; i < n_acked; i++)
		model_find(acked[i].lane, acked[i].seq)->removed.exact = w.lsn;
	add_wait(s, w);
}

/* ---- objects ---- */

uint32_t
sim_object_bytes(uint64_t id, uint32_t version, uint8_t *to, uint32_t cap)
{
	struct rnd r = rnd_of(id * 1000003 + version);
	uint32_t n = (uint32_t)rnd(&r, rnd_chance(&r, 5) ? cap : 200);

	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint8_t)rnd_next(&r);
	return n;
}

void
sim_put_object(struct sim *s, enum object_kind kind, uint64_t id)
{
	uint8_t bytes[5000];
	uint32_t version = (uint32_t)++s->next_version;
	struct store_wait w;

	store_put(
	    s->store, kind, id, span_of(bytes, sim_object_bytes(id, version, bytes, sizeof bytes)));
	w = store_objects_wait(s->store);
	SIM_CHECK(s, w.lsn != 0 && w.durable, "a PUT waits for nothing");
	model_object_set(model_object(&s->model, kind, id), w.lsn, version);
	add_wait(s, w);
}

static void
gone_object(struct sim *s, enum object_kind kind, uint64_t id)
{
	struct store_wait w;

	store_gone(s->store, kind, id);
	w = store_objects_wait(s->store);
	SIM_CHECK(s, w.lsn != 0 && w.durable, "a GONE waits for nothing");
	model_object_set(model_object(&s->model, kind, id), w.lsn, 0);
	add_wait(s, w);
}

static void
step_object(struct sim *s)
{
	struct model_object *o =
	    s->model.objects > 0 ? &s->model.object[rnd(&s->r, s->model.objects)] : NULL;

	if (o == NULL || rnd_chance(&s->r, 40)) {
		enum object_kind kind = (enum object_kind)(1 + rnd(&s->r, OBJECT_KINDS - 1));

		if (kind != OBJECT_QUEUE)
			sim_put_object(s, kind, s->next_id++);
	} else if (model_object_version(o) == 0) {
		return;
	} else if (o->kind == OBJECT_QUEUE || rnd_chance(&s->r, 60)) {
		sim_put_object(s, o->kind, o->id);
	} else {
		gone_object(s, o->kind, o->id);
	}
}

struct lane *
sim_open_lane(struct sim *s, struct op_lane name, bool durable, struct model_lane *owner)
{
	struct lane *l = lane_open(s->store, name.queue, name.lane, durable, owner);

	if (durable && name.queue % 5 == 0)
		lane_set_share(l, s->share);
	return l;
}

static struct model_lane *
open_lane(struct sim *s, uint64_t queue, uint32_t number, bool durable)
{
	struct model_lane *l =
	    model_new_lane(&s->model, (struct op_lane){ queue, number }, durable);

	l->lane = sim_open_lane(s, l->name, durable, l);
	l->is_open = true;
	return l;
}

struct model_lane *
sim_new_queue(struct sim *s)
{
	uint64_t id = s->next_id++;

	sim_put_object(s, OBJECT_QUEUE, id);
	sim_window_new(s, id);
	if (id % 3 == 0)
		open_lane(s, id, 256 + (uint32_t)id, true);
	if (id % 5 == 0) {
		open_lane(s, id, 1, true);
		open_lane(s, id, 2, true);
	}
	return open_lane(s, id, 0, true);
}

static void
close_lane(struct model_lane *l)
{
	lane_close(&l->lane);
	l->is_open = false;
	for (uint32_t i = l->low; i < l->n; i++) {
		if (l->e[i].item != NULL)
			sim_item_unref(l->e[i].item);
		l->e[i].item = NULL;
	}
}

static void
step_queue(struct sim *s)
{
	uint32_t open = 0;
	struct model_lane *l = any_lane(s, rnd_chance(&s->r, 95));
	uint64_t queue = l == NULL ? 0 : l->name.queue;

	for (uint32_t i = 0; i < s->model.lanes; i++)
		open += s->model.lane[i]->is_open ? 1 : 0;
	if (open < SIM_LANES && (open < 3 || rnd_chance(&s->r, 60))) {
		sim_new_queue(s);
	} else if (l != NULL) {
		if (l->durable)
			gone_object(s, OBJECT_QUEUE, queue);
		sim_window_close(s, queue);
		for (uint32_t i = 0; i < s->model.lanes; i++) {
			if (s->model.lane[i]->is_open && s->model.lane[i]->name.queue == queue)
				close_lane(s->model.lane[i]);
		}
	}
}

/* ---- chains ---- */

static void
step_read(struct sim *s)
{
	struct model_lane *l = any_lane(s, rnd_chance(&s->r, 90));

	if (l != NULL)
		lane_read(l->lane, rnd_chance(&s->r, 20) ? 1 << 20 : 1 + rnd(&s->r, 3000));
}

static void
step_spill(struct sim *s)
{
	struct model_lane *l = any_lane(s, true);

	if (l != NULL)
		(void)lane_spill(
		    l->lane, rnd_chance(&s->r, 50) ? 0 : rnd(&s->r, s->cfg.lane_bytes));
}

static void
step_expire(struct sim *s)
{
	struct model_lane *l = any_lane(s, true);
	struct model_when when = model_now(&s->model, sim_last_lsn(s));
	uint64_t n, bytes = 0;

	if (l == NULL)
		return;
	for (uint32_t i = l->low; i < l->n; i++) {
		if (l->e[i].maybe && l->e[i].where == MODEL_READY)
			return;
	}
	if (l->lost > 0)
		return;
	n = lane_expire_unread(l->lane, s->now_ms, &bytes);
	for (uint32_t i = l->low; i < l->n && n > 0; i++) {
		struct model_entry *e = &l->e[i];
		uint64_t expires = s->model.msg[e->msg].expires_ms;

		if (e->where != MODEL_READY || e->item != NULL)
			continue;
		SIM_CHECK(s, expires != 0 && expires <= s->now_ms,
		    "seq %llu was dropped unread before its time", (unsigned long long)e->seq);
		model_remove(e, when);
		n--;
	}
	SIM_CHECK(s, n == 0, "%llu too many were dropped unread", (unsigned long long)n);
}

/* A queue that is not durable: it is in the store only for what does not fit into memory. */
static void
step_transient(struct sim *s)
{
	struct model_lane *l = any_lane(s, false);
	struct lane_item items[PICKS];
	struct model_entry *e;
	uint64_t first = 0;
	uint32_t index, n = 0, want = 1 + (uint32_t)rnd(&s->r, PICKS);

	if (l == NULL)
		l = open_lane(s, s->next_id++, 0, false);
	for (uint64_t k = rnd(&s->r, 20); k > 0; k--) {
		void *item = new_item(s, false, &index);

		e = model_add(l, take_seq(s, l), index, false, 0);
		e->item = item;
	}
	if (!rnd_chance(&s->r, 30))
		return;
	for (uint32_t i = l->low; i < l->n; i++) {
		if (l->e[i].where == MODEL_OUT ||
		    (l->e[i].where == MODEL_READY && l->e[i].item == NULL))
			first = l->e[i].seq + 1;
	}
	for (uint32_t i = l->low; i < l->n && n < want; i++) {
		e = &l->e[i];
		if (e->where == MODEL_READY && e->seq >= first && e->seq > l->lane->chain_end)
			items[n++] = (struct lane_item){ e->item, e->seq, e->state };
	}
	if (n > 0)
		(void)lane_spill_items(l->lane, items, n);
}

/* ---- the loop, the threads, the disk ---- */

void
sim_flush(struct sim *s)
{
	add_wait(s, store_wait_all(s->store));
	model_end_turn(&s->model, sim_last_lsn(s));
}

static void
step_sync(struct sim *s)
{
	struct model_lane *l = any_lane(s, true);

	if (l == NULL)
		return;
	l->sync.policy = (enum sync_policy)rnd(&s->r, 4);
	l->sync.ms = 1 + (uint32_t)rnd(&s->r, 100);
	lane_set_sync(l->lane, l->sync);
}

static void
step_capacity(struct sim *s)
{
	uint64_t room = s->has_room ? rnd(&s->r, s->cfg.journal_file_size * 2) : 1ULL << 32;

	disk_sim_set_capacity(s->disk, disk_sim_used(s->disk) + room);
	s->has_room = !s->has_room;
}

static void
step_worker(struct sim *s)
{
	if (!workers_step(s->workers, (unsigned)rnd(&s->r, 4)))
		(void)workers_step(s->workers, 0);
}

static void
step_events(struct sim *s)
{
	if (rnd_chance(&s->r, 70))
		workers_take(s->workers);
	(void)store_events(s->store);
	sim_take_positions(s);
}

static void
one(struct sim *s, enum sim_step step)
{
	switch (step) {
	case STEP_PUBLISH: step_publish(s); break;
	case STEP_VOLATILE: step_volatile(s); break;
	case STEP_DELIVER: step_deliver(s); break;
	case STEP_ACK: step_ack(s); break;
	case STEP_REQUEUE: step_requeue(s); break;
	case STEP_PURGE: step_purge(s); break;
	case STEP_ATOMIC: step_atomic(s); break;
	case STEP_QUEUE: step_queue(s); break;
	case STEP_OBJECT: step_object(s); break;
	case STEP_READ: step_read(s); break;
	case STEP_SPILL: step_spill(s); break;
	case STEP_EXPIRE: step_expire(s); break;
	case STEP_TURN: sim_turn(s); break;
	case STEP_JOURNAL: (void)journal_step(s->store->journal); break;
	case STEP_WORKER: step_worker(s); break;
	case STEP_EVENTS: step_events(s); break;
	case STEP_FLUSH: sim_flush(s); break;
	case STEP_SYNC: step_sync(s); break;
	case STEP_CAPACITY: step_capacity(s); break;
	case STEP_TRANSIENT: step_transient(s); break;
	case STEP_SNAPSHOT: sim_snapshot_start(s); break;
	case STEPS: break;
	}
}

void
sim_step(struct sim *s)
{
	uint64_t sum = 0, pick;
	unsigned step = 0;

	for (unsigned i = 0; i < STEPS; i++)
		sum += s->weight[i];
	pick = rnd(&s->r, sum);
	while (pick >= s->weight[step])
		pick -= s->weight[step++];
	s->steps++;
	sim_say(s, "step %u", step);
	one(s, (enum sim_step)step);
	sim_snapshot_look(s);
	if (disk_sim_is_dead(s->disk) || !rnd_chance(&s->r, 10))
		return;
	for (uint32_t i = 0; i < s->model.lanes; i++)
		sim_check_lane(s, s->model.lane[i]);
}
