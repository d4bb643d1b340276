/* SPDX-License-Identifier: Apache-2.0
 * A chain's records in memory against arrays that know each message by itself; bytes of segment files, damaged ones too;
 * and power cuts at every step of a spill and of a rewrite. */
#include <errno.h>

#include "tests/unit/chain_world.h"

enum { FIRST = 1000, SPAN = 300, LAST = FIRST + SPAN - 1 };

struct naive {
	bool gone[SPAN];
	bool has[SPAN];
	struct op_state state[SPAN];
	uint64_t live;
};

static bool
is_same(const struct op_state *a, const struct op_state *b)
{
	return a->redelivered == b->redelivered && a->deliveries == b->deliveries &&
	       a->acquired == b->acquired;
}

static void
compare(const struct segment *g, const struct naive *n)
{
	REQUIRE(g->live == n->live && g->bytes == n->live * 10);
	for (uint64_t i = 0; i < SPAN; i++) {
		const struct op_state *state = segment_state(g, FIRST + i);

		REQUIRE(rangeset_has(&g->removed, FIRST + i) == n->gone[i]);
		REQUIRE((state != NULL) == n->has[i]);
		if (state != NULL)
			REQUIRE(is_same(state, &n->state[i]));
	}
	/* As few exceptions as can be. */
	for (uint32_t i = 1; i < g->exceptions; i++) {
		const struct op_seg_exception *a = &g->exception[i - 1], *b = &g->exception[i];

		REQUIRE(a->range.last < b->range.first);
		REQUIRE(a->range.last + 1 < b->range.first || !is_same(&a->state, &b->state));
	}
}

static struct segment *
put_encoded(struct lane *l, const struct segment *from)
{
	size_t n, at = 0;
	uint8_t *p = seg_encode(l, from, &n);
	struct segment *g;
	struct op_seg o;
	struct op op;
	int error;

	REQUIRE(op_next(span_of(p, n), &at, &op, &error) && op.kind == OP_SEG);
	REQUIRE(op_seg_decode(op.body, &o) == 0);
	g = segment_put(l, &o, 0);
	free(p);
	return g;
}

/* Removals and states in any order; folded into a SEG and taken from it again and again. */
START_TEST(folds)
{
	struct segment start = { .first = FIRST,
		.last = LAST,
		.end = FILE_HEADER + SPAN * 100,
		.live = SPAN,
		.bytes = SPAN * 10 };
	struct naive n = { .live = SPAN };
	struct segment *g;
	struct lane *l;

	chain_init((uint64_t)_i);
	chain_start();
	l = cw.q[0].lane;
	start.lane = l;
	g = put_encoded(l, &start);
	REQUIRE(g == lane_segment(l, FIRST) && g == lane_segment(l, LAST) &&
	        lane_segment(l, LAST + 1) == NULL);
	REQUIRE(l->chain_end == LAST && lane_next_seq(l) == LAST + 1);
	l->read_seq = LAST + 1;
	for (unsigned step = 0; step < 400; step++) {
		uint64_t a = rnd(&cw.r, SPAN), b = a + rnd(&cw.r, 1 + rnd(&cw.r, 30)), gone = 0;
		struct op_state state = { rnd_chance(&cw.r, 50), (uint32_t)rnd(&cw.r, 2), 0 };

		b = b < SPAN ? b : SPAN - 1;
		switch (rnd(&cw.r, 4)) {
		case 0:
			if (!rnd_chance(&cw.r, 20))
				break;
			for (uint64_t i = a; i <= b; i++)
				gone += !n.gone[i];
			if (gone == n.live)
				break;
			for (uint64_t i = a; i <= b; i++)
				n.gone[i] = true;
			n.live -= gone;
			REQUIRE(segment_live_in(g, FIRST + a, FIRST + b) == gone);
			REQUIRE(segment_remove(l, g, FIRST + a, FIRST + b, gone * 10) == gone);
			REQUIRE(segment_remove(l, g, FIRST + a, FIRST + b, 5) == 0);
			break;
		case 1:
		case 2:
			segment_set_state(g, (struct range){ FIRST + a, FIRST + b }, &state);
			for (uint64_t i = a; i <= b; i++) {
				n.has[i] = true;
				n.state[i] = state;
			}
			break;
		default: g = put_encoded(l, g);
		}
		compare(g, &n);
	}
	chain_fini();
}
END_TEST

