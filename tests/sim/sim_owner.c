/* SPDX-License-Identifier: Apache-2.0
 * What the broker is to the store, in the simplest form: items, and which of a lane's messages it keeps in memory. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/sim.h"

enum { ITEM_MAGIC = 0x1733, NAMES = 24, PROPS = 64 };

struct item {
	uint32_t magic, refs;
	struct model_msg msg;
	uint8_t names[NAMES], props[PROPS];
	uint32_t names_n, props_n;
};

/* One world at a time: describe() and unref() have no argument. */
static struct sim *sim;

void
sim_set_current(struct sim *s)
{
	sim = s;
}

struct sim *
sim_of_lane(const struct model_lane *l)
{
	(void)l;
	return sim;
}

/* ---- content ---- */

static void
body_bytes(uint64_t id, uint64_t n, uint8_t *to)
{
	struct rnd r = rnd_of(id * 31 + 7);
	uint64_t i = 0, word;

	for (; i + 8 <= n; i += 8) {
		word = rnd_next(&r);
		memcpy(to + i, &word, 8);
	}
	for (; i < n; i++)
		to[i] = (uint8_t)(id + i);
}

static void
copy_body(const void *item, uint8_t *to)
{
	const struct item *i = item;

	body_bytes(i->msg.id, i->msg.body_size, to);
}

static void
fill(struct item *i)
{
	uint64_t id = i->msg.id;
	uint32_t exchange = (uint32_t)(id % 7), key = (uint32_t)(id % 11);

	i->names[0] = (uint8_t)exchange;
	memset(i->names + 1, 'x', exchange);
	i->names[1 + exchange] = (uint8_t)key;
	memset(i->names + 2 + exchange, (int)('a' + id % 26), key);
	i->names_n = 2 + exchange + key;
	i->props_n = 8 + (uint32_t)(id % 40);
	memset(i->props, (int)(id % 251), sizeof i->props);
	memcpy(i->props, &id, 8);
}

void *
sim_item_new(struct sim *s, uint32_t msg)
{
	struct item *i = xcalloc(1, sizeof *i);

	i->magic = ITEM_MAGIC;
	i->refs = 1;
	i->msg = s->model.msg[msg];
	fill(i);
	s->items++;
	return i;
}

static struct item *
item_of(void *p)
{
	struct item *i = p;

	assert(i->magic == ITEM_MAGIC && i->refs > 0);
	return i;
}

static void
item_ref(void *p)
{
	item_of(p)->refs++;
}

void
sim_item_unref(void *p)
{
	struct item *i = item_of(p);

	if (--i->refs > 0)
		return;
	i->magic = 0;
	sim->items--;
	free(i);
}

/* ---- the struct of operations ---- */

static void
describe(const void *p, struct op_msg *out)
{
	struct item *i = item_of((void *)(uintptr_t)p);

	out->names = span_of(i->names, i->names_n);
	out->props = span_of(i->props, i->props_n);
	out->body_size = i->msg.body_size;
	out->body = span_of(NULL, 0);
	out->copy_body = copy_body;
	out->item = p;
	out->flags = i->msg.flags;
	out->prio = i->msg.prio;
	out->arrived_ms = i->msg.arrived_ms;
	out->expires_ms = i->msg.expires_ms;
	out->due_ms = i->msg.due_ms;
}

static uint64_t
body_size(const void *p)
{
	return item_of((void *)(uintptr_t)p)->msg.body_size;
}

static void
check_times(const struct item *i, const struct op_msg *m)
{
	SIM_CHECK(sim,
	    m->arrived_ms == i->msg.arrived_ms && m->expires_ms == i->msg.expires_ms &&
	        m->due_ms == i->msg.due_ms,
	    "message %llu: times differ", (unsigned long long)i->msg.id);
	SIM_CHECK(sim, (m->flags & MSG_FLAG_PERSISTENT) == (i->msg.flags & MSG_FLAG_PERSISTENT),
	    "message %llu: flags %u, not %u", (unsigned long long)i->msg.id, m->flags,
	    i->msg.flags);
}

