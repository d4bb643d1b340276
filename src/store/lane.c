/* SPDX-License-Identifier: Apache-2.0
 * Lanes: which there are, and the ring of what lives in memory beyond the chain. A slot that is not live is all
 * zero, so the ring needs no clearing when its window moves. It grows by doubling and goes when the lane is empty; how
 * large it was is remembered, so that a queue that is emptied each turn costs one allocation a turn. */
#include "store/lane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/slab.h"
#include "store/store_priv.h"

enum {
	RING_MIN = 4,
	RING_SMALL = 64, /* not made smaller */
	RING_HINT_MAX = 4096,
	STATES_MIN = 16,
};
#define RING_MAX ((uint64_t)1 << 31)

static const struct op_state no_state;

/* ---- which there are ---- */

static uint64_t
hash_name(struct op_lane name)
{
	uint64_t h = (name.queue + 1) * 0x9E3779B97F4A7C15ull ^ name.lane * 0xD6E8FEB86659FD93ull;

	return h ^ h >> 32;
}

struct lane *
lane_find(struct store *s, struct op_lane name)
{
	struct lane *l = s->found;
	struct bucket_node *n;

	/* Replay and roll ask for the same one again and again. */
	if (l != NULL && l->name.queue == name.queue && l->name.lane == name.lane)
		return l;
	for (n = buckets_first(&s->lanes_by_name, hash_name(name)); n != NULL;
	     n = buckets_next(n)) {
		l = container_of(n, struct lane, by_name);
		if (l->name.queue == name.queue && l->name.lane == name.lane) {
			s->found = l;
			return l;
		}
	}
	return NULL;
}

static void
take_out(struct store *s, struct lane *l)
{
	spill_lag_ends(l);
	TAILQ_REMOVE(&s->lanes, l, all_link);
	buckets_remove(&s->lanes_by_name, &l->by_name);
	s->found = NULL;
}

struct lane *
lane_get(struct store *s, struct op_lane name)
{
	struct lane *l = lane_find(s, name);

	if (l != NULL)
		return l;
	l = xcalloc(1, sizeof *l);
	mem_add(MEM_TOPOLOGY, sizeof *l);
	l->store = s;
	l->name = name;
	l->durable = true;
	l->owns_items = s->recovering;
	l->next_seq = 1;
	if (s->recovering && name.lane < LANE_LATER && name.lane > s->top_lane)
		s->top_lane = name.lane;
	TAILQ_INSERT_TAIL(&s->lanes, l, all_link);
	buckets_add(&s->lanes_by_name, &l->by_name, hash_name(name));
	return l;
}

struct lane *
lane_open(struct store *s, uint64_t queue, uint32_t number, bool durable, void *owner)
{
	struct lane *l = lane_get(s, (struct op_lane){ queue, number });

	assert(!l->is_linked && !s->recovering);
	l->is_linked = true;
	l->durable = durable;
	l->owner = owner;
	return l;
}

/* ---- bounds that several share ---- */

struct lane_share *
lane_share_new(void)
{
	struct lane_share *sh = xcalloc(1, sizeof *sh);

	TAILQ_INIT(&sh->lanes);
	return sh;
}

void
lane_share_free(struct lane_share **shp)
{
	assert(*shp == NULL || TAILQ_EMPTY(&(*shp)->lanes));
	free(*shp);
	*shp = NULL;
}

void
lane_set_share(struct lane *l, struct lane_share *sh)
{
	struct lane_share *old = l->share;

	if (old != NULL) {
		TAILQ_REMOVE(&old->lanes, l, share_link);
		old->live -= l->live;
		old->bytes -= l->bytes;
		old->spills -= l->spill != NULL;
	}
	l->share = sh;
	if (sh == NULL)
		return;
	TAILQ_INSERT_TAIL(&sh->lanes, l, share_link);
	sh->live += l->live;
	sh->bytes += l->bytes;
	sh->spills += l->spill != NULL;
}

