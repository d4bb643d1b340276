/* SPDX-License-Identifier: Apache-2.0
 * Runtime parameters: of a component in a vhost (shovels, federation), and global ones. Their value is a JSON text that
 * means nothing here. Kept by the store. What RabbitMQ shows as parameters but has doors of their own (policies, limits)
 * is not here. */
#ifndef BROKER_PARAMETER_H
#define BROKER_PARAMETER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/map.h"

struct broker;
struct vhost;

struct parameter {
	struct broker *broker;	/* borrowed */
	struct vhost *vhost;	/* borrowed; NULL: a global one */
	uint64_t id;
	char *component, *name;	/* owned; component "" of a global one */
	char *value;		/* owned: JSON text */
	char *key;		/* owned: component, NUL, name */
	UT_hash_handle hh;	/* in vhost->parameters or broker->parameters */
};

enum { PARAMETER_VALUE_MAX = 128 << 10, PARAMETERS_MAX = 10000 /* of a vhost; global ones */ };

/* vh NULL: a global one, component empty. NULL, or 406 for a name or value that cannot be kept. */
const struct error *parameter_set(struct broker *b, struct vhost *vh, struct span component, struct span name,
    struct span value, bool *created) MUSTUSE;
struct parameter *parameter_find(const struct broker *b, const struct vhost *vh, struct span component,
    struct span name);
void parameter_clear(struct parameter *p);
/* All of a vhost: for (p = vh->parameters; p != NULL; p = p->hh.next); global ones: b->parameters. */
/* The vhost is deleted: some go, *left goes down by as many. True: there are more. */
bool parameters_drop_some(struct vhost *vh, unsigned *left);
void parameters_free(struct parameter **all);
/* From what the store had: names of at most 255 bytes. */
struct parameter *parameter_restore(struct broker *b, struct vhost *vh, struct span component, struct span name,
    struct span value, uint64_t id);

#endif
