/* SPDX-License-Identifier: Apache-2.0
 * Random work on several queues, some of them with priorities, and sessions against a naive model: what every delivery
 * must be, who may get it, all counts after each step, and that nothing is left in the end. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/slab.h"
#include "queue_world.h"

enum { QUEUES = 4, SESSIONS = 4, STEPS = 4000, MESSAGES = 200000 };
enum where { GONE, READY, OUT };

/* The model: every message that ever was, in the order of publishing. */
struct model_msg {
	uint8_t where, queue, session;
	uint8_t level; /* its priority in its queue */
	bool redelivered;
	bool of_deleted; /* its queue is gone: it must not come back */
	uint64_t tag;
};

static struct world w;
static struct client client[SESSIONS];
static struct peer peer[SESSIONS];
static struct queue *queue[QUEUES];
static uint8_t max_priority[QUEUES];
static struct model_msg msg[MESSAGES];
static uint32_t n_msgs, first_live;
static unsigned consumers_made;
static uint32_t state;

static uint32_t
rnd(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static void
wrong(const char *what, uint64_t a, uint64_t b)
{
	ck_abort_msg("%s: %llu, %llu", what, (unsigned long long)a, (unsigned long long)b);
}

static struct model_msg *
next_ready(unsigned q)
{
	struct model_msg *m = NULL;

	for (uint32_t i = first_live; i < n_msgs; i++) {
		if (msg[i].where != READY || msg[i].queue != q || msg[i].of_deleted)
			continue;
		if (m == NULL || msg[i].level > m->level)
			m = &msg[i];
		if (m->level == max_priority[q])
			break;
	}
	return m;
}

static unsigned
index_of(const struct queue *q)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		if (queue[i] == q)
			return i;
	}
	wrong("a queue that is not there", 0, 0);
	return 0;
}

/* One entry leaves its queue: it must be the first, with the right flag. */
static void
leaves(unsigned q, const struct entry *e, unsigned session, uint64_t tag, bool no_ack)
{
	struct model_msg *m = next_ready(q);

	if (m == NULL || msg_number(e->m) != (uint64_t)(m - msg))
		wrong("out of order", msg_number(e->m), m != NULL ? (uint64_t)(m - msg) : 0);
	if (m->redelivered != ((e->seq_flags & ENTRY_REDELIVERED) != 0))
		wrong("redelivered is wrong", msg_number(e->m), m->redelivered);
	m->where = no_ack ? GONE : OUT;
	m->session = (uint8_t)session;
	m->tag = tag;
}

static void
on_deliver(struct consumer *k, const struct entry *e, uint64_t tag)
{
	struct peer *p = (struct peer *)(void *)k->session;
	struct consumer *o;

	if (!consumer_can_take(k))
		wrong("delivered to one that cannot take", tag, 0);
	TAILQ_FOREACH (o, &k->queue->consumers, queue_link) {
		if (o->priority > k->priority && consumer_can_take(o))
			wrong("not the highest priority", tag, 0);
	}
	leaves(index_of(k->queue), e, (unsigned)(p - peer), tag, k->no_ack);
	if (rnd(50) == 0)
		k->session->client->output_full = true;
}

static void
on_cancelled(struct consumer *k)
{
	((struct peer *)(void *)k->session)->cancelled++;
}

static void
open_session(unsigned i)
{
	static const struct session_ops ops = { on_deliver, on_cancelled, NULL };

	peer[i] = (struct peer){ 0 };
	session_init(&peer[i].session, &client[i], &ops);
}

static void
open_queue(unsigned i)
{
	char name[16];

	snprintf(name, sizeof name, "q%u", i);
	max_priority[i] = ((const uint8_t[]){ 0, 0, 1, 9, 255 })[rnd(5)];
	queue[i] = world_priority_queue(&w, name, false, max_priority[i]);
}

/* ---- steps ---- */

static void
model_return(struct model_msg *m)
{
	m->where = m->of_deleted ? GONE : READY;
	m->redelivered = true;
}

static void
model_settle(unsigned s, uint64_t from, uint64_t to, enum settle how)
{
	for (uint32_t i = first_live; i < n_msgs; i++) {
		if (msg[i].where != OUT || msg[i].session != s || msg[i].tag < from ||
		    msg[i].tag > to)
			continue;
		if (how == SETTLE_REQUEUE)
			model_return(&msg[i]);
		else
			msg[i].where = GONE;
	}
}

