/* SPDX-License-Identifier: Apache-2.0
 * Where --amqp, --user, --password and --vhost lead, each with its environment variable, put together. */
#ifndef CLI_CLIENT_ADDRESS_H
#define CLI_CLIENT_ADDRESS_H

#include <stdbool.h>

#include "base/attr.h"
#include "cli/cli.h"

struct client_address {
	const char *host, *vhost, *user; /* of the command line, the environment or url */
	int port;
	bool is_tls;
	char *password; /* owned */
	char *url;      /* owned: what others point into */
};

/* CLI_OK, or the command's exit status: said why, nothing is held. */
int client_address_read(struct client_address *a, struct cli *c) MUSTUSE;
void client_address_fini(struct client_address *a);

/* A connected socket that does not block, for the caller to close; -1: said why. */
int client_connect(struct cli *c, const struct client_address *a) MUSTUSE;

#endif
