/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_verify.h"

#include <stdlib.h>

#include "base/mem.h"

/* Below low all came or is lost; from low on and below high the bitmap tells. */
struct stream {
	uint64_t low, high, lost;
	uint64_t *bits; /* owned; NULL until something came early */
};

struct queue {
	struct stream *stream; /* owned; one for each publisher */
	uint32_t n;
};

struct bench_verify {
	uint32_t queues;
	struct queue queue[];
};

struct bench_verify *
bench_verify_new(uint32_t queues)
{
	struct bench_verify *v = xcalloc(1, sizeof *v + queues * sizeof v->queue[0]);

	v->queues = queues;
	return v;
}

void
bench_verify_free(struct bench_verify **vp)
{
	struct bench_verify *v = *vp;

	*vp = NULL;
	if (v == NULL)
		return;
	for (uint32_t q = 0; q < v->queues; q++) {
		for (uint32_t i = 0; i < v->queue[q].n; i++)
			free(v->queue[q].stream[i].bits);
		free(v->queue[q].stream);
	}
	free(v);
}

static struct stream *
stream_of(struct queue *q, uint32_t publisher)
{
	if (publisher >= q->n) {
		uint32_t n = q->n > 0 ? q->n : 4;

		while (n <= publisher)
			n *= 2;
		q->stream = xrealloc(q->stream, n * sizeof *q->stream);
		for (uint32_t i = q->n; i < n; i++)
			q->stream[i] = (struct stream){ 0 };
		q->n = n;
	}
	return &q->stream[publisher];
}

static bool
has(const struct stream *s, uint64_t seq)
{
	uint64_t i = seq % BENCH_VERIFY_WINDOW;

	return (s->bits[i / 64] >> (i % 64) & 1) != 0;
}

static void
flip(struct stream *s, uint64_t seq)
{
	uint64_t i = seq % BENCH_VERIFY_WINDOW;

	s->bits[i / 64] ^= UINT64_C(1) << (i % 64);
}

/* Moves on until seq lies in the window. */
static void
make_room(struct stream *s, uint64_t seq)
{
	while (seq - s->low >= BENCH_VERIFY_WINDOW) {
		if (s->low >= s->high) { /* no bit is set any more */
			s->lost += seq - s->low;
			s->low = s->high = seq;
			return;
		}
		if (has(s, s->low))
			flip(s, s->low);
		else
			s->lost++;
		s->low++;
	}
}

bool
bench_verify_arrived(struct bench_verify *v, uint32_t queue, uint32_t publisher, uint64_t seq)
{
	struct stream *s = stream_of(&v->queue[queue], publisher);

	if (seq == s->low && s->high == s->low) {
		s->low = ++s->high;
		return true;
	}
	if (seq < s->low)
		return false;
	if (s->bits == NULL)
		s->bits = xcalloc(BENCH_VERIFY_WINDOW / 64, sizeof *s->bits);
	make_room(s, seq);
	if (seq < s->high && has(s, seq))
		return false;
	flip(s, seq);
	if (seq >= s->high)
		s->high = seq + 1;
	while (s->low < s->high && has(s, s->low))
		flip(s, s->low++);
	return true;
}

uint64_t
bench_verify_missing(
    const struct bench_verify *v, uint32_t queue, uint32_t publisher, uint64_t published)
{
	const struct queue *q = &v->queue[queue];
	const struct stream *s;
	uint64_t n;

	if (publisher >= q->n)
		return published;
	s = &q->stream[publisher];
	n = s->lost;
	for (uint64_t i = s->low; i < s->high; i++)
		n += !has(s, i);
	return n + (published > s->high ? published - s->high : 0);
}
