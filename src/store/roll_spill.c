/* SPDX-License-Identifier: Apache-2.0
 * Lanes that hold so much of a journal file that they are spilled and not moved: noted while the file is gone through,
 * then spilled, the biggest first, a few at a time, small ones not many a second. */
#include "store/map.h"
#include "store/roll_priv.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
	SPILLS = 4,          /* at a time */
	FILES_A_SECOND = 50, /* at most, for lanes under ROLL_LIMIT */
	SKIPPED = 16         /* lanes that cannot be spilled now, a turn */
};

struct lane_key {
	uint64_t queue, lane;
};

/* A lane that is to be spilled so that F can go. */
struct wanted {
	struct lane_key key;
	uint64_t through; /* its last seq seen in F */
	TAILQ_ENTRY(wanted) link;
	UT_hash_handle hh;
};

static struct lane_key
key_of(const struct lane *l)
{
	return (struct lane_key){ .queue = l->name.queue, .lane = l->name.lane };
}

static struct lane *
lane_of(const struct roll *r, const struct wanted *w)
{
	return lane_find(
	    r->store, (struct op_lane){ .queue = w->key.queue, .lane = (uint32_t)w->key.lane });
}

static unsigned
bucket_of(const struct lane *l)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(lane_weight(l) >> 10 | 1);

	return bits < ROLL_BUCKETS ? bits : ROLL_BUCKETS - 1;
}

void
roll_want_spill(struct roll *r, const struct lane *l, uint64_t seq)
{
	struct lane_key key = key_of(l);
	struct wanted *w;

	HASH_FIND(hh, r->wanted, &key, sizeof key, w);
	if (w == NULL) {
		w = xcalloc(1, sizeof *w);
		w->key = key;
		HASH_ADD(hh, r->wanted, key, sizeof key, w);
		TAILQ_INSERT_TAIL(&r->bucket[bucket_of(l)], w, link);
	}
	if (seq > w->through)
		w->through = seq;
}

static void
forget_wanted(struct roll *r, struct wanted_list *list, struct wanted *w)
{
	TAILQ_REMOVE(list, w, link);
	HASH_DELETE(hh, r->wanted, w);
	free(w);
}

void
roll_forget_wanted(struct roll *r)
{
	struct wanted *w;

	for (unsigned i = 0; i < ROLL_BUCKETS; i++)
		while ((w = TAILQ_FIRST(&r->bucket[i])) != NULL)
			forget_wanted(r, &r->bucket[i], w);
	while ((w = TAILQ_FIRST(&r->running)) != NULL)
		forget_wanted(r, &r->running, w);
	r->spills = 0;
}

/* Is nothing of it in F any more? */
static bool
is_spilled(const struct lane *l, const struct wanted *w)
{
	return l == NULL || l->is_closed || l->chain_end >= w->through || l->low > w->through;
}

/* Those whose job has ended: done, or put back because it failed or was another one, that began before. */
static void
look_at_running(struct roll *r)
{
	struct wanted *w, *next;
	struct lane *l;

	for (w = TAILQ_FIRST(&r->running); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		l = lane_of(r, w);
		if (is_spilled(l, w)) {
			r->spills--;
			forget_wanted(r, &r->running, w);
		} else if (l->spill == NULL) {
			r->spills--;
			TAILQ_REMOVE(&r->running, w, link);
			TAILQ_INSERT_TAIL(&r->bucket[bucket_of(l)], w, link);
		}
	}
}

/* Would spilling it make a file, and a small one? */
static bool
makes_small_file(const struct lane *l)
{
	return lane_weight(l) <= ROLL_LIMIT &&
	       (l->segments == 0 || l->segment[l->segments - 1]->is_closed);
}

/* False: not now. */
static bool
start_spill(struct roll *r, struct wanted_list *list, struct wanted *w)
{
	struct lane *l = lane_of(r, w);

	if (is_spilled(l, w)) {
		forget_wanted(r, list, w);
		return true;
	}
	if (l->spill == NULL) {
		bool is_small = makes_small_file(l);

		if ((is_small && r->files >= FILES_A_SECOND) ||
		    !spill_start(l, w->through, NULL, 0))
			return false;
		r->files += is_small;
	}
	TAILQ_REMOVE(list, w, link);
	TAILQ_INSERT_TAIL(&r->running, w, link);
	r->spills++;
	return true;
}

static void
start_spills(struct roll *r)
{
	struct wanted *w, *next;
	unsigned skipped = 0;

	if (r->second != r->store->now_ms / 1000) {
		r->second = r->store->now_ms / 1000;
		r->files = 0;
	}
	for (unsigned i = ROLL_BUCKETS; i-- > 0;)
		for (w = TAILQ_FIRST(&r->bucket[i]); w != NULL; w = next) {
			next = TAILQ_NEXT(w, link);
			if (r->spills >= SPILLS || roll_slice_is_over(r))
				return;
			r->work++;
			if (!start_spill(r, &r->bucket[i], w) && ++skipped == SKIPPED)
				return;
		}
}

void
roll_spill_on(struct roll *r)
{
	look_at_running(r);
	start_spills(r);
}
