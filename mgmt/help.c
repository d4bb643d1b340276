/* SPDX-License-Identifier: Apache-2.0
 * The table of routes for people, and for programs that go through it. */
#include <event2/buffer.h>

#include "mgmt/request.h"

static const char *
needs_text(const struct route *row)
{
	return row->needs == NEEDS_ANY_TAG ? "a user with any tag" : route_needs_names[row->needs];
}

void
route_root(struct request *r)
{
	reply_elsewhere(r, "/api/index.html");
}

void
route_help(struct request *r)
{
	struct evbuffer *b = reply_buffer();

	(void)evbuffer_add_printf(b,
	    "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Hermes HTTP "
	    "API</title>\n"
	    "<style>td,th{padding:.2em 1em;text-align:left}</style>\n<h1>Hermes HTTP API</h1>\n"
	    "<p>Pieces that begin with a colon stand for names, percent-encoded: the vhost / is "
	    "%%2F. "
	    "An administrator has every tag.\n"
	    "<table><tr><th>method<th>path<th>for<th>what it does</tr>\n");
	for (size_t i = 0; i < route_count; i++)
		(void)evbuffer_add_printf(b, "<tr><td>%s<td>%s<td>%s<td>%s</tr>\n",
		    routes[i].method_name, routes[i].path, needs_text(&routes[i]), routes[i].help);
	(void)evbuffer_add_printf(b, "</table></html>\n");
	reply_bytes(r, 200, "text/html; charset=utf-8", b);
	evbuffer_free(b);
}

void
route_routes(struct request *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < route_count; i++)
		(void)json_array_append_new(
		    list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "method", routes[i].method_name,
		              "path", routes[i].path, "needs", route_needs_names[routes[i].needs],
		              "vhost", route_vhost_names[routes[i].vhost], "help", routes[i].help));
	reply_json(r, 200, list);
}
