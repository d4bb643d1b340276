/* SPDX-License-Identifier: Apache-2.0
 * Logins.
 *
 * Clients that reconnect in a loop, with the right password or a wrong one, cost a keyed code each: what was right is
 * remembered with the user, what was wrong in a small table. A new password makes another code of an account, so that
 * both are forgotten with it.
 *
 * Whoever guesses has other passwords each time. Wrong ones, and names that there are not, cost a long hash on a worker
 * whatever the account's own hash is, so that the time tells nothing; failures are counted by address and by account,
 * and who has too many is refused without a look. What is right by memory gets in all the same, and nobody is kept out
 * of his account by what others do from elsewhere. */
#include "broker/login.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/log.h"
#include "base/mac.h"
#include "base/mem.h"
#include "base/worker.h"
#include "broker/broker.h"
#include "broker/hash.h"
#include "broker/name.h"
#include "broker/user.h"

enum {
	WRONG_ONES = 64,
	LOGINS_WAITING_MAX = 256,
	/* Failures of an address, or an account: so many at once, then one each FAIL_MS. */
	FAIL_BURST = 50,
	FAIL_MS = 200,
	FAIL_SLOTS = 1024
};

/* Where the failures of a login are counted. */
struct slots {
	uint32_t address, account;
};

/* A login whose password a worker looks at. */
struct login {
	struct worker_job job; /* first */
	struct broker *broker; /* borrowed: outlives its workers */
	login_done_fn *done;   /* NULL: nobody waits any more */
	void *arg;
	struct login **handle; /* the waiter's: cleared before done is called */
	bool is_right, loopback;
	struct slots slots;
	struct password password; /* as it was when the login came */
	size_t name_n, text_n;
	uint8_t name[NAME_BYTES_MAX], text[PASSWORD_LEN_MAX];
};

const char login_too_many[] = "too many failed logins";
const char login_too_busy[] = "too many passwords wait to be looked at";
const char login_loopback_only[] =
    "this user may log in from this machine only: give it another password there ('hermes user "
    "passwd'), or use another account";

/* Logins that were wrong, at a place that follows from the code itself. */
static uint8_t wrong[WRONG_ONES][MAC_SIZE];

/* When failures, one each FAIL_MS, will have been forgotten. Slots are shared by chance. */
static uint64_t address_until_ms[FAIL_SLOTS], account_until_ms[FAIL_SLOTS];

/* ---- what is remembered ---- */

/* A code that stands for name, hash and password in this process: a new password of the account is another code. */
static void
login_code(const struct user *u, struct span name, struct span password, uint8_t code[MAC_SIZE])
{
	uint8_t buf[1 + NAME_BYTES_MAX + PASSWORD_HASH_MAX + PASSWORD_LEN_MAX];
	size_t n = 0;

	buf[n++] = (uint8_t)name.n;
	memcpy(buf + n, SPAN_CHARS(name), name.n);
	n += name.n;
	if (u != NULL) {
		memcpy(buf + n, u->password.bytes, u->password.n);
		n += u->password.n;
	}
	memcpy(buf + n, SPAN_CHARS(password), password.n);
	n += password.n;
	mac_compute(buf, n, code);
	explicit_bzero(buf, sizeof buf);
}

/* ---- failures ---- */

static struct slots
slots_of(const struct credentials *c)
{
	return (struct slots){ (uint32_t)(hash_span(span_str(c->address)) % FAIL_SLOTS),
		(uint32_t)(hash_span(c->name) % FAIL_SLOTS) };
}

/* An account is closed only to addresses that have failed lately. */
static bool
fails_too_often(const struct broker *b, struct slots s)
{
	uint64_t full = b->now_ms + (uint64_t)FAIL_BURST * FAIL_MS;

	return address_until_ms[s.address] >= full ||
	       (account_until_ms[s.account] >= full && address_until_ms[s.address] > b->now_ms);
}

static void
count(uint64_t *until_ms, uint64_t now_ms)
{
	if (*until_ms < now_ms)
		*until_ms = now_ms;
	if (*until_ms < now_ms + (uint64_t)FAIL_BURST * FAIL_MS)
		*until_ms += FAIL_MS;
}

static void
failed(struct broker *b, struct slots s)
{
	count(&address_until_ms[s.address], b->now_ms);
	count(&account_until_ms[s.account], b->now_ms);
	b->stats.login_failures++;
}

/* ---- the end of a login ---- */

static struct user *
let_in(struct broker *b, struct user *u, const struct credentials *c, const char **why)
{
	login_code(u, c->name, c->password, u->seen);
	u->has_seen = true;
	if (!u->loopback_only || c->loopback) {
		b->stats.logins++;
		return u;
	}
	*why = login_loopback_only;
	b->stats.login_failures++;
	return NULL;
}

static void
turn_away(
    struct broker *b, struct user *u, const struct credentials *c, struct slots s, const char **why)
{
	uint8_t code[MAC_SIZE];

	login_code(u, c->name, c->password, code);
	memcpy(wrong[code[0] % WRONG_ONES], code, sizeof code);
	*why = u == NULL ? "unknown user" : "wrong password";
	failed(b, s);
}

