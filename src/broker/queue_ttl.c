/* SPDX-License-Identifier: Apache-2.0
 * Times to live that a queue had: see the header. The state is a list of `until 8, ttl 8`, big-endian, ascending, the
 * last one without an end. */
#include "broker/queue_ttl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/persist.h"
#include "broker/queue_priv.h"
#include "broker/table.h"

enum { PAIR = 16 };

struct ttl_past {
	uint32_t n; /* 2 or more; 1 while it is made */
	struct {
		uint64_t until_ms; /* of messages that came before; UINT64_MAX: of all others */
		uint64_t ttl_ms;   /* or SETTING_NONE */
	} e[TTL_PAST_MAX];
};

static struct ttl_past *
past_of(struct queue *q, uint64_t ttl_ms)
{
	struct ttl_past *p = q->ttl_past;

	if (p != NULL)
		return p;
	p = xcalloc(1, sizeof *p);
	p->n = 1;
	p->e[0].until_ms = UINT64_MAX;
	p->e[0].ttl_ms = ttl_ms;
	mem_add(MEM_TOPOLOGY, sizeof *p);
	q->ttl_past = p;
	return p;
}

void
queue_ttl_fini(struct queue *q)
{
	if (q->ttl_past == NULL)
		return;
	mem_sub(MEM_TOPOLOGY, sizeof *q->ttl_past);
	free(q->ttl_past);
	q->ttl_past = NULL;
}

static bool
is_empty(const struct queue *q)
{
	return q->ready == 0 && q->unacked == 0 && q->dead == NULL;
}

void
queue_ttl_tidy(struct queue *q)
{
	if (q->ttl_past == NULL || !is_empty(q))
		return;
	queue_ttl_fini(q);
	queue_reset_due(q);
	queue_count_limits(q);
}

uint64_t
queue_ttl_at(const struct queue *q, uint64_t arrived_ms)
{
	const struct ttl_past *p = q->ttl_past;
	uint32_t i = 0;

	while (i < p->n - 1 && arrived_ms >= p->e[i].until_ms)
		i++;
	return p->e[i].ttl_ms;
}

/* Those of this millisecond came before, as far as anybody can tell. */
static void
add(struct queue *q, uint64_t old_ms)
{
	struct ttl_past *p = past_of(q, old_ms);

	if (p->n == TTL_PAST_MAX) {
		if (p->e[1].ttl_ms < p->e[0].ttl_ms)
			p->e[1].ttl_ms = p->e[0].ttl_ms;
		p->n--;
		memmove(&p->e[0], &p->e[1], p->n * sizeof p->e[0]);
	}
	p->e[p->n - 1].until_ms = q->broker->now_ms + 1;
	p->e[p->n].until_ms = UINT64_MAX;
	p->e[p->n].ttl_ms = q->set.ttl_ms;
	p->n++;
	q->with_due = true;
}

void
queue_ttl_changed(struct queue *q, uint64_t old_ms)
{
	if (q->set.ttl_ms == old_ms)
		return;
	if (is_empty(q))
		queue_ttl_fini(q);
	else
		add(q, old_ms);
	persist_queue_again(q);
}

/* ---- kept ---- */

static uint64_t
of_arguments(const struct queue *q)
{
	struct field f;

	if (table_find(table_span(q->arguments), "x-message-ttl", &f) && field_is_integer(&f))
		return (uint64_t)f.integer;
	return SETTING_NONE;
}

struct span
queue_ttl_state(const struct queue *q, uint8_t *buf)
{
	const struct ttl_past *p = q->ttl_past;
	uint32_t n = p != NULL ? p->n : 1;

	if (p == NULL && q->set.ttl_ms == of_arguments(q))
		return span_of(NULL, 0);
	for (uint32_t i = 0; i < n; i++) {
		put_be64(buf + PAIR * i, p != NULL ? p->e[i].until_ms : UINT64_MAX);
		put_be64(buf + PAIR * i + 8, p != NULL ? p->e[i].ttl_ms : q->set.ttl_ms);
	}
	return span_of(buf, (size_t)PAIR * n);
}

void
queue_ttl_restore(struct queue *q, struct span state)
{
	uint32_t n = (uint32_t)(state.n / PAIR);
	uint64_t last_ms = of_arguments(q);
	struct ttl_past *p;

	if (n > TTL_PAST_MAX)
		n = 0;
	if (n > 0)
		last_ms = get_be64(state.p + PAIR * (n - 1) + 8);
	if (n > 1) {
		p = past_of(q, last_ms);
		for (p->n = 0; p->n < n; p->n++) {
			p->e[p->n].until_ms = get_be64(state.p + PAIR * p->n);
			p->e[p->n].ttl_ms = get_be64(state.p + PAIR * p->n + 8);
		}
		q->with_due = true;
	}
	queue_ttl_changed(q, last_ms);
	queue_count_limits(q);
	if (q->ttl_past != NULL)
		queue_tidy_later(q);
}
