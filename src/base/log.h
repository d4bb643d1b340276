/* SPDX-License-Identifier: Apache-2.0
 * The log: lines put on a bounded ring by the core thread and written by a thread of their own,
 * because a log on a full pipe or a slow disk blocks whoever writes it. What does not fit is
 * counted and reported. Control characters and invalid UTF-8 in a line are escaped, so no peer
 * forges a line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG }; /* as in log.level */
enum log_format { LOG_TEXT, LOG_JSON };

/* Whom a line is about; every field may be NULL or 0. In text: "[17] 127.0.0.1:4711 guest@/: ". */
struct log_who {
	uint64_t connection;
	const char *peer, *user, *vhost;
};

/* file NULL or "-": standard error. Returns 0 or -errno (the file cannot be opened). Before it is
 * called, and after log_close, lines are written to standard error directly, as text. */
int log_open(enum log_level level, enum log_format format, const char *file) MUSTUSE;
void log_reopen(void); /* the file by its name again: for SIGHUP after rotation */
void log_close(void);  /* writes out what is on the ring, for at most two seconds */
void log_flush(void);  /* waits, at most a second, until the ring is written */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

void log_line(enum log_level level, const struct log_who *who, const char *fmt, ...) PRINTF(3, 4);
#define log_error(...) log_line(LOG_ERROR, NULL, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, NULL, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, NULL, __VA_ARGS__)
#define log_debug(...) (log_enabled(LOG_DEBUG) ? log_line(LOG_DEBUG, NULL, __VA_ARGS__) : (void)0)

/* At most `burst` lines of one kind per 10 s; how many were held back is said in the next line.
 *	static struct log_limit limit = { .burst = 20 };
 *	if (log_allowed(&limit)) log_warning(...); */
struct log_limit {
	uint32_t burst, used;
	uint64_t since_ms, held_back;
};
bool log_allowed(struct log_limit *limit);

uint64_t log_dropped(
    void); /* lines that never got out, since the start: no room on the ring, or a disk error */

/* Where lines go at the moment, for a crash report: may be called in a signal handler. */
int log_fd(void);

#endif
