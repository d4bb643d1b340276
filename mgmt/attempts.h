/* SPDX-License-Identifier: Apache-2.0
 * Logins by protocol. */
#ifndef MGMT_ATTEMPTS_H
#define MGMT_ATTEMPTS_H

struct login_counts;
struct mgmt;

/* Since the start, whatever was set to 0 meanwhile. */
struct login_counts login_counts_of(const struct mgmt *m);

#endif
