/* SPDX-License-Identifier: Apache-2.0
 * Opens, turns and closes the store; see the header. */
#include "node_store.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/dedup.h"
#include "broker/persist.h"
#include "broker/queue.h"
#include "data_dir.h"
#include "net/loop.h"
#include "store/disk.h"

enum {
	WORKERS = 3,
	CLOCK_BACK_MS = 60000, /* a clock that stands further back than this is worth a line */
	SAY_MS = 2000, /* the end waits for the disk: until it is said, and until it is given up */
	CLOSE_MS = 10000
};
#define GARBAGE_MAX ((uint64_t)64 << 20)

/* What has to be synced never will be. */
static void NORETURN
end_process(const struct node_store *ns)
{
	log_flush();
	if (ns->pid_file != NULL)
		pid_file_remove(ns->pid_file);
	_exit(1);
}

/* A disk that failed may have lost what it said it had: whatever is confirmed from now on would be a lie. */
static void
end_if_failed(const struct node_store *ns)
{
	int error = store_failed(ns->store);

	if (error == 0)
		return;
	log_error("the disk of %s failed: %s; nothing more is confirmed, the node ends",
	    ns->cfg->data_dir, strerror(-error));
	end_process(ns);
}

static void
on_positions(void *arg)
{
	struct node_store *ns = arg;

	(void)store_events(ns->store);
	end_if_failed(ns);
}

static void
on_answers(void *arg)
{
	struct node_store *ns = arg;

	workers_take(ns->workers);
	end_if_failed(ns);
}

/* ---- free space ---- */

static void
space_run(struct worker_job *job)
{
	struct space_job *s = (struct space_job *)(void *)job;
	struct disk *d = s->ns->disk;

	s->error = d->ops->space(d, &s->total, &s->available);
}

uint64_t
node_store_least_free(const struct node_store *ns)
{
	uint64_t v = ns->cfg->disk_min_free;

	return v >= CONFIG_SHARE ? ns->space.total / 100 * (v - CONFIG_SHARE) : v;
}

/* A write that waits for space is an alarm whatever the limit: a quota, or what is reserved, may leave less than it seems. */
static void
space_done(struct worker_job *job)
{
	struct space_job *s = (struct space_job *)(void *)job;
	struct node_store *ns = s->ns;
	uint64_t least = node_store_least_free(ns);
	/* Some more than the least ends it, so that it does not flutter. */
	uint64_t enough = ns->broker->disk_low ? least + least / 8 : least;
	bool full = ns->store != NULL && store_hold(ns->store) == STORE_DISK_FULL;
	bool low = full || (s->error == 0 ? s->available < enough : ns->broker->disk_low);

	s->is_running = false;
	if (s->error != 0 && !ns->space_failed)
		log_warning("free disk space cannot be found out: %s", strerror(-s->error));
	ns->space_failed = s->error != 0;
	if (low == ns->broker->disk_low)
		return;
	ns->broker->disk_low = low;
	if (full)
		log_warning("disk alarm: there is no space to write, changes that are to last wait "
		            "for it");
	else if (low)
		log_warning("disk alarm: %" PRIu64 " bytes are free, the limit is %" PRIu64
		            ": publishers of persistent messages are held back",
		    s->available, least);
	else
		log_info("disk alarm is over: %" PRIu64 " bytes are free", s->available);
}

void
node_store_each_second(struct node_store *ns)
{
	queues_tend(ns->broker);
	dedup_tend(ns->broker);
	if (ns->space.is_running)
		return;
	ns->space.is_running = true;
	ns->space.job.run = space_run;
	ns->space.job.done = space_done;
	ns->space.ns = ns;
	workers_submit(ns->workers, &ns->space.job);
}

/* ---- start, turn, end ---- */

static struct store_config
config_of(const struct config *cfg)
{
	struct store_config c = {
		.journal_file_size = cfg->journal_file_size,
		.journal_max = cfg->journal_max,
		.sync = { .policy = SYNC_POLICY_MS, .ms = cfg->store_sync },
		.lane_entries = cfg->queue_messages,
		.lane_bytes = cfg->queue_bytes,
		.garbage_max = GARBAGE_MAX,
		.threads = true,
	};

	if (cfg->store_sync == CONFIG_SYNC_ALWAYS)
		c.sync = (struct sync_setting){ .policy = SYNC_POLICY_ALWAYS };
	else if (cfg->store_sync == CONFIG_SYNC_NEVER)
		c.sync = (struct sync_setting){ .policy = SYNC_POLICY_NEVER };
	return c;
}

