/* SPDX-License-Identifier: Apache-2.0
 * When a journal file has to go, and how much may be moved for it.
 *
 * As many bytes are moved as others appended since, twice as many near the journal's bound; a trickle where far too many
 * files are there, or nothing is appended; without that bound once the journal is full; never more in all than others
 * appended in all + the journal's length.
 *
 * While publishers are at work a file is left alone until there are twice as many as what lives needs and some beside:
 * nearly all in it dies by itself. A node that has become quiet cannot wait for that. There the oldest file goes, too, when
 * little would have to be moved, one after another, until the current one has all that lives. */
#include "store/roll_priv.h"

enum {
	SLICE_BYTES = 256 << 10, /* moved a turn */
	SLICE_WORK = 2000,       /* look-ups a turn, of some hundred ns each */
	WORK_A_RECORD = 3,       /* and so many more for each record that was appended since */
	SLICE_WORK_MAX = 16000,
	TRICKLE = 1 << 20, /* bytes a second */
	LOOK_MS = 100,
	QUIET_BYTES = 64 << 10, /* appended within that time, at most: it is quiet */
	FILES_BESIDE =
	    3, /* allowed beside twice what lives: two spares, and the one that is appended to */
	FILES_MIN = 5,
	SHORT_FILES = 8, /* that starts made: so many more than their bytes would fill */
	CHEAP_SHARE = 16 /* of a file: what lives in it is moved when it is quiet */
};

/* Files that are needed. Those that wait to be used again do not count. */
static uint64_t
files_needed(const struct store *s)
{
	return (uint64_t)journal_current(s->journal) - journal_oldest(s->journal) + 1;
}

/* ---- what lives ---- */

/* Bytes of a message's record, about. */
static uint64_t
average(const struct store *s)
{
	uint64_t messages = s->journal_live.messages;

	return ROLL_ENTRY_COST + (messages > 0 ? s->stats.journal_live_bytes / messages : 0);
}

/* What lives in the journal, about: of each file as many bytes as its holds times the size of a message in memory,
 * but not more than it has. (What lanes have in memory, summed, would count a message once for each queue.) */
static uint64_t
live_bytes(const struct store *s)
{
	uint64_t each = average(s), sum = 0;
	uint32_t last = journal_current(s->journal);
	struct journal_file_info i;

	for (uint32_t n = journal_oldest(s->journal); n <= last; n++) {
		if (!journal_file(s->journal, n, &i))
			continue;
		sum += i.live < i.end / each ? i.live * each : i.end;
	}
	return sum + s->journal_live.object_bytes + s->stats.window_keys * sizeof(struct op_key);
}

static bool
oldest_is_cheap(const struct store *s)
{
	struct journal_file_info i;

	return journal_file(s->journal, journal_oldest(s->journal), &i) && i.is_closed &&
	       i.live * average(s) <= journal_file_size(s->journal) / CHEAP_SHARE;
}

/* ---- when ---- */

/* Bytes of files that may be there before the oldest one has to go, spares included. Looked at again when there is one
 * more, or after a while. */
static uint64_t
bytes_allowed(struct roll *r)
{
	struct store *s = r->store;
	uint64_t size = journal_file_size(s->journal), most;

	if (r->allowed_at == journal_current(s->journal) && s->now_ms < r->allowed_ms)
		return r->allowed;
	most = 2 * live_bytes(s) + FILES_BESIDE * size;
	r->allowed = most > FILES_MIN * size ? most : FILES_MIN * size;
	r->allowed_at = journal_current(s->journal);
	r->allowed_ms = s->now_ms + LOOK_MS;
	return r->allowed;
}

/* A start makes a file of its own, which takes hardly any room when nothing is written; but each is read by the next. */
static bool
are_many(const struct store *s)
{
	return files_needed(s) >
	       SHORT_FILES + journal_needed_bytes(s->journal) / journal_file_size(s->journal);
}

bool
roll_is_due(struct roll *r)
{
	struct store *s = r->store;
	uint64_t spares = ROLL_SPARES * journal_file_size(s->journal);

	if (files_needed(s) == 1)
		return false;
	if (journal_is_full(s->journal) || are_many(s))
		return true;
	if (r->is_quiet && oldest_is_cheap(s))
		return true;
	return journal_needed_bytes(s->journal) + spares >= bytes_allowed(r);
}

static uint64_t
published_bytes(const struct store *s)
{
	struct journal_stats js;

	journal_stats(s->journal, &js);
	return js.bytes > s->stats.moved_bytes ? js.bytes - s->stats.moved_bytes : 0;
}

void
roll_listen(struct roll *r)
{
	struct store *s = r->store;
	uint64_t published;

	if (likely(s->now_ms < r->quiet_ms))
		return;
	published = published_bytes(s);
	r->is_quiet = published <= r->heard + QUIET_BYTES;
	r->heard = published;
	r->quiet_ms = s->now_ms + ROLL_QUIET_MS;
	if (r->is_quiet)
		journal_trim(s->journal);
}

/* ---- how much ---- */

void
roll_gain(struct roll *r)
{
	struct store *s = r->store;
	uint64_t ms = s->now_ms > r->looked_ms ? s->now_ms - r->looked_ms : 0;
	uint64_t published = published_bytes(s), size = journal_file_size(s->journal);
	uint64_t needed = journal_needed_bytes(s->journal);
	struct journal_stats js;

	journal_stats(s->journal, &js);
	if (published > r->published) {
		r->budget += published - r->published;
		if (needed > s->cfg.journal_max / 4 * 3)
			r->budget += published - r->published;
		r->published = published;
	}
	if (r->is_quiet || are_many(s) || needed > bytes_allowed(r))
		r->budget += (ms > 1000 ? 1000 : ms) * TRICKLE / 1000;
	if (r->budget > size || journal_is_full(s->journal))
		r->budget = size;
	r->looked_ms = s->now_ms;
	r->most_work = SLICE_WORK + WORK_A_RECORD * (js.records - r->records);
	if (r->most_work > SLICE_WORK_MAX)
		r->most_work = SLICE_WORK_MAX;
	r->records = js.records;
}

/* A record that is larger than all bounds may once nothing else was moved in this slice. */
bool
roll_may_move(const struct roll *r, uint64_t n)
{
	const struct store *s = r->store;

	if (s->stats.moved_bytes + n > r->published + journal_needed_bytes(s->journal))
		return false;
	if (r->moved > 0 && r->moved + n > SLICE_BYTES)
		return false;
	return n <= r->budget || (r->moved == 0 && r->budget >= journal_file_size(s->journal));
}

void
roll_count_moved(struct roll *r, uint64_t payload)
{
	uint64_t n = record_size(payload);

	r->store->stats.moved_bytes += n;
	r->moved += n;
	r->budget -= n < r->budget ? n : r->budget;
}

bool
roll_slice_is_over(const struct roll *r)
{
	return r->work >= r->most_work || r->moved >= SLICE_BYTES;
}
