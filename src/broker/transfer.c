/* SPDX-License-Identifier: Apache-2.0
 * Jobs: see the header. Each slice finds queue, user and destination anew, for any of them may be gone; a job whose queue,
 * destination or user went has failed. */
#include "broker/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/queue_priv.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum {
	RUN_MESSAGES = 256,  /* a call of transfers_run() */
	RUN_BYTES = 1 << 20, /* copied, or gone through */
	BATCH = 64, /* of one job before the next has its turn; less where each costs much */
	BATCH_COST = RUN_BYTES / 4,
	WORK_COST = 256, /* bytes for a unit of broker->work */
	FIND_WORK = 512, /* for chosen ones that stand deep in a long queue */
	WAIT_MS = 20,    /* for a disk, or memory, that is short */
	BURST_MS = 100,  /* of its rate that a job may catch up with */
	KEEP_MS = 60 * 60 * 1000,
	MARK_MS = 1000
};

/* broker->transfers; there is one once there was a job. */
struct transfers {
	TAILQ_HEAD(transfer_list, transfer) running, ended; /* owned; the latest first */
	unsigned runs, count;
	uint64_t next_id;
	struct wheel_node timer; /* so that there is a turn when one of them wants it */
};

static struct span
span_of_copy(const struct name_copy *c)
{
	return span_of(c->p, c->n);
}

static void
set_name(struct name_copy *c, struct span s)
{
	c->p = xstrndup(s.n > 0 ? (const char *)s.p : "", s.n);
	c->n = s.n;
}

/* ---- the table ---- */

static void
on_timer(struct wheel_node *node UNUSED, uint64_t now_ms UNUSED)
{
}

static struct transfers *
table_of(struct broker *b)
{
	struct transfers *all = b->transfers;

	if (all != NULL)
		return all;
	all = b->transfers = xcalloc(1, sizeof *all);
	TAILQ_INIT(&all->running);
	TAILQ_INIT(&all->ended);
	all->timer.fire = on_timer;
	return all;
}

static void
transfer_free(struct transfer *t)
{
	struct transfers *all = t->broker->transfers;

	if (t->state == TRANSFER_RUNNING) {
		TAILQ_REMOVE(&all->running, t, link);
		all->runs--;
	} else {
		TAILQ_REMOVE(&all->ended, t, link);
	}
	all->count--;
	peek_fini(&t->peek);
	free(t->chosen);
	free(t->user.p);
	free(t->vhost.p);
	free(t->queue.p);
	free(t->to_queue.p);
	free(t->exchange.p);
	free(t->key.p);
	free(t);
}

static void
end(struct transfer *t, enum transfer_state state, const char *why)
{
	static const char *const words[] = { "running", "done", "cancelled", "failed" };
	struct transfers *all = t->broker->transfers;

	TAILQ_REMOVE(&all->running, t, link);
	all->runs--;
	t->state = state;
	t->ended_ms = t->broker->now_ms;
	if (why != NULL)
		(void)snprintf(t->why, sizeof t->why, "%s", why);
	TAILQ_INSERT_HEAD(&all->ended, t, link);
	peek_fini(&t->peek);
	free(t->chosen);
	t->chosen = NULL;
	log_info(
	    "job %llu, %s of queue '%s' in vhost '%s', is %s: %llu messages done, %llu stay%s%s",
	    (unsigned long long)t->id, t->kind == TRANSFER_MOVE ? "a move" : "a replay", t->queue.p,
	    t->vhost.p, words[state], (unsigned long long)t->done, (unsigned long long)t->failed,
	    why != NULL ? ": " : "", why != NULL ? why : "");
}

static void
drop_old(struct transfers *all, uint64_t now_ms)
{
	struct transfer *t;

	while (
	    (t = TAILQ_LAST(&all->ended, transfer_list)) != NULL && t->ended_ms + KEEP_MS <= now_ms)
		transfer_free(t);
}

