/* SPDX-License-Identifier: Apache-2.0
 * The end of a run (kill -9, power cut, stop), and the start of the next one, with further cuts in it; then everything
 * that was recovered is compared with the model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_priv.h"
#include "tests/sim/sim.h"

enum { NAME = 64, ATTEMPTS = 5 };

void
sim_drop(struct sim *s)
{
	s->is_closing = true;
	sim_snapshot_drop(s);
	for (uint32_t i = 0; i < s->model.lanes; i++) {
		s->model.lane[i]->lane = NULL;
		s->model.lane[i]->is_open = false;
	}
	sim_window_drop(s);
	if (s->store != NULL)
		store_free(&s->store);
	lane_share_free(&s->share);
	if (s->workers != NULL)
		workers_free(&s->workers);
	s->is_closing = false;
	for (uint32_t i = 0; i < s->model.lanes; i++) {
		struct model_lane *l = s->model.lane[i];

		for (uint32_t k = 0; k < l->n; k++) {
			if (l->e[k].item != NULL)
				sim_item_unref(l->e[k].item);
			l->e[k].item = NULL;
		}
	}
	SIM_CHECK(s, s->items == 0, "%llu items are left", (unsigned long long)s->items);
	SIM_CHECK(s, disk_sim_open_files(s->disk) == 0, "%u files are left open",
	    disk_sim_open_files(s->disk));
}

/* What has to be there: everything that the store ever said was durable, or written. */
static void
cut_now(struct sim *s, bool power)
{
	sim_say(s, "%s; durable %llx, written %llx", power ? "power cut" : "kill -9",
	    (unsigned long long)s->durable, (unsigned long long)s->written);
	s->cuts++;
	if (power) {
		s->written = s->durable;
		s->confirmed_written = 0;
		disk_sim_crash(s->disk, rnd_next(&s->r));
	} else {
		disk_sim_kill(s->disk);
	}
}

bool
sim_cut(struct sim *s)
{
	bool power;

	struct store_stats st;
	unsigned how = (unsigned)rnd(&s->r, 10);

	store_stats(s->store, &st);
	SIM_CHECK(s,
	    st.moved_bytes <= st.journal_bytes - st.moved_bytes + st.journal_file_bytes +
	                          s->cfg.journal_file_size,
	    "%llu bytes were moved of %llu appended", (unsigned long long)st.moved_bytes,
	    (unsigned long long)st.journal_bytes);
	s->total.spilled += st.spilled;
	s->total.rolled += st.rolled;
	s->total.loaded += st.loaded;
	s->total.rewritten += st.rewritten;
	s->total.moved_bytes += st.moved_bytes;
	s->total.damaged += st.damaged;
	/* A sync may have failed, of a spare file too, of which the core has not heard yet: then not all will be there. */
	if (!disk_sim_is_dead(s->disk) && how < 2) {
		workers_take(s->workers);
		(void)journal_poll(s->store->journal);
	}
	if (!disk_sim_is_dead(s->disk) && how < 2 && store_failed(s->store) == 0) {
		disk_sim_cut_after(s->disk, 0, false);
		if (!s->has_room)
			disk_sim_set_capacity(s->disk, disk_sim_used(s->disk) + (1ULL << 32));
		s->has_room = true;
		/* Stopped: all of it is there, unless a sync fails in this moment. */
		(void)store_wait_all(s->store);
		model_end_turn(&s->model, sim_last_lsn(s));
		s->durable = s->written = sim_last_lsn(s) + 1;
		disk_sim_fail_sync(s->disk, 0);
		disk_sim_fail_write(s->disk, 0);
		sim_say(s, "stop");
	}
	sim_drop(s);
	power = how == 1 || rnd_chance(&s->r, 60);
	cut_now(s, power);
	s->waits = 0;
	return power;
}

/* ---- where the journal ends ---- */

struct ends {
	struct sim *s;
	uint32_t oldest;
};

static void
add_end(struct model *m, uint64_t end)
{
	m->end = xrealloc(m->end, (m->ends + 1) * sizeof *m->end);
	m->end[m->ends++] = end;
}

