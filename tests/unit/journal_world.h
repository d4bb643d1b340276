/* SPDX-License-Identifier: Apache-2.0
 * A journal over the simulated disk. The model is the list of all records that were ever appended: what is durable has to
 * come back in order and byte for byte. */
#ifndef TESTS_JOURNAL_WORLD_H
#define TESTS_JOURNAL_WORLD_H

#include "store/journal.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "tests/sim/disk_sim.h"
#include "tests/sim/rnd.h"

enum { FILE_SIZE = 64 << 10, MOST = 20000, ENDLESS = 100000 };

struct record {
	uint64_t lsn;
	uint32_t n;
	bool gone; /* void since a crash */
};

struct world {
	struct disk *disk;
	struct workers *workers;
	struct journal *j;
	struct journal_config cfg;
	struct store_id id;
	struct rnd rnd;
	struct record record[MOST];
	uint32_t records;
	uint32_t oldest_asked; /* highest oldest that was set */
	uint64_t highest;      /* LSN ever given */
	/* the replay under way */
	struct journal_report report;
	char err[JOURNAL_ERROR];
	uint32_t at, first, replayed;
	bool is_strict; /* nothing may be missing in between */
	uint32_t missed;
};

static struct world world;

#define REQUIRE(ok, ...)                           \
	do {                                       \
		if (!(ok))                         \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

/* ---- records ---- */

static inline uint8_t
byte_of(uint64_t lsn, uint32_t i)
{
	return (uint8_t)((lsn * 0x9e3779b97f4a7c15ULL >> 32) + i * 31 + (i >> 8));
}

static inline uint64_t
append(struct world *w, uint32_t n, enum sync_need need)
{
	uint64_t lsn;
	uint8_t *p = journal_append(w->j, n, 1, need, 10, &lsn);

	for (uint32_t i = 0; i < n; i++)
		p[i] = byte_of(lsn, i);
	REQUIRE(lsn > w->highest, "lsn %llx after %llx", (unsigned long long)lsn,
	    (unsigned long long)w->highest);
	w->highest = lsn;
	REQUIRE(w->records < MOST, "too many records");
	w->record[w->records++] = (struct record){ .lsn = lsn, .n = n };
	return lsn;
}

static inline int
on_replay(void *arg, uint64_t lsn, struct span payload)
{
	struct world *w = arg;

	if (w->replayed == 0) {
		for (w->at = 0; w->at < w->records; w->at++)
			if (!w->record[w->at].gone && w->record[w->at].lsn == lsn)
				break;
		w->first = w->at;
	}
	while (!w->is_strict && w->at < w->records && w->record[w->at].lsn != lsn) {
		w->missed += !w->record[w->at].gone;
		w->at++;
	}
	while (w->at < w->records && w->record[w->at].gone)
		w->at++;
	REQUIRE(
	    w->at < w->records, "a record at %llx that was not appended", (unsigned long long)lsn);
	REQUIRE(w->record[w->at].lsn == lsn, "record %llx instead of %llx", (unsigned long long)lsn,
	    (unsigned long long)w->record[w->at].lsn);
	REQUIRE(payload.n == w->record[w->at].n, "length");
	for (uint32_t i = 0; i < payload.n; i++)
		REQUIRE(
		    payload.p[i] == byte_of(lsn, i), "byte %u of %llx", i, (unsigned long long)lsn);
	w->at++;
	w->replayed++;
	return 0;
}

/* ---- the world ---- */

static inline void
world_init(struct world *w, uint64_t seed)
{
	memset(w, 0, sizeof *w);
	log_set_level(LOG_ERROR);
	w->rnd = rnd_of(seed);
	w->disk = disk_sim_new(seed, 1ULL << 40);
	w->cfg = (struct journal_config){ .file_size = FILE_SIZE, .max = 1 << 20 };
	w->id = (struct store_id){ .format = FORMAT_VERSION, .id = 7, .seed = seed * 77 + 5 };
	w->is_strict = true;
}

static inline int
start(struct world *w)
{
	w->workers = workers_new(0);
	w->j = journal_new(w->disk, w->workers, &w->cfg, &w->id);
	w->at = w->first = w->replayed = w->missed = 0;
	w->err[0] = '\0';
	return journal_recover(w->j, on_replay, w, &w->report, w->err);
}

static inline void
start_well(struct world *w)
{
	int r = start(w);

	REQUIRE(r == 0, "recovery: %d %s", r, w->err);
}

static inline void
stop(struct world *w)
{
	journal_free(&w->j);
	workers_free(&w->workers);
	ck_assert_uint_eq(mem_held[MEM_JOURNAL], 0);
}

static inline void
world_fini(struct world *w)
{
	ck_assert_uint_eq(disk_sim_open_files(w->disk), 0);
	disk_free(&w->disk);
}

static inline void
hand_over(struct world *w)
{
	journal_hand_over(w->j, 1000 + w->records, 5000 + w->records);
}

/* Everything that can be done is done. */
static inline void
settle(struct world *w)
{
	unsigned i = 0;
	bool more = true;

	while (more) {
		more = journal_step(w->j);
		more |= workers_step(w->workers, 0);
		workers_take(w->workers);
		more |= journal_poll(w->j);
		REQUIRE(++i < ENDLESS, "it never ends");
	}
}

static inline void
write_some(struct world *w, uint32_t records, uint32_t n, enum sync_need need)
{
	for (uint32_t i = 0; i < records; i++) {
		(void)append(w, n, need);
		hand_over(w);
		settle(w);
	}
}

/* Records of the model from `first` that are not void. */
static inline uint32_t
count_from(const struct world *w, uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < w->records; i++)
		n += !w->record[i].gone;
	return n;
}

static inline const char *
current_name(const struct world *w, char name[JOURNAL_NAME])
{
	ck_assert(journal_file_name(w->j, journal_current(w->j), name));
	return name;
}

#endif
