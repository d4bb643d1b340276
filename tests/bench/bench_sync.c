/* SPDX-License-Identifier: Apache-2.0
 * What a confirm of one message at a time cannot be quicker than: 4 KiB appended to a file that was written before and
 * synced, and a round trip over loopback.
 *
 *	bench_sync [FOLDER]	the folder whose disk is measured (default: here) */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 2000, PIECE = 4096, MESSAGE = 300 };

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
show(const char *what, double *us)
{
	qsort(us, ROUNDS, sizeof *us, by_value);
	printf("%-44s p50 %8.1f  p99 %8.1f us\n", what, us[ROUNDS / 2], us[ROUNDS * 99 / 100]);
	return us[ROUNDS / 2];
}

static void
must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static double
measure_sync(const char *folder)
{
	static uint8_t piece[PIECE];
	static double us[ROUNDS];
	char name[512];
	int fd;

	snprintf(name, sizeof name, "%s/bench_sync.%ld", folder, (long)getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	must(fd >= 0, name);
	unlink(name);
	for (int i = 0; i < ROUNDS; i++)
		must(pwrite(fd, piece, PIECE, (off_t)i * PIECE) == PIECE, "write");
	must(fsync(fd) == 0, "sync");
	memset(piece, 1, sizeof piece);
	for (int i = 0; i < ROUNDS; i++) {
		double from = now_us();

		must(pwrite(fd, piece, PIECE, (off_t)i * PIECE) == PIECE, "write");
		must(fdatasync(fd) == 0, "sync");
		us[i] = now_us() - from;
	}
	close(fd);
	return show("4 KiB appended and synced", us);
}

static void *
echo(void *arg)
{
	uint8_t buf[MESSAGE];
	int fd = accept(*(int *)arg, NULL, NULL), one = 1;

	must(fd >= 0, "accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	while (recv(fd, buf, sizeof buf, MSG_WAITALL) == MESSAGE)
		must(send(fd, buf, 21, 0) == 21, "send");
	close(fd);
	return NULL;
}

static double
measure_loopback(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	static double us[ROUNDS];
	uint8_t buf[MESSAGE] = { 0 };
	int l = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	pthread_t t;

	must(bind(l, (struct sockaddr *)&a, sizeof a) == 0 && listen(l, 1) == 0, "listen");
	must(getsockname(l, (struct sockaddr *)&a, &n) == 0, "getsockname");
	must(pthread_create(&t, NULL, echo, &l) == 0, "thread");
	must(connect(fd, (struct sockaddr *)&a, sizeof a) == 0, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	for (int i = 0; i < ROUNDS; i++) {
		double from = now_us();

		must(send(fd, buf, MESSAGE, 0) == MESSAGE && recv(fd, buf, 21, MSG_WAITALL) == 21,
		    "round trip");
		us[i] = now_us() - from;
	}
	close(fd);
	pthread_join(t, NULL);
	close(l);
	return show("round trip over loopback", us);
}

int
main(int argc, char **argv)
{
	double sum = measure_sync(argc > 1 ? argv[1] : ".") + measure_loopback();

	printf("%-44s p50 %8.1f us, 1.5 times %.1f us\n", "both", sum, 1.5 * sum);
	return 0;
}
