/* SPDX-License-Identifier: Apache-2.0
 * One line of the log, from what is known about it to the bytes that are written. Only base/log
 * uses it. */
#ifndef BASE_LOG_FORMAT_H
#define BASE_LOG_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

#include "base/log.h"

enum { LOG_MESSAGE_MAX = 2048, LOG_LINE_MAX = 8192 }; /* bytes; longer ones end in "..." */

const char *log_level_name(enum log_level level);

/* Writes one line with its newline, and no other, to out; returns its length. */
size_t log_format_line(char out[LOG_LINE_MAX], enum log_format format, enum log_level level,
    const struct log_who *who, const char *fmt, va_list ap);

#endif
