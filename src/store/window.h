/* SPDX-License-Identifier: Apache-2.0
 * Windows: which keys came lately, so that what comes twice can be told. A window belongs to an object (a queue, an
 * exchange) and remembers its last `size` keys, as 128-bit hashes with the time when they came. What is too old in time is
 * the owner's to say: entries leave in their order only.
 *
 * The keys of a durable window stand in the record of the message that brought them (store_publish_keys): after a crash
 * both are there or neither is. They stay in the journal as long as the window has them: when a file is rolled, those of
 * it that are left are appended again, many in one operation. Under which number a key stands says all about its place,
 * so the order of the records does not matter. */
#ifndef STORE_WINDOW_H
#define STORE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "store/op.h"

struct store;
struct store_wait;
struct window;

/* The window that was recovered for this owner, or an empty one. A window that is not durable is in memory only, as all
 * are where s is NULL. size: 1 to OP_DEDUP_MAX. */
struct window *window_open(struct store *s, uint64_t owner, uint32_t size, bool durable);
/* Its keys go. Of a durable one after store_gone() of its owner. */
void window_close(struct window **wp);

/* The hash of a key; kind tells apart keys of different types. The seed is the store's, and stays. */
void window_hash(const struct store *s, uint8_t kind, struct span key, uint64_t hash[2]);

bool window_is_durable(const struct window *w);
/* Did it come later than after_ms? */
bool window_has(const struct window *w, const uint64_t hash[2], uint64_t after_ms);
/* It is remembered in memory only: its message does not survive either. */
void window_add(struct window *w, const struct op_key *key);
/* For who is told that his message came before: until this is reached it may still be lost with its key. */
struct store_wait window_wait(const struct window *w);

uint64_t window_count(const struct window *w);
uint64_t window_oldest_ms(const struct window *w);	/* when the oldest one came; UINT64_MAX: it is empty */
void window_drop_oldest(struct window *w);

#endif
