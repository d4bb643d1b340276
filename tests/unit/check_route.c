/* SPDX-License-Identifier: Apache-2.0
 * Routes: the shapes of the manual, and a router that remembers nothing, against which random changes of topology are
 * compared. */
#include "broker/route.h"

#include <time.h>

#include "broker/route_cache.h"
#include "naive_topic.h"
#include "route_world.h"

#define NONE span_of(NULL, 0)

static struct world w;

static void
setup(void)
{
	world_init(&w);
}

static void
teardown(void)
{
	world_fini(&w);
	ck_assert_uint_eq(route_cache_bytes(), 0);
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], 0);
}

static uint32_t
count(struct exchange *x, const char *key)
{
	return route_find(x, span_str(key), NONE)->count;
}

START_TEST(test_diamond)
{
	struct exchange *x[4];
	struct queue *q = world_queue(&w, "q");
	char name[] = "x0";
	int i;

	for (i = 0; i < 4; i++, name[1]++)
		x[i] = world_exchange(&w, name, "fanout", false, NULL);
	world_bind(x[0], NULL, x[1], "");
	world_bind(x[0], NULL, x[2], "");
	world_bind(x[1], NULL, x[3], "");
	world_bind(x[2], NULL, x[3], "");
	for (i = 1; i < 4; i++)
		world_bind(x[i], q, NULL, "");
	ck_assert_uint_eq(count(x[0], "k"), 1);
	ck_assert_uint_eq(count(x[0], "k"), 1);
	queue_remove(q);
	ck_assert_uint_eq(count(x[0], "k"), 0);
}
END_TEST

START_TEST(test_cycles)
{
	struct exchange *a = world_exchange(&w, "a", "fanout", false, "b");
	struct exchange *b = world_exchange(&w, "b", "fanout", false, "a");
	struct queue *q = world_queue(&w, "q");

	ck_assert_uint_eq(count(a, "k"), 0);
	world_bind(a, NULL, b, "");
	world_bind(b, NULL, a, "");
	world_bind(a, NULL, a, "");
	ck_assert_uint_eq(count(a, "k"), 0);
	world_bind(b, q, NULL, "");
	ck_assert_uint_eq(count(a, "k"), 1);
	ck_assert_uint_eq(count(b, "k"), 1);
}
END_TEST

START_TEST(test_alternate)
{
	struct exchange *x = world_exchange(&w, "x", "direct", false, "alt");
	struct exchange *empty = world_exchange(&w, "e", "direct", false, "");
	struct exchange *alt, *dead;
	struct queue *q = world_queue(&w, "q"), *r = world_queue(&w, "r");

	ck_assert_uint_eq(count(x, "r"), 0);
	alt = world_exchange(&w, "alt", "fanout", false, NULL);
	world_bind(alt, r, NULL, "");
	world_bind(x, q, NULL, "k");
	ck_assert(route_has(route_find(x, SPAN_LIT("r"), NONE), r));
	ck_assert(!route_has(route_find(x, SPAN_LIT("k"), NONE), r));
	/* What matches an exchange is matched, though nothing comes of it. */
	dead = world_exchange(&w, "dead", "direct", false, NULL);
	world_bind(x, NULL, dead, "d");
	ck_assert_uint_eq(count(x, "d"), 0);
	/* The default exchange is no alternate. */
	ck_assert_uint_eq(count(empty, "q"), 0);
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("alt"), false));
	ck_assert_uint_eq(count(x, "r"), 0);
}
END_TEST

/* An exchange without bindings passes everything on: with it goes what lies behind it. */
START_TEST(test_alternate_chain)
{
	struct exchange *x = world_exchange(&w, "x", "direct", false, "y"), *z;
	struct queue *q = world_queue(&w, "q");

	(void)world_exchange(&w, "y", "direct", false, "z");
	ck_assert_uint_eq(count(x, "k"), 0);
	z = world_exchange(&w, "z", "fanout", false, NULL);
	world_bind(z, q, NULL, "");
	ck_assert_uint_eq(count(x, "k"), 1);
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("y"), false));
	ck_assert_uint_eq(count(x, "k"), 0);
	(void)world_exchange(&w, "y", "direct", false, "z");
	ck_assert_uint_eq(count(x, "k"), 1);
}
END_TEST

