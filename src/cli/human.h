/* SPDX-License-Identifier: Apache-2.0
 * Sizes and times as people read them. */
#ifndef CLI_HUMAN_H
#define CLI_HUMAN_H

#include <stdio.h>

void human_bytes(FILE *out, long long n);	/* "12 B", "1.5 GiB" */
void human_duration(FILE *out, long long ms);	/* "2 d 3 h 0 min 5 s" */

#endif
