/* SPDX-License-Identifier: Apache-2.0
 * Is the node well? One answer for /healthz, the overview and `hermes status`. */
#ifndef MGMT_HEALTH_H
#define MGMT_HEALTH_H

#include <stddef.h>

struct mgmt;

/* NULL, or what is wrong, written into text. */
const char *health_problem(const struct mgmt *m, char *text, size_t n);

#endif
