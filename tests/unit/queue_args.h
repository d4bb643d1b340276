/* SPDX-License-Identifier: Apache-2.0
 * On top of queue_world.h: queues with arguments. */
#ifndef TESTS_QUEUE_ARGS_H
#define TESTS_QUEUE_ARGS_H

#include "broker/table.h"
#include "tests/unit/queue_world.h"

/* One argument: I: integer, t: number as truth, S: text. */
struct queue_arg {
	const char *name;
	char kind;
	int64_t number;
	const char *text;
};

static inline struct table *
queue_args(const struct queue_arg *a, size_t n)
{
	struct table_writer tw;
	struct table *t;

	table_writer_init(&tw, 4096);
	for (size_t i = 0; i < n; i++) {
		struct field f = { .name = span_str(a[i].name),
			.kind = (uint8_t)a[i].kind,
			.integer = a[i].number,
			.truth = a[i].number != 0 };

		if (a[i].kind == 'S')
			f.bytes = span_str(a[i].text);

		table_put_field(&tw, &f);
	}
	assert(!tw.failed);
	t = table_from_raw(span_of(tw.p, tw.n));
	table_writer_fini(&tw);
	return t;
}

static inline struct queue *
world_queue_with(
    struct world *w, const char *name, bool auto_delete, const struct queue_arg *a, size_t n)
{
	struct table *arguments = queue_args(a, n);
	struct queue_spec spec = {
		.name = span_str(name), .auto_delete = auto_delete, .arguments = arguments
	};
	struct field type;
	struct queue *q = NULL;
	const struct error *e;

	spec.durable = table_find(table_span(arguments), "x-queue-type", &type);
	e = queue_declare(w->vhost, &spec, NULL, &q);

	assert(e == NULL);
	(void)e;
	table_free(&arguments);
	return q;
}

#endif
