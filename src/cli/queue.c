/* SPDX-License-Identifier: Apache-2.0
 * hermes queue pause|resume NAME: deliveries of a queue stop, and go on. */
#include "base/attr.h"
#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"

static char *
path_of(struct cli *c)
{
	return HTTP_PATH("/api/hermes/queues/*/*/pause", api_vhost(c), cli_arg(c, 1));
}

static char *
what_of(struct cli *c)
{
	return text_safe_format("queue '%s' in vhost '%s'", cli_arg(c, 1), api_vhost(c));
}

static int
queue_pause(struct cli *c)
{
	return api_put(c, path_of(c), NULL, what_of(c), "paused");
}

static int
queue_resume(struct cli *c)
{
	return api_delete(c, path_of(c), what_of(c), "resumed");
}

int
cmd_queue(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "pause", queue_pause, "NAME", 1, 1, "vhost" },
		{ "resume", queue_resume, "NAME", 1, 1, "vhost" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
