/* SPDX-License-Identifier: Apache-2.0
 * Messages on their way into segment files and back. */
#include <errno.h>

#include "tests/unit/chain_world.h"

static void
publish_many(struct owner *q, unsigned n, uint64_t size)
{
	for (unsigned i = 0; i < n; i++) {
		owner_publish(q, size, i % 5 != 0, 0);
		if (i % 100 == 0)
			(void)chain_turn();
	}
}

static void
publish_at_once(struct owner *q, uint64_t n)
{
	while (n-- > 0)
		owner_publish(q, 100, true, 0);
}

/* Its queue is deleted. */
static void
owner_goes(struct owner *q)
{
	store_gone(cw.store, OBJECT_QUEUE, q->id);
	lane_close(&q->lane);
	for (uint64_t seq = 1; seq < q->next; seq++) {
		if (q->e[seq].item != NULL)
			item_unref(q->e[seq].item);
		q->e[seq] = (struct entry){ 0 };
	}
}

START_TEST(in_and_out)
{
	struct owner *q = &cw.q[0];
	struct store_stats stats;

	chain_init(1);
	q->keep = (uint64_t)_i * 70;
	chain_start();
	publish_many(q, 20000, 100);
	chain_settle();
	chain_check();
	REQUIRE(q->lane->high - q->lane->low <= cw.cfg.lane_entries);
	REQUIRE(lane_unread(q->lane) > 19000);
	store_stats(cw.store, &stats);
	REQUIRE(stats.segment_live + q->lane->live == 20000 && stats.spilled == stats.segment_live);
	REQUIRE(
	    stats.segments >= 2 && stats.segments < 10); /* 16,384 a file, whatever the jobs were */
	REQUIRE(owner_drain(q) == 20000);
	chain_settle();
	store_stats(cw.store, &stats);
	REQUIRE(stats.segments == 0 && stats.segment_garbage == 0 && stats.segment_live == 0);
	REQUIRE(files_in("segments") == 0);
	REQUIRE(cw.items == 0);
	chain_fini();
}
END_TEST

/* Nothing takes messages out of memory for a while: who publishes is told to wait, until all is within its bounds. */
START_TEST(lagging)
{
	struct owner *q = &cw.q[0];
	uint64_t bound = 2 * 400;

	chain_init(3);
	chain_start();
	publish_at_once(q, bound - 100);
	REQUIRE(!store_lags(cw.store));
	publish_at_once(q, 200);
	REQUIRE(q->lane->lags && store_lags(cw.store));
	REQUIRE(!cw.q[1].lane->lags);
	chain_settle();
	REQUIRE(!q->lane->lags && !store_lags(cw.store));
	REQUIRE(q->lane->high - q->lane->low <= cw.cfg.lane_entries);
	publish_at_once(q, bound + 100);
	REQUIRE(store_lags(cw.store));
	owner_goes(q);
	REQUIRE(!store_lags(cw.store));
	q->next = q->low = 1;
	q->lane = lane_open(cw.store, q->id = 77, 0, true, q);
	chain_fini();
}
END_TEST

/* Under memory pressure many lanes are spilled at once, but not all of them begin in one turn. */
START_TEST(not_all_in_one_turn)
{
	chain_init(4);
	cw.cfg.lane_entries = 60000;
	chain_start();
	for (unsigned i = 0; i < QUEUES; i++)
		publish_at_once(&cw.q[i], 30000);
	for (unsigned turn = 0; turn < QUEUES; turn++) {
		for (unsigned i = 0; turn == 0 && i < QUEUES; i++)
			REQUIRE(lane_spill(cw.q[i].lane, 0));
		REQUIRE(workers_waiting(cw.workers) == turn + 1);
		(void)store_turn(cw.store, 1000, ++cw.now_ms);
	}
	chain_settle();
	for (unsigned i = 0; i < QUEUES; i++)
		REQUIRE(cw.q[i].lane->live == 0);
	chain_check();
	chain_fini();
}
END_TEST

