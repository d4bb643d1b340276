/* SPDX-License-Identifier: Apache-2.0
 * hermes purge QUEUE: drops the messages that are ready. */
#include "cli/api.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"

int
cmd_purge(struct cli *c)
{
	const char *name = cli_arg(c, 0), *vhost = api_vhost(c);

	return api_delete(c, HTTP_PATH("/api/queues/*/*/contents", vhost, name),
	    text_safe_format("queue '%s' in vhost '%s'", name, vhost), "purged");
}
