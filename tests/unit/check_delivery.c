/* SPDX-License-Identifier: Apache-2.0
 * Deliveries: every size of body against every size of frame, whole and chained, by each of the
 * four methods that carry a message; references counted; output bounded. */
#include <check.h>

#include "tests/unit/channel_world.h"

static struct world w;
static struct peer p;
static struct channel *ch;
static struct consumer *k;
static struct inbox in;
static uint8_t pattern[400000]; /* the beginning of every body */

static void
setup(void)
{
	static const char prefix[] = "\1\0\1\0\0\0\0\0\74\0\74\3tag";

	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 7 + i / 251);
	world_init(&w);
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	peer_channel(&p, 1);
	ch = connection_channel(p.c, 1);
	k = xcalloc(1, sizeof *k + sizeof prefix - 1);
	k->session = &ch->session;
	k->prefix_len = sizeof prefix - 1;
	k->tag_len = 3;
	memcpy(k->prefix, prefix, sizeof prefix - 1);
}

static void
teardown(void)
{
	inbox_fini(&in);
	free(k);
	peer_fini(&p);
	world_fini(&w);
	world_held_nothing();
}

/* chunk 0: the body stands in wire, else in pieces that came in frames of this size. */
static struct msg *
make(uint64_t size, size_t chunk, size_t filler)
{
	static const uint8_t names[] = "\2ex\3key\316";
	size_t names_len = sizeof names - 1, header = FRAME_OVERHEAD + 14 + filler;
	bool in_wire = size > 0 && chunk == 0;
	struct msg *m =
	    msg_try_new(msg_wire_size((uint32_t)(names_len + header), in_wire ? size : 0));
	struct msg_piece *last = NULL;
	uint8_t *h = m->wire + names_len;

	m->names_len = (uint16_t)names_len;
	m->meta_len = (uint32_t)(names_len + header);
	m->body_size = size;
	memcpy(m->wire, names, names_len);
	h[0] = FRAME_HEADER;
	put_be16(h + 1, 777);
	put_be32(h + 3, (uint32_t)(14 + filler));
	put_be32(h + 7, 60u << 16);
	put_be64(h + 11, size);
	memset(h + 19, 0, 2 + filler);
	h[header - 1] = FRAME_END;
	if (in_wire) {
		h[header] = FRAME_BODY;
		put_be16(h + header + 1, 777);
		put_be32(h + header + 3, (uint32_t)size);
		memcpy(h + header + 7, pattern, size);
		h[header + 7 + size] = FRAME_END;
	}
	for (uint64_t at = 0; chunk > 0 && at < size; at += chunk) {
		size_t n = size - at < chunk ? size - at : chunk;

		ck_assert(msg_try_append(m, &last, pattern + at, n, size - at));
	}
	return m;
}

static const uint32_t ids[] = { AMQP_BASIC_DELIVER_METHOD, AMQP_BASIC_GET_OK_METHOD,
	AMQP_BASIC_RETURN_METHOD, AMQP_BASIC_DELIVER_METHOD };

static void
send_as(unsigned how, struct msg *m)
{
	struct entry e = { .m = m, .seq_flags = 5 << 8 | ENTRY_REDELIVERED };

	switch (how) {
	case 0: delivery_write(k, &e, 0x0102030405060708); break;
	case 1: delivery_write_get(ch, &e, 0x0102030405060708, 9, false); break;
	case 2: delivery_write_return(ch, m); break;
	default: delivery_write_reply(ch, k->prefix, k->prefix_len, 0x0102030405060708, m); break;
	}
}

static const struct {
	const char *args;
	size_t n;
} expected[] = {
	{ "\3tag\1\2\3\4\5\6\7\10\1\2ex\3key", 20 },
	{ "\1\2\3\4\5\6\7\10\1\2ex\3key\0\0\0\11", 20 },
	{ "\1\70\10NO_ROUTE\2ex\3key", 18 },
	{ "\3tag\1\2\3\4\5\6\7\10\0\2ex\3key", 20 },
};