/* Byte for byte what was published. */
static void *
make(void *arg, const struct op_msg *m)
{
	struct sim *s = arg;
	struct item *i;
	uint64_t id;
	uint8_t *body;

	if (!s->recovering && s->make_fails > 0 && rnd_chance(&s->r, s->make_fails))
		return NULL;
	SIM_CHECK(s, m->props.n >= 8, "a message with %zu bytes of properties", m->props.n);
	memcpy(&id, m->props.p, 8);
	SIM_CHECK(
	    s, id < s->model.msgs, "message %llu was never published", (unsigned long long)id);
	i = sim_item_new(s, (uint32_t)id);
	SIM_CHECK(s,
	    span_eq(m->names, span_of(i->names, i->names_n)) &&
	        span_eq(m->props, span_of(i->props, i->props_n)) && m->prio == i->msg.prio &&
	        m->body_size == i->msg.body_size && m->body.n == m->body_size,
	    "message %llu: names, properties or size differ", (unsigned long long)id);
	check_times(i, m);
	body = xmalloc(m->body_size + 1);
	body_bytes(id, m->body_size, body);
	SIM_CHECK(s, m->body_size == 0 || memcmp(body, m->body.p, m->body_size) == 0,
	    "message %llu: body differs", (unsigned long long)id);
	free(body);
	return i;
}

/* ---- what was in memory at the start ---- */

void
sim_lane_entry(
    void *arg, uint64_t seq, void *p, const struct op_state *state, const struct op_msg *m)
{
	struct model_lane *l = arg;
	struct model_entry *e = model_find(l, seq);
	struct item *i = item_of(p);
	struct op_state was;

	if (l->ghosts && e == NULL) {
		e = model_insert(l, seq, (uint32_t)i->msg.id);
		e->alternatives = 0;
		e->is_known = false;
	}
	SIM_CHECK(sim, e != NULL && e->where == MODEL_READY,
	    "queue %llu/%u: message with seq %llu (id %llu) came back",
	    (unsigned long long)l->name.queue, l->name.lane, (unsigned long long)seq,
	    (unsigned long long)i->msg.id);
	SIM_CHECK(sim, e->item == NULL, "seq %llu twice", (unsigned long long)seq);
	SIM_CHECK(sim, sim->model.msg[e->msg].id == i->msg.id,
	    "queue %llu/%u seq %llu: message %llu, not %llu", (unsigned long long)l->name.queue,
	    l->name.lane, (unsigned long long)seq, (unsigned long long)i->msg.id,
	    (unsigned long long)sim->model.msg[e->msg].id);
	SIM_CHECK(
	    sim, seq >= l->read_bound, "seq %llu behind a higher one", (unsigned long long)seq);
	was = e->is_known ? e->state : e->alternative[0];
	SIM_CHECK(sim, model_resolve_state(e, state),
	    "queue %llu/%u seq %llu: state %d %u %u, not %d %u %u (or %u others)",
	    (unsigned long long)l->name.queue, l->name.lane, (unsigned long long)seq,
	    state->redelivered, state->deliveries, state->acquired, was.redelivered, was.deliveries,
	    was.acquired, e->alternatives);
	check_times(i, m);
	l->read_bound = seq + 1;
	e->maybe = false;
	e->item = i;
}

/* ---- the chain ---- */

/* What was asked for lies between: unread ones below `seq` were passed over. Those of which nobody knew, and those that
 * were reported as damaged, may be. */
static void
passed_over(struct model_lane *l, uint64_t seq)
{
	for (uint32_t i = l->low; i < l->n && l->e[i].seq < seq; i++) {
		struct model_entry *e = &l->e[i];

		if (e->where != MODEL_READY || e->item != NULL)
			continue;
		if (!e->maybe) {
			SIM_CHECK(sim, l->lost > 0,
			    "queue %llu/%u: seq %llu (id %llu) is lost, %llu was read",
			    (unsigned long long)l->name.queue, l->name.lane,
			    (unsigned long long)e->seq,
			    (unsigned long long)sim->model.msg[e->msg].id, (unsigned long long)seq);
			l->lost--;
			model_remove(e, MODEL_WHO_KNOWS);
		} else {
			model_remove(e, sim->damage_expected ? MODEL_WHO_KNOWS : MODEL_LONG_AGO);
		}
	}
}

