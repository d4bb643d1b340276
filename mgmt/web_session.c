/* SPDX-License-Identifier: Apache-2.0
 * A token is the number of a place in the table and 16 random bytes, of which the place keeps a keyed code: where it is
 * compared takes the same time for every wrong one. */
#include "mgmt/web_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/bytes.h"
#include "base/mac.h"
#include "base/mem.h"
#include "base/random.h"
#include "broker/user.h"

struct web_session {
	char *user; /* owned; NULL: free */
	uint64_t id;
	uint64_t user_id;           /* one of the same name that is made later is another */
	uint8_t code[MAC_SIZE];     /* of the token */
	uint8_t password[MAC_SIZE]; /* of what the account has as its password */
	uint64_t used_ms;
};

struct web_sessions {
	const struct broker *broker; /* borrowed */
	uint64_t begun;
	struct web_session session[SESSIONS_MAX];
};

struct web_sessions *
web_sessions_new(const struct broker *b)
{
	struct web_sessions *s = xcalloc(1, sizeof *s);

	s->broker = b;
	return s;
}

static void
forget(struct web_session *one)
{
	free(one->user);
	*one = (struct web_session){ 0 };
}

void
web_sessions_free(struct web_sessions **sp)
{
	if (*sp == NULL)
		return;
	for (unsigned i = 0; i < SESSIONS_MAX; i++)
		forget(&(*sp)->session[i]);
	free(*sp);
	*sp = NULL;
}

static void
password_code(const struct user *u, uint8_t code[MAC_SIZE])
{
	mac_compute(u->password.bytes, u->password.n, code);
}

/* A free place; or the one used longest ago, of the user's own where it has many. */
static unsigned
place_for(const struct web_sessions *s, const char *user)
{
	unsigned mine = 0, oldest_mine = 0, oldest = 0;

	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		const struct web_session *one = &s->session[i];

		if (one->used_ms < s->session[oldest].used_ms)
			oldest = i;
		if (one->user == NULL || strcmp(one->user, user) != 0)
			continue;
		if (mine++ == 0 || one->used_ms < s->session[oldest_mine].used_ms)
			oldest_mine = i;
	}
	return mine >= SESSIONS_OF_USER ? oldest_mine : oldest;
}

void
web_session_begin(
    struct web_sessions *s, const struct user *u, uint64_t now_ms, char token[SESSION_TOKEN_SIZE])
{
	unsigned i = place_for(s, u->name);
	struct web_session *one = &s->session[i];
	char secret[RANDOM_NAME_SIZE];

	if (one->user != NULL)
		bound_reached(BOUND_web_sessions);
	random_name(secret);
	(void)snprintf(token, SESSION_TOKEN_SIZE, "%04u.%s", i, secret);
	forget(one);
	one->user = xstrdup(u->name);
	/* its place, and which one there: found without a search */
	one->id = ++s->begun * SESSIONS_MAX + i;
	one->user_id = u->id;
	one->used_ms = now_ms;
	mac_compute(token, strlen(token), one->code);
	password_code(u, one->password);
}

static struct web_session *
find(struct web_sessions *s, const char *token)
{
	uint8_t code[MAC_SIZE];
	unsigned i;

	if (strlen(token) >= SESSION_TOKEN_SIZE || sscanf(token, "%4u.", &i) != 1 ||
	    i >= SESSIONS_MAX)
		return NULL;
	mac_compute(token, strlen(token), code);
	if (s->session[i].user == NULL || !mac_same(code, s->session[i].code, sizeof code))
		return NULL;
	return &s->session[i];
}

struct user *
web_session_user(struct web_sessions *s, const char *token, uint64_t now_ms)
{
	struct web_session *one = find(s, token);
	uint8_t code[MAC_SIZE];
	struct user *u;

	if (one == NULL)
		return NULL;
	u = user_find(s->broker, span_str(one->user));
	if (u != NULL)
		password_code(u, code);
	if (u == NULL || u->id != one->user_id || !mac_same(code, one->password, sizeof code) ||
	    now_ms > one->used_ms + SESSION_IDLE_MS) {
		forget(one);
		return NULL;
	}
	one->used_ms = now_ms;
	return u;
}

uint64_t
web_session_id(struct web_sessions *s, const char *token)
{
	const struct web_session *one = find(s, token);

	return one != NULL ? one->id : 0;
}

bool
web_session_is_open(const struct web_sessions *s, uint64_t id, uint64_t now_ms)
{
	const struct web_session *one = &s->session[id % SESSIONS_MAX];

	return one->user != NULL && one->id == id && now_ms <= one->used_ms + SESSION_IDLE_MS;
}

void
web_session_end(struct web_sessions *s, const char *token)
{
	struct web_session *one = find(s, token);

	if (one != NULL)
		forget(one);
}