struct transfer *
transfer_next(const struct broker *b, const struct transfer *after)
{
	const struct transfers *all = b->transfers;
	struct transfer *t;

	if (all == NULL)
		return NULL;
	if (after == NULL) {
		drop_old(b->transfers, b->now_ms);
		t = TAILQ_FIRST(&all->running);
	} else {
		t = TAILQ_NEXT(after, link);
		if (t != NULL || after->state != TRANSFER_RUNNING)
			return t;
	}
	return t != NULL ? t : TAILQ_FIRST(&all->ended);
}

struct transfer *
transfer_find(const struct broker *b, uint64_t id)
{
	struct transfer *t = NULL;

	while ((t = transfer_next(b, t)) != NULL) {
		if (t->id == id)
			break;
	}
	return t;
}

void
transfer_cancel(struct transfer *t)
{
	if (t->state == TRANSFER_RUNNING)
		end(t, TRANSFER_CANCELLED, NULL);
}

void
transfers_stop(struct broker *b)
{
	struct transfers *all = b->transfers;
	struct transfer *t;

	if (all == NULL)
		return;
	while ((t = TAILQ_FIRST(&all->running)) != NULL || (t = TAILQ_FIRST(&all->ended)) != NULL)
		transfer_free(t);
	wheel_disarm(b->wheel, &all->timer);
	free(all);
	b->transfers = NULL;
}

/* ---- the start ---- */

static const struct error *
check_exchange(const struct user *u, struct vhost *vh, struct span name, struct span key)
{
	const struct error *e = permission_check_user(u, vh, PERM_WRITE, "exchange", name);
	struct exchange *x;

	if (e == NULL)
		e = exchange_lookup(vh, name, &x);
	if (e == NULL && x->internal)
		e = error_make(E_ACCESS_REFUSED,
		    "cannot publish to internal exchange '%.*s' in vhost '%s'", SPAN_FMT(name),
		    vh->name);
	/* without a key of its own each message has another one: looked at then */
	if (e == NULL && key.p != NULL)
		e = topic_permission_check(u, TOPIC_WRITE, x, key);
	return e;
}

static const struct error *
check_rights(const struct user *u, const struct queue *q, enum transfer_kind kind,
    const struct queue *to, struct span exchange, struct span key)
{
	struct vhost *vh = q->vhost;
	const struct error *e =
	    permission_check_user(u, vh, PERM_READ, "queue", span_of(q->name, q->name_len));

	if (e != NULL || kind == TRANSFER_REPLAY)
		return e;
	if (to != NULL)
		return permission_check_user(
		    u, vh, PERM_WRITE, "queue", span_of(to->name, to->name_len));
	return check_exchange(u, vh, exchange, key);
}

static const struct error *
make_room(struct transfers *all, uint64_t now_ms)
{
	drop_old(all, now_ms);
	if (all->runs >= TRANSFERS_AT_ONCE) {
		bound_reached(BOUND_jobs);
		return error_make(E_PRECONDITION_FAILED,
		    "there are %d jobs under way; wait for one of them, or cancel one", all->runs);
	}
	if (all->count >= TRANSFERS_MAX)
		transfer_free(TAILQ_LAST(&all->ended, transfer_list));
	return NULL;
}

