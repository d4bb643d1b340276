/* SPDX-License-Identifier: Apache-2.0
 * Runtime parameters by component and name. */
#include "broker/parameter.h"

#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "broker/broker.h"
#include "broker/event.h"
#include "broker/name.h"
#include "broker/persist_access.h"
#include "broker/vhost.h"

enum { KEY_MAX = NAME_BYTES_MAX * 2 + 1 };

/* Component, NUL, name. Neither holds a NUL. */
static size_t
make_key(struct span component, struct span name, char key[KEY_MAX + 1])
{
	memcpy(key, SPAN_CHARS(component), component.n);
	key[component.n] = '\0';
	memcpy(key + component.n + 1, SPAN_CHARS(name), name.n);
	key[component.n + 1 + name.n] = '\0';
	return component.n + 1 + name.n;
}

static struct parameter **
table(struct broker *b, struct vhost *vh)
{
	return vh != NULL ? &vh->parameters : &b->parameters;
}

struct parameter *
parameter_find(
    const struct broker *b, const struct vhost *vh, struct span component, struct span name)
{
	struct parameter *all = vh != NULL ? vh->parameters : b->parameters, *p = NULL;
	char key[KEY_MAX + 1];

	if (component.n > NAME_BYTES_MAX || name.n > NAME_BYTES_MAX)
		return NULL;
	HASH_FIND(hh, all, key, make_key(component, name, key), p);
	return p;
}

static size_t
size_of(const struct parameter *p)
{
	return sizeof *p + 2 * (strlen(p->component) + strlen(p->name) + 2) +
	       (p->value != NULL ? strlen(p->value) + 1 : 0);
}

static void
free_parameter(struct parameter **all, struct parameter *p)
{
	walk_pass(&p->broker->walks, &p->hh, WALK_LINK((struct parameter *)p->hh.next, hh));
	HASH_DEL(*all, p);
	mem_sub(MEM_TOPOLOGY, size_of(p));
	free(p->component);
	free(p->name);
	free(p->value);
	free(p->key);
	free(p);
}

static const struct error *
check(struct span component, struct span name, struct span value)
{
	const struct error *e = name_check("a component's name", component);

	if (e == NULL)
		e = name_check("a parameter's name", name);
	if (e == NULL && name.n == 0)
		e = error_make(E_PRECONDITION_FAILED, "a parameter's name must not be empty");
	if (e == NULL && value.n > PARAMETER_VALUE_MAX)
		e = error_make(E_PRECONDITION_FAILED,
		    "the value of a parameter is longer than %d bytes", PARAMETER_VALUE_MAX);
	if (e == NULL && (!utf8_valid(value.p, value.n) || memchr(value.p, '\0', value.n) != NULL))
		e = error_make(
		    E_PRECONDITION_FAILED, "the value of a parameter is not UTF-8 without NUL");
	return e;
}

struct parameter *
parameter_restore(struct broker *b, struct vhost *vh, struct span component, struct span name,
    struct span value, uint64_t id)
{
	struct parameter **all = table(b, vh), *p = parameter_find(b, vh, component, name);
	char key[KEY_MAX + 1];
	size_t n = make_key(component, name, key);

	if (p == NULL) {
		p = xcalloc(1, sizeof *p);
		p->broker = b;
		p->vhost = vh;
		p->id = id;
		p->component = xstrndup(SPAN_CHARS(component), component.n);
		p->name = xstrndup(SPAN_CHARS(name), name.n);
		p->key = xmalloc(n + 1);
		memcpy(p->key, key, n + 1);
		HASH_ADD_KEYPTR(hh, *all, p->key, n, p);
	} else {
		mem_sub(MEM_TOPOLOGY, size_of(p));
	}
	free(p->value);
	p->value = xstrndup(SPAN_CHARS(value), value.n);
	mem_add(MEM_TOPOLOGY, size_of(p));
	return p;
}

const struct error *
parameter_set(struct broker *b, struct vhost *vh, struct span component, struct span name,
    struct span value, bool *created)
{
	const struct error *e = check(component, name, value);
	struct parameter *p;
	bool is_new = e == NULL && parameter_find(b, vh, component, name) == NULL;

	if (is_new && HASH_COUNT(*table(b, vh)) >= PARAMETERS_MAX) {
		bound_reached(BOUND_parameters);
		e = error_make(E_PRECONDITION_FAILED,
		    "there are %d parameters, more are not allowed", PARAMETERS_MAX);
	}
	if (e == NULL)
		e = memory_check_topology(
		    &b->memory, "set parameter", name, vh != NULL ? vh->name : NULL);
	if (e != NULL)
		return e;
	p = parameter_restore(b, vh, component, name, value, ++b->next_id);
	persist_parameter(p);
	event_parameter(p, true);
	if (created != NULL)
		*created = is_new;
	return NULL;
}

void
parameter_clear(struct parameter *p)
{
	event_parameter(p, false);
	persist_parameter_gone(p);
	free_parameter(table(p->broker, p->vhost), p);
}

bool
parameters_drop_some(struct vhost *vh, unsigned *left)
{
	for (; *left > 0 && vh->parameters != NULL; --*left)
		parameter_clear(vh->parameters);
	return vh->parameters != NULL;
}

void
parameters_free(struct parameter **all)
{
	while (*all != NULL)
		free_parameter(all, *all);
}
