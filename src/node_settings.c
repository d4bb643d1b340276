/* SPDX-License-Identifier: Apache-2.0
 * Settings at the start and on SIGHUP: see the header. */
#include "node_settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "settings_apply.h"

enum { START_SLICE_US = 100000, START_POLL_US = 1000, START_WAIT_MS = 15000, SLICE_US = 1000 };

/* ---- the end of some ---- */

struct gone {
	struct worker_job job; /* first */
	struct settings settings;
};

static void
free_settings(struct worker_job *job)
{
	settings_fini(&container_of(job, struct gone, job)->settings);
}

static void
free_gone(struct worker_job *job)
{
	free(container_of(job, struct gone, job));
}

/* A long list takes some milliseconds to be freed, which a worker has. */
static void
leave(struct node_settings *ns, struct settings *s)
{
	struct gone *g;

	if (s->file == NULL) {
		settings_fini(s); /* there is little in them */
		return;
	}
	g = xcalloc(1, sizeof *g);
	g->settings = *s;
	*s = (struct settings){ 0 };
	g->job.run = free_settings;
	g->job.done = free_gone;
	workers_submit(ns->readers, &g->job);
}

/* ---- applying ---- */

static void
say(struct problems *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		log_error("%s", p->item[i]);
	if (p->more > 0)
		log_error("and %" PRIu32 " more", p->more);
}

static void
applied(struct node_settings *ns)
{
	uint32_t refused = ns->refused.count + ns->refused.more;

	settings_apply_free(&ns->apply);
	say(&ns->refused);
	if (refused > 0)
		log_error("entries of the settings that were refused: %" PRIu32
		          "; the rest is in force",
		    refused);
	if (ns->is_reload)
		log_info("settings were read again");
	problems_fini(&ns->refused);
	leave(ns, &ns->fresh);
}

static void
apply(struct node_settings *ns, const struct settings *s)
{
	ns->apply = settings_apply_new(ns->broker, s, &ns->refused);
}

void
node_settings_begin(struct node_settings *ns)
{
	uint64_t end_ms = clock_now_ms() + START_WAIT_MS;

	ns->broker->settings_file = ns->settings->file;
	apply(ns, ns->settings);
	while (!settings_apply_run(ns->apply, START_SLICE_US)) {
		if (!settings_apply_waits(ns->apply))
			continue;
		if (clock_now_ms() >= end_ms) {
			log_warning("passwords of the settings are still being hashed: some users "
			            "can log in later only");
			return;
		}
		usleep(START_POLL_US);
		workers_take(ns->hashers);
	}
	applied(ns);
}

/* A worker's answer wakes the loop. */
bool
node_settings_run(struct node_settings *ns)
{
	if (likely(ns->apply == NULL))
		return false;
	if (!settings_apply_run(ns->apply, SLICE_US))
		return !settings_apply_waits(ns->apply);
	applied(ns);
	return false;
}

/* ---- reading again ---- */

/* Texts and lists are not exchanged under those who hold pointers into them: they wait for the next start. */
static void
say_unchanged(const struct config *old, const struct config *fresh)
{
	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if (!(k->flags & CFG_RELOAD) && !config_same(old, fresh, k))
			log_warning("%s was changed; it takes effect at the next start", k->path);
	}
}

/* Settings that came through a pipe are gone, and to wait for a new writer would be to stand still. */
static bool
is_pipe(const char *file)
{
	struct stat st;

	/* one that is not there is a mistake that reading it tells */
	return file != NULL && stat(file, &st) == 0 && !S_ISREG(st.st_mode);
}

static void
read_again(struct worker_job *job)
{
	struct node_settings *ns = container_of(job, struct node_settings, job);

	ns->wrong = (struct problems){ .file = "settings" };
	ns->read = (struct settings){ 0 };
	ns->is_pipe = is_pipe(ns->settings->file);
	if (!ns->is_pipe)
		ns->start->reread(ns->start->arg, &ns->read, &ns->wrong);
}

/* What an earlier SIGHUP began is dropped where it is: what it did not come to is in these as well. */
static void
take(struct node_settings *ns)
{
	struct config *cfg = &ns->settings->config;

	settings_apply_free(&ns->apply);
	problems_fini(&ns->refused);
	leave(ns, &ns->fresh);
	ns->fresh = ns->read;
	ns->read = (struct settings){ 0 };
	say_unchanged(cfg, &ns->fresh.config);
	config_reload(cfg, &ns->fresh.config);
	cfg->has_users = ns->fresh.config.has_users;
	log_set_level((enum log_level)cfg->log_level);
	ns->is_reload = true;
	apply(ns, &ns->fresh);
}

static void
was_read(struct worker_job *job)
{
	struct node_settings *ns = container_of(job, struct node_settings, job);

	ns->is_reading = false;
	if (ns->stopped) {
		/* nobody is there for them any more */
	} else if (ns->again) {
		/* they may be old already */
	} else if (ns->is_pipe) {
		log_error("%s is no plain file and is read at the start only; the settings in "
		          "force stay",
		    ns->settings->file);
	} else if (ns->wrong.count > 0) {
		say(&ns->wrong);
		log_error("settings not taken, the ones in force stay; mistakes: %" PRIu32,
		    ns->wrong.count + ns->wrong.more);
	} else {
		take(ns);
	}
	problems_fini(&ns->wrong);
	if (ns->stopped)
		settings_fini(&ns->read);
	else
		leave(ns, &ns->read);
	if (ns->again && !ns->stopped)
		node_settings_reload(ns);
	else if (!ns->stopped && ns->on_read != NULL)
		ns->on_read(ns->on_read_arg);
}

void
node_settings_reload(struct node_settings *ns)
{
	ns->again = ns->is_reading;
	if (ns->again)
		return;
	ns->is_reading = true;
	ns->job.run = read_again;
	ns->job.done = was_read;
	workers_submit(ns->readers, &ns->job);
}

bool
node_settings_busy(const struct node_settings *ns)
{
	return ns->is_reading || ns->apply != NULL;
}

void
node_settings_stop(struct node_settings *ns)
{
	ns->stopped = true;
	settings_apply_free(&ns->apply);
}

void
node_settings_fini(struct node_settings *ns)
{
	problems_fini(&ns->refused);
	settings_fini(&ns->fresh);
}
