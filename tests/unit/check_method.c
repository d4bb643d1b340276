/* SPDX-License-Identifier: Apache-2.0
 * The method table against rabbitmq-c: every row means what the codec makes of it, and nothing that is too short, too
 * long or nested too deep gets past method_check(). */
#include "amqp/method.h"

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/codec.h"
#include "broker/table.h"

static uint32_t
id_of(const struct method *m)
{
	return (uint32_t)m->class_id << 16 | m->method_id;
}

/* connection.update-secret is RabbitMQ's: rabbitmq-c has no struct for it. */
static bool
codec_knows(const struct method *m)
{
	return m != &methods[METHOD_CONNECTION_UPDATE_SECRET];
}

/* Arguments by the row's own description. rich: something in every string and table, and a bit. */
static size_t
build(const struct method *m, bool rich, uint8_t *out)
{
	static const char table[] = "\0\0\0\7\1aS\0\0\0\0";
	size_t n = 0;

	for (const char *k = m->arguments; *k != '\0'; k++) {
		switch (*k) {
		case 'b': out[n++] = rich; break;
		case 'o': out[n++] = rich ? 0xAB : 0; break;
		case 'h':
			put_be16(out + n, rich ? 0x1234 : 0);
			n += 2;
			break;
		case 'l':
			put_be32(out + n, rich ? 0x12345678 : 0);
			n += 4;
			break;
		case 'L':
			put_be64(out + n, rich ? 0x123456789ABCDEF0 : 0);
			n += 8;
			break;
		case 's':
			out[n++] = rich ? 2 : 0;
			memcpy(out + n, "xy", rich ? 2 : 0);
			n += rich ? 2 : 0;
			break;
		case 'S':
			put_be32(out + n, rich ? 3 : 0);
			memcpy(out + n + 4, "abc", rich ? 3 : 0);
			n += rich ? 7 : 4;
			break;
		case 't':
			if (rich)
				memcpy(out + n, table, sizeof table - 1);
			else
				put_be32(out + n, 0);
			n += rich ? sizeof table - 1 : 4;
			break;
		default: ck_abort_msg("%s: unknown letter %c", m->constant, *k);
		}
	}
	return n;
}

START_TEST(rows_are_in_order)
{
	for (int i = 1; i < METHOD_COUNT; i++)
		ck_assert_uint_lt(id_of(&methods[i - 1]), id_of(&methods[i]));
}
END_TEST

START_TEST(find_finds_rows_and_nothing_else)
{
	unsigned found = 0;

	for (unsigned c = 0; c < 256; c++) {
		for (unsigned m = 0; m < 256; m++) {
			const struct method *row = method_find((uint16_t)c, (uint16_t)m);

			if (row == NULL)
				continue;
			ck_assert_uint_eq(id_of(row), c << 16 | m);
			found++;
		}
	}
	ck_assert_uint_eq(found, METHOD_COUNT);
	ck_assert_ptr_null(method_find(0xFFFF, 0xFFFF));
}
END_TEST

/* "AMQP_BASIC_PUBLISH_METHOD" against "BASIC.PUBLISH". */
START_TEST(names_are_the_codec_s)
{
	for (int i = 0; i < METHOD_COUNT; i++) {
		const struct method *m = &methods[i];
		const char *theirs = amqp_method_name(id_of(m));
		char ours[64];

		ck_assert_ptr_nonnull(m->fn);
		if (!codec_knows(m)) {
			ck_assert_ptr_null(theirs);
			continue;
		}
		snprintf(ours, sizeof ours, "AMQP_%s_METHOD", m->constant);
		*strchr(ours, '.') = '_';
		ck_assert_str_eq(ours, theirs);
		ck_assert_int_eq((m->needs & CONTENT) != 0, amqp_method_has_content(id_of(m)) != 0);
	}
	ck_assert_str_eq(method_name(&methods[METHOD_BASIC_RECOVER_ASYNC]), "basic.recover-async");
}
END_TEST

START_TEST(arguments_survive_the_codec)
{
	for (int rich = 0; rich < 2; rich++) {
		for (int i = 0; i < METHOD_COUNT; i++) {
			const struct method *m = &methods[i];
			uint8_t in[256], out[256];
			size_t n = build(m, rich != 0, in);
			amqp_bytes_t room = { sizeof out, out };
			void *decoded;

			ck_assert_msg(method_check(m, span_of(in, n)), "%s", m->constant);
			if (!codec_knows(m))
				continue;
			decoded = codec_decode(id_of(m), span_of(in, n));
			ck_assert_msg(decoded != NULL, "%s", m->constant);
			ck_assert_msg(amqp_encode_method(id_of(m), decoded, room) == (int)n, "%s",
			    m->constant);
			ck_assert_msg(memcmp(in, out, n) == 0, "%s", m->constant);
		}
	}
}
END_TEST

START_TEST(truncated_and_trailing_are_refused)
{
	for (int rich = 0; rich < 2; rich++) {
		for (int i = 0; i < METHOD_COUNT; i++) {
			const struct method *m = &methods[i];
			uint8_t in[256];
			size_t n = build(m, rich != 0, in);
			uint8_t *exact;

			for (size_t cut = 0; cut < n; cut++) {
				/* an allocation of its own, so that a sanitizer sees each byte read too many */
				exact = malloc(cut + 1);
				memcpy(exact, in, cut);
				ck_assert_msg(!method_check(m, span_of(exact, cut)),
				    "%s cut at %zu", m->constant, cut);
				free(exact);
			}
			in[n] = 0;
			ck_assert_msg(!method_check(m, span_of(in, n + 1)), "%s", m->constant);
		}
	}
}
END_TEST

