/* SPDX-License-Identifier: Apache-2.0
 * A transport's output: chunks, the ring of segments, and the one writev of a turn.
 *
 * A chunk has one reference while it is the current one of a transport and one for each segment in it.
 * Chunks come from the loop's spares, last in first out, because the one used last is still in the
 * cache; a transport with nothing to send holds none. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/mem.h"
#include "net/transport_priv.h"

static struct chunk *
chunk_new(struct loop *l)
{
	struct chunk *k = l->spare_chunks;

	if (k != NULL) {
		l->spare_chunks = k->next;
		l->spare_count--;
	} else {
		k = xmalloc(sizeof *k);
	}
	k->next = NULL;
	k->refs = 1;
	k->used = 0;
	mem_add(MEM_OUTPUT, sizeof *k);
	return k;
}

static void
chunk_unref(struct loop *l, struct chunk *k)
{
	assert(k->refs > 0);
	if (--k->refs > 0)
		return;
	mem_sub(MEM_OUTPUT, sizeof *k);
	if (l->spare_count >= LOOP_SPARE_CHUNKS) {
		free(k);
		return;
	}
	k->next = l->spare_chunks;
	l->spare_chunks = k;
	l->spare_count++;
}

static struct seg *
seg_push(struct transport *t)
{
	uint32_t n = t->seg_tail - t->seg_head, cap = t->seg_cap;
	struct seg *grown;

	if (n == cap) {
		cap = cap == 0 ? SEG_FIRST : cap * 2;
		grown = xmalloc(cap * sizeof *grown);
		for (uint32_t i = 0; i < n; i++)
			grown[i] = t->seg[(t->seg_head + i) & (t->seg_cap - 1)];
		free(t->seg);
		t->seg = grown;
		t->seg_head = 0;
		t->seg_tail = n;
		t->seg_cap = cap;
	}
	return &t->seg[t->seg_tail++ & (cap - 1)];
}

static void
seg_drop(struct transport *t, struct seg *s)
{
	if (s->kind == SEG_CHUNK)
		chunk_unref(t->loop, s->owner);
	else
		t->ops->unref(s->owner);
}

void
transport_out_drop(struct transport *t)
{
	while (t->seg_head != t->seg_tail)
		seg_drop(t, &t->seg[t->seg_head++ & (t->seg_cap - 1)]);
	if (t->cur != NULL)
		chunk_unref(t->loop, t->cur);
	t->cur = NULL;
	free(t->seg);
	t->seg = NULL;
	t->seg_head = t->seg_tail = t->seg_cap = 0;
	t->pending = 0;
	transport_tls_drop(t);
}

uint8_t *
transport_room_slow(struct transport *t, size_t n)
{
	struct chunk *k = t->cur;

	assert(n <= CHUNK_SIZE);
	if (k != NULL && k->refs == 1) {
		k->used = 0; /* all of it is sent */
		return k->d;
	}
	if (k != NULL)
		chunk_unref(t->loop, k);
	t->cur = chunk_new(t->loop);
	return t->cur->d;
}

void
transport_wrote_slow(struct transport *t, size_t n)
{
	struct chunk *k = t->cur;
	struct seg *s;

	assert(k != NULL && k->used + n <= CHUNK_SIZE);
	if (n == 0 || t->is_closed || transport_is_broken(t))
		return; /* nobody reads it: the room is used again */
	s = seg_push(t);
	*s = (struct seg){ .p = k->d + k->used, .len = (uint32_t)n, .kind = SEG_CHUNK, .owner = k };
	k->refs++;
	k->used += (uint32_t)n;
	t->pending += n;
	transport_mark_dirty(t);
}

void
transport_write(struct transport *t, const void *p, size_t n)
{
	const uint8_t *from = p;

	while (n > 0) {
		size_t room = t->cur != NULL ? CHUNK_SIZE - t->cur->used : 0, now;

		if (room == 0)
			room = CHUNK_SIZE;
		now = n < room ? n : room;
		memcpy(transport_room(t, now), from, now);
		transport_wrote(t, now);
		from += now;
		n -= now;
	}
}

void
transport_write_ref(struct transport *t, const uint8_t *p, size_t n, void *piece)
{
	assert(n <= UINT32_MAX);
	if (n == 0 || t->is_closed || transport_is_broken(t)) {
		t->ops->unref(piece);
		return;
	}
	/* never written through: iovec has no const */
	*seg_push(t) = (struct seg){
		.p = (uint8_t *)(uintptr_t)p, .len = (uint32_t)n, .kind = SEG_OWNED, .owner = piece
	};
	t->pending += n;
	transport_mark_dirty(t);
}

/* --- sending -------------------------------------------------------------------------------------- */

