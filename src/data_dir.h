/* SPDX-License-Identifier: Apache-2.0
 * The node's place on disk: its data folder, which one process holds at a time, and the file with its process id. */
#ifndef DATA_DIR_H
#define DATA_DIR_H

#include <stdbool.h>

#include "base/attr.h"

enum { DATA_DIR_ERROR = 512 };

/* Makes the folder and those above it (0700) where they are not there, and locks it. Returns the lock's descriptor,
 * to be closed at the end, or -1 with one line that says why in err. */
int data_dir_open(const char *path, char err[DATA_DIR_ERROR]) MUSTUSE;

/* Keeps others off a folder that is only read: its lock, if there is one, is taken without writing to it. False: a
 * process holds it, or it cannot be opened. *lock: to be closed at the end; -1 where there is no lock. */
bool data_dir_keep(const char *path, int *lock, char err[DATA_DIR_ERROR]) MUSTUSE;

/* The pid file appears whole or not at all: prepare finds out early whether it can be written, publish puts it in
 * place, remove takes it away if it is still ours. What is there and is no pid file is left alone. */
struct pid_file {
	char *path, *temporary; /* owned */
};
bool pid_file_prepare(struct pid_file *f, const char *path, char err[DATA_DIR_ERROR]) MUSTUSE;
bool pid_file_publish(struct pid_file *f, char err[DATA_DIR_ERROR]) MUSTUSE;
void pid_file_remove(struct pid_file *f);

#endif