static inline void
count_shared(struct lane *l, uint64_t live, uint64_t bytes)
{
	if (unlikely(l->share != NULL)) {
		l->share->live += live;
		l->share->bytes += bytes;
	}
}

bool
lane_is_there(struct store *s, uint64_t queue, uint32_t number)
{
	return lane_find(s, (struct op_lane){ queue, number }) != NULL;
}

void
lane_close(struct lane **lp)
{
	struct lane *l = *lp;
	struct store *s = l->store;

	assert(!l->is_closed);
	*lp = NULL;
	record_forget(s, l);
	lane_forget_merged(l);
	lane_empty(l);
	lane_set_share(l, NULL);
	segments_close(l, l->durable ? s->objects_lsn : 0);
	take_out(s, l);
	l->is_closed = true;
	l->owner = NULL;
	if (l->jobs == 0)
		lane_free(l);
}

void
lane_unuse(struct lane *l)
{
	assert(l->jobs > 0);
	if (--l->jobs == 0 && l->is_closed)
		lane_free(l);
}

void
lane_free(struct lane *l)
{
	assert(l->jobs == 0);
	lane_forget_merged(l);
	lane_empty(l);
	lane_set_share(l, NULL);
	if (!l->is_closed)
		take_out(l->store, l);
	for (uint32_t i = 0; i < l->segments; i++)
		segment_free(l->segment[i]);
	free(l->segment);
	rangeset_fini(&l->acks);
	rangeset_fini(&l->changed);
	mem_sub(MEM_TOPOLOGY, sizeof *l);
	free(l);
}

void *
lane_owner(const struct lane *l)
{
	return l->owner;
}

uint32_t
lane_number(const struct lane *l)
{
	return l->name.lane;
}

void
lane_set_sync(struct lane *l, struct sync_setting sync)
{
	l->sync = sync;
}

uint64_t
lane_next_seq(const struct lane *l)
{
	return l->next_seq;
}

uint64_t
lane_delivered(const struct lane *l)
{
	return l->delivered;
}

/* ---- holds ---- */

static void
hold(struct store *s, uint64_t lsn)
{
	if (lsn != LSN_OPEN)
		journal_hold(s->journal, lsn);
}

static void
drop(struct store *s, uint64_t lsn)
{
	if (lsn != LSN_OPEN)
		journal_drop(s->journal, lsn);
}

void
lane_move_hold(struct store *s, uint64_t *place, uint64_t lsn)
{
	uint64_t old = *place;

	*place = lsn;
	if (lsn_file(old) == lsn_file(lsn))
		return;
	hold(s, lsn);
	drop(s, old);
}

void
lane_set_evidence(struct lane *l, uint64_t lsn)
{
	lane_move_hold(l->store, &l->evidence, lsn);
}

/* ---- the ring ---- */

static uint64_t
ring_size(const struct lane *l)
{
	return l->ring == NULL ? 0 : (uint64_t)l->mask + 1;
}

static uint64_t
power_of_two(uint64_t n)
{
	uint64_t size = RING_MIN;

	while (size < n)
		size *= 2;
	return size;
}

/* Small ones come from the slabs: many lanes use theirs for a moment only, and the heap would go through what all of them
 * gave back at once. */
static struct slot *
ring_new(uint64_t size, uint32_t *home)
{
	size_t n = size * sizeof(struct slot);
	struct slot *ring;

	if (n > SLAB_ITEM_MAX) {
		*home = SLAB_HEAP;
		return xcalloc(size, sizeof *ring);
	}
	ring = slab_xalloc(n, home);
	memset(ring, 0, n);
	return ring;
}

static void
ring_give_back(struct lane *l)
{
	size_t n = ring_size(l) * sizeof *l->ring;

	if (l->ring == NULL)
		return;
	if (l->ring_home != SLAB_HEAP) {
		slab_free(l->ring, l->ring_home, n);
		return;
	}
	mem_sub(MEM_ENTRIES, n);
	free(l->ring);
}

