/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/disk_sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/disk_sim_names.h"
#include "tests/sim/platter.h"
#include "tests/sim/rnd.h"

enum { HEADER = 4096, GRAVES = 4 };

struct disk_file {
	struct disk_sim *d;
	struct inode *inode;
	bool writable;
};

struct disk_sim {
	struct disk base;
	struct rnd rnd;
	uint64_t capacity;
	struct inode *inodes;
	struct entries now, durable;
	struct name_change *pending; /* owned */
	uint32_t pendings, pending_cap;
	struct bytes grave
	    [GRAVES]; /* what files held that were removed: a new file may show it where it was not synced */
	uint32_t graves;
	uint64_t cut_in, fail_sync_in, fail_write_in, fail_read_in;
	int sync_error; /* of the next sync that fails; 0: -EIO */
	bool cut_counts_reads, is_dead;
	unsigned open_files;
	struct disk_sim_counts counts;
};

static struct disk_sim *
sim_of(const struct disk *d)
{
	return (struct disk_sim *)(uintptr_t)d;
}

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- files ---- */

static void
bury(struct disk_sim *d, const struct bytes *b)
{
	if (b->n > HEADER)
		bytes_set(&d->grave[d->graves++ % GRAVES], b);
}

/* What was in a removed file, now and then. */
static const struct bytes *
stale(struct disk_sim *d, struct rnd *r)
{
	if (d->graves == 0 || !rnd_chance(r, 20))
		return NULL;
	return &d->grave[rnd(r, min_u64(d->graves, GRAVES))];
}

static struct inode *
inode_new(struct disk_sim *d, bool is_folder)
{
	struct inode *i = xcalloc(1, sizeof *i);

	i->is_folder = is_folder;
	i->next = d->inodes;
	d->inodes = i;
	return i;
}

/* ---- names ---- */

static void
name_changed(
    struct disk_sim *d, enum name_kind kind, const char *name, const char *to, struct inode *inode)
{
	struct name_change c = { .kind = kind, .inode = inode };

	names_copy(c.name, name);
	if (to != NULL)
		names_copy(c.to, to);
	if (d->pendings == d->pending_cap) {
		d->pending_cap = d->pending_cap * 2 + 8;
		d->pending = xrealloc(d->pending, d->pending_cap * sizeof *d->pending);
	}
	d->pending[d->pendings++] = c;
	names_change(&d->now, &c);
}

/* ---- failing ---- */

enum fate { FATE_FINE, FATE_CUT, FATE_DEAD };

static enum fate
begin(struct disk_sim *d, bool is_read)
{
	if (d->is_dead)
		return FATE_DEAD;
	if (is_read && !d->cut_counts_reads)
		return FATE_FINE;
	d->counts.ops++;
	if (d->cut_in > 0 && --d->cut_in == 0) {
		d->is_dead = true;
		return FATE_CUT;
	}
	return FATE_FINE;
}

static bool
is_due(uint64_t *in)
{
	return *in > 0 && --*in == 0;
}

/* An operation on names: done at all? A cut may come before or behind it. */
static int
name_fate(struct disk_sim *d, bool *done)
{
	enum fate f = begin(d, false);

	*done = f == FATE_FINE || (f == FATE_CUT && rnd_chance(&d->rnd, 50));
	return f == FATE_FINE ? 0 : -EIO;
}

/* ---- the operations ---- */

static int
sim_open(struct disk *base, const char *name, enum disk_open how, struct disk_file **out)
{
	struct disk_sim *d = sim_of(base);
	struct entry *e = names_find(&d->now, name);
	struct inode *i = e == NULL ? NULL : e->inode;
	struct disk_file *f;
	bool done;
	int rc = 0;

	if (how == DISK_CREATE && i == NULL && names_have_folder(&d->now, name)) {
		rc = name_fate(d, &done);
		if (done)
			name_changed(d, NAME_SET, name, NULL, i = inode_new(d, false));
	} else if (begin(d, true) != FATE_FINE) {
		rc = -EIO;
	} else if (how == DISK_CREATE) {
		rc = i == NULL ? -ENOENT : -EEXIST;
	} else if (i == NULL || i->is_folder) {
		rc = i == NULL ? -ENOENT : -EISDIR;
	}
	if (rc != 0)
		return rc;
	f = xcalloc(1, sizeof *f);
	f->d = d;
	f->inode = i;
	f->writable = how != DISK_READ;
	i->handles++;
	d->open_files++;
	*out = f;
	return 0;
}

