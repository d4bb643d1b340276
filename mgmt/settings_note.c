/* SPDX-License-Identifier: Apache-2.0
 * Changes that the settings undo: see the header. */
#include "mgmt/settings_note.h"

#include <stdio.h>

#include "base/log.h"
#include "broker/broker.h"
#include "broker/policy.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/request.h"

enum { WHAT_MAX = 640 }; /* two names and some words */

/* Whether the settings have it, which is then said. */
static bool
note(const struct broker *b, struct request *r, uint32_t named, const char *what, const char *with,
    bool goes)
{
	static struct log_limit limit = { .burst = 20 };
	struct log_who who = { .peer = NULL };

	if (named == 0 || named != b->settings_read)
		return false;
	if (r != NULL) {
		who = (struct log_who){ .peer = r->peer.host, .user = r->user_name };
		reply_header_once(r, "X-Hermes-Note",
		    goes ? "it stands in the settings of the node, too, and comes back at the "
		           "next SIGHUP or start: delete it there"
		         : "it stands in the settings of the node, too, and what is there comes "
		           "back at the next SIGHUP or start: change it there");
	}
	if (log_allowed(&limit))
		log_line(LOG_WARNING, &who,
		    "%s stands in %s%s; what is there comes back at the next SIGHUP or start: %s "
		    "it there",
		    what, b->settings_file != NULL ? b->settings_file : "the settings", with,
		    goes ? "delete" : "change");
	return true;
}

static bool
note_of_user(struct request *r, const struct user *u, uint32_t named, const char *with, bool goes)
{
	char what[WHAT_MAX];

	(void)snprintf(what, sizeof what, "user '%s'", u->name);
	return note(u->broker, r, named, what, with, goes);
}

static bool
note_of_vhost(
    struct request *r, const struct vhost *vh, uint32_t named, const char *with, bool goes)
{
	char what[WHAT_MAX];

	(void)snprintf(what, sizeof what, "vhost '%s'", vh->name);
	return note(vh->broker, r, named, what, with, goes);
}

void
note_user(struct request *r, struct user *u, bool goes)
{
	u->in_settings.is_changed |= note_of_user(r, u, u->in_settings.object, "", goes);
}

void
note_permissions(struct request *r, struct user *u)
{
	u->in_settings.rights_changed |=
	    note_of_user(r, u, u->in_settings.rights, " with permissions", false);
}

void
note_user_limits(struct request *r, const struct user *u)
{
	(void)note_of_user(r, u, u->in_settings.limits, " with limits", false);
}

void
note_vhost(struct request *r, struct vhost *vh, bool goes)
{
	vh->in_settings.is_changed |= note_of_vhost(r, vh, vh->in_settings.object, "", goes);
}

void
note_vhost_limits(struct request *r, const struct vhost *vh)
{
	(void)note_of_vhost(r, vh, vh->in_settings.limits, " with limits", false);
}

void
note_policy(struct request *r, const struct policy *p, bool goes)
{
	char what[WHAT_MAX];

	(void)snprintf(what, sizeof what, "%s '%s' of vhost '%s'",
	    p->kind == POLICY_USER ? "policy" : "operator policy", p->name, p->vhost->name);
	(void)note(p->vhost->broker, r, p->in_settings, what, "", goes);
}