static void
loaded(
    struct lane *lane, void *p, uint64_t seq, const struct op_state *state, const struct op_msg *m)
{
	struct model_lane *l = lane_owner(lane);
	struct model_entry *e = model_find(l, seq);

	SIM_CHECK(sim, e == NULL || e->item == NULL,
	    "queue %llu/%u: seq %llu was read, but is in memory", (unsigned long long)l->name.queue,
	    l->name.lane, (unsigned long long)seq);
	passed_over(l, seq);
	l->read_bound = 0;
	sim_lane_entry(l, seq, p, state, m);
	e = model_find(l, seq);
	if (e->recovered)
		e->persistent = true; /* its segment has a SEG, which is durable */
}

static void
load_done(struct lane *lane)
{
	struct model_lane *l = lane_owner(lane);

	if (lane_unread(lane) == 0)
		passed_over(l, UINT64_MAX);
	if (lane_unread(lane) == 0)
		l->lost = 0;
}

static void
lost(struct lane *lane, uint64_t count, uint64_t bytes)
{
	struct model_lane *l = lane_owner(lane);

	(void)bytes;
	SIM_CHECK(sim, sim->damage_expected || disk_sim_is_dead(sim->disk),
	    "%llu messages of queue %llu/%u are said to be damaged", (unsigned long long)count,
	    (unsigned long long)l->name.queue, l->name.lane);
}

/* Lets go of a random part of what is new in the chain; what was ever given out stays, and what is before it. */
static uint64_t
spilled(struct lane *lane, uint64_t through, bool is_behind)
{
	struct model_lane *l = lane_owner(lane);
	uint64_t from = l->chained + 1;

	if (!is_behind) {
		from = (l->delivered > l->chained ? l->delivered : l->chained) + 1;
		if (rnd_chance(&sim->r, 30))
			from = through + 1;
		else if (rnd_chance(&sim->r, 50) && from <= through)
			from += rnd(&sim->r, through + 1 - from + 1);
	}
	for (uint32_t i = l->low; i < l->n && l->e[i].seq <= through; i++) {
		struct model_entry *e = &l->e[i];

		if (e->where != MODEL_READY || e->item == NULL || e->seq < from)
			continue;
		sim_item_unref(e->item);
		e->item = NULL;
	}
	sim_say(sim, "  spilled %llu/%u through %llu behind %d: from %llu; chained %llu",
	    (unsigned long long)l->name.queue, l->name.lane, (unsigned long long)through, is_behind,
	    (unsigned long long)from, (unsigned long long)l->chained);
	l->chained = through;
	return from > through ? through + 1 : from;
}

const struct store_ops sim_store_ops = {
	.make = make,
	.ref = item_ref,
	.unref = sim_item_unref,
	.describe = describe,
	.body_size = body_size,
	.spilled = spilled,
	.loaded = loaded,
	.load_done = load_done,
	.lost = lost,
};

/* Between two steps: does the store count what there is? */
void
sim_check_lane(struct sim *s, struct model_lane *l)
{
	uint64_t least, most, n;

	if (l->lane == NULL)
		return;
	model_unread(l, &least, &most);
	n = lane_unread(l->lane);
	least = least > l->lost ? least - l->lost : 0;
	SIM_CHECK(s, n >= least && (n <= most || l->ghosts),
	    "queue %llu/%u: %llu unread, expected %llu to %llu", (unsigned long long)l->name.queue,
	    l->name.lane, (unsigned long long)n, (unsigned long long)least,
	    (unsigned long long)most);
	SIM_CHECK(s, n > 0 || lane_unread_bytes(l->lane) == 0, "nothing unread, but bytes");
}
