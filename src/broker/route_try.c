/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/route_try.h"

#include <stdlib.h>

#include "base/mem.h"
#include "broker/binding.h"
#include "broker/delay.h"
#include "broker/error.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/route.h"

struct watch {
	struct route_watch watch; /* first */
	struct route_try *t;
};

static struct route_try *
of(struct route_watch *w)
{
	return ((struct watch *)w)->t;
}

/* Exchanges are met in the order in which they are added here: the walk's numbers are ours. */
static bool
add(struct route_watch *w, const struct route_step *step, struct exchange *to)
{
	struct route_try *t = of(w);

	if (t->steps == ROUTE_TRY_STEPS_MAX) {
		t->is_cut = true;
		return false;
	}
	t->step[t->steps++] = *step;
	if (to != NULL && !step->again)
		t->place[t->places++] =
		    (struct route_place){ .exchange = to, .depth = t->place[step->from].depth + 1 };
	t->queues += step->queue != NULL && !step->again;
	return true;
}

static bool
on_binding(struct route_watch *w, uint32_t at, struct binding *b, bool again)
{
	struct route_step step = { .way = ROUTE_BY_BINDING,
		.from = at,
		.binding = b,
		.queue = b->queue,
		.exchange = b->exchange,
		.again = again };

	return add(w, &step, b->exchange);
}

static bool
on_name(struct route_watch *w, struct queue *q, bool again)
{
	struct route_step step = { .way = ROUTE_BY_NAME, .queue = q, .again = again };

	return add(w, &step, NULL);
}

static bool
on_alternate(struct route_watch *w, uint32_t at, struct exchange *x, bool again)
{
	struct route_step step = {
		.way = ROUTE_BY_ALTERNATE, .from = at, .exchange = x, .again = again
	};

	return add(w, &step, x);
}

static void
on_delay(struct route_watch *w, uint32_t at, uint64_t ms)
{
	of(w)->place[at].delay_ms = ms;
}

static const struct error *
look(struct route_try *t, struct exchange *x, const struct msg *m, const struct props *pr)
{
	struct watch w = { .watch = { on_binding, on_name, on_alternate, on_delay }, .t = t };
	const struct route *r;

	t->place[t->places++] = (struct route_place){ .exchange = x };
	r = route_find_watched(x, m, pr, &w.watch);
	if (r == NULL && !t->is_cut)
		return publish_refuse_route(x, msg_key(m));
	return r != NULL && r->bad_delay ? delay_refuse(pr->headers) : NULL;
}

const struct error *
route_try(struct route_try *t, struct exchange *x, const struct msg *m)
{
	const struct error *e = NULL;
	struct props pr;
	bool cc, bcc;

	*t = (struct route_try){ .step = xcalloc(ROUTE_TRY_STEPS_MAX, sizeof *t->step),
		.place = xcalloc(ROUTE_TRY_STEPS_MAX + 1, sizeof *t->place) };
	if (props_scan(msg_props(m), &pr) != 0)
		return error_make(E_SYNTAX_ERROR, "the properties are not in order");
	if (pr.has_cc)
		e = route_check_cc(pr.headers, &cc, &bcc);
	return e != NULL ? e : look(t, x, m, &pr);
}

void
route_try_fini(struct route_try *t)
{
	free(t->step);
	free(t->place);
}