/* Moves what lives into a ring of `size` slots, zeroed. */
static void
ring_set(struct lane *l, struct slot *ring, uint32_t home, uint64_t size)
{
	if (l->live > 0)
		for (uint64_t seq = l->low; seq < l->high; seq++)
			ring[seq & (size - 1)] = l->ring[seq & l->mask];
	ring_give_back(l);
	l->ring = ring;
	l->ring_home = home;
	l->mask = (uint32_t)(size - 1);
	if (home == SLAB_HEAP)
		mem_add(MEM_ENTRIES, size * sizeof *ring);
}

static void
ring_grow(struct lane *l, uint64_t need)
{
	struct slot *ring;
	uint64_t size;
	uint32_t home;

	if (need < l->ring_hint)
		need = l->ring_hint;
	l->ring_hint = 0;
	assert(need <= RING_MAX);
	size = power_of_two(need);
	ring = ring_new(size, &home);
	ring_set(l, ring, home, size);
}

static void
ring_free(struct lane *l)
{
	assert(l->live == 0);
	/* Half of it, so that one burst is not remembered for ever. */
	l->ring_hint = (l->mask < RING_HINT_MAX ? l->mask + 1 : RING_HINT_MAX) / 2;
	ring_give_back(l);
	l->ring = NULL;
	l->mask = 0;
	l->low = l->high = 0;
	free(l->state);
	l->state = NULL;
	l->states = l->states_cap = 0;
}

void
lane_shrink(struct lane *l)
{
	uint64_t size = ring_size(l), need = l->high - l->low;
	struct slot *ring;
	uint32_t home;

	/* What is dead at the far end does not count. */
	while (need > 0 && l->ring[(l->low + need - 1) & l->mask].item == NULL)
		need--;
	l->high = l->low + need;
	if (size <= RING_SMALL || need * 8 > size)
		return;
	size = power_of_two(need * 2);
	ring = ring_new(size, &home);
	ring_set(l, ring, home, size);
}

/* How many slots there have to be to have seq in the ring, too. */
static uint64_t
span_with(const struct lane *l, uint64_t seq)
{
	uint64_t low = l->live > 0 && l->low < seq ? l->low : seq;
	uint64_t high = l->live > 0 && l->high > seq ? l->high : seq + 1;

	return high - low;
}

bool
lane_is_near(const struct lane *l, uint64_t seq)
{
	return span_with(l, seq) <= RING_MAX;
}

bool
lane_try_room(struct lane *l, uint64_t seq)
{
	uint64_t span = span_with(l, seq), size;
	struct slot *ring;
	uint32_t home;

	if (span <= ring_size(l))
		return true;
	if (span > RING_MAX)
		return false;
	size = power_of_two(span);
	if (size * sizeof *ring <= SLAB_ITEM_MAX) {
		ring = ring_new(size, &home);
	} else {
		ring = try_malloc(size * sizeof *ring);
		if (ring == NULL)
			return false;
		memset(ring, 0, size * sizeof *ring);
		home = SLAB_HEAP;
	}
	ring_set(l, ring, home, size);
	return true;
}

/* What of it only the journal has. */
static void
count_journalled(struct lane *l, uint64_t bytes)
{
	l->journalled++;
	l->journalled_bytes += bytes;
	l->store->journal_live.messages++;
	l->store->stats.journal_live_bytes += bytes;
}

static void
discount_journalled(struct lane *l, uint64_t messages, uint64_t bytes)
{
	assert(l->journalled >= messages && l->journalled_bytes >= bytes);
	l->journalled -= messages;
	l->journalled_bytes -= bytes;
	l->store->journal_live.messages -= messages;
	l->store->stats.journal_live_bytes -= bytes;
}