/* Thousands of files go, some at a time; while a snapshot holds them they are not looked at. */
START_TEST(many_files_go)
{
	struct owner *q = &cw.q[0];
	const struct segment *g;
	unsigned doomed, before;

	chain_init(5);
	cw.cfg.segment_messages = 1;
	cw.cfg.lane_entries = 60000;
	q->keep = 10000;
	chain_start();
	publish_at_once(q, 2500);
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(q->lane->segments == 2500);
	lane_ack_from(q->lane, 1, ACK_PURGED);
	for (uint64_t seq = 1; seq < q->next; seq++) {
		item_unref(q->e[seq].item);
		q->e[seq] = (struct entry){ 0 };
	}
	store_flush(cw.store);
	(void)store_wait_all(cw.store);
	journal_hand_over(cw.store->journal, 1000, cw.now_ms);
	while (journal_step(cw.store->journal))
		;
	(void)store_events(cw.store);
	cw.store->snapshot_holds++;
	REQUIRE(!segments_reap(cw.store) && workers_waiting(cw.workers) == 0);
	cw.store->snapshot_holds--;
	for (before = 2500; before > 0; before = doomed) {
		bool more = segments_reap(cw.store);

		doomed = 0;
		TAILQ_FOREACH (g, &cw.store->chains.doomed, link)
			doomed++;
		REQUIRE(doomed < before && before - doomed <= 1024 && more == (doomed > 0));
	}
	chain_settle();
	REQUIRE(files_in("segments") == 0);
	chain_fini();
}
END_TEST

/* What is not persistent survives once it was spilled; what was requeued keeps its counts. */
START_TEST(over_a_restart)
{
	struct owner *q = &cw.q[0];
	uint64_t alive;

	chain_init(2);
	chain_start();
	publish_many(q, 5000, 300);
	chain_settle();
	for (unsigned i = 0; i < 300; i++) {
		uint64_t seq;

		while ((seq = owner_deliver(q)) == 0) {
			lane_read(q->lane, 50000);
			chain_settle();
		}
		if (i % 3 == 0)
			owner_ack(q, seq);
		else if (i % 3 == 1)
			owner_requeue(q, seq);
	}
	chain_settle();
	chain_check();
	for (uint64_t seq = q->lane->chain_end + 1; seq < q->next; seq++)
		if (q->e[seq].place == READY && !q->e[seq].persistent)
			owner_ack(q, seq); /* it would be gone */
	chain_settle();
	alive = owner_count(q, READY) + owner_count(q, AWAY) + owner_count(q, GIVEN);
	chain_stop();
	chain_start();
	REQUIRE(cw.report.messages == alive);
	chain_settle();
	chain_check();
	REQUIRE(owner_drain(q) == alive);
	chain_settle();
	REQUIRE(files_in("segments") == 0);
	chain_fini();
}
END_TEST

START_TEST(big_bodies)
{
	static const uint64_t size[] = { 0, 1, 900 << 10, 1 << 20, 3 << 20, 18 << 20 };
	struct owner *q = &cw.q[0];

	chain_init(3);
	cw.cfg.lane_bytes = 1 << 20;
	chain_start();
	for (unsigned i = 0; i < 40; i++) {
		owner_publish(q, size[rnd(&cw.r, COUNT_OF(size))], i % 4 != 0, 0);
		(void)chain_turn();
	}
	chain_settle();
	chain_check();
	REQUIRE(lane_memory_bytes(q->lane) <= cw.cfg.lane_bytes);
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(lane_memory_bytes(q->lane) == 0);
	REQUIRE(owner_drain(q) == 40);
	chain_settle();
	REQUIRE(files_in("segments") == 0);
	chain_fini();
}
END_TEST

