/* SPDX-License-Identifier: Apache-2.0
 * Windows: see the header. What the journal has of a window is kept as runs: numbers after one another whose newest
 * record stands in the same file, which the run holds. Keys that are in memory only are in no run. */
#define XXH_INLINE_ALL
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "store/lane.h"
#include "store/store_priv.h"
#include "store/window_priv.h"

enum { RUNS_MIN = 4 };

/* ---- runs ---- */

/* The first one that does not end before seq. */
static uint32_t
runs_find(const struct window *w, uint64_t seq)
{
	uint32_t from = 0, to = w->runs;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (w->run[mid].last < seq)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static void
run_insert(struct window *w, uint32_t at, uint64_t first, uint64_t last, uint64_t lsn)
{
	if (w->runs == w->runs_cap) {
		w->runs_cap = w->runs_cap * 2 < RUNS_MIN ? RUNS_MIN : w->runs_cap * 2;
		w->run = xrealloc(w->run, w->runs_cap * sizeof *w->run);
	}
	memmove(w->run + at + 1, w->run + at, (w->runs - at) * sizeof *w->run);
	w->runs++;
	w->run[at] = (struct window_run){ .first = first, .last = last };
	lane_move_hold(w->store, &w->run[at].lsn, lsn);
}

static void
runs_remove(struct window *w, uint32_t at, uint32_t n)
{
	if (n == 0)
		return;
	for (uint32_t i = at; i < at + n; i++)
		lane_move_hold(w->store, &w->run[i].lsn, 0);
	memmove(w->run + at, w->run + at + n, (w->runs - at - n) * sizeof *w->run);
	w->runs -= n;
}

static bool
is_same_file(const struct window_run *a, const struct window_run *b)
{
	return lsn_file(a->lsn) == lsn_file(b->lsn);
}

/* With the ones on both sides, if they stand in the same file. */
static void
run_join(struct window *w, uint32_t at)
{
	if (at + 1 < w->runs && is_same_file(&w->run[at], &w->run[at + 1]) &&
	    w->run[at].last + 1 == w->run[at + 1].first) {
		w->run[at].last = w->run[at + 1].last;
		runs_remove(w, at + 1, 1);
	}
	if (at > 0 && is_same_file(&w->run[at - 1], &w->run[at]) &&
	    w->run[at - 1].last + 1 == w->run[at].first) {
		w->run[at - 1].last = w->run[at].last;
		runs_remove(w, at, 1);
	}
}

/* The record at lsn is the newest one of first..last. */
static void
runs_set(struct window *w, uint64_t first, uint64_t last, uint64_t lsn)
{
	struct window_run *newest = w->runs > 0 ? &w->run[w->runs - 1] : NULL;
	uint32_t at, n = 0;

	if (newest != NULL && newest->last + 1 == first && lsn_file(newest->lsn) == lsn_file(lsn)) {
		newest->last = last;
		return;
	}
	at = runs_find(w, first);
	if (at < w->runs && w->run[at].first < first) {
		uint64_t end = w->run[at].last;

		w->run[at].last = first - 1;
		if (end > last)
			run_insert(w, at + 1, last + 1, end, w->run[at].lsn);
		at++;
	}
	while (at + n < w->runs && w->run[at + n].last <= last)
		n++;
	runs_remove(w, at, n);
	if (at < w->runs && w->run[at].first <= last)
		w->run[at].first = last + 1;
	run_insert(w, at, first, last, lsn);
	run_join(w, at);
}

/* What has left the window needs its record no more. */
static void
runs_trim(struct window *w)
{
	uint32_t n = 0;

	while (n < w->runs && w->run[n].last < w->keys.low)
		n++;
	runs_remove(w, 0, n);
}

/* ---- windows ---- */

static void
count_keys(struct window *w)
{
	if (w->store == NULL || !w->durable)
		return;
	w->store->stats.window_keys += w->keys.count;
	w->store->stats.window_keys -= w->counted;
	w->counted = w->keys.count;
}

static struct window *
window_new(struct store *s, uint64_t owner, uint32_t size, bool durable)
{
	struct window *w = xcalloc(1, sizeof *w);

	mem_add(MEM_WINDOWS, sizeof *w);
	w->store = s;
	w->owner = owner;
	w->durable = durable;
	keys_init(&w->keys, size);
	if (s != NULL && durable)
		HASH_ADD(hh, s->windows, owner, sizeof w->owner, w);
	return w;
}

struct window *
window_find(const struct store *s, uint64_t owner)
{
	struct window *w;

	HASH_FIND(hh, s->windows, &owner, sizeof owner, w);
	return w;
}

struct window *
window_open(struct store *s, uint64_t owner, uint32_t size, bool durable)
{
	struct window *w = s != NULL && durable ? window_find(s, owner) : NULL;

	assert(size > 0 && size <= OP_DEDUP_MAX);
	if (w == NULL)
		w = window_new(s, owner, size, durable && s != NULL);
	w->keys.size = size;
	w->is_linked = true;
	return w;
}

static bool
free_some(struct window *w)
{
	if (keys_free_some(&w->keys))
		return true;
	mem_sub(MEM_WINDOWS, sizeof *w);
	free(w->run);
	free(w);
	return false;
}

void
window_close(struct window **wp)
{
	struct window *w = *wp;
	struct store *s = w->store;

	*wp = NULL;
	if (s == NULL) {
		while (free_some(w))
			continue;
		return;
	}
	if (w->durable) {
		runs_remove(w, 0, w->runs);
		record_forget_window(s, w);
		HASH_DEL(s->windows, w);
		s->stats.window_keys -= w->counted;
	}
	TAILQ_INSERT_TAIL(&s->dying_windows, w, dying_link);
}

bool
windows_turn(struct store *s)
{
	struct window *w = TAILQ_FIRST(&s->dying_windows), *next;

	if (w == NULL)
		return false;
	next = TAILQ_NEXT(w, dying_link);
	TAILQ_REMOVE(&s->dying_windows, w, dying_link);
	if (!free_some(w))
		return next != NULL;
	TAILQ_INSERT_HEAD(&s->dying_windows, w, dying_link);
	return true;
}

void
windows_linked(struct store *s)
{
	struct window *w, *next;

	HASH_ITER(hh, s->windows, w, next)
	if (!w->is_linked)
		window_close(&w);
}

void
windows_free(struct store *s)
{
	struct window *w, *next;

	HASH_ITER(hh, s->windows, w, next)
	window_close(&w);
	while (windows_turn(s))
		continue;
}

void
window_hash(const struct store *s, uint8_t kind, struct span key, uint64_t hash[2])
{
	uint64_t seed = (s != NULL ? s->id.seed : 0) + kind * 0x9E3779B97F4A7C15ull;
	XXH128_hash_t h = XXH3_128bits_withSeed(key.n > 0 ? (const void *)key.p : "", key.n, seed);

	hash[0] = h.low64;
	hash[1] = h.high64;
}

bool
window_is_durable(const struct window *w)
{
	return w->durable;
}

bool
window_has(const struct window *w, const uint64_t hash[2], uint64_t after_ms)
{
	return keys_have(&w->keys, hash, after_ms);
}

void
window_add(struct window *w, const struct op_key *key)
{
	(void)keys_put(&w->keys, keys_next(&w->keys), key);
	runs_trim(w);
	count_keys(w);
}

struct store_wait
window_wait(const struct window *w)
{
	if (w->store == NULL || !store_must_wait(w->store, w->last))
		return (struct store_wait){ 0 };
	return w->last;
}

uint64_t
window_count(const struct window *w)
{
	return w->keys.count;
}

uint64_t
window_oldest_ms(const struct window *w)
{
	struct op_key key;

	return keys_oldest(&w->keys, &key) ? key.at_ms : UINT64_MAX;
}

void
window_drop_oldest(struct window *w)
{
	keys_drop_oldest(&w->keys);
	runs_trim(w);
	count_keys(w);
}

/* ---- DEDUP ---- */

uint8_t *
window_encode(const struct window *w, const struct op_key *key, uint8_t *to)
{
	struct op_dedup d = { .owner = w->owner,
		.first = keys_next(&w->keys),
		.size = w->keys.size,
		.keys = 1,
		.key = key };

	return op_dedup_encode(&d, to);
}

/* The record of a new key stands at lsn; LSN_OPEN: in the open one. */
void
window_enter(struct window *w, const struct op_key *key, struct store_wait wait)
{
	uint64_t seq = keys_next(&w->keys), lsn = wait.lsn != 0 ? wait.lsn : LSN_OPEN;

	(void)keys_put(&w->keys, seq, key);
	runs_set(w, seq, seq, lsn);
	runs_trim(w);
	count_keys(w);
	if (lsn == LSN_OPEN)
		record_remember_window(w->store, w);
	else
		w->last = wait;
}

void
window_settle(struct window *w, struct store_wait wait)
{
	for (uint32_t i = w->runs; i-- > 0;) {
		if (w->run[i].lsn != LSN_OPEN)
			continue;
		lane_move_hold(w->store, &w->run[i].lsn, wait.lsn);
		run_join(w, i);
	}
	w->last = wait;
}

void
apply_dedup(struct store *s, const struct op_dedup *d, uint64_t lsn)
{
	struct window *w = window_find(s, d->owner);
	uint64_t first = d->first, last = d->first + d->keys - 1;
	struct op_key key;

	if (w == NULL)
		w = window_new(s, d->owner, d->size, true);
	w->keys.size = d->size;
	for (uint32_t i = 0; i < d->keys; i++) {
		op_key(d->raw, i, &key);
		(void)keys_put(&w->keys, d->first + i, &key);
	}
	runs_trim(w);
	if (first < w->keys.low)
		first = w->keys.low;
	if (first <= last)
		runs_set(w, first, last, lsn);
	count_keys(w);
}

/* ---- the roll ---- */

uint32_t
window_list(const struct window *w, uint64_t *first, uint64_t last, uint32_t file,
    struct op_key *key, uint32_t most)
{
	uint32_t n = 0;

	for (uint32_t i = runs_find(w, *first); i < w->runs && n == 0; i++) {
		const struct window_run *run = &w->run[i];
		uint64_t seq = run->first > w->keys.low ? run->first : w->keys.low;

		if (seq < *first)
			seq = *first;
		if (run->lsn == LSN_OPEN || lsn_file(run->lsn) != file)
			continue;
		for (; n < most && seq <= run->last && (n > 0 || seq <= last); seq++) {
			if (keys_at(&w->keys, seq, &key[n]))
				n++;
			else if (n > 0)
				break;
		}
		if (n > 0)
			*first = seq - n;
	}
	return n;
}

void
window_append_again(struct window *w, uint64_t first, const struct op_key *key, uint32_t n)
{
	static const struct sync_setting soon = { SYNC_POLICY_MS, 1000 };
	struct op_dedup d = {
		.owner = w->owner, .first = first, .size = w->keys.size, .keys = n, .key = key
	};
	uint64_t lsn;
	uint8_t *p = store_append(w->store, (uint32_t)op_dedup_size(n), 1, soon, &lsn);

	assert(lsn != 0);
	op_dedup_encode(&d, p);
	runs_set(w, first, first + n - 1, lsn);
	runs_trim(
	    w); /* of the run that they were in, what was before them may be no key any more */
}
