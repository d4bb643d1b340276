/* SPDX-License-Identifier: Apache-2.0
 * Forms with files: see the header. */
#include "mgmt/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { BOUNDARY_MAX = 70 /* RFC 2046, 5.1.1 */ };

static const char form_type[] = "multipart/form-data";

bool
multipart_is(const char *content_type)
{
	return content_type != NULL &&
	       strncasecmp(content_type, form_type, sizeof form_type - 1) == 0;
}

/* "--" and the boundary into d. 0: there is none. */
static size_t
read_delimiter(const char *content_type, char d[BOUNDARY_MAX + 3])
{
	const char *p = strcasestr(content_type, "boundary=");
	size_t n;

	if (p == NULL)
		return 0;
	p += strlen("boundary=");
	n = *p == '"' ? strcspn(++p, "\"") : strcspn(p, "; \t");
	if (n == 0 || n > BOUNDARY_MAX)
		return 0;
	return (size_t)snprintf(d, BOUNDARY_MAX + 3, "--%.*s", (int)n, p);
}

static const uint8_t *
find(struct span in, const void *what, size_t n)
{
	return memmem(in.p, in.n, what, n);
}

static struct span
from(struct span s, const uint8_t *p)
{
	return span_of(p, (size_t)(s.p + s.n - p));
}

/* Is the part with this head the one? */
static bool
is_named(struct span head, const char *name)
{
	char want[64];
	int n = snprintf(want, sizeof want, "name=\"%s\"", name);
	const uint8_t *p;

	/* "filename=" ends with the same letters */
	while ((p = find(head, want, (size_t)n)) != NULL) {
		if (p == head.p || p[-1] == ' ' || p[-1] == ';')
			return true;
		head = from(head, p + 1);
	}
	return false;
}

bool
multipart_find(const char *content_type, struct span body, const char *name, struct span *out)
{
	char d[BOUNDARY_MAX + 3];
	size_t n = multipart_is(content_type) ? read_delimiter(content_type, d) : 0;
	const uint8_t *part, *content, *end;

	while (n > 0 && body.n > 0 && (part = find(body, d, n)) != NULL) {
		body = from(body, part + n);
		content = find(body, "\r\n\r\n", 4);
		if (content == NULL)
			return false;
		end = find(from(body, content + 2), d, n); /* an empty part's end is its head's */
		if (end == NULL || end < content + 4 || end[-1] != '\n' || end[-2] != '\r')
			return false;
		if (is_named(span_of(body.p, (size_t)(content - body.p)), name)) {
			*out = span_of(content + 4,
			    end - 2 > content + 4 ? (size_t)(end - 2 - (content + 4)) : 0);
			return true;
		}
		body = from(body, end);
	}
	return false;
}