static int
by_place(const void *a, const void *b)
{
	const struct letter_id *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void
set_chosen(struct transfer *t, const struct transfer_spec *spec)
{
	uint32_t n = 0;

	t->chosen = spec->chosen;
	if (t->chosen == NULL)
		return;
	qsort(t->chosen, spec->chosen_count, sizeof *t->chosen, by_place);
	for (uint32_t i = 0; i < spec->chosen_count; i++) {
		if (n == 0 || by_place(&t->chosen[n - 1], &t->chosen[i]) != 0)
			t->chosen[n++] = t->chosen[i];
	}
	t->chosen_count = n;
}

static struct transfer *
make(const struct transfer_spec *spec)
{
	struct queue *q = spec->queue;
	struct broker *b = q->broker;
	struct transfers *all = table_of(b);
	struct transfer *t = xcalloc(1, sizeof *t);

	t->broker = b;
	t->id = ++all->next_id;
	t->kind = spec->kind;
	set_name(&t->user, span_str(spec->user->name));
	t->user_id = spec->user->id;
	set_name(&t->vhost, span_str(q->vhost->name));
	set_name(&t->queue, span_of(q->name, q->name_len));
	t->vhost_id = q->vhost->id;
	t->queue_id = q->id;
	if (spec->to_queue != NULL) {
		set_name(&t->to_queue, span_of(spec->to_queue->name, spec->to_queue->name_len));
		t->to_queue_id = spec->to_queue->id;
	} else if (spec->kind == TRANSFER_MOVE) {
		set_name(&t->exchange, spec->exchange);
		if (spec->key.p != NULL)
			set_name(&t->key, spec->key);
	}
	set_chosen(t, spec);
	t->most = spec->most;
	t->total = t->chosen != NULL ? t->chosen_count : q->ready;
	if (t->total > t->most)
		t->total = t->most;
	t->rate = spec->rate;
	t->started_ms = t->credit_ms = t->mark_ms = b->now_ms;
	t->credit_us = 1000000;
	t->batch = BATCH;
	t->epoch = b->permission_epoch;
	TAILQ_INSERT_HEAD(&all->running, t, link);
	all->runs++;
	all->count++;
	return t;
}

const struct error *
transfer_start(const struct transfer_spec *spec, struct transfer **out)
{
	struct broker *b = spec->queue->broker;
	const struct error *e = check_rights(
	    spec->user, spec->queue, spec->kind, spec->to_queue, spec->exchange, spec->key);

	if (e == NULL && spec->to_queue == spec->queue)
		e = error_make(E_PRECONDITION_FAILED,
		    "messages of queue '%.*s' cannot be moved to itself",
		    (int)spec->queue->name_len, spec->queue->name);
	if (e == NULL)
		e = make_room(table_of(b), b->now_ms);
	if (e != NULL) {
		free(spec->chosen);
		return e;
	}
	*out = make(spec);
	wheel_arm(b->wheel, &b->transfers->timer, b->now_ms);
	return NULL;
}

/* ---- a slice ---- */

/* Who takes part in it. */
struct parts {
	struct queue *q;
	struct user *user;
};

static void
stays(struct transfer *t, const char *why)
{
	unsigned i = 0;

	t->failed++;
	while (i < t->reasons && strncmp(t->reason[i].text, why, sizeof t->reason[i].text - 1) != 0)
		i++;
	if (i == TRANSFER_REASONS)
		return;
	if (i == t->reasons) {
		(void)snprintf(t->reason[i].text, sizeof t->reason[i].text, "%s", why);
		t->reasons++;
	}
	t->reason[i].count++;
}

/* False: something that it needs is gone, and it has failed. */
static bool
gather(struct transfer *t, struct parts *p)
{
	struct broker *b = t->broker;
	const struct vhost *vh = vhost_find(b, span_of_copy(&t->vhost));
	const struct queue *to = NULL;
	const struct error *e = NULL;

	p->q = vh != NULL && vh->id == t->vhost_id ? queue_find_id(vh, t->queue_id) : NULL;
	p->user = user_find(b, span_of_copy(&t->user));
	if (p->user != NULL && p->user->id != t->user_id)
		p->user = NULL; /* another one of that name */
	if (p->q != NULL && t->to_queue.p != NULL)
		to = queue_find_id(vh, t->to_queue_id);
	if (p->q == NULL)
		end(t, TRANSFER_FAILED, "the queue was deleted");
	else if (t->to_queue.p != NULL && to == NULL)
		end(t, TRANSFER_FAILED, "the queue that the messages go to was deleted");
	else if (p->user == NULL)
		end(t, TRANSFER_FAILED, "the user who started it was deleted");
	if (t->state != TRANSFER_RUNNING)
		return false;
	if (t->epoch != b->permission_epoch)
		e = check_rights(
		    p->user, p->q, t->kind, to, span_of_copy(&t->exchange), span_of_copy(&t->key));
	t->epoch = b->permission_epoch;
	if (e != NULL)
		end(t, TRANSFER_FAILED, e->text);
	return e == NULL;
}

/* What it makes goes to disk, or stays in memory: as for those who publish. Why it waits; NULL: it does not. */
static const char *
held_by(const struct broker *b)
{
	const struct store *s = b->store;

	if (memory_short(&b->memory))
		return "memory is short";
	if (b->disk_low)
		return "the disk has too little free space";
	if (s != NULL && store_hold(s) == STORE_DISK_FULL)
		return "the disk is full";
	if (s != NULL && (store_is_behind(s) || store_lags(s)))
		return "the disk is behind with what is to be written";
	return NULL;
}

/* How many its rate allows now. */
static uint64_t
allowed(struct transfer *t)
{
	uint64_t now_ms = t->broker->now_ms, most = t->rate * BURST_MS * 1000;

	if (t->rate == 0)
		return UINT64_MAX;
	if (most < 1000000)
		most = 1000000;
	t->credit_us += (now_ms - t->credit_ms) * t->rate * 1000;
	t->credit_ms = now_ms;
	if (t->credit_us > most)
		t->credit_us = most;
	return t->credit_us / 1000000;
}

static bool
wait_for(struct transfer *t, uint64_t ms, bool is_gated)
{
	t->due_ms = t->broker->now_ms + ms;
	t->is_gated = is_gated;
	return false;
}

/* Of those that were chosen, as far as a slice goes. GOT: perhaps none, but there are more. */
static enum peek_result
next_chosen(struct transfer *t, struct queue *q, struct entry *e, unsigned max, unsigned *n)
{
	uint64_t before = q->broker->work;

	for (unsigned looked = 0; looked < BATCH && *n < max; looked++) {
		const struct letter_id *id = &t->chosen[t->chosen_at];
		enum peek_result found;

		if (t->chosen_at == t->chosen_count)
			return *n > 0 ? PEEK_GOT : PEEK_END;
		if (q->broker->work - before > FIND_WORK)
			break;
		found = peek_find(&t->peek, q, id->priority, id->seq, &e[*n]);
		if (found == PEEK_LATER)
			return *n > 0 ? PEEK_GOT : PEEK_LATER;
		t->chosen_at++;
		if (found == PEEK_GOT)
			++*n;
		else
			stays(t, TRANSFER_GONE);
	}
	return PEEK_GOT;
}

static void
send_one(struct transfer *t, const struct parts *p, const struct entry *e, uint64_t *work)
{
	const char *why;

	*work = 0;
	if (entry_is_expired(p->q, e))
		return; /* its queue sees to it */
	why = transfer_send(t, p->q, p->user, e, work);
	if (why == NULL) {
		t->done++;
		t->credit_us -= t->rate > 0 ? 1000000 : 0;
	} else if (why != TRANSFER_GONE || t->chosen != NULL) {
		stays(t, why);
	}
}

static unsigned
batch_size(const struct transfer *t, uint64_t max, unsigned left)
{
	if (max > t->most - t->done)
		max = t->most - t->done;
	if (max > t->batch)
		max = t->batch;
	return max < left ? (unsigned)max : left;
}

static void
send_batch(struct transfer *t, const struct parts *p, struct entry *e, unsigned n, uint64_t *bytes)
{
	uint64_t work, cost = 1;

	for (unsigned i = 0; i < n; i++) {
		send_one(t, p, &e[i], &work);
		msg_unref(&e[i].m);
		cost += work;
	}
	t->batch = BATCH;
	if (cost > BATCH_COST)
		t->batch = n * (uint64_t)BATCH_COST > cost
		               ? (unsigned)(n * (uint64_t)BATCH_COST / cost)
		               : 1;
	*bytes -= cost < *bytes ? cost : *bytes;
}

/* True: it may go on at once. */
static bool
run_batch(struct transfer *t, unsigned *left, uint64_t *bytes)
{
	uint64_t before = t->broker->work, may = allowed(t), looked;
	enum peek_result found = PEEK_END;
	struct entry e[BATCH];
	struct parts p;
	unsigned max, n = 0;

	t->waits = held_by(t->broker);
	if (t->waits != NULL)
		return wait_for(t, WAIT_MS, true);
	if (may == 0)
		return wait_for(t, (1000000 - t->credit_us) / (t->rate * 1000) + 1, true);
	if (!gather(t, &p))
		return false;
	max = batch_size(t, may, *left);
	if (max > 0)
		found = t->chosen != NULL ? next_chosen(t, p.q, e, max, &n)
		                          : peek_next(&t->peek, p.q, e, max, &n);
	looked = (t->broker->work - before) * WORK_COST;
	*bytes -= looked < *bytes ? looked : *bytes;
	if (found ==
	    PEEK_LATER) /* a worker's end makes a turn, but not that of memory being short */
		return wait_for(t, WAIT_MS, false);
	if (found == PEEK_END) {
		end(t, TRANSFER_DONE, NULL);
		return false;
	}
	send_batch(t, &p, e, n, bytes);
	*left -= n < *left ? n : *left;
	return true;
}

static void
mark(struct transfer *t)
{
	uint64_t passed_ms = t->broker->now_ms - t->mark_ms;

	if (passed_ms < MARK_MS)
		return;
	t->last_rate = (t->done - t->mark_done) * 1000 / passed_ms;
	t->mark_ms = t->broker->now_ms;
	t->mark_done = t->done;
}

static uint64_t
per_second(uint64_t n, uint64_t ms)
{
	return n * 1000 / (ms > 0 ? ms : 1);
}

uint64_t
transfer_rate(const struct transfer *t)
{
	uint64_t passed_ms = t->broker->now_ms - t->mark_ms;

	if (t->state != TRANSFER_RUNNING)
		return per_second(t->done, t->ended_ms - t->started_ms);
	if (passed_ms >= MARK_MS)
		return per_second(t->done - t->mark_done, passed_ms);
	return t->last_rate > 0 ? t->last_rate : per_second(t->done - t->mark_done, MARK_MS);
}

bool
transfers_run(struct broker *b)
{
	struct transfers *all = b->transfers;
	unsigned left = RUN_MESSAGES;
	uint64_t bytes = RUN_BYTES, due_ms = UINT64_MAX;
	struct transfer *t;
	bool more = false;

	if (likely(all == NULL) || all->runs == 0)
		return false;
	/* each has its turn: who was served goes to the end */
	for (unsigned n = all->runs; n > 0 && left > 0 && bytes > 0; n--) {
		t = TAILQ_FIRST(&all->running);
		if (t == NULL)
			break;
		TAILQ_REMOVE(&all->running, t, link);
		TAILQ_INSERT_TAIL(&all->running, t, link);
		if (t->is_gated && b->now_ms < t->due_ms)
			continue;
		t->due_ms = 0;
		t->is_gated = false;
		mark(t);
		more |= run_batch(t, &left, &bytes);
	}
	TAILQ_FOREACH (t, &all->running, link)
		due_ms = t->due_ms < due_ms ? t->due_ms : due_ms;
	if (due_ms != UINT64_MAX && due_ms > b->now_ms)
		wheel_arm(b->wheel, &all->timer, due_ms);
	return more || due_ms <= b->now_ms;
}
