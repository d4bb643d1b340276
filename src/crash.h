/* SPDX-License-Identifier: Apache-2.0
 * What a crash leaves behind: version, signal, backtrace, on standard error and where the log goes. */
#ifndef CRASH_H
#define CRASH_H

void crash_install(void); /* once, at the start */

#endif
