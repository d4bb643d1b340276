/* SPDX-License-Identifier: Apache-2.0
 * What the overview and the node both say of the process, and pieces of JSON that all of RabbitMQ's documents have. */
#ifndef MGMT_ABOUT_H
#define MGMT_ABOUT_H

#include <jansson.h>
#include <stdint.h>

#include "mgmt/mgmt.h"

struct mgmt;

/* Takes value. */
void json_put(json_t *o, const char *name, json_t *value);
/* NAME: count, NAME_details: {"rate": rate} */
void json_put_counter(json_t *o, const char *name, uint64_t count, double rate);

/* What came and went: connection_created, ... */
void about_put_churn(const struct mgmt *m, json_t *o);
json_t *about_exchange_types(void);
/* Calls f for each port that is open, also those for AMQP. */
void about_ports(const struct mgmt *m, mgmt_port_fn *f, void *arg);
json_t *about_listeners(const struct mgmt *m);
json_t *about_contexts(const struct mgmt *m);
json_t *about_cluster_name(const struct mgmt *m); /* a string */
json_int_t about_resident(void);		  /* bytes of memory that the process has */

#endif
