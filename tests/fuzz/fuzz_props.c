/* SPDX-License-Identifier: Apache-2.0
 * Property lists of any bytes. What is accepted can be rewritten, and what comes out is a property list again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "broker/props.h"
#include "broker/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
within(struct span raw, struct span s)
{
	assert(s.p == NULL || (s.p >= raw.p && s.p + s.n <= raw.p + raw.n));
}

static void
rewrite(struct span raw, const struct props *pr, const struct span *headers,
    const struct span *reply_to)
{
	struct props got;
	uint8_t *out;
	int n = props_rewrite(raw, pr, headers, reply_to, &out);

	assert(n >= 2 && props_scan(span_of(out, (size_t)n), &got) == 0);
	if (headers == NULL && reply_to == NULL)
		assert(span_eq(span_of(out, (size_t)n), raw));
	if (reply_to != NULL && pr->reply_to.p != NULL)
		assert(span_eq(got.reply_to, *reply_to));
	if (headers != NULL && pr->headers.p != NULL)
		assert(headers->p == NULL ? got.headers.p == NULL : span_eq(got.headers, *headers));
	assert(got.delivery_mode == pr->delivery_mode && span_eq(got.user_id, pr->user_id));
	free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span raw = span_of(data, n), none = { NULL, 0 }, reply = SPAN_LIT("reply"), cut;
	struct props pr;
	bool cc, bcc;
	uint64_t ms;

	if (n > 1 << 16 || props_scan(raw, &pr) != 0)
		return 0;
	within(raw, pr.headers);
	within(raw, pr.expiration);
	within(raw, pr.user_id);
	within(raw, pr.reply_to);
	if (props_expiration(pr.expiration, &ms) == 0)
		assert(ms <= 315360000000 && pr.expiration.n > 0);
	if (route_check_cc(pr.headers, &cc, &bcc) == NULL) {
		assert(!cc || pr.has_cc);
		cut.p = route_without_bcc(pr.headers, &cut.n);
		assert(cut.p != NULL && (bcc ? cut.n < pr.headers.n : cut.n == pr.headers.n));
		rewrite(raw, &pr, &cut, NULL);
		free((void *)(uintptr_t)cut.p);
	}
	rewrite(raw, &pr, NULL, NULL);
	rewrite(raw, &pr, &none, &reply);
	return 0;
}
