/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/list_query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/pattern.h"
#include "mgmt/acting.h"
#include "mgmt/json_out.h"
#include "mgmt/request.h"

/* False: there is something, and it is no integer. */
static bool
read_integer(const char *text, int64_t *out)
{
	char *end;

	if (text == NULL)
		return true;
	errno = 0;
	*out = strtoll(text, &end, 10);
	return end != text && *end == '\0' && errno == 0;
}

static bool
refuse(struct request *r)
{
	reply_error(r, 400, "bad_request", "Pagination parameters are invalid");
	return false;
}

static bool
read_page(struct list_query *q, struct request *r)
{
	const char *page = request_query(r, "page"), *size = request_query(r, "page_size");
	int64_t number = 1, n = PAGE_SIZE;
	char text[120];

	if (!read_integer(page, &number) || !read_integer(size, &n))
		return refuse(r);
	if (page == NULL)
		return true;
	if (number < 1 || number > INT32_MAX || n < 1 || n > PAGE_SIZE_MAX) {
		snprintf(text, sizeof text,
		    "Invalid pagination parameters: page number %" PRId64 ", page size %s", number,
		    size != NULL ? size : "undefined");
		reply_error(r, 400, "invalid_pagination_parameters", text);
		return false;
	}
	q->page = (uint64_t)number;
	q->page_size = (uint64_t)n;
	return true;
}

/* Case does not matter to either kind. A text that is no pattern becomes one in which each character stands for itself. */
static bool
read_name(struct list_query *q, struct request *r)
{
	const char *name = request_query(r, "name"), *regex = request_query(r, "use_regex");
	bool is_regex = regex != NULL && strcmp(regex, "true") == 0;
	size_t size;
	char why[160], *text, *to;

	if (q->page == 0 || name == NULL || *name == '\0')
		return true;
	size = 2 * strlen(name) + 32;
	text = to = xmalloc(size);
	to += snprintf(to, size, "(?i)%s", is_regex ? name : "");
	if (!is_regex) {
		for (; *name != '\0'; name++) {
			if (strchr("\\^$.[]|()?*+{}", *name) != NULL)
				*to++ = '\\';
			*to++ = *name;
		}
		*to = '\0';
	}
	q->name = pattern_new(span_str(text), why, sizeof why);
	free(text);
	return q->name != NULL || refuse(r);
}

bool
list_query_init(struct list_query *q, struct request *r, enum paging paging)
{
	bool is_paged =
	    paging == PAGING || (paging == PAGING_IF_TOLD && query_true(r, "pagination"));
	const char *sort = request_query(r, "sort"), *reverse = request_query(r, "sort_reverse");

	*q = (struct list_query){ .page = 0 };
	if (is_paged && (!read_page(q, r) || !read_name(q, r)))
		return false;
	q->columns = columns_new(request_query(r, "columns"));
	if (sort != NULL && *sort != '\0' && strchr(sort, ',') == NULL)
		q->sort = columns_new(sort);
	q->reverse = reverse != NULL && strcmp(reverse, "true") == 0;
	return true;
}

void
list_query_fini(struct list_query *q)
{
	pattern_free(&q->name);
	columns_free(&q->columns);
	columns_free(&q->sort);
}

void
list_query_out_of_range(struct request *r, const struct list_query *q, uint64_t rows)
{
	char text[120];

	snprintf(text, sizeof text,
	    "Page out of range, page: %" PRIu64 " page size: %" PRIu64 ", len: %" PRIu64, q->page,
	    q->page_size, rows);
	reply_error(r, 400, "page_out_of_range", text);
}
