/* SPDX-License-Identifier: Apache-2.0
 * What operators make, written into documents in RabbitMQ's shape: for lists, single objects and definitions. */
#ifndef MGMT_ACCESS_OUT_H
#define MGMT_ACCESS_OUT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "mgmt/json_out.h"

struct limit;
struct parameter;
struct permission;
struct policy;
struct tags;
struct topic_permission;
struct user;
struct vhost;

/* Each is one value. */
void out_tags(struct json_out *o, const struct tags *t);
/* with_place: from where it may log in, too, which definitions do not say. */
void out_user(struct json_out *o, const struct user *u, bool with_place);
void out_permission(struct json_out *o, const struct permission *p);
void out_topic_permission(struct json_out *o, const struct topic_permission *p);
void out_vhost_limits(struct json_out *o, const struct vhost *vh); /* {"max-queues": 5}; {}: none is set */
void out_user_limits(struct json_out *o, const struct user *u);
void out_policy(struct json_out *o, const struct policy *p, bool with_vhost);
void out_parameter(struct json_out *o, const struct parameter *p); /* a global one has name and value only */
/* What RabbitMQ keeps as parameters: a vhost's limits, and a policy. */
void out_limits_parameter(struct json_out *o, const struct vhost *vh);
void out_policy_parameter(struct json_out *o, const struct policy *p);

#endif
