/* SPDX-License-Identifier: Apache-2.0
 * Fills and drains one durable queue as fast as a broker takes it, for tests whose counts are beyond Python's patience.
 *
 *	flood fill PORT QUEUE FIRST COUNT SIZE WINDOW	persistent messages with confirms, WINDOW of them open at most
 *	flood drain PORT QUEUE FIRST COUNT SIZE [KEEP]	takes and acknowledges COUNT messages, every KEEP-th is held
 *						until the end and then acknowledged, too
 *
 * The body of a message is its number (8 bytes, little-endian) and bytes that follow from it; drain checks order, bytes and
 * count. Standard output: one line of JSON with the seconds, and of fill the rates of its slowest and fastest second. Exit
 * status 0, or 1 with a line on standard error. Talks to 127.0.0.1 as guest in vhost "/". */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	FRAME_METHOD = 1,
	FRAME_HEADER = 2,
	FRAME_BODY = 3,
	FRAME_END = 0xce,
	BUFFER = 1 << 20,
	ACK_EVERY = 200
};

struct wire {
	int fd;
	uint8_t out[BUFFER], in[BUFFER];
	size_t out_n, in_n, in_at;
};

static struct wire w;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *fmt, ...)
{
	va_list ap;

	fputs("flood: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- bytes out ---- */

static void
flush(void)
{
	size_t at = 0;

	while (at < w.out_n) {
		ssize_t n = write(w.fd, w.out + at, w.out_n - at);

		if (n < 0)
			fail("write: %s", strerror(errno));
		at += (size_t)n;
	}
	w.out_n = 0;
}

static void
put(const void *p, size_t n)
{
	if (w.out_n + n > sizeof w.out)
		flush();
	if (n > sizeof w.out)
		fail("a piece of %zu bytes", n);
	memcpy(w.out + w.out_n, p, n);
	w.out_n += n;
}

static void
put_int(uint64_t v, unsigned n)
{
	uint8_t b[8];

	for (unsigned i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> 8 * (n - 1 - i));
	put(b, n);
}

static void
put_short(const char *s)
{
	put_int(strlen(s), 1);
	put(s, strlen(s));
}

/* Frame of a method; the caller puts `size` bytes of arguments and then frame_end(). */
static void
method(unsigned channel, unsigned class_id, unsigned method_id, size_t size)
{
	put_int(FRAME_METHOD, 1);
	put_int(channel, 2);
	put_int(4 + size, 4);
	put_int(class_id, 2);
	put_int(method_id, 2);
}

static void
frame_end(void)
{
	put_int(FRAME_END, 1);
}

/* ---- bytes in ---- */

struct frame {
	uint8_t type;
	const uint8_t *p;
	uint32_t n;
};

static uint64_t
get_int(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static bool
has_frame(void)
{
	size_t n = w.in_n - w.in_at;

	return n >= 8 && n >= 8 + get_int(w.in + w.in_at + 3, 4);
}

static void
fill_in(void)
{
	ssize_t n;

	memmove(w.in, w.in + w.in_at, w.in_n - w.in_at);
	w.in_n -= w.in_at;
	w.in_at = 0;
	if (w.in_n == sizeof w.in)
		fail("a frame that is too long");
	n = read(w.fd, w.in + w.in_n, sizeof w.in - w.in_n);
	if (n <= 0)
		fail("read: %s", n == 0 ? "the broker closed the connection" : strerror(errno));
	w.in_n += (size_t)n;
}

static struct frame
next(void)
{
	struct frame f;

	for (;;) {
		while (!has_frame())
			fill_in();
		f.type = w.in[w.in_at];
		f.n = (uint32_t)get_int(w.in + w.in_at + 3, 4);
		f.p = w.in + w.in_at + 7;
		w.in_at += 8 + f.n;
		if (f.type != 8)
			return f;
	}
}

static const uint8_t *
expect(unsigned class_id, unsigned method_id)
{
	struct frame f;

	flush();
	for (;;) {
		f = next();
		if (f.type == FRAME_METHOD && get_int(f.p, 2) == class_id &&
		    get_int(f.p + 2, 2) == method_id)
			return f.p + 4;
		/* connection.blocked and unblocked are no answer to anything */
		if (f.type == FRAME_METHOD && get_int(f.p, 2) == 10 && get_int(f.p + 2, 2) >= 60)
			continue;
		fail("expected %u.%u, got frame %u method %u.%u: %.*s", class_id, method_id, f.type,
		    (unsigned)get_int(f.p, 2), (unsigned)get_int(f.p + 2, 2),
		    f.n > 7 ? (int)f.n - 7 : 0, f.p + 7);
	}
}

static void
open_wire(unsigned port, const char *queue)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	static const char login[] = "\0guest\0guest";
	int one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w.fd = socket(AF_INET, SOCK_STREAM, 0);
	if (w.fd < 0 || connect(w.fd, (struct sockaddr *)&a, sizeof a) != 0)
		fail("connect to port %u: %s", port, strerror(errno));
	setsockopt(w.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	put("AMQP\0\0\11\1", 8);
	(void)expect(10, 10);
	method(0, 10, 11, 4 + 6 + 4 + 12 + 6); /* start-ok */
	put_int(0, 4);
	put_short("PLAIN");
	put_int(sizeof login - 1, 4);
	put(login, sizeof login - 1);
	put_short("en_US");
	frame_end();
	(void)expect(10, 30);
	method(0, 10, 31, 8); /* tune-ok */
	put_int(2047, 2);
	put_int(131072, 4);
	put_int(0, 2);
	frame_end();
	method(0, 10, 40, 4); /* open */
	put_short("/");
	put_short("");
	put_int(0, 1);
	frame_end();
	(void)expect(10, 41);
	method(1, 20, 10, 1);
	put_short("");
	frame_end();
	(void)expect(20, 11);
	method(1, 50, 10, 2 + 1 + strlen(queue) + 1 + 4); /* queue.declare, durable */
	put_int(0, 2);
	put_short(queue);
	put_int(2, 1);
	put_int(0, 4);
	frame_end();
	(void)expect(50, 11);
}

static void
close_wire(void)
{
	method(0, 10, 50, 2 + 1 + 4);
	put_int(200, 2);
	put_short("");
	put_int(0, 4);
	frame_end();
	(void)expect(10, 51);
	close(w.fd);
}

/* ---- messages ---- */

static uint8_t body[1 << 20], seen[1 << 20];

static void
make_body(uint8_t *to, uint64_t number, size_t size)
{
	uint64_t x = number * 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < size; i++)
		to[i] = i < 8 ? (uint8_t)(number >> 8 * i) : (uint8_t)(x >> 8 * (i & 7));
}

static void
publish(const char *queue, uint64_t number, size_t size)
{
	method(1, 60, 40, 2 + 1 + 1 + strlen(queue) + 1);
	put_int(0, 2);
	put_short("");
	put_short(queue);
	put_int(0, 1);
	frame_end();
	put_int(FRAME_HEADER, 1);
	put_int(1, 2);
	put_int(15, 4);
	put_int(60u << 16, 4);
	put_int(size, 8);
	put_int(0x1000, 2); /* delivery mode */
	put_int(2, 1);
	frame_end();
	make_body(body, number, size);
	put_int(FRAME_BODY, 1);
	put_int(1, 2);
	put_int(size, 4);
	put(body, size);
	frame_end();
}

struct rates {
	double began, second;
	uint64_t in_second, slowest, fastest;
};

static void
count_rate(struct rates *r, uint64_t n)
{
	double t = now();

	r->in_second += n;
	if (t - r->second < 1)
		return;
	r->in_second = (uint64_t)((double)r->in_second / (t - r->second));
	if (r->slowest == 0 || r->in_second < r->slowest)
		r->slowest = r->in_second;
	if (r->in_second > r->fastest)
		r->fastest = r->in_second;
	r->in_second = 0;
	r->second = t;
}

/* Takes one confirm: the highest tag that it settles. */
static uint64_t
take_confirm(uint64_t confirmed)
{
	const uint8_t *p;
	struct frame f = next();
	uint64_t tag;

	p = f.p + 4;
	if (f.type != FRAME_METHOD || get_int(f.p, 2) != 60 || get_int(f.p + 2, 2) != 80) {
		if (f.type == FRAME_METHOD && get_int(f.p, 2) == 10 && get_int(f.p + 2, 2) >= 60)
			return confirmed;
		fail("no confirm: method %u.%u", (unsigned)get_int(f.p, 2),
		    (unsigned)get_int(f.p + 2, 2));
	}
	tag = get_int(p, 8);
	if (p[8] == 0 && tag != confirmed + 1)
		fail("confirm %" PRIu64 " after %" PRIu64, tag, confirmed);
	return tag > confirmed ? tag : confirmed;
}

static void
fill(const char *queue, uint64_t first, uint64_t count, size_t size, uint64_t window)
{
	struct rates r = { .began = now(), .second = now() };
	uint64_t sent = 0, confirmed = 0, before;

	method(1, 85, 10, 1);
	put_int(0, 1);
	frame_end();
	(void)expect(85, 11);
	while (confirmed < count) {
		while (sent < count && sent - confirmed < window) {
			publish(queue, first + sent, size);
			sent++;
		}
		flush();
		before = confirmed;
		do {
			confirmed = take_confirm(confirmed);
		} while (has_frame());
		count_rate(&r, confirmed - before);
	}
	printf("{\"confirmed\": %" PRIu64 ", \"seconds\": %.3f, \"slowest\": %" PRIu64
	       ", \"fastest\": %" PRIu64 "}\n",
	    confirmed, now() - r.began, r.slowest, r.fastest);
}

static void
ack(uint64_t tag, bool multiple)
{
	method(1, 60, 80, 9);
	put_int(tag, 8);
	put_int(multiple, 1);
	frame_end();
}

static uint64_t
take_message(uint64_t number, size_t size)
{
	const uint8_t *p = expect(60, 60);
	uint64_t tag = get_int(p + 1 + p[0], 8);
	size_t have = 0;
	struct frame f = next();

	if (f.type != FRAME_HEADER || get_int(f.p + 4, 8) != size)
		fail("message %" PRIu64 ": no header of %zu bytes", number, size);
	while (have < size) {
		f = next();
		if (f.type != FRAME_BODY || f.n > size - have)
			fail("message %" PRIu64 ": no body", number);
		memcpy(seen + have, f.p, f.n);
		have += f.n;
	}
	make_body(body, number, size);
	if (memcmp(body, seen, size) != 0)
		fail("message %" PRIu64 " is not the one that was expected: it says %" PRIu64,
		    number,
		    size >= 8
		        ? (uint64_t)seen[0] | (uint64_t)seen[1] << 8 | (uint64_t)seen[2] << 16 |
		              (uint64_t)seen[3] << 24 | (uint64_t)seen[4] << 32
		        : 0);
	return tag;
}

static void
drain(const char *queue, uint64_t first, uint64_t count, size_t size, uint64_t keep)
{
	double began = now();
	uint64_t tag = 0, open = 0;

	method(1, 60, 10, 4 + 1 + 2); /* qos */
	put_int(0, 4);
	put_int(keep > 0 ? 0 : 2000, 2);
	put_int(0, 1);
	frame_end();
	(void)expect(60, 11);
	method(1, 60, 20, 2 + 1 + strlen(queue) + 1 + 1 + 4); /* consume */
	put_int(0, 2);
	put_short(queue);
	put_short("");
	put_int(0, 1);
	put_int(0, 4);
	frame_end();
	(void)expect(60, 21);
	for (uint64_t i = 0; i < count; i++) {
		tag = take_message(first + i, size);
		if (keep == 0 && (tag - open >= ACK_EVERY || i + 1 == count)) {
			ack(tag, true);
			open = tag;
			flush();
		} else if (keep > 0 && tag % keep != 0) {
			ack(tag, false);
		}
	}
	if (keep > 0)
		ack(0, true); /* all that are open */
	flush();
	printf("{\"drained\": %" PRIu64 ", \"seconds\": %.3f}\n", count, now() - began);
}

static uint64_t
number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (*text == '\0' || *end != '\0')
		fail("'%s' is no number", text);
	return v;
}

int
main(int argc, char **argv)
{
	bool filling;
	uint64_t first, count, size;

	if (argc < 7)
		fail("usage: flood fill|drain PORT QUEUE FIRST COUNT SIZE [WINDOW|KEEP]");
	filling = strcmp(argv[1], "fill") == 0;
	first = number(argv[4]);
	count = number(argv[5]);
	size = number(argv[6]);
	if (size < 8 || size > sizeof body || size > 131072 - 8)
		fail("a size of %" PRIu64 " bytes", size);
	open_wire((unsigned)number(argv[2]), argv[3]);
	if (filling)
		fill(argv[3], first, count, size, argc > 7 ? number(argv[7]) : 5000);
	else
		drain(argv[3], first, count, size, argc > 7 ? number(argv[7]) : 0);
	close_wire();
	return 0;
}
