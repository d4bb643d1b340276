/* SPDX-License-Identifier: Apache-2.0
 * /api/hermes/rights: what the user who asks may do, so that a console need not offer what would be refused. The patterns are
 * PCRE2, which browsers do not speak: what they say of a name is decided here. */
#include "broker/permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/access_lists.h"
#include "mgmt/acting.h"
#include "mgmt/request.h"

void
route_rights(struct request *r)
{
	listing_reply(r, &own_permission_list, NULL, &r->user->series);
}

/* Administrators see vhosts in which they may do nothing. */
void
route_rights_vhost(struct request *r)
{
	static const char *const names[PERM_KINDS] = {
		[PERM_CONFIGURE] = "configure", [PERM_WRITE] = "write", [PERM_READ] = "read"
	};
	const struct permission *p = permission_find(r->user, r->vhost);
	json_t *j = json_pack("{s:o, s:o}", "user", json_text(span_str(r->user->name)), "vhost",
	    json_text(span_str(r->vhost->name)));

	for (unsigned i = 0; i < PERM_KINDS; i++)
		json_object_set_new(
		    j, names[i], json_text(p != NULL ? span_str(p->text[i]) : SPAN_LIT("")));
	reply_json(r, 200, j);
}

static bool
may(const struct request *r, enum permission_kind kind, const char *what, struct span name)
{
	return permission_check_user(r->user, r->vhost, kind, what, name) == NULL;
}

static void
reply_rights(struct request *r, const char *what, struct span name)
{
	reply_json(r, 200,
	    json_pack("{s:b, s:b, s:b}", "configure", may(r, PERM_CONFIGURE, what, name), "write",
	        may(r, PERM_WRITE, what, name), "read", may(r, PERM_READ, what, name)));
}

void
route_rights_queue(struct request *r)
{
	reply_rights(r, "queue", request_arg(r, 1));
}

void
route_rights_exchange(struct request *r)
{
	reply_rights(r, "exchange", exchange_arg(r, 1));
}
