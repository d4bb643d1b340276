/* SPDX-License-Identifier: Apache-2.0
 * Short lists of JSON objects: the query's columns, sort and sort_reverse, which RabbitMQ has for every list. Long ones are
 * made in slices (listing.h). */
#ifndef MGMT_ROWS_H
#define MGMT_ROWS_H

#include <jansson.h>

struct request;

enum { ROWS_COLUMNS_MAX = 100 };

/* 200. Takes the array. */
void reply_rows(struct request *r, json_t *rows);
/* The same for one object: its columns. */
void reply_row(struct request *r, json_t *row);

#endif
