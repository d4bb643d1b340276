/* SPDX-License-Identifier: Apache-2.0
 * Folders for the files of tests: where they cost little, because what is tested is not what a disk does at a sync. They
 * lie in memory (/dev/shm) if there is room, else in /tmp; TMPDIR says otherwise. */
#ifndef TESTS_TEST_FOLDER_H
#define TESTS_TEST_FOLDER_H

#include <check.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* What the programs of one `make check` may need together; containers often have 64 MiB there. */
#define TEST_FOLDER_ROOM (UINT64_C(1) << 30)

static inline const char *
test_folder_parent(void)
{
	const char *given = getenv("TMPDIR");
	struct statvfs fs;

	if (given != NULL && *given != '\0')
		return given;
	if (access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &fs) == 0 &&
	    (uint64_t)fs.f_bavail * fs.f_frsize >= TEST_FOLDER_ROOM)
		return "/dev/shm";
	return "/tmp";
}

/* Makes a new folder and writes its path to `path`. */
static inline void
test_folder_make(char *path, size_t size)
{
	int n = snprintf(path, size, "%s/hermes-check-XXXXXX", test_folder_parent());

	ck_assert_msg(n > 0 && (size_t)n < size, "TMPDIR is too long");
	ck_assert_msg(mkdtemp(path) != NULL, "no folder like %s", path);
}

static inline int
test_folder_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* With all that is in it; nothing if it is not there. */
static inline void
test_folder_remove(const char *path)
{
	(void)nftw(path, test_folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
