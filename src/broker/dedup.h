/* SPDX-License-Identifier: Apache-2.0
 * Deduplication: a queue or exchange that was declared with x-message-deduplication remembers the keys of the last
 * x-cache-size messages that it took, each for x-cache-ttl milliseconds where that is set. What comes with a key that it
 * remembers is confirmed, and dropped.
 *
 * The key is what stands in the message's header x-deduplication-header, else its message-id; without either, or with an
 * empty one, a message is never a duplicate. A queue looks at what comes in by whatever way, an exchange at what is
 * published to it (not at what comes by a binding from another exchange), but neither at what comes back to it as a dead
 * letter: that is how retries work. What no queue takes, or a queue refuses, is
 * not remembered: publishing it again is to work. The key survives a restart if its message does (store/window.h). */
#ifndef BROKER_DEDUP_H
#define BROKER_DEDUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/publish.h"
#include "broker/queue_settings.h"
#include "broker/route.h"
#include "store/store.h"

struct broker;
struct exchange;
struct field;
struct msg;
struct queue;
struct route;
struct table;

enum { DEDUP_SIZE_DEFAULT = 10000, DEDUP_SIZE_MAX = OP_DEDUP_MAX };

struct dedup_settings {
	bool on;		/* x-message-deduplication */
	uint64_t size, ttl_ms;	/* x-cache-size, x-cache-ttl; SETTING_NONE where they are not set */
};

struct dedup {			/* of a queue or an exchange */
	struct window *window;	/* owned; NULL once the store is gone */
	uint64_t ttl_ms;
	uint64_t duplicates;	/* messages that were dropped */
	bool of_exchange;
	TAILQ_ENTRY(dedup) link;
};
TAILQ_HEAD(dedup_list, dedup);

/* broker->dedup, while there is one of them. */
struct dedups {
	struct dedup_list all;
	uint32_t count, exchanges;
	struct dedup *largest;	/* borrowed: the one with the most keys, about; NULL */
	/* The message that is being published, between dedup_filter() and dedup_remember(). */
	const struct msg *m;	/* it has a key */
	struct op_key key;
	struct dedup *exchange;	/* borrowed: of the exchange it came through, or NULL */
	uint32_t delays;	/* exchanges where it is to wait: after its queues */
	struct store_wait wait;	/* where it was dropped: until this is reached the one before it is not safe */
	struct route route;	/* what is left of its own */
	uint32_t route_cap;
	struct window_key *add;	/* owned: keys for the record of the message */
	uint32_t add_cap;
};

/* owner: the queue's or exchange's id. */
struct dedup *dedup_new(struct broker *b, uint64_t owner, const struct dedup_settings *s, bool durable, bool of_exchange);
void dedup_free(struct broker *b, struct dedup **dp);	/* of NULL: nothing */
void dedups_close(struct broker *b);	/* the store goes: windows with it */

/* The values of arguments. False: detail (160 bytes) says why in the form of RabbitMQ's texts. */
bool dedup_check_size(const struct field *f, char *detail);
/* Of an exchange: 406 for wrong values; and for those that differ from what the exchange has. */
const struct error *dedup_check_exchange(const char *vhost, struct span name, const struct table *arguments) MUSTUSE;
const struct error *dedup_compare_exchange(const struct exchange *x, const struct table *arguments) MUSTUSE;
void dedup_read_exchange(const struct table *arguments, struct dedup_settings *out);

/* ---- publish.c, where b->dedup is there ---- */
/* What of r has not seen m before; NULL: nothing, or its exchange has, if that is looked at. A dead letter that comes
 * back to where its x-death says that it was is no duplicate of itself. The answer holds until the
 * next call, or is r. r leads somewhere. */
const struct route *dedup_filter(struct broker *b, const struct msg *m, const struct route *r,
    enum publish_source source);
/* m enters these queues (or waits, and enters none yet), and those of them that deduplicate remember its key; the exchange
 * too. journalled: m is about to be. *add: keys for its record; returns how many. */
uint32_t dedup_remember(struct broker *b, const struct msg *m, struct queue *const *queue, uint32_t n, bool journalled,
    struct window_key **add);
/* A confirm of m waits for what it was dropped for, too. */
void dedup_wait(const struct broker *b, struct store_wait *wait);
/* The same, and where no store is m is remembered now. */
void dedup_settle(struct broker *b, const struct msg *m, struct queue *const *queue, uint32_t n, struct store_wait *wait);
/* A queue refuses it: it may come again, so the exchange does not remember it. */
void dedup_refused(struct broker *b);

/* About once a second: keys whose time is over go, some thousand at most. */
void dedup_tend(struct broker *b);

#endif