START_TEST(the_disk_is_full)
{
	struct owner *q = &cw.q[0];

	chain_init(4);
	chain_start();
	publish_many(q, 300, 400); /* the roll leaves it alone */
	chain_settle();
	REQUIRE(q->lane->live == 300);
	disk_sim_set_capacity(cw.disk, disk_sim_used(cw.disk) + (50 << 10));
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	chain_check();
	REQUIRE(q->lane->segments == 0 && lane_unread(q->lane) == 0);
	REQUIRE(files_in("segments") == 0);
	REQUIRE(store_failed(cw.store) == 0);
	REQUIRE(!lane_spill(q->lane, 0)); /* not at once */
	disk_sim_set_capacity(cw.disk, UINT64_MAX);
	cw.now_ms += 2000;
	chain_settle();
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(q->lane->live == 0 && lane_unread(q->lane) == 300);
	REQUIRE(owner_drain(q) == 300);
	chain_fini();
}
END_TEST

START_TEST(a_sync_fails)
{
	struct owner *q = &cw.q[0];

	chain_init(5);
	chain_start();
	publish_many(q, 100, 1000);
	chain_settle();
	REQUIRE(lane_spill(q->lane, 0));
	disk_sim_fail_sync(cw.disk, 1);
	while (workers_step(cw.workers, 0))
		;
	workers_take(cw.workers);
	(void)store_turn(cw.store, 1000, ++cw.now_ms);
	REQUIRE(store_failed(cw.store) == -EIO);
	REQUIRE(q->lane->segments == 0 && q->lane->live == 100);
	chain_stop();
	chain_start();
	REQUIRE(owner_count(q, READY) == 80); /* every fifth was not persistent */
	REQUIRE(owner_drain(q) == 80);
	chain_fini();
}
END_TEST

/* It is the sync that says that the disk is full: the messages stay, and go into another file than the one whose sync
 * failed, new or continued. */
START_TEST(a_sync_has_no_room)
{
	struct owner *q = &cw.q[0];
	bool is_continued = _i & 1;
	uint64_t count;

	chain_init((uint64_t)_i);
	chain_start();
	publish_many(q, 200, 400);
	chain_settle();
	if (is_continued) {
		REQUIRE(lane_spill(q->lane, q->lane->bytes / 2));
		chain_settle();
		REQUIRE(q->lane->segments == 1 && q->lane->live > 0);
	}
	count = q->lane->live;
	REQUIRE(lane_spill(q->lane, 0));
	disk_sim_sync_error(cw.disk, _i & 2 ? -EDQUOT : -ENOSPC);
	disk_sim_fail_sync(cw.disk, 1);
	while (workers_step(cw.workers, 0))
		;
	workers_take(cw.workers);
	chain_settle();
	REQUIRE(store_failed(cw.store) == 0);
	REQUIRE(q->lane->live == count && q->lane->segments == is_continued);
	REQUIRE(files_in("segments") == is_continued);
	cw.now_ms += 2000;
	chain_settle();
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(q->lane->live == 0 && q->lane->segments == 1u + is_continued);
	chain_check();
	chain_is_durable();
	chain_crash((uint64_t)_i);
	chain_start();
	REQUIRE(owner_drain(q) == 200);
	chain_fini();
}
END_TEST

/* The lane goes at each point of a spill and of a read. */
START_TEST(closed_meanwhile)
{
	struct owner *q = &cw.q[0];
	unsigned steps = (unsigned)_i;

	chain_init((uint64_t)_i);
	chain_start();
	publish_many(q, 300, 1000);
	REQUIRE(lane_spill(q->lane, 0));
	for (; steps > 0; steps--) {
		if (lane_unread(q->lane) > 0)
			lane_read(q->lane, 50000);
		if (rnd_chance(&cw.r, 50))
			(void)workers_step(cw.workers, 0);
		else
			workers_take(cw.workers);
		(void)store_turn(cw.store, 1000, ++cw.now_ms);
	}
	owner_goes(q);
	chain_settle();
	REQUIRE(cw.items == 0);
	REQUIRE(files_in("segments") == 0);
	REQUIRE(disk_sim_open_files(cw.disk) == files_in("journal") ||
	        disk_sim_open_files(cw.disk) < 8);
	q->next = q->low = 1;
	q->lane = lane_open(cw.store, q->id = 77, 0, true, q);
	chain_fini();
}
END_TEST

