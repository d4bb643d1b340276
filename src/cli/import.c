/* SPDX-License-Identifier: Apache-2.0
 * hermes import [FILE]: reads definitions into a node. Each object is tried on its own; those that could not be made are
 * named with the reason. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/definitions_file.h"

int
cmd_import(struct cli *c)
{
	struct definitions_file f;
	json_t *answer = NULL;
	int rc = definitions_file_read(c, &f);

	if (rc == CLI_OK) {
		rc = definitions_send(c, f.text, &answer);
		if (rc == CLI_OK)
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
