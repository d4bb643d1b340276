/* SPDX-License-Identifier: Apache-2.0
 * One connection and one channel to a node, for commands that talk AMQP; made with librabbitmq's client. Every function
 * that fails prints one line that says what to do, and the command returns CLI_FAILED. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <stdbool.h>

#include <amqp.h>

#include "base/attr.h"
#include "cli/cli.h"

struct client_conn {
	struct cli *cli;              /* borrowed */
	amqp_connection_state_t amqp; /* owned; channel 1 is open */
	bool hears_blocked;           /* set before client_open: takes connection.blocked */
};

/* Connects as --amqp, --user, --password and --vhost say. CLI_OK, or the command's exit status: said why, nothing
 * is held. */
int client_open(struct client_conn *k, struct cli *c) MUSTUSE;
void client_close(struct client_conn *k);

/* Was the answer to the last synchronous call fine? Prints what the node said if not; `doing` is what was tried. */
bool client_fine(struct client_conn *k, amqp_rpc_reply_t reply, const char *doing) MUSTUSE;

#endif
