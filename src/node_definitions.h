/* SPDX-License-Identifier: Apache-2.0
 * The file of definitions that the settings name, imported at each start. */
#ifndef NODE_DEFINITIONS_H
#define NODE_DEFINITIONS_H

#include <stdbool.h>

#include "base/attr.h"

struct broker;
struct workers;

enum { DEFINITIONS_FILE_MAX = 256 << 20, DEFINITIONS_ERROR = 512 };

/* Imports cfg->definitions_file, if there is one; it may be packed with gzip. An object that cannot be made is a line in the
 * log, and the start goes on; a file that cannot be read or is no JSON object is false, with the reason in `why`. Where the
 * file has users and nobody else made any, the default accounts go. */
bool node_definitions_import(struct broker *b, struct workers *hashers, char why[DEFINITIONS_ERROR]) MUSTUSE;

#endif
