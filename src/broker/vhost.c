/* SPDX-License-Identifier: Apache-2.0
 * Vhosts by name, made with the exchanges that every one has. */
#include "broker/vhost.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/dead_letter.h"
#include "broker/exchange.h"
#include "broker/persist.h"
#include "broker/queue.h"

enum { NAME_MAX_BYTES = 255 };

static const struct {
	const char *name;
	enum exchange_type type;
	bool internal;
} predeclared[] = {
	{ "", EXCHANGE_DIRECT, false },
	{ "amq.direct", EXCHANGE_DIRECT, false },
	{ "amq.fanout", EXCHANGE_FANOUT, false },
	{ "amq.topic", EXCHANGE_TOPIC, false },
	{ "amq.headers", EXCHANGE_HEADERS, false },
	{ "amq.match", EXCHANGE_HEADERS, false },
	{ "amq.rabbitmq.trace", EXCHANGE_TOPIC, true },
};

static struct vhost *
add(struct broker *b, const char *name, uint64_t id)
{
	struct span s = span_str(name);
	struct vhost *vh;
	size_t i;

	if (s.n == 0 || s.n > NAME_MAX_BYTES || vhost_find(b, s) != NULL)
		return NULL;
	vh = xcalloc(1, sizeof *vh);
	vh->broker = b;
	TAILQ_INIT(&vh->queues);
	vh->name = xstrdup(name);
	vh->id = id != 0 ? id : ++b->next_id;
	for (i = 0; i < COUNT_OF(predeclared); i++)
		exchange_predeclare(
		    vh, predeclared[i].name, predeclared[i].type, predeclared[i].internal);
	vh->default_exchange = exchange_find(vh, SPAN_LIT(""));
	assert(vh->default_exchange != NULL);
	HASH_ADD_KEYPTR(hh, b->vhosts, vh->name, s.n, vh);
	return vh;
}

struct vhost *
vhost_add(struct broker *b, const char *name)
{
	struct vhost *vh = add(b, name, 0);

	if (vh != NULL)
		persist_vhost(vh);
	return vh;
}

struct vhost *
vhost_restore(struct broker *b, const char *name, uint64_t id)
{
	return add(b, name, id);
}

struct vhost *
vhost_find(const struct broker *b, struct span name)
{
	struct vhost *vh;

	HASH_FIND(hh, b->vhosts, name.n > 0 ? (const void *)name.p : "", name.n, vh);
	return vh;
}

static void
vhost_free(struct vhost *vh)
{
	struct queue *q;

	while ((q = TAILQ_FIRST(&vh->queues)) != NULL)
		queue_remove(q);
	dead_letters_forget_vhost(vh);
	exchanges_free(vh);
	assert(vh->alternates == NULL && vh->unbound == NULL);
	free(vh->name);
	free(vh);
}

void
vhosts_free(struct broker *b)
{
	struct vhost *vh;

	while ((vh = b->vhosts) != NULL) {
		HASH_DEL(b->vhosts, vh);
		vhost_free(vh);
	}
}
