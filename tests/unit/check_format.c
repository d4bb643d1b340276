/* SPDX-License-Identifier: Apache-2.0
 * Bytes on disk: what is encoded comes back, a changed bit anywhere is seen, and the layout is the one that is written
 * down (folders of today have to be readable for ever). */
#include "store/format.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t seed = 0x0123456789abcdefULL;

START_TEST(the_store_file)
{
	struct store_id s = { FORMAT_VERSION, 0x1122334455667788ULL, seed }, got = { 0 };
	uint8_t p[STORE_FILE_SIZE];

	store_id_encode(&s, p);
	ck_assert_mem_eq(p, "hermesS\n\x01\0\0\0\0\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 24);
	ck_assert_int_eq(store_id_decode(&got, p, sizeof p), 0);
	ck_assert_uint_eq(got.format, FORMAT_VERSION);
	ck_assert_uint_eq(got.id, s.id);
	ck_assert_uint_eq(got.seed, seed);
	ck_assert_int_eq(store_id_decode(&got, p, sizeof p - 1), -EBADMSG);
	for (unsigned bit = 0; bit < sizeof p * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_eq(store_id_decode(&got, p, sizeof p), -EBADMSG);
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	s.format = FORMAT_VERSION + 1;
	store_id_encode(&s, p);
	ck_assert_int_eq(store_id_decode(&got, p, sizeof p), -EPROTONOSUPPORT);
	ck_assert_uint_eq(got.format, FORMAT_VERSION + 1);
	s.format = 0;
	store_id_encode(&s, p);
	ck_assert_int_eq(store_id_decode(&got, p, sizeof p), -EBADMSG);
}
END_TEST

START_TEST(a_file_header)
{
	struct file_header h = { FILE_SEGMENT, FORMAT_VERSION, 1, 2, 3, 4, 5 }, got = { 0 };
	uint8_t p[HEADER_USED];

	file_header_encode(&h, seed, p);
	ck_assert_mem_eq(p, "hermesF\n\x01\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\x02", 25);
	ck_assert_int_eq(file_header_decode(&got, seed, p), 0);
	ck_assert_int_eq(got.kind, FILE_SEGMENT);
	ck_assert_uint_eq(got.store_id, 1);
	ck_assert_uint_eq(got.number, 2);
	ck_assert_uint_eq(got.size, 3);
	ck_assert_uint_eq(got.queue, 4);
	ck_assert_uint_eq(got.lane, 5);
	ck_assert_int_eq(file_header_decode(&got, seed + 1, p), -EBADMSG);
	for (unsigned bit = 0; bit < sizeof p * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_eq(file_header_decode(&got, seed, p), -EBADMSG);
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	h.format = 9;
	file_header_encode(&h, seed, p);
	ck_assert_int_eq(file_header_decode(&got, seed, p), -EPROTONOSUPPORT);
	ck_assert_uint_eq(got.format, 9);
	h.format = 1;
	h.kind = 7;
	file_header_encode(&h, seed, p);
	ck_assert_int_eq(file_header_decode(&got, seed, p), -EBADMSG);
	memset(p, 0, sizeof p);
	ck_assert_int_eq(file_header_decode(&got, seed, p), -EBADMSG);
}
END_TEST

START_TEST(a_record)
{
	static const uint32_t lengths[] = { 0, 1, 7, 8, 16, 200, 241, 1000, 5000 };
	uint32_t n = lengths[_i];
	struct record_header h = { n, RECORD_OPS, 0, 3, lsn_of(5, 4096), 0 }, got;
	uint8_t *p = malloc(RECORD_HEADER + n); /* a byte too many is seen */
	uint64_t size = RECORD_HEADER + n;

	ck_assert_ptr_nonnull(p);
	for (uint32_t i = 0; i < n; i++)
		p[RECORD_HEADER + i] = (uint8_t)(i * 7);
	record_header_encode(&h, p);
	ck_assert(!record_check(p, size, h.lsn, seed, &got));
	record_seal(p, seed);
	ck_assert(record_check(p, size, h.lsn, seed, &got));
	ck_assert_uint_eq(got.length, n);
	ck_assert_uint_eq(got.kind, RECORD_OPS);
	ck_assert_uint_eq(got.ops, 3);
	ck_assert_uint_eq(got.lsn, h.lsn);
	ck_assert(!record_check(p, size, h.lsn + 8, seed, &got));
	ck_assert(!record_check(p, size, h.lsn, seed + 1, &got));
	for (uint64_t less = 0; less < size && less < 100; less++)
		ck_assert(!record_check(p, less, h.lsn, seed, &got));
	for (uint64_t bit = 0; bit < size * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (record_check(p, size, h.lsn, seed, &got))
			ck_abort_msg("bit %u", (unsigned)bit);
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	ck_assert_uint_eq(record_size(n) % RECORD_ALIGN, 0);
	ck_assert_uint_ge(record_size(n), size);
	ck_assert_uint_lt(record_size(n), size + RECORD_ALIGN);
	free(p);
}
END_TEST

/* As it was first written. */
START_TEST(the_sum_stays_what_it_is)
{
	static const uint8_t sealed[] = { 3, 0, 0, 0, 1, 0, 1, 0, 0, 0x10, 0, 0, 1, 0, 0, 0, 0x81,
		0x1c, 0x57, 0x12, 0x67, 0x86, 0xc3, 0x29, 'a', 'b', 'c' };
	struct record_header h = { 3, RECORD_OPS, 0, 1, lsn_of(1, 4096), 0 };
	uint8_t p[RECORD_HEADER + 3];

	record_header_encode(&h, p);
	memcpy(p + RECORD_HEADER, "abc", 3);
	record_seal(p, seed);
	ck_assert_mem_eq(p, sealed, sizeof p);
}
END_TEST

START_TEST(the_journals_own_records)
{
	struct chunk_record c = { lsn_of(3, 5000), 2, 0, 99, 1234567890123ULL }, c2;
	struct open_record o = { lsn_of(2, 4096), 98, 1234567890122ULL }, o2;
	uint8_t p[CHUNK_PAYLOAD], q[OPEN_PAYLOAD];

	chunk_encode(&c, p);
	chunk_decode(&c2, p);
	ck_assert_uint_eq(c2.durable, c.durable);
	ck_assert_uint_eq(c2.oldest, 2);
	ck_assert_uint_eq(c2.next_id, 99);
	ck_assert_uint_eq(c2.clock_ms, c.clock_ms);
	open_encode(&o, q);
	open_decode(&o2, q);
	ck_assert_uint_eq(o2.previous_end, o.previous_end);
	ck_assert_uint_eq(o2.next_id, 98);
	ck_assert_uint_eq(o2.clock_ms, o.clock_ms);
}
END_TEST

START_TEST(an_lsn)
{
	ck_assert_uint_eq(lsn_file(lsn_of(UINT32_MAX, 1)), UINT32_MAX);
	ck_assert_uint_eq(lsn_at(lsn_of(1, UINT32_MAX)), UINT32_MAX);
	ck_assert(lsn_of(1, UINT32_MAX) < lsn_of(2, 0));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("format");
	TCase *t = tcase_create("format");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, the_store_file);
	tcase_add_test(t, a_file_header);
	tcase_add_loop_test(t, a_record, 0, 9);
	tcase_add_test(t, the_sum_stays_what_it_is);
	tcase_add_test(t, the_journals_own_records);
	tcase_add_test(t, an_lsn);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
