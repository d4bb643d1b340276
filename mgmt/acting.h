/* SPDX-License-Identifier: Apache-2.0
 * What handlers that change things have in common: the client that a request acts as, and values of its body. */
#ifndef MGMT_ACTING_H
#define MGMT_ACTING_H

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "broker/client.h"
#include "broker/permission.h"

struct error;
struct exchange;
struct queue;
struct request;
struct table;

/* The user in the vhost, as the broker's checks want it; of no list, gone when the handler returns. */
void acting_client(struct client *c, const struct request *r);

/* A name in a path: "amq.default" is the default exchange. */
struct span exchange_arg(const struct request *r, unsigned i);
struct queue *queue_arg(const struct request *r, unsigned i); /* NULL: there is none */

/* The queue that the path names (second argument), if the user has this right to it, and it is nobody's exclusive one; NULL: it
 * was answered. */
struct queue *queue_for(struct request *r, struct client *client, enum permission_kind right);

/* body[name]: true, false, "true" or "false"; left out: `def`. False: it was answered. */
bool body_flag(struct request *r, const char *name, bool def, bool *out) MUSTUSE;
/* Arguments or headers as a table: json_to_table(), but null is refused, as RabbitMQ does where clients could not have sent
 * it. NULL, or what is wrong (static text). */
const char *arguments_of_json(const json_t *j, struct table **out) MUSTUSE;
/* body[name], an object, as a table: owned, NULL if empty. False: it was answered. */
bool body_table(struct request *r, const char *name, struct table **out) MUSTUSE;
/* Are all of these in the body? The names end with NULL. False: it was answered, in RabbitMQ's words. */
bool body_has(struct request *r, const char *const names[]) MUSTUSE;
/* An integer, or a text that is one. False: it was answered. */
bool body_integer(struct request *r, const char *name, int64_t *out) MUSTUSE;
/* A number of the query, at most `most`; left out: `def`. False: it was answered. */
bool query_number(struct request *r, const char *name, uint64_t def, uint64_t most, uint64_t *out) MUSTUSE;
/* The query has name=true. */
bool query_true(struct request *r, const char *name);

/* 400, with the AMQP error as text: "404 NOT_FOUND - no exchange ..." */
void reply_amqp_error(struct request *r, const struct error *e);
/* The change is done; where it survives restarts, when it does. */
void reply_changed(struct request *r, int status, bool survives);

#endif
