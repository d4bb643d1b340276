/* SPDX-License-Identifier: Apache-2.0
 * Policies and operator policies of a vhost (https://www.rabbitmq.com/docs/policies): what queues and exchanges whose
 * names match a pattern are told, without being declared again. At most one of each kind applies to an object: the
 * matching one of the highest priority. Kept by the store.
 *
 * A change reaches the objects that are there in slices of broker_run(), within a turn where they are few; those of a
 * vhost in rounds: what changes in one is for the next, too, so that changes one after the other keep no object, and no
 * other vhost, from learning of the first. */
#ifndef BROKER_POLICY_H
#define BROKER_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/map.h"

struct argument;
struct broker;
struct exchange;
struct field;
struct pattern;
struct queue;
struct table;
struct vhost;

/* What an operator's policy says counts beside or before the user's: see struct argument. */
enum policy_kind { POLICY_USER, POLICY_OPERATOR, POLICY_KINDS };

/* Bounds: of each kind in a vhost; bytes of a definition. */
enum { POLICIES_MAX = 1024, POLICY_DEFINITION_MAX = 16384 };

/* Never changes: a policy that is set again is another one. Lives while objects have it. */
struct policy {
	struct vhost *vhost;		/* borrowed; NULL: it is not in force any more */
	enum policy_kind kind;
	uint64_t id;
	char *name, *pattern_text;	/* owned; no NUL inside */
	struct pattern *pattern;	/* owned */
	int64_t priority;
	uint8_t apply_to;		/* in the list of policy_apply_to() */
	bool of_settings;		/* a file of settings has it, and nobody else has set it since */
	uint32_t in_settings;		/* number of the last reading that named it: in_settings.h */
	struct table *definition;	/* owned: key to value; not empty */
	uint32_t refs;			/* of the vhost, queues, exchanges */
	UT_hash_handle hh;		/* vhost->policies[kind], by name */
	TAILQ_ENTRY(policy) link;	/* vhost->policy_order[kind]: the one that goes before others first */
};
TAILQ_HEAD(policy_list, policy);

struct policy_spec {
	struct span name, pattern;
	struct span apply_to;		/* empty: "all" */
	int64_t priority;
	const struct table *definition;
	bool of_settings;
};

/* Adds one, or puts it in the place of one of that name. 406 "Validation failed\n\n..." with a line for each thing that
 * is wrong, in RabbitMQ's words. *is_new may be NULL. */
const struct error *policy_set(struct vhost *vh, enum policy_kind kind, const struct policy_spec *spec, bool *is_new)
    MUSTUSE;
bool policy_clear(struct vhost *vh, enum policy_kind kind, struct span name);	/* false: there is none */
struct policy *policy_find(const struct vhost *vh, enum policy_kind kind, struct span name);
const char *policy_apply_to(const struct policy *p);	/* "queues", ... */
/* The vhost is deleted: some go, *left goes down by as many; what is in it keeps what they said. True: there are more. */
bool policies_drop_some(struct vhost *vh, unsigned *left);
void policies_free(struct vhost *vh);

/* Policies at a restart: nothing is checked but the form. NULL: the name is taken, or it cannot be used. */
struct policy *policy_restore(struct vhost *vh, uint64_t id, struct span state) MUSTUSE;
void policies_put_again(struct vhost *vh);	/* those that the store lost */

/* ---- for queues and exchanges ---- */

/* Those that apply to it: its `policy` is set, and nothing else done. False: they are the same as before. True: what
 * it had is in old[], for policy_drop() once nothing points into them any more. */
bool policy_choose_queue(struct queue *q, struct policy *old[POLICY_KINDS]) MUSTUSE;
bool policy_choose_exchange(struct exchange *x, struct policy *old[POLICY_KINDS]) MUSTUSE;
void policy_drop(struct policy *of[POLICY_KINDS]);

/* What the policies of an object say of a key; `least` as in struct argument. False: nothing. */
bool policy_value(struct policy *const of[POLICY_KINDS], const char *key, bool least, struct field *f);

/* The two merged as RabbitMQ shows them in effective_policy_definition. *out: owned, NULL where they say nothing. 0 or
 * -ENOMEM. */
int policy_effective(struct policy *const of[POLICY_KINDS], struct table **out) MUSTUSE;

/* The alternate exchange that policies give an exchange whose arguments give none. p NULL: none. */
struct span policy_alternate(const struct exchange *x);

/* For broker_run(): objects learn of changes. True: there are more. */
bool policies_run(struct broker *b);
/* The first change that some object has not learnt of, counted as broker->policy_changes is; UINT64_MAX: there is none. */
uint64_t policies_pending(const struct broker *b);
/* The walk leaves it out: it goes. */
void policy_forget_queue(struct queue *q);
void policy_forget_exchange(struct exchange *x);

/* ---- keys (policy_keys.c) ---- */

/* NULL, or what is wrong with a definition, in the form of a line of the refusal. `buf` of n bytes holds it. */
const char *policy_check_definition(const struct table *definition, enum policy_kind kind, char *buf, size_t n) MUSTUSE;
bool policy_key_is_least(struct span key);

#endif
