/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/definitions_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"
#include "mgmt/gunzip.h"

enum { FILE_MAX = 256 << 20, PIECE = 64 << 10 };

/* All of a file, NUL added; NULL: -errno is in *n. */
static char *
read_all(FILE *in, ssize_t *n)
{
	size_t size = 0, room = 0, got;
	char *text = NULL;

	do {
		if (room - size < PIECE) {
			room = room > 0 ? room * 2 : PIECE * 2;
			text = xrealloc(text, room);
		}
		got = fread(text + size, 1, PIECE - 1, in);
		size += got;
	} while (got > 0 && size <= FILE_MAX);
	if (ferror(in) || size > FILE_MAX) {
		*n = ferror(in) ? -errno : -EFBIG;
		free(text);
		return NULL;
	}
	text[size] = '\0';
	*n = (ssize_t)size;
	return text;
}

/* The text of FILE, or of standard input. NULL: it was said why. */
static char *
take_text(struct cli *c, const char *file, ssize_t *n)
{
	FILE *in = file != NULL ? fopen(file, "re") : stdin;
	char *text = NULL;

	*n = -errno;
	if (in != NULL) {
		text = read_all(in, n);
		if (file != NULL)
			(void)fclose(in);
	}
	if (text == NULL)
		(void)cli_fail(c, "cannot read %s: %s", file != NULL ? file : "standard input",
		    strerror((int)-*n));
	return text;
}

/* The text of what is packed, in its place. */
static int
unpack(struct cli *c, struct definitions_file *f)
{
	static const char *const why[] = {
		[GUNZIP_DAMAGED] = "is packed, and not whole",
		[GUNZIP_LONG] = "is too long once it is unpacked",
		[GUNZIP_NO_MEMORY] = "needs more memory than there is",
	};
	char *text;
	size_t n;
	enum gunzip rc = gunzip(f->text, FILE_MAX, &text, &n);

	if (rc != GUNZIP_DONE)
		return cli_fail(c, "%s %s", f->name, why[rc]);
	free(f->owned);
	f->owned = text;
	f->text = span_of(text, n);
	return CLI_OK;
}

/* What was exported of one virtual host has none in its list of them, nor in its objects, but for policies. */
static bool
is_of_one_vhost(const json_t *doc)
{
	static const char *const lists[] = { "queues", "exchanges", "bindings", "policies",
		"parameters" };
	enum { POLICIES = 3 };
	bool found = false;
	const json_t *one;
	size_t i;

	if (json_object_get(doc, "vhosts") != NULL)
		return false;
	for (size_t n = 0; n < COUNT_OF(lists); n++) {
		json_array_foreach(json_object_get(doc, lists[n]), i, one)
		{
			bool says = json_object_get(one, "vhost") != NULL;

			if (says && n < POLICIES)
				return false;
			found |= !says;
		}
	}
	return found;
}

int
definitions_file_read(struct cli *c, struct definitions_file *f)
{
	const char *file = cli_arg(c, 0);
	json_error_t error;
	ssize_t n = 0;

	*f = (struct definitions_file){ .name = "standard input" };
	if (file == NULL && isatty(STDIN_FILENO) == 1)
		return cli_misuse(c, "FILE is missing; - is standard input");
	if (file != NULL && strcmp(file, "-") == 0)
		file = NULL;
	if (file != NULL)
		f->name = file;
	f->owned = take_text(c, file, &n);
	if (f->owned == NULL)
		return CLI_FAILED;
	f->text = span_of(f->owned, (size_t)n);
	if (gunzip_is(f->text) && unpack(c, f) != CLI_OK)
		return CLI_FAILED;
	/* the node would find it, too, but has no file and line to say */
	f->doc = json_loadb(f->owned, f->text.n, JSON_ALLOW_NUL, &error);
	if (f->doc == NULL)
		return cli_fail(c, "%s:%d: %s", f->name, error.line, error.text);
	if (!json_is_object(f->doc))
		return cli_fail(c, "%s holds no JSON object", f->name);
	if (cli_value(c, "vhost") == NULL && is_of_one_vhost(f->doc))
		return cli_misuse(c,
		    "%s is what was exported of one virtual host: --vhost NAME says into which "
		    "it goes",
		    f->name);
	return CLI_OK;
}

void
definitions_file_fini(struct definitions_file *f)
{
	json_decref(f->doc);
	free(f->owned);
	*f = (struct definitions_file){ 0 };
}

/* ---- to the node ---- */

/* 400: a list of what could not be made, or one reason why nothing could. */
static int
report(struct cli *c, const json_t *answer)
{
	const json_t *errors = json_object_get(answer, "errors"), *one;
	json_int_t failed = json_integer_value(json_object_get(answer, "failed"));
	const char *said = json_string_value(json_object_get(answer, "reason"));
	char *reason;
	size_t i;

	if (!json_is_array(errors)) {
		reason = text_safe_line(said != NULL ? said : "no reason was given");
		(void)cli_fail(c, "the definitions were refused: %s", reason);
		free(reason);
		return CLI_FAILED;
	}
	json_array_foreach(errors, i, one)
	{
		const char *object = json_string_value(json_object_get(one, "object"));
		char *safe = text_safe_line(object != NULL ? object : "?");

		said = json_string_value(json_object_get(one, "reason"));
		reason = text_safe_line(said != NULL ? said : "no reason was given");
		(void)cli_fail(c, "%s: %s", safe, reason);
		free(reason);
		free(safe);
	}
	if ((size_t)failed > json_array_size(errors))
		(void)cli_fail(
		    c, "and %lld more", (long long)failed - (long long)json_array_size(errors));
	return CLI_FAILED;
}

int
definitions_send(struct cli *c, struct span text, json_t **answer)
{
	const char *vhost = cli_value(c, "vhost");
	char *path =
	    vhost != NULL ? HTTP_PATH("/api/definitions/*", vhost) : xstrdup("/api/definitions");
	char *what = vhost != NULL ? text_safe_format("vhost '%s'", vhost) : NULL;
	int status = 0;
	int rc = http_client_call(c,
	    &(struct http_call){ .method = HTTP_POST,
	        .path = path,
	        .text = text,
	        .what = what,
	        .status_too = 400,
	        .doing = "importing",
	        .limit_s = HTTP_PATIENT_S },
	    &status, answer);

	if (rc == CLI_OK && status == 400)
		rc = report(c, *answer);
	free(what);
	free(path);
	return rc;
}
