/* SPDX-License-Identifier: Apache-2.0
 * Lines of the log: see the header. Whatever a peer chose is escaped: control characters, bytes
 * that are no UTF-8, and characters that make a terminal show something else than what is there. */
#include "base/log_format.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

enum { TAIL = 8 }; /* bytes kept free for the end of a line: "}\n and dots */

struct line {
	char *p;
	size_t n, max; /* max leaves room for the tail */
	bool cut;
};

const char *
log_level_name(enum log_level level)
{
	static const char *const names[] = {
		[LOG_ERROR] = "error",
		[LOG_WARNING] = "warning",
		[LOG_INFO] = "info",
		[LOG_DEBUG] = "debug",
	};

	return names[level];
}

/* All or nothing, and nothing more after the first that did not fit. */
static void
put(struct line *l, const char *s, size_t n)
{
	if (l->cut || n > l->max - l->n) {
		l->cut = true;
		return;
	}
	memcpy(l->p + l->n, s, n);
	l->n += n;
}

static void
put_str(struct line *l, const char *s)
{
	put(l, s, strlen(s));
}

static void put_fmt(struct line *l, const char *fmt, ...) PRINTF(2, 3);

static void
put_fmt(struct line *l, const char *fmt, ...)
{
	char buf[64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	if (n > 0)
		put(l, buf, (size_t)n < sizeof buf ? (size_t)n : sizeof buf - 1);
}

/* C0, DEL, C1, line and paragraph separators, and what turns the direction of writing. */
static bool
is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0xfeff;
}

static void
put_hidden(struct line *l, uint32_t c, bool json)
{
	switch (c) {
	case '\n': put_str(l, "\\n"); return;
	case '\r': put_str(l, "\\r"); return;
	case '\t': put_str(l, "\\t"); return;
	default: break;
	}
	if (json || c > 0xff)
		put_fmt(l, "\\u%04x", (unsigned)c);
	else
		put_fmt(l, "\\x%02x", (unsigned)c);
}

static void
put_escaped(struct line *l, const char *s, size_t n, bool json)
{
	const uint8_t *p = (const uint8_t *)s;

	while (n > 0 && !l->cut) {
		uint32_t code;
		size_t len = utf8_decode(p, n, &code);

		if (len == 0) {
			put_fmt(l, json ? "\\\\x%02x" : "\\x%02x", *p);
			len = 1;
		} else if (is_hidden(code)) {
			put_hidden(l, code, json);
		} else if (json && (code == '"' || code == '\\')) {
			char esc[2] = { '\\', (char)code };

			put(l, esc, 2);
		} else {
			put(l, (const char *)p, len);
		}
		p += len;
		n -= len;
	}
}

static void
put_escaped_str(struct line *l, const char *s, bool json)
{
	put_escaped(l, s, strlen(s), json);
}

/* 2026-11-29T23:40:00.123Z by the wall clock, to compare with other logs. */
static void
put_time(struct line *l)
{
	struct timespec now;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	put_fmt(l, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
	    tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(now.tv_nsec / 1000000));
}

static void
put_json_field(struct line *l, const char *name, const char *value)
{
	if (value == NULL)
		return;
	put_str(l, ",\"");
	put_str(l, name);
	put_str(l, "\":\"");
	put_escaped_str(l, value, true);
	put_str(l, "\"");
}

static void
put_head_json(struct line *l, enum log_level level, const struct log_who *who)
{
	put_str(l, "{\"time\":\"");
	put_time(l);
	put_str(l, "\"");
	put_json_field(l, "level", log_level_name(level));
	if (who != NULL) {
		if (who->connection != 0)
			put_fmt(l, ",\"connection\":%llu", (unsigned long long)who->connection);
		put_json_field(l, "peer", who->peer);
		put_json_field(l, "user", who->user);
		put_json_field(l, "vhost", who->vhost);
	}
	put_str(l, ",\"message\":\"");
}

/* Everything of `who` is optional: "[17] 127.0.0.1:4711 guest@/: ". */
static void
put_head_text(struct line *l, enum log_level level, const struct log_who *who)
{
	size_t before;

	put_time(l);
	put_fmt(l, " %-7s ", log_level_name(level));
	if (who == NULL)
		return;
	before = l->n;
	if (who->connection != 0)
		put_fmt(l, "[%llu] ", (unsigned long long)who->connection);
	if (who->peer != NULL) {
		put_escaped_str(l, who->peer, false);
		put_str(l, " ");
	}
	if (who->user != NULL)
		put_escaped_str(l, who->user, false);
	if (who->vhost != NULL) {
		put_str(l, "@");
		put_escaped_str(l, who->vhost, false);
	}
	if (l->n == before)
		return;
	if (l->p[l->n - 1] == ' ')
		l->n--;
	put_str(l, ": ");
}

size_t
log_format_line(char out[LOG_LINE_MAX], enum log_format format, enum log_level level,
    const struct log_who *who, const char *fmt, va_list ap)
{
	struct line l = { .p = out, .max = LOG_LINE_MAX - TAIL };
	char message[LOG_MESSAGE_MAX];
	int n = vsnprintf(message, sizeof message, fmt, ap);
	size_t len = n > 0 ? (size_t)n : 0;
	bool cut = false;

	if (len >= sizeof message) {
		len = utf8_cut(message, sizeof message - 1, sizeof message - 1 - 3);
		cut = true;
	}
	if (format == LOG_JSON)
		put_head_json(&l, level, who);
	else
		put_head_text(&l, level, who);
	put_escaped(&l, message, len, format == LOG_JSON);
	cut = cut || l.cut;
	l.cut = false;
	l.max = LOG_LINE_MAX;
	if (cut)
		put_str(&l, "...");
	put_str(&l, format == LOG_JSON ? "\"}\n" : "\n");
	return l.n;
}
