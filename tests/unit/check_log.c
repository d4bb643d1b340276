/* SPDX-License-Identifier: Apache-2.0
 * The log: what a line looks like, that nobody forges one, and that a target that takes nothing
 * holds nobody up and loses nothing uncounted. */
#include "base/log.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_format.h"
#include "base/utf8.h"

static char dir[] = "/tmp/check_log.XXXXXX";
static char path[64];

static void
set_up(void)
{
	(void)strncpy(dir + sizeof dir - 7, "XXXXXX", 7);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/log", dir);
	(void)signal(SIGPIPE, SIG_IGN);
}

static void
tear_down(void)
{
	log_close();
	(void)unlink(path);
	(void)rmdir(dir);
}

/* All of a file; the caller frees it. */
static char *
read_file(const char *name)
{
	FILE *f = fopen(name, "re");
	char *p = calloc(1, 1 << 20);

	ck_assert(f != NULL && p != NULL);
	(void)!fread(p, 1, (1 << 20) - 1, f);
	(void)fclose(f);
	return p;
}

/* The line behind its time, which is checked for its form. */
static const char *
behind_time(const char *line)
{
	static const char form[] = "0000-00-00T00:00:00.000Z ";

	for (size_t i = 0; i < sizeof form - 1; i++) {
		bool digit = line[i] >= '0' && line[i] <= '9';

		ck_assert_msg(form[i] == '0' ? digit : line[i] == form[i], "time: %s", line);
	}
	return line + sizeof form - 1;
}

static const struct log_who everybody = { 17, "127.0.0.1:4711", "guest", "/" };
static const struct log_who peer_only = { 0, "[::1]:5", NULL, NULL };
static const struct log_who connection_only = { 3, NULL, NULL, NULL };
static const struct log_who nobody = { 0, NULL, NULL, NULL };
static const struct log_who forger = { 1, "p", "u\nuser", "v\"\\" };

static const struct {
	enum log_level level;
	const struct log_who *who;
	const char *message, *text, *json;
} lines[] = {
	{ LOG_INFO, NULL, "message", "info    message\n",
	    "\"level\":\"info\",\"message\":\"message\"}\n" },
	{ LOG_WARNING, NULL, "", "warning \n", "\"level\":\"warning\",\"message\":\"\"}\n" },
	{ LOG_ERROR, &everybody, "no", "error   [17] 127.0.0.1:4711 guest@/: no\n",
	    "\"level\":\"error\",\"connection\":17,\"peer\":\"127.0.0.1:4711\",\"user\":\"guest\","
	    "\"vhost\":\"/\",\"message\":\"no\"}\n" },
	{ LOG_DEBUG, &peer_only, "m", "debug   [::1]:5: m\n",
	    "\"level\":\"debug\",\"peer\":\"[::1]:5\",\"message\":\"m\"}\n" },
	{ LOG_INFO, &connection_only, "m", "info    [3]: m\n",
	    "\"level\":\"info\",\"connection\":3,\"message\":\"m\"}\n" },
	{ LOG_INFO, &nobody, "m", "info    m\n", "\"level\":\"info\",\"message\":\"m\"}\n" },
	{ LOG_INFO, &forger, "m", "info    [1] p u\\nuser@v\"\\: m\n",
	    "\"level\":\"info\",\"connection\":1,\"peer\":\"p\",\"user\":\"u\\nuser\",\"vhost\":"
	    "\"v\\\"\\\\\","
	    "\"message\":\"m\"}\n" },
	{ LOG_INFO, NULL, "a\nb\tc\r\x1b[31m\x7f", "info    a\\nb\\tc\\r\\x1b[31m\\x7f\n",
	    "\"level\":\"info\",\"message\":\"a\\nb\\tc\\r\\u001b[31m\\u007f\"}\n" },
	{ LOG_INFO, NULL, "\xc3\xa4\xe2\x82\xac\xff\xc3(",
	    "info    \xc3\xa4\xe2\x82\xac\\xff\\xc3(\n",
	    "\"level\":\"info\",\"message\":\"\xc3\xa4\xe2\x82\xac\\\\xff\\\\xc3(\"}\n" },
	{ LOG_INFO, NULL, "\xc2\x9b\xe2\x80\xae\xe2\x80\xa8", "info    \\x9b\\u202e\\u2028\n",
	    "\"level\":\"info\",\"message\":\"\\u009b\\u202e\\u2028\"}\n" },
};

