/* SPDX-License-Identifier: Apache-2.0
 * What a start of the store finds: chains of segments, objects, what must not be read, and records that contradict each
 * other. */
#include <errno.h>
#include <stdio.h>

#include "store/store.h"
#include "tests/sim/rnd.h"
#include "tests/unit/store_lanes.h"

/* ---- chains ---- */

static void
read_all(void)
{
	while (lane_unread(l) > 0) {
		uint64_t before = w.loaded_n;

		lane_read(l, 1 << 20);
		world_turn();
		ck_assert_uint_gt(w.loaded_n, before);
	}
}

START_TEST(spilled)
{
	w.lets_go = true;
	for (uint64_t seq = 1; seq <= MANY; seq += 100) {
		publish_many(l, seq, seq + 99);
		world_turn();
	}
	ck_assert_uint_gt(l->chain_end, MANY / 2);
	ck_assert_uint_eq(lane_unread(l), l->chain_end);
	ck_assert_uint_eq(l->live + lane_unread(l), MANY);
	ck_assert_uint_le(l->high - l->low, 1100);
	entries_fini(&found);
	world_kill();
	ck_assert_uint_eq(w.report.messages, MANY);
	l = lane_open(w.s, QUEUE, 0, true, &w);
	other = lane_open(w.s, OTHER, 0, true, &w);
	store_linked(w.s);
	ck_assert_uint_eq(lane_next_seq(l), MANY + 1);
	read_all();
	ck_assert_uint_eq(w.loaded_n, l->chain_end);
	for (unsigned i = 0; i < w.loaded_n; i++)
		if (w.loaded[i] != i + 1 || w.loaded_item[i]->size != one->size)
			ck_abort_msg("%u: seq %lu", i, (unsigned long)w.loaded[i]);
	forget_loaded();
}
END_TEST

/* Acknowledgements and states of what lies in the chain, over a kill. */
START_TEST(acks_in_the_chain)
{
	struct op_state state = { true, 4, 5 };
	uint64_t chain, before;

	w.lets_go = true;
	publish_many(l, 1, MANY);
	world_turn();
	world_turn();
	chain = l->chain_end;
	ck_assert_uint_gt(chain, 3000);
	before = records();
	for (uint64_t seq = 1; seq <= 1000; seq++)
		lane_ack(l, seq, one->size, ACK_ACKED);
	lane_ack(l, 1500, one->size, ACK_ACKED);
	lane_set_state(l, 1600, &state);
	lane_set_state(l, 900, &state);
	ck_assert_uint_eq(lane_unread(l), chain - 1001);
	world_turn();
	ck_assert_uint_le(records(), before + 4);
	world_kill();
	ck_assert_uint_eq(w.report.messages, MANY - 1001);
	l = lane_open(w.s, QUEUE, 0, true, &w);
	other = lane_open(w.s, OTHER, 0, true, &w);
	store_linked(w.s);
	ck_assert(lane_segment(l, 1600) != NULL);
	ck_assert_uint_eq(segment_state(lane_segment(l, 1600), 1600)->deliveries, 4);
	read_all();
	ck_assert_uint_eq(w.loaded_n, chain - 1001);
	ck_assert(w.loaded[0] == 1001 && w.loaded[498] == 1499 && w.loaded[499] == 1501);
	forget_loaded();
}
END_TEST

/* One message stays unacknowledged while others come and go: it is put into the chain, and memory stays small. */
START_TEST(an_old_one_stays)
{
	uint64_t span = 0;

	w.s->cfg.lane_entries = UINT64_MAX;
	publish_many(l, 1, 1);
	for (uint64_t seq = 2; seq < 500000; seq += 5000) {
		publish_many(l, seq, seq + 4999);
		for (uint64_t k = seq; k < seq + 5000; k++)
			lane_ack(l, k, one->size, ACK_ACKED);
		if (l->high - l->low > span)
			span = l->high - l->low;
		world_turn();
	}
	ck_assert_uint_lt(span, 150000);
	ck_assert(l->segments == 1 && l->segment[0]->live == 1 && l->segment[0]->first == 1);
	lane_ack(l, 1, one->size, ACK_ACKED);
	world_turn();
	ck_assert(l->segments == 0 && l->live == 0 && l->ring == NULL);
}
END_TEST

