/* SPDX-License-Identifier: Apache-2.0
 * Lists of what operators make: users, permissions, limits, policies, parameters; in the order in which they were made. */
#ifndef MGMT_ACCESS_LISTS_H
#define MGMT_ACCESS_LISTS_H

#include "broker/policy.h"
#include "mgmt/listing.h"

extern const struct listing_source user_list, user_without_permissions_list;	/* users */
/* Users: all, or of one (`only`); with a peer, in this vhost only. */
extern const struct listing_source permission_list, topic_permission_list;
extern const struct listing_source own_permission_list; /* those of the user who asks (`only`), whoever that is */
/* A vhost. */
extern const struct listing_source vhost_permission_list, vhost_topic_permission_list;
extern const struct listing_source user_limit_list, vhost_limit_list;	/* users; vhosts: those that have any */
extern const struct listing_source policy_lists[POLICY_KINDS];	/* vhosts */
/* Vhosts, with policies and limits as RabbitMQ has them: of the component that is named (scope.owner), or of all but
 * policies. */
extern const struct listing_source parameter_list;
extern const struct listing_source global_parameter_list;	/* the node */

/* One of parameter_list, for reply_document(): of this vhost, component and name. NULL: there is none. */
void *parameter_item(const struct vhost *vh, struct span component, struct span name);

#endif
