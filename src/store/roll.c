/* SPDX-License-Identifier: Apache-2.0
 * Giving up the oldest journal file, F.
 *
 * A file that nothing holds is given up unread. Otherwise, when the journal is twice as long as what lives in it, a
 * worker reads F piece by piece and checks its records; the core thread goes through their operations, a slice a
 * turn, and asks of each: is this still the newest record of what it names? Messages of small lanes are appended
 * again, with the state that they have now; objects, SEGs and MARKs too. Big lanes are noted, and when F was gone
 * through they are spilled up to their last message that stands in F, a few at a time. Then nothing holds F any more.
 *
 * If something does all the same, its record can be read no more: damage. Then all lanes are gone through (this is
 * the only time) and what they hold of F is appended again from memory; objects whose state nobody has are let go of.
 *
 * How much is moved: as many bytes as others appended since, twice as many near the journal's bound; a trickle when
 * nobody appends and far too many files are there; without that bound once the journal is full; never more in all
 * than others appended in all + the journal's length. When nothing may be moved, the roll waits; it holds nobody up
 * but the journal, which grows to its bound and then holds publishers. */
#include "store/roll_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

enum {
	SLICE_BYTES = 256 << 10, /* moved a turn */
	SLICE_WORK = 2000,       /* look-ups a turn, of some hundred ns each */
	WORK_A_RECORD = 3,       /* and so many more for each record that was appended since */
	SLICE_WORK_MAX = 16000,
	LIMIT_MIN = 4 << 10, /* ROLL_LIMIT while the journal is full */
	TRICKLE = 1 << 20,   /* bytes a second */
	RETRY_MS = 1000,
	LOOK_MS = 100,
	FILES_BESIDE =
	    3, /* allowed beside twice what lives: two spares, and the one that is appended to */
	FILES_MIN = 5,
	FILES_IDLE =
	    2, /* so many more than allowed: then something is moved even if nothing is published */
	SPARES = 2 /* of the journal */
};

/* ---- how much ---- */

/* One that holds a long record may be longer. */
static uint64_t
file_size(const struct store *s)
{
	struct journal_file_info first = { 0 }, last = { 0 };

	(void)journal_file(s->journal, journal_oldest(s->journal), &first);
	(void)journal_file(s->journal, journal_current(s->journal), &last);
	return first.size < last.size ? first.size : last.size;
}

/* Files that are needed. Those that wait to be used again do not count. */
static uint64_t
files_needed(const struct store *s)
{
	return (uint64_t)journal_current(s->journal) - journal_oldest(s->journal) + 1;
}

/* What lives in the journal, about: of each file as many bytes as its holds times the size of a message in memory,
 * but not more than it has. (What lanes have in memory, summed, would count a message once for each queue.) */
static uint64_t
live_bytes(const struct store *s)
{
	uint64_t messages = s->journal_live.messages, average = ROLL_ENTRY_COST, sum = 0;
	uint32_t last = journal_current(s->journal);
	struct journal_file_info i;

	if (messages > 0)
		average += s->stats.journal_live_bytes / messages;
	for (uint32_t n = journal_oldest(s->journal); n <= last; n++) {
		if (!journal_file(s->journal, n, &i))
			continue;
		sum += i.live < i.end / average ? i.live * average : i.end;
	}
	return sum + s->journal_live.object_bytes + s->stats.window_keys * sizeof(struct op_key);
}

/* Files that may be there before the oldest one has to go. Looked at again when there is one more, or after a while. */
static uint64_t
files_allowed(struct roll *r)
{
	struct store *s = r->store;
	uint64_t most;

	if (r->allowed_at == journal_current(s->journal) && s->now_ms < r->allowed_ms)
		return r->allowed;
	most = 2 * live_bytes(s) / file_size(s) + FILES_BESIDE;
	r->allowed = most > FILES_MIN ? most : FILES_MIN;
	r->allowed_at = journal_current(s->journal);
	r->allowed_ms = s->now_ms + LOOK_MS;
	return r->allowed;
}

