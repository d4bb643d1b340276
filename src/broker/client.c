/* SPDX-License-Identifier: Apache-2.0
 * Clients: see the header. */
#include "broker/client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"

static void
name_peer(struct client *c)
{
	if (c->peer_host[0] == '\0')
		return;
	snprintf(c->who_peer, sizeof c->who_peer,
	    strchr(c->peer_host, ':') != NULL ? "[%s]:%u" : "%s:%u", c->peer_host, c->peer_port);
	c->who.peer = c->who_peer;
}

void
client_init(struct client *c, struct broker *b)
{
	c->broker = b;
	c->id = ++b->next_id;
	c->connected_at_ms = b->now_ms;
	c->state = "starting";
	LIST_INIT(&c->sessions);
	LIST_INIT(&c->exclusive);
	TAILQ_INSERT_TAIL(&b->clients, c, link);
	b->stats.connections++;
	b->stats.connections_opened++;
	c->who.connection = c->id;
	series_init(&b->series, &c->series, SERIES_CONNECTION, b->now_ms);
	name_peer(c);
}

void
client_set_user(struct client *c, struct user *u)
{
	user_unref(&c->user);
	c->user = u != NULL ? user_ref(u) : NULL;
	c->who.user = u != NULL ? u->name : NULL;
}

/* Adds itself to what limits count, or takes itself out. */
static void
count(struct client *c, uint32_t n)
{
	if (c->vhost == NULL)
		return;
	c->vhost->connections += n;
	if (c->user != NULL)
		c->user->connections += n;
}

void
client_set_vhost(struct client *c, struct vhost *vh)
{
	count(c, (uint32_t)-1);
	if (c->vhost != NULL)
		LIST_REMOVE(c, vhost_link);
	c->vhost = vh;
	if (vh != NULL)
		LIST_INSERT_HEAD(&vh->clients, c, vhost_link);
	count(c, 1);
	c->who.vhost = vh != NULL ? vh->name : NULL;
}

void
client_force_close(struct client *c, const char *reason)
{
	if (c->close_reason != NULL)
		return;
	c->close_reason = xstrdup(reason);
	TAILQ_INSERT_TAIL(&c->broker->forced, c, forced_link);
	c->is_forced = true;
}

struct client *
client_take_forced(struct broker *b)
{
	struct client *c = TAILQ_FIRST(&b->forced);

	if (c != NULL) {
		TAILQ_REMOVE(&b->forced, c, forced_link);
		c->is_forced = false;
	}
	return c;
}

void
client_drop_exclusive(struct client *c)
{
	while (!client_leave(c))
		c->broker->ended = 0;
}

bool
client_leave(struct client *c)
{
	struct queue *q;

	c->is_leaving = true;
	while ((q = LIST_FIRST(&c->exclusive)) != NULL) {
		if (c->broker->ended >= BROKER_END_MAX)
			return false;
		c->broker->ended += BROKER_END_QUEUE;
		queue_remove(q);
	}
	return true;
}

void
client_fini(struct client *c)
{
	assert(LIST_EMPTY(&c->sessions));
	client_drop_exclusive(c);
	client_end_traffic(c);
	series_fini(&c->broker->series, &c->series);
	TAILQ_REMOVE(&c->broker->clients, c, link);
	if (c->is_forced)
		TAILQ_REMOVE(&c->broker->forced, c, forced_link);
	free(c->close_reason);
	c->close_reason = NULL;
	client_set_vhost(c, NULL);
	client_set_user(c, NULL);
	c->broker->stats.connections--;
	c->broker->stats.connections_closed++;
	free(c->name);
	free(c->product);
	free(c->version);
	free(c->platform);
	free(c->mechanism);
	if (c->tls != NULL) {
		free(c->tls->subject);
		free(c->tls->issuer);
		free(c->tls->validity);
	}
	free(c->tls);
	c->tls = NULL;
	mem_sub(MEM_TOPOLOGY, table_size(c->properties));
	table_free(&c->properties);
	c->name = c->product = c->version = c->platform = c->mechanism = NULL;
}

void
client_traffic(struct client *c, struct traffic_stats *out, uint64_t *send_pend)
{
	uint64_t pending = 0;

	*out = c->counted;
	if (c->ops != NULL)
		c->ops->traffic(c, out, &pending);
	if (send_pend != NULL)
		*send_pend = pending;
	if (c->vhost == NULL)
		return;
#define X(name, kind, help) c->vhost->traffic.name += out->name - c->counted.name;
	TRAFFIC_STATS(X)
#undef X
	c->counted = *out;
}

void
client_end_traffic(struct client *c)
{
	struct traffic_stats last;

	client_traffic(c, &last, NULL);
	c->ops = NULL;
}

const char *
client_name(const struct client *c, char buf[CLIENT_NAME])
{
	snprintf(buf, CLIENT_NAME, "%s:%u -> %s:%u", c->peer_host, c->peer_port, c->host, c->port);
	return buf;
}

struct client *
client_find(const struct broker *b, struct span name)
{
	char text[CLIENT_NAME];
	struct client *c;
	size_t i = 0;
	unsigned port = 0;

	/* the peer's port stands before the arrow: most clients have another */
	while (i < name.n && name.p[i] != ' ')
		i++;
	for (unsigned digit = 1;
	     i > 0 && name.p[i - 1] >= '0' && name.p[i - 1] <= '9' && digit < 100000; digit *= 10)
		port += (unsigned)(name.p[--i] - '0') * digit;
	TAILQ_FOREACH (c, &b->clients, link) {
		if (c->peer_port == port && span_is(name, client_name(c, text)))
			break;
	}
	return c;
}

struct client *
client_find_id(const struct broker *b, uint64_t id)
{
	struct client *c;

	TAILQ_FOREACH (c, &b->clients, link) {
		if (c->id == id)
			break;
	}
	return c;
}

void
client_output_room(struct client *c)
{
	struct session *s;
	struct consumer *k;

	c->output_full = false;
	LIST_FOREACH (s, &c->sessions, link) {
		TAILQ_FOREACH (k, &s->consumers, session_link) {
			if (!k->is_cancelled)
				consumer_wake(k);
		}
	}
}
