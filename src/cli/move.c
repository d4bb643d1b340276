/* SPDX-License-Identifier: Apache-2.0
 * hermes move QUEUE DESTINATION: messages of a queue to another one, or to an exchange. */
#include "cli/api.h"
#include "cli/http_path.h"
#include "cli/job.h"
#include "cli/text_safe.h"

/* NULL: wrong, and was said. */
static json_t *
destination_of(struct cli *c)
{
	const char *key = cli_value(c, "key");
	json_t *name = api_text(c, "DESTINATION", cli_arg(c, 1)), *j;

	if (name == NULL || !cli_switch(c, "to-exchange"))
		return name;
	j = json_object();
	(void)json_object_set_new(j, "exchange", name);
	if (key != NULL && json_object_set_new(j, "routing_key", api_text(c, "--key", key)) != 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}

int
cmd_move(struct cli *c)
{
	const char *from = cli_arg(c, 0), *to = cli_arg(c, 1), *vhost = api_vhost(c);
	const char *kind = cli_switch(c, "to-exchange") ? "exchange" : "queue";
	uint64_t count = 0;
	json_t *to_json, *body;

	if (cli_given(c, "key") && !cli_switch(c, "to-exchange"))
		return cli_misuse(c, "--key is of use with --to-exchange only: a queue gets "
		                     "messages as they are");
	if (!cli_number(c, "count", 1, INT64_MAX, &count) || (to_json = destination_of(c)) == NULL)
		return CLI_USAGE;
	body = json_object();
	(void)json_object_set_new(body, "destination", to_json);
	if (count > 0)
		(void)json_object_set_new(body, "count", json_integer((json_int_t)count));
	return job_run(c, HTTP_PATH("/api/hermes/queues/*/*/move", vhost, from), body,
	    text_safe_format("queue '%s' in vhost '%s'", from, vhost),
	    (struct job_words){ "moved", "message", "messages",
	        text_safe_format(
	            "of queue '%s' in vhost '%s' to %s '%s'", from, vhost, kind, to) });
}
