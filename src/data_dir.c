/* SPDX-License-Identifier: Apache-2.0
 * The lock is flock(2) on DIR/lock: the kernel drops it with the process, so no crash leaves it behind. */
#include "data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Like mkdir -p; the path is cut at each slash in turn and put together again. */
static int
make_folders(char *path)
{
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST && errno != EISDIR) {
			struct stat st;
			int err = errno;

			/* a folder above that may be passed but not written answers EACCES or EROFS */
			if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
				*p = c;
				return -err;
			}
		}
		*p = c;
		if (c == '\0')
			return 0;
	}
}

static void
read_owner(int fd, char *out, size_t n)
{
	ssize_t got = pread(fd, out, n - 1, 0);
	size_t len = got > 0 ? (size_t)got : 0;

	out[len] = '\0';
	out[strspn(out, "0123456789")] = '\0';
}

static int
lock_folder(const char *path, const char *name, char err[])
{
	char owner[24];
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0) {
		snprintf(err, DATA_DIR_ERROR, "data folder %s is not writable: %s (see --data)",
		    path, strerror(errno));
		return -1;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		int why = errno;

		read_owner(fd, owner, sizeof owner);
		if (why == EWOULDBLOCK)
			snprintf(err, DATA_DIR_ERROR,
			    "data folder %s is in use by another process%s%s%s; stop it or choose "
			    "another with --data",
			    path, owner[0] != '\0' ? " (" : "", owner, owner[0] != '\0' ? ")" : "");
		else
			snprintf(err, DATA_DIR_ERROR, "data folder %s cannot be locked: %s", path,
			    strerror(why));
		close(fd);
		return -1;
	}
	snprintf(owner, sizeof owner, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) != 0 ||
	    pwrite(fd, owner, strlen(owner), 0) != (ssize_t)strlen(owner)) {
		snprintf(err, DATA_DIR_ERROR, "data folder %s is not writable: %s (see --data)",
		    path, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

int
data_dir_open(const char *path, char err[DATA_DIR_ERROR])
{
	char *copy = xstrdup(path), *name;
	int fd, rc;

	rc = make_folders(copy);
	free(copy);
	if (rc != 0) {
		snprintf(err, DATA_DIR_ERROR, "data folder %s cannot be made: %s (see --data)",
		    path, strerror(-rc));
		return -1;
	}
	name = xasprintf("%s/lock", path);
	fd = lock_folder(path, name, err);
	free(name);
	return fd;
}

bool
data_dir_keep(const char *path, int *lock, char err[DATA_DIR_ERROR])
{
	char *name = xasprintf("%s/lock", path), owner[24];
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	free(name);
	*lock = fd;
	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0) {
		snprintf(err, DATA_DIR_ERROR, "the lock of %s cannot be opened: %s", path,
		    strerror(errno));
		return false;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	read_owner(fd, owner, sizeof owner);
	snprintf(err, DATA_DIR_ERROR,
	    "%s is in use by another process%s%s%s; stop it, or look at a snapshot (hermes "
	    "snapshot)",
	    path, owner[0] != '\0' ? " (" : "", owner, owner[0] != '\0' ? ")" : "");
	close(fd);
	*lock = -1;
	return false;
}

/* Does the file hold a process id and nothing else? *pid is 0 for an empty file. */
static bool
read_pid(const char *path, long *pid)
{
	char text[32];
	size_t n, digits;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return false;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = '\0';
	digits = strspn(text, "0123456789");
	*pid = digits > 0 ? strtol(text, NULL, 10) : 0;
	return digits < 20 && text[digits + strspn(text + digits, "\r\n \t")] == '\0';
}

bool
pid_file_prepare(struct pid_file *f, const char *path, char err[DATA_DIR_ERROR])
{
	char text[24];
	struct stat st;
	long other;
	int fd, n;

	*f = (struct pid_file){ 0 };
	if (lstat(path, &st) == 0 && (!S_ISREG(st.st_mode) || !read_pid(path, &other))) {
		snprintf(
		    err, DATA_DIR_ERROR, "%s is there and is no pid file; it is left alone", path);
		return false;
	}
	f->path = xstrdup(path);
	f->temporary = xasprintf("%s.%ld", path, (long)getpid());
	unlink(f->temporary);
	fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (fd < 0 || write(fd, text, (size_t)n) != n) {
		snprintf(err, DATA_DIR_ERROR, "pid file %s cannot be written: %s", path,
		    strerror(errno));
		if (fd >= 0)
			close(fd);
		pid_file_remove(f);
		return false;
	}
	close(fd);
	return true;
}

bool
pid_file_publish(struct pid_file *f, char err[DATA_DIR_ERROR])
{
	if (f->temporary == NULL)
		return true;
	if (rename(f->temporary, f->path) != 0) {
		snprintf(err, DATA_DIR_ERROR, "pid file %s cannot be written: %s", f->path,
		    strerror(errno));
		return false;
	}
	free(f->temporary);
	f->temporary = NULL;
	return true;
}

void
pid_file_remove(struct pid_file *f)
{
	long pid;

	if (f->temporary != NULL)
		unlink(f->temporary);
	else if (f->path != NULL && read_pid(f->path, &pid) && pid == (long)getpid())
		unlink(f->path);
	free(f->path);
	free(f->temporary);
	*f = (struct pid_file){ 0 };
}
