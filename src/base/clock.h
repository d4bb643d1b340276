/* SPDX-License-Identifier: Apache-2.0
 * Time. The node's clock is the wall clock at its start plus monotonic time, so that a jump of the
 * wall clock expires nothing. Floor 2 never calls this: it gets the time as an argument. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

void clock_init(void);        /* once, first thing in main */
uint64_t clock_mono_us(void); /* monotonic, microseconds */
uint64_t clock_cpu_us(void);  /* that this thread has had; a system call */
uint64_t clock_now_ms(void);  /* milliseconds since 1970 by the node's clock: never goes back */
uint64_t clock_since_start_us(void); /* since the process began (by the kernel's record of it) */

#endif
