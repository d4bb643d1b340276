/* SPDX-License-Identifier: Apache-2.0
 * Payloads of any bytes. What decodes is encoded again and has to be the same then. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Again, and decoded: all numbers that are not checked for being 0 are normal now, so a third time is the second. */
struct again {
	uint8_t *p; /* owned */
	size_t n;
};

static struct span
body_of(const struct again *a)
{
	return span_of(a->p + OP_HEADER, a->n - OP_HEADER);
}

static struct again
room(size_t n)
{
	struct again a = { malloc(n), n };

	assert(a.p != NULL);
	return a;
}

static struct again
msg_again(const struct op_msg *d)
{
	struct op_target *t = malloc(d->targets * sizeof *t);
	struct op_msg m = *d;
	struct again a;

	assert(t != NULL);
	for (uint32_t i = 0; i < d->targets; i++) {
		op_msg_target(d, i, &t[i]);
		assert(t[i].seq >= 1 && t[i].seq <= SEQ_MAX);
	}
	assert(d->body.n == d->body_size && d->names.n >= 2);
	m.target = t;
	a = room(op_msg_size(&m));
	assert(op_msg_encode(&m, a.p) == a.p + a.n);
	free(t);
	return a;
}

static struct range *
ranges(const uint8_t *raw, uint32_t n)
{
	struct range *r = malloc((n + (size_t)1) * sizeof *r);
	uint64_t next = 1;

	assert(r != NULL);
	for (uint32_t i = 0; i < n; i++) {
		op_range(raw, i, &r[i]);
		assert(r[i].first >= next && r[i].first <= r[i].last && r[i].last <= SEQ_MAX);
		next = r[i].last + 1;
	}
	return r;
}

static struct again
ack_again(const struct op_ack *d)
{
	struct op_ack a = *d;
	struct again out = room(op_ack_size(d->ranges));
	struct range *r = ranges(d->raw, d->ranges);

	a.range = r;
	assert(op_ack_encode(&a, out.p) == out.p + out.n);
	free(r);
	return out;
}

static struct again
seg_again(const struct op_seg *d)
{
	struct op_seg s = *d;
	struct again out = room(op_seg_size(d));
	struct range *r = ranges(d->raw_removed, d->removed_n);
	struct op_seg_exception *e = malloc((d->exceptions + (size_t)1) * sizeof *e);

	assert(e != NULL && d->first <= d->last);
	for (uint32_t i = 0; i < d->exceptions; i++) {
		op_exception(d->raw_exceptions, i, &e[i]);
		assert(e[i].range.first >= d->first && e[i].range.last <= d->last);
	}
	s.removed = r;
	s.exception = e;
	assert(op_seg_encode(&s, out.p) == out.p + out.n);
	free(r);
	free(e);
	return out;
}

static struct again
dedup_again(const struct op_dedup *d)
{
	struct op_dedup o = *d;
	struct again out = room(op_dedup_size(d->keys));
	struct op_key *k = malloc((d->keys + (size_t)1) * sizeof *k);

	assert(k != NULL && d->keys > 0 && d->first + d->keys - 1 <= SEQ_MAX);
	for (uint32_t i = 0; i < d->keys; i++)
		op_key(d->raw, i, &k[i]);
	o.key = k;
	assert(op_dedup_encode(&o, out.p) == out.p + out.n);
	free(k);
	return out;
}

/* False: it has no right form. */
static bool
code_again(enum op_kind kind, struct span body, struct again *out)
{
	struct op_msg msg;
	struct op_ack ack;
	struct op_state_change state;
	struct op_mark mark;
	struct op_object object;
	struct op_seg seg;
	struct op_dedup dedup;

	switch (kind) {
	case OP_MSG:
		if (op_msg_decode(body, &msg) != 0)
			return false;
		*out = msg_again(&msg);
		return true;
	case OP_ACK:
		if (op_ack_decode(body, &ack) != 0)
			return false;
		*out = ack_again(&ack);
		return true;
	case OP_STATE:
		if (op_state_decode(body, &state) != 0)
			return false;
		*out = room(OP_STATE_SIZE);
		op_state_encode(&state, out->p);
		return true;
	case OP_MARK:
		if (op_mark_decode(body, &mark) != 0)
			return false;
		*out = room(OP_MARK_SIZE);
		op_mark_encode(&mark, out->p);
		return true;
	case OP_PUT:
	case OP_GONE:
		if (op_object_decode(body, &object) != 0)
			return false;
		*out = room(op_object_size(&object));
		op_put_encode(&object, out->p);
		return true;
	case OP_SEG:
		if (op_seg_decode(body, &seg) != 0)
			return false;
		*out = seg_again(&seg);
		return true;
	case OP_DEDUP:
		if (op_dedup_decode(body, &dedup) != 0)
			return false;
		*out = dedup_again(&dedup);
		return true;
	}
	abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span payload = span_of(data, n);
	struct again once, twice;
	struct op op;
	size_t at = 0, before = 0;
	int error;

	if (n > 1 << 16)
		return 0;
	while (op_next(payload, &at, &op, &error)) {
		assert(at > before && at <= n);
		before = at;
		if (!code_again(op.kind, op.body, &once))
			continue;
		assert(once.n == op.body.n + OP_HEADER);
		if (!code_again(op.kind, body_of(&once), &twice))
			abort();
		assert(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0);
		free(once.p);
		free(twice.p);
	}
	assert(error != 0 || at == n);
	return 0;
}
