/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions: see the header. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "broker/pattern.h"

#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bound.h"
#include "base/log.h"
#include "base/mem.h"

enum {
	/* Bounds for one match beside its steps. */
	DEPTH_MAX = 1000,
	HEAP_MAX_KIB = 256
};

struct pattern {
	pcre2_code *code; /* owned; NULL: it matches all */
};

static pcre2_match_context *bounds; /* these two live until the process ends */
static pcre2_match_data *match_data;

struct steps {
	uint32_t took, most;
};

/* Before each item of a pattern. */
static int
on_item(pcre2_callout_block *at UNUSED, void *arg)
{
	struct steps *s = arg;

	return s->took++ < s->most ? 0 : PCRE2_ERROR_MATCHLIMIT;
}

static void
set_up(void)
{
	if (bounds != NULL)
		return;
	bounds = pcre2_match_context_create(NULL);
	match_data = pcre2_match_data_create(1, NULL);
	if (bounds == NULL || match_data == NULL) {
		log_error("no memory for PCRE2");
		log_flush();
		abort();
	}
	pcre2_set_depth_limit(bounds, DEPTH_MAX);
	pcre2_set_heap_limit(bounds, HEAP_MAX_KIB);
}

struct pattern *
pattern_new(struct span text, char *why, size_t n)
{
	struct pattern made = { NULL }, *p;
	PCRE2_UCHAR reason[128];
	size_t at;
	int code;

	if (text.n > PATTERN_LEN_MAX) {
		snprintf(
		    why, n, "it has %zu bytes, at most %d are allowed", text.n, PATTERN_LEN_MAX);
		return NULL;
	}
	if (!span_is(text, ".*")) {
		set_up();
		made.code = pcre2_compile(text.n > 0 ? (PCRE2_SPTR)text.p : (PCRE2_SPTR) "", text.n,
		    PCRE2_AUTO_CALLOUT, &code, &at, NULL);
		if (made.code == NULL) {
			pcre2_get_error_message(code, reason, sizeof reason);
			snprintf(why, n, "%s at byte %zu", (const char *)reason, at);
			return NULL;
		}
	}
	p = xmalloc(sizeof *p);
	*p = made;
	return p;
}

void
pattern_free(struct pattern **pp)
{
	if (*pp == NULL)
		return;
	pcre2_code_free((*pp)->code);
	free(*pp);
	*pp = NULL;
}

size_t
pattern_size(const struct pattern *p)
{
	size_t n = 0;

	if (p == NULL)
		return 0;
	if (p->code != NULL)
		(void)pcre2_pattern_info(p->code, PCRE2_INFO_SIZE, &n);
	return sizeof *p + n;
}

enum pattern_result
pattern_match(const struct pattern *p, struct span subject, uint32_t most, uint32_t *took)
{
	struct steps steps = { .most = most };
	int rc;

	*took = 0;
	if (p->code == NULL)
		return PATTERN_YES;
	(void)pcre2_set_callout(bounds, on_item, &steps);
	rc = pcre2_match(p->code, subject.n > 0 ? (PCRE2_SPTR)subject.p : (PCRE2_SPTR) "",
	    subject.n, 0, 0, match_data, bounds);
	*took = steps.took;
	if (rc >= 0)
		return PATTERN_YES;
	if (rc == PCRE2_ERROR_NOMATCH)
		return PATTERN_NO;
	bound_reached(BOUND_pattern_steps);
	return PATTERN_TOO_LONG;
}
