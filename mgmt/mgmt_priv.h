/* SPDX-License-Identifier: Apache-2.0
 * The body of struct mgmt, for the files of this folder. */
#ifndef MGMT_MGMT_PRIV_H
#define MGMT_MGMT_PRIV_H

#include "base/config.h"
#include "mgmt/mgmt.h"
#include "mgmt/nodes.h"
#include "mgmt/request.h"

struct http;
struct http_import;
struct definitions_export;
struct web_sessions;

/* Logins over HTTP, those with a session's cookie not counted; what the broker counts beyond them came by AMQP. */
struct login_counts {
	uint64_t http_ok, http_failed, amqp_ok, amqp_failed;
};

struct mgmt {
	struct loop *loop; /* borrowed, as the next two; all outlive us */
	struct broker *broker;
	const struct config *cfg;
	struct mgmt_node_info node;
	struct http *http;	   /* owned: the HTTP API and the console */
	struct http *http_metrics; /* owned: metrics only, nobody logs in; NULL: switched off */
	struct login_counts logins;   /* amqp_*: unused */
	struct login_counts attempts; /* what was counted when they were last set to 0 */
	uint64_t bodies_refused;      /* too long, or of too many values */
	struct node_samples node_samples;
	struct web_sessions *sessions; /* owned */
	struct request_list deferred; /* owned: all whose answers come later */
	struct request *current;      /* borrowed: the one that dispatch() is at, while it lives */
	struct {
		TAILQ_HEAD(, listing) all; /* owned: lists that are being made (listing.c) */
		uint32_t count;
		uint64_t spent_us; /* on them in this turn */
		bool was_page;	   /* the last slice was of one that is first because only a page is asked for */
	} listings;
	struct {
		TAILQ_HEAD(tail_list, tail) all; /* owned (tail.c): the one looked after longest ago first */
		struct wheel_node timer;
		uint64_t next_ms;
	} tails;
	struct {
		TAILQ_HEAD(, scrape) all; /* owned: metrics.c; the first is being made */
		uint32_t count;
		struct wheel_node timer;
		bool had_turn; /* the last one; while lists are made, too, they have every second */
	} scrapes;
	TAILQ_HEAD(, batch) batches; /* owned (publish.c) */
	TAILQ_HEAD(, pull) pulls; /* owned (pull.c) */
	struct wheel_node pulls_timer;
	struct {
		TAILQ_HEAD(, browse) all; /* owned (browse.c) */
		uint32_t count;
		struct wheel_node timer;
	} browses;
	struct {
		TAILQ_HEAD(, chain) all; /* owned (chain.c) */
		uint32_t count;
		struct wheel_node timer;
	} chains;
	uint32_t waiting;	      /* of them, for the store */
	uint32_t again;		      /* of them, request_again() */
	TAILQ_HEAD(, http_import) imports; /* owned: the first is under way */
	unsigned imports_waiting;
	TAILQ_HEAD(, policy_change) policy_changes; /* owned (policies.c) */
	TAILQ_HEAD(, definitions_export) exports; /* owned */
	TAILQ_HEAD(, bulk_delete) bulk_deletes; /* owned: the first is under way (users_bulk.c) */
	unsigned exports_waiting;
	struct request *snapshot;     /* borrowed: whoever asked for the one that is being made; NULL: nobody */
};

/* management.path_prefix; "": none */
static inline const char *
mgmt_prefix(const struct mgmt *m)
{
	return m->cfg->management_prefix != NULL ? m->cfg->management_prefix : "";
}

#endif