/* What is declared is counted, down to what each type keeps of a binding, and goes again. */
START_TEST(test_topology_is_counted)
{
	static const struct {
		const char *type, *key;
		size_t least; /* bytes of one binding beside the struct */
	} t[] = {
		{ "direct", "a.b.c.d.e.f.g.h", 2 * 15 },
		{ "fanout", "a.b.c.d.e.f.g.h", 15 },
		{ "topic", "a.b.c.d.e.f.g.h", 15 + 8 * 64 },
		{ "headers", "a.b.c.d.e.f.g.h", 15 },
	};
	struct queue *q = world_queue(&w, "q");

	for (size_t i = 0; i < COUNT_OF(t); i++) {
		uint64_t before = mem_held[MEM_TOPOLOGY], made;
		struct exchange *x = world_exchange(&w, "x", t[i].type, false, "somewhere");

		made = mem_held[MEM_TOPOLOGY];
		ck_assert_uint_gt(made, before + sizeof *x);
		world_bind(x, q, NULL, t[i].key);
		ck_assert_uint_ge(
		    mem_held[MEM_TOPOLOGY], made + sizeof(struct binding) + t[i].least);
		ck_assert_ptr_null(binding_remove(x, q, NULL, span_str(t[i].key), NULL));
		ck_assert_uint_le(mem_held[MEM_TOPOLOGY], made + 512); /* a trie keeps its root */
		world_bind(x, q, NULL, t[i].key);
		ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("x"), false));
		ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], before);
	}
}
END_TEST

static void
refused(const struct error *e, const char *what)
{
	char text[200];

	snprintf(text, sizeof text,
	    "PRECONDITION_FAILED - cannot %s in vhost 'test': queues, exchanges, bindings and "
	    "consumers take half of memory.limit",
	    what);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->text, text);
}

START_TEST(test_topology_is_bounded)
{
	struct exchange *x = world_exchange(&w, "x", "fanout", false, NULL);
	struct queue *q = world_queue(&w, "q");
	struct exchange_spec new_exchange = { .name = SPAN_LIT("y"), .type = SPAN_LIT("fanout") };
	struct queue_spec new_queue = { .name = SPAN_LIT("r") };
	size_t n = w.b->memory.limit / 2;

	world_bind(x, q, NULL, "there");
	mem_add(MEM_TOPOLOGY, n);
	refused(exchange_declare(w.vh, &new_exchange, &x), "declare exchange 'y'");
	refused(queue_declare(w.vh, &new_queue, NULL, &q), "declare queue 'r'");
	refused(binding_add(x, q, NULL, SPAN_LIT("k"), NULL), "bind to exchange 'x'");
	/* what is there already stays usable */
	new_exchange.name = SPAN_LIT("x");
	new_queue.name = SPAN_LIT("q");
	ck_assert_ptr_null(exchange_declare(w.vh, &new_exchange, &x));
	ck_assert_ptr_null(queue_declare(w.vh, &new_queue, NULL, &q));
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("there"), NULL));
	mem_sub(MEM_TOPOLOGY, n);
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("k"), NULL));
}
END_TEST

/* "#.a." or "#.*." for each bit of n, then "z". */
static void
hostile_pattern(char *to, size_t cap, int n, int bits)
{
	size_t at = 0;

	for (int bit = 0; bit < bits; bit++)
		at += (size_t)snprintf(
		    to + at, cap - at, "%s", (n >> bit & 1) != 0 ? "#.a." : "#.*.");
	(void)snprintf(to + at, cap - at, "z");
}