static void
gain_budget(struct roll *r)
{
	struct store *s = r->store;
	uint64_t ms = s->now_ms > r->looked_ms ? s->now_ms - r->looked_ms : 0;
	uint64_t published, size = file_size(s);
	struct journal_stats js;

	journal_stats(s->journal, &js);
	published = js.bytes > s->stats.moved_bytes ? js.bytes - s->stats.moved_bytes : 0;
	if (published > r->published) {
		r->budget += published - r->published;
		if (files_needed(s) * size > s->cfg.journal_max / 4 * 3)
			r->budget += published - r->published;
		r->published = published;
	}
	if (files_needed(s) > files_allowed(r) + FILES_IDLE)
		r->budget += (ms > 1000 ? 1000 : ms) * TRICKLE / 1000;
	if (r->budget > size || journal_is_full(s->journal))
		r->budget = size;
	r->looked_ms = s->now_ms;
	r->most_work = SLICE_WORK + WORK_A_RECORD * (js.records - r->records);
	if (r->most_work > SLICE_WORK_MAX)
		r->most_work = SLICE_WORK_MAX;
	r->records = js.records;
}

/* May n bytes be moved now? A record that is larger than all bounds may once nothing else was moved in this slice. */
bool
roll_may_move(const struct roll *r, uint64_t n)
{
	const struct store *s = r->store;
	uint64_t length = files_needed(s) * file_size(s);

	if (s->stats.moved_bytes + n > r->published + length)
		return false;
	if (r->moved > 0 && r->moved + n > SLICE_BYTES)
		return false;
	return n <= r->budget || (r->moved == 0 && r->budget >= file_size(s));
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

/* ---- reading ---- */

static void
piece_is_read(struct worker_job *job)
{
	struct piece *p = container_of(job, struct piece, job);

	p->is_read = true;
	if (p->roll == NULL)
		piece_free(&p);
}

static void
drop_piece(struct piece **pp)
{
	if (*pp != NULL && !(*pp)->is_read)
		(*pp)->roll = NULL; /* goes when the worker is done with it */
	else
		piece_free(pp);
	*pp = NULL;
}

static struct piece *
submit_piece(struct roll *r, uint64_t at)
{
	struct store *s = r->store;
	struct piece *p = xcalloc(1, sizeof *p);

	p->job.run = piece_read;
	p->job.done = piece_is_read;
	p->roll = r;
	p->disk = s->disk;
	p->seed = s->id.seed;
	p->file = r->file;
	p->at = at;
	p->end = r->end;
	if (!journal_file_name(s->journal, r->file, p->name)) {
		piece_free(&p);
		return NULL;
	}
	workers_submit(s->workers, &p->job);
	return p;
}

static void
say_damage(struct roll *r, struct piece *p)
{
	if (p->damaged == 0)
		return;
	r->store->stats.damaged++;
	log_error("damage in journal file %" PRIu32 " (%s) at %" PRIu64 ": %" PRIu64
	          " bytes cannot be read%s%s; what they held is written again from memory",
	    p->file, p->name, p->at, p->damaged, p->error != 0 ? ": " : "",
	    p->error != 0 ? strerror(-p->error) : "");
	p->damaged = 0;
}

/* ---- one file ---- */

static void
leave_file(struct roll *r)
{
	drop_piece(&r->piece);
	drop_piece(&r->ahead);
	r->record = r->target_at = 0;
	r->op_at = 0;
	roll_forget_wanted(r);
	roll_forget_cursor(r);
	r->file = 0;
	r->phase = IDLE;
}

/* Files that nothing holds, from the oldest on. */
static void
give_up_files(struct roll *r)
{
	struct store *s = r->store;
	uint32_t n = journal_oldest(s->journal), first = n;
	struct journal_file_info i;

	while (n != journal_current(s->journal) && journal_file(s->journal, n, &i) && i.is_closed &&
	       i.live == 0)
		n++;
	if (n == first)
		return;
	if (r->file != 0 && r->file < n)
		leave_file(r);
	s->stats.rolled += n - first;
	journal_set_oldest(s->journal, n);
}

/* The oldest has to go: begins with it. */
static bool
begin_file(struct roll *r)
{
	struct store *s = r->store;
	uint64_t files = files_needed(s) + SPARES;
	bool full = journal_is_full(s->journal);
	struct journal_file_info i;

	if (!full && (files < FILES_MIN || files < files_allowed(r)))
		return false;
	if (!journal_file(s->journal, journal_oldest(s->journal), &i) || !i.is_closed)
		return false;
	r->file = i.number;
	r->at = FILE_HEADER;
	r->end = i.end;
	r->limit = !full ? ROLL_LIMIT : r->limit / 2 > LIMIT_MIN ? r->limit / 2 : LIMIT_MIN;
	r->phase = READING;
	return true;
}

/* These, down to step(), answer true when the same slice can go on with what comes next. */
static bool
next_piece(struct roll *r)
{
	if (r->at >= r->end) {
		r->phase = SPILLING;
		return true;
	}
	if (r->store->now_ms < r->retry_ms)
		return false;
	r->piece = submit_piece(r, r->at);
	if (r->piece == NULL)
		r->phase = SEARCHING; /* a file that is needed is there: this cannot be */
	return r->piece == NULL;
}

/* The next piece is read while this one is gone through. */
static bool
read_on(struct roll *r)
{
	struct piece *p = r->piece;

	if (p == NULL)
		return next_piece(r);
	if (!p->is_read)
		return false;
	say_damage(r, p);
	if (p->error == -ENOMEM)
		r->retry_ms = r->store->now_ms + RETRY_MS;
	else if (r->ahead == NULL && p->next < r->end)
		r->ahead = submit_piece(r, p->next);
	if (!roll_walk_piece(r))
		return false;
	r->at = p->next;
	piece_free(&r->piece);
	r->piece = r->ahead;
	r->ahead = NULL;
	r->record = r->target_at = 0;
	r->op_at = 0;
	return true;
}

/* F was gone through: what is left of it is waited for. */
static bool
spill_on(struct roll *r)
{
	roll_spill_on(r);
	if (r->wanted != NULL)
		return false;
	give_up_files(r);
	if (r->phase == SPILLING)
		r->phase = SEARCHING; /* something holds it that was not to be read */
	return r->phase == SEARCHING;
}

static bool
search_on(struct roll *r)
{
	if (!roll_search(r))
		return false;
	objects_lost(r->store, r->file);
	r->phase = r->wanted != NULL ? SPILLING : WAITING;
	r->retry_ms = r->store->now_ms + RETRY_MS;
	return false;
}

static bool
step(struct roll *r)
{
	switch (r->phase) {
	case IDLE: return begin_file(r);
	case READING: return read_on(r);
	case SPILLING: return spill_on(r);
	case SEARCHING: return search_on(r);
	case WAITING:
		if (r->store->now_ms >= r->retry_ms)
			r->phase = SEARCHING;
		return false;
	}
	return false;
}

static struct roll *
roll_new(struct store *s)
{
	struct roll *r = xcalloc(1, sizeof *r);

	r->store = s;
	r->limit = ROLL_LIMIT;
	r->looked_ms = s->now_ms;
	for (unsigned i = 0; i < ROLL_BUCKETS; i++)
		TAILQ_INIT(&r->bucket[i]);
	TAILQ_INIT(&r->running);
	return r;
}

bool
roll_turn(struct store *s)
{
	struct roll *r = s->roll;

	if (r == NULL)
		r = s->roll = roll_new(s);
	r->work = r->moved = 0;
	give_up_files(r);
	if (r->phase == IDLE && files_needed(s) == 1)
		return false;
	gain_budget(r);
	while (step(r) && !roll_slice_is_over(r))
		continue;
	give_up_files(r);
	/* whoever could not move more in this slice may in the next one */
	return roll_slice_is_over(r) || r->moved > 0;
}

void
roll_free(struct store *s)
{
	struct roll *r = s->roll;

	if (r == NULL)
		return;
	s->roll = NULL;
	leave_file(r);
	free(r);
}
