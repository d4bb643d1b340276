/* SPDX-License-Identifier: Apache-2.0
 * A crowd that connects again: 2,000 connections of TLS (P-256, full handshakes) and AMQP at once, while 20,000 messages a
 * second run between two others. Said is when the last was served, and how long messages took before and meanwhile.
 *
 *	bench_tls [CONNECTIONS [MESSAGES-A-SECOND]]
 *
 * It starts a node of its own, ../../src/hermes seen from here or HERMES_BINARY, and all of it shares the machine's
 * processors: the clients' half of the handshakes costs as much as the node's. On a machine with two of them, nothing else
 * running: all open after 1.3 to 1.5 s; messages take 0.7 ms in the middle and 4 ms at the 99th percentile before, 0.9 and
 * 23 ms meanwhile. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

enum {
	PORT = 24690,
	TLS_PORT = 24691,
	CALM_S = 3,
	LIMIT_S = 60,
	BODY = 256,
	TICK_US = 1000,
	SAMPLES = 4000000
};

static char folder[] = "/tmp/bench_tls.XXXXXX";
static pid_t node;

/* However it ends. */
static void
clear_away(void)
{
	char command[64];

	if (node == 0)
		return; /* it is the child, or there is none */
	(void)kill(node, SIGKILL);
	(void)waitpid(node, NULL, 0);
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		fprintf(stderr, "bench_tls: %s failed\n", command);
}

static void
die(const char *what)
{
	fprintf(stderr, "bench_tls: %s: %s\n", what, strerror(errno));
	ERR_print_errors_fp(stderr);
	exit(1);
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* --- the node --------------------------------------------------------------- */

static void
write_certificate(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	char path[256];
	FILE *f;

	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 24 * 3600);
	X509_set_version(x, 2);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
	    (const unsigned char *)"bench", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	if (X509_sign(x, key, EVP_sha256()) == 0)
		die("certificate");
	snprintf(path, sizeof path, "%s/cert.pem", folder);
	f = fopen(path, "w");
	if (f == NULL || PEM_write_X509(f, x) != 1 ||
	    PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) != 1)
		die(path);
	fclose(f);
	X509_free(x);
	EVP_PKEY_free(key);
}

static void
run_node(void)
{
	char path[512], binary[512], *end;
	ssize_t n = readlink("/proc/self/exe", binary, sizeof binary - 32);
	FILE *f;

	if (n < 0)
		die("/proc/self/exe");
	binary[n] = '\0';
	for (int up = 0; up < 3 && (end = strrchr(binary, '/')) != NULL; up++)
		*end = '\0';
	n = (ssize_t)strlen(binary);
	(void)snprintf(binary + n, sizeof binary - (size_t)n, "/src/hermes");
	if (getenv("HERMES_BINARY") != NULL)
		snprintf(binary, sizeof binary, "%s", getenv("HERMES_BINARY"));
	snprintf(path, sizeof path, "%s/hermes.yml", folder);
	f = fopen(path, "w");
	if (f == NULL)
		die(path);
	fprintf(f,
	    "node: {port: %d, listen: 127.0.0.1}\nstore: {path: %s/data}\nlog: {level: warning}\n"
	    "tls: {port: %d, certificate: %s/cert.pem, tickets: 0}\n"
	    "management: {enabled: false}\nprometheus: {enabled: false}\ntcp: {backlog: 4096}\n",
	    PORT, folder, TLS_PORT, folder);
	fclose(f);
	node = fork();
	if (node == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(binary, binary, "server", "-c", path, (char *)NULL);
		die(binary);
	}
}

static int
dial(uint16_t port, bool waits)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	for (int i = 0; connect(fd, (struct sockaddr *)&a, sizeof a) < 0; i++) {
		if (!waits || i > 500)
			die("connect");
		usleep(20000);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

/* --- AMQP --------------------------------------------------------------------- */

static const char header[] = "AMQP\0\0\x09\x01";
static const char start_ok[] =
    "\x01\0\0\0\0\0\x24\0\x0a\0\x0b\0\0\0\0\x05PLAIN\0\0\0\x0c\0guest\0guest\x05"
    "en_US\xce";
static const char tune_ok_open[] = "\x01\0\0\0\0\0\x0c\0\x0a\0\x1f\x07\xff\0\x02\0\0\0\0\xce"
                                   "\x01\0\0\0\0\0\x08\0\x0a\0\x28\x01/\0\0\xce";
static const char channel_open[] = "\x01\0\x01\0\0\0\x05\0\x14\0\x0a\0\xce";
static const char declare[] = "\x01\0\x01\0\0\0\x11\0\x32\0\x0a\0\0\x05"
                              "bench\0\0\0\0\0\xce";
static const char consume[] = "\x01\0\x01\0\0\0\x12\0\x3c\0\x14\0\0\x05"
                              "bench\0\x02\0\0\0\0\xce";
static const char publish[] = "\x01\0\x01\0\0\0\x0e\0\x3c\0\x28\0\0\0\x05"
                              "bench\0\xce"
                              "\x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\x01\0\0\0\xce"
                              "\x03\0\x01\0\0\x01\0";
#define SPAN(text) text, sizeof(text) - 1

struct answer {
	const char *p;
	size_t n;
};

/* What a client of the handshake says to a method; p NULL: it is open. */
static struct answer
answer_to(const uint8_t *frame)
{
	switch (frame[10]) {
	case 10: return (struct answer){ SPAN(start_ok) };
	case 30: return (struct answer){ SPAN(tune_ok_open) };
	case 41: return (struct answer){ NULL, 0 };
	default: errno = EPROTO; die("unexpected method");
	}
	return (struct answer){ NULL, 0 };
}

static size_t
frame_size(const uint8_t *p)
{
	return 8 + ((size_t)p[3] << 24 | (size_t)p[4] << 16 | (size_t)p[5] << 8 | p[6]);
}

static void
put(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w <= 0)
			die("write");
		p += w;
		n -= (size_t)w;
	}
}