/* A message that many patterns with # make expensive counts as much work. */
START_TEST(test_steps_are_work)
{
	struct exchange *x = world_exchange(&w, "x", "topic", false, NULL);
	struct queue *q = world_queue(&w, "q");
	uint64_t before;

	for (int i = 0; i < 256; i++) {
		char pattern[64];

		hostile_pattern(pattern, sizeof pattern, i, 8);
		world_bind(x, q, NULL, pattern);
	}
	before = w.b->work;
	ck_assert_uint_eq(count(x, "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"), 0);
	ck_assert_uint_gt(w.b->work - before, 1000);
}
END_TEST

/* So many patterns that one key would keep the node for seconds: refused, the others not. */
START_TEST(test_steps_are_bounded)
{
	struct exchange *x = world_exchange(&w, "x", "topic", false, NULL);
	struct queue *q = world_queue(&w, "q");
	char key[256] = "";

	for (int i = 0; i < 4096; i++) {
		char pattern[64];

		hostile_pattern(pattern, sizeof pattern, i, 12);
		world_bind(x, q, NULL, pattern);
	}
	for (int i = 0; i < 120; i++)
		memcpy(key + (size_t)2 * (size_t)i, "a.", 2);
	key[240] = 'z';
	ck_assert_ptr_null(route_find(x, span_str(key), NONE));
	ck_assert_uint_eq(w.b->stats.route_refused, 1);
	ck_assert_ptr_null(route_find(x, span_str(key), NONE)); /* nothing wrong was remembered */
	ck_assert_uint_eq(count(x, "a.a.a.a.a.a.a.a.a.a.a.a.z"), 1);
	ck_assert_uint_eq(count(x, "z"), 0);
}
END_TEST

/* The same for bindings of a headers exchange, each of which is looked at for each message: too many of them, or too
 * much to compare. */
START_TEST(test_headers_are_bounded)
{
	size_t n = _i == 0 ? 1 : 60000;
	uint32_t fine = ROUTE_STEPS_MAX / (2 + (uint32_t)n / 64), i;
	char *text = xcalloc(1, n + 1), key[12];
	struct exchange *x = world_exchange(&w, "x", "headers", false, NULL);
	struct queue *q = world_queue(&w, "q");
	struct table_writer t;
	struct table *arguments;

	memset(text, 'x', n);
	table_writer_init(&t, n + 100);
	table_put_string(&t, "h", text);
	arguments = table_from_raw(span_of(t.p, t.n));
	for (i = 0; i <= fine; i++) {
		if (i == fine - 1)
			ck_assert_uint_eq(
			    route_find(x, SPAN_LIT(""), table_span(arguments))->count, 1);
		snprintf(key, sizeof key, "%u", i);
		ck_assert_ptr_null(binding_add(x, q, NULL, span_str(key), arguments));
	}
	ck_assert_ptr_null(route_find(x, SPAN_LIT(""), table_span(arguments)));
	ck_assert_uint_eq(w.b->stats.route_refused, 1);
	/* nothing to compare with: only the bindings count */
	ck_assert_int_eq(route_find(x, SPAN_LIT(""), NONE) == NULL, _i == 0);
	table_free(&arguments);
	table_writer_fini(&t);
	free(text);
}
END_TEST

/* Bindings without number from one exchange to one queue: each message would walk over all of them, and those that no
 * cache keeps do. As many to different queues are fine, for each gets the message. */
START_TEST(test_repeats_are_bounded)
{
	static const char *const types[] = { "fanout", "direct", "topic" };
	struct exchange *x = world_exchange(&w, "x", types[_i], false, NULL);
	struct queue *q = world_queue(&w, "q");
	uint64_t before;

	for (uint32_t i = 0; i <= ROUTE_STEPS_MAX; i++) {
		struct table_writer t;
		struct table *arguments;

		if (i == ROUTE_STEPS_MAX)
			ck_assert_uint_eq(count(x, "k"), 1);
		table_writer_init(&t, 100);
		table_put_field(
		    &t, &(struct field){ .name = SPAN_LIT("n"), .kind = 'i', .integer = i });
		arguments = table_from_raw(span_of(t.p, t.n));
		ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("k"), arguments));
		table_free(&arguments);
		table_writer_fini(&t);
	}
	before = w.b->work;
	ck_assert_ptr_null(route_find(x, SPAN_LIT("k"), NONE));
	ck_assert_uint_eq(w.b->stats.route_refused, 1);
	ck_assert_uint_ge(w.b->work - before, ROUTE_STEPS_MAX);
}
END_TEST

