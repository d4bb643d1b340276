/* SPDX-License-Identifier: Apache-2.0
 * The trie behind a topic exchange: patterns of words with * (one word) and # (any number of words, none too).
 *
 * A key is matched by following all nodes that its words so far lead to, each at most once per word: the time is at most
 * words x nodes, whatever the patterns are. With ten thousands of patterns made for it that is seconds, hence steps_max. */
#ifndef BROKER_EXCHANGE_TYPE_TOPIC_H
#define BROKER_EXCHANGE_TYPE_TOPIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct binding;
struct topic;

typedef bool topic_hit(void *arg, struct binding *b); /* false: no more */

struct topic *topic_new(void);
void topic_free(struct topic **tp); /* no binding may be left in it */

/* The binding's key is the pattern. The trie keeps b->index_link and b->index_node until topic_remove. */
void topic_add(struct topic *t, struct binding *b);
void topic_remove(struct topic *t, struct binding *b);

/* Calls hit for every binding whose pattern matches, once each. False: more than steps_max nodes would have to be looked
 * at, or hit said no; not all were hit then. */
bool topic_match(struct topic *t, struct span key, uint32_t steps_max, topic_hit *hit, void *arg);

size_t topic_nodes(const struct topic *t);
uint64_t topic_steps(const struct topic *t); /* nodes looked at by topic_match since topic_new */

#endif