/* Acknowledged, all or in part, while the job runs; also what the continued segment had before. */
START_TEST(acknowledged_meanwhile)
{
	struct owner *q = &cw.q[0];
	uint64_t seq;

	chain_init((uint64_t)_i);
	q->keep = 10000;
	chain_start();
	publish_many(q, 100, 1000);
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(q->lane->segments == 1 && q->lane->segment[0]->live == 100);
	publish_many(q, 100, 1000);
	REQUIRE(lane_spill(q->lane, 0));
	if (_i & 1)
		while (workers_step(cw.workers, 0))
			;
	for (unsigned i = 0; i < ((_i & 2) != 0 ? 200u : 150u); i++) {
		seq = owner_deliver(q);
		if (seq % 7 == 0 && (_i & 2) == 0)
			owner_requeue(q, seq);
		else
			owner_ack(q, seq);
		if (i == 99 && (_i & 4) != 0) {
			store_flush(cw.store);
			(void)segments_reap(cw.store);
		}
	}
	chain_settle();
	chain_check();
	if (_i & 2) {
		REQUIRE(files_in("segments") == 0 && q->lane->segments == 0);
	} else {
		uint64_t alive = owner_count(q, READY);

		REQUIRE(q->lane->segments == 1);
		chain_stop();
		chain_start();
		for (seq = 1; seq < q->next; seq++) /* those not spilled and not persistent */
			REQUIRE(q->e[seq].place != AWAY || seq <= q->lane->chain_end);
		REQUIRE(owner_drain(q) == alive);
	}
	chain_fini();
}
END_TEST

/* All that a segment had goes while a spill adds to it: the file stays for what is new, in this run and in the next. */
START_TEST(emptied_while_continued)
{
	struct owner *q = &cw.q[0];

	chain_init((uint64_t)_i);
	q->keep = 10000;
	chain_start();
	publish_many(q, 100, 1000);
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	publish_many(q, 100, 1000);
	REQUIRE(lane_spill(q->lane, 0));
	for (unsigned i = 0; i < 100; i++)
		owner_ack(q, owner_deliver(q));
	while (journal_step(cw.store->journal)) /* the ACK is durable before the job begins */
		;
	(void)store_events(cw.store);
	(void)store_turn(cw.store, 1000, ++cw.now_ms);
	while (journal_step(cw.store->journal))
		;
	(void)store_events(cw.store);
	(void)segments_reap(cw.store);
	chain_settle();
	chain_check();
	REQUIRE(q->lane->segments == 1 && q->lane->segment[0]->first == 1 &&
	        q->lane->segment[0]->live == 100);
	if (_i == 1) {
		chain_stop();
		chain_start();
		chain_settle();
	}
	REQUIRE(files_in("segments") == 1);
	REQUIRE(owner_drain(q) == 100);
	chain_settle();
	REQUIRE(files_in("segments") == 0);
	chain_fini();
}
END_TEST

static void
flip(const char *name, uint64_t at)
{
	disk_sim_flip(cw.disk, name, at, (unsigned)rnd(&cw.r, 8));
}

