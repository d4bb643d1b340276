/* SPDX-License-Identifier: Apache-2.0
 * The log: see the header.
 *
 * Lines go onto a ring of bytes; the lock is held for a memcpy, never for a write. The log thread
 * takes what is there, up to 64 KiB at a time, and writes it. When lines found no room, or a write
 * failed, it says how many were lost once it has written what was on the ring by then. A target
 * that takes nothing (a full pipe, a full disk) only ever holds up the log thread, and log_close
 * waits for it two seconds. */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_format.h"
#include "base/mem.h"

enum {
	RING = 1 << 20, /* bytes */
	RING_LINES = 4096,
	BATCH = 64 << 10,
	STACK = 256 << 10,
	/* A pipe that poll calls writable takes this much without blocking (POSIX: PIPE_BUF). */
	PIPE_TAKES = 4096,
	POLL_MS = 200,
	NAP_MS = 5, /* between batches */
	FLUSH_MS = 1000,
	CLOSE_MS = 2000,
	DIRECT_MS = 1000,
	LIMIT_WINDOW_MS = 10 * 1000,
	LEVEL_LEN = 3, /* "<6>" */
	LINE_MAX_HERE = LOG_LINE_MAX + LEVEL_LEN
};

struct log {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, written;

	/* under the lock */
	char *ring; /* owned; lines from head on, they may wrap */
	size_t head, used, lines;
	uint64_t put_seq, written_seq; /* lines put on the ring, lines done with */
	uint64_t lost, lost_after; /* lines not reported yet, and the last one put before them */
	bool stop, reopen;
	bool asleep; /* the thread waits for the next line, however long that takes */
	bool hurry;  /* log_flush waits: no nap */

	/* the log thread's, and everybody's while there is none */
	enum log_format format;
	char *file; /* owned; NULL: standard error */
	atomic_int fd;
	bool nonblocking;     /* write returns EAGAIN, or is a plain file: needs no care */
	atomic_bool journald; /* who reads fd takes the level from the beginning of a line */
	char *batch;          /* owned */
	bool torn;            /* the last write ended within a line */
};

static struct log the_log = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = STDERR_FILENO };
static atomic_bool running;
static atomic_bool closing; /* log_close waits: give up after its time */
static _Atomic uint64_t give_up_us;
static atomic_int threshold = LOG_INFO;
static _Atomic uint64_t dropped;

/* ---- the target ---- */

/* A descriptor for the file, or -errno. A pipe without a reader is an error, not a wait. */
static int
open_target(const char *file)
{
	int fd;

	if (file == NULL)
		return STDERR_FILENO;
	fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
	return fd >= 0 ? fd : -errno;
}

/* systemd names the socket that it has connected to its journal: JOURNAL_STREAM is "DEVICE:INODE". */
static bool
is_journald(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	char end;
	struct stat st;

	return stream != NULL && sscanf(stream, "%llu:%llu%c", &device, &inode, &end) == 2 &&
	       fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static void
set_target(struct log *l, int fd)
{
	int old = atomic_exchange(&l->fd, fd);
	struct stat st;

	atomic_store(&l->journald, is_journald(fd));
	l->nonblocking = fd != STDERR_FILENO || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
	if (old != STDERR_FILENO && old != fd)
		(void)close(old);
}

static bool
out_of_time(void)
{
	return atomic_load(&closing) && clock_mono_us() >= atomic_load(&give_up_us);
}

/* Writes n bytes; returns how many went before an error, or before log_close lost its patience. */
static size_t
write_all(struct log *l, const char *p, size_t n)
{
	int fd = atomic_load(&l->fd);
	size_t done = 0;

	while (done < n) {
		size_t k = l->nonblocking || n - done < PIPE_TAKES ? n - done : PIPE_TAKES;
		struct pollfd pfd = { .fd = fd, .events = POLLOUT };
		ssize_t w;

		if (poll(&pfd, 1, out_of_time() ? 0 : POLL_MS) == 0) {
			if (out_of_time())
				break;
			continue;
		}
		w = write(fd, p + done, k);
		if (w >= 0) {
			done += (size_t)w;
			continue;
		}
		if (errno != EINTR && errno != EAGAIN)
			break;
	}
	return done;
}

static size_t
count_lines(const char *p, size_t n)
{
	const char *end = p + n;
	size_t lines = 0;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		lines++;
		p++;
	}
	return lines;
}

/* ---- the ring ---- */

static bool
ring_put(struct log *l, const char *line, size_t n)
{
	size_t at, k;

	if (n > RING - l->used || l->lines == RING_LINES)
		return false;
	if (l->used == 0)
		l->head = 0; /* the same few pages again */
	at = (l->head + l->used) % RING;
	k = RING - at < n ? RING - at : n;
	memcpy(l->ring + at, line, k);
	memcpy(l->ring, line + k, n - k);
	l->used += n;
	l->lines++;
	l->put_seq++;
	return true;
}

