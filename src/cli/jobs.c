/* SPDX-License-Identifier: Apache-2.0
 * hermes jobs [list|cancel]: moves and replays that are under way, and those of the last hour. */
#include "base/attr.h"
#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_path.h"
#include "cli/list.h"
#include "cli/text_safe.h"

static int
jobs_list(struct cli *c)
{
	return list_show(c, "jobs", NULL);
}

static int
jobs_cancel(struct cli *c)
{
	return api_delete(c, HTTP_PATH("/api/hermes/jobs/*", cli_arg(c, 1)),
	    text_safe_format("job %s", cli_arg(c, 1)), "cancelled");
}

int
cmd_jobs(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "list", jobs_list, "", 0, 0, "json columns no-header" },
		{ "cancel", jobs_cancel, "ID", 1, 1, "" },
		{ .name = NULL },
	};

	return cli_args(c) == 0 ? jobs_list(c) : cli_run_verb(c, verbs);
}