static void
sim_close(struct disk_file *f)
{
	f->inode->handles--;
	f->d->open_files--;
	free(f);
}

static ssize_t
sim_read(struct disk_file *f, void *to, size_t n, uint64_t at)
{
	const struct bytes *b = &f->inode->cache;

	if (begin(f->d, true) != FATE_FINE)
		return -EIO;
	if (is_due(&f->d->fail_read_in)) {
		f->d->counts.failed_reads++;
		return -EIO;
	}
	if (at < f->inode->bad_end && at + n > f->inode->bad)
		return -EIO;
	if (at >= b->n)
		return 0;
	n = (size_t)min_u64(n, b->n - at);
	memcpy(to, b->p + at, n);
	return (ssize_t)n;
}

/* Room for a file of this length? */
static bool
has_room(struct disk_sim *d, const struct inode *i, uint64_t size)
{
	if (size <= i->cache.n || disk_sim_used(&d->base) - i->cache.n + size <= d->capacity)
		return true;
	d->counts.full++;
	return false;
}

static void
put(struct inode *i, const struct iovec *v, int n, uint64_t at, uint64_t limit)
{
	uint64_t start = at;

	if (at < i->bad_end && at + limit > i->bad)
		i->bad_end = 0;
	for (int k = 0; k < n && limit > 0; k++) {
		uint64_t len = min_u64(v[k].iov_len, limit);

		if (len == 0)
			continue;
		if (at + len > i->cache.n)
			bytes_resize(&i->cache, at + len);
		memcpy(i->cache.p + at, v[k].iov_base, len);
		at += len;
		limit -= len;
	}
	if (at > start)
		inode_changed(i, start, at - start);
}

static int
sim_write(struct disk_file *f, const struct iovec *v, int n, uint64_t at)
{
	struct disk_sim *d = f->d;
	uint64_t total = 0;
	enum fate fate = begin(d, false);
	int rc = 0;

	assert(f->writable && n <= DISK_IOV_MAX);
	if (fate == FATE_DEAD)
		return -EIO;
	for (int k = 0; k < n; k++)
		total += v[k].iov_len;
	d->counts.writes++;
	if (fate == FATE_CUT) {
		rc = -EIO;
	} else if (is_due(&d->fail_write_in)) {
		d->counts.failed_writes++;
		rc = -EIO;
	} else if (!has_room(d, f->inode, at + total)) {
		/* What fits, or less. */
		uint64_t room =
		    d->capacity - min_u64(d->capacity, disk_sim_used(&d->base) - f->inode->cache.n);

		total = room > at ? min_u64(total, room - at) : 0;
		rc = -ENOSPC;
	}
	if (rc != 0)
		total = rnd(&d->rnd, total + 1);
	put(f->inode, v, n, at, total);
	return rc;
}

static int
sim_sync(struct disk_file *f)
{
	struct disk_sim *d = f->d;
	enum settle how;

	if (begin(d, false) != FATE_FINE)
		return -EIO;
	d->counts.syncs++;
	if (is_due(&d->fail_sync_in)) {
		d->counts.failed_syncs++;
		how = (enum settle)rnd(&d->rnd, SETTLES);
		inode_settle(f->inode, &d->rnd, how, stale(d, &d->rnd));
		return d->sync_error != 0 ? d->sync_error : -EIO;
	}
	inode_write_out(f->inode);
	return 0;
}

