/* SPDX-License-Identifier: Apache-2.0
 * On top of queue_world.h: a broker with a store in a folder of its own, without threads. The folder as it is at any time
 * can be the start of another broker: what a node finds whose process was killed there. */
#ifndef TESTS_PERSIST_WORLD_H
#define TESTS_PERSIST_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/worker.h"
#include "broker/persist.h"
#include "broker/publish.h"
#include "broker/queue_priv.h"
#include "store/disk.h"
#include "store/store_priv.h"
#include "tests/unit/queue_world.h"
#include "tests/unit/test_folder.h"

struct node {
	struct world w;
	struct client client;
	char folder[64];
	struct disk *disk;
	struct workers *workers;
	struct store_report report;
	struct store_config cfg;
};

/* cfg, folder and now_ms are set. */
static inline void
node_open(struct node *n, uint64_t now_ms)
{
	char err[STORE_ERROR] = "";

	n->w.cfg.unacknowledged = 65535;
	n->w.wheel = wheel_new(now_ms);
	n->w.broker = broker_new(&n->w.cfg, n->w.wheel, now_ms);
	n->disk = disk_real_new(n->folder);
	n->workers = workers_new(0);
	n->w.broker->store =
	    store_new(&n->cfg, n->disk, n->workers, &persist_store_ops, n->w.broker);
	ck_assert_msg(store_recover(n->w.broker->store, &n->report, err) == 0, "%s", err);
	if (n->report.next_id > n->w.broker->next_id)
		n->w.broker->next_id = n->report.next_id;
	persist_link(n->w.broker);
	n->w.vhost = vhost_find(n->w.broker, SPAN_LIT("/"));
	world_client(&n->w, &n->client);
}

static inline void
node_init(struct node *n)
{
	memset(n, 0, sizeof *n);
	n->cfg = (struct store_config){
		.journal_file_size = 1 << 20,
		.journal_max = 64 << 20,
		.sync = { .policy = SYNC_POLICY_ALWAYS },
		.lane_entries = 131072,
		.lane_bytes = 32 << 20,
		.garbage_max = 64 << 20,
	};
	test_folder_make(n->folder, sizeof n->folder);
	node_open(n, 1000);
}

/* A turn; the other threads do all that they can. True: something happened. */
static inline bool
node_turn(struct node *n)
{
	struct store *s = n->w.broker->store;
	uint64_t loads;
	bool more;

	world_turn(&n->w);
	loads = n->w.broker->loads;
	more = store_turn(s, n->w.broker->next_id, n->w.broker->now_ms);
	while (journal_step(s->journal))
		more = true;
	while (workers_step(n->workers, 0))
		more = true;
	workers_take(n->workers);
	more |= store_events(s);
	ck_assert_int_eq(store_failed(s), 0);
	return more || n->w.broker->loads != loads;
}

static inline void
node_settle(struct node *n)
{
	for (int i = 0; node_turn(n); i++)
		ck_assert_int_lt(i, 100000);
	world_turn(&n->w);
}

/* Sessions were ended before. The folder stays. */
static inline void
node_close(struct node *n)
{
	struct store *s = n->w.broker->store;

	client_fini(&n->client);
	persist_unlink(n->w.broker);
	store_free(&s);
	workers_free(&n->workers);
	disk_free(&n->disk);
	broker_free(&n->w.broker);
	wheel_free(&n->w.wheel);
}

/* What a killed process leaves becomes another node: n goes on from there. Sessions were ended, if `gently`. */
static inline void
node_restart(struct node *n, bool gently, uint64_t now_ms, void (*end_sessions)(void))
{
	char old[64], command[256];

	if (gently) {
		end_sessions();
		node_close(n);
		node_open(n, now_ms);
		return;
	}
	memcpy(old, n->folder, sizeof old);
	test_folder_make(n->folder, sizeof n->folder);
	snprintf(command, sizeof command, "cp -r %s/. %s/", old, n->folder);
	ck_assert_int_eq(system(command), 0);
	end_sessions();
	node_close(n);
	test_folder_remove(old);
	node_open(n, now_ms);
}

static inline void
node_fini(struct node *n)
{
	node_close(n);
	test_folder_remove(n->folder);
}

static inline struct queue *
node_queue(struct node *n, const char *name, bool durable)
{
	struct queue_spec spec = { .name = span_str(name), .durable = durable };
	struct queue *q = NULL;
	const struct error *e = queue_declare(n->w.vhost, &spec, NULL, &q);

	ck_assert_msg(e == NULL, "%s", e->text);
	return q;
}

/* Through the broker's front door, as amqp/ does it. */
static inline struct store_wait
node_publish(struct node *n, struct queue *q, struct msg *m, uint64_t due_ms)
{
	struct queue *list[1] = { q };
	struct route route = { .count = 1, .queue = list };
	struct store_wait wait;

	ck_assert_int_eq(publish_deliver(n->w.broker, m, &route, due_ms, &wait), PUBLISH_ROUTED);
	return wait;
}

static inline struct msg *
persistent_msg(uint64_t number, uint32_t body_size)
{
	struct msg *m = world_msg(number, body_size);

	m->flags = MSG_PERSISTENT;
	return m;
}

#endif
