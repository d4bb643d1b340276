/* SPDX-License-Identifier: Apache-2.0
 * /api/vhosts: virtual hosts. */
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/about.h"
#include "mgmt/access_json.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/nodes.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"
#include "mgmt/vhost_doc.h"

void
route_vhosts(struct request *r)
{
	listing_reply(r, &vhost_list, NULL, NULL);
}

void
route_vhost(struct request *r)
{
	reply_document(r, &vhost_list, r->vhost);
}

/* --- PUT ------------------------------------------------------------------------------ */

static int
take_bool(const json_t *j)
{
	if (json_is_boolean(j))
		return json_is_true(j);
	if (json_is_string(j) && strcmp(json_string_value(j), "true") == 0)
		return 1;
	return json_is_string(j) && strcmp(json_string_value(j), "false") == 0 ? 0 : -1;
}

static bool
is_text_or_none(const json_t *j)
{
	return j == NULL || json_is_string(j) || json_is_null(j);
}

/* False: it was answered. */
static bool
take_spec(struct request *r, struct vhost_spec *spec, struct span tag[TAGS_MAX])
{
	const json_t *tags = json_object_get(r->body, "tags"),
	             *tracing = json_object_get(r->body, "tracing"),
	             *type = json_object_get(r->body, "default_queue_type");

	if (type == NULL)
		type = json_object_get(r->body, "defaultqueuetype"); /* rabbitmqadmin's spelling */
	if (!is_text_or_none(json_object_get(r->body, "description")) || !is_text_or_none(type)) {
		reply_bad(r, "description and default_queue_type are texts");
		return false;
	}
	*spec =
	    (struct vhost_spec){ .description = json_span(json_object_get(r->body, "description")),
		    .default_queue_type = json_span(type),
		    .tracing = tracing != NULL ? take_bool(tracing) : -1 };
	if (tags != NULL && !tags_of_json(tags, tag, &spec->tag_count)) {
		reply_bad(r, "tags are neither a text nor a list of at most %d texts", TAGS_MAX);
		return false;
	}
	if (tags != NULL)
		spec->tag = tag;
	if (tracing != NULL && spec->tracing < 0) {
		reply_bad(r, "tracing is neither true nor false");
		return false;
	}
	return true;
}

/* Whoever makes one may do everything in it. */
void
route_vhost_put(struct request *r)
{
	struct span tag[TAGS_MAX];
	const struct error *e;
	struct vhost_spec spec;
	struct vhost *vh;
	bool created;

	if (!take_spec(r, &spec, tag))
		return;
	e = vhost_set(r->m->broker, request_arg(r, 0), &spec, &vh, &created);
	if (e == NULL && created)
		e = permission_set(r->user, vh, ".*", ".*", ".*");
	if (e != NULL) {
		reply_refused(r, e);
		return;
	}
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "vhost '%s' is %s", vh->name, created ? "made" : "changed");
	if (spec.description.p != NULL || spec.default_queue_type.p != NULL || spec.tag != NULL)
		note_vhost(r, vh, false);
	reply_done(r, created ? 201 : 204);
}

void
route_vhost_delete(struct request *r)
{
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "vhost '%s' is deleted", r->vhost->name);
	note_vhost(r, r->vhost, true);
	vhost_clear(r->vhost);
	reply_done(r, 204);
}

/* It runs already, as long as the node does. */
void
route_vhost_start(struct request *r)
{
	if (node_is(r->m, request_arg(r, 1)))
		reply_empty(r, 204);
	else
		reply_bad(r, "Request to node %s failed with nodedown", r->args[1].p);
}
