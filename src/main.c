/* SPDX-License-Identifier: Apache-2.0
 * hermes COMMAND: the way in. The commands and their options stand in cli/commands.c; `hermes server` (cli/server.c)
 * reads the settings (settings.c) and runs a node (node.c), whose function turn() is all that a running broker does:
 *
 *	read what came from sockets -> amqp/ makes calls into src/broker/ -> messages go to queues and consumers ->
 *	one write for each connection
 */
#include "base/clock.h"
#include "base/mem.h"
#include "cli/cli.h"

int
main(int argc, char **argv)
{
	clock_init();
	mem_init();
	return cli_main(argc, argv);
}