static void
get(int fd, void *p, size_t n)
{
	while (n > 0) {
		ssize_t r = read(fd, p, n);

		if (r <= 0)
			die("read");
		p = (char *)p + r;
		n -= (size_t)r;
	}
}

static void
skip_frame(int fd, uint8_t *p)
{
	get(fd, p, 7);
	get(fd, p + 7, frame_size(p) - 7);
}

static int
open_channel(void)
{
	int fd = dial(PORT, true);
	uint8_t p[4096];
	struct answer a = { SPAN(header) };

	while (a.p != NULL) {
		put(fd, a.p, a.n);
		skip_frame(fd, p);
		a = answer_to(p);
	}
	put(fd, SPAN(channel_open));
	skip_frame(fd, p);
	put(fd, SPAN(declare));
	skip_frame(fd, p);
	return fd;
}

/* --- running traffic ------------------------------------------------------------- */

static unsigned rate = 20000;
static atomic_bool stop_sending;
static atomic_uint sample_count, sent_count;
static struct sample {
	uint64_t sent_us;
	uint32_t took_us;
} * samples;

static void *
send_messages(void *arg)
{
	int fd = *(int *)arg;
	size_t one = sizeof publish - 1 + BODY + 1;
	char *batch = calloc(rate / 100 + 1, one);
	uint64_t began = now_us();
	uint64_t sent = 0;

	while (!atomic_load(&stop_sending)) {
		uint64_t now = now_us(), due = (now - began) * rate / 1000000;
		size_t n = 0;

		for (; sent < due && n < rate / 100; sent++, n++) {
			char *p = batch + n * one;

			memcpy(p, publish, sizeof publish - 1);
			/* when it was due: a sender that is held up does not hide that */
			uint64_t due_us = began + sent * 1000000 / rate;
			memcpy(p + sizeof publish - 1, &due_us, sizeof due_us);
			p[one - 1] = (char)0xce;
		}
		put(fd, batch, n * one);
		atomic_fetch_add(&sent_count, (unsigned)n);
		usleep(TICK_US);
	}
	free(batch);
	return NULL;
}

static void *
take_messages(void *arg)
{
	int fd = *(int *)arg;
	static uint8_t buf[1 << 20];
	size_t have = 0;

	for (;;) {
		ssize_t n = read(fd, buf + have, sizeof buf - have);
		size_t at = 0;
		uint64_t now = now_us();

		if (n <= 0)
			return NULL;
		have += (size_t)n;
		while (have - at >= 7 && have - at >= frame_size(buf + at)) {
			unsigned i = atomic_load(&sample_count);

			if (buf[at] == 3 && i < SAMPLES) {
				memcpy(&samples[i].sent_us, buf + at + 7, 8);
				samples[i].took_us = (uint32_t)(now - samples[i].sent_us);
				atomic_store(&sample_count, i + 1);
			}
			at += frame_size(buf + at);
		}
		memmove(buf, buf + at, have - at);
		have -= at;
	}
}

