/* SPDX-License-Identifier: Apache-2.0
 * Import of definitions: the JSON files in which RabbitMQ (3.x and 4.x) and Hermes hold users, vhosts, permissions, policies,
 * parameters, exchanges, queues and bindings (https://www.rabbitmq.com/docs/definitions). Each object is tried; what cannot
 * be made is reported and the rest goes on. What is there already is left as it is where it is a queue, an exchange or a
 * binding, and set anew where it is anything else.
 *
 *	definitions_import.c	the order of things, slices, the report
 *	definitions_access.c	users, vhosts, permissions, parameters
 *	definitions_topology.c	policies, queues, exchanges, bindings
 *	definitions.c		imports over HTTP
 *	definitions_export.c	the way out */
#ifndef MGMT_DEFINITIONS_H
#define MGMT_DEFINITIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

struct broker;
struct import;
struct mgmt;
struct vhost;

enum { IMPORT_ERRORS_MAX = 100 /* reported one by one */, IMPORT_REASON_MAX = 500 };

/* Takes doc, an object. vhost NULL: all of it, each object in its vhost; else what it says of policies, parameters, queues,
 * exchanges and bindings, all in this one (a name, copied), whatever they say. */
struct import *import_new(struct broker *b, json_t *doc, const char *vhost) MUSTUSE;

/* Goes on for about budget_us. True: it is done. False may also mean that a password is being hashed. */
bool import_run(struct import *im, uint64_t budget_us);

/* It waits for a worker: whoever hands its answer in wakes the loop. */
bool import_waits(const struct import *im);

/* How many objects were there or made, and how many could not be. */
void import_counts(const struct import *im, uint64_t *done, uint64_t *failed);
/* [{"object": "queue 'q' in vhost '/'", "reason": "..."}], the first IMPORT_ERRORS_MAX. Borrowed. */
const json_t *import_errors(const struct import *im);

/* Also one that is not done. Its document, which may be large, is handed over if that is asked for. */
void import_free(struct import **imp, json_t **doc);

/* For mgmt.c: imports over HTTP go on. True: there is more to do now. */
bool imports_run(struct mgmt *m);
void imports_stop(struct mgmt *m);
/* The same for exports (definitions_export.c). */
bool exports_run(struct mgmt *m);
void exports_stop(struct mgmt *m);

/* ---- of the files of this module ---- */

struct import {
	struct broker *broker; /* borrowed */
	json_t *doc;	       /* owned */
	char *only;	       /* owned; NULL: all vhosts */
	struct vhost *vhost;   /* borrowed, during a call: only's */
	unsigned section;      /* that it is at, */
	size_t item;	       /* and the item in it */
	uint64_t done, failed;
	json_t *errors; /* owned */
	char why[IMPORT_REASON_MAX];
	/* A user whose password is hashed by a worker: the walk goes on when that is done. */
	const json_t *later;	/* borrowed from doc: the user; NULL: none */
	bool is_hashing;	/* not done yet */
	const char *hash_error; /* of what is done, as of import_fn */
	bool is_freed;		/* nobody waits for it any more */
};

/* Answered by what comes later. */
extern const char import_later[];

/* NULL: it is there. Else why not, perhaps in im->why. */
typedef const char *import_fn(struct import *im, const json_t *item);

import_fn import_user, import_vhost, import_permission, import_topic_permission, import_parameter, import_global_parameter;
import_fn import_policy, import_queue, import_exchange, import_binding;

/* Into im->why. */
const char *import_because(struct import *im, const char *fmt, ...) PRINTF(2, 3);
/* The vhost of an item; NULL: there is none, and im->why says so. */
struct vhost *import_vhost_of(struct import *im, const json_t *item);
/* A text that the item has to have; p NULL: it has not, and im->why says so. */
struct span import_text(struct import *im, const json_t *item, const char *key);
/* A setting of a vhost's or an operator's that files keep among the parameters; *wrong as of import_fn. False: the
 * component is none of these. */
bool import_component(struct import *im, struct vhost *vh, struct span component, struct span name, const json_t *value,
    const char **wrong);

#endif