/* What can be said without looking at the password. True: *user or *why is the answer. */
static bool
is_remembered(struct broker *b, struct user *u, const struct credentials *c, struct user **user,
    const char **why)
{
	uint8_t code[MAC_SIZE];

	login_code(u, c->name, c->password, code);
	if (u != NULL && u->has_seen && mac_same(code, u->seen, sizeof code)) {
		*user = let_in(b, u, c, why);
		return true;
	}
	if (!mac_same(code, wrong[code[0] % WRONG_ONES], sizeof code))
		return false;
	*user = NULL;
	*why = u == NULL ? "unknown user" : "wrong password";
	b->stats.login_failures++;
	return true;
}

/* ---- on a worker ---- */

/* The long hash is made even where nothing can come of it. */
static bool
is_right(const struct password *p, struct span text)
{
	static const struct password nobody = { .kind = PASSWORD_PBKDF2,
		.n = PASSWORD_HASH_MAX,
		.bytes = { 0, 0, PASSWORD_COST >> 8, PASSWORD_COST & 0xff } };
	bool right = password_is(p, text), more = !password_is_slow(p->kind);

	if (!right && more && password_is(&nobody, text))
		return false;
	return right;
}

static void
look(struct worker_job *job)
{
	struct login *l = container_of(job, struct login, job);

	l->is_right = is_right(&l->password, span_of(l->text, l->text_n));
}

static bool
same_password(const struct password *a, const struct password *b)
{
	return a->kind == b->kind && a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

static void
looked(struct worker_job *job)
{
	struct login *l = container_of(job, struct login, job);
	struct broker *b = l->broker;
	const struct credentials c = { .name = span_of(l->name, l->name_n),
		.password = span_of(l->text, l->text_n),
		.loopback = l->loopback };
	struct user *u = user_find(b, c.name);
	const char *why = "";

	b->logins_waiting--;
	if (l->done != NULL) {
		*l->handle = NULL;
		/* Meanwhile the account may have gone, or have another password. */
		if (u != NULL && l->is_right && same_password(&u->password, &l->password)) {
			u = let_in(b, u, &c, &why);
		} else {
			turn_away(b, u, &c, l->slots, &why);
			u = NULL;
		}
		l->done(l->arg, u, why);
	}
	explicit_bzero(l->text, sizeof l->text);
	free(l);
}

/* password: the account's, or none. */
static struct login *
hand_over(struct broker *b, const struct password *p, const struct credentials *c, struct slots s)
{
	struct login *l = xcalloc(1, sizeof *l);

	l->broker = b;
	l->slots = s;
	l->loopback = c->loopback;
	l->password = *p;
	l->name_n = c->name.n;
	memcpy(l->name, SPAN_CHARS(c->name), c->name.n);
	l->text_n = c->password.n;
	memcpy(l->text, SPAN_CHARS(c->password), c->password.n);
	l->job.run = look;
	l->job.done = looked;
	b->logins_waiting++;
	workers_submit(b->hashers, &l->job);
	return l;
}

/* ---- the beginning ---- */

struct user *
login_begin(struct broker *b, const struct credentials *c, login_done_fn *done, void *arg,
    struct login **later, const char **why)
{
	static const struct password none = { .kind = PASSWORD_NONE };
	struct slots s = slots_of(c);
	const struct password *p;
	struct user *u, *found;

	*later = NULL;
	if (c->name.n > NAME_BYTES_MAX || c->password.n > PASSWORD_LEN_MAX) {
		*why = "user name or password is too long";
		failed(b, s);
		return NULL;
	}
	u = user_find(b, c->name);
	if (is_remembered(b, u, c, &found, why))
		return found;
	if (fails_too_often(b, s)) {
		*why = login_too_many;
		bound_reached(BOUND_failed_logins);
		b->stats.login_failures++;
		return NULL;
	}
	p = u != NULL ? &u->password : &none;
	if (!password_is_slow(p->kind) && password_is(p, c->password))
		return let_in(b, u, c, why);
	if (b->hashers == NULL) {
		if (is_right(p, c->password))
			return let_in(b, u, c, why);
		turn_away(b, u, c, s, why);
		return NULL;
	}
	if (b->logins_waiting >= LOGINS_WAITING_MAX) {
		*why = login_too_busy;
		b->stats.logins_dropped++;
		return NULL;
	}
	*later = hand_over(b, p, c, s);
	(*later)->done = done;
	(*later)->arg = arg;
	(*later)->handle = later;
	return NULL;
}

struct user *
login_proved(struct broker *b, struct span name, bool loopback, const char **why)
{
	struct user *u = name.n <= NAME_BYTES_MAX ? user_find(b, name) : NULL;

	if (u != NULL && (!u->loopback_only || loopback)) {
		b->stats.logins++;
		return u;
	}
	*why = u == NULL ? "unknown user" : login_loopback_only;
	b->stats.login_failures++;
	return NULL;
}

void
login_cancel(struct login **lp)
{
	struct login *l = *lp;

	*lp = NULL;
	if (l != NULL)
		l->done = NULL;
}
