/* SPDX-License-Identifier: Apache-2.0
 * Kinds of hashes of passwords. */
#include "base/password.h"

#include <string.h>

#include "base/mac.h"
#include "base/random.h"

enum {
	SALT = 4, /* RabbitMQ's */
	COST_SIZE = 4,
	PBKDF2_SIZE = COST_SIZE + PBKDF2_SALT + PBKDF2_RESULT
};

static const struct {
	const char *name;
	enum digest digest; /* DIGESTS: it is none */
} kinds[PASSWORD_KINDS] = {
	[PASSWORD_NONE] = { "", DIGESTS },
	[PASSWORD_SHA256] = { "rabbit_password_hashing_sha256", DIGEST_SHA256 },
	[PASSWORD_SHA512] = { "rabbit_password_hashing_sha512", DIGEST_SHA512 },
	[PASSWORD_MD5] = { "rabbit_password_hashing_md5", DIGEST_MD5 },
	[PASSWORD_PBKDF2] = { "hermes_password_hashing_pbkdf2_sha512", DIGESTS },
};

void
password_init(void)
{
	digest_init();
}

void
password_make(struct password *p, enum password_kind kind, struct span text, uint32_t cost)
{
	uint8_t *salt = p->bytes + (kind == PASSWORD_PBKDF2 ? COST_SIZE : 0);

	p->kind = kind;
	p->n = 0;
	if (kind == PASSWORD_NONE)
		return;
	random_bytes(salt, kind == PASSWORD_PBKDF2 ? PBKDF2_SALT : SALT);
	if (kind == PASSWORD_PBKDF2) {
		put_be32(p->bytes, cost);
		pbkdf2_sha512(salt, cost, text, salt + PBKDF2_SALT);
		p->n = PBKDF2_SIZE;
	} else {
		p->n = SALT + (uint32_t)digest_salted(
		                  kinds[kind].digest, span_of(salt, SALT), text, salt + SALT);
	}
}

bool
password_is(const struct password *p, struct span text)
{
	uint8_t out[DIGEST_SIZE_MAX];
	size_t n;

	if (p->kind == PASSWORD_NONE || p->n <= SALT)
		return false;
	if (p->kind == PASSWORD_PBKDF2) {
		pbkdf2_sha512(p->bytes + COST_SIZE, get_be32(p->bytes), text, out);
		return mac_same(out, p->bytes + COST_SIZE + PBKDF2_SALT, PBKDF2_RESULT);
	}
	n = digest_salted(kinds[p->kind].digest, span_of(p->bytes, SALT), text, out);
	return n > 0 && p->n == SALT + n && mac_same(out, p->bytes + SALT, n);
}

bool
password_from(struct password *p, enum password_kind kind, struct span bytes)
{
	if (bytes.n > PASSWORD_HASH_MAX || (kind == PASSWORD_NONE && bytes.n > 0))
		return false;
	if (kind == PASSWORD_PBKDF2 && (bytes.n != PBKDF2_SIZE || get_be32(bytes.p) == 0 ||
	                                   get_be32(bytes.p) > PASSWORD_COST_MAX))
		return false;
	*p = (struct password){ .kind = kind, .n = (uint32_t)bytes.n };
	if (bytes.n > 0)
		memcpy(p->bytes, bytes.p, bytes.n);
	return true;
}

const char *
password_kind_name(enum password_kind kind)
{
	return kinds[kind].name;
}

enum password_kind
password_kind_find(struct span name)
{
	for (size_t i = PASSWORD_NONE + 1; i < COUNT_OF(kinds); i++)
		if (span_is(name, kinds[i].name))
			return (enum password_kind)i;
	return PASSWORD_KINDS;
}
