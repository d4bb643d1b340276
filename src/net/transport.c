/* SPDX-License-Identifier: Apache-2.0
 * A transport's life and its input; output is in transport_out.c.
 *
 * The happy path: made, read until the peer ends it, closed by its owner, freed by loop_reap.
 *
 * How it ends otherwise. A read that fails ends it at once. A write that fails does not: what the peer
 * sent before it went away is still in the socket, so output is dropped and reading goes on to the end
 * (a publisher that closes without reading loses nothing that way); where reading is paused, the end
 * comes at once. Each of these calls on_end exactly once and leaves the closing to the owner.
 *
 * transport_close_after_flush() leaves the transport without an owner: input is read and thrown away,
 * because closing a socket with unread bytes resets the connection, and a reset destroys what the
 * peer has not read yet. When all is sent the peer is told (shutdown), and the socket is closed when
 * it has closed its side, or at the deadline. */
#include "net/transport.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/transport_priv.h"

/* One allocation for both halves. */
struct whole {
	struct transport t;
	struct transport_io io;
};

static bool
wants_read(const struct transport *t)
{
	if (t->is_closed || t->io->ended)
		return false;
	return t->flush_then_close || t->paused == 0;
}

/* Brings what is registered into line with the state. */
void
transport_update_events(struct transport *t)
{
	struct transport_io *io = t->io;
	bool open = !t->is_closed && !io->ended;
	bool reads = wants_read(t), watches = open && !reads;
	bool writes = !t->is_closed && io->blocked;

	if (reads != io->reads)
		(void)(reads ? event_add(&io->read, NULL) : event_del(&io->read));
	io->reads = reads;
	if (writes != io->writes)
		(void)(writes ? event_add(&io->write, NULL) : event_del(&io->write));
	io->writes = writes;
	if (watches == io->watched)
		return;
	io->watched = watches;
	if (watches)
		loop_watch_hangup(t->loop, t, t->fd);
	else
		loop_unwatch_hangup(t->loop, t->fd);
}

static void
on_readable(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct transport *t = arg;

	t->io->can_read = true;
	transport_mark_readable(t);
}

static void
on_writable(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct transport *t = arg;

	t->io->blocked = false; /* the event stays registered until the flush has seen what fits */
	transport_mark_dirty(t);
}

/* The timer runs only while output waits. It is not moved at each write: it looks at the time of the
 * last one when it fires. */
static void
on_timer(struct wheel_node *node, uint64_t now_ms)
{
	struct transport_io *io = container_of(node, struct transport_io, timer);
	struct transport *t = &container_of(io, struct whole, io)->t;
	uint64_t since = io->waiting_since_ms;

	if (t->flush_then_close) {
		transport_close(t);
		return;
	}
	if (!io->blocked)
		return;
	if (t->last_write_ms > since)
		since = t->last_write_ms;
	if (now_ms >= since + STALL_MS)
		transport_end(t, END_STALLED, 0);
	else
		wheel_arm(t->loop->wheel, node, since + STALL_MS);
}

struct transport *
transport_new(struct loop *l, int fd, const struct transport_ops *ops, void *owner, size_t tail_max,
    size_t output_low)
{
	struct whole *w = xcalloc(1, sizeof *w);
	struct transport *t = &w->t;

	assert(fd >= 0 && ops->on_bytes != NULL && ops->on_end != NULL);
	t->loop = l;
	t->ops = ops;
	t->owner = owner;
	t->fd = fd;
	t->output_low = output_low;
	t->last_read_ms = t->last_write_ms = l->now_ms;
	t->io = &w->io;
	t->io->tail_max = tail_max;
	t->io->timer.fire = on_timer;
	event_assign(&t->io->read, l->base, fd, EV_READ | EV_PERSIST, on_readable, t);
	event_assign(&t->io->write, l->base, fd, EV_WRITE | EV_PERSIST, on_writable, t);
	transport_update_events(t);
	return t;
}

void
transport_free(struct transport *t)
{
	assert(t->is_closed);
	transport_out_drop(t); /* what was written after the close */
	transport_tls_free(t);
	free(container_of(t, struct whole, t));
}

/* --- the tail ------------------------------------------------------------------------------------- */

static void
tail_free(struct transport_io *io)
{
	mem_sub(MEM_INPUT, io->tail_cap);
	free(io->tail);
	io->tail = NULL;
	io->tail_len = io->tail_cap = 0;
}

static bool
tail_reserve(struct transport_io *io, size_t n)
{
	size_t cap = 128;
	uint8_t *p;

	if (n <= io->tail_cap)
		return true;
	while (cap < n)
		cap *= 2;
	if (cap > io->tail_max)
		cap = io->tail_max;
	p = try_realloc(io->tail, cap);
	if (p == NULL)
		return false;
	mem_add(MEM_INPUT, cap - io->tail_cap);
	io->tail = p;
	io->tail_cap = cap;
	return true;
}

