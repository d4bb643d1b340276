/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_message.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	COPY_MAX = 2048, /* a larger body is referenced */
	KEY_ROOM = 256,  /* of the frame of basic.publish */
	HEAD_ROOM = 256, /* of the header's frame and the head of the first body frame */
	CLASS_BASIC = 60,
	MODE_PERSISTENT = 2
};

struct content {
	uint8_t head[HEAD_ROOM]; /* up to where the body's own bytes begin */
	size_t head_n;
	uint64_t size; /* of the body */
	size_t first;  /* bytes of it in its first frame */
	size_t frames;
};

struct bench_messages {
	struct content content[BENCH_SIZES_MAX];
	size_t contents;
	bool in_body; /* the stamp; else in the header frame at: */
	size_t time_at, number_at;
	size_t frame_body; /* bytes of a body in one frame, at most */
	uint8_t *keys;     /* owned: the frames of basic.publish */
	uint32_t *key_at;  /* owned: where each begins, and the end */
	uint8_t *filler;   /* owned: what bodies hold */
	uint64_t filler_n;
};

static void
make_filler(struct bench_messages *m, const struct bench_options *o)
{
	for (size_t i = 0; i < o->sizes; i++)
		if (o->size[i] > m->filler_n)
			m->filler_n = o->size[i];
	m->filler = xmalloc(m->filler_n + 1);
	for (size_t i = 0; i < m->filler_n; i++)
		m->filler[i] = (uint8_t)(i * 7 + (i >> 8) * 31);
}

static void
make_keys(struct bench_messages *m, const struct bench_options *o)
{
	char name[BENCH_NAME_SIZE];
	size_t n = 0;

	m->key_at = xcalloc(o->queues + 1, sizeof *m->key_at);
	m->keys = xmalloc(o->queues * KEY_ROOM);
	for (uint64_t i = 0; i < o->queues; i++) {
		struct wire_out w = { .p = m->keys + n, .room = KEY_ROOM };
		size_t mark = wire_method_begin(&w, BENCH_CHANNEL, AMQP_BASIC_PUBLISH_METHOD);

		bench_queue_name(o, i, name);
		wire_put16(&w, 0);
		wire_put_short(&w, o->exchange_type != NULL ? o->name : "");
		wire_put_short(&w, name);
		wire_put8(&w, 0);
		wire_frame_end(&w, mark);
		if (w.failed)
			abort();
		n += w.n;
		m->key_at[i + 1] = (uint32_t)n;
	}
}

static void
put_headers(struct bench_messages *m, struct wire_out *w)
{
	size_t table = wire_table_begin(w);

	wire_entry_number(w, "t", 0);
	m->time_at = w->n - 8;
	wire_entry_number(w, "s", 0);
	m->number_at = w->n - 8;
	wire_table_end(w, table);
}

static void
make_content(
    struct bench_messages *m, const struct bench_options *o, struct content *t, uint64_t size)
{
	struct wire_out w = { .p = t->head, .room = sizeof t->head };
	size_t mark = wire_frame_begin(&w, AMQP_FRAME_HEADER, BENCH_CHANNEL);

	t->size = size;
	t->first = size < m->frame_body ? (size_t)size : m->frame_body;
	t->frames = (size_t)((size + m->frame_body - 1) / m->frame_body);
	wire_put16(&w, CLASS_BASIC);
	wire_put16(&w, 0);
	wire_put64(&w, size);
	wire_put16(&w, (uint16_t)((m->in_body ? 0 : WIRE_PROP_HEADERS) |
	                          (o->persistent ? WIRE_PROP_DELIVERY_MODE : 0)));
	if (!m->in_body)
		put_headers(m, &w);
	if (o->persistent)
		wire_put8(&w, MODE_PERSISTENT);
	wire_frame_end(&w, mark);
	if (size > 0) {
		mark = wire_frame_begin(&w, AMQP_FRAME_BODY, BENCH_CHANNEL);
		put_be32(w.p + mark + 3, (uint32_t)t->first);
	}
	if (w.failed)
		abort();
	t->head_n = w.n;
}

/* Each message has to go out as one run of pieces. */
static bool
fits(const struct bench_options *o, struct bench_conn *c)
{
	for (size_t i = 0; i < o->sizes; i++) {
		if (2 * (o->size[i] / (c->frame_max - WIRE_OVERHEAD) + 1) + 2 < BENCH_PIECES)
			continue;
		bench_conn_fail(c->broker, c,
		    "a body of %llu bytes has too many frames of at most %u bytes, as the broker "
		    "wants them",
		    (unsigned long long)o->size[i], c->frame_max);
		return false;
	}
	return true;
}

struct bench_messages *
bench_messages_new(const struct bench_options *o, struct bench_conn *c)
{
	struct bench_messages *m;

	if (!fits(o, c))
		return NULL;
	m = xcalloc(1, sizeof *m);
	m->in_body = true;
	for (size_t i = 0; i < o->sizes; i++)
		m->in_body = m->in_body && o->size[i] >= BENCH_STAMP_SIZE;
	m->frame_body = c->frame_max - WIRE_OVERHEAD;
	m->contents = o->sizes;
	make_filler(m, o);
	make_keys(m, o);
	for (size_t i = 0; i < o->sizes; i++)
		make_content(m, o, &m->content[i], o->size[i]);
	return m;
}

