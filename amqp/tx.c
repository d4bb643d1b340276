/* SPDX-License-Identifier: Apache-2.0
 * Transactions of one channel, with RabbitMQ's meaning: a publish is checked and routed when it
 * comes, and reaches its queues at commit, by the queues' ids (one that is gone by then gets
 * nothing); one that is to be delayed waits from commit on; settlements leave the ring of
 * deliveries when they come, and count at commit. Rollback drops the publishes and puts the
 * deliveries back as open; it requeues nothing.
 *
 * Bounded: TX_OPERATIONS_MAX operations, and TX_BYTES_MAX bytes of messages, of what is kept about
 * them and of the entries that they will be. */
#include "amqp/tx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/method.h"
#include "amqp/park.h"
#include "base/bound.h"
#include "base/mem.h"
#include "broker/exchange.h"
#include "broker/delay.h"
#include "broker/exchange.h"
#include "broker/queue.h"

enum { SETTLE_COST = 32 }; /* most bytes that a settlement takes in the record of the commit */

struct tx_publish {
	TAILQ_ENTRY(tx_publish) link;
	struct msg *m;            /* one reference */
	uint64_t due_ms, came_ms; /* its time to live begins at commit */
	bool mandatory;
	uint32_t count, delays;
	uint64_t id[]; /* of queues, then of exchanges that keep it for a while */
};
TAILQ_HEAD(tx_publishes, tx_publish);

/* Settlements of one kind after one another: items of `set` from where the last run ended up to
 * `end`. */
struct tx_run {
	uint32_t end;
	enum settle how;
};

struct tx {
	struct tx_publishes publishes; /* owned */
	uint32_t publish_count;
	uint32_t widest;  /* most queues of one publish */
	bool was_refused; /* a full queue did not take what the last commit had for it */
	uint64_t bytes;
	struct unacked_set set; /* owned: taken out of the session */
	struct tx_run *run;     /* owned */
	uint32_t run_count, run_cap;
};

struct tx *
tx_new(void)
{
	struct tx *tx = xcalloc(1, sizeof *tx);

	TAILQ_INIT(&tx->publishes);
	return tx;
}

static size_t
publish_size(uint32_t queues)
{
	return sizeof(struct tx_publish) + queues * sizeof(uint64_t);
}

/* What it counts as: an entry in each queue too, though that comes only at commit. So the memory
 * alarm comes before a commit and not by it: a publish can be held back, a commit not. */
static size_t
publish_cost(uint32_t queues)
{
	return publish_size(queues) + queues * sizeof(struct entry);
}

static void
publish_free(struct tx *tx, struct tx_publish *p)
{
	TAILQ_REMOVE(&tx->publishes, p, link);
	mem_sub(MEM_CONTENT, publish_cost(p->count + p->delays));
	if (p->m != NULL)
		msg_unref(&p->m);
	free(p);
}

/* Ready for the next transaction. */
static void
clear(struct tx *tx)
{
	struct tx_publish *p;

	while ((p = TAILQ_FIRST(&tx->publishes)) != NULL)
		publish_free(tx, p);
	tx->publish_count = tx->widest = 0;
	tx->bytes = 0;
	tx->run_count = 0;
}

void
tx_rollback(struct channel *ch)
{
	struct tx *tx = ch->tx;

	if (tx->set.item != NULL)
		session_put_back(&ch->session, &tx->set);
	clear(tx);
}

void
tx_free(struct channel *ch)
{
	struct tx *tx = ch->tx;

	if (tx == NULL)
		return;
	tx_rollback(ch);
	free(tx->run);
	free(tx);
	ch->tx = NULL;
}

static const struct error *
check_size(const struct tx *tx)
{
	if (tx->publish_count + (uint64_t)tx->set.count > TX_OPERATIONS_MAX) {
		bound_reached(BOUND_transaction);
		return error_make(E_PRECONDITION_FAILED,
		    "transaction too large: more than %d publishes and acknowledgements",
		    TX_OPERATIONS_MAX);
	}
	if (tx->bytes > TX_BYTES_MAX) {
		bound_reached(BOUND_transaction);
		return error_make(E_PRECONDITION_FAILED,
		    "transaction too large: more than %d bytes of messages", TX_BYTES_MAX);
	}
	return NULL;
}

const struct error *
tx_publish(
    struct channel *ch, struct msg *m, const struct route *route, uint64_t due_ms, bool mandatory)
{
	uint32_t places = route->count + route->delays;
	size_t cost = publish_cost(places);
	struct tx_publish *p = try_malloc(publish_size(places));
	struct tx *tx = ch->tx;

	if (p == NULL) {
		msg_unref(&m);
		return error_make(E_RESOURCE_ERROR, "no memory for the transaction");
	}
	mem_add(MEM_CONTENT, cost);
	*p = (struct tx_publish){
		.m = m,
		.due_ms = due_ms,
		.came_ms = ch->session.broker->now_ms,
		.mandatory = mandatory,
		.count = route->count,
		.delays = route->delays,
	};
	for (uint32_t i = 0; i < route->count; i++)
		p->id[i] = route->queue[i]->id;
	for (uint32_t i = 0; i < route->delays; i++)
		p->id[route->count + i] = route->delay[i]->id;
	TAILQ_INSERT_TAIL(&tx->publishes, p, link);
	tx->publish_count++;
	tx->bytes += m->body_size + m->meta_len + cost;
	if (places > tx->widest)
		tx->widest = places;
	return check_size(tx); /* refused: the channel closes, which rolls back */
}

