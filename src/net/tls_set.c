/* SPDX-License-Identifier: Apache-2.0
 * Certificates in force: files are read into contexts of OpenSSL, one for each certificate, all alike but for it.
 *
 * Sessions are resumed by tickets only, so that the node keeps nothing of a client that is gone. Their keys are made anew
 * with each set, too: whoever a new `ca` would turn away does not come in by an old ticket. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "net/tls_priv.h"

static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20"; /* of TLS 1.2 */

void
tls_options_of(const struct config *cfg, struct tls_options *out)
{
	*out = (struct tls_options){ .certificates = &cfg->tls_certificates,
		.keys = &cfg->tls_keys,
		.ca = cfg->tls_ca,
		.verify = cfg->tls_verify,
		.login_from = cfg->tls_login_from,
		.login_san = cfg->tls_login_san,
		.login_san_index = cfg->tls_login_san_index,
		.min_version = 2 + cfg->tls_min_version,
		.tickets_s = cfg->tls_tickets_s };
}

/* ---- what went wrong ---- */

static bool
file_failed(char err[TLS_ERROR], const char *key, const char *file, const char *why)
{
	(void)snprintf(err, TLS_ERROR, "%s: %s: %s", key, file, why);
	return false;
}

/* Words of OpenSSL that say little to whoever reads them. */
static const struct {
	const char *theirs, *ours;
} words[] = {
	{ "no start line", "there is none in it (PEM)" },
	{ "bad decrypt", "it has a password; write it without one" },
	{ "bad password read", "it has a password; write it without one" },
	{ "interrupted or cancelled", "it has a password; write it without one" },
	{ "unsupported", "there is no private key in it (PEM), or it has a password" },
	{ "key values mismatch", "it does not belong to the certificate" },
	{ "wrong version number", "the client does not speak TLS" },
	{ "http request", "the client speaks plain HTTP" },
	{ "https proxy request", "the client speaks plain HTTP" },
	{ "unsupported protocol", "the client speaks only versions of TLS that are not taken" },
	{ "peer did not return a certificate", "the client showed no certificate (tls.verify)" },
	{ "no shared cipher", "the client has no cipher that is taken" },
	{ "unexpected eof while reading", "the client went away" },
	{ "tlsv1 alert unknown ca",
	    "the client does not know the authority of our certificate (alert: unknown ca)" },
	{ "sslv3 alert certificate unknown",
	    "the client does not take our certificate (alert: certificate unknown)" },
	{ "sslv3 alert bad certificate",
	    "the client does not take our certificate (alert: bad certificate)" },
	{ "sslv3 alert certificate expired",
	    "our certificate has expired, the client says (alert: certificate expired)" },
};

static const char *
our_word(const char *theirs)
{
	for (size_t i = 0; theirs != NULL && i < COUNT_OF(words); i++)
		if (strcmp(theirs, words[i].theirs) == 0)
			return words[i].ours;
	return NULL;
}

/* Of several the one that we have words for, else the last. */
static const char *
last_reason(void)
{
	const char *why = "error of TLS", *ours = NULL;
	unsigned long e;

	while ((e = ERR_get_error()) != 0) {
		const char *text =
		    ERR_SYSTEM_ERROR(e) ? strerror(ERR_GET_REASON(e)) : ERR_reason_error_string(e);

		if (text != NULL)
			why = text;
		if (ours == NULL)
			ours = our_word(text);
	}
	return ours != NULL ? ours : why;
}

void
tls_say_error(SSL *ssl, char *out, size_t n)
{
	const char *why = last_reason();
	long verify = ssl != NULL ? SSL_get_verify_result(ssl) : X509_V_OK;

	if (verify != X509_V_OK && strcmp(why, "certificate verify failed") == 0)
		(void)snprintf(out, n, "the client's certificate was refused: %s",
		    X509_verify_cert_error_string(verify));
	else
		(void)snprintf(out, n, "%s", why);
}

static bool
library_failed(char err[TLS_ERROR], const char *key, const char *file)
{
	char why[TLS_ERROR / 2];

	tls_say_error(NULL, why, sizeof why);
	return file_failed(err, key, file, why);
}

/* ---- one certificate ---- */

/* OpenSSL says little of files that cannot be opened. */
static bool
is_readable(const char *key, const char *file, char err[TLS_ERROR])
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return file_failed(err, key, file, strerror(errno));
	close(fd);
	return true;
}

/* Nobody is there to type one. */
static int
no_password(UNUSED char *buf, UNUSED int size, UNUSED int writes, UNUSED void *arg)
{
	return -1;
}

static void
read_names(struct tls_certificate *c, X509 *x)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	int at = -1;

	for (int i = 0; names != NULL && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);

		if (g->type == GEN_DNS)
			tls_names_add(&c->names, (const char *)ASN1_STRING_get0_data(g->d.dNSName),
			    (uint32_t)ASN1_STRING_length(g->d.dNSName));
	}
	GENERAL_NAMES_free(names);
	if (c->names.count > 0)
		return;
	while (
	    (at = X509_NAME_get_index_by_NID(X509_get_subject_name(x), NID_commonName, at)) >= 0) {
		const ASN1_STRING *s =
		    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(X509_get_subject_name(x), at));

		tls_names_add(&c->names, (const char *)ASN1_STRING_get0_data(s),
		    (uint32_t)ASN1_STRING_length(s));
	}
}

static int64_t
seconds_of(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : INT64_MAX;
}

static bool
load_certificate(
    struct tls_certificate *c, const struct tls_options *o, uint32_t i, char err[TLS_ERROR])
{
	const char *file = o->certificates->item[i];
	const char *key = o->keys->count > 0 ? o->keys->item[i] : file;
	const char *key_name = o->keys->count > 0 ? "tls.key" : "tls.certificate";
	X509 *x;

