/* SPDX-License-Identifier: Apache-2.0
 * Import of what messages pass through: policies, queues, exchanges, bindings. */
#include <string.h>

#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "mgmt/definitions.h"
#include "mgmt/json_table.h"
#include "mgmt/policies.h"
#include "mgmt/settings_note.h"
#include "mgmt/request.h"

/* true, "true"; 1: yes, 0: no, -1: missing, -2: something else. */
static int
flag(const json_t *item, const char *key)
{
	const json_t *v = json_object_get(item, key);
	struct span s = json_span(v);

	if (v == NULL)
		return -1;
	if (json_is_boolean(v))
		return json_is_true(v);
	if (span_is(s, "true"))
		return 1;
	return span_is(s, "false") ? 0 : -2;
}

/* *out; false: it is missing though it must not be, or is no boolean. */
static bool
take_flag(struct import *im, const json_t *item, const char *key, bool must, bool *out)
{
	int f = flag(item, key);

	*out = f == 1;
	if (f == -2)
		(void)import_because(im, "%s is neither true nor false", key);
	else if (f == -1 && must)
		(void)import_because(im, "{key_missing,%s}: it has to have '%s'", key, key);
	return f >= 0 || (f == -1 && !must);
}

/* *out: the caller's. False: im->why says it. */
static bool
take_arguments(struct import *im, const json_t *item, struct table **out)
{
	const json_t *v = json_object_get(item, "arguments");
	const char *wrong;

	*out = NULL;
	if (v == NULL || (json_is_array(v) && json_array_size(v) == 0))
		return true;
	wrong = json_to_table(v, out);
	if (wrong != NULL)
		(void)import_because(im, "arguments: %s", wrong);
	return wrong == NULL;
}

static const char *
refused(struct import *im, const struct error *e)
{
	return e == NULL ? NULL : import_because(im, "%s", refusal_text(e));
}

static struct span
take_name(struct import *im, const json_t *item, const char *key)
{
	struct span name = import_text(im, item, key);

	if (name.n > 255) {
		(void)import_because(im, "%s is longer than 255 bytes", key);
		name = span_of(NULL, 0);
	}
	return name;
}

const char *
import_policy(struct import *im, const json_t *item)
{
	struct vhost *vh = import_vhost_of(im, item);
	struct span name;
	const char *wrong;
	bool is_new;

	if (vh == NULL || (name = take_name(im, item, "name")).p == NULL)
		return im->why;
	wrong = policy_set_json(vh, POLICY_USER, name, item, &is_new, im->why, sizeof im->why);
	if (wrong == NULL)
		note_policy(NULL, policy_find(vh, POLICY_USER, name), false);
	return wrong;
}

/* ---- queues ---- */

/* Is a queue classic there that says no type? */
static bool
makes_classic(const struct vhost *vh)
{
	return vh->default_queue_type == NULL || strcmp(vh->default_queue_type, "classic") == 0;
}

/* Files of RabbitMQ 4 give the type beside the arguments. */
static bool
add_type(struct import *im, const struct vhost *vh, const json_t *item, struct table **arguments)
{
	struct span type = json_span(json_object_get(item, "type"));
	struct table_writer w;
	struct field f;
	bool added = true;

	if (type.p == NULL || (span_is(type, "classic") && makes_classic(vh)) ||
	    table_find(table_span(*arguments), "x-queue-type", &f))
		return true;
	table_writer_init(&w, JSON_TABLE_MAX);
	table_put_raw(&w, table_span(*arguments));
	table_put_field(
	    &w, &(struct field){ .name = SPAN_LIT("x-queue-type"), .kind = 'S', .bytes = type });
	table_free(arguments);
	if (w.failed || table_try_copy(span_of(w.p, w.n), arguments) != 0) {
		(void)import_because(im, "no memory for its arguments");
		added = false;
	}
	table_writer_fini(&w);
	return added;
}

const char *
import_queue(struct import *im, const json_t *item)
{
	struct vhost *vh = import_vhost_of(im, item);
	struct queue_spec spec = { .exclusive = false };
	struct table *arguments = NULL;
	const char *why = NULL;
	struct queue *q;

	if (vh == NULL || (spec.name = take_name(im, item, "name")).p == NULL ||
	    !take_flag(im, item, "durable", true, &spec.durable) ||
	    !take_flag(im, item, "auto_delete", false, &spec.auto_delete))
		return im->why;
	if (spec.name.n == 0)
		return "its name is empty";
	if (queue_find(vh, spec.name) != NULL)
		return NULL;
	if (take_arguments(im, item, &arguments) && add_type(im, vh, item, &arguments)) {
		spec.arguments = arguments;
		why = refused(im, queue_declare(vh, &spec, NULL, &q));
	} else {
		why = im->why;
	}
	table_free(&arguments);
	return why;
}

const char *
import_exchange(struct import *im, const json_t *item)
{
	struct vhost *vh = import_vhost_of(im, item);
	struct exchange_spec spec = { .durable = false };
	struct table *arguments;
	struct exchange *x;
	const char *why;

	if (vh == NULL || (spec.name = take_name(im, item, "name")).p == NULL ||
	    (spec.type = take_name(im, item, "type")).p == NULL ||
	    !take_flag(im, item, "durable", true, &spec.durable) ||
	    !take_flag(im, item, "auto_delete", false, &spec.auto_delete) ||
	    !take_flag(im, item, "internal", false, &spec.internal))
		return im->why;
	if (exchange_find(vh, spec.name) != NULL)
		return NULL;
	if (!take_arguments(im, item, &arguments))
		return im->why;
	spec.arguments = arguments;
	why = refused(im, exchange_declare(vh, &spec, &x));
	table_free(&arguments);
	return why;
}

/* ---- bindings ---- */

struct ends {
	struct exchange *source, *exchange;
	struct queue *queue;
	struct span key;
};

static bool
find_ends(struct import *im, struct vhost *vh, const json_t *item, struct ends *e)
{
	struct span source = take_name(im, item, "source"), to, type;
	const struct error *wrong;

	*e = (struct ends){ .source = NULL };
	if (source.p == NULL || (to = take_name(im, item, "destination")).p == NULL ||
	    (type = import_text(im, item, "destination_type")).p == NULL ||
	    (e->key = take_name(im, item, "routing_key")).p == NULL)
		return false;
	wrong = exchange_lookup(vh, source, &e->source);
	if (wrong == NULL && span_is(type, "queue"))
		wrong = queue_lookup(vh, to, NULL, &e->queue);
	else if (wrong == NULL && span_is(type, "exchange"))
		wrong = exchange_lookup(vh, to, &e->exchange);
	else if (wrong == NULL)
		(void)import_because(im, "destination_type is neither queue nor exchange");
	(void)refused(im, wrong);
	return wrong == NULL && (e->queue != NULL || e->exchange != NULL);
}

const char *
import_binding(struct import *im, const json_t *item)
{
	struct vhost *vh = import_vhost_of(im, item);
	struct table *arguments;
	struct ends e;
	const char *why;

	if (vh == NULL || !find_ends(im, vh, item, &e) || !take_arguments(im, item, &arguments))
		return im->why;
	why = refused(im, binding_add(e.source, e.queue, e.exchange, e.key, arguments));
	table_free(&arguments);
	return why;
}
