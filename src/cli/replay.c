/* SPDX-License-Identifier: Apache-2.0
 * hermes replay QUEUE [ID...]: dead letters back to where they came from. */
#include "base/attr.h"
#include "cli/api.h"
#include "cli/http_path.h"
#include "cli/job.h"
#include "cli/text_safe.h"

/* NULL: wrong, and was said. */
static json_t *
ids_of(struct cli *c)
{
	json_t *ids = json_array();

	for (size_t i = 1; i < cli_args(c); i++) {
		if (json_array_append_new(ids, api_text(c, "an ID", cli_arg(c, i))) != 0) {
			json_decref(ids);
			return NULL;
		}
	}
	return ids;
}

int
cmd_replay(struct cli *c)
{
	const char *name = cli_arg(c, 0), *vhost = api_vhost(c);
	json_t *ids = ids_of(c), *body;

	if (ids == NULL)
		return CLI_USAGE;
	body = json_object();
	if (json_array_size(ids) > 0)
		(void)json_object_set(body, "ids", ids);
	else
		(void)json_object_set_new(body, "all", json_true());
	json_decref(ids);
	return job_run(c, HTTP_PATH("/api/hermes/dead-letters/*/*/replay", vhost, name), body,
	    text_safe_format("queue '%s' in vhost '%s'", name, vhost),
	    (struct job_words){ "sent back", "dead letter", "dead letters",
	        text_safe_format("of queue '%s' in vhost '%s'", name, vhost) });
}
