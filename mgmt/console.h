/* SPDX-License-Identifier: Apache-2.0
 * The files of the console, embedded in the program. console/build.mjs writes them as C; a build without the console has
 * console_none.c in their place. */
#ifndef MGMT_CONSOLE_H
#define MGMT_CONSOLE_H

#include <stddef.h>

struct console_file {
	const char *name, *type; /* content-type */
	const unsigned char *plain;
	size_t plain_size;
	const unsigned char *zipped; /* the same as gzip; NULL: none */
	size_t zipped_size;
};

extern const struct console_file console_files[]; /* "index.html" among them */
extern const size_t console_file_count;

#endif