/* A bit flips somewhere; at most that message is lost, it is said, and the lane goes on. */
START_TEST(damage)
{
	struct owner *q = &cw.q[0];
	char name[SEGMENT_NAME];
	uint64_t size, got;

	chain_init((uint64_t)_i);
	cw.is_damaged = true;
	chain_start();
	for (unsigned i = 0; i < 2000; i++)
		owner_publish(q, rnd(&cw.r, 5000), true, 0);
	chain_settle();
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(lane_unread(q->lane) == 2000);
	segment_name(q->lane, q->lane->segment[0]->first, name);
	REQUIRE(disk_sim_bytes(cw.disk, name, &size) != NULL);
	flip(name, rnd(&cw.r, _i % 4 == 0 ? HEADER_USED : size));
	got = owner_drain(q);
	REQUIRE(got + q->lost == 2000 && q->lost <= 1);
	chain_settle();
	REQUIRE(lane_unread(q->lane) == 0 && q->lane->segments == 0);
	REQUIRE(files_in("segments") == 0);
	REQUIRE(cw.store->stats.damaged_messages == q->lost);
	if (q->lost > 0)
		REQUIRE(cw.store->stats.damaged > 0 && files_in("set-aside") == 1);
	chain_fini();
}
END_TEST

START_TEST(file_missing_or_cut)
{
	struct owner *q = &cw.q[0];
	char name[SEGMENT_NAME];
	struct disk_file *f;
	uint64_t got, in_it;

	chain_init((uint64_t)_i);
	cw.is_damaged = true;
	chain_start();
	publish_many(q, 20000, 50);
	chain_settle();
	REQUIRE(q->lane->segments >= 2);
	in_it = q->lane->segment[0]->live;
	segment_name(q->lane, q->lane->segment[0]->first, name);
	if (_i == 0) {
		REQUIRE(cw.disk->ops->unlink(cw.disk, name) == 0);
	} else {
		REQUIRE(cw.disk->ops->open(cw.disk, name, DISK_WRITE, &f) == 0);
		REQUIRE(cw.disk->ops->resize(f, _i == 1 ? 100 : 2 << 20) == 0);
		cw.disk->ops->close(f);
	}
	got = owner_drain(q);
	REQUIRE(got + q->lost == 20000);
	REQUIRE(_i == 2 ? q->lost < in_it && q->lost > 0 : q->lost == in_it);
	chain_settle();
	REQUIRE(q->lane->segments == 0 && lane_unread(q->lane) == 0);
	chain_fini();
}
END_TEST

START_TEST(a_read_fails)
{
	struct owner *q = &cw.q[0];
	uint64_t got;

	chain_init((uint64_t)_i);
	cw.is_damaged = true;
	chain_start();
	publish_many(q, 3000, 1000);
	chain_settle();
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	disk_sim_fail_read(cw.disk, (uint64_t)_i + 1);
	got = owner_drain(q);
	REQUIRE(got + q->lost == 3000 && q->lost == 0); /* the second try, in blocks, went well */
	chain_fini();
}
END_TEST

/* No memory for what was read: it is there at a later read, and nobody tries all the time. */
START_TEST(no_memory)
{
	struct owner *q = &cw.q[0];
	uint64_t until;

	chain_init(9);
	chain_start();
	publish_many(q, 1000, 100);
	chain_settle();
	cw.refuse = 3;
	REQUIRE(lane_unread(q->lane) > 0);
	lane_read(q->lane, 10000);
	REQUIRE(lane_is_reading(q->lane));
	chain_settle();
	REQUIRE(!lane_is_reading(q->lane) && cw.refuse == 2 && q->loads == 1);
	lane_read(q->lane, 10000);
	chain_settle();
	REQUIRE(lane_is_reading(q->lane) && cw.refuse == 2 && q->loads == 1);
	for (until = cw.now_ms + 900; cw.now_ms < until;)
		REQUIRE(!chain_turn());
	REQUIRE(lane_is_reading(q->lane) && cw.refuse == 2);
	for (until = cw.now_ms + 200; cw.now_ms < until;)
		(void)chain_turn();
	REQUIRE(!lane_is_reading(q->lane) && cw.refuse == 1 && q->loads == 2);
	cw.refuse = 0;
	cw.now_ms += 1000;
	REQUIRE(owner_drain(q) == 1000);
	chain_fini();
}
END_TEST

