/* SPDX-License-Identifier: Apache-2.0
 * Keys by age and by hash: see the header.
 *
 * A bucket is a list through the entries, of which the newest comes first. With n buckets, 2^L <= n < 2^(L+1), a key
 * belongs to the bucket of its low L+1 bits, or, where that is not there yet, of its low L bits; so bucket n is made
 * from, and goes back into, one other. */
#include "store/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	CHUNK = 128,  /* entries */
	BLOCK = 256,  /* buckets */
	LOAD_MAX = 2, /* keys for each bucket; under a half of that it shrinks */
	STEPS = 2,    /* buckets made or taken away by a call */
	FREE_MAX = 256,
	CAP_MIN = 4
};

struct key_chunk {
	uint32_t live;
	struct key_entry e[CHUNK];
};

struct key_buckets {
	uint32_t head[BLOCK];
};

static void *
counted(size_t n)
{
	mem_add(MEM_WINDOWS, n);
	return xcalloc(1, n);
}

static void
release(void *p, size_t n)
{
	mem_sub(MEM_WINDOWS, n);
	free(p);
}

/* ---- entries ---- */

static inline struct key_entry *
entry_of(const struct keys *k, uint64_t seq)
{
	uint64_t i = seq / CHUNK - k->first_chunk;
	struct key_chunk *c = i < k->chunks ? k->chunk[k->from + i] : NULL;

	return c != NULL ? &c->e[seq % CHUNK] : NULL;
}

static inline uint64_t
time_of(const struct key_entry *e)
{
	return (uint64_t)e->at[1] << 32 | e->at[0];
}

static inline uint64_t
low_hash(const struct key_entry *e)
{
	uint64_t h;

	memcpy(&h, e->key, sizeof h);
	return h;
}

static inline bool
is_key(const struct key_entry *e, const uint64_t hash[2])
{
	return memcmp(e->key, hash, sizeof e->key) == 0;
}

/* The whole of a seq of which `next` has the low word: it is not below low, and fewer than 2^32 are kept. */
static inline uint64_t
whole_seq(const struct keys *k, uint32_t word)
{
	return k->low + (uint32_t)(word - (uint32_t)k->low);
}

/* ---- chunks ---- */

static void
grow_list(struct keys *k)
{
	uint32_t cap = k->chunks_cap;

	if (k->from > 0) {
		memmove(k->chunk, k->chunk + k->from, k->chunks * sizeof *k->chunk);
		k->from = 0;
	}
	if (k->chunks < cap / 2)
		return;
	k->chunks_cap = cap * 2 < CAP_MIN ? CAP_MIN : cap * 2;
	mem_add(MEM_WINDOWS, (k->chunks_cap - cap) * sizeof *k->chunk);
	k->chunk = xrealloc(k->chunk, k->chunks_cap * sizeof *k->chunk);
}

/* low <= seq < low + size */
static struct key_chunk *
make_chunk(struct keys *k, uint64_t seq)
{
	uint64_t i;

	if (k->chunks == 0)
		k->first_chunk = k->low / CHUNK;
	i = seq / CHUNK - k->first_chunk;
	while (k->chunks <= i) {
		if (k->from + k->chunks == k->chunks_cap)
			grow_list(k);
		k->chunk[k->from + k->chunks++] = NULL;
	}
	if (k->chunk[k->from + i] == NULL)
		k->chunk[k->from + i] = counted(sizeof(struct key_chunk));
	return k->chunk[k->from + i];
}

/* Chunks that end below low, and the last one once nothing lives. */
static void
drop_chunks(struct keys *k)
{
	while (k->chunks > 0 && (k->count == 0 || (k->first_chunk + 1) * CHUNK <= k->low)) {
		if (k->chunk[k->from] != NULL)
			release(k->chunk[k->from], sizeof(struct key_chunk));
		k->from++;
		k->chunks--;
		k->first_chunk++;
	}
	if (k->chunks == 0)
		k->from = 0;
}

/* ---- buckets ---- */

static inline uint32_t *
head_of(const struct keys *k, uint32_t i)
{
	return &k->bucket[i / BLOCK]->head[i % BLOCK];
}

static inline uint32_t
top_power(uint32_t n)
{
	return (uint32_t)1 << (31 - __builtin_clz(n));
}

static inline uint32_t
bucket_of(const struct keys *k, uint64_t hash)
{
	uint32_t power = top_power(k->buckets), i = (uint32_t)hash & (2 * power - 1);

	return i < k->buckets ? i : i & (power - 1);
}

static void
add_block(struct keys *k)
{
	if (k->bucket_blocks == k->bucket_cap) {
		uint32_t cap = k->bucket_cap * 2 < CAP_MIN ? CAP_MIN : k->bucket_cap * 2;

		mem_add(MEM_WINDOWS, (cap - k->bucket_cap) * sizeof *k->bucket);
		k->bucket = xrealloc(k->bucket, cap * sizeof *k->bucket);
		k->bucket_cap = cap;
	}
	k->bucket[k->bucket_blocks++] = counted(sizeof(struct key_buckets));
}

/* One bucket more: what belongs to it from now on leaves the one that it was in. */
static void
split(struct keys *k)
{
	uint32_t new = k->buckets, power = top_power(new), *to, *from, word;

	if (new == k->bucket_blocks * BLOCK)
		add_block(k);
	k->buckets++;
	from = head_of(k, new - power);
	to = head_of(k, new);
	*to = 0;
	while ((word = *from) != 0) {
		struct key_entry *e = entry_of(k, whole_seq(k, word));

		if (((uint32_t)low_hash(e) & (2 * power - 1)) == new) {
			*from = e->next;
			e->next = 0;
			*to = word;
			to = &e->next;
		} else {
			from = &e->next;
		}
	}
}

