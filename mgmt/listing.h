/* SPDX-License-Identifier: Apache-2.0
 * Lists of objects: collected, filtered by name, sorted by any column, cut into a page and written, in slices of a
 * millisecond or two, so that 50,000 queues hold nobody up. A list is of references: each object is looked up again when
 * its row is written, so that every row is true then, and one that went meanwhile is left out.
 *
 * What the query may say is RabbitMQ's: page, page_size, name, use_regex, sort, sort_reverse, columns. */
#ifndef MGMT_LISTING_H
#define MGMT_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/series.h"
#include "mgmt/stats_out.h"

struct binding;
struct listing;
struct mgmt;
struct request;
struct user;
struct vhost;

enum {
	LISTING_SLICE_US = 1500,
	LISTING_ROWS_MAX = 4 << 20,
	LISTING_BYTES_MAX = 256 << 20, /* of all lists that are being made: rows and text */
	LISTING_AT_ONCE = 4 /* more wait for their turn */
};

/* Whose objects are listed. */
struct scope {
	struct user *user;   /* borrowed for a slice */
	struct vhost *vhost; /* the same; NULL: of all vhosts that the user may see */
	const char *owner;   /* connections and channels of this user, parameters of this component only; NULL: of all */
	/* only what has to do with this object as well (what that is says the source); NULL: no such restriction */
	const struct series *peer;
	bool all_vhosts; /* permissions are not asked: the user may see what is in any */
	bool all_users;  /* connections and channels of others, too */
};

/* A row: an object, and where it is a part of one (a consumer, a binding), which. */
struct row_id {
	uint64_t object; /* series_ref */
	uint64_t a, b;	 /* as the source likes */
	struct span text; /* the same; the list keeps a copy */
};

/* Where an object may have very many rows, those of a list of it are collected some in a slice. */
struct listing_part {
	/* The link of the first in the list (walk.h). */
	const void *(*first)(const struct series *s);
	/* Adds the row of the one with this link, and returns the link of the next. */
	const void *(*add)(struct listing *l, const struct scope *scope, const void *at);
};
enum { LISTING_PARTS = 3 };

/* Do page, page_size and name mean something? IF_TOLD: lists that RabbitMQ gives as a whole in any case; pagination=true in
 * the query asks for pages all the same. */
enum paging { PAGING_NEVER, PAGING, PAGING_IF_TOLD };

/* What is listed. */
struct listing_source {
	enum series_kind kinds[2]; /* the objects that are walked: the second as well, if it is another */
	enum paging paging;
	bool is_heavy;		   /* a row may take a good part of a slice */
	/* Called for each object of kinds[0] before any is collected, where one says of others that they belong to the list; NULL:
	 * there is nothing of that kind. */
	void (*survey)(struct listing *l, const struct scope *scope, void *object);
	/* Adds the object's rows with listing_add(): some few. NULL: it has only those of its parts. */
	void (*collect)(struct listing *l, const struct scope *scope, void *object, struct row_id id);
	struct listing_part parts[LISTING_PARTS]; /* one after the other; first NULL: no more */
	/* What a row is of now: NULL if that is gone or not to be seen any more. Good until something changes. */
	void *(*find)(const struct scope *scope, void *object, const struct row_id *id);
	void (*write)(const struct doc *d, void *item);
};

/* name: what the filter asks. order: bytes by which rows are in order where nobody says how. item: what find() would
 * return; its columns are taken for the sorting. */
void listing_add(struct listing *l, const struct row_id *id, struct span name, struct span order, void *item);

/* Answers the request: now, or in the turns to come. vhost: r->vhost or NULL. `only`: where the list is of one object's
 * rows, that; NULL: of all. */
void listing_reply(struct request *r, const struct listing_source *source, const struct vhost *vhost,
    const struct series *only);
/* The same of what belongs to a user or a component: in r->vhost, if there is one. */
void listing_reply_owner(struct request *r, const struct listing_source *source, struct span owner);

/* The same of what is between two objects. */
void listing_reply_pair(struct request *r, const struct listing_source *source, const struct series *only,
    const struct series *peer);

/* What letter_targets_begin() said, of a list with a survey. */
uint32_t listing_number(const struct listing *l);

/* Where the references of rows come from. */
const struct series_list *listing_series(const struct listing *l);

/* May the user see what is in a vhost; what belongs to a user of that name? */
bool scope_sees(const struct scope *s, const struct vhost *vh);
bool scope_sees_user(const struct scope *s, const struct user *owner);

/* One object: 200 with the columns that were asked for. */
void reply_document(struct request *r, const struct listing_source *source, void *item);

/* For mgmt.c: what is left of the turn's slice goes to those that are being made. True: there are more. */
bool listings_run(struct mgmt *m);
/* All that are being made are forgotten. */
void listings_stop(struct mgmt *m);

#endif
