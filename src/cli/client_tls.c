/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client_tls.h"

#include <amqp.h>
#include <amqp_ssl_socket.h>
#include <arpa/inet.h>
#include <netinet/in.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* --key, else it is in the same file. */
static const char *
key_of(const struct cli *c, const char *cert)
{
	const char *key = cli_value(c, "key-file");

	return key != NULL ? key : cert;
}

static const char *
reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_error());

	return text != NULL ? text : "cannot be read";
}

static bool
set_files(struct cli *c, SSL_CTX *ctx)
{
	const char *ca = cli_value(c, "ca-file"), *cert = cli_value(c, "cert-file");

	if (ca != NULL ? SSL_CTX_load_verify_file(ctx, ca) != 1
	               : SSL_CTX_set_default_verify_paths(ctx) != 1) {
		cli_fail(c, "--ca-file: %s: %s", ca != NULL ? ca : "the system's", reason());
		return false;
	}
	if (cert == NULL)
		return true;
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1) {
		cli_fail(c, "--cert-file: %s: %s", cert, reason());
		return false;
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, key_of(c, cert), SSL_FILETYPE_PEM) != 1) {
		cli_fail(c, "--key-file: %s: %s", key_of(c, cert), reason());
		return false;
	}
	return true;
}

static bool
set_host(SSL *ssl, const char *host)
{
	struct in6_addr address;

	if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

SSL *
client_tls_new(struct cli *c, const char *host)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = NULL;

	if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
		cli_fail(c, "TLS cannot be used: %s", reason());
	} else if (set_files(c, ctx)) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		ssl = SSL_new(ctx);
		if (ssl == NULL || !set_host(ssl, host)) {
			cli_fail(c, "TLS cannot be used: %s", reason());
			SSL_free(ssl);
			ssl = NULL;
		}
	}
	SSL_CTX_free(ctx);
	return ssl;
}

SSL *
client_tls_next(struct cli *c, SSL *before, const char *host)
{
	SSL *ssl = SSL_new(SSL_get_SSL_CTX(before));

	if (ssl != NULL && set_host(ssl, host))
		return ssl;
	cli_fail(c, "TLS cannot be used: %s", reason());
	SSL_free(ssl);
	return NULL;
}

bool
client_tls_open(struct cli *c, struct amqp_connection_state_t_ *amqp, const char *host, int port,
    const struct timeval *limit)
{
	amqp_socket_t *s = amqp_ssl_socket_new(amqp);
	int rc;

	if (s == NULL) {
		cli_fail(c, "no memory");
		return false;
	}
	if (!set_files(c, amqp_ssl_socket_get_context(s)))
		return false;
	(void)amqp_ssl_socket_set_ssl_versions(s, AMQP_TLSv1_2, AMQP_TLSvLATEST);
	rc = amqp_socket_open_noblock(s, host, port, limit);
	if (rc == AMQP_STATUS_SOCKET_ERROR || rc == AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED)
		cli_fail(c, "cannot reach %s port %d; is the node running, and its tls.port open?",
		    host, port);
	else if (rc != AMQP_STATUS_OK)
		cli_fail(c, "cannot talk TLS with %s port %d: %s (see --ca-file)", host, port,
		    amqp_error_string2(rc));
	return rc == AMQP_STATUS_OK;
}
