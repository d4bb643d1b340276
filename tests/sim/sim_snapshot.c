/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of the running store: what of one is on the platter when it is said to be whole is opened, compared with the
 * model as of where its journal ends, and emptied in order. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/sim.h"

enum { NAME = 32 };

static void
name_of(const struct sim *s, char name[NAME])
{
	(void)snprintf(name, NAME, "snapshot-%u", s->snapshots);
}

static void
done(void *arg, int error, const char *text)
{
	struct sim *s = arg;
	struct disk_sim_counts c;

	s->snapshot_runs = false;
	s->snapshot_is_there = error == 0 && !disk_sim_is_dead(s->disk);
	disk_sim_counts(s->disk, &c);
	SIM_CHECK(s,
	    error == 0 || disk_sim_is_dead(s->disk) || s->damage_expected ||
	        c.failed_syncs + c.failed_writes + c.failed_reads + c.full > 0,
	    "a snapshot fails: %s", text);
}

void
sim_snapshot_start(struct sim *s)
{
	char name[NAME];

	if (s->snapshot_runs || s->snapshot_is_there)
		return;
	s->snapshots++;
	name_of(s, name);
	s->snapshot_from = sim_last_lsn(s);
	s->snapshot_runs = true;
	SIM_CHECK(s, store_snapshot(s->store, name, done, s) == 0, "a snapshot is refused");
	model_end_turn(&s->model, sim_last_lsn(s));
}

void
sim_snapshot_look(struct sim *s)
{
	struct sim copy = *s;
	char name[NAME];
	int rc;

	if (!s->snapshot_is_there || s->store == NULL)
		return;
	s->snapshot_is_there = false;
	name_of(s, name);
	copy.snapshot_is_there = false;
	model_copy(&copy.model, &s->model);
	copy.disk = disk_sim_copy(s->disk, name, s->seed);
	copy.workers = NULL;
	copy.store = NULL;
	copy.items = 0;
	copy.wait = NULL;
	copy.waits = copy.waits_cap = 0;
	copy.durable = copy.written = s->snapshot_from + 1;
	copy.confirmed_durable = copy.confirmed_written = 0;
	sim_set_current(&copy);
	s->snapshots_seen++;
	sim_say(s, "snapshot:");
	sim_dump_journal(&copy);
	rc = sim_open(&copy);
	SIM_CHECK(s, rc == 0, "a snapshot cannot be opened: %d", rc);
	sim_drain(&copy);
	sim_drop(&copy);
	disk_free(&copy.disk);
	model_fini(&copy.model);
	free(copy.wait);
	sim_set_current(s);
	disk_sim_forget(s->disk, name);
}

void
sim_snapshot_drop(struct sim *s)
{
	s->snapshot_runs = s->snapshot_is_there = false;
}
