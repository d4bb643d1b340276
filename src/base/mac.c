/* SPDX-License-Identifier: Apache-2.0
 * SipHash with 128 bits of output, out of OpenSSL. It is set up at first use: that takes 0.4 ms and
 * 1.5 MB, which a node without direct reply-to does not pay. The library context is our own, so
 * that this reads no openssl.cnf and decides nothing for TLS. A code is 0.05 us; HMAC-SHA-256 would
 * be 0.2 us and 0.8 MB more. */
#include "base/mac.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"

static uint8_t key[16];
static bool have_key, have_schedule;
static OSSL_LIB_CTX *library; /* this and the two below live until the process ends */
static EVP_MAC *algorithm;
static EVP_MAC_CTX *context;

static EVP_MD *digests[DIGESTS]; /* these two as well; only read once they are there */
static EVP_KDF *pbkdf2;

static NORETURN void
fail(void)
{
	log_error("OpenSSL lacks SipHash, SHA-2 or PBKDF2, or memory for them");
	log_flush();
	abort();
}

static void
set_up(void)
{
	size_t size = MAC_SIZE;
	OSSL_PARAM params[] = { OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
		OSSL_PARAM_construct_end() };

	if (!have_key)
		mac_init();
	if (context == NULL) {
		if (library == NULL)
			library = OSSL_LIB_CTX_new();
		algorithm = library != NULL ? EVP_MAC_fetch(library, "SIPHASH", NULL) : NULL;
		context = algorithm != NULL ? EVP_MAC_CTX_new(algorithm) : NULL;
		if (context == NULL)
			fail();
	}
	if (EVP_MAC_init(context, key, sizeof key, params) != 1)
		fail();
	have_schedule = true;
}

void
mac_init(void)
{
	random_bytes(key, sizeof key);
	have_key = true;
	have_schedule = false;
}

void
mac_compute(const void *p, size_t n, uint8_t out[MAC_SIZE])
{
	size_t size = 0;

	if (!have_schedule)
		set_up();
	else if (EVP_MAC_init(context, NULL, 0, NULL) != 1)
		fail();
	if (EVP_MAC_update(context, p, n) != 1 ||
	    EVP_MAC_final(context, out, &size, MAC_SIZE) != 1 || size != MAC_SIZE)
		fail();
}

bool
mac_verify(const void *p, size_t n, const uint8_t mac[MAC_SIZE])
{
	uint8_t right[MAC_SIZE];

	mac_compute(p, n, right);
	return CRYPTO_memcmp(right, mac, MAC_SIZE) == 0;
}

/* ---- digests ---- */

/* Contexts are made for each call, so that threads share nothing. */
void
digest_init(void)
{
	static const char *const names[DIGESTS] = { "SHA2-256", "SHA2-512", "MD5" };

	if (pbkdf2 != NULL)
		return;
	if (library == NULL)
		library = OSSL_LIB_CTX_new();
	pbkdf2 = library != NULL ? EVP_KDF_fetch(library, "PBKDF2", NULL) : NULL;
	for (size_t i = 0; library != NULL && i < DIGESTS; i++)
		digests[i] = EVP_MD_fetch(library, names[i], NULL);
	if (pbkdf2 == NULL || digests[DIGEST_SHA256] == NULL || digests[DIGEST_SHA512] == NULL)
		fail();
}

size_t
digest_salted(enum digest d, struct span salt, struct span text, uint8_t out[DIGEST_SIZE_MAX])
{
	EVP_MD_CTX *c;
	unsigned n = 0;

	if (digests[d] == NULL)
		return 0;
	c = EVP_MD_CTX_new();
	if (c == NULL || EVP_DigestInit_ex2(c, digests[d], NULL) != 1 ||
	    EVP_DigestUpdate(c, salt.p, salt.n) != 1 || EVP_DigestUpdate(c, text.p, text.n) != 1 ||
	    EVP_DigestFinal_ex(c, out, &n) != 1)
		fail();
	EVP_MD_CTX_free(c);
	return n;
}

void
pbkdf2_sha512(const uint8_t salt[PBKDF2_SALT], uint32_t iterations, struct span text,
    uint8_t out[PBKDF2_RESULT])
{
	OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(
		                    OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t) "SHA2-512", 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD,
		    text.n > 0 ? (void *)(uintptr_t)text.p : (void *)(uintptr_t) "", text.n),
		OSSL_PARAM_construct_octet_string(
		    OSSL_KDF_PARAM_SALT, (void *)(uintptr_t)salt, PBKDF2_SALT),
		OSSL_PARAM_construct_uint(OSSL_KDF_PARAM_ITER, &iterations),
		OSSL_PARAM_construct_end() };
	EVP_KDF_CTX *c = EVP_KDF_CTX_new(pbkdf2);

	if (c == NULL || EVP_KDF_derive(c, out, PBKDF2_RESULT, params) != 1)
		fail();
	EVP_KDF_CTX_free(c);
}

bool
mac_same(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
