/* SPDX-License-Identifier: Apache-2.0
 * The end of a seed: everything comes out in order, and then nothing is left. */
#include "store/store_priv.h"
#include "tests/sim/sim.h"

enum {
	REST_SECONDS = 20, /* without anything to do */
	REST_FILES = 3,    /* of the journal, then: two spares and the current one */
	REST_MOST = 5,     /* of that size, where objects are more than little to a file */
	SMALL_FILE = 128 << 10
};

void
sim_settle_io(struct sim *s)
{
	bool more = true;

	for (unsigned rounds = 0; more; rounds++) {
		s->now_ms += 50;
		more = store_turn(s->store, s->next_id, s->now_ms);
		model_end_turn(&s->model, sim_last_lsn(s));
		while (journal_step(s->store->journal))
			more = true;
		while (workers_step(s->workers, 0))
			more = true;
		workers_take(s->workers);
		more = store_events(s->store) || more;
		sim_take_positions(s);
		SIM_CHECK(s, rounds < 100000, "the store never comes to rest");
		if (disk_sim_is_dead(s->disk) || store_failed(s->store) != 0)
			return;
	}
}

static void
drain_lane(struct sim *s, struct model_lane *l)
{
	struct model_entry *e;

	for (unsigned idle = 0; (e = model_first_ready(l)) != NULL || lane_unread(l->lane) > 0;) {
		if (e != NULL && e->item != NULL) {
			e->where = MODEL_OUT;
			sim_ack(s, l, e, ACK_ACKED);
			idle = 0;
			continue;
		}
		if (lane_unread(l->lane) == 0 && e != NULL)
			SIM_CHECK(s, e->maybe, "queue %llu/%u: seq %llu is lost",
			    (unsigned long long)l->name.queue, l->name.lane,
			    (unsigned long long)e->seq);
		if (lane_unread(l->lane) == 0) {
			model_remove(e, MODEL_LONG_AGO);
			continue;
		}
		lane_read(l->lane, 1 << 20);
		sim_settle_io(s);
		SIM_CHECK(s, ++idle < 100, "queue %llu/%u: %llu unread, and nothing comes",
		    (unsigned long long)l->name.queue, l->name.lane,
		    (unsigned long long)lane_unread(l->lane));
	}
	for (uint32_t i = l->low; i < l->n; i++) {
		if (l->e[i].where == MODEL_OUT)
			sim_ack(s, l, &l->e[i], ACK_ACKED);
	}
}

struct rest {
	unsigned files;
	uint64_t bytes;
};

static void
count_file(void *arg, const char *name, uint64_t size)
{
	struct rest *r = arg;

	sim_say(sim_of_lane(NULL), "  file %s", name);
	r->files++;
	r->bytes += size;
}

/* What stays when nothing lives. */
static void
check_rest(struct sim *s)
{
	struct rest segments = { 0 }, transient = { 0 }, journal = { 0 };
	uint64_t size = s->cfg.journal_file_size;
	struct store_stats st;

	store_stats(s->store, &st);
	(void)s->disk->ops->list(s->disk, "segments", count_file, &segments);
	(void)s->disk->ops->list(s->disk, "transient", count_file, &transient);
	(void)s->disk->ops->list(s->disk, "journal", count_file, &journal);
	SIM_CHECK(s, s->waits == 0, "%u waits are never over", s->waits);
	SIM_CHECK(s, store_hold(s->store) == STORE_FINE, "publishers wait: %d",
	    (int)store_hold(s->store));
	SIM_CHECK(s, st.segments == 0 && st.segment_live == 0 && st.journal_live_bytes == 0,
	    "nothing lives, but there are %llu segments with %llu messages",
	    (unsigned long long)st.segments, (unsigned long long)st.segment_live);
	SIM_CHECK(s, segments.files == 0 && transient.files == 0,
	    "%u and %u files are left in segments and transient", segments.files, transient.files);
	SIM_CHECK(s,
	    size <= SMALL_FILE ? journal.bytes <= REST_MOST * size : journal.files <= REST_FILES,
	    "%u files of the journal are left, %llu bytes", journal.files,
	    (unsigned long long)journal.bytes);
}

void
sim_drain(struct sim *s)
{
	s->make_fails = 0;
	disk_sim_set_capacity(s->disk, disk_sim_used(s->disk) + (1ULL << 32));
	s->has_room = true;
	sim_settle_io(s);
	sim_window_drain(s);
	for (uint32_t i = 0; i < s->model.lanes; i++) {
		if (s->model.lane[i]->is_open)
			drain_lane(s, s->model.lane[i]);
	}
	sim_settle_io(s);
	/* Files of segments go when the last ACK is durable, which may be in no hurry. */
	sim_flush(s);
	sim_settle_io(s);
	for (uint32_t i = 0; i < s->model.lanes; i++) {
		struct model_lane *l = s->model.lane[i];

		if (l->is_open)
			SIM_CHECK(s, lane_memory_bytes(l->lane) == 0 && lane_unread(l->lane) == 0,
			    "queue %llu/%u is empty, but counts %llu bytes",
			    (unsigned long long)l->name.queue, l->name.lane,
			    (unsigned long long)lane_memory_bytes(l->lane));
	}
	for (unsigned i = 0; i < REST_SECONDS; i++) {
		s->now_ms += 1000;
		sim_settle_io(s);
	}
	check_rest(s);
}
