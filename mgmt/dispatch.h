/* SPDX-License-Identifier: Apache-2.0
 * The way of every request: path, method, login, tag, vhost, body, handler, in this order. */
#ifndef MGMT_DISPATCH_H
#define MGMT_DISPATCH_H

struct evhttp_request;
struct http;
struct mgmt;
struct request;
struct transport_addr;
struct user;

/* Answers the request, whatever it is, now or later. */
void dispatch(struct mgmt *m, struct http *http, struct evhttp_request *req, const struct transport_addr *peer);

/* For login.c: the user that logged in. */
void dispatch_logged_in(struct request *r, struct user *u);

#endif
