/* SPDX-License-Identifier: Apache-2.0
 * The store as a whole: its beginning and end, the turn, what callers wait for, figures. See the header and README.md;
 * the start is in recover.c. */
#include "store/store.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/lane.h"
#include "store/store_priv.h"
#include "store/window_priv.h"

#define BACKLOG_MAX ((uint64_t)64 << 20)

struct store *
store_new(const struct store_config *c, struct disk *d, struct workers *w,
    const struct store_ops *ops, void *arg)
{
	struct store *s = xcalloc(1, sizeof *s);

	s->cfg = *c;
	if (s->cfg.segment_bytes == 0)
		s->cfg.segment_bytes = SEGMENT_BYTES;
	if (s->cfg.segment_messages == 0)
		s->cfg.segment_messages = SEGMENT_MESSAGES;
	s->disk = d;
	s->workers = w;
	s->ops = ops;
	s->arg = arg;
	TAILQ_INIT(&s->lanes);
	TAILQ_INIT(&s->objects);
	TAILQ_INIT(&s->dirty);
	TAILQ_INIT(&s->lagging);
	TAILQ_INIT(&s->dying_windows);
	chains_init(s);
	return s;
}

/* Jobs of chains end first: they may still journal a SEG. Then everything goes to disk, and only then what is held of
 * it is let go. */
void
store_free(struct store **sp)
{
	struct store *s = *sp;
	struct lane *l;

	*sp = NULL;
	store_snapshot_cancel(s);
	roll_free(s);
	chains_free(s);
	if (s->journal != NULL && !s->recovering) {
		store_flush(s);
		journal_hand_over(s->journal, s->next_id, s->now_ms);
	}
	while ((l = TAILQ_FIRST(&s->lanes)) != NULL)
		lane_free(l);
	objects_free(s);
	windows_free(s);
	if (s->journal != NULL)
		journal_free(&s->journal);
	record_free(s);
	free(s);
}

/* ---- the turn ---- */

int
store_fd(const struct store *s)
{
	return journal_fd(s->journal);
}

bool
store_events(struct store *s)
{
	return journal_poll(s->journal);
}

bool
store_turn(struct store *s, uint64_t next_id, uint64_t now_ms)
{
	bool more;

	s->next_id = next_id;
	s->now_ms = now_ms;
	more = spill_turn(s);
	more |= read_turn(s);
	store_flush(s);
	more |= roll_turn(s);
	more |= rewrite_turn(s);
	more |= windows_turn(s);
	more |= segments_reap(s);
	snapshot_turn(s);
	journal_hand_over(s->journal, next_id, now_ms);
	return more;
}

/* ---- waiting ---- */

bool
store_reached(const struct store *s, struct store_wait w)
{
	return (w.durable ? journal_durable(s->journal) : journal_written(s->journal)) > w.lsn;
}

struct store_wait
store_objects_wait(const struct store *s)
{
	struct store_wait w = { .lsn = s->objects_lsn, .durable = true };

	return store_must_wait(s, w) ? w : (struct store_wait){ 0 };
}

struct store_wait
store_wait_all(struct store *s)
{
	static const struct sync_setting now = { SYNC_POLICY_ALWAYS, 0 };
	uint64_t lsn;

	store_flush(s);
	if (s->last_lsn == 0 || journal_durable(s->journal) > s->last_lsn)
		return (struct store_wait){ 0 };
	/* What was appended may be in no hurry: a record without operations is. */
	(void)store_append(s, 0, 0, now, &lsn);
	return (struct store_wait){ .lsn = lsn, .durable = true };
}

bool
store_lags(const struct store *s)
{
	return !TAILQ_EMPTY(&s->lagging);
}

struct op_lane
store_last_lag(const struct store *s)
{
	return s->last_lag;
}

bool
store_lane_lags(struct store *s, struct op_lane lane)
{
	const struct lane *l = store_lags(s) ? lane_find(s, lane) : NULL;

	return l != NULL && l->lags;
}

uint64_t
store_lags_ended(const struct store *s)
{
	return s->lags_ended;
}

bool
store_is_behind(const struct store *s)
{
	return journal_backlog(s->journal) > BACKLOG_MAX;
}

enum store_hold
store_hold(const struct store *s)
{
	if (journal_out_of_space(s->journal))
		return STORE_DISK_FULL;
	if (journal_is_full(s->journal))
		return STORE_JOURNAL_FULL;
	return store_is_behind(s) ? STORE_BACKLOG : STORE_FINE;
}

int
store_failed(const struct store *s)
{
	int error = journal_failed(s->journal);

	return error != 0 ? error : s->chains.failed;
}

/* ---- figures ---- */

void
store_stats(const struct store *s, struct store_stats *out)
{
	struct journal_file_info file;
	struct journal_stats j;

	journal_stats(s->journal, &j);
	*out = s->stats;
	out->journal_bytes = j.bytes;
	out->journal_records = j.records;
	out->journal_batches = j.writes;
	out->journal_syncs = j.syncs;
	out->journal_sync_us = j.sync_us;
	out->journal_sync_max_us = j.sync_max_us;
	out->journal_files = journal_files(s->journal);
	out->journal_backlog = journal_backlog(s->journal);
	out->journal_file_bytes = 0;
	for (uint32_t n = journal_oldest(s->journal); n <= journal_current(s->journal); n++)
		if (journal_file(s->journal, n, &file))
			out->journal_file_bytes += file.size;
	segments_stats(s, out);
}

void
store_histograms(const struct store *s, struct histogram *syncs, struct histogram *batches)
{
	struct journal_stats j;

	journal_stats(s->journal, &j);
	*syncs = j.sync_times;
	*batches = j.batches;
}
