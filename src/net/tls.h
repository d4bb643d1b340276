/* SPDX-License-Identifier: Apache-2.0
 * TLS, out of OpenSSL: certificates in force, and one session for each connection. TLS 1.2 and 1.3, ciphers that
 * authenticate what they encrypt and keys that nobody can find out afterwards.
 *
 * A session is made for a socket, whose handshake is done step by step by whoever has time for it, which is a worker
 * (gate.c): a signature takes 30 us to 3 ms, by the kind of key. From then on the core thread alone touches it, and bytes
 * are handed in and out: it does not know the socket any more. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct config;
struct config_list;
struct tls_session;
struct tls_set;

enum {
	TLS_ERROR = 512,	/* bytes for the text of an error */
	TLS_RECORD = 16 << 10	/* plain bytes of a record, at most */
};

enum tls_verify { TLS_VERIFY_NONE, TLS_VERIFY_OPTIONAL, TLS_VERIFY_REQUIRED };		/* as in tls.verify */
enum tls_login_from { TLS_LOGIN_CN, TLS_LOGIN_DN, TLS_LOGIN_SAN };			/* as in tls.login_from */
enum tls_san { TLS_SAN_DNS, TLS_SAN_EMAIL, TLS_SAN_URI, TLS_SAN_IP, TLS_SAN_OTHER };	/* as in tls.login_san */

/* What the settings say. Lists and texts are borrowed: they never change while a node runs. */
struct tls_options {
	const struct config_list *certificates, *keys; /* files; no keys: they are in the same files */
	const char *ca;				       /* NULL or "": none */
	uint32_t verify, login_from, login_san, login_san_index, min_version; /* min_version: 2 or 3 */
	uint64_t tickets_s;			       /* how long sessions may be resumed; 0: never */
};
void tls_options_of(const struct config *cfg, struct tls_options *out);

/* Reads all files, on any thread. NULL: err says which one is wrong, and how. */
struct tls_set *tls_set_load(const struct tls_options *o, char err[TLS_ERROR]) MUSTUSE;
/* Counted on the core thread only. */
struct tls_set *tls_set_ref(struct tls_set *set);
void tls_set_unref(struct tls_set **setp);
/* When the first of its certificates expires, in seconds since 1970; *file is whose. */
int64_t tls_set_expiry(const struct tls_set *set, const char **file);
/* How long a key of tickets is to be the current one: as long as a ticket is good, so that the one before opens all that are.
 * 0: there are no tickets. */
uint64_t tls_set_key_ms(const struct tls_set *set);
/* Changes it; tickets of the one before are still taken, older ones are not. */
void tls_set_next_key(struct tls_set *set);

/* ---- a session ---- */

/* What is known of a peer after the handshake, in the words that RabbitMQ has for it. */
struct tls_info {
	const char *protocol, *cipher, *hash, *key_exchange; /* static */
	char *subject, *issuer, *validity;		     /* owned; NULL: it showed no certificate */
	char *login;					     /* owned; NULL: none, and */
	const char *no_login;				     /* why (static) */
	bool is_resumed;
};

enum tls_result { TLS_DONE, TLS_WANT_READ, TLS_WANT_WRITE, TLS_FAILED };

/* fd is the caller's, and is not closed. */
struct tls_session *tls_session_new(struct tls_set *set, int fd);
void tls_session_free(struct tls_session **sp);
/* The next step, on any one thread at a time. TLS_FAILED: why says what is wrong; the peer was told by an alert. */
enum tls_result tls_session_handshake(struct tls_session *s, char why[TLS_ERROR]);
/* After the handshake; the set is not needed any more. */
const struct tls_info *tls_session_info(const struct tls_session *s);
void tls_session_begin(struct tls_session *s);

/* Encrypted bytes to be sent. */
struct tls_out {
	uint8_t *p; /* owned */
	size_t n, cap;
};
void tls_out_add(struct tls_out *o, const void *p, size_t n);
void tls_out_fini(struct tls_out *o);

/* Takes all of the n bytes that came in; what they say goes to `to`, which has room for n + TLS_RECORD, and its length to
 * *got. TLS_WANT_READ: there is more to come. TLS_DONE: the peer has ended it. TLS_FAILED: tls_session_why() says why; *got
 * bytes are good all the same. What the protocol itself answers goes to out. */
enum tls_result tls_session_read(struct tls_session *s, const uint8_t *p, size_t n, uint8_t *to, size_t *got,
    struct tls_out *out);
/* Encrypts n bytes, at most TLS_RECORD. False: it has failed. */
bool tls_session_write(struct tls_session *s, const uint8_t *p, size_t n, struct tls_out *out) MUSTUSE;
/* Says to the peer that nothing follows. */
void tls_session_end(struct tls_session *s, struct tls_out *out);
const char *tls_session_why(const struct tls_session *s); /* "": it has not failed */
/* The caller gives it up, and why (static) is what tls_session_why() says from then on. */
enum tls_result tls_session_give_up(struct tls_session *s, const char *why);

#endif