static int
sim_resize(struct disk_file *f, uint64_t size)
{
	enum fate fate = begin(f->d, false);

	assert(f->writable);
	if (fate == FATE_DEAD || (fate == FATE_CUT && rnd_chance(&f->d->rnd, 50)))
		return -EIO;
	if (!has_room(f->d, f->inode, size))
		return -ENOSPC;
	bytes_resize(&f->inode->cache, size);
	inode_changed(f->inode, 0, 0);
	return fate == FATE_CUT ? -EIO : 0;
}

static int
sim_size(struct disk_file *f, uint64_t *out)
{
	if (f->d->is_dead)
		return -EIO;
	*out = f->inode->cache.n;
	return 0;
}

static int
sim_rename(struct disk *base, const char *from, const char *to)
{
	struct disk_sim *d = sim_of(base);
	struct entry *e = names_find(&d->now, from);
	bool done;
	int rc;

	if (d->is_dead)
		return -EIO;
	if (e == NULL || !names_have_folder(&d->now, to))
		return -ENOENT;
	rc = name_fate(d, &done);
	if (done)
		name_changed(d, NAME_MOVE, from, to, e->inode);
	return rc;
}

static int
sim_link(struct disk *base, const char *from, const char *to)
{
	struct disk_sim *d = sim_of(base);
	struct entry *e = names_find(&d->now, from);
	bool done;
	int rc;

	if (d->is_dead)
		return -EIO;
	if (e == NULL || !names_have_folder(&d->now, to))
		return -ENOENT;
	if (names_find(&d->now, to) != NULL)
		return -EEXIST;
	rc = name_fate(d, &done);
	if (done)
		name_changed(d, NAME_SET, to, NULL, e->inode);
	return rc;
}

static int
sim_unlink(struct disk *base, const char *name)
{
	struct disk_sim *d = sim_of(base);
	struct entry *e = names_find(&d->now, name);
	bool done;
	int rc;

	if (d->is_dead)
		return -EIO;
	if (e == NULL)
		return -ENOENT;
	rc = name_fate(d, &done);
	if (done)
		name_changed(d, NAME_UNSET, name, NULL, e->inode);
	return rc;
}

static int
sim_make_folder(struct disk *base, const char *name)
{
	struct disk_sim *d = sim_of(base);
	struct entry *e = names_find(&d->now, name);
	bool done;
	int rc;

	if (d->is_dead)
		return -EIO;
	if (e != NULL)
		return e->inode->is_folder ? 0 : -ENOTDIR;
	if (!names_have_folder(&d->now, name))
		return -ENOENT;
	rc = name_fate(d, &done);
	if (done)
		name_changed(d, NAME_SET, name, NULL, inode_new(d, true));
	return rc;
}

/* Only from now on may other files show what a removed one held. */
static void
make_durable(struct disk_sim *d, const struct name_change *c)
{
	names_change(&d->durable, c);
	if (c->kind != NAME_UNSET)
		return;
	for (uint32_t k = 0; k < d->durable.n; k++) {
		if (d->durable.e[k].inode == c->inode)
			return;
	}
	bury(d, &c->inode->cache);
}

static int
sim_sync_folder(struct disk *base, const char *name)
{
	struct disk_sim *d = sim_of(base);
	uint32_t kept = 0;

	if (begin(d, false) != FATE_FINE)
		return -EIO;
	for (uint32_t k = 0; k < d->pendings; k++) {
		const struct name_change *c = &d->pending[k];

		if (name_is_in(c->name, name) || (c->kind == NAME_MOVE && name_is_in(c->to, name)))
			make_durable(d, c);
		else
			d->pending[kept++] = *c;
	}
	d->pendings = kept;
	return 0;
}

