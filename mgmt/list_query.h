/* SPDX-License-Identifier: Apache-2.0
 * What the query of a list says, checked, with RabbitMQ's refusals. */
#ifndef MGMT_LIST_QUERY_H
#define MGMT_LIST_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "mgmt/listing.h"

struct columns;
struct pattern;
struct request;

enum { PAGE_SIZE = 100, PAGE_SIZE_MAX = 500 };

struct list_query {
	uint64_t page, page_size;      /* page 0: the whole list */
	struct pattern *name;	       /* owned; NULL: any */
	struct columns *columns, *sort; /* owned; sort: one column, NULL: none */
	bool reverse;
};

/* False: it was answered. list_query_fini() in any case. */
bool list_query_init(struct list_query *q, struct request *r, enum paging paging) MUSTUSE;
void list_query_fini(struct list_query *q);

/* The answer where the page is beyond the end of `rows` rows. */
void list_query_out_of_range(struct request *r, const struct list_query *q, uint64_t rows);

#endif