START_TEST(test_default_exchange)
{
	struct exchange *d = w.vh->default_exchange;
	struct queue *q;

	ck_assert_uint_eq(count(d, "q"), 0);
	q = world_queue(&w, "q");
	ck_assert(route_has(route_find(d, SPAN_LIT("q"), NONE), q));
	queue_remove(q);
	ck_assert_uint_eq(count(d, "q"), 0);
}
END_TEST

/* Generations rise for what remembers a route, and only as far as one is remembered. */
START_TEST(test_generation)
{
	struct exchange *top = world_exchange(&w, "top", "direct", false, NULL);
	struct exchange *low = world_exchange(&w, "low", "direct", false, NULL);
	struct exchange *aside = world_exchange(&w, "aside", "direct", false, NULL);
	struct queue *q = world_queue(&w, "q");
	uint64_t g, other;

	world_bind(top, NULL, low, "k");
	(void)count(top, "k");
	(void)count(aside, "k");
	g = top->generation;
	other = aside->generation;
	world_bind(low, q, NULL, "k");
	ck_assert_uint_ne(top->generation, g);
	ck_assert_uint_eq(aside->generation, other);
	ck_assert_uint_eq(count(top, "k"), 1);
	g = top->generation;
	world_bind(low, q, NULL, "k");
	ck_assert_uint_eq(top->generation, g);
	world_bind(low, q, NULL, "j");
	ck_assert_uint_ne(top->generation, g);
	g = top->generation;
	world_bind(low, q, NULL, "i");
	ck_assert_uint_eq(top->generation, g);
}
END_TEST

/* The cache: kept, bounded in keys and in bytes, never wrong. */
START_TEST(test_cache)
{
	struct exchange *x = world_exchange(&w, "x", "topic", false, NULL);
	struct queue *q = world_queue(&w, "q");
	char key[40];
	uint64_t misses;
	int i, round;

	world_bind(x, q, NULL, "k.#");
	for (round = 0; round < 2; round++) {
		misses = w.b->stats.route_cache_misses;
		for (i = 0; i < 1000; i++) {
			snprintf(key, sizeof key, "k.%d", i);
			ck_assert_uint_eq(count(x, key), 1);
		}
	}
	ck_assert_uint_le(w.b->stats.route_cache_misses - misses, 10);
	for (i = 0; i < 50000; i++) {
		snprintf(key, sizeof key, "%s.%d", i % 2 ? "k" : "j", i);
		ck_assert_uint_eq(count(x, key), (uint32_t)i % 2);
	}
	ck_assert_uint_le(route_cache_bytes(), 1 << 20);
	world_bind(x, q, NULL, "j.#");
	for (i = 0; i < 50000; i++) {
		snprintf(key, sizeof key, "%s.%d", i % 2 ? "k" : "j", i);
		ck_assert_uint_eq(count(x, key), 1);
	}
}
END_TEST

/* Routes of a thousand queues under many keys: 8 KB each, so bytes are the bound. */
START_TEST(test_cache_bytes)
{
	struct exchange *x[20];
	struct queue *q;
	char name[40];
	int i, k;

	for (k = 0; k < 20; k++) {
		snprintf(name, sizeof name, "x%d", k);
		x[k] = world_exchange(&w, name, "topic", false, NULL);
	}
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "q%d", i);
		q = world_queue(&w, name);
		for (k = 0; k < 20; k++)
			world_bind(x[k], q, NULL, "#");
	}
	for (k = 0; k < 20; k++) {
		for (i = 0; i < 1200; i++) {
			snprintf(name, sizeof name, "k%d", i);
			ck_assert_uint_eq(count(x[k], name), 1000);
		}
		ck_assert_uint_le(route_cache_bytes(), (size_t)(k + 1) * (4 << 20));
		ck_assert_uint_le(route_cache_bytes(), 64 << 20);
	}
	ck_assert_uint_gt(route_cache_bytes(), 60 << 20);
}
END_TEST