/* Whole lines, up to BATCH bytes of them, to l->batch. A line is never longer than a batch. */
static size_t
ring_take(struct log *l)
{
	size_t n = l->used < BATCH ? l->used : BATCH, k = RING - l->head < n ? RING - l->head : n;

	memcpy(l->batch, l->ring + l->head, k);
	memcpy(l->batch + k, l->ring, n - k);
	if (n < l->used) {
		const char *last = memrchr(l->batch, '\n', n);

		assert(last != NULL);
		n = (size_t)(last - l->batch) + 1;
	}
	l->head = (l->head + n) % RING;
	l->used -= n;
	l->lines -= count_lines(l->batch, n);
	return n;
}

/* As log_format_line; for systemd's journal the level stands before it, too (sd-daemon(3)). */
static size_t
make_line(char out[LINE_MAX_HERE], const struct log *l, enum log_level level,
    const struct log_who *who, const char *fmt, va_list ap)
{
	static const char *const levels[] = {
		[LOG_ERROR] = "<3>",
		[LOG_WARNING] = "<4>",
		[LOG_INFO] = "<6>",
		[LOG_DEBUG] = "<7>",
	};
	size_t n = 0;

	if (atomic_load_explicit(&l->journald, memory_order_relaxed)) {
		memcpy(out, levels[level], LEVEL_LEN);
		n = LEVEL_LEN;
	}
	return n + log_format_line(out + n, l->format, level, who, fmt, ap);
}

static size_t own_line(char out[LINE_MAX_HERE], const struct log *l, enum log_level level,
    const char *fmt, ...) PRINTF(4, 5);

/* A line about the log itself. */
static size_t
own_line(char out[LINE_MAX_HERE], const struct log *l, enum log_level level, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = make_line(out, l, level, NULL, fmt, ap);
	va_end(ap);
	return n;
}

/* Under the lock. */
static void
lose(struct log *l, size_t lines, uint64_t after)
{
	if (lines == 0)
		return;
	if (l->lost == 0)
		l->lost_after = after;
	l->lost += lines;
	atomic_fetch_add(&dropped, lines);
}

/* ---- the thread ---- */

static void
do_reopen(struct log *l)
{
	char line[LINE_MAX_HERE];
	int fd = open_target(l->file);
	size_t n;

	if (fd >= 0) {
		set_target(l, fd);
		return;
	}
	n = own_line(line, l, LOG_ERROR,
	    "cannot open the log file %s again, the old one goes on: %s", l->file, strerror(-fd));
	(void)write_all(l, line, n);
}

/* False: an error, or log_close gave up. Waits a little after an error, so that a full disk does
 * not make this thread spin. Without the lock. */
static bool
write_lines(struct log *l, const char *p, size_t n, size_t *done)
{
	*done = write_all(l, p, n);
	if (*done > 0)
		l->torn = p[*done - 1] != '\n';
	if (*done == n)
		return true;
	if (!atomic_load(&closing))
		(void)poll(NULL, 0, POLL_MS);
	return false;
}

/* Both are called with the lock, and let go of it while they write. */
static void
write_batch(struct log *l)
{
	size_t n = ring_take(l), done;

	pthread_mutex_unlock(&l->lock);
	(void)write_lines(l, l->batch, n, &done);
	pthread_mutex_lock(&l->lock);
	l->written_seq += count_lines(l->batch, n);
	lose(l, count_lines(l->batch + done, n - done), l->written_seq);
	pthread_cond_broadcast(&l->written);
}

static bool
report_lost(struct log *l)
{
	char line[LINE_MAX_HERE];
	uint64_t lost = l->lost;
	size_t n, done;
	bool ok;

	pthread_mutex_unlock(&l->lock);
	ok = !l->torn || write_lines(l, "\n", 1, &done);
	n = own_line(line, l, LOG_WARNING, "%llu log lines lost, the log is slower than the node",
	    (unsigned long long)lost);
	ok = ok && write_lines(l, line, n, &done);
	pthread_mutex_lock(&l->lock);
	if (ok) {
		l->lost -= lost;
		l->lost_after = l->put_seq;
	}
	return ok;
}

/* Lines come in bursts: waking the thread for each would cost the core thread more than making the line. */
static void
nap(struct log *l)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += NAP_MS * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	while (!l->stop && !l->reopen && !l->hurry && l->used < RING / 2) {
		if (pthread_cond_timedwait(&l->work, &l->lock, &until) == ETIMEDOUT)
			break;
	}
	l->hurry = false;
}

