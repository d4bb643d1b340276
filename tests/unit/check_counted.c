/* SPDX-License-Identifier: Apache-2.0
 * The counts of quorum queues in a content header: every form of header, byte for byte. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/counted.h"
#include "amqp/frame.h"
#include "base/slab.h"
#include "broker/msg.h"
#include "broker/props.h"

#define DELIVERY(n) "\20x-delivery-countl\0\0\0\0\0\0\0" n
#define ACQUIRED(n) "\20x-acquired-countl\0\0\0\0\0\0\0" n
#define BYTES(s)                                    \
	{                                           \
		(const uint8_t *)(s), sizeof(s) - 1 \
	}

static const struct {
	struct span was;
	uint32_t count;
	struct span now;
} cases[] = {
	/* no properties; the first get says 0, and nothing of what was acquired */
	{ BYTES("\0\0"), 0, BYTES("\40\0\0\0\0\32" DELIVERY("\0")) },
	{ BYTES("\0\0"), 7, BYTES("\40\0\0\0\0\64" DELIVERY("\7") ACQUIRED("\7")) },
	/* before it: content type and encoding; behind it: delivery mode and all that follows */
	{ BYTES("\220\0\3a/b\2"), 1,
	    BYTES("\260\0\3a/b\0\0\0\64" DELIVERY("\1") ACQUIRED("\1") "\2") },
	{ BYTES("\110\20\2gz\5\1t"), 1,
	    BYTES("\150\20\2gz\0\0\0\64" DELIVERY("\1") ACQUIRED("\1") "\5\1t") },
	{ BYTES("\300\0\3a/b\2gz"), 0, BYTES("\340\0\3a/b\2gz\0\0\0\32" DELIVERY("\0")) },
	/* behind the fields that are there; an empty table too */
	{ BYTES("\60\0\0\0\0\7\1nI\0\0\0\1\2"), 2,
	    BYTES("\60\0\0\0\0\73\1nI\0\0\0\1" DELIVERY("\2") ACQUIRED("\2") "\2") },
	{ BYTES("\40\0\0\0\0\0"), 3, BYTES("\40\0\0\0\0\64" DELIVERY("\3") ACQUIRED("\3")) },
	/* a publisher's own make room, of whatever type; but for what is not said */
	{ BYTES("\40\0\0\0\0\61\1at\1\20x-delivery-countS\0\0\0\1x\1bt\1\20x-acquired-countV"), 4,
	    BYTES("\40\0\0\0\0\74\1at\1\1bt\1" DELIVERY("\4") ACQUIRED("\4")) },
	{ BYTES("\40\0\0\0\0\44\20x-acquired-countV\20x-delivery-countV"), 0,
	    BYTES("\40\0\0\0\0\54\20x-acquired-countV" DELIVERY("\0")) },
};

static struct msg *
make(struct span props)
{
	uint32_t payload = 12 + (uint32_t)props.n, meta = 4 + FRAME_OVERHEAD + payload;
	struct msg *m = msg_try_new(msg_wire_size(meta, 0));
	uint8_t *h = m->wire + 4;

	memcpy(m->wire, "\0\1k\316", 4);
	m->names_len = 4;
	m->meta_len = meta;
	m->body_size = 0;
	h[0] = FRAME_HEADER;
	put_be16(h + 1, 9);
	put_be32(h + 3, payload);
	put_be32(h + 7, 60u << 16);
	put_be64(h + 11, 0x0102030405060708);
	memcpy(h + 19, props.p, props.n);
	h[FRAME_HEAD + payload] = FRAME_END;
	return m;
}

START_TEST(every_form)
{
	struct msg *m = make(cases[_i].was);
	const uint8_t *was = m->wire + 4;
	struct props pr;
	size_t n;
	uint8_t *h = counted_header(m, cases[_i].count, 4096, &n);

	ck_assert_ptr_nonnull(h);
	ck_assert_uint_eq(n, FRAME_OVERHEAD + 12 + cases[_i].now.n);
	ck_assert_uint_eq(h[0], FRAME_HEADER);
	ck_assert_uint_eq(get_be32(h + 3), n - FRAME_OVERHEAD);
	ck_assert_mem_eq(h + FRAME_HEAD, was + FRAME_HEAD, 12);
	ck_assert_mem_eq(h + FRAME_HEAD + 12, cases[_i].now.p, cases[_i].now.n);
	ck_assert_uint_eq(h[n - 1], FRAME_END);
	ck_assert_int_eq(props_scan(cases[_i].now, &pr), 0);
	free(h);
	/* it fits exactly, or not */
	h = counted_header(m, cases[_i].count, (uint32_t)n, &n);
	ck_assert_ptr_nonnull(h);
	free(h);
	ck_assert_ptr_null(counted_header(m, cases[_i].count, (uint32_t)n - 1, &n));
	msg_unref(&m);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("counted");
	TCase *t = tcase_create("counted");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, every_form, 0, sizeof cases / sizeof cases[0]);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