/* A fanout's route is one entry, whatever the keys are. */
START_TEST(test_cache_any_key)
{
	struct exchange *x = world_exchange(&w, "x", "fanout", false, NULL);
	char key[40];
	int i;

	world_bind(x, world_queue(&w, "q"), NULL, "");
	(void)count(x, "k");
	for (i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%d", i);
		ck_assert_uint_eq(count(x, key), 1);
	}
	ck_assert_uint_eq(w.b->stats.route_cache_misses, 1);
	world_bind(x, NULL, world_exchange(&w, "d", "direct", false, NULL), "");
	world_bind(exchange_find(w.vh, SPAN_LIT("d")), world_queue(&w, "r"), NULL, "k1");
	ck_assert_uint_eq(count(x, "k1"), 2);
	ck_assert_uint_eq(count(x, "k2"), 1);
}
END_TEST

START_TEST(test_cc)
{
	struct span both =
	    SPAN_LIT("\2CCA\0\0\0\17S\0\0\0\1bS\0\0\0\1bVVV\3BCCA\0\0\0\6S\0\0\0\1c");
	struct exchange *x = world_exchange(&w, "x", "direct", false, NULL);
	struct queue *q[3];
	char key[] = "a";
	int i;

	for (i = 0; i < 3; i++, key[0]++) {
		q[i] = world_queue(&w, key);
		world_bind(x, q[i], NULL, key);
	}
	ck_assert_int_eq(table_check(both, 64), 0);
	ck_assert_uint_eq(route_find(x, SPAN_LIT("a"), both)->count, 3);
	ck_assert_uint_eq(route_find(x, SPAN_LIT("z"), both)->count, 2);
	ck_assert(route_find(x, SPAN_LIT("z"), both)->by_headers);
	ck_assert_uint_eq(route_find(w.vh->default_exchange, SPAN_LIT("a"), both)->count, 3);
	ck_assert_uint_eq(
	    route_find(x, SPAN_LIT("a"), SPAN_LIT("\2ccA\0\0\0\6S\0\0\0\1b"))->count, 1);
	ck_assert_uint_eq(count(x, "z"), 0);
}
END_TEST

static const struct {
	struct span headers;
	const char *text;
	bool cc, bcc;
} ccs[] = {
	{ SPAN_LIT(""), NULL, false, false },
	{ SPAN_LIT("\2CCA\0\0\0\0"), NULL, true, false },
	{ SPAN_LIT("\3BCCA\0\0\0\0"), NULL, true, true },
	{ SPAN_LIT("\2CCA\0\0\0\0\2CCV"), NULL, true, false },
	{ SPAN_LIT("\2ccV"), NULL, false, false },
	{ SPAN_LIT("\2CCV"),
	    "PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,\"CC\",void}", 0,
	    0 },
	{ SPAN_LIT("\3BCCS\0\0\0\1x"),
	    "PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,\"BCC\",longstr}",
	    0, 0 },
	{ SPAN_LIT("\3BCCt\1\2CCI\0\0\0\1"),
	    "PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,\"CC\",signedint}",
	    0, 0 },
};

START_TEST(test_check_cc)
{
	bool cc, bcc;
	const struct error *e = route_check_cc(ccs[_i].headers, &cc, &bcc);

	if (ccs[_i].text != NULL) {
		ck_assert_ptr_nonnull(e);
		ck_assert_str_eq(e->text, ccs[_i].text);
		return;
	}
	ck_assert_ptr_null(e);
	ck_assert_int_eq(cc, ccs[_i].cc);
	ck_assert_int_eq(bcc, ccs[_i].bcc);
}
END_TEST

