/* SPDX-License-Identifier: Apache-2.0
 * The world of the tests of transports: one transport, whose owner takes small frames, and the other end
 * of its socket. Each test program has its own copy. */
#ifndef UNIT_TRANSPORT_PEER_H
#define UNIT_TRANSPORT_PEER_H

#include "net/transport.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/transport_priv.h"

enum { LOW = 256 << 10, TAIL = 131072 + 8 };

/* Takes frames of 4 bytes of length and as many bytes; keeps the bytes of all frames. */
struct peer {
	struct loop *l;
	struct transport *t;
	int fd; /* the other end */
	uint8_t *got;
	size_t got_n, shown_max;
	unsigned calls, rooms, ends;
	enum transport_end why;
	int err;
	bool take_nothing, keep_open, close_in_bytes;
	unsigned slow_us; /* what its bytes cost */
};

static unsigned unrefs;

static UNUSED size_t
take_frames(void *owner, uint8_t *p, size_t n)
{
	struct peer *o = owner;
	size_t used = 0;

	uint64_t until_us = clock_mono_us() + o->slow_us;

	o->calls++;
	while (o->slow_us > 0 && clock_mono_us() < until_us)
		continue;
	if (n > o->shown_max)
		o->shown_max = n;
	if (o->close_in_bytes) {
		transport_close(o->t);
		return n;
	}
	while (!o->take_nothing && n - used >= 4 && n - used - 4 >= get_be32(p + used)) {
		size_t size = get_be32(p + used);

		o->got = realloc(o->got, o->got_n + size + 1);
		memcpy(o->got + o->got_n, p + used + 4, size);
		o->got_n += size;
		used += 4 + size;
	}
	memset(p, 0xEE, used); /* writable, and ours to spoil */
	return used;
}

static UNUSED void
on_room(void *owner)
{
	((struct peer *)owner)->rooms++;
}

static UNUSED void
on_end(void *owner, enum transport_end why, int err)
{
	struct peer *o = owner;

	o->ends++;
	o->why = why;
	o->err = err;
	if (o->keep_open)
		return;
	transport_close(o->t);
	o->t = NULL; /* gone with the turn */
}

static UNUSED void
unref(void *piece)
{
	(void)piece;
	unrefs++;
}

static const struct transport_ops ops = { take_frames, on_room, on_end, unref };

static UNUSED void
turn(struct loop *l)
{
	loop_wait(l, true);
	loop_read(l);
	loop_flush(l);
	loop_reap(l);
}

static UNUSED void
turns(struct loop *l, unsigned n)
{
	while (n-- > 0)
		turn(l);
}

static UNUSED void
tcp_pair(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int ls = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(ls, (struct sockaddr *)&a, n), 0);
	ck_assert_int_eq(listen(ls, 1), 0);
	ck_assert_int_eq(getsockname(ls, (struct sockaddr *)&a, &n), 0);
	fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert(connect(fd[1], (struct sockaddr *)&a, n) == 0 || errno == EINPROGRESS);
	fd[0] = accept4(ls, NULL, NULL, SOCK_NONBLOCK);
	ck_assert_int_ge(fd[0], 0);
	close(ls);
}

static UNUSED void
setup(struct peer *o, bool tcp)
{
	int fd[2];

	memset(o, 0, sizeof *o);
	unrefs = 0;
	o->l = loop_new();
	if (tcp)
		tcp_pair(fd);
	else
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	o->fd = fd[1];
	o->t = transport_new(o->l, fd[0], &ops, o, TAIL, LOW);
}

static UNUSED void
teardown(struct peer *o)
{
	if (o->t != NULL)
		transport_close(o->t);
	loop_reap(o->l);
	loop_free(&o->l);
	if (o->fd >= 0)
		close(o->fd);
	free(o->got);
	ck_assert_uint_eq(mem_held[MEM_INPUT], 0);
	ck_assert_uint_eq(mem_held[MEM_OUTPUT], 0);
}

static UNUSED void
put(struct peer *o, const void *p, size_t n)
{
	ck_assert_int_eq(write(o->fd, p, n), (ssize_t)n);
}

static UNUSED size_t
frame(uint8_t *at, const void *p, size_t n)
{
	put_be32(at, (uint32_t)n);
	memcpy(at + 4, p, n);
	return n + 4;
}

/* Everything that is there now; -1 at the end of the stream. */
static UNUSED ssize_t
drain(int fd, uint8_t *into, size_t max)
{
	size_t n = 0;
	ssize_t r;

	while (n < max && (r = read(fd, into + n, max - n)) != 0) {
		if (r < 0)
			return (ssize_t)n;
		n += (size_t)r;
	}
	return n > 0 ? (ssize_t)n : -1;
}

static UNUSED void
wake_up(struct wheel_node *n, uint64_t now_ms)
{
	(void)n;
	(void)now_ms;
}

/* Waits ms in the loop; returns the number of turns that it woke up. */
static UNUSED uint64_t
wait_turns(struct loop *l, uint64_t ms)
{
	uint64_t until = clock_now_ms() + ms, before = l->turns;
	struct wheel_node node = { .fire = wake_up };

	while (clock_now_ms() < until) {
		wheel_arm(l->wheel, &node, until);
		loop_wait(l, false);
		loop_read(l);
		loop_flush(l);
	}
	wheel_disarm(l->wheel, &node);
	loop_reap(l);
	return l->turns - before;
}

#endif
