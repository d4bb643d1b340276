/* SPDX-License-Identifier: Apache-2.0
 * What stands in place of the console in a build without it (./configure --disable-console). */
#include "mgmt/console.h"

static const unsigned char page[] =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Hermes</title>\n"
    "<h1>Hermes</h1>\n<p>This program was built without the console (<code>./configure "
    "--disable-console</code>). "
    "The HTTP API is there: <a href=\"api/index.html\">its list of paths</a>. On the command line: "
    "<code>hermes help</code>.\n";

const struct console_file console_files[] = {
	{ "index.html", "text/html; charset=utf-8", page, sizeof page - 1, NULL, 0 },
};
const size_t console_file_count = 1;
