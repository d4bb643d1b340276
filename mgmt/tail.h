/* SPDX-License-Identifier: Apache-2.0
 * Live tails: GET /api/hermes/tail/... answers with an event for each message that is published to an exchange or enters a
 * queue, until the client goes, what is watched goes, or the user may no longer see it. broker/tap.h has the messages. */
#ifndef MGMT_TAIL_H
#define MGMT_TAIL_H

struct mgmt;

enum {
	TAILS_OF_USER = 8,
	TAIL_FLUSH_MS = 50,	/* between two looks: what has come goes out together */
	TAIL_OUTPUT_MAX = 128 << 10, /* a client that has so much to read gets nothing more; then messages are left out */
	TAIL_KEEPALIVE_MS = 15000, /* after so long without anything a comment is sent, for proxies */
	TAIL_RATE = 50,		/* unless rate= says otherwise */
	TAIL_BODY = 4096	/* the same of max_bytes= */
};

/* Each turn: does something each TAIL_FLUSH_MS while there are tails. */
void tails_run(struct mgmt *m);
/* Before requests_stop(). */
void tails_stop(struct mgmt *m);

#endif
