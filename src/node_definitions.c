/* SPDX-License-Identifier: Apache-2.0
 * Definitions at the start: see the header. */
#include "node_definitions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <zlib.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/worker.h"
#include "broker/broker.h"
#include "broker/user.h"
#include "mgmt/definitions.h"

enum { SLICE_US = 100000, HASH_POLL_US = 1000, PIECE = 64 << 10 };

struct text {
	char *p; /* owned */
	size_t n, room;
};

/* All that is in it, unpacked if it is gzip. False: `why` says why not. */
static bool
read_all(gzFile f, struct text *t, const char *path, char why[DEFINITIONS_ERROR])
{
	int got = 1, failure;

	while (got > 0 && t->n <= DEFINITIONS_FILE_MAX) {
		if (t->room - t->n < PIECE) {
			t->room = t->room * 2 + PIECE;
			t->p = xrealloc(t->p, t->room);
		}
		got = gzread(f, t->p + t->n, PIECE);
		t->n += got > 0 ? (size_t)got : 0;
	}
	if (t->n > DEFINITIONS_FILE_MAX)
		(void)snprintf(why, DEFINITIONS_ERROR, "definitions.file: %s is larger than %d MiB",
		    path, DEFINITIONS_FILE_MAX >> 20);
	else if (got < 0)
		(void)snprintf(why, DEFINITIONS_ERROR, "definitions.file: %s cannot be read: %s",
		    path, gzerror(f, &failure));
	return got == 0 && t->n <= DEFINITIONS_FILE_MAX;
}

static json_t *
parse(const struct text *t, const char *path, char why[DEFINITIONS_ERROR])
{
	json_error_t e;
	json_t *doc = json_loadb(t->p, t->n, JSON_ALLOW_NUL, &e);

	if (doc == NULL)
		(void)snprintf(
		    why, DEFINITIONS_ERROR, "definitions.file: %s:%d: %s", path, e.line, e.text);
	else if (!json_is_object(doc))
		(void)snprintf(
		    why, DEFINITIONS_ERROR, "definitions.file: %s holds no JSON object", path);
	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	return NULL;
}

static json_t *
read_file(const char *path, char why[DEFINITIONS_ERROR])
{
	gzFile f = gzopen(path, "re");
	struct text t = { NULL, 0, 0 };
	json_t *doc = NULL;
	bool is_whole;

	if (f == NULL) {
		(void)snprintf(why, DEFINITIONS_ERROR, "definitions.file: %s cannot be read: %s",
		    path, strerror(errno));
		return NULL;
	}
	is_whole = read_all(f, &t, path, why);
	if (gzclose_r(f) != Z_OK && is_whole)
		(void)snprintf(why, DEFINITIONS_ERROR, "definitions.file: %s ends too early", path);
	else if (is_whole)
		doc = parse(&t, path, why);
	free(t.p);
	return doc;
}

static void
report(const struct import *im, const char *path)
{
	const json_t *errors = import_errors(im), *e;
	uint64_t done, failed;
	size_t i;

	import_counts(im, &done, &failed);
	json_array_foreach(errors, i, e)
	{
		log_error("definitions.file: %s cannot be made: %s",
		    json_string_value(json_object_get(e, "object")),
		    json_string_value(json_object_get(e, "reason")));
	}
	if (failed > json_array_size(errors))
		log_error(
		    "definitions.file: and %" PRIu64 " more", failed - json_array_size(errors));
	log_info("definitions of %s imported: %" PRIu64 " objects, %" PRIu64 " could not be", path,
	    done, failed);
}

bool
node_definitions_import(struct broker *b, struct workers *hashers, char why[DEFINITIONS_ERROR])
{
	const char *path = b->cfg->definitions_file;
	struct import *im;
	bool brings_users;
	json_t *doc;

	if (path == NULL || *path == '\0')
		return true;
	doc = read_file(path, why);
	if (doc == NULL)
		return false;
	brings_users = json_array_size(json_object_get(doc, "users")) > 0;
	im = import_new(b, doc, NULL);
	while (!import_run(im, SLICE_US)) {
		if (!import_waits(im))
			continue;
		(void)usleep(HASH_POLL_US);
		workers_take(hashers);
	}
	report(im, path);
	import_free(&im, NULL);
	if (brings_users) /* as with RabbitMQ */
		users_drop_defaults(b, "the definitions have users");
	return true;
}