START_TEST(test_too_many_cc)
{
	static uint8_t raw[8 + 5 * 5000];
	bool cc, bcc;
	int i;

	memcpy(raw, "\2CCA", 4);
	put_be32(raw + 4, 5 * (ROUTE_KEYS_MAX - 1));
	for (i = 0; i < 5000; i++)
		raw[8 + 5 * i] = 'S';
	ck_assert_ptr_null(route_check_cc(span_of(raw, 8 + 5 * (ROUTE_KEYS_MAX - 1)), &cc, &bcc));
	put_be32(raw + 4, 5 * ROUTE_KEYS_MAX);
	ck_assert_ptr_nonnull(route_check_cc(span_of(raw, 8 + 5 * ROUTE_KEYS_MAX), &cc, &bcc));
}
END_TEST

/* Thousands of keys do not make thousands of walks over bindings that match whatever the key is. */
START_TEST(test_many_cc_to_a_fanout)
{
	enum { QUEUES = 2000, TIMES = 100 };
	static uint8_t raw[8 + 5 * (ROUTE_KEYS_MAX - 1)];
	struct exchange *x = world_exchange(&w, "x", "fanout", false, NULL);
	clock_t before;
	char name[16];
	int i;

	memcpy(raw, "\2CCA", 4);
	put_be32(raw + 4, sizeof raw - 8);
	for (i = 8; i < (int)sizeof raw; i += 5)
		raw[i] = 'S';
	for (i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "q%d", i);
		world_bind(x, world_queue(&w, name), NULL, "");
	}
	before = clock();
	for (i = 0; i < TIMES; i++)
		ck_assert_uint_eq(
		    route_find(x, SPAN_LIT("k"), span_of(raw, sizeof raw))->count, QUEUES);
	ck_assert_int_lt(clock() - before, CLOCKS_PER_SEC);
}
END_TEST

static const struct {
	struct span before, after;
} cuts[] = {
	{ SPAN_LIT(""), SPAN_LIT("") },
	{ SPAN_LIT("\3BCCA\0\0\0\0"), SPAN_LIT("") },
	{ SPAN_LIT("\1at\5\3BCCA\0\0\0\0\2CCV"), SPAN_LIT("\1at\5\2CCV") },
	{ SPAN_LIT("\3BCCA\0\0\0\0\1aV\3BCCV"), SPAN_LIT("\1aV\3BCCV") },
};

START_TEST(test_without_bcc)
{
	size_t n = 99;
	uint8_t *p = route_without_bcc(cuts[_i].before, &n);

	ck_assert_ptr_nonnull(p);
	ck_assert(span_eq(span_of(p, n), cuts[_i].after));
	free(p);
	mem_fail_try(1, 0);
	ck_assert_ptr_null(route_without_bcc(cuts[_i].before, &n));
}
END_TEST

/* ---- the router that remembers nothing ---- */

enum { XS = 7, QS = 5, BINDINGS = 60, KEYS = 6 };

static const char *const keys[KEYS] = { "", "a", "a.b", "b.a.b", "*.b", "#" };
static const char *const kinds[] = { "direct", "fanout", "topic", "headers" };

struct model_binding {
	bool used, with_header; /* with_header: arguments h=1 */
	int from, queue, to, key;
};

static struct model {
	struct {
		bool there, auto_delete;
		int type, alternate; /* alternate -1: none */
	} x[XS];
	bool queue[QS];
	struct model_binding b[BINDINGS];
} m;

static const char *
x_name(int i)
{
	static char name[XS][16];

	snprintf(name[i], sizeof name[i], "x%d", i);
	return name[i];
}

static const char *
q_name(int i)
{
	static char name[QS][16];

	snprintf(name[i], sizeof name[i], "q%d", i);
	return name[i];
}

static struct exchange *
real_x(int i)
{
	return exchange_find(w.vh, span_str(x_name(i)));
}

static struct queue *
real_q(int i)
{
	return queue_find(w.vh, span_str(q_name(i)));
}

static bool
model_matches(const struct model_binding *b, const char *key, bool header)
{
	switch (m.x[b->from].type) {
	case 0: return strcmp(keys[b->key], key) == 0;
	case 1: return true;
	case 2: return naive_topic(keys[b->key], key);
	default: return !b->with_header || header;
	}
}

