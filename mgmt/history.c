/* SPDX-License-Identifier: Apache-2.0
 * /api/hermes/history: what the broker has of the last minute to the last day, for charts. */
#include "mgmt/history.h"

#include <string.h>

#include "broker/broker.h"
#include "broker/client.h"
#include "broker/history.h"
#include "broker/queue.h"
#include "broker/vhost.h"
#include "mgmt/about.h"
#include "mgmt/acting.h"
#include "mgmt/client_doc.h"
#include "mgmt/json_out.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/loop.h"

static void
read_gauges(void *arg, struct history_gauges *out)
{
	struct mgmt *m = arg;
	uint64_t least;

	out->memory = (uint64_t)about_resident();
	if (m->node.disk != NULL)
		m->node.disk(m->node.arg, &out->disk_free, &least);
	out->loop_lag_us = m->loop->turn_time.latest_us;
	m->loop->turn_time.latest_us = 0;
}

void
histories_start(struct mgmt *m)
{
	history_start(m->broker, read_gauges, m);
}

void
histories_stop(struct mgmt *m)
{
	history_stop(m->broker);
}

/* ---- the answer ---- */

static const char *const range_names[HISTORY_RANGES] = { [HISTORY_MINUTE] = "minute",
	[HISTORY_10M] = "10m",
	[HISTORY_HOUR] = "hour",
	[HISTORY_DAY] = "day" };

static bool
read_range(struct request *r, enum history_range *out)
{
	const char *text = request_query(r, "range");
	unsigned i = 0;

	while (text != NULL && i < HISTORY_RANGES && strcmp(text, range_names[i]) != 0)
		i++;
	*out = (enum history_range)i;
	if (i < HISTORY_RANGES)
		return true;
	reply_bad(r, "range is one of minute, 10m, hour, day");
	return false;
}

static void
write_history(struct json_out *o, const struct history_track *t, enum history_range range)
{
	uint64_t from_ms, step_ms;
	unsigned count;

	history_span(t, range, &from_ms, &step_ms, &count);
	out_begin(o, '{');
	OUT_INT(o, "from_ms", from_ms);
	OUT_INT(o, "step_ms", step_ms);
	if (out_key(o, "samples")) {
		out_begin(o, '{');
		for (unsigned line = 0; line < history_lines(t); line++) {
			if (!out_key_span(o, span_str(history_line_name(t, line))))
				continue;
			out_begin(o, '[');
			for (unsigned i = 0; i < count; i++)
				out_number(o, (double)history_value(t, range, line, i));
			out_end(o, ']');
		}
		out_end(o, '}');
	}
	out_end(o, '}');
}

static void
reply_history(struct request *r, const struct series *s)
{
	enum history_range range;
	struct json_out o;

	if (!read_range(r, &range))
		return;
	json_out_init(&o, NULL);
	write_history(&o, history_ask(r->m->broker, s), range);
	reply_out(r, &o);
	json_out_fini(&o);
}

/* ---- the routes ---- */

void
route_history_node(struct request *r)
{
	reply_history(r, &r->m->broker->node);
}

void
route_history_vhost(struct request *r)
{
	reply_history(r, &r->vhost->series);
}

void
route_history_queue(struct request *r)
{
	const struct queue *q = queue_arg(r, 1);

	if (q == NULL)
		reply_not_found(r);
	else
		reply_history(r, &q->series);
}

void
route_history_connection(struct request *r)
{
	const struct client *c = connection_arg(r, 0);

	if (c != NULL)
		reply_history(r, &c->series);
}
