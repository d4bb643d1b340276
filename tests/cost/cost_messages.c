/* SPDX-License-Identifier: Apache-2.0
 * Messages through the real code with nothing left to chance, so that two runs take the same instructions: one
 * publisher, one consumer, socket pairs, a clock that stands still and random bytes that are not. run.sh counts.
 *
 *	cost_messages SCENARIO COUNT
 *
 * s1: 16 bytes, automatic acknowledgement. s2: 256 bytes, one ack for each 100, prefetch 1000. Of this program itself
 * little is counted: frames are built once, what comes back is only measured. Fails when not all of it came. */
#include <stdio.h>

#include "base/clock.h"
#include "base/random.h"
#include "tests/unit/amqp_world.h"
#include "tests/unit/channel_world.h"

enum {
	BATCH =
	    200, /* messages a turn: about what one read has under load, and less than a socket holds */
	ACK_EVERY = 100, /* divides BATCH */
	SOCKET_BYTES = 1 << 20
};

struct scenario {
	const char *name;
	size_t body;
	bool no_ack;
	uint16_t prefetch;
};

static const struct scenario scenarios[] = {
	{ "s1", 16, true, 0 },
	{ "s2", 256, false, 1000 },
};

/* --- in place of base/clock.c and base/random.c, which the linker then leaves out ------------------- */

void
clock_init(void)
{
}

uint64_t
clock_mono_us(void)
{
	return 1000000;
}

uint64_t
clock_cpu_us(void)
{
	return 0;
}

uint64_t
clock_now_ms(void)
{
	return 1000000;
}

uint64_t
clock_since_start_us(void)
{
	return 0;
}

void
random_bytes(void *p, size_t n)
{
	memset(p, 0x5A, n);
}

void
random_name(char out[RANDOM_NAME_SIZE])
{
	memset(out, 'x', RANDOM_NAME_SIZE - 1);
	out[RANDOM_NAME_SIZE - 1] = '\0';
}

/* --- the messages ---------------------------------------------------------------------------------- */

static void
give_up(const char *what)
{
	fprintf(stderr, "cost_messages: %s\n", what);
	exit(1);
}

/* Where nothing waits on the other side, a send takes all of it: another outcome would be another path. */
static void
send_all(struct peer *p, const uint8_t *bytes, size_t n)
{
	if (send(p->fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		give_up("the socket did not take a batch");
}

static size_t
receive_all(struct peer *p)
{
	static uint8_t in[SOCKET_BYTES];
	size_t sum = 0;
	ssize_t n;

	while ((n = read(p->fd, in, sizeof in)) > 0)
		sum += (size_t)n;
	return sum;
}

static void
widen(int fd)
{
	int bytes = SOCKET_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) < 0)
		give_up("setsockopt failed");
}

static uint8_t *
build_batch(const struct scenario *s, size_t *n)
{
	uint8_t body[256] = { 0 }, *one, *all;
	struct publish what = { .key = "cost", .body = span_of(body, s->body) };
	size_t size;

	one = put_publish(1, &what, &size);
	all = xmalloc(size * BATCH);
	for (size_t i = 0; i < BATCH; i++)
		memcpy(all + i * size, one, size);
	free(one);
	*n = size * BATCH;
	return all;
}

static void
acknowledge(struct peer *p, uint64_t done)
{
	uint8_t out[BATCH / ACK_EVERY * 32], args[9] = { [8] = 1 };
	size_t n = 0;

	for (uint64_t tag = done - BATCH + ACK_EVERY; tag <= done; tag += ACK_EVERY) {
		put_be64(args, tag);
		n += put_method(out + n, 1, AMQP_BASIC_ACK_METHOD, args, sizeof args);
	}
	send_all(p, out, n);
}

static void
run(struct world *w, struct peer *from, struct peer *to, const struct scenario *s, uint64_t count)
{
	/* head, consumer tag "t", delivery tag, redelivered, exchange "", key "cost"; header; body */
	size_t each =
	    FRAME_OVERHEAD + 4 + 2 + 8 + 1 + 1 + 5 + FRAME_OVERHEAD + 14 + FRAME_OVERHEAD + s->body;
	size_t n;
	uint8_t *batch = build_batch(s, &n);

	for (uint64_t done = BATCH; done <= count; done += BATCH) {
		size_t came = 0;

		send_all(from, batch, n);
		for (unsigned turns = 0; came < BATCH * each && turns < 8; turns++) {
			world_turn(w);
			came += receive_all(to);
		}
		if (came != BATCH * each)
			give_up("not all messages came back");
		if (!s->no_ack)
			acknowledge(to, done);
	}
	free(batch);
}

static void
declare(struct broker *b)
{
	struct queue_spec spec = { .name = SPAN_LIT("cost") };
	struct queue *q = NULL;

	if (queue_declare(vhost_find(b, SPAN_LIT("/")), &spec, NULL, &q) != NULL)
		give_up("the queue was refused");
}

static void
prefetch(struct peer *p, uint16_t count)
{
	uint8_t args[7] = { 0 };

	put_be16(args + 4, count);
	peer_method(p, 1, AMQP_BASIC_QOS_METHOD, args, sizeof args);
}

int
main(int argc, char **argv)
{
	static struct peer from, to;
	const struct scenario *s = NULL;
	struct world w;

	for (size_t i = 0; i < COUNT_OF(scenarios) && argc == 3; i++)
		if (strcmp(argv[1], scenarios[i].name) == 0)
			s = &scenarios[i];
	if (s == NULL) {
		fputs("usage: cost_messages s1|s2 COUNT\n", stderr);
		return 2;
	}
	log_set_level(LOG_ERROR);
	world_init(&w);
	declare(w.b);
	peer_init(&from, &w);
	widen(from.fd);
	peer_reach(&from, CONN_OPEN);
	peer_channel(&from, 1);
	peer_init(&to, &w);
	widen(to.c->io->fd);
	peer_reach(&to, CONN_OPEN);
	peer_channel(&to, 1);
	if (s->prefetch > 0)
		prefetch(&to, s->prefetch);
	peer_consume(&to, 1, "cost", "t", s->no_ack);
	peer_forget(&to);
	run(&w, &from, &to, s, strtoull(argv[2], NULL, 10));
	peer_fini(&from);
	peer_fini(&to);
	world_fini(&w);
	return 0;
}