/* key2 NULL: no CC. */
static void
model_route(int x, const char *key, const char *key2, bool header, bool *seen, bool *queues)
{
	bool hit = false;
	int i;

	if (seen[x])
		return;
	seen[x] = true;
	for (i = 0; i < BINDINGS; i++) {
		const struct model_binding *b = &m.b[i];

		if (!b->used || b->from != x)
			continue;
		if (!model_matches(b, key, header) &&
		    !(key2 != NULL && model_matches(b, key2, header)))
			continue;
		hit = true;
		if (b->queue >= 0)
			queues[b->queue] = true;
		else
			model_route(b->to, key, key2, header, seen, queues);
	}
	i = m.x[x].alternate;
	if (!hit && i >= 0 && m.x[i].there)
		model_route(i, key, key2, header, seen, queues);
}

static void model_delete_exchange(int x);

static void
model_unbind(struct model_binding *b)
{
	int i, from = b->from, left = 0;

	b->used = false;
	for (i = 0; i < BINDINGS; i++)
		left += m.b[i].used && m.b[i].from == from;
	if (left == 0 && m.x[from].there && m.x[from].auto_delete)
		model_delete_exchange(from);
}

static void
model_delete_exchange(int x)
{
	int i;

	m.x[x].there = false;
	for (i = 0; i < BINDINGS; i++) {
		if (m.b[i].used && m.b[i].from == x)
			m.b[i].used = false;
	}
	for (i = 0; i < BINDINGS; i++) {
		if (m.b[i].used && m.b[i].queue < 0 && m.b[i].to == x)
			model_unbind(&m.b[i]);
	}
}

static void
change_exchange(void)
{
	int i = (int)world_random(XS);

	if (m.x[i].there) {
		ck_assert_ptr_null(exchange_delete(w.vh, span_str(x_name(i)), false));
		model_delete_exchange(i);
		return;
	}
	m.x[i].there = true;
	m.x[i].type = (int)world_random(4);
	m.x[i].auto_delete = world_random(4) == 0;
	m.x[i].alternate = world_random(2) == 0 ? (int)world_random(XS) : -1;
	(void)world_exchange(&w, x_name(i), kinds[m.x[i].type], m.x[i].auto_delete,
	    m.x[i].alternate >= 0 ? x_name(m.x[i].alternate) : NULL);
}

static void
change_queue(void)
{
	int i = (int)world_random(QS), k;

	if (!m.queue[i]) {
		m.queue[i] = true;
		(void)world_queue(&w, q_name(i));
		return;
	}
	m.queue[i] = false;
	queue_remove(real_q(i));
	for (k = 0; k < BINDINGS; k++) {
		if (m.b[k].used && m.b[k].queue == i)
			model_unbind(&m.b[k]);
	}
}

static struct model_binding *
model_find(const struct model_binding *b)
{
	int i;

	for (i = 0; i < BINDINGS; i++) {
		const struct model_binding *o = &m.b[i];

		if (o->used && o->from == b->from && o->queue == b->queue && o->to == b->to &&
		    o->key == b->key && o->with_header == b->with_header)
			return &m.b[i];
	}
	return NULL;
}

static void
change_binding(void)
{
	struct model_binding b = { .used = true,
		.from = (int)world_random(XS),
		.queue = -1,
		.to = -1 },
	                     *old;
	struct table *arguments;
	int i;

	b.key = (int)world_random(KEYS);
	b.with_header = world_random(3) == 0;
	if (world_random(2) == 0)
		b.queue = (int)world_random(QS);
	else
		b.to = (int)world_random(XS);
	if (!m.x[b.from].there || (b.queue >= 0 ? !m.queue[b.queue] : !m.x[b.to].there))
		return;
	arguments = table_from_raw(b.with_header ? SPAN_LIT("\1hB\1") : NONE);
	old = model_find(&b);
	for (i = 0; i < BINDINGS && m.b[i].used; i++)
		continue;
	if (world_random(3) == 0) {
		ck_assert_ptr_null(
		    binding_remove(real_x(b.from), b.queue >= 0 ? real_q(b.queue) : NULL,
		        b.to >= 0 ? real_x(b.to) : NULL, span_str(keys[b.key]), arguments));
		if (old != NULL)
			model_unbind(old);
	} else if (old != NULL || i < BINDINGS) {
		ck_assert_ptr_null(
		    binding_add(real_x(b.from), b.queue >= 0 ? real_q(b.queue) : NULL,
		        b.to >= 0 ? real_x(b.to) : NULL, span_str(keys[b.key]), arguments));
		if (old == NULL)
			m.b[i] = b;
	}
	table_free(&arguments);
}

