/* SPDX-License-Identifier: Apache-2.0
 * Serves the console: one page, and the script, style and icon that it names. All of it may be read by anybody; what it
 * shows it asks of /api, with the login's cookie. */
#include "mgmt/console.h"

#include <string.h>

#include <event2/buffer.h>

#include "base/mem.h"
#include "mgmt/gzip.h"
#include "mgmt/request.h"

/* Nothing from elsewhere, nothing inline; charts set the size of their elements. */
static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
                             "'self' data: blob:; connect-src 'self'; "
                             "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

static const struct console_file *
find(struct span name)
{
	for (size_t i = 0; i < console_file_count; i++)
		if (span_eq(name, span_str(console_files[i].name)))
			return &console_files[i];
	return NULL;
}

static void
send_file(struct request *r, const struct console_file *f, const char *caching)
{
	bool zipped = f->zipped != NULL && gzip_accepted(request_header(r, "Accept-Encoding"));
	struct evbuffer *b = evbuffer_new();

	/* a reference: the bytes are the program's own */
	if (b == NULL || evbuffer_add_reference(b, zipped ? f->zipped : f->plain,
	                     zipped ? f->zipped_size : f->plain_size, NULL, NULL) < 0)
		mem_exhausted(f->plain_size, __builtin_return_address(0));
	if (zipped)
		reply_header(r, "content-encoding", "gzip");
	reply_header(r, "content-security-policy", policy);
	reply_header(r, "referrer-policy", "no-referrer");
	reply_header(r, "cache-control", caching);
	reply_static(r, 200, f->type, b);
	evbuffer_free(b);
}

void
route_console(struct request *r)
{
	send_file(r, find(SPAN_LIT("index.html")), "no-cache");
}

/* Their names change with what is in them. */
void
route_console_file(struct request *r)
{
	const struct console_file *f = find(request_arg(r, 0));

	if (f != NULL)
		send_file(r, f, "public, max-age=31536000, immutable");
	else
		reply_not_found(r);
}