static void
check_one(unsigned how, uint64_t size, size_t chunk, uint32_t frame_max, size_t filler)
{
	struct msg *m = make(size, chunk, filler);
	struct content_seen c;
	uint64_t frames = (size + frame_max - 9) / (frame_max - 8);

	p.c->frame_max = frame_max;
	send_as(how, m);
	inbox_fill(&in, &p);
	c = inbox_content(&in, ids[how]);
	inbox_empty(&in);
	ck_assert_uint_eq(c.args.n, expected[how].n);
	ck_assert_mem_eq(c.args.p, expected[how].args, c.args.n);
	ck_assert_uint_eq(c.channel, 1);
	ck_assert_uint_eq(c.header.n, 14 + filler);
	ck_assert_mem_eq(c.header.p, m->wire + m->names_len + FRAME_HEAD, c.header.n);
	ck_assert_uint_eq(c.size, size);
	ck_assert(size == 0 || memcmp(c.body, pattern, size) == 0);
	ck_assert_uint_eq(c.frames, frames);
	ck_assert_uint_eq(c.frame_max, frames > 1 ? frame_max - 8 : size);
	ck_assert_uint_eq(m->refs, 1);
	free(c.body);
	in.n = in.at = 0;
	msg_unref(&m);
}

START_TEST(every_size)
{
	static const uint32_t frame_max[] = { 4096, 4100, 8192, 131072 };
	static const uint64_t size[] = { 0, 1, 2, 100, 4087, 4088, 4089, 4095, 4096, 4097, 8176,
		8177, 12264, 20000, 131063, 131064, 131065, 140000, 262128, 300001 };
	static const size_t chunk[] = { 0, 100, 4000, 4096, 131064 };

	for (size_t f = 0; f < COUNT_OF(frame_max); f++) {
		for (size_t s = 0; s < COUNT_OF(size); s++) {
			for (size_t c = 0; c < COUNT_OF(chunk); c++)
				check_one((unsigned)_i, size[s], chunk[c], frame_max[f], 0);
		}
	}
}
END_TEST

/* A header that does not fit a chunk of output, or the receiver's frames, goes out whole. */
START_TEST(long_header)
{
	static const size_t filler[] = { 4000, 5000, CHUNK_SIZE - 300, CHUNK_SIZE - 60, CHUNK_SIZE,
		130000 };

	for (size_t i = 0; i < COUNT_OF(filler); i++) {
		check_one((unsigned)_i, 0, 0, 131072, filler[i]);
		check_one((unsigned)_i, 10, 0, 131072, filler[i]);
		check_one((unsigned)_i, 10000, 0, 4096, filler[i]);
		check_one((unsigned)_i, 10000, 3000, 131072, filler[i]);
	}
}
END_TEST

/* Many after one another: chunks end in the middle of deliveries. */
START_TEST(stream)
{
	struct msg *m[3] = { make(16, 0, 0), make(3000, 0, 0), make(5000, 0, 0) };
	struct content_seen c;

	p.c->frame_max = 131072;
	for (unsigned i = 0; i < 200; i++)
		send_as(0, m[i % 3]);
	inbox_fill(&in, &p);
	for (unsigned i = 0; i < 200; i++) {
		c = inbox_content(&in, AMQP_BASIC_DELIVER_METHOD);
		ck_assert_uint_eq(c.size, m[i % 3]->body_size);
		ck_assert(memcmp(c.body, pattern, c.size) == 0);
		free(c.body);
	}
	inbox_empty(&in);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(m[i]->refs, 1);
		msg_unref(&m[i]);
	}
}
END_TEST

START_TEST(bounds)
{
	struct msg *m = make(100000, 0, 0);

	p.c->frame_max = 131072;
	w.cfg.output = 250000;
	w.cfg.output_max = 450000;
	send_as(0, m);
	send_as(0, m);
	ck_assert(!p.c->client.output_full);
	send_as(0, m);
	ck_assert(p.c->client.output_full);
	ck_assert_uint_eq(p.c->io->paused, 0);
	send_as(1, m);
	send_as(2, m);
	ck_assert_uint_eq(p.c->io->paused, PAUSE_OUTPUT);
	ck_assert_uint_eq(m->refs, 6);
	/* the peer never reads: all references come back with its end */
	peer_fini(&p);
	ck_assert_uint_eq(m->refs, 1);
	msg_unref(&m);
	peer_init(&p, &w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("delivery");
	TCase *t = tcase_create("delivery");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, every_size, 0, COUNT_OF(ids));
	tcase_add_loop_test(t, long_header, 0, COUNT_OF(ids));
	tcase_add_test(t, stream);
	tcase_add_test(t, bounds);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