static void
compare(int x, int key, int key2, bool header)
{
	bool seen[XS] = { false }, queues[QS] = { false };
	uint8_t raw[100];
	struct span headers = NONE;
	const struct route *r;
	uint32_t n = 0;
	int i;

	if (header)
		headers = SPAN_LIT("\1hB\1");
	if (key2 >= 0) {
		size_t len = strlen(keys[key2]);

		memcpy(raw, "\2CCA", 4);
		put_be32(raw + 4, (uint32_t)len + 5);
		raw[8] = 'S';
		put_be32(raw + 9, (uint32_t)len);
		memcpy(raw + 13, keys[key2], len);
		memcpy(raw + 13 + len, "\1hB\1", header ? 4 : 0);
		headers = span_of(raw, 13 + len + (header ? 4 : 0));
	}
	model_route(x, keys[key], key2 >= 0 ? keys[key2] : NULL, header, seen, queues);
	r = route_find(real_x(x), span_str(keys[key]), headers);
	for (i = 0; i < QS; i++) {
		n += queues[i];
		ck_assert_msg(!queues[i] || route_has(r, real_q(i)), "%s misses %s, key '%s'",
		    x_name(x), q_name(i), keys[key]);
	}
	ck_assert_uint_eq(r->count, n);
}

START_TEST(test_against_model)
{
	int round, i;

	world_seed += (uint64_t)_i * 7919;
	memset(&m, 0, sizeof m);
	for (round = 0; round < 20000; round++) {
		switch (world_random(12)) {
		case 0: change_exchange(); break;
		case 1: change_queue(); break;
		default: change_binding(); break;
		}
		for (i = 0; i < XS; i++) {
			ck_assert_int_eq(m.x[i].there, real_x(i) != NULL);
			/* Not all of them each time: what is not asked for stays unobserved. */
			if (m.x[i].there && world_random(3) == 0)
				compare(i, (int)world_random(KEYS),
				    world_random(4) == 0 ? (int)world_random(KEYS) : -1,
				    world_random(2) == 0);
		}
		if (round % 64 == 0)
			broker_reap(w.b);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("route");
	TCase *t = tcase_create("route");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_diamond);
	tcase_add_test(t, test_cycles);
	tcase_add_test(t, test_alternate);
	tcase_add_test(t, test_alternate_chain);
	tcase_add_test(t, test_topology_is_counted);
	tcase_add_test(t, test_topology_is_bounded);
	tcase_add_test(t, test_steps_are_work);
	tcase_add_test(t, test_steps_are_bounded);
	tcase_add_loop_test(t, test_headers_are_bounded, 0, 2);
	tcase_add_loop_test(t, test_repeats_are_bounded, 0, 3);
	tcase_add_test(t, test_default_exchange);
	tcase_add_test(t, test_generation);
	tcase_add_test(t, test_cache);
	tcase_add_test(t, test_cache_bytes);
	tcase_add_test(t, test_cache_any_key);
	tcase_add_test(t, test_cc);
	tcase_add_loop_test(t, test_check_cc, 0, COUNT_OF(ccs));
	tcase_add_test(t, test_too_many_cc);
	tcase_add_test(t, test_many_cc_to_a_fanout);
	tcase_add_loop_test(t, test_without_bcc, 0, COUNT_OF(cuts));
	tcase_add_loop_test(t, test_against_model, 0, 4);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return run_suite(s);
}
