/* SPDX-License-Identifier: Apache-2.0
 * One session: the handshake on its socket, then bytes in and bytes out.
 *
 * After the handshake OpenSSL reads from what was handed in and writes to what will be sent, so that the loop keeps its one
 * recv and its one send of a turn. It keeps no more than one record that is not whole yet. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "base/mem.h"
#include "net/tls_priv.h"

struct tls_session {
	SSL *ssl;            /* owned; NULL until the first step */
	struct tls_set *set; /* borrowed until tls_session_begin(): the caller holds it */
	int fd;              /* borrowed, the same */
	struct tls_info info;
	const uint8_t *in; /* borrowed during a call */
	size_t in_n;
	struct tls_out *out; /* the same */
	bool has_ended;      /* we said so */
	char why[128];
};

/* ---- bytes to be sent ---- */

void
tls_out_add(struct tls_out *o, const void *p, size_t n)
{
	size_t cap = o->cap != 0 ? o->cap : 1024;

	while (cap < o->n + n)
		cap *= 2;
	if (cap != o->cap) {
		o->p = xrealloc(o->p, cap);
		o->cap = cap;
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

void
tls_out_fini(struct tls_out *o)
{
	free(o->p);
	*o = (struct tls_out){ 0 };
}

/* ---- what OpenSSL reads from and writes to ---- */

static int
bytes_read(BIO *b, char *to, size_t n, size_t *got)
{
	struct tls_session *s = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (s->in_n == 0) {
		BIO_set_retry_read(b);
		return 0;
	}
	*got = n < s->in_n ? n : s->in_n;
	memcpy(to, s->in, *got);
	s->in += *got;
	s->in_n -= *got;
	return 1;
}

static int
bytes_write(BIO *b, const char *p, size_t n, size_t *put)
{
	struct tls_session *s = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	assert(s->out != NULL);
	tls_out_add(s->out, p, n);
	*put = n;
	return 1;
}

static long
bytes_ctrl(UNUSED BIO *b, int cmd, UNUSED long number, UNUSED void *p)
{
	return cmd == BIO_CTRL_FLUSH;
}

/* Lives until the process ends; made by the core thread. */
static BIO_METHOD *
bytes_method(void)
{
	static BIO_METHOD *m;

	if (m != NULL)
		return m;
	m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bytes");
	if (m == NULL || BIO_meth_set_read_ex(m, bytes_read) != 1 ||
	    BIO_meth_set_write_ex(m, bytes_write) != 1 || BIO_meth_set_ctrl(m, bytes_ctrl) != 1)
		abort(); /* a few hundred bytes: see base/mem.h */
	return m;
}

/* ---- life ---- */

struct tls_session *
tls_session_new(struct tls_set *set, int fd)
{
	struct tls_session *s = xcalloc(1, sizeof *s);

	s->set = set;
	s->fd = fd;
	return s;
}

void
tls_session_free(struct tls_session **sp)
{
	struct tls_session *s = *sp;

	if (s == NULL)
		return;
	*sp = NULL;
	SSL_free(s->ssl);
	tls_info_fini(&s->info);
	free(s);
}

enum tls_result
tls_session_handshake(struct tls_session *s, char why[TLS_ERROR])
{
	int rc;

	ERR_clear_error();
	if (s->ssl == NULL) {
		s->ssl = SSL_new(s->set->certificate[0].ctx);
		if (s->ssl == NULL || SSL_set_fd(s->ssl, s->fd) != 1) {
			tls_say_error(NULL, why, TLS_ERROR);
			return TLS_FAILED;
		}
		SSL_set_accept_state(s->ssl);
	}
	rc = SSL_do_handshake(s->ssl);
	if (rc == 1) {
		tls_info_fill(&s->info, s->ssl, s->set);
		return TLS_DONE;
	}
	switch (SSL_get_error(s->ssl, rc)) {
	case SSL_ERROR_WANT_READ: return TLS_WANT_READ;
	case SSL_ERROR_WANT_WRITE: return TLS_WANT_WRITE;
	case SSL_ERROR_SYSCALL:
		if (ERR_peek_error() == 0) {
			(void)snprintf(why, TLS_ERROR, "the client went away");
			return TLS_FAILED;
		}
		break;
	default: break;
	}
	tls_say_error(s->ssl, why, TLS_ERROR);
	return TLS_FAILED;
}

const struct tls_info *
tls_session_info(const struct tls_session *s)
{
	return &s->info;
}

void
tls_session_begin(struct tls_session *s)
{
	BIO *b = BIO_new(bytes_method());

	if (b == NULL)
		abort(); /* the same */
	BIO_set_data(b, s);
	BIO_set_init(b, 1);
	SSL_set_bio(s->ssl, b, b); /* one reference for both */
	s->set = NULL;
	s->fd = -1;
}

/* ---- bytes ---- */

static enum tls_result
read_ended(struct tls_session *s)
{
	switch (SSL_get_error(s->ssl, 0)) {
	case SSL_ERROR_WANT_READ: return TLS_WANT_READ;
	case SSL_ERROR_ZERO_RETURN: return TLS_DONE;
	default: break;
	}
	tls_say_error(s->ssl, s->why, sizeof s->why);
	return TLS_FAILED;
}

enum tls_result
tls_session_read(struct tls_session *s, const uint8_t *p, size_t n, uint8_t *to, size_t *got,
    struct tls_out *out)
{
	size_t sum = 0, now;

	if (s->why[0] != '\0')
		return TLS_FAILED;
	ERR_clear_error();
	s->in = p;
	s->in_n = n;
	s->out = out;
	while (SSL_read_ex(s->ssl, to + sum, TLS_RECORD, &now) == 1) {
		sum += now;
		assert(sum <= n + TLS_RECORD);
	}
	*got = sum;
	s->out = NULL;
	return read_ended(s);
}

bool
tls_session_write(struct tls_session *s, const uint8_t *p, size_t n, struct tls_out *out)
{
	size_t put = 0;
	int rc;

	if (s->why[0] != '\0')
		return false;
	ERR_clear_error();
	s->out = out;
	s->in_n = 0;
	rc = SSL_write_ex(s->ssl, p, n, &put);
	s->out = NULL;
	if (rc == 1)
		return true;
	tls_say_error(s->ssl, s->why, sizeof s->why);
	return false;
}

void
tls_session_end(struct tls_session *s, struct tls_out *out)
{
	if (s->has_ended || s->why[0] != '\0')
		return;
	s->has_ended = true;
	ERR_clear_error();
	s->out = out;
	(void)SSL_shutdown(s->ssl);
	s->out = NULL;
	ERR_clear_error();
}

const char *
tls_session_why(const struct tls_session *s)
{
	return s->why;
}

enum tls_result
tls_session_give_up(struct tls_session *s, const char *why)
{
	(void)snprintf(s->why, sizeof s->why, "%s", why);
	return TLS_FAILED;
}
