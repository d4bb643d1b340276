/* SPDX-License-Identifier: Apache-2.0
 * The keys that a window remembers, by age: each under a number (seq) that rises, with the time when it came. One that is
 * `size` numbers older than the newest leaves, so a damaged file cannot make it grow either. 28 bytes a key in small
 * chunks, which come and go at both ends, and a hash over them that grows and shrinks by a bucket at a time: no call
 * takes longer because many are there. At most 32 bytes a key in all, once there are some thousands. */
#ifndef STORE_KEYS_H
#define STORE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/op.h"

struct key_entry {	/* in words, so that it takes 28 bytes */
	uint32_t key[4];
	uint32_t at[2];	/* ms since 1970, the low word first; 0: nothing stands here */
	uint32_t next;	/* low word of the seq that comes next in its bucket; 0: none */
};
struct key_chunk;
struct key_buckets;

struct keys {
	uint64_t low, next;	/* seqs [low, next); low == next: there are none */
	uint64_t count;		/* of them: those that stand for a key */
	uint32_t size;
	struct key_chunk **chunk;	/* owned: chunk[from + i] has the seqs from (first_chunk + i) * its length; may be NULL */
	uint32_t from, chunks, chunks_cap;
	uint64_t first_chunk;
	struct key_buckets **bucket;	/* owned: linear hashing */
	uint32_t buckets, bucket_blocks, bucket_cap;
};

void keys_init(struct keys *k, uint32_t size);
/* Frees some of it; true: there is more. Nothing else may be called in between, and keys_init() afterwards. */
bool keys_free_some(struct keys *k);

/* The seq for the next new key. Some are left out. */
uint64_t keys_next(const struct keys *k);
/* at_ms > 0. What is too old for the size is left out; what stands there already stays. False: it was left out. */
bool keys_put(struct keys *k, uint64_t seq, const struct op_key *key);
/* Was it put with a time later than after_ms? */
bool keys_have(const struct keys *k, const uint64_t hash[2], uint64_t after_ms);
/* What stands under that seq; false: nothing. */
bool keys_at(const struct keys *k, uint64_t seq, struct op_key *out);
/* The oldest one; false: there is none. */
bool keys_oldest(const struct keys *k, struct op_key *out);
void keys_drop_oldest(struct keys *k);	/* there is one */

#endif