START_TEST(hostile_lengths_are_refused)
{
	static const struct {
		int method;
		const char *raw;
		size_t n;
	} t[] = {
		{ METHOD_BASIC_CANCEL, "\377abc\0", 5 },
		{ METHOD_CONNECTION_SECURE_OK, "\377\377\377\377", 4 },
		{ METHOD_CONNECTION_SECURE_OK, "\177\377\377\377abc", 7 },
		{ METHOD_CONNECTION_SECURE_OK, "\0\0\0\4abc", 7 },
		{ METHOD_QUEUE_DECLARE, "\0\0\0\0\377\377\377\377", 8 },
		{ METHOD_QUEUE_DECLARE, "\0\0\0\0\0\0\0\7\1aF\377\377\377\377", 15 },
		{ METHOD_QUEUE_DECLARE, "\0\0\0\0\0\0\0\3\1aZ", 11 },
		{ METHOD_QUEUE_DECLARE, "\0\0\0\0\0\0\0\1\377", 9 },
	};

	for (size_t i = 0; i < COUNT_OF(t); i++)
		ck_assert_msg(
		    !method_check(&methods[t[i].method], span_of(t[i].raw, t[i].n)), "case %zu", i);
}
END_TEST

START_TEST(texts_are_utf_8)
{
	static const struct {
		int method;
		const char *raw;
		size_t n;
		bool valid;
	} t[] = {
		{ METHOD_BASIC_CANCEL, "\0\0", 2, true },
		{ METHOD_BASIC_CANCEL, "\4a\0\303\244\0", 6, true },
		{ METHOD_BASIC_CANCEL, "\1\377\0", 3, false },
		{ METHOD_BASIC_CANCEL, "\2a\303\0", 4, false },
		{ METHOD_QUEUE_BIND, "\0\0\1q\1x\1k\0\0\0\0\0", 13, true },
		{ METHOD_QUEUE_BIND, "\0\0\1q\1x\1\200\0\0\0\0\0", 13, false },
		/* long strings and tables may hold anything */
		{ METHOD_CONNECTION_SECURE_OK, "\0\0\0\1\377", 5, true },
		{ METHOD_QUEUE_DECLARE, "\0\0\1q\0\0\0\0\3\1\377V", 12, true },
	};

	for (size_t i = 0; i < COUNT_OF(t); i++) {
		struct span raw = span_of(t[i].raw, t[i].n);

		ck_assert_msg(method_check(&methods[t[i].method], raw), "case %zu", i);
		ck_assert_msg(
		    method_texts_valid(&methods[t[i].method], raw) == t[i].valid, "case %zu", i);
	}
}
END_TEST

/* queue.declare with a table that holds `depth` tables in each other. */
static bool
check_nested(unsigned depth)
{
	enum { LEVEL = 7 };
	size_t n = 4 + 4 + (size_t)depth * LEVEL;
	uint8_t *raw = calloc(1, n), *p = raw + 4;
	bool ok;

	put_be32(p, depth * LEVEL);
	p += 4;
	for (unsigned i = depth; i > 0; i--, p += LEVEL) {
		memcpy(p, "\1aF", 3);
		put_be32(p + 3, (i - 1) * LEVEL);
	}
	ok = method_check(&methods[METHOD_QUEUE_DECLARE], span_of(raw, n));
	free(raw);
	return ok;
}

START_TEST(nesting_is_bounded)
{
	ck_assert(check_nested(1));
	ck_assert(check_nested(TABLE_DEPTH_MAX - 1));
	ck_assert(!check_nested(TABLE_DEPTH_MAX + 1));
	ck_assert(!check_nested(15000));
}
END_TEST

static size_t
held_by_malloc(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* 120 KiB of small tables in one: what the pool grew to goes back at the next decoding. (Under a sanitizer mallinfo2()
 * says nothing.) */
START_TEST(pool_does_not_stay_large)
{
	enum { ENTRIES = 12000, ENTRY = 10, SIZE = 4 + ENTRY * ENTRIES };
	size_t before = held_by_malloc();
	uint8_t *raw = calloc(1, 4 + SIZE);
	const struct method *m = &methods[METHOD_QUEUE_DECLARE];

	put_be32(raw + 4, ENTRY * ENTRIES);
	for (int i = 0; i < ENTRIES; i++)
		memcpy(raw + 8 + ENTRY * i, "\1aF\0\0\0\3\1aV", ENTRY);
	ck_assert(method_check(m, span_of(raw, 4 + SIZE)));
	for (int i = 0; i < 50; i++)
		ck_assert_ptr_nonnull(codec_decode(id_of(m), span_of(raw, 4 + SIZE)));
	ck_assert_ptr_nonnull(
	    codec_decode(id_of(&methods[METHOD_BASIC_QOS]), span_of("\0\0\0\0\0\0\0", 7)));
	free(raw);
	ck_assert_uint_le(held_by_malloc(), before + (64 << 10));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("method");
	TCase *t = tcase_create("table");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, codec_init, codec_fini);
	tcase_add_test(t, rows_are_in_order);
	tcase_add_test(t, find_finds_rows_and_nothing_else);
	tcase_add_test(t, names_are_the_codec_s);
	tcase_add_test(t, arguments_survive_the_codec);
	tcase_add_test(t, truncated_and_trailing_are_refused);
	tcase_add_test(t, hostile_lengths_are_refused);
	tcase_add_test(t, texts_are_utf_8);
	tcase_add_test(t, nesting_is_bounded);
	tcase_add_test(t, pool_does_not_stay_large);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
