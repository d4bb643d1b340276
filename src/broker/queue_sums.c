/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/queue_sums.h"

#include "broker/props.h"
#include "broker/queue_priv.h"

static void
add_strand(const struct strand *s, struct queue_sums *out)
{
	uint64_t n, bytes;

	if (s->lane == NULL)
		return;
	if (strand_unread(s) > 0) {
		out->unread += strand_unread(s);
		out->unread_bytes += lane_unread_bytes(s->lane);
	}
	if (!s->queue->durable)
		return;
	lane_kept(s->lane, &n, &bytes);
	out->persistent += n;
	out->persistent_bytes += bytes;
}

/* The next one to be delivered; NULL: it is not in memory, or there is none. */
static const struct msg *
next_message(const struct strand *s)
{
	const struct entry_block *b = s->returned;

	if (b != NULL && b->head != b->tail) /* where some are not in order yet: one of them */
		return b->e[s->is_fifo ? b->head : b->tail - 1].m;
	b = s->head;
	return b != NULL && b->head != b->tail ? b->e[b->head].m : NULL;
}

/* Of the queue's own strand: where it has priorities, that is what has the least. */
static void
look_at_head(const struct queue *q, struct queue_sums *out)
{
	const struct msg *m = q->priorities == NULL ? next_message(&q->strand) : NULL;
	struct span at;

	if (m == NULL)
		return;
	out->head_arrived_ms = m->arrived_ms;
	if (props_find(msg_props(m), PROP_TIMESTAMP, &at) && at.n == 8) {
		out->has_head_time = true;
		out->head_time = get_be64(at.p);
	}
}

void
queue_sum(const struct queue *q, struct queue_sums *out)
{
	*out = (struct queue_sums){ 0 };
	for (const struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s))
		add_strand(s, out);
	if (out->unread > q->ready)
		out->unread = q->ready;
	if (out->unread_bytes > q->ready_bytes)
		out->unread_bytes = q->ready_bytes;
	out->ready_ram = q->ready - out->unread;
	out->bytes_ram = q->ready_bytes - out->unread_bytes + q->unacked_bytes;
	out->memory = queue_size(q) + out->bytes_ram + out->ready_ram * sizeof(struct entry) +
	              q->unacked * sizeof(struct unacked);
	look_at_head(q, out);
}

double
queue_capacity(struct queue *q, uint64_t now_ms)
{
	double full;

	if (q->consumer_count == 0)
		return 0;
	queue_count_full(q);
	full = series_rate(&q->series, &q->full_ms, now_ms) / 1000;
	return full <= 0 ? 1 : full >= 1 ? 0 : 1 - full;
}
