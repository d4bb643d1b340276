/* SPDX-License-Identifier: Apache-2.0
 * What a handshake has shown of the peer: names of protocol and cipher as RabbitMQ (Erlang) has them, the certificate, and
 * the name by which its owner logs in with EXTERNAL. A name with a NUL in it is none: others might read only its
 * beginning. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/x509v3.h>

#include "base/mem.h"
#include "net/tls_priv.h"

static const char *
cipher_name(const SSL_CIPHER *c)
{
	switch (SSL_CIPHER_get_cipher_nid(c)) {
	case NID_aes_128_gcm: return "aes_128_gcm";
	case NID_aes_256_gcm: return "aes_256_gcm";
	case NID_chacha20_poly1305: return "chacha20_poly1305";
	case NID_aes_128_ccm: return "aes_128_ccm";
	case NID_aes_256_ccm: return "aes_256_ccm";
	default: return SSL_CIPHER_get_name(c);
	}
}

static const char *
key_exchange_name(const SSL_CIPHER *c)
{
	if (SSL_CIPHER_get_kx_nid(c) != NID_kx_ecdhe)
		return "any";
	return SSL_CIPHER_get_auth_nid(c) == NID_auth_rsa ? "ecdhe_rsa" : "ecdhe_ecdsa";
}

/* "CN=client,O=Hermes", RFC 4514. */
static char *
name_text(const X509_NAME *name)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *p, *text = NULL;
	long n;

	if (b != NULL && X509_NAME_print_ex(b, name, 0,
	                     XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB) >= 0) {
		n = BIO_get_mem_data(b, &p);
		text = xstrndup(p, (size_t)n);
	}
	BIO_free(b);
	return text != NULL ? text : xstrdup("");
}

static void
time_text(const ASN1_TIME *t, char *out, size_t n)
{
	struct tm tm;

	out[0] = '\0';
	if (ASN1_TIME_to_tm(t, &tm) == 1)
		(void)strftime(out, n, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* NULL: it is not text that could be a name. */
static char *
string_text(const ASN1_STRING *s)
{
	unsigned char *p = NULL;
	int n = ASN1_STRING_to_UTF8(&p, s);
	char *text = NULL;

	if (n > 0 && memchr(p, 0, (size_t)n) == NULL)
		text = xstrndup((const char *)p, (size_t)n);
	OPENSSL_free(p);
	return text;
}

/* ---- the name for a login ---- */

static char *
login_by_cn(X509 *x, const char **why)
{
	const X509_NAME *name = X509_get_subject_name(x);
	int at = X509_NAME_get_index_by_NID((X509_NAME *)(uintptr_t)name, NID_commonName, -1);
	char *text;

	*why = "the certificate has no common name";
	if (at < 0)
		return NULL;
	*why = "the certificate has several common names";
	if (X509_NAME_get_index_by_NID((X509_NAME *)(uintptr_t)name, NID_commonName, at) >= 0)
		return NULL;
	text = string_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
	*why = text == NULL ? "the common name of the certificate is no text" : NULL;
	return text;
}

static char *
address_text(const ASN1_STRING *s)
{
	char text[INET6_ADDRSTRLEN];
	int n = ASN1_STRING_length(s);

	if (n != 4 && n != 16)
		return NULL;
	if (inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(s), text, sizeof text) ==
	    NULL)
		return NULL;
	return xstrdup(text);
}

static char *
san_text(const GENERAL_NAME *g)
{
	switch (g->type) {
	case GEN_DNS: return string_text(g->d.dNSName);
	case GEN_EMAIL: return string_text(g->d.rfc822Name);
	case GEN_URI: return string_text(g->d.uniformResourceIdentifier);
	case GEN_IPADD: return address_text(g->d.iPAddress);
	case GEN_OTHERNAME:
		if (g->d.otherName->value->type == V_ASN1_UTF8STRING)
			return string_text(g->d.otherName->value->value.utf8string);
		return NULL;
	default: return NULL;
	}
}

static char *
login_by_san(X509 *x, const struct tls_set *set, const char **why)
{
	static const int types[] = { [TLS_SAN_DNS] = GEN_DNS,
		[TLS_SAN_EMAIL] = GEN_EMAIL,
		[TLS_SAN_URI] = GEN_URI,
		[TLS_SAN_IP] = GEN_IPADD,
		[TLS_SAN_OTHER] = GEN_OTHERNAME };
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	uint32_t seen = 0;
	char *text = NULL;

	*why = "the certificate has no such alternative name (tls.login_san)";
	for (int i = 0; names != NULL && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);

		if (g->type != types[set->login_san] || seen++ != set->login_san_index)
			continue;
		text = san_text(g);
		*why = text == NULL ? "the alternative name of the certificate is no text" : NULL;
		break;
	}
	GENERAL_NAMES_free(names);
	return text;
}

static void
fill_login(struct tls_info *out, X509 *x, const struct tls_set *set)
{
	switch (set->login_from) {
	case TLS_LOGIN_DN: out->login = xstrdup(out->subject); break;
	case TLS_LOGIN_SAN: out->login = login_by_san(x, set, &out->no_login); break;
	default: out->login = login_by_cn(x, &out->no_login); break;
	}
}

static void
fill_certificate(struct tls_info *out, X509 *x)
{
	char from[32], to[32];

	out->subject = name_text(X509_get_subject_name(x));
	out->issuer = name_text(X509_get_issuer_name(x));
	time_text(X509_get0_notBefore(x), from, sizeof from);
	time_text(X509_get0_notAfter(x), to, sizeof to);
	out->validity = xasprintf("%s - %s", from, to);
}

void
tls_info_fill(struct tls_info *out, SSL *ssl, const struct tls_set *set)
{
	const SSL_CIPHER *c = SSL_get_current_cipher(ssl);
	X509 *x = SSL_get0_peer_certificate(ssl);

	out->protocol = SSL_version(ssl) == TLS1_3_VERSION ? "tlsv1.3" : "tlsv1.2";
	out->cipher = cipher_name(c);
	out->key_exchange = key_exchange_name(c);
	out->hash = "aead"; /* of all that are taken */
	out->is_resumed = SSL_session_reused(ssl) == 1;
	out->no_login = "the client showed no certificate";
	/* where certificates are not asked for none is there */
	if (x == NULL || SSL_get_verify_result(ssl) != X509_V_OK)
		return;
	fill_certificate(out, x);
	fill_login(out, x, set);
}

void
tls_info_fini(struct tls_info *info)
{
	free(info->subject);
	free(info->issuer);
	free(info->validity);
	free(info->login);
}