/* Keeps n bytes at p, of which the first `same` are in the tail already. */
static bool
tail_keep(struct transport *t, const uint8_t *p, size_t n, size_t same)
{
	struct transport_io *io = t->io;

	if (n > io->tail_max) {
		log_error("%zu bytes of input were left over where at most %zu may be: closing", n,
		    io->tail_max);
		transport_end(t, END_ERROR, EMSGSIZE);
		return false;
	}
	if (n == 0) {
		io->tail_len = 0;
		if (io->tail_cap > TAIL_KEEP)
			tail_free(io);
		return true;
	}
	if (!tail_reserve(io, n)) {
		transport_end(t, END_ERROR, ENOMEM);
		return false;
	}
	memcpy(io->tail + same, p + same, n - same);
	io->tail_len = n;
	return true;
}

/* --- input ---------------------------------------------------------------------------------------- */

/* Shows the tail and the n bytes behind it to the owner. */
static void
show(struct transport *t, size_t n)
{
	struct loop *l = t->loop;
	struct transport_io *io = t->io;
	size_t before = io->tail_len, whole = before + n, used;
	uint8_t *p = l->input + l->tail_room - before;

	if (before > 0)
		memcpy(p, io->tail, before);
	used = t->ops->on_bytes(t->owner, p, whole);
	if (t->is_closed || t->flush_then_close)
		return;
	assert(used <= whole);
	(void)tail_keep(t, p + used, whole - used, used == 0 ? before : 0);
}

/* Room in front of the input for the longest tail; not while input is being shown. */
static void
make_tail_room(struct loop *l, size_t n)
{
	if (n <= l->tail_room)
		return;
	free(l->input);
	l->tail_room = n;
	l->input = xmalloc(l->tail_room + LOOP_READ_MAX);
}

static void
read_failed(struct transport *t, int err)
{
	if (t->io->broken != 0)
		err = t->io->broken;
	if (err == ECONNRESET || err == EPIPE || err == ETIMEDOUT)
		transport_end(t, END_RESET, err);
	else
		transport_end(t, END_ERROR, err);
}