START_TEST(form_of_a_line)
{
	char *got;
	const char *json;

	ck_assert_int_eq(log_open(LOG_DEBUG, LOG_TEXT, path), 0);
	log_line(lines[_i].level, lines[_i].who, "%s", lines[_i].message);
	log_close();
	got = read_file(path);
	ck_assert_str_eq(behind_time(got), lines[_i].text);
	free(got);
	(void)unlink(path);

	ck_assert_int_eq(log_open(LOG_DEBUG, LOG_JSON, path), 0);
	log_line(lines[_i].level, lines[_i].who, "%s", lines[_i].message);
	log_flush();
	got = read_file(path);
	ck_assert_int_eq(strncmp(got, "{\"time\":\"20", 11), 0);
	json = strchr(got, ',');
	ck_assert_ptr_nonnull(json);
	ck_assert_str_eq(json + 1, lines[_i].json);
	free(got);
}
END_TEST

START_TEST(long_lines_are_cut)
{
	char *message = malloc(20001), *got;
	size_t n;

	ck_assert_ptr_nonnull(message);
	for (int i = 0; i < 10000; i++)
		memcpy(message + 2 * (size_t)i, _i == 0 ? "\xc3\xa4" : "\x01\x02", 2);
	message[20000] = '\0';
	ck_assert_int_eq(log_open(LOG_INFO, LOG_JSON, path), 0);
	log_info("x%s", message);
	log_info("next");
	log_close();
	got = read_file(path);
	n = (size_t)(strchr(got, '\n') - got);
	ck_assert_uint_lt(n, LOG_LINE_MAX);
	ck_assert_uint_gt(n, LOG_MESSAGE_MAX);
	ck_assert_int_eq(strncmp(got + n - 5, "...\"}", 5), 0);
	ck_assert(utf8_valid(got, strlen(got)));
	ck_assert_ptr_nonnull(strstr(got, "\"message\":\"next\"}\n"));
	free(got);
	free(message);
}
END_TEST

START_TEST(levels)
{
	char *got;

	ck_assert_int_eq(log_open(LOG_WARNING, LOG_TEXT, path), 0);
	ck_assert(log_enabled(LOG_ERROR) && log_enabled(LOG_WARNING) && !log_enabled(LOG_INFO));
	log_info("one");
	log_warning("two");
	log_debug("three");
	log_set_level(LOG_DEBUG);
	log_debug("four");
	log_close();
	got = read_file(path);
	ck_assert_ptr_null(strstr(got, "one"));
	ck_assert_ptr_nonnull(strstr(got, "warning two\n"));
	ck_assert_ptr_null(strstr(got, "three"));
	ck_assert_ptr_nonnull(strstr(got, "debug   four\n"));
	free(got);
}
END_TEST

START_TEST(reopened_by_name)
{
	char old[80], *got;

	(void)snprintf(old, sizeof old, "%s.1", path);
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), 0);
	log_info("before");
	log_flush();
	ck_assert_int_eq(rename(path, old), 0);
	log_info("still the old one");
	log_flush();
	log_reopen();
	for (int i = 0; i < 500 && access(path, F_OK) != 0; i++)
		(void)usleep(10000);
	log_info("after");
	log_close();
	got = read_file(old);
	ck_assert_ptr_nonnull(strstr(got, "before"));
	ck_assert_ptr_nonnull(strstr(got, "still the old one"));
	ck_assert_ptr_null(strstr(got, "after"));
	free(got);
	got = read_file(path);
	ck_assert_ptr_nonnull(strstr(got, "after"));
	free(got);
	(void)unlink(old);
}
END_TEST

