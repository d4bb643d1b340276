/* SPDX-License-Identifier: Apache-2.0
 * Publisher confirms of one channel: a ring of states from the lowest open tag. One outcome per tag; `multiple` runs
 * up to the first open or nacked tag and never crosses it. Where every message settles at once, as transient ones do,
 * the ring stays empty and three numbers are all there is. */
#ifndef BROKER_CONFIRM_H
#define BROKER_CONFIRM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum confirm_state { CONFIRM_OPEN, CONFIRM_ACK, CONFIRM_NACK, CONFIRM_SENT };

struct confirms {
	uint64_t next;		/* tag of the next publish; 1 at first; 0: not in confirm mode */
	uint64_t low;		/* lowest tag that was not sent yet */
	uint64_t base;		/* tags in [low, base) are acked; [base, next) are in the ring */
	uint64_t beyond;	/* no tag in [base, beyond) is settled and not sent; UINT64_MAX: none in the ring is */
	uint8_t *state;		/* owned ring of confirm_state; NULL until a tag was opened that was not settled */
	uint32_t mask, open;	/* open: tags without outcome */
	uint32_t limit;		/* most tags from the lowest open one on; beyond it confirm_open says no */
};

void confirms_init(struct confirms *c, uint32_t limit);	/* confirm.select: the first publish gets tag 1 */
void confirms_fini(struct confirms *c);

/* The next publish's tag. settled: its outcome is known to be ack (transient, routed nowhere). 0: too many are open,
 * or wait behind an open one; never 0 while all are settled. */
uint64_t confirm_open(struct confirms *c, bool settled) MUSTUSE;
void confirm_settle(struct confirms *c, uint64_t tag, bool ack);
/* The same for each tag of first..last. All of them are open. */
void confirm_settle_range(struct confirms *c, uint64_t first, uint64_t last, bool ack);

/* Takes the next frame to send: ack or nack, tag, multiple. False: nothing (more) to send now. */
struct confirm_out {
	uint64_t tag;
	bool ack, multiple;
	uint64_t count;		/* messages it covers */
};
bool confirm_take(struct confirms *c, struct confirm_out *out);

/* Are there tags whose outcome was not sent? Some of them may be open still. */
static inline bool
confirm_pending(const struct confirms *c)
{
	return c->next > c->low;
}

#endif
