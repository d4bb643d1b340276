/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/published.h"

#include <stdlib.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/session.h"

static uint64_t
since_mark(const struct session *s)
{
	return s->stats.publish - s->published.mark;
}

static void
leave(struct session *s)
{
	struct published_list *l = &s->published;

	if (l->at < l->count)
		l->item[l->at].count += since_mark(s);
	else
		s->broker->exchanges_uncounted += since_mark(s);
	l->mark = s->stats.publish;
}

static struct published_share *
add(struct session *s, const struct exchange *x)
{
	struct published_list *l = &s->published;
	size_t room = l->count * sizeof *l->item;

	if ((l->count & (l->count - 1)) == 0) { /* full: 0, 1, 2, 4, ... */
		l->item = xrealloc(l->item, room > 0 ? 2 * room : sizeof *l->item);
		mem_add(MEM_SAMPLES, room > 0 ? room : sizeof *l->item);
	}
	l->item[l->count] = (struct published_share){ .exchange = x->id,
		.series = series_ref(&s->broker->series, &x->series) };
	return &l->item[l->count++];
}

void
published_to(struct session *s, const struct exchange *x)
{
	struct published_list *l = &s->published;

	if (l->exchange == 0)
		s->broker->stats.publishers++;
	leave(s);
	l->exchange = x->id;
	for (l->at = 0; l->at < l->count; l->at++)
		if (l->item[l->at].exchange == x->id)
			return;
	if (l->count == PUBLISHED_MAX)
		l->at = PUBLISHED_MAX;
	else
		l->at = (uint32_t)(add(s, x) - l->item);
}

uint64_t
published_count(const struct session *s, uint32_t i)
{
	const struct published_list *l = &s->published;

	return l->item[i].count + (i == l->at ? since_mark(s) : 0);
}

void
published_fini(struct session *s)
{
	struct published_list *l = &s->published;
	size_t room = 1;

	if (l->exchange != 0)
		s->broker->stats.publishers--;
	leave(s);
	while (room < l->count)
		room *= 2;
	if (l->count > 0)
		mem_sub(MEM_SAMPLES, room * sizeof *l->item);
	free(l->item);
	*l = (struct published_list){ 0 };
}
