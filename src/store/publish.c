/* SPDX-License-Identifier: Apache-2.0
 * Records: messages that enter lanes, and several operations that are one record. What is made while a record is open
 * has no LSN yet: slots say LSN_OPEN, and a list remembers them until store_end(). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/lane.h"
#include "store/store_priv.h"
#include "store/window_priv.h"

enum {
	FAN_OUT_MIN = 16,
	RECORD_ROOM_MIN = 4096,
	RECORD_ROOM_KEPT = 256 << 10,
	PENDINGS_MIN = 64,
	PENDINGS_KEPT = 8192
};

struct pending {
	struct lane *lane;     /* NULL: a window, or an object */
	struct window *window; /* or NULL */
	uint64_t seq;          /* or the object's id */
	enum object_kind kind;
};

/* ---- policies ---- */

struct sync_setting
store_sync_of(const struct store *s, const struct lane *l)
{
	return l->sync.policy == SYNC_POLICY_DEFAULT ? s->cfg.sync : l->sync;
}

struct sync_setting
sync_stricter(struct sync_setting a, struct sync_setting b)
{
	if (a.policy == SYNC_POLICY_MS && b.policy == SYNC_POLICY_MS)
		return a.ms < b.ms ? a : b;
	/* DEFAULT stands for nothing here. */
	if (a.policy == SYNC_POLICY_DEFAULT ||
	    (b.policy != SYNC_POLICY_DEFAULT && b.policy < a.policy))
		return b;
	return a;
}

static enum sync_need
need_of(struct sync_setting sync)
{
	switch (sync.policy) {
	case SYNC_POLICY_NEVER: return SYNC_NEVER;
	case SYNC_POLICY_MS: return SYNC_WITHIN;
	case SYNC_POLICY_ALWAYS:
	case SYNC_POLICY_DEFAULT: break;
	}
	return SYNC_NOW;
}

/* ---- records ---- */

static uint8_t *
record_room(struct store *s, uint32_t n)
{
	uint8_t *p;

	assert(n <= UINT32_MAX - s->record.n);
	if (s->record.n + n > s->record.cap) {
		uint64_t cap = s->record.cap < RECORD_ROOM_MIN ? RECORD_ROOM_MIN : s->record.cap;

		while (cap < s->record.n + n)
			cap *= 2;
		s->record.cap = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap;
		s->record.p = xrealloc(s->record.p, s->record.cap);
	}
	p = s->record.p + s->record.n;
	s->record.n += n;
	return p;
}

uint8_t *
store_append(struct store *s, uint32_t n, uint16_t ops, struct sync_setting sync, uint64_t *lsn)
{
	uint8_t *p;

	assert(!s->recovering);
	if (unlikely(s->record.is_open)) {
		*lsn = 0;
		s->record.ops += ops;
		s->record.sync = sync_stricter(s->record.sync, sync);
		return record_room(s, n);
	}
	p = journal_append(s->journal, n, ops, need_of(sync), sync.ms, lsn);
	s->last_lsn = *lsn;
	return p;
}

static void
remember(struct store *s, struct pending what)
{
	if (s->record.pendings == s->record.pendings_cap) {
		uint32_t cap = s->record.pendings_cap * 2;

		s->record.pendings_cap = cap < PENDINGS_MIN ? PENDINGS_MIN : cap;
		s->record.pending =
		    xrealloc(s->record.pending, s->record.pendings_cap * sizeof *s->record.pending);
	}
	s->record.pending[s->record.pendings++] = what;
}

void
record_remember_object(struct store *s, enum object_kind kind, uint64_t id)
{
	remember(s, (struct pending){ .seq = id, .kind = kind });
}

void
record_forget(struct store *s, const struct lane *l)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->record.pendings; i++)
		if (s->record.pending[i].lane != l)
			s->record.pending[kept++] = s->record.pending[i];
	s->record.pendings = kept;
}

void
record_remember_window(struct store *s, struct window *w)
{
	uint32_t n = s->record.pendings;

	/* Many keys of one window come after one another. */
	if (n == 0 || s->record.pending[n - 1].window != w)
		remember(s, (struct pending){ .window = w });
}

void
record_forget_window(struct store *s, const struct window *w)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->record.pendings; i++)
		if (s->record.pending[i].window != w)
			s->record.pending[kept++] = s->record.pending[i];
	s->record.pendings = kept;
}

void
record_free(struct store *s)
{
	assert(!s->record.is_open);
	free(s->record.p);
	free(s->record.pending);
	free(s->target);
}

void
store_flush(struct store *s)
{
	struct lane *l, *next;

	for (l = TAILQ_FIRST(&s->dirty); l != NULL; l = next) {
		next = TAILQ_NEXT(l, dirty_link);
		lane_flush(l);
	}
}

void
store_begin(struct store *s)
{
	assert(!s->record.is_open && !s->recovering);
	store_flush(s);
	s->record.is_open = true;
	s->record.n = s->record.ops = s->record.pendings = 0;
	s->record.sync = (struct sync_setting){ 0 };
}

