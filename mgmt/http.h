/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server under mgmt/: libevent's, with the bounds that it does not have itself. Connections are
 * counted from the moment they are accepted, at most 64 a turn; one that does not complete a request in
 * time is ended, and at a limit those that were silent longest make room. All errors are JSON. */
#ifndef MGMT_HTTP_H
#define MGMT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct config;
struct evbuffer;
struct evhttp_request;
struct gate;
struct http;
struct loop;
struct transport_addr;

enum {
	HTTP_CONNECTIONS = 256, /* over it the kernel's queue waits */
	HTTP_SILENT_MS = 2000,  /* so old a connection may be ended to make room for others */
	HTTP_REQUEST_MS =
	    30 * 1000, /* from one complete request to the next, or to the end of idling */
	HTTP_OUTPUT_RATE = 32, /* bytes a ms; an answer that is taken as fast as that is not cut off by the limit above */
	HTTP_HEADERS_MAX = 16 << 10,
	HTTP_INPUT_SMALL = 128 << 10, /* a connection may hold so much of a request; all that hold more share
	                                 limits.http_bodies */
	HTTP_OUTPUT_SMALL = 1 << 20,  /* the same of answers that their clients have not taken yet; an answer that is */
	HTTP_OUTPUT_LARGE = 256 << 20 /* alone may be longer */
};

/* A request has come in whole; it is answered before the call returns, or deferred. */
typedef void http_fn(void *arg, struct evhttp_request *req, const struct transport_addr *peer);

struct http_stats {
	uint64_t accepted, requests, timed_out, evicted, accept_errors, too_much_input, too_much_output;
	uint64_t input_large; /* bytes of requests now held by connections with more than HTTP_INPUT_SMALL */
	uint64_t output_large; /* bytes of answers, of those with more than HTTP_OUTPUT_SMALL */
	uint32_t open;
};

/* Ports for TLS, and those whose connections may begin with a header of the PROXY protocol, pass the gate; NULL: none. */
struct http *http_new(struct loop *l, const struct config *cfg, struct gate *gate, http_fn *fn,
    void *arg);
void http_free(struct http **hp);

/* One more port; false: *error is a static text (net/listener.h). */
bool http_listen(struct http *h, const struct config *cfg, const char *address, uint16_t port, bool is_tls,
    const char **error) MUSTUSE;

/* The answer takes longer: until http_resume() no time limit ends the connection, and nothing of it is read. Right before
 * the answer is sent, http_resume(). Whoever holds a deferred request forgets it before http_free(). */
void http_defer(struct http *h, struct evhttp_request *req);
void http_resume(struct http *h, struct evhttp_request *req);
/* The body of a deferred request is not held any more. */
void http_body_gone(struct http *h, struct evhttp_request *req);

/* A deferred request gets an answer that goes on until http_stream_end(), however long that takes; its connection ends with
 * it, or before: when the client goes, or takes nothing of what waits for 30 s. */
void http_stream_begin(struct http *h, struct evhttp_request *req);
void http_stream_write(struct evhttp_request *req, struct evbuffer *data); /* takes the contents; nothing if the client has gone */
size_t http_stream_waiting(const struct evhttp_request *req); /* bytes that the client has not taken; SIZE_MAX: it has gone */
/* The last call for req. */
void http_stream_end(struct http *h, struct evhttp_request *req);

/* Did it come by TLS? */
bool http_is_secure(const struct http *h, struct evhttp_request *req);
/* The i-th port that is open; false when there is no such one. */
bool http_port(const struct http *h, unsigned i, struct transport_addr *out, bool *is_tls);
const struct http_stats *http_stats(struct http *h); /* as of now: looks for those that went */

#endif