void
bench_messages_free(struct bench_messages **mp)
{
	struct bench_messages *m = *mp;

	*mp = NULL;
	if (m == NULL)
		return;
	free(m->filler);
	free(m->keys);
	free(m->key_at);
	free(m);
}

static void
put_stamp(uint8_t *time, uint8_t *number, const struct bench_stamp *s)
{
	put_be64(time, (uint64_t)s->sent_ns);
	put_be64(number, (uint64_t)s->publisher << 48 | s->seq);
}

/* Everything up to where the known bytes of the body begin; returns the place behind it. */
static uint8_t *
put_head(const struct bench_messages *m, const struct content *t, uint8_t *p, uint64_t queue,
    const struct bench_stamp *s)
{
	size_t n = m->key_at[queue + 1] - m->key_at[queue];

	memcpy(p, m->keys + m->key_at[queue], n);
	p += n;
	memcpy(p, t->head, t->head_n);
	if (!m->in_body) {
		put_stamp(p + m->time_at, p + m->number_at, s);
		return p + t->head_n;
	}
	p += t->head_n;
	put_stamp(p, p + 8, s);
	return p + BENCH_STAMP_SIZE;
}

/* The body by reference, cut into frames; `done` bytes of it are written. */
static void
put_large(
    const struct bench_messages *m, struct bench_conn *c, const struct content *t, size_t done)
{
	size_t left = t->first - done;
	uint64_t at = done;
	uint8_t *p;

	for (;;) {
		bench_conn_refer(c, m->filler + at, left);
		at += left;
		p = c->out + c->out_n;
		*p++ = AMQP_FRAME_END;
		if (at == t->size)
			break;
		left = t->size - at < m->frame_body ? (size_t)(t->size - at) : m->frame_body;
		*p++ = AMQP_FRAME_BODY;
		put_be16(p, BENCH_CHANNEL);
		put_be32(p + 2, (uint32_t)left);
		bench_conn_wrote(c, WIRE_OVERHEAD);
	}
	bench_conn_wrote(c, 1);
}

bool
bench_messages_put(const struct bench_messages *m, struct bench_conn *c, uint64_t queue,
    const struct bench_stamp *s)
{
	const struct content *t = &m->content[m->contents == 1 ? 0 : s->seq % m->contents];
	size_t stamp = m->in_body ? BENCH_STAMP_SIZE : 0;
	size_t need = m->key_at[queue + 1] - m->key_at[queue] + t->head_n + stamp;
	bool small = t->size <= COPY_MAX;
	uint8_t *start, *p;

	need += small ? (size_t)t->size + 1 : WIRE_OVERHEAD * t->frames;
	if (c->piece_n + 2 * t->frames + 2 >= BENCH_PIECES ||
	    (start = bench_conn_room(c, need)) == NULL)
		return false;
	p = put_head(m, t, start, queue, s);
	if (!small) {
		bench_conn_wrote(c, (size_t)(p - start));
		put_large(m, c, t, stamp);
		return true;
	}
	if (t->size > 0) {
		memcpy(p, m->filler + stamp, (size_t)t->size - stamp);
		p += t->size - stamp;
		*p++ = AMQP_FRAME_END;
	}
	bench_conn_wrote(c, (size_t)(p - start));
	return true;
}

bool
bench_messages_stamp_in_body(const struct bench_messages *m)
{
	return m->in_body;
}

static void
set_number(struct bench_stamp *s, uint64_t number)
{
	s->publisher = (uint32_t)(number >> 48);
	s->seq = number & ((UINT64_C(1) << 48) - 1);
}

void
bench_stamp_of_body(struct bench_stamp *s, const uint8_t *p)
{
	s->sent_ns = (int64_t)get_be64(p);
	set_number(s, get_be64(p + 8));
}

bool
bench_stamp_of_properties(struct bench_stamp *s, const uint8_t *p, size_t n)
{
	struct wire_in r = { .p = p, .n = n };
	uint16_t flags = wire_get16(&r);
	struct span table;
	int64_t number;

	if ((flags & WIRE_PROP_HEADERS) == 0)
		return false;
	if ((flags & WIRE_PROP_CONTENT_TYPE) != 0)
		(void)wire_get_short(&r);
	if ((flags & WIRE_PROP_CONTENT_ENCODING) != 0)
		(void)wire_get_short(&r);
	table = wire_get_long(&r);
	if (r.failed || !wire_find_number(table, "t", &s->sent_ns) ||
	    !wire_find_number(table, "s", &number))
		return false;
	set_number(s, (uint64_t)number);
	return true;
}

bool
bench_messages_intact(const struct bench_messages *m, const uint8_t *p, size_t n, uint64_t at)
{
	if (at + n > m->filler_n)
		return false;
	if (m->in_body && at < BENCH_STAMP_SIZE) {
		size_t k = BENCH_STAMP_SIZE - (size_t)at;

		if (n <= k)
			return true;
		p += k;
		n -= k;
		at += k;
	}
	return memcmp(p, m->filler + at, n) == 0;
}
