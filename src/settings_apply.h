/* SPDX-License-Identifier: Apache-2.0
 * The broker is given what the lists of the settings say: at the start, and again on SIGHUP. Each entry is tried; one that
 * the broker refuses is a problem with its line, and the rest goes on.
 *
 * Users and policies belong to the settings that name them: what is not in the list any more goes, unless somebody else has
 * set it since. A file without the list takes nobody away: it may be another one, or half written. Vhosts, exchanges, queues and bindings are made, or changed, but never deleted.
 *
 * Passwords whose hash is slow are compared and made on workers: a password that has not changed keeps its hash. */
#ifndef SETTINGS_APPLY_H
#define SETTINGS_APPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct broker;
struct problems;
struct settings;
struct settings_apply;

/* All are borrowed until settings_apply_free(). */
struct settings_apply *settings_apply_new(struct broker *b, const struct settings *s, struct problems *p) MUSTUSE;
/* Goes on for about budget_us. True: all is done. False may also mean that it waits for a worker. */
bool settings_apply_run(struct settings_apply *a, uint64_t budget_us);
bool settings_apply_waits(const struct settings_apply *a);
/* Also one that is not done: the rest is left out. */
void settings_apply_free(struct settings_apply **ap);

/* All at once, in a broker without workers that nobody logs in to: a trial. Entries with a mistake are made as far as others
 * need them, and nothing more is said of them; with p->is_partial, nothing of what seems to be missing. */
void settings_declare(const struct settings *s, struct broker *b, struct problems *p);

/* ---- settings_access.c: who may do what ---- */

struct password_work;
struct settings_item;
struct vhost;

/* What is to be done about the password of an entry, begun; NULL: nothing, the entry has a hash. Owned by the caller. */
struct password_work *password_work_begin(struct broker *b, const struct settings_item *t);
bool password_work_is_done(const struct password_work *w);
void password_work_end(struct password_work **wp); /* also before it is done */

/* The user of the entry, with tags, limits and permissions. w: done, or NULL. */
void settings_apply_user(struct broker *b, const struct settings_item *t, const struct password_work *w,
    struct problems *p);
/* kind: of enum policy_kind. */
void settings_apply_policy(struct broker *b, int kind, const struct settings_item *t, struct problems *p);
void settings_apply_vhost(struct broker *b, const struct settings_item *t, struct problems *p);

/* Takes away some users or policies that the settings had and do not have any more. False: there is none. */
bool settings_drop_some(struct broker *b, const struct settings *s);

/* The vhost of an entry; NULL: there is none, which was noted. */
struct vhost *settings_vhost_of(struct broker *b, const struct settings_item *t, const char *name, struct problems *p);

#endif
