/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "cli/human.h"
#include "cli/text_safe.h"
#include "cli/text_table.h"
#include "cli/top.h"

const struct top_order top_orders[] = {
	{ 'b', "backlog", "messages", false },
	{ 'i', "in", "message_stats.publish_details.rate", false },
	{ 'o', "out", "message_stats.deliver_get_details.rate", false },
	{ 'u', "unacked", "messages_unacknowledged", false },
	{ 'c', "consumers", "consumers", false },
	{ 'n', "name", "name", true },
	{ .name = NULL },
};

/* "a.b.c" of it; NULL: it is not there. */
static const json_t *
at(const json_t *o, const char *path)
{
	char name[64];

	while (o != NULL && *path != '\0') {
		size_t n = strcspn(path, ".");

		if (n >= sizeof name)
			return NULL;
		memcpy(name, path, n);
		name[n] = '\0';
		o = json_object_get(o, name);
		path += n + (path[n] == '.');
	}
	return o;
}

static long long
number(const json_t *o, const char *path)
{
	return (long long)json_integer_value(at(o, path));
}

static double
rate(const json_t *o, const char *path)
{
	return json_number_value(at(o, path));
}

/* ---- the node ---- */

static void
print_safe(FILE *out, const json_t *text)
{
	char *safe = text_safe_line(json_is_string(text) ? json_string_value(text) : "?");

	fputs(safe, out);
	free(safe);
}

static void
print_health(FILE *out, const json_t *o)
{
	print_safe(out, at(o, "node"));
	fputs(", up ", out);
	human_duration(out, number(o, "hermes.uptime_ms"));
	if (json_is_true(at(o, "hermes.healthy"))) {
		fputs(", healthy", out);
	} else {
		fputs(", not healthy: ", out);
		print_safe(out, at(o, "hermes.problem"));
	}
	if (json_is_true(at(o, "hermes.maintenance.draining"))) {
		fputs(", drained: ", out);
		print_safe(out, at(o, "hermes.maintenance.reason"));
	}
	fputc('\n', out);
}

static void
print_node(FILE *out, const json_t *o)
{
	long long limit = number(o, "hermes.memory.limit");

	print_health(out, o);
	fprintf(out, "messages: %lld ready, %lld unacked; in %.1f/s, out %.1f/s, acked %.1f/s\n",
	    number(o, "queue_totals.messages_ready"),
	    number(o, "queue_totals.messages_unacknowledged"),
	    rate(o, "message_stats.publish_details.rate"),
	    rate(o, "message_stats.deliver_get_details.rate"),
	    rate(o, "message_stats.ack_details.rate"));
	fprintf(out, "connections: %lld, channels: %lld, consumers: %lld, queues: %lld; memory: ",
	    number(o, "object_totals.connections"), number(o, "object_totals.channels"),
	    number(o, "object_totals.consumers"), number(o, "object_totals.queues"));
	human_bytes(out, number(o, "hermes.memory.held"));
	if (limit > 0) {
		fputs(" of ", out);
		human_bytes(out, limit);
	}
	fputs("\n\n", out);
}

/* ---- queues ---- */

static void
add_number(struct text_table *t, const json_t *row, const char *path, bool is_rate)
{
	char text[48];
	int n = is_rate ? snprintf(text, sizeof text, "%.1f", rate(row, path))
	                : snprintf(text, sizeof text, "%lld", number(row, path));

	text_table_add(t, text, (size_t)n, true);
}

static void
add_text(struct text_table *t, const json_t *row, const char *path)
{
	const json_t *text = at(row, path);

	text_table_add(t, json_is_string(text) ? json_string_value(text) : "",
	    json_string_length(text), false);
}

/* Names stand at the end: a long one moves nothing. */
static const struct {
	const char *head, *path;
	enum { NUMBER, RATE, TEXT } kind;
} columns[] = {
	{ "ready", "messages_ready", NUMBER },
	{ "unacked", "messages_unacknowledged", NUMBER },
	{ "in/s", "message_stats.publish_details.rate", RATE },
	{ "out/s", "message_stats.deliver_get_details.rate", RATE },
	{ "acked/s", "message_stats.ack_details.rate", RATE },
	{ "consumers", "consumers", NUMBER },
	{ "state", "state", TEXT },
	{ "vhost", "vhost", TEXT },
	{ "queue", "name", TEXT },
};

void
top_print(FILE *out, json_t *overview, json_t *queues, bool aligned)
{
	struct text_table *t = text_table_new(COUNT_OF(columns));
	const json_t *row;
	size_t i;

	print_node(out, overview);
	for (size_t k = 0; k < COUNT_OF(columns); k++)
		text_table_add(
		    t, columns[k].head, strlen(columns[k].head), columns[k].kind != TEXT);
	json_array_foreach(queues, i, row) for (size_t k = 0; k < COUNT_OF(columns); k++)
	{
		if (columns[k].kind == TEXT)
			add_text(t, row, columns[k].path);
		else
			add_number(t, row, columns[k].path, columns[k].kind == RATE);
	}
	text_table_print(t, out, aligned);
	text_table_free(&t);
}
