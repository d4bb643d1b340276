/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/message_print.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/text_safe.h"

enum { PIECE = 4096 };

struct message_print
message_print_of(const struct cli *c)
{
	return (struct message_print){ .cli = c,
		.json = cli_switch(c, "json"),
		.lost = cli_switch(c, "no-ack"),
		.to_terminal = isatty(STDOUT_FILENO) == 1 };
}

/* For eyes: line feeds and tabs as they are, all else made safe, a piece at a time. */
static bool
print_safe(const char *s, size_t n)
{
	bool fine = true;

	while (fine && n > 0) {
		size_t len = 0;
		char *safe;

		while (len < n && len < PIECE && s[len] != '\n' && s[len] != '\t')
			len++;
		/* no character is cut: it goes on with at most three bytes of 10xxxxxx */
		for (unsigned i = 0;
		     i < 3 && len == PIECE + i && len < n && (s[len] & 0xc0) == 0x80; i++)
			len++;
		safe = text_safe(s, len, NULL);
		fine = fputs(safe, stdout) != EOF;
		free(safe);
		if (fine && len < n && (s[len] == '\n' || s[len] == '\t'))
			fine = putchar(s[len++]) != EOF;
		s += len;
		n -= len;
	}
	return fine;
}

static bool
print_body(const struct message_print *p, const amqp_bytes_t *b)
{
	if (p->to_terminal)
		return print_safe(b->bytes, b->len);
	return b->len == 0 || fwrite(b->bytes, 1, b->len, stdout) == b->len;
}

static bool
failed(const struct message_print *p)
{
	if (p->lost || !cli_nobody_reads())
		cli_fail(p->cli, "cannot write the message: %s; it %s", strerror(errno),
		    p->lost ? "is lost (--no-ack)" : "stays in the queue");
	return false;
}

bool
message_print(const struct message_print *p, const struct message_way *way, const amqp_message_t *m)
{
	bool fine;

	if (p->json) {
		json_t *j = message_json(way, m);

		fine = j != NULL &&
		       json_dumpf(j, stdout, JSON_COMPACT | text_safe_json(STDOUT_FILENO)) == 0;
		json_decref(j);
	} else {
		fine = print_body(p, &m->body);
	}
	return (fine && putchar('\n') != EOF) || failed(p);
}

bool
message_print_flush(const struct message_print *p)
{
	return fflush(stdout) == 0 || failed(p);
}
