/* SPDX-License-Identifier: Apache-2.0
 * Operations: what records are lists of. Each `u8 kind, u8 version, u16 flags, u32 length` and `length` bytes. All values
 * are absolute; lanes are named by queue id and number, messages by seq, so anything may be replayed twice. Everything
 * read comes from a disk and is checked as if it came from a peer. */
#ifndef STORE_OP_H
#define STORE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/rangeset.h"

enum op_kind { OP_MSG = 1, OP_ACK, OP_STATE, OP_MARK, OP_PUT, OP_GONE, OP_SEG, OP_DEDUP };
enum { OP_HEADER = 8, OP_SKIP = 1 /* header flag: who does not know the kind may pass over it */ };

enum object_kind {
	OBJECT_VHOST = 1, OBJECT_USER, OBJECT_PERMISSION, OBJECT_EXCHANGE, OBJECT_QUEUE, OBJECT_BINDING, OBJECT_POLICY,
	OBJECT_PARAMETER, OBJECT_KINDS
};
enum ack_reason { ACK_ACKED, ACK_EXPIRED, ACK_DROPPED, ACK_PURGED, ACK_MOVED };

/* Seqs are 1 to SEQ_MAX in what is read from a disk, which no node reaches by counting; so that whatever was read, there
 * are always as many again to be given out, up to SEQ_TOP. 0 is none. */
#define SEQ_MAX ((uint64_t)1 << 54)
#define SEQ_TOP (((uint64_t)1 << 56) - 1)

/* A lane: priority level 0..255, or delay bucket from 256 on. */
struct op_lane {
	uint64_t queue;
	uint32_t lane;
};

struct op_target {
	uint64_t queue, seq;
	uint32_t lane;
};

/* Per lane and message; what a requeue changes. */
struct op_state {
	bool redelivered;
	uint32_t deliveries, acquired;
};
static inline bool
op_state_same(const struct op_state *a, const struct op_state *b)
{
	return a->redelivered == b->redelivered && a->deliveries == b->deliveries &&
	       a->acquired == b->acquired;
}

enum { MSG_FLAG_PERSISTENT = 1, MSG_FLAG_COPY = 2 };

struct op_msg {
	const struct op_target *target;	/* encode only; decode: see op_msg_target */
	uint32_t targets;
	uint64_t arrived_ms, expires_ms, due_ms;	/* 0: none */
	uint8_t flags, prio, spread;	/* spread: the owner's */
	struct op_state state;		/* of all targets alike */
	struct span names;		/* exchange and routing key as two short strings */
	struct span props;		/* raw, as in the content header behind the body size */
	uint64_t body_size;
	struct span body;		/* whole; or, when encoding, NULL and copy_body is called */
	void (*copy_body)(const void *item, uint8_t *to);
	const void *item;
	const uint8_t *raw_targets;	/* decode only */
};

size_t op_msg_size(const struct op_msg *m);		/* with the op's header */
uint8_t *op_msg_encode(const struct op_msg *m, uint8_t *to);	/* returns the end */
void op_msg_target(const struct op_msg *m, uint32_t i, struct op_target *out);	/* of a decoded one */

struct op_ack {
	struct op_lane lane;
	enum ack_reason reason;
	uint64_t count, bytes;		/* messages removed and the bytes of their bodies */
	const struct range *range;	/* encode */
	uint32_t ranges;
	const uint8_t *raw;		/* decode: op_range() */
};
size_t op_ack_size(uint32_t ranges);
uint8_t *op_ack_encode(const struct op_ack *a, uint8_t *to);

struct op_state_change {
	struct op_lane lane;
	struct range range;
	struct op_state state;
};
enum { OP_STATE_SIZE = OP_HEADER + 48 };
uint8_t *op_state_encode(const struct op_state_change *s, uint8_t *to);

struct op_mark {
	struct op_lane lane;
	uint64_t next_seq, delivered;	/* delivered: highest seq that was given out; 0: none */
};
enum { OP_MARK_SIZE = OP_HEADER + 32 };
uint8_t *op_mark_encode(const struct op_mark *m, uint8_t *to);

struct op_object {	/* PUT; GONE: state is empty */
	enum object_kind kind;
	uint64_t id;
	struct span state;
};
size_t op_object_size(const struct op_object *o);
uint8_t *op_put_encode(const struct op_object *o, uint8_t *to);
uint8_t *op_gone_encode(const struct op_object *o, uint8_t *to);

struct op_seg_exception {
	struct range range;
	struct op_state state;
};
struct op_seg {
	struct op_lane lane;
	uint64_t first, last, end;	/* end: offset behind its last record */
	uint64_t live, bytes, latest_expiry_ms;	/* latest_expiry: 0: one of them never expires */
	const struct range *removed;
	uint32_t removed_n;
	const struct op_seg_exception *exception;
	uint32_t exceptions;
	const uint8_t *raw_removed, *raw_exceptions;	/* decode */
};
size_t op_seg_size(const struct op_seg *s);
uint8_t *op_seg_encode(const struct op_seg *s, uint8_t *to);

/* DEDUP: keys that a window (window.h) of this owner remembers, under the numbers first, first + 1, ... */
struct op_key {
	uint64_t hash[2];
	uint64_t at_ms;	/* when it came; never 0 */
};
enum { OP_DEDUP_MAX = 10000000 };	/* size of a window */
struct op_dedup {
	uint64_t owner, first;
	uint32_t size;	/* of the window: numbers that are so far behind the last one count no more */
	uint32_t keys;
	const struct op_key *key;	/* encode */
	const uint8_t *raw;		/* decode: op_key() */
};
size_t op_dedup_size(uint32_t keys);
uint8_t *op_dedup_encode(const struct op_dedup *d, uint8_t *to);

/* Decoding. Walks the operations of a payload: false at the end; *error set to -EBADMSG (form) or -EPROTONOSUPPORT (an
 * unknown kind or version that may not be skipped). *at starts at 0. */
struct op {
	enum op_kind kind;
	uint16_t flags;
	struct span body;
};
bool op_next(struct span payload, size_t *at, struct op *out, int *error);
int op_msg_decode(struct span body, struct op_msg *out) MUSTUSE;	/* each 0 or -EBADMSG; spans point into body */
int op_ack_decode(struct span body, struct op_ack *out) MUSTUSE;
int op_state_decode(struct span body, struct op_state_change *out) MUSTUSE;
int op_mark_decode(struct span body, struct op_mark *out) MUSTUSE;
int op_object_decode(struct span body, struct op_object *out) MUSTUSE;	/* a kind not known yet: -EPROTONOSUPPORT */
int op_seg_decode(struct span body, struct op_seg *out) MUSTUSE;
int op_dedup_decode(struct span body, struct op_dedup *out) MUSTUSE;
void op_key(const uint8_t *raw, uint32_t i, struct op_key *out);
void op_range(const uint8_t *raw, uint32_t i, struct range *out);	/* decode checked: first <= last, ascending */
void op_exception(const uint8_t *raw, uint32_t i, struct op_seg_exception *out);

#endif