static void
look_at_file(void *arg, const char *name, uint64_t size)
{
	struct ends *e = arg;
	struct sim *s = e->s;
	uint64_t seed = s->id.seed;
	char path[NAME] = "journal/";
	struct file_header h;
	struct record_header r;
	struct open_record o;
	const uint8_t *p;

	SIM_CHECK(s, strlen(name) < NAME - 10, "a name of %zu bytes", strlen(name));
	memcpy(path + 8, name, strlen(name) + 1);
	p = disk_sim_bytes(s->disk, path, &size);
	if (p == NULL || size < FILE_HEADER + record_size(OPEN_PAYLOAD) ||
	    file_header_decode(&h, seed, p) != 0 || h.kind != FILE_JOURNAL ||
	    h.store_id != s->id.id || h.number < e->oldest)
		return;
	if (!record_check(p + FILE_HEADER, size - FILE_HEADER,
	        lsn_of((uint32_t)h.number, FILE_HEADER), seed, &r) ||
	    r.kind != RECORD_OPEN || r.length < OPEN_PAYLOAD)
		return;
	open_decode(&o, p + FILE_HEADER + RECORD_HEADER);
	if (o.previous_end == 0)
		return;
	sim_say(s, "  %s: file %llu, the one before ends at %llx", name,
	    (unsigned long long)h.number, (unsigned long long)o.previous_end);
	for (uint32_t i = 0; i < s->model.ends; i++) {
		if (lsn_file(s->model.end[i]) == lsn_file(o.previous_end)) {
			SIM_CHECK(s, s->model.end[i] == o.previous_end,
			    "file %u ends at two places", lsn_file(o.previous_end));
			return;
		}
	}
	add_end(&s->model, o.previous_end);
}

void
sim_find_ends(struct sim *s, uint32_t oldest)
{
	struct ends e = { s, oldest };

	s->model.first_file = oldest;
	(void)s->disk->ops->list(s->disk, "journal", look_at_file, &e);
}

static void
must_be_in(struct sim *s, uint64_t lsn, const char *what)
{
	if (lsn != 0 && lsn < s->written)
		SIM_CHECK(s, model_is_in(&s->model, lsn),
		    "%s: record %llx was safe (up to %llx) and is lost", what,
		    (unsigned long long)lsn, (unsigned long long)s->written);
}

static void
check_promises(struct sim *s)
{
	struct model *m = &s->model;

	SIM_CHECK(s, model_is_in(m, s->confirmed_durable), "confirmed as durable: %llx is lost",
	    (unsigned long long)s->confirmed_durable);
	SIM_CHECK(s, model_is_in(m, s->confirmed_written), "confirmed as written: %llx is lost",
	    (unsigned long long)s->confirmed_written);
	for (uint32_t i = 0; i < m->turns; i++)
		must_be_in(s, m->turn_end[i], "turn");
	for (uint32_t i = 0; i < m->objects; i++) {
		for (uint32_t k = 0; k < m->object[i].n; k++)
			must_be_in(s, m->object[i].v[k].lsn, "object");
	}
	for (uint32_t i = 0; i < m->lanes; i++) {
		for (uint32_t k = 0; k < m->lane[i]->n; k++)
			must_be_in(s, m->lane[i]->e[k].published, "message");
	}
}

/* ---- objects ---- */

struct objects_seen {
	struct sim *s;
	enum object_kind kind;
	uint64_t last;
	uint32_t n;
};

static void
see_object(void *arg, uint64_t id, struct span state)
{
	struct objects_seen *seen = arg;
	struct sim *s = seen->s;
	struct model_object *o = model_object(&s->model, seen->kind, id);
	uint8_t bytes[5000];
	uint32_t version = model_object_version(o);

	SIM_CHECK(s, id > seen->last, "objects out of order: %llu", (unsigned long long)id);
	SIM_CHECK(s, version > 0 || o->unknown, "object %d/%llu came back", (int)seen->kind,
	    (unsigned long long)id);
	if (!o->unknown)
		SIM_CHECK(s,
		    span_eq(
		        state, span_of(bytes, sim_object_bytes(id, version, bytes, sizeof bytes))),
		    "object %d/%llu has another state", (int)seen->kind, (unsigned long long)id);
	else if (version == 0)
		model_object_set(o, 0, (uint32_t)++s->next_version);
	seen->last = id;
	seen->n++;
	o->seen = true;
}