	if (!is_readable("tls.certificate", file, err) || !is_readable(key_name, key, err))
		return false;
	c->file = xstrdup(file);
	if (SSL_CTX_use_certificate_chain_file(c->ctx, file) != 1)
		return library_failed(err, "tls.certificate", file);
	if (SSL_CTX_use_PrivateKey_file(c->ctx, key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(c->ctx) != 1)
		return library_failed(err, key_name, key);
	x = SSL_CTX_get0_certificate(c->ctx);
	read_names(c, x);
	c->expires = seconds_of(X509_get0_notAfter(x));
	return true;
}

static bool
load_authorities(SSL_CTX *ctx, const struct tls_options *o, char err[TLS_ERROR])
{
	static const int modes[] = { SSL_VERIFY_NONE, SSL_VERIFY_PEER,
		SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT };
	STACK_OF(X509_NAME) * names;

	assert(o->verify < COUNT_OF(modes));
	SSL_CTX_set_verify(ctx, modes[o->verify], NULL);
	if (o->verify == TLS_VERIFY_NONE)
		return true;
	/* the settings may have been changed since the start, when tls.ca is read */
	if (o->ca == NULL || o->ca[0] == '\0')
		return file_failed(
		    err, "tls.verify", "needs tls.ca", "a new one takes effect at the next start");
	if (!is_readable("tls.ca", o->ca, err))
		return false;
	names = SSL_load_client_CA_file(o->ca);
	if (names == NULL || SSL_CTX_load_verify_file(ctx, o->ca) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return library_failed(err, "tls.ca", o->ca);
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	return true;
}

/* ---- a context ---- */

static int
on_server_name(SSL *ssl, UNUSED int *alert, void *arg)
{
	const struct tls_set *set = arg;
	const struct tls_names *names[CONFIG_LISTEN_MAX];
	const char *host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	uint32_t i;

	if (host == NULL)
		return SSL_TLSEXT_ERR_NOACK;
	for (i = 0; i < set->count; i++)
		names[i] = &set->certificate[i].names;
	i = tls_names_choose(names, set->count, host);
	if (i != 0 && SSL_set_SSL_CTX(ssl, set->certificate[i].ctx) == NULL)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

static bool
set_sessions(SSL_CTX *ctx, const struct tls_set *set)
{
	static const unsigned char context[] = "hermes";

	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (set->tickets == NULL) {
		(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
		return SSL_CTX_set_num_tickets(ctx, 0) == 1;
	}
	(void)SSL_CTX_set_timeout(ctx, (long)set->tickets_s);
	return SSL_CTX_set_num_tickets(ctx, 1) == 1 && tls_tickets_use(set->tickets, ctx) &&
	       SSL_CTX_set_session_id_context(ctx, context, sizeof context - 1) == 1;
}

static SSL_CTX *
context_new(struct tls_set *set, const struct tls_options *o)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int least = o->min_version >= 3 ? TLS1_3_VERSION : TLS1_2_VERSION;

	if (ctx == NULL)
		return NULL;
	(void)SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
	                                   SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	(void)SSL_CTX_set_tlsext_servername_callback(ctx, on_server_name);
	(void)SSL_CTX_set_tlsext_servername_arg(ctx, set);
	if (SSL_CTX_set_min_proto_version(ctx, least) == 1 &&
	    SSL_CTX_set_cipher_list(ctx, ciphers) == 1 && set_sessions(ctx, set))
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

/* ---- the set ---- */

static void
set_free(struct tls_set *set)
{
	for (uint32_t i = 0; i < COUNT_OF(set->certificate); i++) {
		struct tls_certificate *c = &set->certificate[i];

		SSL_CTX_free(c->ctx);
		tls_names_fini(&c->names);
		free(c->file);
	}
	tls_tickets_free(&set->tickets);
	free(set);
}

struct tls_set *
tls_set_load(const struct tls_options *o, char err[TLS_ERROR])
{
	struct tls_set *set = xcalloc(1, sizeof *set);

	set->refs = 1;
	set->login_from = o->login_from;
	set->login_san = o->login_san;
	set->login_san_index = o->login_san_index;
	set->tickets_s = o->tickets_s;
	set->tickets = o->tickets_s != 0 ? tls_tickets_new() : NULL;
	ERR_clear_error();
	for (uint32_t i = 0; i < o->certificates->count; i++) {
		struct tls_certificate *c = &set->certificate[i];

		c->ctx = context_new(set, o);
		if (c->ctx == NULL) {
			(void)library_failed(err, "tls.certificate", o->certificates->item[i]);
			break;
		}
		if (!load_certificate(c, o, i, err) || !load_authorities(c->ctx, o, err))
			break;
		set->count++;
	}
	if (set->count == o->certificates->count && set->count > 0)
		return set;
	set_free(set);
	return NULL;
}

struct tls_set *
tls_set_ref(struct tls_set *set)
{
	set->refs++;
	return set;
}

void
tls_set_unref(struct tls_set **setp)
{
	struct tls_set *set = *setp;

	*setp = NULL;
	if (set != NULL && --set->refs == 0)
		set_free(set);
}

int64_t
tls_set_expiry(const struct tls_set *set, const char **file)
{
	const struct tls_certificate *first = &set->certificate[0];

	for (uint32_t i = 1; i < set->count; i++)
		if (set->certificate[i].expires < first->expires)
			first = &set->certificate[i];
	*file = first->file;
	return first->expires;
}

uint64_t
tls_set_key_ms(const struct tls_set *set)
{
	return set->tickets_s * 1000;
}

void
tls_set_next_key(struct tls_set *set)
{
	if (set->tickets != NULL)
		tls_tickets_next(set->tickets);
}
