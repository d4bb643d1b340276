/* SPDX-License-Identifier: Apache-2.0
 * The frames of a message that hermes bench publishes, laid out once and then only stamped.
 *
 * The stamp is 16 bytes: when it was sent in nanoseconds, then the publisher in 16 bits and its number among that
 * publisher's messages in 48. It opens the body or, where a body may be shorter than that, stands in the headers "t" and
 * "s". The rest of every body is the same known run of bytes. */
#ifndef CLI_BENCH_MESSAGE_H
#define CLI_BENCH_MESSAGE_H

#include "cli/bench_conn.h"
#include "cli/bench_options.h"

struct bench_stamp {
	int64_t sent_ns;
	uint32_t publisher;
	uint64_t seq;
};

struct bench_messages;

/* For connections that agreed on what c did. NULL: they cannot be sent so, and it was said. */
struct bench_messages *bench_messages_new(const struct bench_options *o, struct bench_conn *c) MUSTUSE;
void bench_messages_free(struct bench_messages **mp);

/* Appends a whole message to the output, with the key of a queue. False: it does not fit for now. */
bool bench_messages_put(const struct bench_messages *m, struct bench_conn *c, uint64_t queue,
    const struct bench_stamp *s);

/* Where the stamp is: in the body, or in the headers. */
bool bench_messages_stamp_in_body(const struct bench_messages *m);
void bench_stamp_of_body(struct bench_stamp *s, const uint8_t *p); /* BENCH_STAMP_SIZE bytes */
bool bench_stamp_of_properties(struct bench_stamp *s, const uint8_t *p, size_t n);

/* Are n bytes at this place of a body what was sent there? The stamp is not looked at. */
bool bench_messages_intact(
    const struct bench_messages *m, const uint8_t *p, size_t n, uint64_t at);

#endif
