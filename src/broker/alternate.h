/* SPDX-License-Identifier: Apache-2.0
 * Which exchanges name an exchange as their alternate, by its name: it need not exist. */
#ifndef BROKER_ALTERNATE_H
#define BROKER_ALTERNATE_H

#include "base/bytes.h"

struct exchange;
struct vhost;

/* x->alternate is set and lives in x->arguments. */
void alternate_add(struct exchange *x);
void alternate_remove(struct exchange *x);

/* The first of those, the others through alternate_link; NULL: none. Cheap where no exchange has an alternate. */
struct exchange *alternate_first(const struct vhost *vh, struct span name);

#endif
