/* SPDX-License-Identifier: Apache-2.0
 * AES-256-CBC and HMAC-SHA256, which is how RFC 5077 (section 4) has them and OpenSSL's own tickets are made. */
#include "net/tls_tickets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/mem.h"
#include "base/random.h"

enum { NAME = 16, IV = 16, SECRET = 32 }; /* bytes */
enum { CURRENT, BEFORE, KEYS };
enum { NO_KEY, OPENED, OPENED_RENEW, FAILED = -1 }; /* what OpenSSL wants to hear */

struct key {
	uint8_t name[NAME]; /* stands in the ticket */
	uint8_t cipher[SECRET], mac[SECRET];
};

struct tls_tickets {
	pthread_mutex_t lock; /* for what follows */
	unsigned count;
	struct key key[KEYS];
};

void
tls_tickets_next(struct tls_tickets *t)
{
	struct key fresh;

	random_bytes(&fresh, sizeof fresh);
	pthread_mutex_lock(&t->lock);
	t->key[BEFORE] = t->key[CURRENT];
	t->key[CURRENT] = fresh;
	if (t->count < KEYS)
		t->count++;
	pthread_mutex_unlock(&t->lock);
	OPENSSL_cleanse(&fresh, sizeof fresh);
}

struct tls_tickets *
tls_tickets_new(void)
{
	struct tls_tickets *t = xcalloc(1, sizeof *t);

	if (pthread_mutex_init(&t->lock, NULL) != 0)
		abort();
	tls_tickets_next(t);
	return t;
}

void
tls_tickets_free(struct tls_tickets **tp)
{
	struct tls_tickets *t = *tp;

	if (t == NULL)
		return;
	*tp = NULL;
	pthread_mutex_destroy(&t->lock);
	OPENSSL_cleanse(t->key, sizeof t->key);
	free(t);
}

/* The current one, or the one with that name. Which it is, or KEYS: there is none. */
static unsigned
get_key(struct tls_tickets *t, const uint8_t *name, struct key *out)
{
	unsigned i = CURRENT;

	pthread_mutex_lock(&t->lock);
	while (name != NULL && i < t->count && memcmp(t->key[i].name, name, NAME) != 0)
		i++;
	if (i < t->count)
		*out = t->key[i];
	else
		i = KEYS;
	pthread_mutex_unlock(&t->lock);
	return i;
}

static bool
set_key(const struct key *k, const uint8_t *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seals)
{
	char digest[] = "SHA256";
	uint8_t secret[SECRET];
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_octet_string(
		                          OSSL_MAC_PARAM_KEY, secret, sizeof secret),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end() };
	bool fine;

	memcpy(secret, k->mac, sizeof secret);
	fine = EVP_MAC_CTX_set_params(mac, params) == 1 &&
	       EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, k->cipher, iv, seals) == 1;
	OPENSSL_cleanse(secret, sizeof secret);
	return fine;
}

/* On any thread. A ticket without a key is no mistake: the handshake is a whole one. */
static int
on_ticket(SSL *ssl, uint8_t *name, uint8_t *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seals)
{
	struct tls_tickets *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct key k;
	unsigned which = get_key(t, seals ? NULL : name, &k);
	int answer = which == CURRENT ? OPENED : OPENED_RENEW;

	if (which == KEYS)
		return NO_KEY;
	if (seals) {
		memcpy(name, k.name, NAME);
		random_bytes(iv, IV);
	}
	if (!set_key(&k, iv, cipher, mac, seals))
		answer = FAILED;
	OPENSSL_cleanse(&k, sizeof k);
	return answer;
}

bool
tls_tickets_use(struct tls_tickets *t, SSL_CTX *ctx)
{
	return SSL_CTX_set_app_data(ctx, t) == 1 &&
	       SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket) == 1;
}
