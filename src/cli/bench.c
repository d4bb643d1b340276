/* SPDX-License-Identifier: Apache-2.0
 * hermes bench: puts load on a broker, any that speaks AMQP 0-9-1, over queues of its own; measures and verifies what
 * comes out, and removes the queues. */
#include <stdlib.h>

#include "base/mem.h"
#include "cli/bench_conn.h"
#include "cli/bench_load.h"
#include "cli/bench_options.h"
#include "cli/bench_report.h"
#include "cli/bench_stop.h"
#include "cli/bench_topology.h"
#include "cli/cli.h"

/* What is left goes by itself an hour later. */
static int
remove_all(struct bench_broker *b, const struct bench_options *o)
{
	b->failed = false; /* it is tried after a failure, too */
	if (bench_topology_remove(b, o))
		return CLI_OK;
	return cli_fail(b->cli, "what is called %s... may be left behind", o->name);
}

static int
run(struct bench_broker *b, const struct bench_options *o, struct bench_report *r)
{
	int status = CLI_FAILED;

	if (!bench_topology_make(b, o))
		return CLI_FAILED;
	if (bench_load_run(b, o, r))
		status = bench_report_print(b->cli, o, r);
	else if (!b->failed)
		(void)cli_fail(b->cli, "ended before it began");
	return b->failed ? CLI_FAILED : status;
}

int
cmd_bench(struct cli *c)
{
	struct bench_options o;
	struct bench_broker b;
	struct bench_report *r;
	int status = bench_options_read(&o, c);

	if (status != CLI_OK || (status = bench_broker_init(&b, c)) != CLI_OK)
		return status;
	bench_stop_watch();
	r = xcalloc(1, sizeof *r);
	status = run(&b, &o, r);
	/* without a connection nothing was made */
	if (b.connected && remove_all(&b, &o) != CLI_OK)
		status = CLI_FAILED;
	free(r);
	bench_broker_fini(&b);
	return status;
}