START_TEST(cannot_open)
{
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, "/nowhere/at/all"), -ENOENT);
	/* A pipe that nobody reads is an error, not a wait. */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), -ENXIO);
}
END_TEST

START_TEST(keeps_errno)
{
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), 0);
	errno = ENOTTY;
	log_info("x");
	ck_assert_int_eq(errno, ENOTTY);
}
END_TEST

/* Reads lines until the writer is gone; the sum of numbered lines and of what was reported lost. */
struct tally {
	unsigned long read, lost, reports;
	long last; /* numbers only go up */
};

static void
count_line(struct tally *t, const char *line)
{
	const char *p = behind_time(line);
	unsigned long n;

	if (sscanf(p, "warning %lu log lines lost, the log is slower than the node", &n) == 1) {
		t->lost += n;
		t->reports++;
	} else if (sscanf(p, "info    line %lu ", &n) == 1) {
		if ((long)n <= t->last)
			ck_abort_msg("line %lu after %ld", n, t->last);
		t->last = (long)n;
		t->read++;
	} else {
		ck_abort_msg("a line that nobody wrote: %s", line);
	}
}

static void
take_lines(struct tally *t, int fd, unsigned long until)
{
	static char buf[1 << 16];
	static size_t n;

	for (int idle = 0; t->read + t->lost < until && idle < 600;) {
		ssize_t r = read(fd, buf + n, sizeof buf - 1 - n);
		char *end, *p = buf;

		if (r <= 0) {
			idle++;
			(void)usleep(10000);
			continue;
		}
		n += (size_t)r;
		while ((end = memchr(p, '\n', n)) != NULL) {
			*end = '\0';
			count_line(t, p);
			n -= (size_t)(end + 1 - p);
			p = end + 1;
		}
		memmove(buf, p, n);
	}
}

/* Kinds: a pipe of our own by its name; standard error, which is shared and must stay blocking. */
START_TEST(full_pipe_blocks_nobody)
{
	enum { LINES = 60000 };
	static const char filler[] =
	    "................................................................";
	struct tally t = { .last = -1 };
	uint64_t begun, one, before = log_dropped();
	unsigned long_ones = 0;
	int fds[2], old = dup(STDERR_FILENO);

	if (_i == 0) {
		ck_assert_int_eq(mkfifo(path, 0600), 0);
		fds[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		ck_assert_int_ge(fds[0], 0);
		ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), 0);
	} else {
		ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
		ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
		(void)close(fds[1]);
		ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
		ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, "-"), 0);
	}
	begun = clock_mono_us();
	for (int i = 0; i < LINES; i++) {
		one = clock_mono_us();
		log_info("line %d %s", i, filler);
		one = clock_mono_us() - one;
		if (one > 100 * 1000)
			long_ones++;
	}
	ck_assert_uint_lt(clock_mono_us() - begun, 20 * 1000 * 1000);
	ck_assert_uint_lt(long_ones, 10); /* a busy machine may take us off the processor */
	ck_assert_uint_gt(log_dropped() - before, LINES / 2);
	take_lines(&t, fds[0], LINES);
	/* And the log works on. */
	log_info("line %d %s", LINES, filler);
	take_lines(&t, fds[0], LINES + 1);
	(void)dup2(old, STDERR_FILENO);
	ck_assert_uint_eq(t.read + t.lost, LINES + 1);
	ck_assert_uint_eq(t.lost, log_dropped() - before);
	ck_assert_int_eq(t.last, LINES);
	ck_assert_uint_ge(t.reports, 1);
	ck_assert_uint_lt(t.reports, 100);
	(void)close(fds[0]);
}
END_TEST

