/* SPDX-License-Identifier: Apache-2.0
 * Messages: one piece and many, references, and every allocation that may fail. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/slab.h"
#include "base/attr.h"
#include "broker/msg.h"

enum { META = 60 };

static void
nothing_left(void)
{
	struct slab_stats s;

	slab_get_stats(&s);
	ck_assert_uint_eq(s.items, 0);
}

static const uint32_t sizes[] = { 0, 1, 16, 1000, 8000, 8192, 70000, 5 << 20 };

START_TEST(in_one_piece)
{
	uint32_t body = sizes[_i];
	struct msg *m = msg_try_new(msg_wire_size(META, body)), *other;

	ck_assert_ptr_nonnull(m);
	memset(m->wire, 1, msg_wire_size(META, body));
	m->meta_len = META;
	m->body_size = body;
	ck_assert_uint_eq(msg_memory(m), sizeof *m + msg_wire_size(META, body));
	other = msg_ref(m);
	msg_unref(&m);
	ck_assert_ptr_null(m);
	ck_assert_uint_eq(other->wire[META - 1], 1);
	msg_unref(&other);
	m = msg_try_new(msg_wire_size(META, body));
	msg_unref(&m); /* before it was filled */
	nothing_left();
}
END_TEST

static const struct {
	uint32_t frame, body;
} chains[] = { { 4088, 4088 * 2 }, { 4088, 100000 }, { 131064, 3000000 }, { 1, 5000 },
	{ 100, 100000 }, { 300000, 1000000 } };

static struct msg *
new_chain(uint32_t body)
{
	struct msg *m = msg_try_new(msg_wire_size(META, 0));

	if (m != NULL) {
		m->meta_len = META;
		m->body_size = body;
	}
	return m;
}

static uint64_t
room_of(const struct msg *m)
{
	uint64_t n = 0;

	for (const struct msg_piece *p = m->rest; p != NULL; p = p->next)
		n += p->cap;
	return n;
}

START_TEST(in_many_pieces)
{
	uint32_t body = chains[_i].body, at = 0;
	struct msg *m = new_chain(body);
	struct msg_piece *last = NULL;
	uint8_t *sent = xmalloc(body);

	for (uint32_t i = 0; i < body; i++)
		sent[i] = (uint8_t)(i * 31 >> 3);
	while (at < body) {
		uint32_t n = body - at < chains[_i].frame ? body - at : chains[_i].frame;

		if (!msg_try_append(m, &last, sent + at, n, body - at))
			ck_abort();
		at += n;
		if (room_of(m) > 2 * (uint64_t)at)
			ck_abort_msg("room for %lu bytes, %u came in", room_of(m), at);
	}
	at = 0;
	for (const struct msg_piece *p = m->rest; p != NULL; p = p->next) {
		ck_assert_int_eq(memcmp(p->d, sent + at, p->n), 0);
		at += p->n;
	}
	ck_assert_uint_eq(at, body);
	msg_unref(&m);
	free(sent);
	nothing_left();
}
END_TEST

START_TEST(no_memory)
{
	static const uint8_t bytes[4088];
	bool done = false;

	for (unsigned long fails = 1; !done; fails++) {
		struct msg_piece *last = NULL;
		uint32_t at = 0;
		struct msg *m;

		mem_fail_try(fails, 0);
		m = new_chain(sizeof bytes * 5);
		while (m != NULL && at < sizeof bytes * 5) {
			if (!msg_try_append(m, &last, bytes, sizeof bytes, sizeof bytes * 5 - at))
				break;
			at += (uint32_t)sizeof bytes;
		}
		done = m != NULL && at == sizeof bytes * 5;
		if (m != NULL)
			msg_unref(&m);
		mem_fail_try(0, 0);
		nothing_left();
		ck_assert_uint_lt(fails, 20);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("msg");
	TCase *t = tcase_create("msg");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, in_one_piece, 0, COUNT_OF(sizes));
	tcase_add_loop_test(t, in_many_pieces, 0, COUNT_OF(chains));
	tcase_add_test(t, no_memory);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
