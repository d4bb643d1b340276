/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/format.h"

static void
entry_fini(struct model_entry *e)
{
	free(e->change);
	e->change = NULL;
	e->changes = 0;
}

void
model_fini(struct model *m)
{
	for (uint32_t i = 0; i < m->lanes; i++) {
		for (uint32_t k = 0; k < m->lane[i]->n; k++)
			entry_fini(&m->lane[i]->e[k]);
		free(m->lane[i]->e);
		free(m->lane[i]);
	}
	for (uint32_t i = 0; i < m->objects; i++)
		free(m->object[i].v);
	for (uint32_t i = 0; i < m->windows; i++)
		free(m->window[i].key);
	free(m->window);
	free(m->lane);
	free(m->object);
	free(m->msg);
	free(m->turn_end);
	free(m->end);
	*m = (struct model){ 0 };
}

static void *
copy_of(const void *p, size_t n)
{
	void *to = xmalloc(n + 1);

	if (n > 0)
		memcpy(to, p, n);
	return to;
}

static struct model_lane *
copy_lane(const struct model_lane *from)
{
	struct model_lane *l = copy_of(from, sizeof *from);

	l->e = copy_of(from->e, from->n * sizeof *from->e);
	l->cap = l->n;
	l->is_open = false;
	l->lane = NULL;
	for (uint32_t i = 0; i < l->n; i++) {
		l->e[i].item = NULL;
		l->e[i].change =
		    copy_of(from->e[i].change, from->e[i].changes * sizeof *from->e[i].change);
	}
	return l;
}

void
model_copy(struct model *to, const struct model *from)
{
	*to = *from;
	to->msg = copy_of(from->msg, from->msgs * sizeof *from->msg);
	to->msgs_cap = from->msgs;
	to->lane = copy_of(from->lane, from->lanes * sizeof *from->lane);
	for (uint32_t i = 0; i < from->lanes; i++)
		to->lane[i] = copy_lane(from->lane[i]);
	to->object = copy_of(from->object, from->objects * sizeof *from->object);
	for (uint32_t i = 0; i < from->objects; i++)
		to->object[i].v =
		    copy_of(from->object[i].v, from->object[i].n * sizeof *from->object[i].v);
	to->window = copy_of(from->window, from->windows * sizeof *from->window);
	for (uint32_t i = 0; i < from->windows; i++) {
		const struct model_window *w = &from->window[i];

		to->window[i].w = NULL;
		to->window[i].key = copy_of(w->key, w->n * sizeof *w->key);
		to->window[i].cap = w->n;
	}
	to->turn_end = copy_of(from->turn_end, from->turns * sizeof *from->turn_end);
	to->turns_cap = from->turns;
	to->end = NULL;
	to->ends = 0;
}

struct model_msg *
model_new_msg(struct model *m, uint32_t *index)
{
	if (m->msgs == m->msgs_cap) {
		m->msgs_cap = m->msgs_cap * 2 + 64;
		m->msg = xrealloc(m->msg, m->msgs_cap * sizeof *m->msg);
	}
	*index = m->msgs;
	m->msg[m->msgs] = (struct model_msg){ .id = m->msgs };
	return &m->msg[m->msgs++];
}

struct model_lane *
model_find_lane(const struct model *m, struct op_lane name)
{
	for (uint32_t i = 0; i < m->lanes; i++) {
		if (m->lane[i]->name.queue == name.queue && m->lane[i]->name.lane == name.lane)
			return m->lane[i];
	}
	return NULL;
}

struct model_lane *
model_new_lane(struct model *m, struct op_lane name, bool durable)
{
	struct model_lane *l = model_find_lane(m, name);

	if (l != NULL) { /* of an id whose first life was cut off */
		assert(l->n == 0 && !l->is_open);
		free(l->e);
		*l = (struct model_lane){ .name = name, .durable = durable, .next_seq = 1 };
		return l;
	}
	l = xcalloc(1, sizeof *l);
	l->name = name;
	l->durable = durable;
	l->next_seq = 1;
	m->lane = xrealloc(m->lane, (m->lanes + 1) * sizeof *m->lane);
	m->lane[m->lanes++] = l;
	return l;
}

