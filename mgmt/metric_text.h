/* SPDX-License-Identifier: Apache-2.0
 * Prometheus' text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). All samples of a metric have
 * to stand together, so whoever shows many metrics of many objects has a text for each and puts them one behind the
 * other in the end. */
#ifndef MGMT_METRIC_TEXT_H
#define MGMT_METRIC_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/histogram.h"

struct evbuffer;

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_UNTYPED, METRIC_HISTOGRAM };

struct metric_text { /* zero at first */
	char *p; /* owned */
	size_t n, cap;
	struct evbuffer *whole; /* owned: what stands before p; NULL: nothing */
	size_t bytes;		/* of all of it */
};

void metric_text_fini(struct metric_text *t);
/* Moves all that was written to the end of `to`. */
void metric_text_move(struct metric_text *t, struct evbuffer *to);

void metric_put(struct metric_text *t, const void *p, size_t n);
void metric_puts(struct metric_text *t, const char *text);
/* The lines before the samples of a metric; its name is `prefix` and `name`. help: a static text of ours, one line. */
void metric_head(struct metric_text *t, const char *prefix, const char *name, enum metric_kind kind, const char *help);
/* name="value". Quotes, backslashes and line ends are escaped; NUL and bytes that are no UTF-8 become \xNN, so that two
 * names that differ stay apart. */
void metric_label(struct metric_text *t, const char *name, struct span value);
/* " value" and the end of the line. */
void metric_value(struct metric_text *t, double value);
/* A whole line: head, labels, "}", value. head: the name and "{", or nothing of the first three. */
void metric_row(struct metric_text *t, const char *head, size_t head_n, const char *labels, size_t labels_n, double value);
/* One sample. labels: NULL, or text of ours. */
void metric_sample(struct metric_text *t, const char *prefix, const char *name, const char *labels, double value);
/* Head and samples. Values are divided by `unit`. */
void metric_histogram(struct metric_text *t, const char *name, const char *labels, const char *help,
    const struct histogram *h, const uint64_t *bounds, double unit);

#endif
