/* SPDX-License-Identifier: Apache-2.0
 * Channels that publish faster than dead letters find their way: they wait, the others do not, and no list grows. */
#include <check.h>

#include "broker/dead_letter.h"
#include "broker/queue_priv.h"
#include "broker/table.h"
#include "tests/unit/channel_world.h"

/* Letters that wait for their turn. */
enum { MANY = 1 << 16, MANY_OF_ONE = 8192, FEW_OF_ONE = 256, LETTERS_A_TURN = 256 };

static struct world w;
static struct peer p, other;

static void
open_peer(struct peer *to)
{
	peer_init(to, &w);
	peer_reach(to, CONN_OPEN);
	peer_channel(to, 1);
}

/* One message at most; the others go to a queue that is not there. */
static void
declare(const char *overflow)
{
	struct field f[] = {
		{ .name = span_str("x-max-length"), .kind = 'I', .integer = 1 },
		{ .name = span_str("x-overflow"), .kind = 'S', .bytes = span_str(overflow) },
		{ .name = span_str("x-dead-letter-exchange"), .kind = 'S', .bytes = SPAN_LIT("") },
		{ .name = span_str("x-dead-letter-routing-key"),
		    .kind = 'S',
		    .bytes = SPAN_LIT("dead") },
	};
	struct queue_spec spec = { .name = SPAN_LIT("q") };
	struct table *arguments;
	struct table_writer tw;
	struct queue *q = NULL;

	table_writer_init(&tw, 4096);
	for (size_t i = 0; i < COUNT_OF(f); i++)
		table_put_field(&tw, &f[i]);
	spec.arguments = arguments = table_from_raw(span_of(tw.p, tw.n));
	table_writer_fini(&tw);
	ck_assert_ptr_null(queue_declare(vhost_find(w.b, SPAN_LIT("/")), &spec, NULL, &q));
	table_free(&arguments);
}

static void
setup(void)
{
	world_init(&w);
	memory_init(&w.b->memory, 1 << 30);
	open_peer(&p);
	open_peer(&other);
	(void)world_queue(&w, "plain");
}

static void
teardown(void)
{
	peer_fini(&p);
	peer_fini(&other);
	ck_assert(TAILQ_EMPTY(&w.a->parked[PARK_LETTERS]));
	world_fini(&w);
	world_held_nothing();
}

static bool
waits(struct peer *of)
{
	const struct channel *ch = connection_channel(of->c, 1);

	ck_assert(!ch->is_parked || ch->parked_for == PARK_LETTERS);
	return ch->is_parked;
}

static uint64_t
ready(const char *name)
{
	return queue_find(vhost_find(w.b, SPAN_LIT("/")), span_str(name))->ready;
}

static struct queue *
queue_named(const char *name)
{
	return queue_find(vhost_find(w.b, SPAN_LIT("/")), span_str(name));
}

/* The queue gives up so many at once, with no turn between them. */
static void
give_up(struct queue *q, uint64_t n)
{
	struct msg *m;

	if (ready("plain") == 0)
		peer_text(&other, 1, "plain", "m");
	m = queue_named("plain")->strand.head->e[0].m;
	while (n-- > 0) {
		if (q->refuses)
			dead_letter_refused(q, m);
		else
			queue_publish(q, msg_ref(m), 0);
	}
}

/* By itself, or while those of other queues are too many. */
START_TEST(who_makes_too_many_waits)
{
	static const char *const overflow[] = { "drop-head", "reject-publish-dlx" };
	uint64_t others = _i & 2 ? MANY : 0;
	unsigned most = _i & 2 ? FEW_OF_ONE : MANY_OF_ONE;
	struct queue *q;

	declare(overflow[_i & 1]);
	q = queue_named("q");
	peer_text(&p, 1, "q", "m");
	w.b->stats.dead_letters += others;
	give_up(q, most - 1);
	dead_letters_note_late(q);
	ck_assert_uint_eq(w.b->stats.dead_letters, others + most - 1);
	ck_assert(!w.b->letters_late);
	give_up(q, 1);
	dead_letters_note_late(q);
	ck_assert(w.b->letters_late);
	give_up(q, LETTERS_A_TURN); /* the next turn's */
	peer_text(&p, 1, "q", "m");
	ck_assert(!waits(&p)); /* its next one does */
	w.b->stats.dead_letters += others;
	peer_text(&p, 1, "q", "m");
	ck_assert(waits(&p) == !(_i & 2)); /* few of one are sent in a turn */
	if (!(_i & 2))
		ck_assert_uint_eq(w.b->stats.dead_letters_late, 1);
	peer_text(&other, 1, "plain", "m");
	ck_assert_uint_eq(ready("plain"), 2);
	w.b->stats.dead_letters -= 2 * others;
	world_turns(&w, 2 + most / LETTERS_A_TURN);
	ck_assert(!waits(&p) && !waits(&other));
	ck_assert(w.b->stats.dead_letters == 0 && w.b->letter_bytes == 0);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(w.b->stats.dead_letters_lost, most + LETTERS_A_TURN + 2);
}
END_TEST

/* What it still had is sent, and nobody waits for ever. */
START_TEST(its_queue_is_deleted)
{
	declare("drop-head");
	give_up(queue_named("q"), MANY_OF_ONE + LETTERS_A_TURN);
	peer_text(&p, 1, "q", "m");
	peer_text(&p, 1, "q", "m");
	ck_assert(waits(&p));
	queue_remove(queue_named("q"));
	world_turns(&w, 2 + MANY_OF_ONE / LETTERS_A_TURN);
	ck_assert(!waits(&p));
	ck_assert_uint_eq(w.b->stats.dead_letters, 0);
}
END_TEST

/* What has expired stays in its queue meanwhile, where it may go to disk, and no consumer gets it. */
START_TEST(what_expired_stays_in_its_queue)
{
	struct queue *q;

	declare("drop-head");
	q = queue_named("q");
	q->set.max_length = SETTING_NONE;
	q->set.ttl_ms = 5;
	queue_count_limits(q);
	give_up(q, MANY_OF_ONE + 1000);
	ck_assert_uint_eq(q->ready, MANY_OF_ONE + 1000);
	w.b->now_ms = w.l->now_ms += 1000;
	queue_tidy_later(q);
	while (queues_tidy(w.b))
		continue;
	ck_assert_uint_eq(w.b->stats.dead_letters, MANY_OF_ONE);
	ck_assert_uint_eq(q->ready, 1000);
	peer_consume(&other, 1, "q", "k", true);
	world_turns(&w, 4 + MANY_OF_ONE / LETTERS_A_TURN);
	ck_assert(w.b->stats.dead_letters == 0 && q->ready == 0);
	ck_assert_uint_eq(w.b->stats.expired, MANY_OF_ONE + 1000);
	ck_assert_uint_eq(w.b->stats.deliver_no_ack, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("park_letters");
	TCase *t = tcase_create("park_letters");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, who_makes_too_many_waits, 0, 4);
	tcase_add_test(t, its_queue_is_deleted);
	tcase_add_test(t, what_expired_stays_in_its_queue);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
