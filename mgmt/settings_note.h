/* SPDX-License-Identifier: Apache-2.0
 * A line in the log, and the header X-Hermes-Note of the answer, when something is changed that the settings name: they win
 * the next time they are read, which nobody should have to find out. */
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
void note_user(struct request *r, struct user *u, bool goes);
void note_permissions(struct request *r, struct user *u);
void note_user_limits(struct request *r, const struct user *u);
void note_vhost(struct request *r, struct vhost *vh, bool goes);
void note_vhost_limits(struct request *r, const struct vhost *vh);
void note_policy(struct request *r, const struct policy *p, bool goes);

#endif
