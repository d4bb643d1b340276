/* SPDX-License-Identifier: Apache-2.0
 * The one function by which anybody logs in, and what guessing costs. */
#ifndef BROKER_LOGIN_H
#define BROKER_LOGIN_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/bytes.h"

struct broker;
struct login;
struct user;

struct credentials {
	struct span name, password;
	const char *address;	/* of the peer, without port: failures are counted by it */
	bool loopback;		/* the real peer address is on loopback */
};

/* Of the reasons, those that pass: whoever asks may come again. */
extern const char login_too_many[], login_too_busy[];
/* The password was right. */
extern const char login_loopback_only[];

/* user NULL: refused, *why (static text) for the log. Not called after login_cancel(). */
typedef void login_done_fn(void *arg, struct user *user, const char *why);

/* The user, or NULL with the reason for the log in *why (static text), or, where the password has to be hashed for some
 * time, NULL with *later: then done is called in another turn, once. Costs the same for unknown names as for wrong
 * passwords. Cheap when repeated, right or wrong (a memory keyed per process). later: a place that stays until done or
 * login_cancel() is called. */
struct user *login_begin(struct broker *b, const struct credentials *c, login_done_fn *done, void *arg,
    struct login **later, const char **why);
/* Somebody whose name was proved otherwise (a certificate). NULL: refused, *why (static text) for the log. */
struct user *login_proved(struct broker *b, struct span name, bool loopback, const char **why);
/* Nobody waits for it any more. */
void login_cancel(struct login **lp);

#endif
