/* SPDX-License-Identifier: Apache-2.0
 * Bindings as documents, their properties_key, and the lists of them. Every queue is bound to the default exchange by its
 * name: such a binding is shown, though it is none that could be made or removed. */
#ifndef MGMT_BINDING_DOC_H
#define MGMT_BINDING_DOC_H

#include "broker/binding.h"
#include "mgmt/listing.h"

/* All; those to one queue; from one exchange; to one exchange. Of the last three the rows of one object. */
extern const struct listing_source binding_list, queue_binding_list, source_binding_list, destination_binding_list;
/* Of all queues: those from the default exchange. */
extern const struct listing_source default_binding_list;

/* A binding, or what stands for one. */
struct binding_view {
	const struct exchange *source;
	const struct queue *queue;	  /* or: */
	const struct exchange *exchange;
	struct span key;
	const struct table *arguments;
};
struct binding_view binding_view(const struct binding *b);
struct binding_view binding_view_default(const struct queue *q);
void binding_write(const struct doc *d, void *view); /* a listing_source's */

/* The routing key as a form encodes it, "~" for an empty one; with arguments, "~" and a hash of them, which is the same at
 * any time. */
enum { PROPERTIES_KEY = 3 * 255 + 1 + 8 };
const char *binding_properties_key(const struct binding_view *v, char buf[PROPERTIES_KEY]);

/* The one with this properties_key between two ends; NULL: there is none. Not the default exchange's. */
struct binding *binding_by_properties(
    const struct exchange *source, const struct queue *q, const struct exchange *x, struct span props);

#endif