static int
sim_list(struct disk *base, const char *folder, disk_list_fn *f, void *arg)
{
	struct disk_sim *d = sim_of(base);
	struct entries copy = d->now;
	struct entry *e = *folder == '\0' ? NULL : names_find(&d->now, folder);

	if (d->is_dead)
		return -EIO;
	if (*folder != '\0' && (e == NULL || !e->inode->is_folder))
		return -ENOENT;
	copy.e = xmalloc((copy.n + 1) * sizeof *copy.e);
	if (copy.n > 0)
		memcpy(copy.e, d->now.e, copy.n * sizeof *copy.e);
	/* In any order, as real ones do. */
	for (uint32_t k = 0; k < copy.n; k++) {
		uint32_t other = k + (uint32_t)rnd(&d->rnd, copy.n - k);
		struct entry swap = copy.e[k];

		copy.e[k] = copy.e[other];
		copy.e[other] = swap;
		if (name_is_in(copy.e[k].name, folder))
			f(arg, copy.e[k].name + (*folder == '\0' ? 0 : strlen(folder) + 1),
			    copy.e[k].inode->cache.n);
	}
	free(copy.e);
	return 0;
}

static int
sim_space(struct disk *base, uint64_t *total, uint64_t *available)
{
	struct disk_sim *d = sim_of(base);
	uint64_t used = disk_sim_used(base);

	if (d->is_dead)
		return -EIO;
	*total = d->capacity;
	*available = used < d->capacity ? d->capacity - used : 0;
	return 0;
}

static void
sim_free(struct disk *base)
{
	struct disk_sim *d = sim_of(base);
	struct inode *next;

	assert(d->open_files == 0);
	for (struct inode *i = d->inodes; i != NULL; i = next) {
		next = i->next;
		inode_free(i);
	}
	for (unsigned k = 0; k < GRAVES; k++)
		free(d->grave[k].p);
	free(d->now.e);
	free(d->durable.e);
	free(d->pending);
	free(d);
}

static const struct disk_ops sim_ops = {
	.open = sim_open,
	.close = sim_close,
	.read = sim_read,
	.write = sim_write,
	.sync = sim_sync,
	.resize = sim_resize,
	.size = sim_size,
	.rename = sim_rename,
	.link = sim_link,
	.unlink = sim_unlink,
	.make_folder = sim_make_folder,
	.sync_folder = sim_sync_folder,
	.list = sim_list,
	.space = sim_space,
	.free = sim_free,
};

/* ---- for tests ---- */

struct disk *
disk_sim_new(uint64_t seed, uint64_t capacity)
{
	struct disk_sim *d = xcalloc(1, sizeof *d);

	d->base.ops = &sim_ops;
	d->rnd = rnd_of(seed);
	d->capacity = capacity;
	return &d->base;
}

void
disk_sim_cut_after(struct disk *base, uint64_t n, bool reads)
{
	struct disk_sim *d = sim_of(base);

	d->cut_in = n;
	d->cut_counts_reads = reads;
}

bool
disk_sim_is_dead(const struct disk *d)
{
	return sim_of(d)->is_dead;
}

/* Files without a name, on either side, are gone. */
static void
sweep(struct disk_sim *d)
{
	struct inode **at = &d->inodes, *i;

	for (i = d->inodes; i != NULL; i = i->next)
		i->is_seen = false;
	for (uint32_t k = 0; k < d->now.n; k++)
		d->now.e[k].inode->is_seen = true;
	for (uint32_t k = 0; k < d->durable.n; k++)
		d->durable.e[k].inode->is_seen = true;
	for (uint32_t k = 0; k < d->pendings; k++)
		d->pending[k].inode->is_seen = true;
	while ((i = *at) != NULL) {
		if (i->is_seen) {
			at = &i->next;
		} else {
			*at = i->next;
			inode_free(i);
		}
	}
}

static void
revive(struct disk_sim *d)
{
	assert(d->open_files == 0);
	d->is_dead = false;
	d->cut_in = d->fail_read_in = d->fail_write_in = d->fail_sync_in = 0;
	d->sync_error = 0;
}

void
disk_sim_kill(struct disk *base)
{
	struct disk_sim *d = sim_of(base);

	revive(d);
	sweep(d);
}