START_TEST(contradictions)
{
	struct segment g = {
		.first = 100, .last = 199, .end = FILE_HEADER + 100, .live = 100, .bytes = 1000
	};
	struct lane *l;

	chain_init(1);
	chain_start();
	l = g.lane = cw.q[0].lane;
	REQUIRE(put_encoded(l, &g) != NULL);
	g.first = 150;
	g.last = 249;
	REQUIRE(put_encoded(l, &g) == NULL); /* overlaps */
	g.first = 50;
	g.last = 149;
	REQUIRE(put_encoded(l, &g) == NULL);
	g.first = 200;
	g.last = 299;
	REQUIRE(put_encoded(l, &g) != NULL);
	g.first = 100;
	g.last = 200;
	g.live = 101;
	REQUIRE(put_encoded(l, &g) == NULL); /* into the next one */
	REQUIRE(l->segments == 2 && cw.store->stats.damaged == 3);
	chain_fini();
}
END_TEST

START_TEST(names)
{
	struct op_lane lane;
	uint64_t first;
	char name[SEGMENT_NAME];

	chain_init(1);
	chain_start();
	segment_name(cw.q[3].lane, 0xabcdef, name);
	REQUIRE(segment_name_parse(name, &lane, &first) && lane.queue == 13 && lane.lane == 0 &&
	        first == 0xabcdef);
	REQUIRE(segment_name_parse(strrchr(name, '/') + 1, &lane, &first));
	name[strlen(name) - 1] = 'w';
	REQUIRE(!segment_name_parse(name, &lane, &first));
	REQUIRE(!segment_name_parse("", &lane, &first) &&
	        !segment_name_parse("segments/", &lane, &first));
	REQUIRE(
	    !segment_name_parse("000000000000000D-00000000-0000000000000001.seg", &lane, &first));
	REQUIRE(
	    !segment_name_parse("000000000000000d-00000000-0000000000000001.segs", &lane, &first));
	chain_fini();
}
END_TEST

/* ---- files ---- */

enum { RECORDS = 400 };

static struct file_header
header(void)
{
	return (struct file_header){ .kind = FILE_SEGMENT,
		.format = FORMAT_VERSION,
		.store_id = 1,
		.number = 1,
		.queue = 5 };
}

static void
write_file(struct disk *d, uint64_t at[RECORDS + 1])
{
	struct file_header h = header();
	struct segment_writer w;

	segment_writer_init(&w, d, 99);
	segment_create(&w, "segments/x", &h);
	for (uint64_t seq = 1; seq <= RECORDS; seq++) {
		uint64_t size = rnd_chance(&cw.r, 2) ? rnd(&cw.r, 2 << 20) : rnd(&cw.r, 3000);
		struct item *it = item_new(5, seq, size);
		struct op_msg m = { 0 };

		item_describe(it, &m);
		at[seq - 1] = segment_end(&w);
		segment_write(&w, &m, (struct op_target){ 5, seq, 0 });
		item_unref(it);
	}
	at[RECORDS] = segment_end(&w);
	segment_finish(&w, true);
	REQUIRE(w.error == 0);
	segment_writer_fini(&w);
}

/* Reads in pieces of any size; marks what came. Returns the places that were called damaged. */
static uint32_t
read_file(struct disk *d, uint64_t end, bool got[RECORDS + 1])
{
	struct segment_read r = { .disk = d,
		.id = { FORMAT_VERSION, 1, 99 },
		.lane = { 5, 0 },
		.first = 1,
		.last = RECORDS,
		.at = FILE_HEADER,
		.end = end };
	uint32_t damages = 0;
	struct op_msg m;

	memcpy(r.name, "segments/x", sizeof "segments/x");
	while (r.at < r.end) {
		r.want = (uint32_t)(1 + rnd(&cw.r, 1 << rnd(&cw.r, 21)));
		r.damages = 0;
		segment_read(&r);
		REQUIRE(r.error == 0);
		for (uint32_t i = 0; i < r.records; i++) {
			REQUIRE(!got[r.record[i].seq]);
			REQUIRE(segment_message(&r, &r.record[i], &m) == 0);
			got[r.record[i].seq] = true;
			item_unref(item_make(NULL, &m));
		}
		damages += r.damages;
		REQUIRE(r.next > r.at);
		r.at = r.next;
		segment_read_fini(&r);
	}
	return damages;
}

