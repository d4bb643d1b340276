/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/platter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SECTOR = 512, PAGE = 4096 };

/* A write or a change of length that was not synced yet: whole sectors, as the cache had them after it. */
struct change {
	uint64_t at, n, size; /* size: of the file after it */
	uint8_t *data;        /* owned; NULL: the length only */
};

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- bytes ---- */

void
bytes_resize(struct bytes *b, uint64_t n)
{
	if (n > b->cap) {
		uint64_t cap = (n * 3 / 2 + PAGE) / SECTOR * SECTOR;

		b->p = xrealloc(b->p, cap);
		memset(b->p + b->cap, 0, cap - b->cap);
		b->cap = cap;
	}
	if (n < b->n)
		memset(b->p + n, 0, b->n - n);
	b->n = n;
}

void
bytes_set(struct bytes *b, const struct bytes *from)
{
	bytes_resize(b, 0);
	bytes_resize(b, from->n);
	if (from->n > 0)
		memcpy(b->p, from->p, from->n);
}

/* ---- what was written ---- */

void
inode_drop(struct inode *i)
{
	for (uint32_t k = 0; k < i->changes; k++)
		free(i->change[k].data);
	i->changes = 0;
}

void
inode_changed(struct inode *i, uint64_t at, uint64_t n)
{
	struct change c = { .size = i->cache.n };

	if (i->changes == i->cap) {
		i->cap = i->cap * 2 + 8;
		i->change = xrealloc(i->change, i->cap * sizeof *i->change);
	}
	if (n > 0) {
		c.at = at / SECTOR * SECTOR;
		c.n = (at + n + SECTOR - 1) / SECTOR * SECTOR - c.at;
		c.data = xcalloc(1, c.n);
		memcpy(c.data, i->cache.p + c.at, min_u64(c.n, i->cache.n - c.at));
	}
	i->change[i->changes++] = c;
}

uint32_t
settle_pick(struct rnd *r, enum settle how, uint32_t n, uint32_t prefix)
{
	switch (how) {
	case SETTLE_NOTHING: return 0;
	case SETTLE_ALL: return n;
	case SETTLE_PREFIX: return prefix;
	case SETTLE_MOST: return rnd_chance(r, 90) ? n : (uint32_t)rnd(r, n + 1);
	case SETTLE_FEW: return rnd_chance(r, 90) ? 0 : (uint32_t)rnd(r, n + 1);
	default: return (uint32_t)rnd(r, n + 1);
	}
}

/* One unit (sector or page) at `at` of the platter after the first `seen` changes. */
static void
settle_unit(struct inode *i, uint64_t at, uint64_t unit, uint32_t seen)
{
	for (uint32_t k = 0; k < seen; k++) {
		const struct change *c = &i->change[k];
		uint64_t from = c->at > at ? c->at : at;
		uint64_t to = min_u64(c->at + c->n, at + unit);

		/* What was cut off reads as zeros if the file grows again. */
		if (c->size < at + unit)
			memset(i->platter.p + (c->size > at ? c->size : at), 0,
			    at + unit - (c->size > at ? c->size : at));
		if (c->data != NULL && from < to)
			memcpy(i->platter.p + from, c->data + (from - c->at), to - from);
	}
}

void
inode_settle(struct inode *i, struct rnd *r, enum settle how, const struct bytes *stale)
{
	uint32_t prefix = (uint32_t)rnd(r, i->changes + 1), seen;
	uint64_t unit = rnd_chance(r, 50) ? SECTOR : PAGE, size = i->platter.n, most = size,
	         old = size;

	if (i->changes == 0)
		return;
	for (uint32_t k = 0; k < i->changes; k++) {
		uint64_t end = i->change[k].at + i->change[k].n;

		most = most > end ? most : end;
		most = most > i->change[k].size ? most : i->change[k].size;
	}
	bytes_resize(&i->platter, (most + PAGE - 1) / PAGE * PAGE);
	for (uint64_t at = 0; at < most; at += unit) {
		seen = settle_pick(r, how, i->changes, prefix);
		if (seen == 0 && stale != NULL && at >= PAGE && at >= old && at < stale->n)
			memcpy(i->platter.p + at, stale->p + at, min_u64(unit, stale->n - at));
		else
			settle_unit(i, at, unit, seen);
	}
	seen = settle_pick(r, how, i->changes, prefix);
	if (seen > 0)
		size = i->change[seen - 1].size;
	bytes_resize(&i->platter, size);
	inode_drop(i);
}

void
inode_write_out(struct inode *i)
{
	for (uint32_t k = 0; k < i->changes; k++) {
		const struct change *c = &i->change[k];

		bytes_resize(&i->platter, c->size);
		if (c->data != NULL && c->at < c->size)
			memcpy(i->platter.p + c->at, c->data, min_u64(c->n, c->size - c->at));
	}
	inode_drop(i);
}

void
inode_free(struct inode *i)
{
	inode_drop(i);
	free(i->change);
	free(i->cache.p);
	free(i->platter.p);
	free(i);
}

void
inode_flip(struct inode *i, uint64_t at, unsigned bit)
{
	uint8_t mask = (uint8_t)(1u << bit);

	assert(at < i->cache.n);
	i->cache.p[at] ^= mask;
	if (at < i->platter.n)
		i->platter.p[at] ^= mask;
	for (uint32_t k = 0; k < i->changes; k++) {
		const struct change *c = &i->change[k];

		if (c->data != NULL && at >= c->at && at - c->at < c->n)
			c->data[at - c->at] ^= mask;
	}
}
