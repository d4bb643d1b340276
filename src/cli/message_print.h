/* SPDX-License-Identifier: Apache-2.0
 * Writing messages to standard output: one JSON object a line, or the body and a newline. On a terminal, what it would
 * act upon is shown as \x1b. */
#ifndef CLI_MESSAGE_PRINT_H
#define CLI_MESSAGE_PRINT_H

#include <amqp.h>
#include <stdbool.h>

#include "base/attr.h"
#include "cli/cli.h"
#include "cli/message_json.h"

struct message_print {
	const struct cli *cli;        /* borrowed */
	bool json, to_terminal, lost; /* lost: a message that cannot be written is gone, because nobody acknowledges it */
};

struct message_print message_print_of(const struct cli *c); /* as --json and --no-ack say */

/* Written, but not flushed. False: said why, unless nobody reads any more. */
bool message_print(const struct message_print *p, const struct message_way *way, const amqp_message_t *m) MUSTUSE;
bool message_print_flush(const struct message_print *p) MUSTUSE; /* the same */

#endif