struct slot *
lane_slot(const struct lane *l, uint64_t seq)
{
	struct slot *slot;

	if (seq < l->low || seq >= l->high)
		return NULL;
	slot = &l->ring[seq & l->mask];
	return slot->item != NULL ? slot : NULL;
}

void
lane_put_slot(struct lane *l, uint64_t seq, void *item, uint64_t lsn)
{
	struct store *s = l->store;
	uint64_t bytes = s->ops->body_size(item);
	uint64_t low = l->live > 0 && l->low < seq ? l->low : seq;
	uint64_t high = l->live > 0 && l->high > seq ? l->high : seq + 1;
	struct slot *slot;

	assert(seq >= 1 && seq <= SEQ_TOP && item != NULL);
	if (high - low > ring_size(l))
		ring_grow(l, high - low);
	l->low = low;
	l->high = high;
	slot = &l->ring[seq & l->mask];
	assert(slot->item == NULL);
	slot->item = item;
	slot->lsn = lsn;
	l->live++;
	l->bytes += bytes;
	count_shared(l, 1, bytes);
	if (lsn != 0) {
		count_journalled(l, bytes);
		hold(s, lsn);
	}
	if (seq >= l->next_seq)
		l->next_seq = seq + 1;
}

void
lane_set_lsn(struct lane *l, struct slot *slot, uint64_t lsn)
{
	uint64_t old = slot->lsn;

	assert(slot->item != NULL && lsn != 0);
	if (old == 0)
		count_journalled(l, l->store->ops->body_size(slot->item));
	slot->lsn = lsn;
	hold(l->store, lsn);
	drop(l->store, old);
}

static void
release(struct lane *l, struct slot *slot)
{
	if (slot->lsn != 0)
		drop(l->store, slot->lsn);
	if (l->owns_items)
		l->store->ops->unref(slot->item);
	*slot = (struct slot){ 0 };
}

void
lane_clear(struct lane *l, uint64_t seq, struct slot *slot, uint64_t bytes)
{
	assert(l->live > 0 && l->bytes >= bytes);
	if (slot->lsn != 0)
		discount_journalled(l, 1, bytes);
	release(l, slot);
	count_shared(l, (uint64_t)-1, -bytes);
	l->bytes -= bytes;
	if (--l->live == 0) {
		assert(l->bytes == 0 && l->journalled == 0);
		ring_free(l);
		return;
	}
	if (seq == l->low)
		do
			l->low++;
		while (l->ring[l->low & l->mask].item == NULL);
}

void
lane_empty(struct lane *l)
{
	if (l->live > 0) {
		for (uint64_t seq = l->low; seq < l->high; seq++)
			if (l->ring[seq & l->mask].item != NULL)
				release(l, &l->ring[seq & l->mask]);
		discount_journalled(l, l->journalled, l->journalled_bytes);
		count_shared(l, -l->live, -l->bytes);
		l->live = l->bytes = 0;
		ring_free(l);
	}
	lane_move_hold(l->store, &l->evidence, 0);
	lane_move_hold(l->store, &l->mark, 0);
}

void
lane_clear_slot(struct lane *l, uint64_t seq)
{
	struct slot *slot = lane_slot(l, seq);

	if (slot != NULL)
		lane_clear(l, seq, slot, l->store->ops->body_size(slot->item));
}

void
lane_clear_through(struct lane *l, uint64_t last)
{
	while (l->live > 0 && l->low <= last)
		lane_clear_slot(l, l->low);
}

struct sums {
	uint64_t live, bytes, journalled, journalled_bytes;
};

static struct sums
sums_of(const struct lane *l, uint64_t from, uint64_t to)
{
	struct sums sum = { 0 };

	for (uint64_t seq = from; seq < to; seq++) {
		const struct slot *slot = lane_slot(l, seq);
		uint64_t bytes;

		if (slot == NULL)
			continue;
		bytes = l->store->ops->body_size(slot->item);
		sum.live++;
		sum.bytes += bytes;
		if (slot->lsn == 0)
			continue;
		sum.journalled++;
		sum.journalled_bytes += bytes;
	}
	return sum;
}

