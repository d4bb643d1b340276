/* SPDX-License-Identifier: Apache-2.0
 * A hash of alternates' names per vhost. */
#include "broker/alternate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/client.h"
#include "broker/exchange.h"
#include "broker/map.h"
#include "broker/permission.h"
#include "broker/table.h"
#include "broker/vhost.h"

struct alternate {
	LIST_HEAD(, exchange) users; /* never empty */
	UT_hash_handle hh;
	size_t len;
	uint8_t name[];
};

static struct alternate *
find(const struct vhost *vh, struct span name)
{
	struct alternate *a;

	HASH_FIND(hh, vh->alternates, name.n > 0 ? (const void *)name.p : "", name.n, a);
	return a;
}

void
alternate_add(struct exchange *x)
{
	struct vhost *vh = x->vhost;
	struct alternate *a = find(vh, x->alternate);

	if (a == NULL) {
		a = xcalloc(1, sizeof *a + x->alternate.n);
		a->len = x->alternate.n;
		mem_add(MEM_TOPOLOGY, sizeof *a + a->len);
		if (a->len > 0)
			memcpy(a->name, x->alternate.p, a->len);
		LIST_INIT(&a->users);
		HASH_ADD_KEYPTR(hh, vh->alternates, a->name, a->len, a);
	}
	LIST_INSERT_HEAD(&a->users, x, alternate_link);
}

void
alternate_remove(struct exchange *x)
{
	struct vhost *vh = x->vhost;
	struct alternate *a = find(vh, x->alternate);

	assert(a != NULL);
	LIST_REMOVE(x, alternate_link);
	if (LIST_EMPTY(&a->users)) {
		HASH_DEL(vh->alternates, a);
		mem_sub(MEM_TOPOLOGY, sizeof *a + a->len);
		free(a);
	}
}

struct exchange *
alternate_first(const struct vhost *vh, struct span name)
{
	struct alternate *a = vh->alternates != NULL ? find(vh, name) : NULL;

	return a != NULL ? LIST_FIRST(&a->users) : NULL;
}

const struct error *
alternate_check_rights(const struct client *c, struct span name, const struct table *arguments)
{
	const struct error *e;
	struct field f;

	if (!table_find(table_span(arguments), "alternate-exchange", &f) || f.kind != 'S' ||
	    exchange_find(c->vhost, name) != NULL)
		return NULL;
	e = permission_check(c, PERM_READ, "exchange", name);
	return e != NULL ? e : permission_check(c, PERM_WRITE, "exchange", f.bytes);
}