/* Receives into the shared buffer; what is not there, or ends the transport, gives 0. */
static size_t
receive(struct transport *t, size_t quota)
{
	struct loop *l = t->loop;
	ssize_t n = likely(t->io->tls == NULL)
	                ? recv(t->fd, l->input + l->tail_room, quota, 0)
	                : transport_tls_recv(t, l->input + l->tail_room, quota);

	l->recv_calls++;
	if (n > 0) {
		t->bytes_in += (uint64_t)n;
		t->reads++;
		l->bytes_in += (uint64_t)n;
		t->last_read_ms = l->now_ms;
		return (size_t)n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		read_failed(t, errno);
	else if (t->io->broken != 0)
		read_failed(t, 0);
	else
		transport_end(t, END_HANGUP, 0);
	return 0;
}

void
transport_read(struct transport *t, size_t quota)
{
	struct transport_io *io = t->io;
	size_t n = 0;

	if (!wants_read(t))
		return;
	make_tail_room(t->loop, io->tail_len);
	/* A tail that is shown again goes alone: the owner may stop once more at its first byte, and would then
	 * be left with a read more than before, each time. What can be read is reported again. */
	if (io->can_read && !(io->again && io->tail_len > 0)) {
		io->can_read = false;
		n = receive(t, quota);
	}
	if (t->flush_then_close || t->is_closed)
		return; /* thrown away */
	if (n == 0 && (!io->again || io->ended))
		return;
	io->again = false;
	if (io->tail_len + n > 0)
		show(t, n);
}

static void
count_paused(struct transport *t, uint32_t before, uint32_t after)
{
	for (unsigned i = 0; i < LOOP_PAUSES; i++) {
		if (((before ^ after) & BIT(i)) == 0)
			continue;
		if ((after & BIT(i)) == 0) {
			t->loop->paused[i].now--;
		} else {
			t->loop->paused[i].now++;
			t->loop->paused[i].times++;
		}
	}
}

void
transport_pause(struct transport *t, uint32_t reasons)
{
	if (!t->is_closed)
		count_paused(t, t->paused, t->paused | reasons);
	t->paused |= reasons;
	if (!t->is_closed)
		transport_update_events(t);
}

void
transport_resume(struct transport *t, uint32_t reasons)
{
	uint32_t before = t->paused;

	if (!t->is_closed)
		count_paused(t, before, before & ~reasons);
	t->paused &= ~reasons;
	if (t->is_closed || before == 0 || t->paused != 0)
		return;
	transport_update_events(t);
	transport_again(t);
}

void
transport_again(struct transport *t)
{
	t->io->again = true;
	if (t->paused == 0)
		transport_mark_readable(t);
}

void
transport_set_stranger(struct transport *t, bool is_stranger)
{
	bool was_readable = t->is_readable;

	transport_unmark_readable(t);
	t->is_stranger = is_stranger;
	if (was_readable)
		transport_mark_readable(t);
}

/* --- the end -------------------------------------------------------------------------------------- */

/* The peer is gone, or must go: tells the owner, once. */
void
transport_end(struct transport *t, enum transport_end why, int err)
{
	if (t->is_closed || t->io->ended)
		return;
	t->io->ended = true;
	if (t->flush_then_close) {
		/* closed its side in order: what waits is still sent */
		if (why == END_HANGUP && t->pending > 0)
			transport_update_events(t);
		else
			transport_close(t);
		return;
	}
	t->io->blocked = false;
	transport_update_events(t);
	t->ops->on_end(t->owner, why, err);
}

/* From the loop: the peer of one that is not read has ended it. */
void
transport_hangup(struct transport *t)
{
	int err = t->io->broken;
	socklen_t n = sizeof err;

	if (t->is_closed || t->io->ended)
		return;
	if (err == 0 && getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
		err = errno;
	if (err != 0)
		read_failed(t, err);
	else
		transport_end(t, END_HANGUP, 0);
}

void
transport_close(struct transport *t)
{
	struct loop *l = t->loop;

	if (t->is_closed)
		return;
	t->is_closed = true;
	count_paused(t, t->paused, 0);
	t->io->blocked = false;
	transport_update_events(t);
	wheel_disarm(l->wheel, &t->io->timer);
	transport_unmark_readable(t);
	if (t->is_dirty) {
		TAILQ_REMOVE(&l->dirty, t, dirty_link);
		t->is_dirty = false;
	}
	tail_free(t->io);
	transport_out_drop(t);
	close(t->fd);
	t->fd = -1;
	if (t->flush_then_close)
		TAILQ_REMOVE(&l->closing, t, closed_link);
	TAILQ_INSERT_TAIL(&l->closed, t, closed_link);
}

void
transport_close_after_flush(struct transport *t, uint64_t ms)
{
	if (t->is_closed)
		return;
	if (transport_is_broken(t)) {
		transport_close(t);
		return;
	}
	t->flush_then_close = true;
	TAILQ_INSERT_TAIL(&t->loop->closing, t, closed_link);
	t->owner = NULL;
	tail_free(t->io);
	transport_update_events(t);
	wheel_arm(t->loop->wheel, &t->io->timer, t->loop->now_ms + ms);
	transport_mark_dirty(t); /* also with nothing to send: the flush says so to the peer */
}

/* --- addresses ------------------------------------------------------------------------------------ */

void
transport_addr_set(const struct sockaddr_storage *ss, struct transport_addr *a)
{
	const struct sockaddr_in *in = (const void *)ss;
	const struct sockaddr_in6 *in6 = (const void *)ss;
	struct in_addr v4;

	memset(a, 0, sizeof *a);
	if (ss->ss_family == AF_INET) {
		v4 = in->sin_addr;
		a->port = ntohs(in->sin_port);
	} else if (ss->ss_family == AF_INET6) {
		a->port = ntohs(in6->sin6_port);
		if (!IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
			a->loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
			inet_ntop(AF_INET6, &in6->sin6_addr, a->host, sizeof a->host);
			return;
		}
		memcpy(&v4, in6->sin6_addr.s6_addr + 12, sizeof v4);
	} else {
		/* a socket pair never leaves the machine; a closed descriptor is nobody's */
		a->loopback = ss->ss_family == AF_UNIX;
		memcpy(a->host, a->loopback ? "local" : "?", a->loopback ? 6 : 2);
		return;
	}
	a->loopback = ntohl(v4.s_addr) >> 24 == 127;
	inet_ntop(AF_INET, &v4, a->host, sizeof a->host);
}

void
transport_addr_of(int fd, struct transport_addr *peer, struct transport_addr *local)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof ss;

	if (peer != NULL) {
		if (getpeername(fd, (struct sockaddr *)&ss, &n) < 0)
			ss.ss_family = AF_UNSPEC;
		transport_addr_set(&ss, peer);
	}
	n = sizeof ss;
	if (local != NULL) {
		if (getsockname(fd, (struct sockaddr *)&ss, &n) < 0)
			ss.ss_family = AF_UNSPEC;
		transport_addr_set(&ss, local);
	}
}

void
transport_peer(const struct transport *t, struct transport_addr *peer, struct transport_addr *local)
{
	transport_addr_of(t->fd, peer, local);
}
