/* SPDX-License-Identifier: Apache-2.0
 * The endpoint as a whole: its connections, the work of a turn, the stop. */
#include "amqp/amqp.h"

#include <assert.h>
#include <stdlib.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/confirm_wait.h"
#include "amqp/connection.h"
#include "amqp/park.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/error.h"

enum {
	FORCED_MAX = 64 /* connections closed in a turn */
};

struct amqp *
amqp_new(struct loop *l, struct broker *b, const struct config *cfg, const char *version)
{
	struct amqp *a = xcalloc(1, sizeof *a);

	a->loop = l;
	a->broker = b;
	a->cfg = cfg;
	a->version = version;
	LIST_INIT(&a->connections);
	LIST_INIT(&a->dead);
	LIST_INIT(&a->leaving);
	TAILQ_INIT(&a->ending);
	TAILQ_INIT(&a->confirming);
	TAILQ_INIT(&a->confirm_runs[false]);
	TAILQ_INIT(&a->confirm_runs[true]);
	TAILQ_INIT(&a->spare_runs);
	for (unsigned i = 0; i < PARK_REASONS; i++)
		TAILQ_INIT(&a->parked[i]);
	codec_init();
	return a;
}

void
amqp_arrive(struct amqp *a, const struct arrival *from, struct listener *ls)
{
	struct connection *c = connection_new(a, from, ls);

	if (log_enabled(LOG_DEBUG))
		connection_log(c, LOG_DEBUG, "connection accepted");
	if (a->stopping)
		connection_finish(c, false, "the node stops");
}

/* Each takes itself off the list; what has to wait for room in the output comes back with on_room. */
static void
send_confirms(struct amqp *a)
{
	struct channel *ch;

	while ((ch = TAILQ_FIRST(&a->confirming)) != NULL)
		channel_send_confirms(ch);
}

/* Those that operators close, or that lost their user or vhost. True: there are more. */
static bool
close_forced(struct amqp *a)
{
	struct connection *c;
	struct client *client;

	for (unsigned n = 0; n < FORCED_MAX; n++) {
		client = client_take_forced(a->broker);
		if (client == NULL)
			return false;
		c = container_of(client, struct connection, client);
		if (c->state >= CONN_CLOSING)
			continue;
		connection_log_some(c, LOG_WARNING, CONN_REFUSALS,
		    "connection closed by the node: %s", client->close_reason);
		if (c->state < CONN_OPENING)
			connection_finish(c, false, NULL);
		else
			connection_say_close(
			    c, error_make(E_CONNECTION_FORCED, "%s", client->close_reason));
	}
	return true;
}

/* What the ends of channels and connections have left to do, as far as a turn allows. True: there is more. */
static bool
end_some(struct amqp *a)
{
	struct connection *c;
	struct channel *ch;

	while ((ch = TAILQ_FIRST(&a->ending)) != NULL) {
		if (!session_end(&ch->session))
			return true;
		channel_ended(ch);
	}
	while ((c = LIST_FIRST(&a->leaving)) != NULL) {
		if (!client_leave(&c->client))
			return true;
		LIST_REMOVE(c, leaving_link);
		c->is_leaving = false;
	}
	return false;
}

bool
amqp_run(struct amqp *a)
{
	bool more;

	a->turn++;
	confirm_wait_run(a);
	more = close_forced(a);
	more |= parked_run(a);
	more |= end_some(a);
	send_confirms(a);
	return more;
}

void
amqp_reap(struct amqp *a)
{
	struct channel **chp = &a->dead_channels, *ch;
	struct connection *c, *next;

	while ((ch = *chp) != NULL) {
		if (ch->is_ending) {
			chp = &ch->dead_next;
			continue;
		}
		*chp = ch->dead_next;
		channel_free(&ch);
	}
	for (c = LIST_FIRST(&a->dead); c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		if (c->ending == 0 && !c->is_leaving)
			connection_free(&c);
	}
}

void
amqp_stop(struct amqp *a, const char *reason)
{
	const struct error *e;
	struct connection *c, *next;

	a->stopping = true;
	for (c = LIST_FIRST(&a->connections); c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		if (c->state == CONN_CLOSING)
			continue;
		if (c->state < CONN_OPENING) {
			connection_finish(c, false, "the node stops");
			continue;
		}
		connection_log(c, LOG_INFO, "connection closed by the node: %s", reason);
		e = error_make(E_CONNECTION_FORCED,
		    "broker forced connection closure with reason '%s'", reason);
		connection_say_close(c, e);
	}
}

bool
amqp_idle(const struct amqp *a)
{
	return LIST_EMPTY(&a->connections);
}

void
amqp_free(struct amqp **ap)
{
	struct amqp *a = *ap;
	struct connection *c;

	if (a == NULL)
		return;
	*ap = NULL;
	while ((c = LIST_FIRST(&a->connections)) != NULL)
		connection_finish(c, false, "the node stops");
	while (end_some(a))
		a->broker->ended = 0;
	amqp_reap(a);
	assert(LIST_EMPTY(&a->dead) && a->dead_channels == NULL);
	assert(TAILQ_EMPTY(&a->confirming));
	for (unsigned i = 0; i < PARK_REASONS; i++)
		assert(TAILQ_EMPTY(&a->parked[i]));
	confirm_wait_fini(a);
	codec_fini();
	free(a);
}