/* A tag that waits at this session, or 0. */
static uint64_t
some_tag(unsigned s)
{
	uint64_t tag = 0;
	uint32_t n = 0;

	for (uint32_t i = first_live; i < n_msgs; i++) {
		if (msg[i].where == OUT && msg[i].session == s && rnd(++n) == 0)
			tag = msg[i].tag;
	}
	return tag;
}

static void
step_publish(unsigned q)
{
	for (uint32_t n = 1 + rnd(20); n > 0 && n_msgs < MESSAGES; n--) {
		uint8_t priority = (uint8_t)(rnd(2) == 0 ? rnd(256) : rnd(12)),
		        level = priority < max_priority[q] ? priority : max_priority[q];

		msg[n_msgs] =
		    (struct model_msg){ .where = READY, .queue = (uint8_t)q, .level = level };
		n_msgs++;
		queue_publish(queue[q], world_priority_msg(n_msgs - 1, 8 + rnd(300), priority), 0);
	}
}

static void
step_consume(unsigned s, unsigned q)
{
	char tag[16];
	struct consumer *k;

	if (peer[s].session.consumer_count >= 5)
		return;
	snprintf(tag, sizeof tag, "c%u", consumers_made++);
	peer[s].session.prefetch = rnd(3) == 0 ? 0 : 1 + rnd(30);
	ck_assert_ptr_null(peer_try_consume(&peer[s], queue[q], tag, rnd(4) == 0, false,
	    rnd(3) == 0 ? (int32_t)rnd(3) - 1 : 0, &k));
}

static void
step_cancel(unsigned s)
{
	struct consumer *k;

	TAILQ_FOREACH (k, &peer[s].session.consumers, session_link) {
		if (!k->is_cancelled && rnd(2) == 0) {
			session_cancel(&peer[s].session, k);
			return;
		}
	}
}

static void
step_get(unsigned s, unsigned q)
{
	bool no_ack = rnd(2) == 0;
	struct entry e;
	uint64_t tag;
	uint32_t left;

	if (!session_get(&peer[s].session, queue[q], no_ack, &e, &tag, &left)) {
		if (next_ready(q) != NULL)
			wrong("get found nothing", q, queue[q]->ready);
		return;
	}
	leaves(q, &e, s, tag, no_ack);
	msg_unref(&e.m);
}

static void
step_settle(unsigned s)
{
	uint64_t tag = some_tag(s);
	bool multiple = rnd(4) == 0;
	enum settle how = (enum settle)rnd(3);

	if (rnd(20) == 0)
		ck_assert_ptr_nonnull(session_settle(
		    &peer[s].session, peer[s].session.next_tag + rnd(5), multiple, how));
	if (tag == 0)
		return;
	if (multiple && rnd(10) == 0)
		tag = 0;
	ck_assert_ptr_null(session_settle(&peer[s].session, tag, multiple, how));
	model_settle(s, multiple ? 0 : tag, tag != 0 ? tag : UINT64_MAX, how);
}

static void
step_transaction(unsigned s)
{
	struct unacked_set set = { 0 };

	for (uint32_t n = rnd(6); n > 0; n--) {
		uint64_t tag = some_tag(s);

		/* It may have been taken by a step before. */
		if (tag != 0)
			(void)!session_take(&peer[s].session, tag, rnd(4) == 0, &set);
	}
	if (rnd(2) == 0) {
		session_put_back(&peer[s].session, &set);
		return;
	}
	for (uint32_t i = 0; i < set.count; i++) {
		enum settle how = (enum settle)rnd(3);

		session_settle_taken(&peer[s].session, &set.item[i], how);
		model_settle(s, set.item[i].tag, set.item[i].tag, how);
	}
	free(set.item);
}

static void
model_forget(unsigned q, bool deleted)
{
	for (uint32_t i = first_live; i < n_msgs; i++) {
		if (msg[i].queue != q || msg[i].of_deleted)
			continue;
		if (msg[i].where == READY)
			msg[i].where = GONE;
		msg[i].of_deleted |= deleted;
	}
}

static void
step_close(unsigned s)
{
	peer_fini(&peer[s]);
	model_settle(s, 0, UINT64_MAX, SETTLE_REQUEUE);
	open_session(s);
}

static void
step_delete(unsigned q)
{
	uint32_t n;

	ck_assert_ptr_null(queue_delete(queue[q], false, false, &n));
	model_forget(q, true);
	open_queue(q);
}