START_TEST(close_does_not_wait_for_ever)
{
	uint64_t begun, before = log_dropped();
	int fd;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), 0);
	for (int i = 0; i < 10000; i++)
		log_info(
		    "line %d ................................................................", i);
	begun = clock_mono_us();
	log_flush();
	ck_assert_uint_lt(clock_mono_us() - begun, 5 * 1000 * 1000);
	log_close();
	ck_assert_uint_lt(clock_mono_us() - begun, 12 * 1000 * 1000);
	/* What neither went nor will go is counted: the pipe took at most 64 KiB of lines of 90
	 * bytes. */
	ck_assert_uint_gt(log_dropped() - before, 9000);
	(void)close(fd);
}
END_TEST

START_TEST(full_disk_is_counted)
{
	uint64_t before = log_dropped();

	if (access("/dev/full", W_OK) != 0)
		return;
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, "/dev/full"), 0);
	/* More than goes in one write. */
	for (int i = 0; i < 3000; i++)
		log_info("line %d ........................................", i);
	log_close();
	ck_assert_uint_eq(log_dropped() - before, 3000);
}
END_TEST

/* Of the log thread: the one task that is not the process's first. */
static unsigned long long
blocked_in_log_thread(void)
{
	unsigned long long mask = 0;
	struct dirent *e;
	DIR *d = opendir("/proc/self/task");

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		char name[300], line[256];
		FILE *f;

		if (strtol(e->d_name, NULL, 10) == 0 || strtol(e->d_name, NULL, 10) == getpid())
			continue;
		(void)snprintf(name, sizeof name, "/proc/self/task/%s/status", e->d_name);
		f = fopen(name, "re");
		ck_assert_ptr_nonnull(f);
		while (fgets(line, sizeof line, f) != NULL)
			(void)sscanf(line, "SigBlk: %llx", &mask);
		(void)fclose(f);
	}
	(void)closedir(d);
	return mask;
}

/* Signals are for the core thread, but a crash has to be reported wherever it happens. */
START_TEST(signals_of_the_thread)
{
	static const int blocked[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE },
	                 open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	unsigned long long mask;

	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), 0);
	log_info("x");
	log_flush(); /* a thread has its mask once it runs */
	mask = blocked_in_log_thread();
	for (size_t i = 0; i < COUNT_OF(blocked); i++)
		ck_assert(mask >> (blocked[i] - 1) & 1);
	for (size_t i = 0; i < COUNT_OF(open); i++)
		ck_assert(!(mask >> (open[i] - 1) & 1));
}
END_TEST

START_TEST(limited)
{
	struct log_limit limit = { .burst = 3 };
	unsigned allowed = 0;
	char *got;

	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), 0);
	for (int i = 0; i < 10; i++)
		allowed += log_allowed(&limit);
	ck_assert_uint_eq(allowed, 3);
	ck_assert_uint_eq(limit.held_back, 7);
	/* As if ten seconds had gone by. */
	ck_assert_uint_gt(limit.since_ms, 0);
	limit.since_ms = limit.since_ms > 10000 ? limit.since_ms - 10000 : UINT64_MAX - 20000;
	ck_assert(log_allowed(&limit));
	ck_assert_uint_eq(limit.held_back, 0);
	log_close();
	got = read_file(path);
	ck_assert_ptr_nonnull(strstr(got, "7 lines like the next one were held back\n"));
	free(got);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, form_of_a_line, 0, (int)(sizeof lines / sizeof lines[0]));
	tcase_add_loop_test(t, long_lines_are_cut, 0, 2);
	tcase_add_test(t, levels);
	tcase_add_test(t, reopened_by_name);
	tcase_add_test(t, cannot_open);
	tcase_add_test(t, keeps_errno);
	tcase_add_loop_test(t, full_pipe_blocks_nobody, 0, 2);
	tcase_add_test(t, close_does_not_wait_for_ever);
	tcase_add_test(t, full_disk_is_counted);
	tcase_add_test(t, signals_of_the_thread);
	tcase_add_test(t, limited);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
