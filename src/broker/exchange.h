/* SPDX-License-Identifier: Apache-2.0
 * Exchanges: declaring, deleting, bindings from them, and which queues a message reaches. */
#ifndef BROKER_EXCHANGE_H
#define BROKER_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/map.h"
#include "broker/policy.h"
#include "broker/queue.h"

struct table;
struct vhost;
struct route_cache;
struct binding;
struct dedup;
struct delay;

enum exchange_type {
	EXCHANGE_DIRECT, EXCHANGE_FANOUT, EXCHANGE_TOPIC, EXCHANGE_HEADERS, EXCHANGE_CONSISTENT_HASH, EXCHANGE_DELAYED,
	EXCHANGE_TYPES
};

struct exchange {
	struct vhost *vhost;			/* borrowed */
	char *name;				/* owned */
	uint16_t name_len;
	enum exchange_type type;
	enum exchange_type routes_as;		/* the type, or what an x-delayed-message exchange routes as in the end */
	bool durable, auto_delete, internal;
	struct table *arguments;		/* owned, may be NULL */
	struct dedup *dedup;			/* owned; NULL: duplicates may come */
	struct policy *policy[POLICY_KINDS];	/* counted references; NULL: none applies */
	struct span alternate;			/* in arguments, or the policy; p NULL: none */
	/* Generation: raised whenever what this exchange routes to may have changed: its own bindings, those of
	 * exchanges it leads to, its alternate. What is remembered under another generation is void. Rising over
	 * all exchanges of a process, so that a new exchange never has an old one's. */
	uint64_t generation;
	uint64_t id;
	/* A route was found through it since its generation rose. While it is false nobody remembers anything that
	 * depends on it, so further changes cost nothing, however much leads to it. */
	bool observed;
	struct exchange_stats stats;		/* beside the generation, which every publish looks at */
	bool is_tapped;				/* somebody watches it (tap.h) */
	bool is_deleted, is_unbound;		/* is_unbound: on vhost->unbound */
	struct binding_list bindings;		/* out of it: owned */
	uint32_t binding_count;
	struct binding_list inbound;		/* to it from other exchanges: borrowed */
	struct buckets identities;		/* the bindings out of it (binding.c) */
	struct route_cache *cache;		/* owned; made on first use */
	void *index;				/* owned by the type: direct's keys, topic's trie, weights; NULL for the others */
	struct delay *delay;			/* owned: what waits; NULL unless the type is x-delayed-message */
	uint64_t mark;				/* route.c: visited */
	uint32_t letter_mark, letter_key_mark, letter_key_hash;	/* letter_target.c's */
	struct exchange *unbound_next;		/* vhost->unbound */
	struct exchange *changed_next;		/* exchange_changed's work */
	LIST_ENTRY(exchange) alternate_link;	/* those that name the same alternate */
	struct series series;
	UT_hash_handle hh;
};

struct exchange_spec {
	struct span name, type;
	bool durable, auto_delete, internal;
	const struct table *arguments;
};

/* Type by its name. EXCHANGE_TYPES if unknown. */
enum exchange_type exchange_type_find(struct span name);
const char *exchange_type_name(enum exchange_type type);

/* exchange.declare: 503 unknown or empty type (connection), 403 default exchange and reserved names, 406 inequivalent
 * or an alternate-exchange that is no string or what else the type does not take. *out is borrowed. */
const struct error *exchange_declare(struct vhost *vh, const struct exchange_spec *spec, struct exchange **out) MUSTUSE;
const struct error *exchange_lookup(struct vhost *vh, struct span name, struct exchange **out) MUSTUSE;	/* 404; "" found */
struct exchange *exchange_find(const struct vhost *vh, struct span name);
/* exchange.delete: 403 system exchanges and "", 406 in use; a missing one is fine. */
const struct error *exchange_delete(struct vhost *vh, struct span name, bool if_unused) MUSTUSE;
/* The vhost ends: some go, each and each binding of theirs takes one off *left. True: there are more. */
bool exchanges_free_some(struct vhost *vh, unsigned *left);
/* From what the store had; NULL: unknown type, or the name is taken. */
struct exchange *exchange_restore(struct vhost *vh, const struct exchange_spec *spec, uint64_t id) MUSTUSE;
bool exchange_is_predeclared(const struct exchange *x);
/* 406 where this argument of a declaration is not that of x, in RabbitMQ's words. */
const struct error *exchange_compare_argument(const struct exchange *x, const struct table *arguments, const char *name)
    MUSTUSE;
struct exchange *exchange_predeclare(struct vhost *vh, const char *name, enum exchange_type type, bool internal);

/* Exchanges whose last binding went (auto-delete) are deleted by the calls that took it: binding.c notes them with the
 * first and the call ends with the second. */
void exchange_note_unbound(struct exchange *x);
void exchanges_reap_unbound(struct vhost *vh);

/* Something that routes depend on changed at x: raises the generations of x and of all that lead to it, through bindings
 * or as their alternate, as far as anybody remembers a route through them. */
void exchange_changed(struct exchange *x);

/* Policies of the vhost changed: those that apply to it do from here on. */
void exchange_choose_policies(struct exchange *x);

#endif