static void
check_objects(struct sim *s)
{
	for (uint32_t i = 0; i < s->model.objects; i++) {
		model_settle_object(&s->model, &s->model.object[i]);
		s->model.object[i].seen = false;
	}
	for (int kind = 1; kind < OBJECT_KINDS; kind++) {
		struct objects_seen seen = { .s = s, .kind = (enum object_kind)kind };

		store_each_object(s->store, seen.kind, see_object, &seen);
	}
	for (uint32_t i = 0; i < s->model.objects; i++) {
		struct model_object *o = &s->model.object[i];

		if (model_object_version(o) > 0 && !o->seen) {
			SIM_CHECK(s, o->unknown, "object %d/%llu is lost", (int)o->kind,
			    (unsigned long long)o->id);
			model_object_set(o, 0, 0);
		}
	}
}

/* ---- lanes ---- */

static uint64_t
highest_seq(const struct sim *s, const struct model_lane *l)
{
	uint64_t highest = l->highest;

	for (uint32_t i = 0; i < l->n; i++) {
		if (l->e[i].seq > highest && l->e[i].persistent &&
		    model_is_in(&s->model, l->e[i].published))
			highest = l->e[i].seq;
	}
	return highest;
}

/* Where each message that was not handed over by lane_each() is: in the chain, or it may be nowhere. */
static void
look_at_chain(struct sim *s, struct model_lane *l)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->n; i++) {
		struct model_entry *e = &l->e[i];
		struct segment *g = lane_segment(l->lane, e->seq);
		bool lives = g != NULL && !rangeset_has(&g->removed, e->seq);

		if (e->item != NULL) {
			SIM_CHECK(s, e->seq > l->lane->chain_end,
			    "seq %llu is in memory, but the chain ends at %llu",
			    (unsigned long long)e->seq, (unsigned long long)l->lane->chain_end);
		} else if (!lives) {
			SIM_CHECK(s, e->maybe,
			    "queue %llu/%u: seq %llu (id %llu) is lost; chain end %llu",
			    (unsigned long long)l->name.queue, l->name.lane,
			    (unsigned long long)e->seq, (unsigned long long)s->model.msg[e->msg].id,
			    (unsigned long long)l->lane->chain_end);
			free(e->change);
			continue;
		} else if (!s->damage_expected) {
			e->maybe = false;
		}
		l->e[kept++] = *e;
	}
	l->n = kept;
}

static void
check_lane(struct sim *s, struct model_lane *l)
{
	uint64_t highest = highest_seq(s, l), marked = l->delivered;
	bool is_marked = model_happened(&s->model, &l->marked) == TRUTH_YES && marked > 0;
	struct model_entry *e = is_marked ? model_find(l, marked) : NULL;
	bool matters =
	    e != NULL && (e->where == MODEL_OUT || e->where == MODEL_READY) && e->persistent;

	model_settle_lane(&s->model, l);
	l->lane = sim_open_lane(s, l->name, true, l);
	l->is_open = true;
	l->sync = (struct sync_setting){ 0 };
	lane_each(l->lane, sim_lane_entry, l);
	l->read_bound = 0;
	l->chained = l->lane->chain_end;
	look_at_chain(s, l);
	if (!s->damage_expected) {
		SIM_CHECK(s, lane_next_seq(l->lane) > highest,
		    "queue %llu/%u: next seq %llu, but %llu was given out",
		    (unsigned long long)l->name.queue, l->name.lane,
		    (unsigned long long)lane_next_seq(l->lane), (unsigned long long)highest);
		SIM_CHECK(s, !matters || lane_delivered(l->lane) >= marked,
		    "queue %llu/%u: delivered up to %llu, not %llu",
		    (unsigned long long)l->name.queue, l->name.lane,
		    (unsigned long long)lane_delivered(l->lane), (unsigned long long)marked);
	}
	if (highest > l->highest)
		l->highest = highest;
	l->next_seq = lane_next_seq(l->lane);
	if (l->next_seq == 0)
		l->next_seq = 1;
	if (l->n > 0 && l->next_seq <= l->e[l->n - 1].seq) {
		SIM_CHECK(s, s->damage_expected, "a live message is above next seq");
		l->next_seq = l->e[l->n - 1].seq + 1;
	}
	sim_check_lane(s, l);
}

static void
forget_lane(struct model_lane *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		free(l->e[i].change);
	l->n = l->low = 0;
	l->is_open = false;
	l->lane = NULL;
}

