/* SPDX-License-Identifier: Apache-2.0
 * Private to the store: what a window is. */
#ifndef STORE_WINDOW_PRIV_H
#define STORE_WINDOW_PRIV_H

#include <sys/queue.h>

#include "store/keys.h"
#include "store/map.h"
#include "store/store.h"
#include "store/window.h"

struct window_run {
	uint64_t first, last;	/* those below keys.low count no more */
	uint64_t lsn;		/* of a record in the file that has them all; held. LSN_OPEN */
};

struct window {
	struct store *store;	/* borrowed; NULL: a broker without one */
	uint64_t owner;
	bool durable, is_linked;
	struct keys keys;
	uint64_t counted;	/* in stats.window_keys */
	struct store_wait last;	/* of its newest record */
	struct window_run *run;	/* owned; ascending, apart */
	uint32_t runs, runs_cap;
	UT_hash_handle hh;	/* store->windows by owner: durable ones */
	TAILQ_ENTRY(window) dying_link;	/* store->dying_windows */
};

struct window *window_find(const struct store *s, uint64_t owner);
bool windows_turn(struct store *s);	/* frees some of what was closed; true: there is more */
void windows_linked(struct store *s);	/* those that nobody asked for go */
void windows_free(struct store *s);

/* ---- publish.c: a key in the record of its message ---- */
uint8_t *window_encode(const struct window *w, const struct op_key *key, uint8_t *to);
void window_enter(struct window *w, const struct op_key *key, struct store_wait wait);
void window_settle(struct window *w, struct store_wait wait);	/* the open record is appended */

/* ---- the roll ---- */
/* Keys whose newest record stands in that file: from the first one on that has a number from *first to `last`, as many as
 * follow one another, at most `most`. *first: its number. */
uint32_t window_list(const struct window *w, uint64_t *first, uint64_t last, uint32_t file, struct op_key *key,
    uint32_t most);
void window_append_again(struct window *w, uint64_t first, const struct op_key *key, uint32_t n);

#endif