static void *
log_thread(void *arg)
{
	struct log *l = arg;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		if (l->reopen) {
			l->reopen = false;
			pthread_mutex_unlock(&l->lock);
			do_reopen(l);
			pthread_mutex_lock(&l->lock);
		} else if (l->lost > 0 && l->written_seq >= l->lost_after) {
			if (!report_lost(l) && l->stop)
				break;
		} else if (l->used > 0) {
			write_batch(l);
			nap(l);
		} else if (l->stop) {
			break;
		} else {
			l->asleep = true;
			pthread_cond_wait(&l->work, &l->lock);
			l->asleep = false;
		}
	}
	lose(l, l->lines, l->put_seq);
	l->lines = 0;
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* Signals are for the core thread; but those of a crash, if blocked, would end the process without a report. */
static int
start_thread(struct log *l)
{
	static const int crashes[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	sigfillset(&all);
	for (size_t i = 0; i < COUNT_OF(crashes); i++)
		sigdelset(&all, crashes[i]);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&l->thread, &attr, log_thread, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

int
log_open(enum log_level level, enum log_format format, const char *file)
{
	struct log *l = &the_log;
	pthread_condattr_t attr;
	int fd, r;

	if (file != NULL && strcmp(file, "-") == 0)
		file = NULL;
	fd = open_target(file);
	if (fd < 0)
		return fd;
	log_close();
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->work, &attr);
	pthread_cond_init(&l->written, &attr);
	pthread_condattr_destroy(&attr);
	l->ring = xmalloc(RING);
	l->batch = xmalloc(BATCH);
	l->head = l->used = l->lines = 0;
	l->stop = l->reopen = false;
	l->format = format;
	l->file = file != NULL ? xstrdup(file) : NULL;
	set_target(l, fd);
	atomic_store(&closing, false);
	atomic_store(&threshold, (int)level);
	r = start_thread(l);
	atomic_store(&running, r == 0);
	if (r != 0)
		log_close();
	return r;
}

void
log_reopen(void)
{
	struct log *l = &the_log;

	if (!atomic_load(&running))
		return;
	pthread_mutex_lock(&l->lock);
	l->reopen = true;
	pthread_cond_signal(&l->work);
	pthread_mutex_unlock(&l->lock);
}

/* Also undoes a log_open that could not start its thread. */
void
log_close(void)
{
	struct log *l = &the_log;

	if (l->ring == NULL)
		return;
	if (atomic_load(&running)) {
		atomic_store(&give_up_us, clock_mono_us() + CLOSE_MS * 1000);
		atomic_store(&closing, true);
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		pthread_cond_signal(&l->work);
		pthread_mutex_unlock(&l->lock);
		pthread_join(l->thread, NULL);
		atomic_store(&running, false);
	}
	pthread_cond_destroy(&l->work);
	pthread_cond_destroy(&l->written);
	set_target(l, STDERR_FILENO);
	free(l->ring);
	free(l->batch);
	free(l->file);
	l->ring = l->batch = l->file = NULL;
	l->format = LOG_TEXT;
	l->lost = 0;
	l->torn = false;
}

void
log_flush(void)
{
	struct log *l = &the_log;
	struct timespec until;
	uint64_t seq;

	if (!atomic_load(&running) || pthread_equal(pthread_self(), l->thread))
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FLUSH_MS / 1000;
	pthread_mutex_lock(&l->lock);
	seq = l->put_seq;
	l->hurry = true;
	pthread_cond_signal(&l->work);
	while (l->written_seq < seq) {
		if (pthread_cond_timedwait(&l->written, &l->lock, &until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&l->lock);
}

void
log_set_level(enum log_level level)
{
	atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

bool
log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

int
log_fd(void)
{
	return atomic_load(&the_log.fd);
}

uint64_t
log_dropped(void)
{
	return atomic_load(&dropped);
}

/* Without a thread: standard error, with a bound on how long a full pipe holds us up. */
static void
write_directly(const char *line, size_t n)
{
	while (n > 0) {
		struct pollfd pfd = { .fd = STDERR_FILENO, .events = POLLOUT };
		ssize_t w = 0;

		if (poll(&pfd, 1, DIRECT_MS) != 0)
			w = write(STDERR_FILENO, line, n < PIPE_TAKES ? n : PIPE_TAKES);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			atomic_fetch_add(&dropped, 1);
			return;
		}
		line += w;
		n -= (size_t)w;
	}
}

void
log_line(enum log_level level, const struct log_who *who, const char *fmt, ...)
{
	struct log *l = &the_log;
	int saved_errno = errno;
	char line[LINE_MAX_HERE];
	va_list ap;
	size_t n;

	if (!log_enabled(level))
		return;
	va_start(ap, fmt);
	n = make_line(line, l, level, who, fmt, ap);
	va_end(ap);
	if (!atomic_load(&running)) {
		write_directly(line, n);
		errno = saved_errno;
		return;
	}
	pthread_mutex_lock(&l->lock);
	if (!ring_put(l, line, n))
		lose(l, 1, l->put_seq);
	if (l->asleep || l->used >= RING / 2)
		pthread_cond_signal(&l->work);
	pthread_mutex_unlock(&l->lock);
	errno = saved_errno;
}

bool
log_allowed(struct log_limit *limit)
{
	uint64_t now_ms = clock_mono_us() / 1000 + 1, held_back;

	if (limit->since_ms == 0 || now_ms - limit->since_ms >= LIMIT_WINDOW_MS) {
		held_back = limit->held_back;
		limit->since_ms = now_ms;
		limit->used = 0;
		limit->held_back = 0;
		if (held_back > 0)
			log_warning("%llu lines like the next one were held back",
			    (unsigned long long)held_back);
	}
	if (limit->used < limit->burst) {
		limit->used++;
		return true;
	}
	limit->held_back++;
	return false;
}
