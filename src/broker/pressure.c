/* SPDX-License-Identifier: Apache-2.0
 * Which queues go to disk when memory is short.
 *
 * Queues are not kept in the order of their size, which would cost something with every message. While memory is short
 * they are walked round and round, some each turn: a lap without a spill finds the size of the largest, the next one
 * spills those of at least half of it, until none is found that is worth a file. First those whose messages the journal
 * has, for it costs least, then the others. */
#include "broker/pressure.h"

#include <stdlib.h>

#include "base/mem.h"
#include "broker/queue_priv.h"

enum {
	LOOK = 128, /* queues a turn */
	SPILLS =
	    4, /* jobs begun in a turn; of queues that are not durable one, for it lists messages */
	ITEMS = 16384, /* of one job, for a queue that is not durable */
	ITEM_BYTES = 16 << 20,
	WORTH = 256 << 10,     /* bytes of a queue below which it stays in memory */
	WORTH_EACH = 16 << 10, /* of a priority that has not the turn */
	STRANDS_LOOK = 8,      /* priorities that take as long to look at as a queue */
	OVERHEAD = 96,         /* what a message costs beside its body, about */
	PAUSE_MS = 100         /* when nothing was worth it */
};

/* Bytes that spilling would free, about. */
static uint64_t
strand_spillable(struct strand *s)
{
	uint64_t n = s->ready, bytes = s->ready_bytes;

	if (strand_unread(s) > 0) {
		n = s->back;
		bytes = s->back_bytes;
	} else if (s != queue_turn(s->queue)) {
		return n > 1 && bytes + n * OVERHEAD >= WORTH_EACH ? bytes + n * OVERHEAD : 0;
	} else if (bytes <= KEEP_BYTES_SHORT && n <= KEEP_ENTRIES) {
		/* What would stay in memory anyway. */
		return 0;
	}
	return bytes + n * OVERHEAD;
}

/* Of all of the queue's strands; *most: the one with most of it. */
static uint64_t
spillable(struct queue *q, bool transient, struct strand **most)
{
	uint64_t sum = 0, most_bytes = 0, bytes;

	if (q->durable == transient)
		return 0;
	for (struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s)) {
		bytes = strand_spillable(s);
		sum += bytes;
		if (bytes > most_bytes) {
			*most = s;
			most_bytes = bytes;
		}
	}
	return sum;
}

static void
spill_transient(struct strand *s)
{
	struct lane_item *item = xmalloc(ITEMS * sizeof *item);
	uint32_t n = strand_list_spillable(s, item, ITEMS, ITEM_BYTES);

	if (n > 0 && s->lane == NULL) {
		s->queue->has_lanes = true;
		s->lane = lane_open(s->queue->broker->store, s->queue->id, s->priority, false, s);
	}
	if (n > 0 && lane_spill_items(s->lane, item, n) && s->behind == 0)
		s->keep_through = item[0].seq - 1;
	free(item);
}

/* Is a job of it under way? Its memory comes back soon. */
static bool
is_busy(const struct strand *s)
{
	if (s->lane == NULL)
		return false;
	return s->queue->durable ? !lane_spill(s->lane, UINT64_MAX)
	                         : !lane_spill_items(s->lane, NULL, 0);
}

static void
spill(struct strand *s)
{
	if (s->queue->durable)
		(void)lane_spill(s->lane, 0);
	else
		spill_transient(s);
}

static void
reset(struct spill_walk *w)
{
	w->next = NULL;
	w->least = UINT64_MAX;
	w->best = 0;
	w->transient = w->did = false;
}

static void
end_lap(struct spill_walk *w, uint64_t now_ms)
{
	if (!w->did) {
		if (w->best >= WORTH) {
			w->least = w->best / 2;
		} else if (!w->transient) {
			w->transient = true;
			w->least = UINT64_MAX;
		} else {
			reset(w);
			w->pause_ms = now_ms + PAUSE_MS;
		}
	}
	w->best = 0;
	w->did = false;
}

void
pressure_run(struct broker *b)
{
	struct spill_walk *w = &b->spill;
	unsigned spills = 0;

	if (likely(!memory_spills(&b->memory))) {
		reset(w);
		return;
	}
	if (b->now_ms < w->pause_ms)
		return;
	for (unsigned i = 0; i < LOOK && spills < SPILLS; i++) {
		struct queue *q = w->next != NULL ? w->next : TAILQ_FIRST(&b->queues);
		struct strand *most = NULL;
		uint64_t size;

		if (q == NULL)
			return;
		w->next = TAILQ_NEXT(q, all_link);
		size = spillable(q, w->transient, &most);
		if (q->priorities != NULL)
			i += q->priorities->made / STRANDS_LOOK;
		if (size > 0 && size >= w->least) {
			if (!is_busy(most)) {
				spill(most);
				spills += q->durable ? 1 : SPILLS;
			}
			w->did = true;
		} else if (size > w->best) {
			w->best = size;
		}
		if (w->next == NULL) {
			end_lap(w, b->now_ms);
			if (b->now_ms < w->pause_ms)
				return;
		}
	}
}
