/* SPDX-License-Identifier: Apache-2.0
 * Matching of headers exchanges: a binding's arguments compiled once, a message's headers walked once. */
#ifndef BROKER_EXCHANGE_TYPE_HEADERS_H
#define BROKER_EXCHANGE_TYPE_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

struct headers_match;
struct message_headers;
struct table;

/* 406 "Invalid x-match field value" or "type"; NULL for fine. */
const struct error *headers_match_check(const struct table *arguments) MUSTUSE;

/* Compiles arguments that were checked; points into them, so they have to outlive it. */
struct headers_match *headers_match_new(const struct table *arguments);
void headers_match_free(struct headers_match **mp);

/* What is kept to look headers up, for one message after the other. message_headers_set keeps pointing into `raw`, a
 * checked table (p NULL: none). */
struct message_headers *message_headers_new(void);
void message_headers_free(struct message_headers **hp);
void message_headers_set(struct message_headers *h, struct span raw);

/* Adds to *steps one, and what the fields that were looked at cost: one each, and one more for every 64 bytes of those
 * that were compared. */
bool headers_match_is(const struct headers_match *m, const struct message_headers *h, uint32_t *steps);

#endif
