/* SPDX-License-Identifier: Apache-2.0
 * Bytes out, bytes in, and the frames in them. */
#include "cli/bench_conn.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "cli/bench_frames.h"

enum { DISCARD_MIN = 8 << 10, DISCARD_READ = 4 << 10 };

void
bench_conn_fail(struct bench_broker *b, struct bench_conn *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (c != NULL && c->dead)
		return;
	if (c != NULL)
		c->dead = true;
	if (b->failed)
		return;
	b->failed = true;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)cli_fail(b->cli, "%s", text);
}

/* ---- out ---- */

uint8_t *
bench_conn_room(struct bench_conn *c, size_t n)
{
	if (n > c->out_room - c->out_n || c->piece_n == BENCH_PIECES)
		return NULL;
	return c->out + c->out_n;
}

void
bench_conn_wrote(struct bench_conn *c, size_t n)
{
	struct iovec *last = c->piece_n > c->piece_first ? &c->piece[c->piece_n - 1] : NULL;
	uint8_t *at = c->out + c->out_n;

	if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == at)
		last->iov_len += n;
	else
		c->piece[c->piece_n++] = (struct iovec){ .iov_base = at, .iov_len = n };
	c->out_n += n;
	c->pending += n;
}

void
bench_conn_refer(struct bench_conn *c, const uint8_t *p, size_t n)
{
	/* what is sent is only read */
	c->piece[c->piece_n++] = (struct iovec){ .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	c->pending += n;
}

static void
drop_all(struct bench_conn *c)
{
	c->pending = c->out_n = 0;
	c->piece_first = c->piece_n = 0;
}

static void
drop_sent(struct bench_conn *c, size_t n)
{
	c->pending -= n;
	while (n > 0) {
		struct iovec *v = &c->piece[c->piece_first];
		size_t k = n < v->iov_len ? n : v->iov_len;

		v->iov_base = (uint8_t *)v->iov_base + k;
		v->iov_len -= k;
		n -= k;
		if (v->iov_len == 0)
			c->piece_first++;
	}
	if (c->pending == 0)
		drop_all(c);
}

/* What SSL_read and SSL_write answer, as read and write would. */
static ssize_t
of_tls(struct bench_conn *c, int rc)
{
	int why;

	if (rc > 0)
		return rc;
	why = SSL_get_error(c->tls, rc);
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		errno = EAGAIN;
	else if (why != SSL_ERROR_SYSCALL || errno == 0)
		errno = EPROTO;
	return -1;
}

static ssize_t
send_some(struct bench_conn *c)
{
	struct iovec *first = &c->piece[c->piece_first];
	struct msghdr m = { .msg_iov = first, .msg_iovlen = c->piece_n - c->piece_first };

	if (c->tls == NULL)
		return sendmsg(c->fd, &m, MSG_NOSIGNAL);
	ERR_clear_error();
	errno = 0;
	return of_tls(c, SSL_write(c->tls, first->iov_base, (int)first->iov_len));
}

static ssize_t
receive(struct bench_conn *c, uint8_t *p, size_t n)
{
	if (c->tls == NULL)
		return recv(c->fd, p, n, 0);
	ERR_clear_error();
	errno = 0;
	return of_tls(c, SSL_read(c->tls, p, (int)n));
}

bool
bench_conn_flush(struct bench_conn *c)
{
	while (c->pending > 0 && !c->dead) {
		ssize_t n = send_some(c);

		if (n > 0) {
			drop_sent(c, (size_t)n);
			c->wrote = true;
		} else if (n < 0 && errno == EAGAIN) {
			c->writable = false;
			return false;
		} else if (n == 0 || errno != EINTR) {
			/* what the broker said before it hung up matters more */
			int err = n == 0 ? EPIPE : errno;
			int64_t now;

			drop_all(c);
			bench_conn_read(c, &now);
			bench_conn_fail(c->broker, c, "the connection broke: %s", strerror(err));
		}
	}
	return !c->dead;
}

struct wire_out
bench_conn_begin(struct bench_conn *c, uint16_t channel, uint32_t method)
{
	struct wire_out w = { .p = c->out + c->out_n,
		.room = c->out_room - c->out_n,
		.failed = c->piece_n == BENCH_PIECES };

	(void)wire_method_begin(&w, channel, method);
	return w;
}

bool
bench_conn_commit(struct bench_conn *c, struct wire_out *w)
{
	wire_frame_end(w, 0);
	if (w->failed)
		return false;
	bench_conn_wrote(c, w->n);
	return true;
}

/* ---- in ---- */

static void
keep_tail(struct bench_conn *c, const uint8_t *p, size_t n)
{
	if (n > c->tail_room) {
		c->tail_room = n + 256;
		c->tail = xrealloc(c->tail, c->tail_room);
	}
	if (n > 0)
		memcpy(c->tail, p, n);
	c->tail_n = n;
}

/* What of_tls() made EPROTO has a better name. */
static const char *
reason(const struct bench_conn *c, int err)
{
	const char *why =
	    c->tls != NULL && err == EPROTO ? ERR_reason_error_string(ERR_peek_error()) : NULL;

	return why != NULL ? why : strerror(err);
}

static void
read_failed(struct bench_conn *c, ssize_t n)
{
	if (n < 0 && errno == EINTR)
		return;
	c->readable = false;
	if (n < 0 && errno == EAGAIN)
		return;
	if (c->closing)
		c->dead = true;
	else if (n == 0)
		bench_conn_fail(c->broker, c, "the broker hung up");
	else
		bench_conn_fail(c->broker, c, "the connection broke: %s", reason(c, errno));
}

/* The rest of a large body, thrown away inside the kernel. True: there may be more to read. */
static bool
discard(struct bench_conn *c, int64_t *now)
{
	ssize_t n = recv(c->fd, c->broker->in, c->skip, MSG_TRUNC);

	*now = bench_now();
	if (n <= 0) {
		read_failed(c, n);
		return false;
	}
	c->last_read = *now;
	c->skip -= (size_t)n;
	c->body_at += (uint64_t)n;
	return c->skip == 0;
}

void
bench_conn_read(struct bench_conn *c, int64_t *now)
{
	uint8_t *in = c->broker->in;
	bool discards = c->discards && c->tls == NULL;
	size_t max = discards ? DISCARD_READ : BENCH_READ_MAX, used, all;
	ssize_t n;

	if (discards && c->skip >= DISCARD_MIN && !discard(c, now))
		return;
	if (c->tail_n > 0)
		memcpy(in, c->tail, c->tail_n);
	n = receive(c, in + c->tail_n, max);
	*now = bench_now();
	if (n <= 0) {
		read_failed(c, n);
		return;
	}
	/* a session of TLS gives a record at a time; and nothing will tell of the end again */
	if ((size_t)n < max && c->tls == NULL && !c->hung_up)
		c->readable = false;
	c->last_read = *now;
	all = (size_t)n + c->tail_n;
	used = bench_frames_take(c, in, all);
	if (!c->dead)
		keep_tail(c, in + used, all - used);
}

bool
bench_conn_wait(struct bench_conn *c, int timeout_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int64_t now;
	int n;

	if (c->pending > 0 && !bench_conn_flush(c) && !c->dead)
		p.events |= POLLOUT;
	if (c->tls != NULL && SSL_pending(c->tls) > 0) {
		bench_conn_read(c, &now);
		return true;
	}
	n = poll(&p, 1, timeout_ms);
	if (n > 0 && (p.revents & (POLLIN | POLLHUP | POLLERR)) != 0)
		bench_conn_read(c, &now);
	return n != 0;
}
