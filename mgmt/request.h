/* SPDX-License-Identifier: Apache-2.0
 * A request on its way through a handler, and the ways to answer it.
 *
 * A handler is called with what the row of the table demands seen to: the user has the tag, the vhost is there and the
 * user may see it, the body of a PUT or POST is a JSON object. It calls exactly one reply_ function, or sees to it that one
 * is called later (request_defer). After a reply that came later the request is gone. */
#ifndef MGMT_REQUEST_H
#define MGMT_REQUEST_H

#include <jansson.h>
#include <sys/queue.h>

#include <event2/keyvalq_struct.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/worker.h"
#include "mgmt/routes.h"
#include "net/transport.h"
#include "store/store.h"

struct error;
struct evbuffer;
struct evhttp_request;
struct http;
struct login;
struct mgmt;
struct user;
struct vhost;

enum {
	REQUEST_DEPTH_MAX = 100,       /* of arrays and objects in a body */
	REQUEST_FORM_MAX = 16 << 10,
	REPLY_GZIP_MIN = 300,	       /* a shorter body is not worth it */
	REPLY_GZIP_HERE = 64 << 10,    /* a longer one is compressed by a worker */
	REPLY_GZIP_WAITING = 64 << 20  /* while workers have so much to compress, answers go out as they are */
};

struct request {
	struct mgmt *m; /* borrowed */
	struct http *http; /* borrowed: the server that it came by */
	struct evhttp_request *ev;
	struct transport_addr peer;
	const struct route *route;
	struct route_arg args[ROUTE_ARGS_MAX]; /* owned, as all below that say nothing else */
	/* Borrowed, valid until the handler returns: later they may be gone. NULL where the row needs nobody, or has
	 * VHOST_NONE. */
	struct user *user;
	struct vhost *vhost;
	char *user_name; /* for log lines, later too */
	uint64_t user_id; /* whose it is once he is logged in: request_user() */
	uint64_t session; /* the login of a cookie (web_session_id()); 0: he sent his password */
	uint32_t password_changes; /* of the user, then */
	struct login *login;	 /* the password is being looked at; NULL: it is not. Then logged_in is called */
	void (*logged_in)(struct request *r, struct user *u);
	json_t *body;	 /* an object; NULL: no PUT or POST, or BODY_RAW */
	struct evkeyvalq query;
	bool has_query, is_deferred, is_answered;
	bool is_long; /* the body: was parsed by a worker, which took its bytes */
	uint64_t body_memory; /* that is held for it: body_free() */
	struct request_job *job; /* borrowed: owns itself */
	struct store_wait wait; /* for the store; is_waiting: reply_done */
	int wait_status;
	json_t *wait_body; /* NULL: none */
	bool is_waiting;
	bool is_again; /* request_again() was called */
	TAILQ_ENTRY(request) link; /* deferred */
};

TAILQ_HEAD(request_list, request);

/* --- what was asked ---------------------------------------------------------------- */

/* Whoever is logged in, later too. NULL: he is not there any more; another one of that name is not he. */
struct user *request_user(const struct request *r);
/* For answers that go on: NULL, or why the login that they rest on is none any more. */
const char *request_login_ended(const struct request *r);
/* The i-th ':' of the path. */
struct span request_arg(const struct request *r, unsigned i);
/* A parameter of the query, decoded; NULL: it is not there. The first of several. */
const char *request_query(struct request *r, const char *name);
const char *request_header(const struct request *r, const char *name);
/* A short body as it came (body.h); contiguous, borrowed until the reply. */
struct span request_raw(struct request *r);
/* A field of a form, decoded, to be freed; NULL: the body (application/x-www-form-urlencoded) has it not, or has more than
 * REQUEST_FORM_MAX bytes. */
char *request_form(struct request *r, const char *name);
/* A JSON string's bytes, which may hold NUL; p NULL: it is no string. */
struct span json_span(const json_t *string);
/* A JSON string; bytes that are no UTF-8 become U+FFFD. */
json_t *json_text(struct span s);

/* --- the answer -------------------------------------------------------------------- */

void reply_json(struct request *r, int status, json_t *body); /* takes body */
/* {"error": ..., "reason": ...}, as RabbitMQ has it; a refusal (401, 403, 413, 429, 503) is told in the log */
void reply_error(struct request *r, int status, const char *error, const char *reason);
/* The same with another text for the log; NULL: nothing, it was said already. */
void reply_refusal(struct request *r, int status, const char *error, const char *reason, const char *line);
void reply_not_found(struct request *r);		  /* 404 Object Not Found / Not Found */
void reply_bad(struct request *r, const char *fmt, ...) PRINTF(2, 3); /* 400 bad_request */
void reply_not_authorised(struct request *r, const char *reason); /* 401, without a prompt for another login */
/* The text of a refusal without the name of its code. */
const char *refusal_text(const struct error *e);
/* What the broker refused: 404 not_found, 401 "Access refused.", or 400 bad_request, each with its text. */
void reply_refused(struct request *r, const struct error *e);
void reply_empty(struct request *r, int status);
/* The same, but for a change that survives restarts: when the store has it. */
void reply_done(struct request *r, int status);
/* When the store has got so far; body is taken, NULL: none. */
void reply_when(struct request *r, struct store_wait wait, int status, json_t *body);
struct json_out;
void reply_out(struct request *r, struct json_out *o); /* 200 with what was written (json_out.h), whose memory may be taken */
/* Takes the contents of body, not the buffer. type NULL: without a body. */
void reply_bytes(struct request *r, int status, const char *type, struct evbuffer *body);
/* The same for what does not change: whoever calls sets the headers of encoding, caching and policy. */
void reply_static(struct request *r, int status, const char *type, struct evbuffer *body);
/* An answer that goes on: http_stream_write() has the rest of it, http_stream_end() and request_free() its end. The request is
 * deferred. */
void reply_stream(struct request *r, const char *type);
void reply_header(struct request *r, const char *name, const char *value);
/* Not if it has one of this name. */
void reply_header_once(struct request *r, const char *name, const char *value);
/* 301 to a path of the table. */
void reply_elsewhere(struct request *r, const char *path);

/* An empty one, and more of it; memory for them is there, or the node ends. */
struct evbuffer *reply_buffer(void);
void reply_buffer_add(struct evbuffer *b, const void *p, size_t n);

/* The reply comes after the handler has returned. Nothing of the client is read meanwhile. */
void request_defer(struct request *r);

/* There is more to do than fits into a turn: the handler is called again in the next, if the user still may. The request is
 * deferred. */
void request_again(struct request *r);

/* Something that takes long and touches nothing but itself. `run` is called on a worker, `done` on the core thread, with
 * r NULL if the request is gone; it frees the job. The request is deferred. */
struct request_job {
	struct worker_job job; /* first */
	struct request *r;
	void (*run)(struct request_job *);
	void (*done)(struct request_job *);
};
void request_work(struct request *r, struct request_job *job);
/* The same at once, where it does not take long; the request need not have been deferred. */
void request_run(struct request *r, struct request_job *job);

/* --- for dispatch.c and mgmt.c ------------------------------------------------------- */

struct request *request_new(struct mgmt *m, struct http *http, struct evhttp_request *ev,
    const struct transport_addr *peer);
void request_free(struct request *r);
/* Answers what waited for the store. Called each turn. */
void requests_run(struct mgmt *m);
/* One of those that said request_again(). True: there are more. */
bool requests_go_on(struct mgmt *m);
/* All that wait are forgotten; before the HTTP server goes. */
void requests_stop(struct mgmt *m);

#endif