/* Given out while it was in memory only, and then spilled: it comes back as one that may have been delivered. */
START_TEST(volatile_is_spilled)
{
	struct item *v = item_new("v", 1, false);

	(void)lane_add_volatile(l, 1, v);
	(void)lane_add_volatile(l, 2, v);
	lane_mark_delivered(l, 1);
	world_turn();
	ck_assert_uint_eq(l->mark, 0);
	ck_assert(lane_spill(l, 0));
	world_turn();
	ck_assert_uint_eq(l->chain_end, 2);
	world_turn();
	ck_assert_uint_ne(l->mark, 0);
	kill_and_link();
	ck_assert(w.report.messages == 2 && lane_delivered(l) == 1 && lane_next_seq(l) == 3);
	item_unref(v);
}
END_TEST

/* A record that is longer than a file, and has more operations than its header can count. */
START_TEST(long_record)
{
	enum { LONG = 70000 };
	struct item *nothing = item_new(NULL, 0, true);

	w.s->cfg.lane_entries = UINT64_MAX;
	store_begin(w.s);
	for (uint64_t seq = 1; seq <= LONG; seq++)
		(void)publish(l, seq, nothing);
	lane_ack_from(l, 11, ACK_PURGED);
	(void)store_end(w.s);
	world_turn();
	kill_and_link();
	ck_assert(found.n == 10 && found.seq[9] == 10 && lane_next_seq(l) == LONG + 1);
	item_unref(nothing);
}
END_TEST

START_TEST(purged)
{
	uint64_t chain;

	w.lets_go = true;
	publish_many(l, 1, MANY);
	world_turn();
	world_turn();
	chain = l->chain_end;
	ck_assert_uint_gt(chain, 0);
	lane_ack_from(l, chain / 2, ACK_PURGED);
	ck_assert_uint_eq(lane_unread(l), chain / 2 - 1);
	ck_assert(l->live == 0 && l->bytes == 0);
	lane_ack_from(l, 1, ACK_PURGED);
	ck_assert(lane_unread(l) == 0 && lane_unread_bytes(l) == 0);
	world_turn();
	ck_assert_uint_eq(l->segments, 0);
	publish_many(l, MANY + 1, MANY + 2);
	world_turn();
	kill_and_link();
	ck_assert(found.n == 2 && found.seq[0] == MANY + 1);
	ck_assert_uint_eq(w.report.messages, 2);
}
END_TEST

/* ---- objects ---- */

static char listed[256];

static void
list_object(void *arg, uint64_t id, struct span state)
{
	size_t n = strlen(listed);

	(void)arg;
	snprintf(listed + n, sizeof listed - n, "%lu=%.*s ", (unsigned long)id, SPAN_FMT(state));
}

static const char *
objects(enum object_kind kind)
{
	listed[0] = '\0';
	store_each_object(w.s, kind, list_object, NULL);
	return listed;
}

START_TEST(objects_found_again)
{
	struct store_wait wait;

	store_put(w.s, OBJECT_EXCHANGE, 300, SPAN_LIT("third"));
	store_put(w.s, OBJECT_EXCHANGE, 2, SPAN_LIT("first"));
	store_put(w.s, OBJECT_EXCHANGE, 20, SPAN_LIT("gone"));
	store_put(w.s, OBJECT_USER, 2, SPAN_LIT(""));
	store_put(w.s, OBJECT_EXCHANGE, 2, SPAN_LIT("again"));
	store_gone(w.s, OBJECT_EXCHANGE, 20);
	store_gone(w.s, OBJECT_EXCHANGE, 21); /* never was */
	wait = store_objects_wait(w.s);
	ck_assert(wait.durable && store_must_wait(w.s, wait));
	world_turn();
	ck_assert(!store_must_wait(w.s, wait) && store_objects_wait(w.s).lsn == 0);
	world_kill();
	ck_assert_str_eq(objects(OBJECT_EXCHANGE), "2=again 300=third ");
	ck_assert_str_eq(objects(OBJECT_USER), "2= ");
	ck_assert_str_eq(objects(OBJECT_QUEUE), "5=queue 6=other ");
	ck_assert_str_eq(objects(OBJECT_VHOST), "");
	ck_assert_uint_ge(w.report.next_id, 301);
	link_lanes();
	ck_assert(object_exists(w.s, OBJECT_USER, 2) && object_lsn(w.s, OBJECT_USER, 2) != 0);
	ck_assert_uint_eq(object_lsn(w.s, OBJECT_USER, 3), 0);
}
END_TEST

