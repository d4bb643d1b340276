/* SPDX-License-Identifier: Apache-2.0
 * What a transport costs: frames of SIZE bytes come in on one, are copied to the output of another.
 *	bench_transport [SIZE [SECONDS]]
 * Prints the CPU time of the loop's thread per million frames, and its calls into the kernel. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "net/loop.h"
#include "net/transport.h"

enum { PIECE = 256 << 10, HIGH = 1 << 20 };

struct relay {
	struct transport *in, *out;
	size_t size;
	uint64_t frames;
	bool ended;
};

static size_t
on_bytes(void *owner, uint8_t *p, size_t n)
{
	struct relay *r = owner;
	size_t used = 0;

	for (; n - used >= r->size; used += r->size, r->frames++) {
		memcpy(transport_room(r->out, r->size), p + used, r->size);
		transport_wrote(r->out, r->size);
	}
	if (r->out->pending >= HIGH)
		transport_pause(r->in, PAUSE_OUTPUT);
	return used;
}

static void
on_room(void *owner)
{
	transport_resume(((struct relay *)owner)->in, PAUSE_OUTPUT);
}

static void
on_end(void *owner, UNUSED enum transport_end why, UNUSED int err)
{
	((struct relay *)owner)->ended = true;
}

static void
pair(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int ls = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(ls, (struct sockaddr *)&a, n) < 0 || listen(ls, 1) < 0 ||
	    getsockname(ls, (struct sockaddr *)&a, &n) < 0)
		exit(1);
	fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[1], (struct sockaddr *)&a, n) < 0)
		exit(1);
	fd[0] = accept4(ls, NULL, NULL, SOCK_NONBLOCK);
	close(ls);
}

static void *
source(void *arg)
{
	static uint8_t piece[PIECE];

	while (send(*(int *)arg, piece, sizeof piece, MSG_NOSIGNAL) > 0)
		continue;
	return NULL;
}

static void *
sink(void *arg)
{
	static uint8_t piece[PIECE];

	while (read(*(int *)arg, piece, sizeof piece) > 0)
		continue;
	return NULL;
}

int
main(int argc, char **argv)
{
	static const struct transport_ops ops = { on_bytes, on_room, on_end, NULL };
	struct relay r = { .size = argc > 1 ? strtoul(argv[1], NULL, 10) : 256 };
	uint64_t seconds = argc > 2 ? strtoul(argv[2], NULL, 10) : 3, until;
	int in[2], out[2];
	struct timespec cpu;
	pthread_t from, to;
	struct loop *l;

	if (r.size == 0 || r.size > CHUNK_SIZE)
		return 2;
	clock_init();
	l = loop_new();
	pair(in);
	pair(out);
	r.in = transport_new(l, in[0], &ops, &r, r.size, HIGH / 2);
	r.out = transport_new(l, out[0], &ops, &r, r.size, HIGH / 2);
	pthread_create(&from, NULL, source, &in[1]);
	pthread_create(&to, NULL, sink, &out[1]);
	for (until = clock_now_ms() + seconds * 1000; clock_now_ms() < until && !r.ended;) {
		loop_wait(l, false);
		loop_read(l);
		loop_flush(l);
		loop_reap(l);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	printf("%zu B: %.2f M/s, %.4f CPU-s per million; turns %lu, recv %lu, writev %lu\n", r.size,
	    (double)r.frames / 1e6 / (double)seconds,
	    ((double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9) * 1e6 / (double)r.frames,
	    (unsigned long)l->turns, (unsigned long)l->recv_calls, (unsigned long)l->writev_calls);
	transport_close(r.in);
	transport_close(r.out);
	pthread_join(from, NULL);
	pthread_join(to, NULL);
	loop_free(&l);
	return 0;
}
