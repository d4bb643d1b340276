/* SPDX-License-Identifier: Apache-2.0
 * What was found wrong with settings, as one text. */
#ifndef TESTS_SETTINGS_SAID_H
#define TESTS_SETTINGS_SAID_H

#include <stdint.h>
#include <stdio.h>

#include "settings_yaml.h"

/* One a line; good until the next call. */
static inline const char *
problems_said(const struct problems *p)
{
	static char all[PROBLEMS_MAX * PROBLEM_TEXT_MAX];
	size_t n = 0;

	all[0] = '\0';
	for (uint32_t i = 0; i < p->count; i++)
		n += (size_t)snprintf(
		    all + n, sizeof all - n, "%s%s", i > 0 ? "\n" : "", p->item[i]);
	return all;
}

#endif
