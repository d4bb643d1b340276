/* SPDX-License-Identifier: Apache-2.0
 * What a queue was told to do by its arguments, read once (queue_argument.c has the table). */
#ifndef BROKER_QUEUE_SETTINGS_H
#define BROKER_QUEUE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum queue_type { QUEUE_CLASSIC, QUEUE_QUORUM, QUEUE_STREAM };
enum overflow { OVERFLOW_DROP_HEAD, OVERFLOW_REJECT, OVERFLOW_REJECT_DLX };

#define SETTING_NONE UINT64_MAX

struct queue_settings {
	enum queue_type type;
	enum overflow overflow;
	/* SETTING_NONE where it is not set */
	uint64_t ttl_ms;		/* x-message-ttl */
	uint64_t expires_ms;		/* x-expires */
	uint64_t max_length;		/* x-max-length: ready messages */
	uint64_t max_bytes;		/* x-max-length-bytes: of their bodies */
	uint64_t delivery_limit;	/* x-delivery-limit */
	uint64_t consumer_timeout_ms;	/* x-consumer-timeout; 0: off, whatever the node says */
	/* Borrowed from the queue's arguments; p NULL: not set (an empty name is the default exchange). */
	struct span dead_letter_exchange, dead_letter_key;
	bool at_least_once;		/* x-dead-letter-strategy */
	bool dedup;			/* x-message-deduplication */
	uint64_t cache_size, cache_ttl_ms;	/* x-cache-size, x-cache-ttl */
	bool single_active;		/* x-single-active-consumer */
	uint8_t max_priority;		/* x-max-priority; 0: none */
};

#endif
