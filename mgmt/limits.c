/* SPDX-License-Identifier: Apache-2.0
 * /api/vhost-limits and /api/user-limits. */
#include "broker/limits.h"

#include "broker/broker.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/access_json.h"
#include "mgmt/access_lists.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"

/* {"value": n} as {NAME: n}; NULL after having answered. The caller's. */
static json_t *
take(struct request *r)
{
	json_t *value = json_object_get(r->body, "value"), *o;

	if (value == NULL) {
		reply_bad(r, "[{key_missing,value}]: the body has to have 'value'");
		return NULL;
	}
	o = json_object();
	if (json_object_set(o, r->args[1].p, value) == 0)
		return o;
	json_decref(o);
	reply_bad(r, "the name of the limit is no UTF-8");
	return NULL;
}

/* --- of vhosts --------------------------------------------------------------------------- */

void
route_vhost_limits_all(struct request *r)
{
	listing_reply(r, &vhost_limit_list, NULL, NULL);
}

void
route_vhost_limits(struct request *r)
{
	listing_reply(r, &vhost_limit_list, r->vhost, &r->vhost->series);
}

void
route_vhost_limit_put(struct request *r)
{
	char why[ACCESS_REASON_MAX];
	json_t *limits = take(r);

	if (limits == NULL)
		return;
	if (limits_set_json(r->vhost, NULL, limits, why, sizeof why)) {
		note_vhost_limits(r, r->vhost);
		reply_done(r, 204);
	} else {
		reply_bad(r, "%s", why);
	}
	json_decref(limits);
}

void
route_vhost_limit_delete(struct request *r)
{
	enum vhost_limit which = vhost_limit_find(request_arg(r, 1));

	note_vhost_limits(r, r->vhost);
	if (which < VHOST_LIMITS)
		vhost_limit_clear(r->vhost, which);
	reply_done(r, 204);
}

/* --- of users ------------------------------------------------------------------------------ */

void
route_user_limits_all(struct request *r)
{
	listing_reply(r, &user_limit_list, NULL, NULL);
}

void
route_user_limits(struct request *r)
{
	const struct user *u = user_find(r->m->broker, request_arg(r, 0));

	if (u == NULL)
		reply_not_found(r);
	else
		listing_reply(r, &user_limit_list, NULL, &u->series);
}

void
route_user_limit_put(struct request *r)
{
	struct user *u = user_find(r->m->broker, request_arg(r, 0));
	char why[ACCESS_REASON_MAX];
	json_t *limits = take(r);

	if (limits == NULL)
		return;
	if (u == NULL) {
		reply_bad(r, "{no_such_user,<<\"%s\">>}: there is no such user", r->args[0].p);
	} else if (limits_set_json(NULL, u, limits, why, sizeof why)) {
		note_user_limits(r, u);
		reply_done(r, 204);
	} else {
		reply_bad(r, "%s", why);
	}
	json_decref(limits);
}

void
route_user_limit_delete(struct request *r)
{
	struct user *u = user_find(r->m->broker, request_arg(r, 0));
	enum user_limit which = user_limit_find(request_arg(r, 1));

	if (u == NULL) {
		reply_not_found(r);
		return;
	}
	note_user_limits(r, u);
	if (which < USER_LIMITS)
		user_limit_clear(u, which);
	reply_done(r, 204);
}