static int
by_time(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Of messages that were due within the time. */
static void
say_traffic(const char *when, uint64_t from_us, uint64_t to_us)
{
	unsigned count = atomic_load(&sample_count), n = 0;
	uint32_t *took = malloc((count + 1) * sizeof *took);

	for (unsigned i = 0; i < count; i++)
		if (samples[i].sent_us >= from_us && samples[i].sent_us < to_us)
			took[n++] = samples[i].took_us;
	qsort(took, n, sizeof *took, by_time);
	if (n > 0)
		printf("%-8s %8.0f messages/s  p50 %6.2f ms  p99 %6.2f ms  p99.9 %6.2f ms  max "
		       "%6.2f ms\n",
		    when, n / ((double)(to_us - from_us) / 1e6), took[n / 2] / 1e3,
		    took[n * 99UL / 100] / 1e3, took[n * 999UL / 1000] / 1e3, took[n - 1] / 1e3);
	free(took);
}

/* --- the crowd ---------------------------------------------------------------------- */

struct client {
	SSL *ssl;
	int fd;
	bool shaken, is_open;
	uint8_t buf[2048];
	size_t have;
	uint64_t took_us;
};

static void
say(struct client *c, struct answer a)
{
	if (a.p != NULL && SSL_write(c->ssl, a.p, (int)a.n) != (int)a.n)
		die("SSL_write");
}

/* True: it is open now. */
static bool
step(struct client *c)
{
	int rc;

	if (!c->shaken) {
		rc = SSL_connect(c->ssl);
		if (rc != 1 && SSL_get_error(c->ssl, rc) == SSL_ERROR_WANT_READ)
			return false;
		if (rc != 1)
			die("SSL_connect");
		c->shaken = true;
		say(c, (struct answer){ SPAN(header) });
	}
	while ((rc = SSL_read(c->ssl, c->buf + c->have, (int)(sizeof c->buf - c->have))) > 0) {
		c->have += (size_t)rc;
		while (c->have >= 7 && c->have >= frame_size(c->buf)) {
			struct answer a = answer_to(c->buf);
			size_t n = frame_size(c->buf);

			if (a.p == NULL)
				return true;
			say(c, a);
			memmove(c->buf, c->buf + n, c->have - n);
			c->have -= n;
		}
	}
	if (SSL_get_error(c->ssl, rc) != SSL_ERROR_WANT_READ)
		die("SSL_read");
	return false;
}

static void
storm(unsigned count)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct client *c = calloc(count, sizeof *c);
	struct epoll_event ev[256];
	int set = epoll_create1(EPOLL_CLOEXEC);
	uint32_t *took = calloc(count, sizeof *took);
	uint64_t began = now_us();
	unsigned open = 0;

	for (unsigned i = 0; i < count; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = &c[i] };

		c[i].fd = dial(TLS_PORT, false);
		fcntl(c[i].fd, F_SETFL, O_NONBLOCK);
		c[i].ssl = SSL_new(ctx);
		SSL_set_fd(c[i].ssl, c[i].fd);
		(void)step(&c[i]);
		epoll_ctl(set, EPOLL_CTL_ADD, c[i].fd, &e);
	}
	while (open < count) {
		int n = epoll_wait(set, ev, 256, 1000);

		if (now_us() > began + LIMIT_S * 1000000UL) {
			errno = ETIMEDOUT;
			die("not all were served");
		}
		for (int i = 0; i < n; i++) {
			struct client *one = ev[i].data.ptr;

			if (one->is_open || !step(one))
				continue;
			one->is_open = true;
			took[open++] = (uint32_t)(now_us() - began);
		}
	}
	printf("%u connections of TLS: half of them open after %.2f s, all after %.2f s\n", count,
	    took[count / 2] / 1e6, took[count - 1] / 1e6);
	free(took);
	/* they stay, as clients do */
}

/* A number of the command line, from 1 to most. */
static unsigned
number(const char *text, unsigned long most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || n < 1 || n > most) {
		fprintf(stderr,
		    "bench_tls: '%s' is no number from 1 to %lu\n"
		    "usage: bench_tls [CONNECTIONS [MESSAGES-A-SECOND]]\n",
		    text, most);
		exit(2);
	}
	return (unsigned)n;
}

int
main(int argc, char **argv)
{
	unsigned count = argc > 1 ? number(argv[1], 100000) : 2000;
	struct rlimit lim;
	pthread_t thread;
	uint64_t calm, burst, end;
	int in, out;
	uint8_t p[4096];

	if (argc > 2)
		rate = number(argv[2], 10000000);
	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
	signal(SIGPIPE, SIG_IGN);
	samples = malloc(SAMPLES * sizeof *samples);
	if (mkdtemp(folder) == NULL)
		die(folder);
	if (atexit(clear_away) != 0)
		die("atexit");
	write_certificate();
	run_node();
	in = open_channel();
	out = open_channel();
	put(out, SPAN(consume));
	skip_frame(out, p);
	pthread_create(&thread, NULL, take_messages, &out);
	pthread_create(&thread, NULL, send_messages, &in);
	sleep(1);
	calm = now_us();
	sleep(CALM_S);
	burst = now_us();
	storm(count);
	end = now_us();
	usleep(200000);
	say_traffic("before", calm, burst);
	say_traffic("during", burst, end);
	atomic_store(&stop_sending, true);
	pthread_join(thread, NULL);
	usleep(500000);
	printf("%u messages sent, %u delivered\n", atomic_load(&sent_count),
	    atomic_load(&sample_count));
	return 0;
}
