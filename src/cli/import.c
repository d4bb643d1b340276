/* SPDX-License-Identifier: Apache-2.0
 * hermes import [FILE]: reads definitions into a node. Each object is tried on its own; those that could not be made are
 * named with the reason. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/definitions_file.h"
#include "cli/text_safe.h"

/* What the node said of those that could not be made; where all were, it says nothing. */
static void
print_json(const json_t *answer)
{
	json_t *all = json_pack("{s:i, s:[]}", "failed", 0, "errors");

	(void)json_dumpf(
	    answer != NULL ? answer : all, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
	printf("\n");
	json_decref(all);
}

int
cmd_import(struct cli *c)
{
	struct definitions_file f;
	json_t *answer = NULL;
	int rc = definitions_file_read(c, &f);

	if (rc == CLI_OK) {
		rc = definitions_send(c, f.text, &answer);
		if (cli_switch(c, "json") && (rc == CLI_OK || answer != NULL))
			print_json(answer);
		else if (rc == CLI_OK)
			printf("imported all\n");
		else if (json_object_get(answer, "imported") != NULL)
			printf("imported: %lld, failed: %lld\n",
			    (long long)json_integer_value(json_object_get(answer, "imported")),
			    (long long)json_integer_value(json_object_get(answer, "failed")));
	}
	json_decref(answer);
	definitions_file_fini(&f);
	return rc;
}
