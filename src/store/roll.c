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
 * How much may be moved says roll_pace.c. When nothing may be moved, the roll waits; it holds nobody up but the
 * journal, which grows to its bound and then holds publishers. */
#include "store/roll_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

enum {
	LIMIT_MIN = 4 << 10, /* ROLL_LIMIT while the journal is full */
	RETRY_MS = 1000
};

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
	bool full = journal_is_full(s->journal);
	struct journal_file_info i;

	if (!roll_is_due(r))
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
	r->quiet_ms = s->now_ms + ROLL_QUIET_MS;
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
	roll_listen(r);
	if (r->phase == IDLE && journal_oldest(s->journal) == journal_current(s->journal))
		return false;
	roll_gain(r);
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
