/* SPDX-License-Identifier: Apache-2.0
 * What a crash leaves behind: version, signal, backtrace, on standard error and in the log file. */
#ifndef CRASH_H
#define CRASH_H

/* log_file: where the log goes; NULL or "-" is standard error alone. Again after the file was exchanged. The text
 * must stay until the process ends. */
void crash_install(const char *log_file);

#endif