static void
check_lanes(struct sim *s)
{
	for (uint32_t i = 0; i < s->model.lanes; i++) {
		struct model_lane *l = s->model.lane[i];

		if (l->durable &&
		    model_object_version(model_object(&s->model, OBJECT_QUEUE, l->name.queue)) > 0)
			check_lane(s, l);
		else
			forget_lane(l);
	}
}

static void
verify(struct sim *s, const struct store_report *r)
{
	uint64_t highest = 0;

	s->id = s->store->id;
	sim_find_ends(s, journal_oldest(s->store->journal));
	check_promises(s);
	check_objects(s);
	check_lanes(s);
	sim_window_check(s);
	for (uint32_t i = 0; i < s->model.objects; i++) {
		if (s->model.object[i].n > 0 && s->model.object[i].id > highest)
			highest = s->model.object[i].id;
	}
	SIM_CHECK(s, r->next_id > highest || highest == 0 || s->damage_expected,
	    "next id %llu, but %llu is there", (unsigned long long)r->next_id,
	    (unsigned long long)highest);
	s->next_id = r->next_id > highest ? r->next_id : highest + 1;
	SIM_CHECK(s, r->damaged == 0 || s->damage_expected, "%llu places are said to be damaged",
	    (unsigned long long)r->damaged);
	SIM_CHECK(s, r->damaged > 0 || !s->damage_due, "a flipped bit was not noticed");
	s->damage_due = false;
	store_linked(s->store);
	s->oldest = (uint32_t)s->model.first_file;
	model_new_run(&s->model);
	s->confirmed_durable = s->confirmed_written = 0;
	s->durable = journal_durable(s->store->journal);
	s->written = journal_written(s->store->journal);
	s->recoveries++;
}

/* ---- starting ---- */

int
sim_open(struct sim *s)
{
	char err[STORE_ERROR] = "";
	struct store_report report = { 0 };
	int rc;

	s->workers = workers_new(0);
	s->share = lane_share_new();
	s->recovering = true;
	s->store = store_new(&s->cfg, s->disk, s->workers, &sim_store_ops, s);
	rc = store_recover(s->store, &report, err);
	s->recovering = false;
	SIM_CHECK(s, rc == 0 || err[0] != '\0', "the start fails without a text");
	if (rc != 0)
		sim_say(s, "start fails: %s", err);
	if (rc != 0 || disk_sim_is_dead(s->disk)) {
		sim_drop(s);
		return rc == 0 ? -EIO : rc;
	}
	disk_sim_cut_after(s->disk, 0, false);
	disk_sim_fail_sync(s->disk, 0);
	disk_sim_set_capacity(s->disk, 1ULL << 32);
	sim_say(s, "recovered: %llu records, %llu torn", (unsigned long long)report.records,
	    (unsigned long long)report.torn);
	verify(s, &report);
	return 0;
}

static bool
attempt(struct sim *s, bool undisturbed)
{
	struct disk_sim_counts before, after;
	bool reads = rnd_chance(&s->r, 50);
	int rc;

	disk_sim_set_capacity(s->disk, 1ULL << 32);
	s->has_room = true;
	if (!undisturbed && rnd_chance(&s->r, 40))
		disk_sim_cut_after(s->disk, 1 + rnd(&s->r, 40), reads);
	else if (!undisturbed && rnd_chance(&s->r, 10))
		disk_sim_fail_sync(s->disk, 1 + rnd(&s->r, 6));
	else if (!undisturbed && rnd_chance(&s->r, 10))
		disk_sim_set_capacity(
		    s->disk, disk_sim_used(s->disk) + rnd(&s->r, 2 * s->cfg.journal_file_size));
	disk_sim_counts(s->disk, &before);
	rc = sim_open(s);
	disk_sim_counts(s->disk, &after);
	if (rc == 0)
		return true;
	SIM_CHECK(s,
	    disk_sim_is_dead(s->disk) || after.failed_syncs > before.failed_syncs ||
	        after.full > before.full,
	    "the start fails: %d", rc);
	cut_now(s, rnd_chance(&s->r, 60));
	return false;
}

void
sim_start(struct sim *s)
{
	/* The clock says anything. */
	s->now_ms = rnd_chance(&s->r, 50) ? s->now_ms + 1000 : rnd(&s->r, 1ULL << 42);
	for (unsigned i = 0; !attempt(s, i >= ATTEMPTS); i++)
		continue;
}