START_TEST(queue_is_gone)
{
	publish_many(l, 1, MANY);
	publish_many(other, 1, 2);
	world_turn();
	world_turn();
	ck_assert_uint_gt(l->segments, 0);
	lane_ack(l, 1, one->size, ACK_ACKED);
	store_gone(w.s, OBJECT_QUEUE, QUEUE);
	lane_close(&l);
	ck_assert_ptr_null(l);
	world_turn();
	world_turn();
	ck_assert_uint_eq(w.s->stats.journal_live_bytes, 2 * one->size);
	world_kill();
	ck_assert_str_eq(objects(OBJECT_QUEUE), "6=other ");
	ck_assert_uint_eq(w.report.messages, 2);
	link_lanes();
	ck_assert_uint_eq(found.n, 0);
	lane_each(other, take_entry, &found);
	ck_assert_uint_eq(found.n, 2);
}
END_TEST

static void
count_file(void *arg, const char *name, uint64_t size)
{
	unsigned *n = arg;

	(void)name;
	(void)size;
	(*n)++;
}

static unsigned
files(const char *folder)
{
	unsigned n = 0;

	ck_assert_int_eq(w.disk->ops->list(w.disk, folder, count_file, &n), 0);
	return n;
}

static void
make_file(const char *name)
{
	ck_assert_int_eq(disk_replace(w.disk, name, "x", 1), 0);
}

/* Lanes that nobody asks for, files that nothing names. */
START_TEST(left_overs)
{
	struct lane *nobodys = lane_open(w.s, 99, 0, true, &w);

	publish_many(nobodys, 1, MANY);
	publish_many(l, 1, MANY);
	world_turn();
	world_turn();
	ck_assert_uint_eq(files("segments"), nobodys->segments + l->segments);
	make_file("segments/0000000000000005-0-0000000000ffff00.seg");
	make_file("segments/anything");
	make_file("transient/0000000000000005-0-0000000000ffff00.seg");
	world_kill();
	ck_assert_uint_eq(files("transient"), 0);
	l = lane_open(w.s, QUEUE, 0, true, &w);
	other = lane_open(w.s, OTHER, 0, true, &w);
	store_linked(w.s);
	world_turn();
	ck_assert_uint_eq(files("segments"), l->segments);
	ck_assert_ptr_null(lane_find(w.s, (struct op_lane){ 99, 0 }));
	world_kill(); /* and the same again */
	l = lane_open(w.s, QUEUE, 0, true, &w);
	other = lane_open(w.s, OTHER, 0, true, &w);
	store_linked(w.s);
	world_turn();
	ck_assert_uint_eq(files("segments"), l->segments);
}
END_TEST

static void
remove_journal_file(void *arg, const char *name, uint64_t size)
{
	char *path = xasprintf("journal/%s", name);

	(void)arg;
	(void)size;
	ck_assert_int_eq(w.disk->ops->unlink(w.disk, path), 0);
	free(path);
}

/* Somebody's folder that was not mounted, for instance: what the segments have is not thrown away. */
START_TEST(no_journal)
{
	uint64_t segments;

	publish_many(l, 1, MANY);
	world_turn();
	world_turn();
	segments = files("segments");
	ck_assert_uint_gt(segments, 0);
	world_stop();
	ck_assert_int_eq(w.disk->ops->list(w.disk, "journal", remove_journal_file, NULL), 0);
	world_start();
	ck_assert_uint_eq(w.report.damaged, 1);
	ck_assert_uint_eq(w.report.messages, 0);
	ck_assert_uint_eq(files("segments"), 0);
	ck_assert_uint_eq(files("set-aside"), segments);
}
END_TEST

/* ---- starts that are refused, records that are left out ---- */