static void
step(void)
{
	unsigned s = rnd(SESSIONS), q = rnd(QUEUES), what = rnd(100);

	if (what < 30)
		step_publish(q);
	else if (what < 38)
		step_consume(s, q);
	else if (what < 42)
		step_cancel(s);
	else if (what < 52)
		step_get(s, q);
	else if (what < 78)
		step_settle(s);
	else if (what < 82)
		step_transaction(s);
	else if (what < 84)
		session_set_limit(&peer[s].session, rnd(3) == 0 ? rnd(20) : 0);
	else if (what < 94)
		client_output_room(&client[s]);
	else if (what < 95) {
		session_recover(&peer[s].session);
		model_settle(s, 0, UINT64_MAX, SETTLE_REQUEUE);
	} else if (what < 97)
		step_close(s);
	else if (what < 98) {
		(void)queue_purge(queue[q]);
		model_forget(q, false);
	} else if (what < 99)
		step_delete(q);
	if (rnd(3) == 0)
		world_turn(&w);
}

/* ---- what must hold after each step ---- */

static void
compare(void)
{
	uint64_t ready[QUEUES] = { 0 }, out[QUEUES] = { 0 }, waits[SESSIONS] = { 0 }, all_ready = 0,
	         all_out = 0, seen_out = 0;

	while (first_live < n_msgs && msg[first_live].where == GONE)
		first_live++;
	for (uint32_t i = first_live; i < n_msgs; i++) {
		if (msg[i].where == OUT) {
			waits[msg[i].session]++;
			all_out++;
		}
		if (!msg[i].of_deleted) {
			ready[msg[i].queue] += msg[i].where == READY;
			out[msg[i].queue] += msg[i].where == OUT;
		}
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		if (queue[i]->ready != ready[i])
			wrong("ready", queue[i]->ready, ready[i]);
		if (queue[i]->unacked != out[i])
			wrong("unacknowledged", queue[i]->unacked, out[i]);
		if (queue[i]->unacked == 0 && queue[i]->unacked_bytes != 0)
			wrong("bytes of no messages", queue[i]->unacked_bytes, i);
		all_ready += ready[i];
		seen_out += out[i];
	}
	for (unsigned i = 0; i < SESSIONS; i++) {
		if (session_unacked(&peer[i].session) != waits[i])
			wrong("waiting at a session", session_unacked(&peer[i].session), waits[i]);
	}
	if (w.broker->stats.messages_ready != all_ready ||
	    w.broker->stats.messages_unacknowledged != all_out)
		wrong("counts of the broker", w.broker->stats.messages_ready,
		    w.broker->stats.messages_unacknowledged);
	if (w.vhost->depth.ready != all_ready || w.vhost->depth.unacked != seen_out)
		wrong("counts of the vhost", w.vhost->depth.ready, w.vhost->depth.unacked);
}

/* With the turn's work done, nothing is ready that somebody could take. */
static void
compare_idle(void)
{
	struct consumer *k;

	world_turn(&w);
	for (unsigned i = 0; i < QUEUES; i++) {
		TAILQ_FOREACH (k, &queue[i]->consumers, queue_link) {
			if (queue[i]->ready > 0 && consumer_can_take(k))
				wrong("a message waits beside a consumer that could take it", i,
				    queue[i]->ready);
		}
	}
}

START_TEST(random_work)
{
	struct slab_stats slabs;

	state = 2463534242u + (uint32_t)_i * 7919;
	n_msgs = first_live = 0;
	world_init(&w);
	for (unsigned i = 0; i < SESSIONS; i++) {
		world_client(&w, &client[i]);
		open_session(i);
	}
	for (unsigned i = 0; i < QUEUES; i++)
		open_queue(i);
	for (unsigned i = 0; i < STEPS; i++) {
		step();
		compare();
		if (i % 10 == 0)
			compare_idle();
	}
	for (unsigned i = 0; i < SESSIONS; i++) {
		peer_fini(&peer[i]);
		client_fini(&client[i]);
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		uint64_t bytes = 0;
		struct entry e;

		if (queue[i]->unacked != 0)
			wrong("still out", i, queue[i]->unacked);
		while (queue_pop(queue[i], &e)) {
			bytes += e.m->body_size;
			if (queue[i]->ready == 0 && queue[i]->ready_bytes != 0)
				wrong("bytes left", queue[i]->ready_bytes, bytes);
			msg_unref(&e.m);
		}
		queue_remove(queue[i]);
	}
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.consumers, 0);
	ck_assert_uint_eq(w.broker->stats.queues, 0);
	world_fini(&w);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("queue model");
	TCase *t = tcase_create("model");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, random_work, 0, 20);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
