/* SPDX-License-Identifier: Apache-2.0
 * A transport whose bytes go through a TLS session: what transport.c and transport_out.c do with a plain socket.
 *
 * In: one recv into a buffer that all share, decrypted into the one that owners are shown. Nothing that is readable stays
 * behind in the session.
 * Out: pieces are gathered into whole records, encrypted into another shared buffer, and sent. What the socket does not take
 * is kept, at most a batch; its plain bytes stay `pending` until all of it is sent, so that every bound and time limit holds
 * as it does without TLS. What the protocol itself answers, to requests for new keys, is kept behind it; who asks on and on
 * and does not read is given up. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"
#include "net/transport_priv.h"

enum {
	READ_MAX = LOOP_READ_MAX -
	           2 * TLS_RECORD, /* with a record begun before it fits the loop's input */
	BATCH = 8 * TLS_RECORD,    /* plain bytes encrypted at once */
	ANSWERS_MAX = 64 << 10     /* bytes by which the protocol itself answers, and that wait to be sent */
};

/* Shared by all of a loop. */
struct loop_tls {
	struct tls_out out;
	uint8_t record[TLS_RECORD];
	uint8_t in[READ_MAX];
};

/* Of one transport. */
struct transport_tls {
	struct tls_session *session; /* owned */
	struct tls_out kept;         /* encrypted and not sent, from `at` on */
	size_t at, plain;            /* plain: bytes of the output that it stands for */
	size_t answers;              /* bytes of it that are the protocol's own */
	bool has_ended; /* nothing can be read or written any more: to be told at the next read */
	enum tls_result end;
};

static struct loop_tls *
shared(struct loop *l)
{
	if (l->tls == NULL)
		l->tls = xcalloc(1, sizeof *l->tls);
	l->tls->out.n = 0;
	return l->tls;
}

void
transport_tls_loop_free(struct loop *l)
{
	if (l->tls != NULL)
		tls_out_fini(&l->tls->out);
	free(l->tls);
	l->tls = NULL;
}

void
transport_set_tls(struct transport *t, struct tls_session *s)
{
	assert(t->io->tls == NULL);
	tls_session_begin(s);
	t->io->tls = xcalloc(1, sizeof *t->io->tls);
	t->io->tls->session = s;
}

const struct tls_info *
transport_tls_info(const struct transport *t)
{
	return t->io->tls != NULL ? tls_session_info(t->io->tls->session) : NULL;
}

const char *
transport_tls_why(const struct transport *t)
{
	return t->io->tls != NULL ? tls_session_why(t->io->tls->session) : "";
}

static void
drop_kept(struct transport_tls *s)
{
	mem_sub(MEM_OUTPUT, s->kept.cap);
	tls_out_fini(&s->kept);
	s->at = s->plain = s->answers = 0;
}

void
transport_tls_free(struct transport *t)
{
	struct transport_tls *s = t->io->tls;

	if (s == NULL)
		return;
	t->io->tls = NULL;
	drop_kept(s);
	tls_session_free(&s->session);
	free(s);
}

/* ---- out ---- */

static void
keep(struct transport_tls *s, const struct tls_out *out, size_t from, size_t plain)
{
	if (from < out->n) {
		mem_sub(MEM_OUTPUT, s->kept.cap);
		tls_out_add(&s->kept, out->p + from, out->n - from);
		mem_add(MEM_OUTPUT, s->kept.cap);
	}
	s->plain += plain;
}

/* Sends n bytes: so many were taken, or -errno. */
static ssize_t
send_some(struct transport *t, const uint8_t *p, size_t n)
{
	ssize_t w;

	do {
		w = send(t->fd, p, n, MSG_NOSIGNAL);
		t->loop->writev_calls++;
	} while (w < 0 && errno == EINTR);
	return w < 0 ? -errno : w;
}

/* True: nothing is kept any more. */
static bool
send_kept(struct transport *t, enum write_result *result, int *err)
{
	struct transport_tls *s = t->io->tls;
	size_t left = s->kept.n - s->at, plain;
	ssize_t w;

	if (left == 0)
		return true;
	w = send_some(t, s->kept.p + s->at, left);
	if (w < 0 && w != -EAGAIN) {
		*err = (int)-w;
		*result = WRITE_FAILED;
		return false;
	}
	if (w > 0) {
		s->at += (size_t)w;
		t->last_write_ms = t->loop->now_ms;
	}
	if (w < (ssize_t)left) {
		*result = WRITE_BLOCKED;
		return false;
	}
	plain = s->plain;
	drop_kept(s);
	transport_out_sent(t, plain);
	return true;
}

/* Where encrypting has come to in the ring of pieces. */
struct place {
	uint32_t seg;
	size_t at; /* in that piece */
};