const struct error *
tx_settle(struct channel *ch, uint64_t tag, bool multiple, enum settle how)
{
	struct tx *tx = ch->tx;
	uint32_t before = tx->set.count;
	const struct error *err = session_take(&ch->session, tag, multiple, &tx->set);

	if (err != NULL || tx->set.count == before)
		return err;
	tx->bytes += (uint64_t)(tx->set.count - before) * SETTLE_COST;
	if (tx->run_count > 0 && tx->run[tx->run_count - 1].how == how) {
		tx->run[tx->run_count - 1].end = tx->set.count;
		return check_size(tx);
	}
	if (tx->run_count == tx->run_cap) {
		/* bounded by TX_OPERATIONS_MAX runs of 8 bytes */
		tx->run_cap = tx->run_cap == 0 ? 8 : tx->run_cap * 2;
		tx->run = xrealloc(tx->run, tx->run_cap * sizeof *tx->run);
	}
	tx->run[tx->run_count++] = (struct tx_run){ .end = tx->set.count, .how = how };
	return check_size(tx);
}

/* One publish reaches the queues that are still there. *repeated: of duplicates, what they repeat. */
static void
commit_publish(
    struct channel *ch, struct tx_publish *p, struct route *route, struct store_wait *repeated)
{
	struct broker *b = ch->session.broker;
	struct store_wait wait;
	uint64_t due_ms = p->due_ms != 0 ? p->due_ms + (b->now_ms - p->came_ms) : 0;
	struct msg *m = p->m;
	struct exchange *named;

	p->m = NULL;
	route->count = route->delays = 0;
	for (uint32_t i = p->count; i < p->count + p->delays; i++) {
		struct exchange *x = delay_find(b, p->id[i]);

		if (x != NULL)
			route->delay[route->delays++] = x;
	}
	for (uint32_t i = 0; i < p->count; i++) {
		struct queue *q = queue_find_id(ch->session.client->vhost, p->id[i]);

		if (q != NULL)
			route->queue[route->count++] = q;
	}
	named = exchange_find(ch->session.client->vhost, msg_exchange(m));
	if (named != NULL)
		publish_late(&ch->session, named, m, route->count);
	if (route->count + route->delays == 0)
		channel_unroutable(ch, m, p->mandatory);
	if (publish_deliver(b, m, route, due_ms, &wait) == PUBLISH_REFUSED)
		ch->tx->was_refused = true;
	if (unlikely(wait.lags || b->letters_late)) /* what comes after the commit waits */
		channel_note_lag(ch, b, wait);
	if (wait.lsn > repeated->lsn) /* of a message in the open record it is 0 */
		*repeated = wait;
}

uint32_t
tx_publishes(const struct tx *tx)
{
	return tx->publish_count;
}

uint32_t
tx_settlements(const struct tx *tx)
{
	return tx->set.count;
}

/* All of it is one record of the store: after a crash it is there or it is not. */
struct store_wait
tx_commit(struct channel *ch)
{
	struct store *store = ch->session.broker->store;
	struct store_wait wait = { 0 }, repeated = { 0 };
	struct tx *tx = ch->tx;
	struct route route = { 0 };
	struct tx_publish *p;
	uint32_t at = 0;

	tx->was_refused = false;
	if (store != NULL)
		store_begin(store);
	if (tx->publish_count > 0) {
		route.queue = xmalloc((tx->widest + 1u) * sizeof *route.queue);
		route.delay = xmalloc((tx->widest + 1u) * sizeof *route.delay);
	}
	while ((p = TAILQ_FIRST(&tx->publishes)) != NULL) {
		commit_publish(ch, p, &route, &repeated);
		publish_free(tx, p);
	}
	free(route.queue);
	free(route.delay);
	for (uint32_t i = 0; i < tx->run_count; i++) {
		for (; at < tx->run[i].end; at++)
			session_settle_taken(&ch->session, &tx->set.item[at], tx->run[i].how);
	}
	tx->set.count = 0;
	clear(tx);
	if (store != NULL)
		wait = store_end(store);
	if (wait.lsn == 0)
		wait = repeated;
	wait.durable |= repeated.durable;
	return wait;
}

/* --- methods ------------------------------------------------------------ */

const struct error *
tx_on_select(const struct method_call *call)
{
	struct channel *ch = call->ch;

	if (ch->mode == MODE_CONFIRM)
		return error_make(E_PRECONDITION_FAILED, "cannot switch from confirm to tx mode");
	if (ch->tx == NULL)
		ch->tx = tx_new();
	ch->mode = MODE_TX;
	codec_send_empty(call->conn, ch->id, AMQP_TX_SELECT_OK_METHOD);
	return NULL;
}

static const struct error *
check_mode(const struct channel *ch)
{
	if (ch->mode != MODE_TX)
		return error_make(E_PRECONDITION_FAILED, "channel is not transactional");
	return NULL;
}

const struct error *
tx_on_commit(const struct method_call *call)
{
	const struct error *err = check_mode(call->ch);
	struct store_wait wait;

	if (err != NULL)
		return err;
	wait = tx_commit(call->ch);
	/* The rest was done, as in RabbitMQ. */
	if (unlikely(call->ch->tx->was_refused))
		return error_make(E_PRECONDITION_FAILED, "partial tx completion");
	park_answer(call, wait, AMQP_TX_COMMIT_OK_METHOD, NULL);
	return NULL;
}

const struct error *
tx_on_rollback(const struct method_call *call)
{
	const struct error *err = check_mode(call->ch);

	if (err != NULL)
		return err;
	tx_rollback(call->ch);
	codec_send_empty(call->conn, call->ch->id, AMQP_TX_ROLLBACK_OK_METHOD);
	return NULL;
}