static int
start_error(char err[STORE_ERROR])
{
	struct store_report r;
	struct workers *workers = workers_new(0);
	struct store *s = store_new(&w.cfg, w.disk, workers, &world_ops, &w);
	int error = store_recover(s, &r, err);

	store_free(&s);
	workers_free(&workers);
	return error;
}

START_TEST(newer_format)
{
	struct store_id id = w.s->id;
	uint8_t p[STORE_FILE_SIZE];
	char err[STORE_ERROR] = "";

	world_turn();
	world_stop();
	id.format = 7;
	store_id_encode(&id, p);
	ck_assert_int_eq(disk_replace(w.disk, "store", p, sizeof p), 0);
	ck_assert_int_eq(start_error(err), -EPROTONOSUPPORT);
	ck_assert_str_eq(
	    err, "the data folder is of a newer format (7); this version reads up to 1");
	p[20] ^= 1;
	ck_assert_int_eq(disk_replace(w.disk, "store", p, sizeof p), 0);
	ck_assert_int_eq(start_error(err), -EBADMSG);
	ck_assert_int_eq(disk_replace(w.disk, "store", p, 10), 0);
	ck_assert_int_lt(start_error(err), 0);
	ck_assert_int_eq(w.disk->ops->unlink(w.disk, "store"), 0);
	ck_assert_int_eq(start_error(err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err, "missing"));
	id.format = FORMAT_VERSION;
	store_id_encode(&id, p);
	ck_assert_int_eq(disk_replace(w.disk, "store", p, sizeof p), 0);
	world_start();
}
END_TEST

START_TEST(newer_operation)
{
	char err[STORE_ERROR] = "";
	uint64_t lsn;
	uint8_t *p = store_append(w.s, OP_HEADER, 1, w.cfg.sync, &lsn);

	memset(p, 0, OP_HEADER);
	p[0] = 77;
	p[1] = 1;
	p[2] = OP_SKIP;
	world_turn();
	kill_and_link();
	p = store_append(w.s, OP_HEADER, 1, w.cfg.sync, &lsn);
	memset(p, 0, OP_HEADER);
	p[0] = 77;
	p[1] = 1;
	world_turn();
	world_stop();
	ck_assert_int_eq(start_error(err), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(err, "newer version"));
	ck_assert_int_eq(start_error(err), -EPROTONOSUPPORT); /* nothing was changed by it */
	disk_free(&w.disk);
	w.disk = disk_sim_new(1, 1 << 30);
	world_start();
}
END_TEST

/* A record whose checksum is right but whose form is not: left out as a whole. */
START_TEST(malformed_record)
{
	struct op_mark m = { { QUEUE, 0 }, 50, 0 };
	uint64_t lsn;
	uint8_t *p;

	publish_many(l, 1, 1);
	p = store_append(w.s, OP_MARK_SIZE + 4, 2, w.cfg.sync, &lsn);
	memset(op_mark_encode(&m, p), 1, 4);
	publish_many(l, 2, 2);
	m.delivered = m.next_seq; /* has to be below; alone in its record */
	op_mark_encode(&m, store_append(w.s, OP_MARK_SIZE, 1, w.cfg.sync, &lsn));
	world_turn();
	kill_and_link();
	ck_assert_uint_eq(w.report.damaged, 2);
	ck_assert(found.n == 2 && lane_next_seq(l) == 3);
}
END_TEST

/* ---- records that contradict each other ---- */

enum { SEQS = 60 };

static struct range
any_range(struct rnd *r)
{
	uint64_t first = 1 + rnd(r, SEQS);

	return (struct range){ first, first + rnd(r, 10) };
}

static struct op_lane
any_lane(struct rnd *r)
{
	return (struct op_lane){ QUEUE + rnd(r, 3), (uint32_t)rnd(r, 2) };
}

static uint8_t *
any_msg(struct rnd *r, uint8_t *p)
{
	struct op_target t[3];
	struct op_msg m = {
		.target = t, .targets = 1 + (uint32_t)rnd(r, 3), .flags = MSG_FLAG_PERSISTENT
	};

	for (uint32_t i = 0; i < m.targets; i++) {
		struct op_lane lane = any_lane(r);

		t[i] = (struct op_target){ lane.queue, 1 + rnd(r, SEQS), lane.lane };
	}
	item_describe(one, &m);
	m.state = (struct op_state){ rnd_chance(r, 30), (uint32_t)rnd(r, 2), 0 };
	return op_msg_encode(&m, p);
}