/* What was made in the record stands where `wait` says. */
static void
settle_pending(struct store *s, struct store_wait wait)
{
	uint64_t lsn = wait.lsn;

	for (uint32_t i = 0; i < s->record.pendings; i++) {
		const struct pending *w = &s->record.pending[i];
		struct slot *slot;

		if (w->window != NULL) {
			window_settle(w->window, wait);
			continue;
		}
		if (w->lane == NULL) {
			object_set_lsn(s, w->kind, w->seq, lsn);
			continue;
		}
		slot = lane_slot(w->lane, w->seq);
		if (slot != NULL && slot->lsn == LSN_OPEN)
			lane_set_lsn(w->lane, slot, lsn);
		lane_set_evidence(w->lane, lsn);
	}
	s->record.pendings = 0;
}

static void
give_room_back(struct store *s)
{
	if (s->record.cap > RECORD_ROOM_KEPT) {
		free(s->record.p);
		s->record.p = NULL;
		s->record.cap = 0;
	}
	if (s->record.pendings_cap > PENDINGS_KEPT) {
		free(s->record.pending);
		s->record.pending = NULL;
		s->record.pendings_cap = 0;
	}
}

/* The header's count is for those who look at a journal. Acknowledgements that a transaction brings about by itself
 * (consumers that need not acknowledge) may make more operations than it has room for. */
static uint16_t
ops_count(uint32_t ops)
{
	return ops < UINT16_MAX ? (uint16_t)ops : UINT16_MAX;
}

struct store_wait
store_end(struct store *s)
{
	struct store_wait wait = { 0 };
	struct sync_setting sync;
	uint8_t *p;

	assert(s->record.is_open);
	store_flush(s);
	s->record.is_open = false;
	if (s->record.ops == 0)
		return wait;
	sync = s->record.sync;
	p = store_append(s, s->record.n, ops_count(s->record.ops), sync, &wait.lsn);
	memcpy(p, s->record.p, s->record.n);
	wait.durable = sync.policy == SYNC_POLICY_ALWAYS;
	settle_pending(s, wait);
	give_room_back(s);
	return wait;
}

bool
store_record_is_open(const struct store *s)
{
	return s->record.is_open;
}

/* ---- messages ---- */

static struct op_target *
target_room(struct store *s, uint32_t n)
{
	if (n > s->targets_cap) {
		s->targets_cap = n < FAN_OUT_MIN ? FAN_OUT_MIN : n;
		s->target = xrealloc(s->target, s->targets_cap * sizeof *s->target);
	}
	return s->target;
}

/* After a message came in: is the lane over its bounds? A span far wider than what lives in it counts too: an old
 * message that stays would make the ring grow for ever, and goes to the chain. True: it lags. */
static inline bool
look_at_bounds(struct store *s, struct lane *l)
{
	bool is_over = lane_is_over(s, l, 1);

	if (unlikely(is_over || lane_is_sparse(l)) && l->spill == NULL)
		spill_look(s, l);
	/* Messages come in faster than a job takes them out: who publishes is to wait. */
	if (unlikely(is_over) && !l->lags && lane_is_over(s, l, 2))
		spill_look_at_lag(l);
	if (unlikely(l->lags))
		s->last_lag = l->name;
	return l->lags;
}

/* Each an operation behind the MSG. */
static void
enter_keys(const struct window_key *key, uint32_t keys, struct store_wait wait, uint8_t *p)
{
	for (uint32_t i = 0; i < keys; i++) {
		assert(window_is_durable(key[i].window));
		p = window_encode(key[i].window, &key[i].key, p);
		window_enter(key[i].window, &key[i].key, wait);
	}
}

struct store_wait
store_publish_keys(struct store *s, const struct lane_place *place, uint32_t n, void *item,
    const struct window_key *key, uint32_t keys)
{
	struct op_msg m = { 0 };
	struct op_target *target = target_room(s, n);
	struct sync_setting sync = { 0 };
	struct store_wait wait = { 0 };
	uint64_t lsn;
	size_t size;
	uint8_t *p;

	assert(n > 0);
	for (uint32_t i = 0; i < n; i++) {
		const struct lane *l = place[i].lane;

		assert(l->durable && place[i].seq >= l->next_seq);
		target[i] = (struct op_target){ l->name.queue, place[i].seq, l->name.lane };
		sync = sync_stricter(sync, store_sync_of(s, l));
	}
	s->ops->describe(item, &m);
	m.target = target;
	m.targets = n;
	m.state = (struct op_state){ 0 };
	size = op_msg_size(&m) + keys * op_dedup_size(1);
	assert(size <= UINT32_MAX - RECORD_HEADER);
	p = store_append(s, (uint32_t)size, (uint16_t)(1 + keys), sync, &lsn);
	p = op_msg_encode(&m, p);
	wait = (struct store_wait){ .lsn = lsn, .durable = sync.policy == SYNC_POLICY_ALWAYS };
	if (unlikely(keys > 0))
		enter_keys(key, keys, wait, p);
	for (uint32_t i = 0; i < n; i++) {
		struct lane *l = place[i].lane;

		lane_enter(l, place[i].seq, item, lsn != 0 ? lsn : LSN_OPEN);
		if (unlikely(lsn == 0))
			remember(s, (struct pending){ .lane = l, .seq = place[i].seq });
		wait.lags |= look_at_bounds(s, l);
	}
	return wait;
}

struct store_wait
store_publish(struct store *s, const struct lane_place *place, uint32_t n, void *item)
{
	return store_publish_keys(s, place, n, item, NULL, 0);
}

bool
lane_add_volatile(struct lane *l, uint64_t seq, void *item)
{
	assert(l->durable && seq >= l->next_seq);
	lane_put_slot(l, seq, item, 0);
	return look_at_bounds(l->store, l);
}