START_TEST(pieces)
{
	bool got[RECORDS + 1] = { false }, hurt[RECORDS + 1] = { false };
	uint64_t at[RECORDS + 1], size;
	unsigned flips = (unsigned)_i % 8, header_hurt = 0;
	uint32_t damages;

	chain_init((uint64_t)_i);
	REQUIRE(cw.disk->ops->make_folder(cw.disk, "segments") == 0);
	write_file(cw.disk, at);
	REQUIRE(disk_sim_bytes(cw.disk, "segments/x", &size) != NULL && size == at[RECORDS]);
	for (unsigned i = 0; i < flips; i++) {
		uint64_t where = rnd_chance(&cw.r, 10)
		                     ? rnd(&cw.r, HEADER_USED)
		                     : FILE_HEADER + rnd(&cw.r, size - FILE_HEADER);

		disk_sim_flip(cw.disk, "segments/x", where, (unsigned)rnd(&cw.r, 8));
		header_hurt |= where < HEADER_USED;
		for (uint64_t seq = 1; seq <= RECORDS; seq++)
			hurt[seq] |= where >= at[seq - 1] && where < at[seq];
	}
	damages = read_file(cw.disk, at[RECORDS], got);
	for (uint64_t seq = 1; seq <= RECORDS; seq++)
		REQUIRE(
		    got[seq] || hurt[seq]); /* a bit of padding or of two flips may be harmless */
	REQUIRE(flips == 0 ? damages == 0 : damages <= flips);
	REQUIRE(header_hurt == 0 || damages > 0);
	chain_fini();
}
END_TEST

/* ---- power cuts ---- */

static void
publish(struct owner *q, unsigned n, uint64_t size)
{
	for (unsigned i = 0; i < n; i++) {
		owner_publish(q, size, true, 0);
		if (i % 100 == 0)
			(void)chain_turn();
	}
}

/* Some work that spills, reads, acknowledges and rewrites. */
static void
work(unsigned steps)
{
	for (unsigned i = 0; i < steps && !disk_sim_is_dead(cw.disk); i++) {
		struct owner *q = &cw.q[rnd(&cw.r, 2)];
		uint64_t seq;

		for (unsigned n = 0; n < 40 && (seq = owner_deliver(q)) != 0; n++)
			if (!rnd_chance(&cw.r, 4))
				owner_ack(q, seq);
		if (lane_unread(q->lane) > 0)
			lane_read(q->lane, 20000);
		else if (rnd_chance(&cw.r, 30))
			(void)lane_spill(q->lane, 0);
		if (rnd_chance(&cw.r, 20))
			cw.now_ms += 1000;
		if (rnd_chance(&cw.r, 30))
			(void)workers_step(cw.workers, (unsigned)rnd(&cw.r, 3));
		if (rnd_chance(&cw.r, 30))
			(void)journal_step(cw.store->journal);
		workers_take(cw.workers);
		(void)store_events(cw.store);
		(void)store_turn(cw.store, 1000, ++cw.now_ms);
	}
}

START_TEST(cuts)
{
	uint64_t rewritten = 0, alive;

	chain_init((uint64_t)_i);
	cw.cfg.garbage_max = 20000;
	cw.cfg.lane_entries = 300;
	chain_start();
	for (unsigned round = 0; round < 4; round++) {
		publish(&cw.q[0], 1000, 100);
		publish(&cw.q[1], 500, 500);
		(void)store_wait_all(cw.store);
		chain_settle();
		chain_is_durable();
		disk_sim_cut_after(cw.disk, 1 + rnd(&cw.r, 120), false);
		work(3000);
		rewritten += cw.store->stats.rewritten;
		chain_crash(rnd(&cw.r, 1 << 30));
		chain_start();
		chain_check();
		REQUIRE(cw.report.damaged == 0);
		if (round < 3 && rnd_chance(&cw.r, 70))
			continue;
		alive = cw.report.messages;
		REQUIRE(owner_drain(&cw.q[0]) + owner_drain(&cw.q[1]) == alive);
		(void)store_wait_all(cw.store);
		chain_settle();
		REQUIRE(files_in("segments") == 0);
	}
	(void)rewritten;
	chain_fini();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("segments");
	TCase *t = tcase_create("segments");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, folds, 0, 20);
	tcase_add_test(t, contradictions);
	tcase_add_test(t, names);
	tcase_add_loop_test(t, pieces, 0, 48);
	tcase_add_loop_test(t, cuts, 0, 60);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
