/* SPDX-License-Identifier: Apache-2.0
 * Windows in the simulation: every second queue has one, and messages bring keys into some of them. A key that was in the
 * window and whose record is in the journal has to be there after a cut; one whose record is not, must not be. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_priv.h"
#include "store/window_priv.h"
#include "tests/sim/sim.h"

enum { SIZE_LEAST = 5, SIZES = 200 };

static struct model_window *
find(struct sim *s, uint64_t queue)
{
	for (uint32_t i = 0; i < s->model.windows; i++)
		if (s->model.window[i].queue == queue)
			return &s->model.window[i];
	return NULL;
}

static struct op_key
key_of(const struct model_window *w, uint64_t at_ms)
{
	struct rnd r = rnd_of(w->queue * 1000003 + at_ms);

	return (struct op_key){ .hash = { rnd_next(&r), rnd_next(&r) }, .at_ms = at_ms };
}

void
sim_window_new(struct sim *s, uint64_t queue)
{
	struct model_window *w = find(s, queue);
	struct rnd r = rnd_of(queue);

	if (queue % 2 != 0)
		return;
	if (w == NULL) {
		s->model.window =
		    xrealloc(s->model.window, (s->model.windows + 1) * sizeof *s->model.window);
		w = &s->model.window[s->model.windows++];
		*w = (struct model_window){ .queue = queue };
	}
	w->n = 0; /* an id whose first life was cut off */
	w->low = w->next = 1;
	w->size = (uint32_t)(SIZE_LEAST + rnd(&r, SIZES));
	w->w = window_open(s->store, queue, w->size, true);
}

void
sim_window_close(struct sim *s, uint64_t queue)
{
	struct model_window *w = find(s, queue);

	if (w != NULL && w->w != NULL)
		window_close(&w->w);
}

/* ---- work ---- */

static void
note(struct model_window *w, uint64_t at_ms, uint64_t lsn, bool is_volatile)
{
	uint64_t seq = w->next++;

	/* Where a record was damaged there may be one of this number, which is known to be lost. */
	while (w->n > 0 && w->key[w->n - 1].seq >= seq)
		w->n--;
	if (w->n == w->cap) {
		w->cap = w->cap * 2 + 16;
		w->key = xrealloc(w->key, w->cap * sizeof *w->key);
	}
	w->key[w->n++] = (struct model_key){
		.seq = seq, .at_ms = at_ms, .lsn = lsn, .is_volatile = is_volatile
	};
	if (w->next - w->low > w->size)
		w->low = w->next - w->size;
}

static void
drop_oldest(struct model_window *w)
{
	uint32_t i = 0;

	if (window_count(w->w) == 0)
		return;
	window_drop_oldest(w->w);
	while (i < w->n && (w->key[i].seq < w->low || w->key[i].is_lost))
		i++;
	w->low = i < w->n ? w->key[i].seq + 1 : w->next;
}

uint32_t
sim_window_keys(struct sim *s, struct window_key key[SIM_KEYS])
{
	struct rnd *r = &s->window_r;
	uint32_t n = 0, at;

	if (s->model.windows == 0)
		return 0;
	at = (uint32_t)rnd(r, s->model.windows);
	for (uint32_t i = 0; i < s->model.windows && n < SIM_KEYS && rnd_chance(r, 80); i++) {
		struct model_window *w = &s->model.window[(at + i) % s->model.windows];
		struct op_key k = key_of(w, ++s->next_key);

		if (w->w == NULL)
			continue;
		if (rnd_chance(r, 5))
			drop_oldest(w);
		if (rnd_chance(r, 5)) {
			note(w, k.at_ms, 0, true);
			window_add(w->w, &k);
			continue;
		}
		note(w, k.at_ms, UINT64_MAX, false);
		key[n++] = (struct window_key){ w->w, k };
	}
	return n;
}

void
sim_window_record(struct sim *s, uint64_t lsn)
{
	for (uint32_t i = 0; i < s->model.windows; i++) {
		struct model_window *w = &s->model.window[i];

		for (uint32_t k = w->n;
		     k-- > 0 && (w->key[k].lsn == UINT64_MAX || w->key[k].is_volatile);)
			if (w->key[k].lsn == UINT64_MAX)
				w->key[k].lsn = lsn;
	}
}

/* ---- after a cut ---- */

void
sim_window_doubt(struct sim *s, const struct op_dedup *d)
{
	struct model_window *w = find(s, d->owner);

	for (uint32_t i = 0; w != NULL && i < w->n; i++)
		if (w->key[i].seq >= d->first && w->key[i].seq - d->first < d->keys)
			w->key[i].is_doubtful = true;
}

void
sim_window_drop(struct sim *s)
{
	for (uint32_t i = 0; i < s->model.windows; i++)
		s->model.window[i].w = NULL;
}

static struct model_key *
key_at(struct model_window *w, uint64_t seq)
{
	for (uint32_t i = w->n; i-- > 0;)
		if (w->key[i].seq == seq)
			return &w->key[i];
	return NULL;
}

static void
settle(struct sim *s, struct model_window *w)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		if (w->key[i].is_volatile || !model_is_in(&s->model, w->key[i].lsn))
			continue;
		w->key[kept] = w->key[i];
		w->key[kept++].lsn = 0;
	}
	w->n = kept;
}

static void
check(struct sim *s, struct model_window *w, bool unknown)
{
	const struct keys *have;
	struct op_key got;
	struct model_key *k;

	settle(s, w);
	w->w = window_open(s->store, w->queue, w->size, true);
	have = &w->w->keys;
	for (uint32_t i = 0; i < w->n; i++) {
		k = &w->key[i];
		k->is_lost = !keys_at(have, k->seq, &got);
		SIM_CHECK(s,
		    !k->is_lost || k->seq < w->low || k->is_doubtful || unknown || k->was_lost,
		    "window %llu: key %llu is lost; it begins at %llu, the model's at %llu",
		    (unsigned long long)w->queue, (unsigned long long)k->seq,
		    (unsigned long long)have->low, (unsigned long long)w->low);
		k->was_lost = k->is_lost;
		k->is_doubtful = false;
	}
	for (uint64_t seq = have->low; seq < have->next; seq++) {
		struct op_key want;

		if (!keys_at(have, seq, &got))
			continue;
		k = key_at(w, seq);
		SIM_CHECK(s, k != NULL && k->at_ms == got.at_ms, "window %llu: key %llu came back",
		    (unsigned long long)w->queue, (unsigned long long)seq);
		want = key_of(w, got.at_ms);
		SIM_CHECK(s, memcmp(&want, &got, sizeof got) == 0, "window %llu: another key %llu",
		    (unsigned long long)w->queue, (unsigned long long)seq);
		SIM_CHECK(s, window_has(w->w, got.hash, got.at_ms - 1), "a key that is not found");
	}
	w->low = have->low;
	w->next = have->next;
}

void
sim_window_check(struct sim *s)
{
	for (uint32_t i = 0; i < s->model.windows; i++) {
		struct model_window *w = &s->model.window[i];
		const struct model_object *o = model_object(&s->model, OBJECT_QUEUE, w->queue);

		if (model_object_version(o) > 0)
			check(s, w, o->unknown);
		else
			settle(s, w); /* where its GONE is damaged later it is back */
	}
}

/* Everything goes, so that nothing holds a file any more. */
void
sim_window_drain(struct sim *s)
{
	for (uint32_t i = 0; i < s->model.windows; i++) {
		struct model_window *w = &s->model.window[i];

		while (w->w != NULL && window_count(w->w) > 0)
			window_drop_oldest(w->w);
		w->low = w->next;
	}
}