struct model_object *
model_object(struct model *m, enum object_kind kind, uint64_t id)
{
	for (uint32_t i = 0; i < m->objects; i++) {
		if (m->object[i].kind == kind && m->object[i].id == id)
			return &m->object[i];
	}
	m->object = xrealloc(m->object, (m->objects + 1) * sizeof *m->object);
	m->object[m->objects] = (struct model_object){ .kind = kind, .id = id };
	return &m->object[m->objects++];
}

void
model_object_set(struct model_object *o, uint64_t lsn, uint32_t version)
{
	o->v = xrealloc(o->v, (o->n + 1) * sizeof *o->v);
	o->v[o->n++] = (struct model_version){ lsn, version };
}

uint32_t
model_object_version(const struct model_object *o)
{
	return o->n == 0 ? 0 : o->v[o->n - 1].version;
}

void
model_end_turn(struct model *m, uint64_t last_lsn)
{
	if (m->turns == m->turns_cap) {
		m->turns_cap = m->turns_cap * 2 + 64;
		m->turn_end = xrealloc(m->turn_end, m->turns_cap * sizeof *m->turn_end);
	}
	m->turn_end[m->turns++] = last_lsn;
}

struct model_when
model_now(const struct model *m, uint64_t last_lsn)
{
	return (struct model_when){ .after = last_lsn, .turn = m->turns };
}

/* Index of the first entry with at least this seq. */
static uint32_t
entry_index(const struct model_lane *l, uint64_t seq)
{
	uint32_t from = 0, to = l->n;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (l->e[mid].seq < seq)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

struct model_entry *
model_find(const struct model_lane *l, uint64_t seq)
{
	uint32_t i = entry_index(l, seq);

	return i < l->n && l->e[i].seq == seq ? &l->e[i] : NULL;
}

struct model_entry *
model_add(struct model_lane *l, uint64_t seq, uint32_t msg, bool persistent, uint64_t lsn)
{
	struct model_entry *e;

	assert(l->n == 0 || l->e[l->n - 1].seq < seq);
	if (l->n == l->cap) {
		l->cap = l->cap * 2 + 16;
		l->e = xrealloc(l->e, l->cap * sizeof *l->e);
	}
	e = &l->e[l->n++];
	*e = (struct model_entry){ .seq = seq,
		.msg = msg,
		.persistent = persistent,
		.published = lsn,
		.alternatives = 1,
		.is_known = true };
	if (seq >= l->next_seq)
		l->next_seq = seq + 1;
	return e;
}

struct model_entry *
model_insert(struct model_lane *l, uint64_t seq, uint32_t msg)
{
	uint32_t at = entry_index(l, seq);
	uint64_t next_seq = l->next_seq;
	struct model_entry e;

	if (at == l->n)
		return model_add(l, seq, msg, true, 0);
	(void)model_add(l, l->e[l->n - 1].seq + 1, msg, true, 0);
	l->next_seq = next_seq;
	e = l->e[l->n - 1];
	memmove(l->e + at + 1, l->e + at, (l->n - 1 - at) * sizeof *l->e);
	e.seq = seq;
	e.alternatives = 0;
	e.is_known = false;
	e.recovered = true;
	l->e[at] = e;
	if (l->low > at)
		l->low = at;
	return &l->e[at];
}

void
model_remove(struct model_entry *e, struct model_when when)
{
	assert(e->where != MODEL_GONE);
	e->where = MODEL_GONE;
	e->removed = when;
}

void
model_set_state(struct model_entry *e, const struct op_state *s, struct model_when when)
{
	e->change = xrealloc(e->change, (e->changes + 1) * sizeof *e->change);
	e->change[e->changes++] = (struct model_change){ when, *s };
	e->state = *s;
}

struct model_entry *
model_first_ready(struct model_lane *l)
{
	while (l->low < l->n && l->e[l->low].where == MODEL_GONE)
		l->low++;
	for (uint32_t i = l->low; i < l->n; i++) {
		if (l->e[i].where == MODEL_READY)
			return &l->e[i];
	}
	return NULL;
}

bool
model_state_eq(const struct op_state *a, const struct op_state *b)
{
	return a->redelivered == b->redelivered && a->deliveries == b->deliveries &&
	       a->acquired == b->acquired;
}

bool
model_is_in(const struct model *m, uint64_t lsn)
{
	if (lsn == 0 || lsn_file(lsn) < m->first_file)
		return true;
	for (uint32_t i = 0; i < m->ends; i++) {
		if (lsn_file(m->end[i]) == lsn_file(lsn))
			return lsn < m->end[i];
	}
	return false;
}

enum truth
model_happened(const struct model *m, const struct model_when *w)
{
	if (w->exact != 0)
		return model_is_in(m, w->exact) ? TRUTH_YES : TRUTH_NO;
	if (w->turn < m->turns && model_is_in(m, m->turn_end[w->turn]))
		return TRUTH_YES;
	return model_is_in(m, w->after) ? TRUTH_MAYBE : TRUTH_NO;
}

static void
settle_states(const struct model *m, struct model_entry *e)
{
	for (uint32_t i = 0; i < e->changes; i++) {
		enum truth t = model_happened(m, &e->change[i].when);

		if (t == TRUTH_NO)
			break;
		if (t == TRUTH_YES) {
			e->alternative[0] = e->change[i].state;
			e->alternatives = 1;
		} else if (e->alternatives > 0 && e->alternatives < MODEL_ALTERNATIVES) {
			e->alternative[e->alternatives++] = e->change[i].state;
		} else {
			e->alternatives = 0;
		}
	}
	entry_fini(e);
}

void
model_settle_lane(const struct model *m, struct model_lane *l)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->n; i++) {
		struct model_entry *e = &l->e[i];
		enum truth removed =
		    e->where == MODEL_GONE ? model_happened(m, &e->removed) : TRUTH_NO;

		if (!model_is_in(m, e->published) || removed == TRUTH_YES) {
			entry_fini(e);
			continue;
		}
		settle_states(m, e);
		if (removed == TRUTH_MAYBE || !e->persistent)
			e->maybe = true;
		if (!e->persistent || e->is_doubtful)
			e->alternatives = 0;
		e->is_doubtful = false;
		e->is_known = false;
		e->recovered = true;
		e->where = MODEL_READY;
		e->item = NULL;
		l->e[kept++] = *e;
	}
	l->n = kept;
	l->low = 0;
	l->lost = 0;
	l->read_bound = 0;
	if (model_happened(m, &l->marked) != TRUTH_YES)
		l->delivered = 0;
}

