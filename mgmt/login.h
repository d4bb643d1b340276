/* SPDX-License-Identifier: Apache-2.0
 * Who is it? "Basic" credentials, or the cookie of a session (web_session.h). */
#ifndef MGMT_LOGIN_H
#define MGMT_LOGIN_H

struct request;

/* Calls dispatch_logged_in(), now or later, or answers: 401, or 429 for who guesses. */
void login_request(struct request *r);

#endif
