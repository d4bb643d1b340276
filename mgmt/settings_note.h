/* SPDX-License-Identifier: Apache-2.0
 * A line in the log when something is changed that the settings name: they win the next time they are read, which nobody
 * should have to find out. */
#ifndef MGMT_SETTINGS_NOTE_H
#define MGMT_SETTINGS_NOTE_H

#include <stdbool.h>

struct broker;
struct policy;
struct request;
struct user;
struct vhost;

/* Each says something only where the settings in force have it. r: who did it; NULL: an import. goes: it is deleted (said
 * before it is), or else it was changed. */
void note_user(const struct request *r, struct user *u, bool goes);
void note_permissions(const struct request *r, struct user *u);
void note_user_limits(const struct request *r, const struct user *u);
void note_vhost(const struct request *r, struct vhost *vh, bool goes);
void note_vhost_limits(const struct request *r, const struct vhost *vh);
void note_policy(const struct request *r, const struct policy *p, bool goes);

#endif