static void
say_recovered(const struct store_report *r, const struct broker *b)
{
	if (r->is_new && r->damaged == 0)
		return;
	log_info("journal: %" PRIu64 " records read, %" PRIu64 " queues, %" PRIu64 " messages",
	    r->records, b->stats.queues, b->stats.messages_ready);
	if (r->damaged > 0)
		log_error("journal: what stood in damaged places is lost; there are %" PRIu64,
		    r->damaged);
	if (r->clock_ms > b->now_ms + CLOCK_BACK_MS)
		log_warning("the clock stands %" PRIu64
		            " s before the time of the last record in the journal: messages "
		            "expire later than they should",
		    (r->clock_ms - b->now_ms) / 1000);
}

bool
node_store_open(struct node_store *ns, struct loop *l, struct broker *b, const struct config *cfg,
    char err[STORE_ERROR])
{
	struct store_config c = config_of(cfg);
	struct store_report r = { 0 };

	ns->broker = b;
	ns->cfg = cfg;
	ns->workers = workers_new(WORKERS);
	ns->disk = disk_real_new(cfg->data_dir);
	ns->store = store_new(&c, ns->disk, ns->workers, &persist_store_ops, b);
	if (store_recover(ns->store, &r, err) != 0)
		return false;
	b->store = ns->store;
	if (r.next_id > b->next_id)
		b->next_id = r.next_id;
	b->now_ms = clock_now_ms(); /* it may have taken long: what begins anew begins now */
	persist_link(b);
	ns->positions = loop_watch(l, store_fd(ns->store), on_positions, ns);
	ns->answers = loop_watch(l, workers_fd(ns->workers), on_answers, ns);
	say_recovered(&r, b);
	return true;
}

bool
node_store_turn(struct node_store *ns, uint64_t now_ms)
{
	uint64_t loads = ns->broker->loads;
	bool more = store_turn(ns->store, ns->broker->next_id, now_ms);

	end_if_failed(ns);
	/* Who waits for what was read is served in the next turn. */
	return more || ns->broker->loads != loads;
}

/* ---- the end ---- */

struct patience {
	struct node_store *ns;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended; /* on the monotonic clock */
	bool is_over;
};

/* Under the lock. False: the store was closed before. */
static bool
pass_ms(struct patience *p, unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	while (!p->is_over)
		if (pthread_cond_timedwait(&p->ended, &p->lock, &until) == ETIMEDOUT)
			return true;
	return false;
}

static void *
wait_in_vain(void *arg)
{
	struct patience *p = arg;

	pthread_mutex_lock(&p->lock);
	if (pass_ms(p, SAY_MS)) {
		log_warning("the disk of %s does not answer; the end waits for it, at most %d s",
		    p->ns->cfg->data_dir, CLOSE_MS / 1000);
		if (pass_ms(p, CLOSE_MS - SAY_MS)) {
			log_error(
			    "the disk of %s did not answer: the process ends without it; what "
			    "was confirmed is there at the next start",
			    p->ns->cfg->data_dir);
			end_process(p->ns);
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* The loop has ended and nobody turns: a thread looks at the clock. */
static void
patience_begins(struct patience *p, struct node_store *ns)
{
	pthread_condattr_t attr;

	*p = (struct patience){ .ns = ns };
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&p->thread, NULL, wait_in_vain, p) != 0) {
		log_error("cannot start a thread");
		end_process(ns);
	}
}

static void
patience_ends(struct patience *p)
{
	pthread_mutex_lock(&p->lock);
	p->is_over = true;
	pthread_cond_signal(&p->ended);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->ended);
	pthread_mutex_destroy(&p->lock);
}

void
node_store_close(struct node_store *ns)
{
	struct patience p;

	patience_begins(&p, ns);
	loop_unwatch(&ns->positions);
	loop_unwatch(&ns->answers);
	if (ns->broker != NULL)
		persist_unlink(ns->broker);
	if (ns->store != NULL)
		store_free(&ns->store);
	if (ns->workers != NULL)
		workers_free(&ns->workers);
	if (ns->disk != NULL)
		disk_free(&ns->disk);
	patience_ends(&p);
}
