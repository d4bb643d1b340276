/* SPDX-License-Identifier: Apache-2.0
 * Who may do what, as JSON in RabbitMQ's shape: for the routes about it and for definitions. What a function returns is the
 * caller's. */
#ifndef MGMT_ACCESS_JSON_H
#define MGMT_ACCESS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/tags.h"

struct mgmt;
struct parameter;
struct permission;
struct topic_permission;
struct user;
struct vhost;

enum { ACCESS_REASON_MAX = 400 };

/* name, description, tags, default_queue_type (if it has one), metadata */
json_t *vhost_json(const struct vhost *vh) MUSTUSE;
json_t *tags_json(const struct tags *t) MUSTUSE;

/* Tags as clients send them: a text with commas, or a list of texts; borrowed from `tags`. False: they are neither, or too
 * many. */
bool tags_of_json(const json_t *tags, struct span tag[TAGS_MAX], uint32_t *count) MUSTUSE;

/* Sets limits of a vhost, or of a user (the other is NULL), from {"max-queues": 5, ...}: all of them, or none with the
 * reason in buf. */
bool limits_set_json(struct vhost *vh, struct user *u, const json_t *limits, char *buf, size_t n) MUSTUSE;
/* The same of a vhost, which then has no others: so RabbitMQ takes the parameter in which it keeps them. [] stands for {}:
 * it is what RabbitMQ exports where the last one was taken away. */
bool limits_replace_json(struct vhost *vh, const json_t *limits, char *buf, size_t n) MUSTUSE;

/* A value as RabbitMQ's refusals show it: JSON, but a text is <<"text">>. The caller's; NULL: it cannot be shown. */
char *json_term(const json_t *value) MUSTUSE;

#endif