START_TEST(purge_and_expiry)
{
	struct owner *q = &cw.q[0];
	uint64_t bytes, n, seq, in_memory = 0;

	chain_init(10);
	chain_start();
	for (unsigned i = 0; i < 40000; i++) {
		owner_publish(q, 10, true, 5000 + i / 16384);
		if (i % 100 == 0)
			(void)chain_turn();
	}
	chain_settle();
	n = q->lane->segments;
	REQUIRE(n >= 3);
	REQUIRE(lane_expire_unread(q->lane, 4999, &bytes) == 0);
	n = lane_expire_unread(q->lane, 5001, &bytes);
	REQUIRE(n > 0 && n < lane_unread(q->lane) + n && bytes == n * 10);
	for (seq = 1; n > 0; seq++, n--) {
		REQUIRE(q->e[seq].place == AWAY);
		q->e[seq].place = GONE;
	}
	owner_settles(q);
	chain_check();
	chain_settle();
	lane_read(q->lane, 1000);
	chain_settle();
	REQUIRE(owner_count(q, READY) > 0);
	seq = owner_deliver(q);
	lane_read(q->lane, 200000); /* a read is under way */
	for (uint64_t s = seq + 1; s < q->next; s++) {
		in_memory += q->e[s].place == READY;
	}
	lane_ack_from(q->lane, seq + 1, ACK_PURGED);
	for (uint64_t s = seq + 1; s < q->next; s++) {
		if (q->e[s].item != NULL)
			item_unref(q->e[s].item);
		q->e[s] = (struct entry){ 0 };
	}
	REQUIRE(in_memory > 0 && lane_unread(q->lane) == 0 && q->lane->live == 0);
	chain_settle();
	chain_check();
	REQUIRE(q->lane->segments == 1 && files_in("segments") == 1 && !lane_is_reading(q->lane));
	chain_stop();
	chain_start();
	REQUIRE(owner_drain(q) == 1);
	chain_fini();
}
END_TEST

START_TEST(transient_lanes)
{
	struct owner *q = &cw.q[0];
	struct lane_item items[500];
	unsigned n = 0;

	chain_init(11);
	q->durable = false;
	chain_start();
	for (unsigned i = 0; i < 600; i++)
		owner_publish(q, 100, false, 0);
	for (uint64_t seq = 51; seq <= 550; seq++)
		items[n++] = (struct lane_item){ q->e[seq].item, seq, { 0 } };
	REQUIRE(lane_spill_items(q->lane, items, n));
	for (unsigned i = 0; i < 60; i++) /* some of what is being written */
		owner_ack(q, owner_deliver(q));
	while (workers_step(cw.workers, 0))
		;
	for (unsigned i = 0; i < 10; i++)
		owner_ack(q, owner_deliver(q));
	chain_settle();
	REQUIRE(files_in("transient") == 1 && lane_unread(q->lane) == 480);
	REQUIRE(owner_drain(q) == 530);
	chain_settle();
	REQUIRE(files_in("transient") == 0);
	chain_fini();
}
END_TEST

