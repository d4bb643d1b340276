/* SPDX-License-Identifier: Apache-2.0
 * Accounts and logins.
 *
 * Passwords are kept as PBKDF2 with few iterations. They are checked on the core thread, where nothing may last over
 * 2 ms, and whoever guesses makes the node pay for it: so a guess costs 0.25 ms, not the 100 ms that a stolen file of
 * hashes would call for. There is no such file: accounts live in memory and come from the settings.
 *
 * Clients that reconnect in a loop, with the right password or a wrong one, cost a keyed code each: what was right is
 * remembered with the user, what was wrong in a small table. Both forget when a password is set. */
#include "broker/user.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/vhost.h"

enum { ITERATIONS = 1000, NAME_LEN_MAX = 255, PASSWORD_LEN_MAX = 1024, WRONG_ONES = 64 };

/* Logins that were wrong since the last password was set, at a place that follows from the code itself. */
static uint8_t wrong[WRONG_ONES][MAC_SIZE];

static void
set_password(struct user *u, const char *password)
{
	size_t n = password != NULL ? strlen(password) : 0;

	u->has_password = n > 0 && n <= PASSWORD_LEN_MAX;
	u->has_seen = false;
	memset(wrong, 0, sizeof wrong);
	if (!u->has_password) {
		log_warning("user '%s' has no password of 1 to %d bytes and cannot log in", u->name,
		    PASSWORD_LEN_MAX);
		return;
	}
	random_bytes(u->salt, sizeof u->salt);
	mac_password(password, n, u->salt, ITERATIONS, u->hash);
}

struct user *
user_add(
    struct broker *b, const char *name, const char *password, uint32_t tags, bool loopback_only)
{
	struct user *u = user_find(b, span_str(name));

	if (u == NULL) {
		u = xcalloc(1, sizeof *u);
		u->name = xstrdup(name);
		HASH_ADD_KEYPTR(hh, b->users, u->name, strlen(u->name), u);
	}
	u->tags = tags;
	u->loopback_only = loopback_only;
	set_password(u, password);
	return u;
}

struct user *
user_find(const struct broker *b, struct span name)
{
	struct user *u = NULL;

	HASH_FIND(hh, b->users, name.n > 0 ? (const void *)name.p : "", name.n, u);
	return u;
}

static void
add_administrator(struct broker *b, const char *name, const char *password, bool loopback_only)
{
	struct vhost *vh = vhost_find(b, SPAN_LIT("/"));

	(void)user_add(b, name, password, TAG_ADMINISTRATOR, loopback_only);
	if (vh != NULL)
		users_admit_administrators(b, vh);
}

void
users_admit_administrators(struct broker *b, struct vhost *vh)
{
	const struct error *e;

	for (struct user *u = b->users; u != NULL; u = u->hh.next) {
		if ((u->tags & TAG_ADMINISTRATOR) != 0 && !permission_vhost(u, vh) &&
		    (e = permission_set(u, vh, ".*", ".*", ".*")) != NULL)
			log_error("user '%s': %s", u->name, e->text);
	}
}

void
users_default(struct broker *b)
{
	const struct config *cfg = b->cfg;

	if (cfg->default_user != NULL) {
		add_administrator(
		    b, cfg->default_user, cfg->default_password, !cfg->default_user_remote);
		return;
	}
	add_administrator(b, "admin", "admin", true);
	add_administrator(b, "guest", "guest", true);
}

void
users_free(struct broker *b)
{
	struct user *u;

	while ((u = b->users) != NULL) {
		HASH_DEL(b->users, u);
		permissions_free(u);
		free(u->name);
		free(u);
	}
}

/* ---- login ---- */

/* A code that stands for name and password in this process. */
static void
login_code(struct span name, struct span password, uint8_t code[MAC_SIZE])
{
	uint8_t buf[1 + NAME_LEN_MAX + PASSWORD_LEN_MAX];

	buf[0] = (uint8_t)name.n;
	if (name.n > 0)
		memcpy(buf + 1, name.p, name.n);
	if (password.n > 0)
		memcpy(buf + 1 + name.n, password.p, password.n);
	mac_compute(buf, 1 + name.n + password.n, code);
	explicit_bzero(buf, sizeof buf);
}

/* The password is hashed for unknown names too, so that the time tells nobody which names there are. */
static bool
is_right(const struct user *u, struct span password)
{
	static const struct user nobody;
	const struct user *against = u != NULL && u->has_password ? u : &nobody;
	uint8_t hash[MAC_PASSWORD_SIZE];

	mac_password(password.p, password.n, against->salt, ITERATIONS, hash);
	return mac_same(hash, against->hash, sizeof hash) && against != &nobody;
}

static bool
check_password(struct user *u, struct span name, struct span password)
{
	uint8_t code[MAC_SIZE], *was_wrong;

	login_code(name, password, code);
	if (u != NULL && u->has_seen && mac_same(code, u->seen, sizeof code))
		return true;
	was_wrong = wrong[code[0] % WRONG_ONES];
	if (mac_same(code, was_wrong, sizeof code))
		return false;
	if (!is_right(u, password)) {
		memcpy(was_wrong, code, sizeof code);
		return false;
	}
	memcpy(u->seen, code, sizeof code);
	u->has_seen = true;
	return true;
}

struct user *
user_login(
    struct broker *b, struct span name, struct span password, bool loopback, const char **why)
{
	struct user *u = NULL;

	if (name.n > NAME_LEN_MAX || password.n > PASSWORD_LEN_MAX) {
		*why = "user name or password is too long";
	} else if (!check_password(u = user_find(b, name), name, password)) {
		*why = u == NULL ? "unknown user" : "wrong password";
	} else if (u->loopback_only && !loopback) {
		*why = "this user may log in from a loopback address only";
	} else {
		return u;
	}
	b->stats.login_failures++;
	return NULL;
}
