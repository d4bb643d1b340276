/* SPDX-License-Identifier: Apache-2.0
 * Which exchanges name an exchange as their alternate, by its name: it need not exist. */
#ifndef BROKER_ALTERNATE_H
#define BROKER_ALTERNATE_H

#include "base/attr.h"
#include "base/bytes.h"

struct client;
struct error;
struct exchange;
struct table;
struct vhost;

/* x->alternate is set and lives in x->arguments. */
void alternate_add(struct exchange *x);
void alternate_remove(struct exchange *x);

/* The first of those, the others through alternate_link; NULL: none. Cheap where no exchange has an alternate. */
struct exchange *alternate_first(const struct vhost *vh, struct span name);

/* May the client declare this exchange with what its arguments name as its alternate? That needs read on the exchange that
 * has it and write on the alternate; asked only of a new exchange. NULL, or 403. Of the wrong type it is exchange_declare's to
 * refuse. */
const struct error *alternate_check_rights(const struct client *c, struct span name, const struct table *arguments) MUSTUSE;

#endif