/* The next record: from one piece where that has enough, else gathered. Its length; 0: there is no more. */
static size_t
next_record(
    const struct transport *t, struct place *from, size_t most, uint8_t *buf, const uint8_t **p)
{
	size_t n = 0;

	*p = buf;
	while (from->seg != t->seg_tail && n < most) {
		const struct seg *s = &t->seg[from->seg & (t->seg_cap - 1)];
		size_t now = s->len - from->at;

		if (n == 0 && now >= most) {
			*p = s->p + from->at;
			n = now = most;
		} else {
			now = now < most - n ? now : most - n;
			memcpy(buf + n, s->p + from->at, now);
			n += now;
		}
		from->at += now;
		if (from->at < s->len)
			break;
		from->seg++;
		from->at = 0;
	}
	return n;
}

/* Encrypts up to `bound` bytes of what waits; how many, or 0: it has failed. */
static size_t
encrypt(struct transport *t, struct loop_tls *l, size_t bound)
{
	struct place at = { .seg = t->seg_head };
	const uint8_t *p;
	size_t sum = 0, n;

	while (sum < bound) {
		size_t most = bound - sum < TLS_RECORD ? bound - sum : TLS_RECORD;

		n = next_record(t, &at, most, l->record, &p);
		if (n == 0)
			break;
		if (!tls_session_write(t->io->tls->session, p, n, &l->out))
			return 0;
		sum += n;
	}
	return sum;
}

enum write_result
transport_tls_write(struct transport *t, int *err)
{
	struct transport_tls *s = t->io->tls;
	enum write_result result = WRITE_ALL;
	size_t total = 0, n;
	ssize_t w;

	if (!send_kept(t, &result, err))
		return result;
	while (t->pending > 0) {
		struct loop_tls *l = shared(t->loop);

		if (total >= FLUSH_TURN_BYTES)
			return WRITE_BOUND;
		n = encrypt(t, l, BATCH);
		if (n == 0) {
			*err = EPROTO;
			return WRITE_FAILED;
		}
		w = send_some(t, l->out.p, l->out.n);
		if (w < 0 && w != -EAGAIN) {
			*err = (int)-w;
			return WRITE_FAILED;
		}
		if (w > 0)
			t->last_write_ms = t->loop->now_ms;
		if (w < (ssize_t)l->out.n) {
			keep(s, &l->out, w > 0 ? (size_t)w : 0, n);
			return WRITE_BLOCKED;
		}
		transport_out_sent(t, n);
		total += n;
	}
	return WRITE_ALL;
}

void
transport_tls_drop(struct transport *t)
{
	if (t->io->tls != NULL)
		drop_kept(t->io->tls);
}

bool
transport_tls_say_end(struct transport *t)
{
	struct transport_tls *s = t->io->tls;
	struct loop_tls *l = shared(t->loop);
	enum write_result result = WRITE_ALL;
	int err = 0;

	tls_session_end(s->session, &l->out);
	keep(s, &l->out, 0, 0);
	/* a failure is seen by who reads */
	return send_kept(t, &result, &err) || result != WRITE_BLOCKED;
}

/* ---- in ---- */

static ssize_t
ended(struct transport_tls *s)
{
	if (s->end == TLS_DONE)
		return 0;
	errno = EPROTO;
	return -1;
}

ssize_t
transport_tls_recv(struct transport *t, uint8_t *to, size_t quota)
{
	struct transport_tls *s = t->io->tls;
	struct loop_tls *l = shared(t->loop);
	enum tls_result result;
	size_t got = 0;
	ssize_t n;

	if (s->has_ended)
		return ended(s);
	n = recv(t->fd, l->in, quota < READ_MAX ? quota : READ_MAX, 0);
	if (n <= 0)
		return n;
	t->last_read_ms = t->loop->now_ms;
	if (t->flush_then_close)
		return n; /* thrown away */
	result = tls_session_read(s->session, l->in, (size_t)n, to, &got, &l->out);
	if (l->out.n > 0) {
		keep(s, &l->out, 0, 0);
		s->answers += l->out.n;
		transport_mark_dirty(t);
	}
	if (s->answers > ANSWERS_MAX)
		result = tls_session_give_up(
		    s->session, "the client asks for new keys and does not read the answers");
	if (result != TLS_WANT_READ) {
		s->has_ended = true;
		s->end = result;
		if (got == 0)
			return ended(s);
		t->io->can_read = true; /* the end is told when the bytes were shown */
		transport_mark_readable(t);
	}
	if (got > 0)
		return (ssize_t)got;
	errno = EAGAIN; /* no record is whole yet */
	return -1;
}
