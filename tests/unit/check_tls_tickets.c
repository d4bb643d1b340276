/* SPDX-License-Identifier: Apache-2.0
 * Sessions are resumed by tickets of the current key and of the one before, in both versions of TLS, and where the client's
 * name has chosen another certificate. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/config.h"
#include "net/tls.h"
#include "tests/unit/test_folder.h"

enum { STEPS = 100 };

static const char *const names[] = { "one.example.org", "two.example.org" };
static const struct {
	int version;
	const char *host; /* NULL: the client names none */
} ways[] = { { TLS1_2_VERSION, NULL }, { TLS1_3_VERSION, NULL },
	{ TLS1_2_VERSION, "two.example.org" }, { TLS1_3_VERSION, "two.example.org" } };

static char folder[200], files[2][300];
static struct tls_set *set;
static SSL_CTX *client;
static SSL_SESSION *session; /* the newest that the client was given */

/* ---- the two sides ---- */

/* With its key in the same file. */
static void
make_certificate(const char *file, const char *name)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	char alternative[100];
	X509_EXTENSION *e;
	FILE *f = fopen(file, "we");

	ck_assert(key != NULL && x != NULL && f != NULL);
	snprintf(alternative, sizeof alternative, "DNS:%s", name);
	e = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternative);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(X509_set_version(x, 2), 1);
	ck_assert_int_eq(ASN1_INTEGER_set(X509_get_serialNumber(x), 1), 1);
	ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notBefore(x), -3600));
	ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notAfter(x), 24 * 3600));
	ck_assert_int_eq(X509_add_ext(x, e, -1), 1);
	ck_assert_int_eq(X509_set_pubkey(x, key), 1);
	ck_assert_int_gt(X509_sign(x, key, EVP_sha256()), 0);
	ck_assert_int_eq(PEM_write_X509(f, x), 1);
	ck_assert_int_eq(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	ck_assert_int_eq(fclose(f), 0);
	X509_EXTENSION_free(e);
	X509_free(x);
	EVP_PKEY_free(key);
}

static void
set_up(void)
{
	const struct config_list certificates = { .item = { files[0], files[1] }, .count = 2 },
	                         none = { 0 };
	const struct tls_options o = {
		.certificates = &certificates, .keys = &none, .min_version = 2, .tickets_s = 3600
	};
	char err[TLS_ERROR] = "";

	test_folder_make(folder, sizeof folder);
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		snprintf(files[i], sizeof files[i], "%s/%zu.pem", folder, i);
		make_certificate(files[i], names[i]);
	}
	set = tls_set_load(&o, err);
	ck_assert_msg(set != NULL, "%s", err);
	client = SSL_CTX_new(TLS_client_method());
	ck_assert_ptr_nonnull(client);
	(void)SSL_CTX_set_session_cache_mode(
	    client, SSL_SESS_CACHE_OFF); /* with it, they may be used once */
}

static void
tear_down(void)
{
	SSL_SESSION_free(session);
	session = NULL;
	SSL_CTX_free(client);
	tls_set_unref(&set);
	test_folder_remove(folder);
}

/* A connection that shows `old` (NULL: none); was it resumed? What the client was given is in session. */
static bool
resumes(SSL_SESSION *old, int version, const char *host)
{
	char why[TLS_ERROR] = "", c;
	enum tls_result r = TLS_WANT_READ;
	struct tls_session *server;
	SSL *ssl = SSL_new(client);
	int fd[2], done = 0;
	bool answer;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
	server = tls_session_new(set, fd[0]);
	ck_assert_int_eq(SSL_set_fd(ssl, fd[1]), 1);
	ck_assert_int_eq(SSL_set_min_proto_version(ssl, version), 1);
	ck_assert_int_eq(SSL_set_max_proto_version(ssl, version), 1);
	ck_assert_int_eq(host == NULL || SSL_set_tlsext_host_name(ssl, host) == 1, 1);
	ck_assert_int_eq(old == NULL || SSL_set_session(ssl, old) == 1, 1);
	for (unsigned i = 0; i < STEPS && (done != 1 || r != TLS_DONE); i++) {
		if (done != 1)
			done = SSL_connect(ssl);
		if (r != TLS_DONE)
			r = tls_session_handshake(server, why);
		ck_assert_msg(r != TLS_FAILED, "%s", why);
	}
	ck_assert_int_eq(done, 1);
	ck_assert_int_eq(r, TLS_DONE);
	ck_assert_int_le(
	    SSL_read(ssl, &c, 1), 0); /* a ticket of TLS 1.3 comes behind the handshake */
	answer = tls_session_info(server)->is_resumed;
	SSL_SESSION_free(session);
	session = SSL_get1_session(ssl);
	ck_assert_int_eq(SSL_session_reused(ssl), answer);
	tls_session_free(&server);
	SSL_set_quiet_shutdown(ssl, 1);
	(void)SSL_shutdown(ssl); /* one that just breaks off makes its session unfit */
	SSL_free(ssl);
	close(fd[0]);
	close(fd[1]);
	return answer;
}

/* ---- tests ---- */

START_TEST(the_key_before_is_taken_too)
{
	int version = ways[_i].version;
	const char *host = ways[_i].host;
	SSL_SESSION *first;

	ck_assert(!resumes(NULL, version, host));
	first = session;
	ck_assert_ptr_nonnull(first);
	ck_assert_int_eq(SSL_SESSION_up_ref(first), 1);
	ck_assert(resumes(first, version, host));

	tls_set_next_key(set);
	ck_assert(resumes(first, version, host));
	ck_assert_ptr_ne(
	    session, first); /* and it was given one of the current key, which outlives that */
	tls_set_next_key(set);
	ck_assert(!resumes(first, version, host));
	SSL_SESSION_free(first);
}
END_TEST

START_TEST(who_comes_often_is_always_resumed)
{
	int version = ways[_i].version;
	const char *host = ways[_i].host;

	ck_assert(!resumes(NULL, version, host));
	for (unsigned i = 0; i < 5; i++) {
		SSL_SESSION *newest = session;

		ck_assert_int_eq(SSL_SESSION_up_ref(newest), 1);
		tls_set_next_key(set);
		ck_assert(resumes(newest, version, host));
		SSL_SESSION_free(newest);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tls_tickets");
	TCase *t = tcase_create("all");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, the_key_before_is_taken_too, 0, (int)COUNT_OF(ways));
	tcase_add_loop_test(t, who_comes_often_is_always_resumed, 0, (int)COUNT_OF(ways));
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
