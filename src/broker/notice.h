/* SPDX-License-Identifier: Apache-2.0
 * Messages that the broker makes itself, of what happens in it: the firehose (trace.h) and events (event.h). What is told
 * may happen in the midst of a publish or a delivery, so they wait for broker_run(), in a list with a bound: what does not
 * fit is dropped, counted (stats.notices_dropped), and said in the log. */
#ifndef BROKER_NOTICE_H
#define BROKER_NOTICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/bytes.h"

struct broker;
struct msg;
struct notice;
struct vhost;

STAILQ_HEAD(notice_queue, notice);

struct notices {
	struct notice_queue waiting;	/* owned */
	uint64_t bytes;			/* of their messages */
	bool are_many;			/* those who are traced make more than can be sent: notice_pace() */
};

/* Bytes that wait. A message that is traced shares the body of one that is longer than a frame, so this is some 20,000
 * small ones. */
enum { NOTICE_BYTES_MAX = 32 << 20 };

struct notice_spec {
	const char *exchange;	/* of the vhost; gone by then: dropped */
	struct span key;	/* cut at 255 bytes */
	struct span headers;	/* content of a table */
	struct msg *body;	/* borrowed: whose body it has; NULL: none */
	uint64_t time_s;	/* 0: none, and it is transient; else a persistent message with this timestamp */
	bool is_alarm;		/* sent while memory is short, too, when others are dropped */
};

/* The message alone, with one reference; NULL: no memory. */
struct msg *notice_message(const struct notice_spec *spec);

void notices_init(struct broker *b);
void notice_send(struct vhost *vh, const struct notice_spec *spec);
/* After a message that was traced: where half of what may wait does, publishers have to wait (broker->letters_late) and less
 * is delivered in a turn, until it is a quarter. */
void notice_pace(struct broker *b);
bool notices_run(struct broker *b);		/* for broker.c. True: there are more */
void notices_forget(struct vhost *vh);		/* it is freed */

#endif