void
model_settle_object(const struct model *m, struct model_object *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n && model_is_in(m, o->v[i].lsn); i++)
		o->v[n++] = o->v[i];
	if (n > 1)
		o->v[0] = o->v[n - 1];
	o->n = n > 0 ? 1 : 0;
}

bool
model_resolve_state(struct model_entry *e, const struct op_state *s)
{
	bool fits = e->alternatives == 0;

	if (e->is_known)
		return model_state_eq(&e->state, s);
	for (uint32_t i = 0; i < e->alternatives; i++)
		fits = fits || model_state_eq(&e->alternative[i], s);
	e->state = e->alternative[0] = *s;
	e->alternatives = 1;
	e->is_known = true;
	return fits;
}

void
model_new_run(struct model *m)
{
	m->turns = 0;
	m->ends = 0;
	for (uint32_t i = 0; i < m->objects; i++) {
		if (m->object[i].n > 0)
			m->object[i].v[0].lsn = 0;
	}
	for (uint32_t i = 0; i < m->lanes; i++) {
		struct model_lane *l = m->lane[i];

		for (uint32_t k = 0; k < l->n; k++)
			l->e[k].published = 0;
		l->marked = (struct model_when){ 0 };
		l->delivered = 0;
	}
}

void
model_unread(const struct model_lane *l, uint64_t *least, uint64_t *most)
{
	*least = *most = 0;
	for (uint32_t i = l->low; i < l->n; i++) {
		const struct model_entry *e = &l->e[i];

		if (e->where == MODEL_READY && e->item == NULL) {
			++*most;
			*least += e->maybe ? 0 : 1;
		}
	}
}