void
disk_sim_crash(struct disk *base, uint64_t seed)
{
	struct disk_sim *d = sim_of(base);
	struct rnd r = rnd_of(seed);
	enum settle names = (enum settle)rnd(&r, SETTLES), all = (enum settle)rnd(&r, SETTLES);
	bool each = rnd_chance(&r, 50);
	uint32_t prefix = (uint32_t)rnd(&r, d->pendings + 1);

	revive(d);
	for (uint32_t k = 0; k < d->pendings; k++) {
		if (names == SETTLE_PREFIX ? k < prefix : settle_pick(&r, names, 1, 0) == 1)
			names_change(&d->durable, &d->pending[k]);
	}
	d->pendings = 0;
	names_drop_orphans(&d->durable);
	d->now.n = 0;
	for (uint32_t k = 0; k < d->durable.n; k++)
		names_set(&d->now, d->durable.e[k].name, d->durable.e[k].inode);
	sweep(d);
	for (struct inode *i = d->inodes; i != NULL; i = i->next) {
		enum settle how = each ? (enum settle)rnd(&r, SETTLES) : all;

		inode_settle(i, &r, how, stale(d, &r));
		bytes_set(&i->cache, &i->platter);
	}
}

void
disk_sim_fail_sync(struct disk *d, uint64_t n)
{
	sim_of(d)->fail_sync_in = n;
}

void
disk_sim_sync_error(struct disk *d, int error)
{
	sim_of(d)->sync_error = error;
}

void
disk_sim_fail_write(struct disk *d, uint64_t n)
{
	sim_of(d)->fail_write_in = n;
}

void
disk_sim_fail_read(struct disk *d, uint64_t n)
{
	sim_of(d)->fail_read_in = n;
}

void
disk_sim_set_capacity(struct disk *d, uint64_t bytes)
{
	sim_of(d)->capacity = bytes;
}

void
disk_sim_counts(const struct disk *d, struct disk_sim_counts *out)
{
	*out = sim_of(d)->counts;
}

uint64_t
disk_sim_used(const struct disk *base)
{
	const struct disk_sim *d = sim_of(base);
	uint64_t sum = 0;

	for (uint32_t k = 0; k < d->now.n; k++)
		sum += d->now.e[k].inode->cache.n;
	return sum;
}

unsigned
disk_sim_open_files(const struct disk *d)
{
	return sim_of(d)->open_files;
}

const uint8_t *
disk_sim_bytes(const struct disk *d, const char *name, uint64_t *size)
{
	struct entry *e = names_find(&sim_of(d)->now, name);

	if (e == NULL || e->inode->is_folder)
		return NULL;
	*size = e->inode->cache.n;
	return e->inode->cache.p;
}

struct disk *
disk_sim_copy(const struct disk *base, const char *folder, uint64_t seed)
{
	const struct disk_sim *d = sim_of(base);
	struct disk_sim *to = sim_of(disk_sim_new(seed, 1ULL << 32));

	for (uint32_t k = 0; k < d->durable.n; k++) {
		const struct inode *from = d->durable.e[k].inode;
		const char *name = name_below(d->durable.e[k].name, folder);
		struct inode *i;

		if (name == NULL)
			continue;
		i = inode_new(to, from->is_folder);
		bytes_set(&i->cache, &from->platter);
		bytes_set(&i->platter, &from->platter);
		names_set(&to->now, name, i);
		names_set(&to->durable, name, i);
	}
	return &to->base;
}

void
disk_sim_forget(struct disk *base, const char *folder)
{
	struct disk_sim *d = sim_of(base);
	uint32_t kept = 0;

	names_forget(&d->now, folder);
	names_forget(&d->durable, folder);
	for (uint32_t k = 0; k < d->pendings; k++) {
		const struct name_change *c = &d->pending[k];

		if (strcmp(c->name, folder) != 0 && name_below(c->name, folder) == NULL)
			d->pending[kept++] = *c;
	}
	d->pendings = kept;
}

void
disk_sim_flip(struct disk *d, const char *name, uint64_t at, unsigned bit)
{
	inode_flip(names_find(&sim_of(d)->now, name)->inode, at, bit);
}

void
disk_sim_break(struct disk *d, const char *name, uint64_t from, uint64_t to)
{
	struct inode *i = names_find(&sim_of(d)->now, name)->inode;

	i->bad = from;
	i->bad_end = to;
}