/* Gathers up to `bound` bytes; returns the number of vectors, *bytes their sum. */
static size_t
gather(const struct transport *t, struct iovec *v, size_t bound, size_t *bytes)
{
	size_t n = 0, sum = 0;

	for (uint32_t i = t->seg_head; i != t->seg_tail && n < FLUSH_IOVS && sum < bound; i++) {
		const struct seg *s = &t->seg[i & (t->seg_cap - 1)];

		v[n++] = (struct iovec){ .iov_base = s->p, .iov_len = s->len };
		sum += s->len;
	}
	*bytes = sum;
	return n;
}

void
transport_out_sent(struct transport *t, size_t n)
{
	t->pending -= n;
	t->bytes_out += n;
	t->writes++;
	t->loop->bytes_out += n;
	t->last_write_ms = t->loop->now_ms;
	while (n > 0) {
		struct seg *s = &t->seg[t->seg_head & (t->seg_cap - 1)];

		if (n < s->len) {
			s->p += n;
			s->len -= (uint32_t)n;
			return;
		}
		n -= s->len;
		t->seg_head++;
		seg_drop(t, s);
	}
}

static enum write_result
write_some(struct transport *t, int *err)
{
	struct iovec v[FLUSH_IOVS];
	struct msghdr mh = { .msg_iov = v };
	size_t total = 0, asked;
	ssize_t w;

	if (unlikely(t->io->tls != NULL))
		return transport_tls_write(t, err);
	while (t->pending > 0) {
		if (total >= FLUSH_TURN_BYTES)
			return WRITE_BOUND;
		mh.msg_iovlen = gather(t, v, FLUSH_TURN_BYTES - total, &asked);
		/* writev, but for SIGPIPE */
		w = sendmsg(t->fd, &mh, MSG_NOSIGNAL);
		t->loop->writev_calls++;
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0 && errno == EAGAIN)
			return WRITE_BLOCKED;
		if (w < 0) {
			*err = errno;
			return WRITE_FAILED;
		}
		transport_out_sent(t, (size_t)w);
		total += (size_t)w;
		if ((size_t)w < asked)
			return WRITE_BLOCKED; /* asking again would only say so */
	}
	return WRITE_ALL;
}

/* Nothing waits: the chunk goes back, and a ring that had grown. */
static void
rest(struct transport *t)
{
	if (t->cur != NULL && t->cur->refs == 1) {
		chunk_unref(t->loop, t->cur);
		t->cur = NULL;
	}
	if (t->seg_cap > SEG_KEEP) {
		free(t->seg);
		t->seg = NULL;
		t->seg_head = t->seg_tail = t->seg_cap = 0;
	}
}

static void
write_failed(struct transport *t, int err)
{
	transport_out_drop(t);
	t->io->blocked = false;
	if (t->flush_then_close) {
		transport_close(t);
		return;
	}
	t->io->broken = err;
	transport_update_events(t);
	if (err != EPIPE && err != ECONNRESET)
		transport_end(t, err == ETIMEDOUT ? END_RESET : END_ERROR, err);
	else if (t->paused != 0)
		transport_end(t, END_RESET, err);
	/* else what the peer sent before is read to its end, which is where this one ends */
}

static void
set_blocked(struct transport *t)
{
	struct transport_io *io = t->io;

	if (io->waiting_since_ms == 0)
		io->waiting_since_ms = t->loop->now_ms;
	io->blocked = true;
	if (!wheel_armed(&io->timer))
		wheel_arm(t->loop->wheel, &io->timer, t->loop->now_ms + STALL_MS);
}

/* flush_then_close: all is sent. The peer learns it; its own end, or the deadline, closes. */
static void
say_end(struct transport *t)
{
	if (t->io->ended) {
		transport_close(t);
		return;
	}
	if (t->io->shut)
		return;
	if (t->io->tls != NULL && !transport_tls_say_end(t)) {
		set_blocked(t);
		transport_update_events(t);
		return;
	}
	t->io->shut = true;
	if (shutdown(t->fd, SHUT_WR) < 0)
		transport_close(t);
}

void
transport_flush(struct transport *t)
{
	struct transport_io *io = t->io;
	int err = 0;

	if (t->is_closed || io->blocked || (io->ended && !t->flush_then_close))
		return;
	if (t->pending >= t->output_low)
		t->was_high = true;
	switch (write_some(t, &err)) {
	case WRITE_ALL:
		io->waiting_since_ms = 0;
		rest(t);
		break;
	case WRITE_BLOCKED: set_blocked(t); break;
	case WRITE_BOUND:
		io->waiting_since_ms = 0;
		transport_mark_dirty(t);
		break;
	case WRITE_FAILED: write_failed(t, err); return;
	}
	transport_update_events(t);
	if (t->flush_then_close) {
		if (t->pending == 0)
			say_end(t);
		return;
	}
	if (t->was_high && t->pending < t->output_low) {
		t->was_high = false;
		if (t->ops->on_room != NULL)
			t->ops->on_room(t->owner);
	}
}
