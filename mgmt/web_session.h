/* SPDX-License-Identifier: Apache-2.0
 * Logins of the console: a random token in a cookie stands for a user, never the password. Kept in memory, in a table of
 * fixed size; over it whoever did nothing longest has to log in again. */
#ifndef MGMT_WEB_SESSION_H
#define MGMT_WEB_SESSION_H

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct web_sessions;
struct user;

enum {
	SESSIONS_MAX = 1024,
	SESSIONS_OF_USER = 64,
	SESSION_IDLE_MS = 8 * 3600 * 1000, /* RabbitMQ's management.login_session_timeout: 8 h */
	SESSION_TOKEN_SIZE = 48		   /* with NUL */
};

struct web_sessions *web_sessions_new(const struct broker *b);
void web_sessions_free(struct web_sessions **sp);

void web_session_begin(struct web_sessions *s, const struct user *u, uint64_t now_ms, char token[SESSION_TOKEN_SIZE]);
/* The user that the token stands for; NULL: it stands for nobody, or no longer, or the user is another one meanwhile or has
 * another password. */
struct user *web_session_user(struct web_sessions *s, const char *token, uint64_t now_ms);
/* Which login it is, for answers that go on: 0 where the token stands for nobody. */
uint64_t web_session_id(struct web_sessions *s, const char *token);
/* Has this one not ended? Looking at it does not keep it. */
bool web_session_is_open(const struct web_sessions *s, uint64_t id, uint64_t now_ms);
void web_session_end(struct web_sessions *s, const char *token);

#endif