static uint8_t *
any_seg(struct rnd *r, uint8_t *p)
{
	struct range range = any_range(r), removed = { range.first, range.first };
	struct op_seg_exception e = { { range.last, range.last }, { true, 1, 1 } };
	struct op_seg g = {
		.lane = any_lane(r),
		.first = range.first,
		.last = range.last,
		.end = rnd(r, 10000),
		.removed = &removed,
		.removed_n = (uint32_t)rnd(r, 2),
		.exception = &e,
		.exceptions = (uint32_t)rnd(r, 2),
		.bytes = rnd(r, 1000),
	};

	g.live = range.last - range.first + 1 - g.removed_n;
	return op_seg_encode(&g, p);
}

static uint8_t *
any_op(struct rnd *r, uint8_t *p)
{
	struct op_state_change c = { any_lane(r), any_range(r), { true, 1, 2 } };
	struct op_mark m = { any_lane(r), 1 + rnd(r, SEQS), 0 };
	struct range range = any_range(r);
	struct op_ack a = { any_lane(r), ACK_ACKED, rnd(r, range.last - range.first + 2),
		rnd(r, 3000), &range, 1, NULL };
	struct op_object o = { OBJECT_QUEUE, QUEUE + rnd(r, 3), { NULL, 0 } };

	switch (rnd(r, 8)) {
	case 0: return any_seg(r, p);
	case 1: return op_ack_encode(&a, p);
	case 2: return op_state_encode(&c, p);
	case 3: return op_mark_encode(&m, p);
	case 4: return rnd_chance(r, 20) ? op_gone_encode(&o, p) : op_put_encode(&o, p);
	default: return any_msg(r, p);
	}
}

/* Whatever is written, a start makes something of it that can be worked with. */
START_TEST(contradictions)
{
	struct rnd r = rnd_of((uint64_t)_i);
	uint8_t buffer[1024], *p, *end;
	uint64_t lsn;

	w.may_lose = w.lets_go = true;
	for (int i = 0; i < 300; i++) {
		end = any_op(&r, buffer);
		if (rnd_chance(&r, 20))
			end = any_op(&r, end);
		p = store_append(w.s, (uint32_t)(end - buffer), 1, w.cfg.sync, &lsn);
		memcpy(p, buffer, (size_t)(end - buffer));
	}
	world_turn();
	for (int start = 0; start < 2; start++) {
		uint64_t next;

		kill_and_link();
		next = lane_next_seq(l);
		publish_many(l, next, next + 5);
		world_turn();
		for (int i = 0; i < 100 && lane_unread(l) > 0; i++) {
			lane_read(l, 1 << 20);
			world_turn();
		}
		ck_assert_uint_eq(lane_unread(l), 0);
		for (uint64_t seq = 1; seq < next; seq++)
			lane_ack(l, seq, one->size, ACK_ACKED);
		lane_ack_from(l, next + 3, ACK_PURGED);
		world_turn();
		ck_assert_uint_eq(l->live, 3);
		forget_loaded();
	}
	kill_and_link();
	ck_assert_uint_eq(found.n, 3);
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *s = suite_create("store_start");
	TCase *t = tcase_create("store_start");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, make_one, drop_one);
	tcase_add_test(t, spilled);
	tcase_add_test(t, acks_in_the_chain);
	tcase_add_test(t, an_old_one_stays);
	tcase_add_test(t, volatile_is_spilled);
	tcase_add_test(t, long_record);
	tcase_add_test(t, purged);
	tcase_add_test(t, objects_found_again);
	tcase_add_test(t, queue_is_gone);
	tcase_add_test(t, left_overs);
	tcase_add_test(t, no_journal);
	tcase_add_test(t, newer_format);
	tcase_add_test(t, newer_operation);
	tcase_add_test(t, malformed_record);
	tcase_add_loop_test(t, contradictions, 0, 50);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(make_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