/* Of those that stay. A body's size is asked of the fewer ones only, as each is a miss of the cache: with 100,000 of
 * them a purge would keep everybody waiting. */
static struct sums
sums_before(const struct lane *l, uint64_t first)
{
	struct sums sum;

	if (first - l->low <= l->high - first)
		return sums_of(l, l->low, first);
	sum = sums_of(l, first, l->high);
	return (struct sums){ l->live - sum.live, l->bytes - sum.bytes,
		l->journalled - sum.journalled, l->journalled_bytes - sum.journalled_bytes };
}

void
lane_clear_from(struct lane *l, uint64_t first, struct lane_cut *out)
{
	struct sums stays;

	*out = (struct lane_cut){ 0 };
	if (l->live == 0 || first >= l->high)
		return;
	if (first < l->low)
		first = l->low;
	stays = sums_before(l, first);
	for (uint64_t seq = first; seq < l->high; seq++) {
		struct slot *slot = lane_slot(l, seq);

		if (slot == NULL)
			continue;
		if (slot->lsn != 0) {
			out->range.first = out->count == 0 ? seq : out->range.first;
			out->range.last = seq;
			out->count++;
		}
		release(l, slot);
	}
	assert(out->count == l->journalled - stays.journalled);
	out->bytes = l->journalled_bytes - stays.journalled_bytes;
	discount_journalled(l, out->count, out->bytes);
	count_shared(l, stays.live - l->live, stays.bytes - l->bytes);
	l->live = stays.live;
	l->bytes = stays.bytes;
	l->high = first;
	if (l->live == 0)
		ring_free(l);
}

/* ---- states: a table with linear probing; the dead are left in it until it is made anew ---- */

static uint32_t
state_home(const struct lane *l, uint64_t seq)
{
	return (uint32_t)(seq * 0x9e3779b97f4a7c15u >> 32) & (l->states_cap - 1);
}

/* Where seq is or would be. */
static struct state_of *
state_place(const struct lane *l, uint64_t seq)
{
	uint32_t i = state_home(l, seq);

	while (l->state[i].seq != 0 && l->state[i].seq != seq)
		i = (i + 1) & (l->states_cap - 1);
	return &l->state[i];
}

static void
states_rebuild(struct lane *l)
{
	struct state_of *old = l->state;
	uint32_t cap = l->states_cap, alive = 0, room = STATES_MIN;

	for (uint32_t i = 0; i < cap; i++)
		alive += old[i].seq != 0 && lane_slot(l, old[i].seq) != NULL;
	while (room < (alive + 1) * 2)
		room *= 2;
	l->state = xcalloc(room, sizeof *l->state);
	l->states_cap = room;
	l->states = alive;
	for (uint32_t i = 0; i < cap; i++)
		if (old[i].seq != 0 && lane_slot(l, old[i].seq) != NULL)
			*state_place(l, old[i].seq) = old[i];
	free(old);
}

const struct op_state *
lane_state(const struct lane *l, uint64_t seq)
{
	const struct state_of *at;

	if (l->states == 0)
		return &no_state;
	at = state_place(l, seq);
	return at->seq != 0 ? &at->state : &no_state;
}

void
lane_put_state(struct lane *l, uint64_t seq, const struct op_state *state)
{
	struct state_of *at;

	assert(lane_slot(l, seq) != NULL);
	if (l->states == 0 && !state->redelivered && state->deliveries == 0 && state->acquired == 0)
		return;
	if ((uint64_t)l->states * 4 >= (uint64_t)l->states_cap * 3)
		states_rebuild(l);
	at = state_place(l, seq);
	if (at->seq == 0)
		l->states++;
	*at = (struct state_of){ seq, *state };
}