/* One in fifty stays: files shrink, and everything is there, also over a restart. */
START_TEST(rewritten)
{
	struct owner *q = &cw.q[0];
	struct store_stats stats;
	uint64_t seq, alive = 0;

	chain_init(12);
	cw.cfg.garbage_max = 1 << 20;
	cw.cfg.sync.policy = _i == 0 ? SYNC_POLICY_ALWAYS : SYNC_POLICY_NEVER;
	chain_start();
	publish_many(q, 60000, 200);
	chain_settle();
	for (unsigned i = 0; i < 55000; i++) {
		while ((seq = owner_deliver(q)) == 0) {
			lane_read(q->lane, 100000);
			(void)chain_turn();
		}
		if (i % 50 != 0)
			owner_ack(q, seq);
		if (i % 200 == 0) {
			cw.now_ms += 1000;
			(void)chain_turn();
		}
	}
	for (unsigned i = 0; i < 50; i++) {
		cw.now_ms += 1000;
		(void)store_wait_all(
		    cw.store); /* an ACK that is never synced keeps what it removes */
		chain_settle();
	}
	chain_check();
	store_stats(cw.store, &stats);
	REQUIRE(stats.rewritten > 2);
	REQUIRE(stats.segment_bytes < (5000 + 1100) * 300 + (3u << 20));
	for (seq = q->lane->chain_end + 1; seq < q->next; seq++)
		if (q->e[seq].place == READY && !q->e[seq].persistent)
			owner_ack(q, seq);
	for (seq = 1; seq < q->next; seq++)
		alive += q->e[seq].place != GONE;
	chain_settle();
	chain_stop();
	chain_start();
	REQUIRE(owner_drain(q) == alive);
	chain_fini();
}
END_TEST

/* The new file has its name, and then the power goes, before the SEG with its end is on disk. */
START_TEST(cut_after_a_rename)
{
	struct owner *q = &cw.q[0];
	uint64_t size = 0, was, seq, alive;
	char name[SEGMENT_NAME];

	chain_init(13);
	cw.cfg.garbage_max = 1000;
	chain_start();
	publish_many(q, 1000, 200);
	chain_settle(); /* the lane is over its bounds: a job of its own may wait */
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	segment_name(q->lane, q->lane->segment[0]->first, name);
	for (unsigned i = 0; i < 800; i++) {
		while ((seq = owner_deliver(q)) == 0) {
			lane_read(q->lane, 20000);
			chain_settle();
		}
		if (i % 4 != 0)
			owner_ack(q, seq);
	}
	REQUIRE(disk_sim_bytes(cw.disk, name, &was) != NULL);
	for (unsigned i = 0;; i++) {
		REQUIRE(i < 1000);
		while (journal_step(cw.store->journal))
			;
		while (workers_step(cw.workers, 0))
			;
		REQUIRE(disk_sim_bytes(cw.disk, name, &size) != NULL);
		if (size < was)
			break;
		workers_take(cw.workers);
		(void)store_events(cw.store);
		(void)store_turn(cw.store, 1000, cw.now_ms += 100);
	}
	chain_is_durable();
	for (seq = alive = 1; seq < q->next; seq++)
		alive +=
		    q->e[seq].place != GONE && (q->e[seq].persistent || seq <= q->lane->chain_end);
	disk_sim_cut_after(cw.disk, 1, true);
	chain_crash(5);
	chain_start();
	REQUIRE(owner_drain(q) == alive - 1 && cw.store->stats.damaged == 0);
	chain_fini();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("spill");
	TCase *t = tcase_create("spill");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, in_and_out, 0, 3);
	tcase_add_test(t, lagging);
	tcase_add_test(t, not_all_in_one_turn);
	tcase_add_test(t, many_files_go);
	tcase_add_test(t, over_a_restart);
	tcase_add_test(t, big_bodies);
	tcase_add_test(t, the_disk_is_full);
	tcase_add_test(t, a_sync_fails);
	tcase_add_loop_test(t, a_sync_has_no_room, 0, 16);
	tcase_add_loop_test(t, closed_meanwhile, 0, 12);
	tcase_add_loop_test(t, acknowledged_meanwhile, 0, 8);
	tcase_add_loop_test(t, emptied_while_continued, 0, 2);
	tcase_add_loop_test(t, damage, 0, 40);
	tcase_add_loop_test(t, file_missing_or_cut, 0, 3);
	tcase_add_loop_test(t, a_read_fails, 0, 3);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, purge_and_expiry);
	tcase_add_test(t, transient_lanes);
	tcase_add_loop_test(t, rewritten, 0, 2);
	tcase_add_test(t, cut_after_a_rename);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
