/* SPDX-License-Identifier: Apache-2.0
 * Definitions of a file beside those of a node, kind by kind. Files say the same in several ways (tags as a text or a list, []
 * for no arguments): what counts of an object is brought into one form before it is compared. What a file does not say of
 * an object counts as the same, and a password in clear if the node's hash is of it. */
#ifndef CLI_DEFINITIONS_DIFF_H
#define CLI_DEFINITIONS_DIFF_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

struct definitions_kind {
	const char *key;     /* of its list: "queues" */
	const char *fields[5]; /* that tell one from another, in the order of `says` */
	const char *says;    /* of one, for text_safe_format: "queue '%s' in vhost '%s'" */
	json_t *(*of)(const json_t *item); /* what counts of one; owned by the caller */
	/* Adds to what counts of an object of the node what the node leaves out. NULL: nothing. */
	void (*fill)(json_t *of);
	/* What is sent to change one, where an import takes away what an object does not say; owned by the caller. NULL: the
	 * object as it stands in the file. */
	json_t *(*complete)(const json_t *item, const json_t *there);
	bool in_vhost;       /* what is exported of one virtual host has it, too */
	bool is_fixed;       /* an import changes none that is there */
	bool is_many;        /* several have one name, and differ in what counts */
};

/* In the order in which a node makes them; ended by a row without key. */
enum { DEFINITIONS_KINDS = 10 };
extern const struct definitions_kind definitions_kinds[DEFINITIONS_KINDS + 1];

struct definitions_diff {
	json_t *added;   /* owned, as all lists here: objects of the file that the node has not */
	json_t *changed; /* [{"item": what is to be sent, "was": {field: value}, "now": {field: value}}], only fields that differ */
	json_t *only;    /* objects of the node that the file has not */
	size_t same;
	bool is_listed;  /* the file has a list of this kind, be it empty */
};

/* vhost: of one virtual host, whose objects do not say in which they are; NULL: of a whole node. */
void definitions_compare(const struct definitions_kind *kind, const json_t *file, const json_t *there, const char *vhost,
    struct definitions_diff *out);
void definitions_diff_fini(struct definitions_diff *d);

/* Safe to print; owned by the caller. */
char *definitions_say(const struct definitions_kind *kind, const json_t *item, const char *vhost) MUSTUSE;

#endif