/* One bucket less. */
static void
merge(struct keys *k)
{
	uint32_t last = --k->buckets, *from = head_of(k, last), *to;

	to = head_of(k, last - top_power(last));
	while (*to != 0)
		to = &entry_of(k, whole_seq(k, *to))->next;
	*to = *from;
	if (k->buckets <= (k->bucket_blocks - 1) * BLOCK)
		release(k->bucket[--k->bucket_blocks], sizeof(struct key_buckets));
}

static void
fit_buckets(struct keys *k)
{
	for (unsigned i = 0; i < STEPS && k->count > (uint64_t)LOAD_MAX * k->buckets; i++)
		split(k);
	for (unsigned i = 0;
	     i < STEPS && k->buckets > 1 && k->count < (uint64_t)LOAD_MAX * k->buckets / 2; i++)
		merge(k);
}

static void
link_entry(struct keys *k, uint64_t seq, struct key_entry *e)
{
	uint32_t *head = head_of(k, bucket_of(k, low_hash(e)));

	e->next = *head;
	*head = (uint32_t)seq;
}

static void
unlink_entry(struct keys *k, uint64_t seq, const struct key_entry *e)
{
	uint32_t *at = head_of(k, bucket_of(k, low_hash(e)));

	while (*at != (uint32_t)seq) {
		assert(*at != 0);
		at = &entry_of(k, whole_seq(k, *at))->next;
	}
	*at = e->next;
}

/* ---- the whole ---- */

void
keys_init(struct keys *k, uint32_t size)
{
	*k = (struct keys){ .low = 1, .next = 1, .size = size };
}

bool
keys_free_some(struct keys *k)
{
	for (unsigned i = 0; i < FREE_MAX && k->chunks > 0; i++) {
		struct key_chunk *c = k->chunk[k->from + --k->chunks];

		if (c != NULL)
			release(c, sizeof *c);
	}
	for (unsigned i = 0; i < FREE_MAX && k->bucket_blocks > 0; i++)
		release(k->bucket[--k->bucket_blocks], sizeof(struct key_buckets));
	if (k->chunks > 0 || k->bucket_blocks > 0)
		return true;
	release(k->chunk, k->chunks_cap * sizeof *k->chunk);
	release(k->bucket, k->bucket_cap * sizeof *k->bucket);
	*k = (struct keys){ .low = 1, .next = 1 };
	return false;
}

uint64_t
keys_next(const struct keys *k)
{
	/* A low word of 0 stands for none. */
	return (uint32_t)k->next != 0 ? k->next : k->next + 1;
}

/* low moves up to `to`, over what stands there. */
static void
raise_low(struct keys *k, uint64_t to)
{
	while (k->low < to && k->count > 0) {
		struct key_entry *e = entry_of(k, k->low);

		if (e == NULL) {
			k->low = (k->low / CHUNK + 1) * CHUNK;
			continue;
		}
		if (time_of(e) != 0) {
			unlink_entry(k, k->low, e);
			e->at[0] = e->at[1] = 0;
			k->count--;
			fit_buckets(k);
		}
		k->low++;
	}
	k->low = to;
	drop_chunks(k);
}

bool
keys_put(struct keys *k, uint64_t seq, const struct op_key *key)
{
	struct key_entry *e;

	assert(key->at_ms > 0);
	if (seq < k->low || (uint32_t)seq == 0)
		return false;
	if (k->buckets == 0) {
		add_block(k);
		k->buckets = 1;
	}
	if (seq >= k->next) {
		k->next = seq + 1;
		if (k->next - k->low > k->size)
			raise_low(k, k->next - k->size);
	}
	e = &make_chunk(k, seq)->e[seq % CHUNK];
	if (time_of(e) != 0)
		return true;
	memcpy(e->key, key->hash, sizeof e->key);
	e->at[0] = (uint32_t)key->at_ms;
	e->at[1] = (uint32_t)(key->at_ms >> 32);
	link_entry(k, seq, e);
	k->count++;
	fit_buckets(k);
	return true;
}

bool
keys_have(const struct keys *k, const uint64_t hash[2], uint64_t after_ms)
{
	uint32_t word;

	if (k->count == 0)
		return false;
	for (word = *head_of(k, bucket_of(k, hash[0])); word != 0;) {
		const struct key_entry *e = entry_of(k, whole_seq(k, word));

		if (is_key(e, hash) && time_of(e) > after_ms)
			return true;
		word = e->next;
	}
	return false;
}

bool
keys_at(const struct keys *k, uint64_t seq, struct op_key *out)
{
	const struct key_entry *e;

	if (seq < k->low || seq >= k->next)
		return false;
	e = entry_of(k, seq);
	if (e == NULL || time_of(e) == 0)
		return false;
	memcpy(out->hash, e->key, sizeof e->key);
	out->at_ms = time_of(e);
	return true;
}

/* low may stand at a seq that was left out, or whose record was damaged. */
bool
keys_oldest(const struct keys *k, struct op_key *out)
{
	uint64_t seq = k->low;

	if (k->count == 0)
		return false;
	while (!keys_at(k, seq, out))
		seq = entry_of(k, seq) == NULL ? (seq / CHUNK + 1) * CHUNK : seq + 1;
	return true;
}

void
keys_drop_oldest(struct keys *k)
{
	uint64_t seq = k->low;
	struct op_key key;

	assert(k->count > 0);
	while (!keys_at(k, seq, &key))
		seq = entry_of(k, seq) == NULL ? (seq / CHUNK + 1) * CHUNK : seq + 1;
	raise_low(k, seq + 1);
}
