/* SPDX-License-Identifier: Apache-2.0
 * Keys by age and by hash, against a plain array of them: what is remembered, what leaves, and what it costs. */
#include "store/keys.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/rnd.h"

/* ck_assert writes to a file at each call, which would take minutes here. */
#define REQUIRE(ok, ...)                           \
	do {                                       \
		if (!(ok))                         \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

enum { TIMES = 20000, SPACE = 700 };

static struct op_key
key_of(uint64_t number, uint64_t at_ms)
{
	/* Few different low bits: buckets are long, and split unevenly. */
	return (struct op_key){ { number % 97 * 0x10001, number }, at_ms };
}

static void
release(struct keys *k)
{
	while (keys_free_some(k))
		continue;
	ck_assert_uint_eq(mem_held[MEM_WINDOWS], 0);
}

/* ---- the model: every key that was put, by seq ---- */

struct model {
	struct op_key put[TIMES * 2 + 10];
	uint64_t low, next, base;
};

static uint64_t
model_count(const struct model *m)
{
	uint64_t n = 0;

	for (uint64_t seq = m->low; seq < m->next; seq++)
		n += m->put[seq - m->base].at_ms != 0;
	return n;
}

static bool
model_has(const struct model *m, const uint64_t hash[2], uint64_t after_ms)
{
	for (uint64_t seq = m->low; seq < m->next; seq++) {
		const struct op_key *p = &m->put[seq - m->base];

		if (p->at_ms > after_ms && memcmp(p->hash, hash, sizeof p->hash) == 0)
			return true;
	}
	return false;
}

static void
compare(const struct model *m, const struct keys *k, struct rnd *r, uint64_t now_ms)
{
	uint64_t after = rnd(r, 4) == 0 ? 0 : rnd(r, now_ms + 1);
	struct op_key key = key_of(rnd(r, SPACE), 1), got;

	REQUIRE(keys_have(k, key.hash, after) == model_has(m, key.hash, after),
	    "key %llu after %llu: not what the model says", (unsigned long long)key.hash[1],
	    (unsigned long long)after);
	if (rnd(r, 50) == 0)
		REQUIRE(k->count == model_count(m), "%llu keys", (unsigned long long)k->count);
	while (m->next > m->low && rnd(r, 4) == 0) {
		uint64_t seq = m->low + rnd(r, m->next - m->low);
		const struct op_key *p = &m->put[seq - m->base];

		REQUIRE(
		    keys_at(k, seq, &got) == (p->at_ms != 0), "seq %llu", (unsigned long long)seq);
		REQUIRE(p->at_ms == 0 || memcmp(&got, p, sizeof got) == 0, "another key");
	}
}

static void
model_trim(struct model *m)
{
	while (m->low < m->next && m->put[m->low - m->base].at_ms == 0)
		m->low++;
}

/* As it is used: each new one at the next seq, the oldest dropped now and then; near a seq that is left out. */
static void
run(uint64_t seed, uint32_t size, uint64_t start, unsigned drops)
{
	static struct model m;
	struct rnd r = rnd_of(seed);
	struct keys k;
	struct op_key key;
	uint64_t now = 1;

	memset(&m, 0, sizeof m);
	keys_init(&k, size);
	k.low = k.next = m.low = m.next = m.base = start;
	for (int i = 0; i < TIMES; i++) {
		uint64_t seq = keys_next(&k);

		now += rnd(&r, 3);
		key = key_of(rnd(&r, SPACE), now);
		REQUIRE((uint32_t)seq != 0, "a seq that stands for none");
		REQUIRE(keys_put(&k, seq, &key), "not put");
		m.put[seq - m.base] = key;
		m.next = seq + 1;
		if (m.next - m.low > size)
			m.low = m.next - size;
		for (unsigned n = rnd_chance(&r, drops) ? (unsigned)rnd(&r, 8) : 0;
		     n > 0 && k.count > 0; n--) {
			model_trim(&m);
			REQUIRE(keys_oldest(&k, &key), "none is the oldest");
			REQUIRE(memcmp(&key, &m.put[m.low - m.base], sizeof key) == 0,
			    "another one is the oldest");
			keys_drop_oldest(&k);
			m.low++;
		}
		compare(&m, &k, &r, now);
	}
	release(&k);
}

START_TEST(test_as_it_is_used)
{
	run(1, 1, 1, 10);
	run(2, 10, 1, 0);
	run(3, 500, 1, 10);
	run(4, 3000, 1, 30); /* shrinks to nothing again and again */
	run(5, 1000, ((uint64_t)1 << 32) - 5000, 5);
	run(6, 1000, ((uint64_t)7 << 32) - 100, 28);
}
END_TEST

/* As a journal is read: blocks of seqs in any order, some of them twice, some never. */
static void
replay(uint64_t seed, uint32_t size, uint64_t start)
{
	static struct model m;
	struct rnd r = rnd_of(seed);
	struct keys k;
	struct op_key key;
	uint64_t top = start;

	memset(&m, 0, sizeof m);
	keys_init(&k, size);
	m.low = m.next = m.base = start;
	for (int i = 0; i < TIMES / 20; i++) {
		uint64_t first = top - (top - start < 300 ? 0 : rnd(&r, 300));

		for (uint64_t seq = first, n = rnd(&r, 20); n > 0; n--, seq++) {
			key = key_of(seq * 7, seq);
			if ((uint32_t)seq == 0)
				continue;
			if (seq >= m.next) {
				m.next = seq + 1;
				if (m.next - m.low > size)
					m.low = m.next - size;
			}
			REQUIRE(keys_put(&k, seq, &key) == (seq >= m.low), "seq %llu, low %llu",
			    (unsigned long long)seq, (unsigned long long)m.low);
			if (seq >= m.low)
				m.put[seq - m.base] = key;
			if (seq >= top)
				top = seq + 1 + (rnd(&r, 10) == 0 ? rnd(&r, 200) : 0);
		}
		REQUIRE(k.count == model_count(&m), "%llu keys", (unsigned long long)k.count);
		for (uint64_t seq = m.low; seq < m.next; seq++) {
			key = key_of(seq * 7, seq);
			REQUIRE(
			    keys_have(&k, key.hash, seq - 1) == (m.put[seq - m.base].at_ms != 0),
			    "seq %llu", (unsigned long long)seq);
		}
	}
	release(&k);
}

START_TEST(test_as_it_is_read)
{
	replay(1, 10, 1);
	replay(2, 200, 1);
	replay(3, 1000, 500000000);
	replay(4, 1000, ((uint64_t)3 << 32) - 3000);
}
END_TEST

/* A damaged file may name any seq. */
START_TEST(test_a_leap_costs_nothing)
{
	struct keys k;
	struct op_key key = key_of(1, 5);

	keys_init(&k, OP_DEDUP_MAX);
	ck_assert(keys_put(&k, 7, &key));
	ck_assert(!keys_put(&k, SEQ_MAX, &key)); /* its low word is 0 */
	ck_assert(keys_put(&k, SEQ_MAX - 1, &key));
	ck_assert_uint_eq(k.count, 1);
	ck_assert(!keys_put(&k, 8, &key));
	ck_assert(keys_put(&k, SEQ_MAX - OP_DEDUP_MAX, &key));
	ck_assert_uint_lt(mem_held[MEM_WINDOWS], 4 << 20);
	release(&k);
}
END_TEST

START_TEST(test_memory)
{
	enum { MANY = 1000000 };
	struct keys k;
	struct op_key key;

	keys_init(&k, MANY);
	for (uint64_t i = 0; i < 2 * MANY + 77; i++) {
		/* spread, as hashes are */
		key = (struct op_key){ { i * 0x9e3779b97f4a7c15ull >> 20, i }, 1000 + i };
		(void)keys_put(&k, keys_next(&k), &key);
		if (i == 10)
			ck_assert_uint_lt(mem_held[MEM_WINDOWS], 5200);
	}
	ck_assert_uint_eq(k.count, MANY);
	ck_assert_uint_le(mem_held[MEM_WINDOWS], 32 * MANY);
	while (k.count > 100)
		keys_drop_oldest(&k);
	ck_assert_uint_lt(mem_held[MEM_WINDOWS], 200 << 10);
	release(&k);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("keys");
	TCase *t = tcase_create("keys");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_as_it_is_used);
	tcase_add_test(t, test_as_it_is_read);
	tcase_add_test(t, test_a_leap_costs_nothing);
	tcase_add_test(t, test_memory);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
