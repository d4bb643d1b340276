/* SPDX-License-Identifier: Apache-2.0
 * hermes export [FILE]: writes the definitions of a node, or of one vhost; FILE.gz is packed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"

enum { LIMIT_S = 600 };

static int
write_to(FILE *out, const json_t *doc)
{
	if (json_dumpf(doc, out, JSON_INDENT(2) | text_safe_json(fileno(out))) < 0 ||
	    fputc('\n', out) == EOF || fflush(out) != 0)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

static int
write_piece(const char *text, size_t n, void *out)
{
	return gzwrite(out, text, (unsigned)n) == (int)n || n == 0 ? 0 : -1;
}

/* fd is closed. */
static int
write_packed(int fd, const json_t *doc)
{
	gzFile out = gzdopen(fd, "w");
	int err;

	if (out == NULL) {
		(void)close(fd);
		return -ENOMEM;
	}
	errno = 0;
	err = json_dump_callback(doc, write_piece, out, JSON_INDENT(2)) < 0 ||
	      write_piece("\n", 1, out) < 0;
	if (gzclose_w(out) != Z_OK || err != 0)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

static int
write_plain(int fd, const json_t *doc)
{
	FILE *out = fdopen(fd, "w");
	int err;

	if (out == NULL) {
		(void)close(fd);
		return -ENOMEM;
	}
	errno = 0;
	err = write_to(out, doc);
	if (fclose(out) != 0 && err == 0)
		err = -errno;
	return err;
}

/* Beside it, so that what is there stays if the disk is full. NULL: it has to be written in its place, for it is no file of
 * ours, or nothing may be put beside it. The name is the caller's. */
static char *
open_beside(const char *path, int *fd)
{
	struct stat there;
	bool is_there = lstat(path, &there) == 0;
	char *beside;

	if (is_there ? !S_ISREG(there.st_mode) || there.st_uid != geteuid() : errno != ENOENT)
		return NULL;
	beside = xasprintf("%s.XXXXXX", path);
	*fd = mkostemp(beside, O_CLOEXEC); /* 0600 */
	if (*fd >= 0 && (!is_there || fchmod(*fd, there.st_mode & 07777) == 0))
		return beside;
	if (*fd >= 0) {
		(void)close(*fd);
		(void)unlink(beside);
	}
	free(beside);
	return NULL;
}

/* Password hashes are in it: others may not read a new file. */
static int
write_file(struct cli *c, const char *path, const json_t *doc)
{
	int fd = -1, err;
	char *beside = open_beside(path, &fd);
	size_t n = strlen(path);
	bool is_packed = n > 3 && strcmp(path + n - 3, ".gz") == 0;

	if (beside == NULL)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return cli_fail(c, "cannot write %s: %s", path, strerror(errno));
	err = is_packed ? write_packed(fd, doc) : write_plain(fd, doc);
	if (beside != NULL && err == 0 && rename(beside, path) != 0)
		err = -errno;
	if (beside != NULL && err != 0)
		(void)unlink(beside);
	free(beside);
	return err == 0 ? CLI_OK : cli_fail(c, "cannot write %s: %s", path, strerror(-err));
}

int
cmd_export(struct cli *c)
{
	const char *vhost = cli_value(c, "vhost"), *file = cli_arg(c, 0);
	char *path =
	    vhost != NULL ? HTTP_PATH("/api/definitions/*", vhost) : xstrdup("/api/definitions");
	char *what = vhost != NULL ? text_safe_format("vhost '%s'", vhost) : NULL;
	json_t *doc = NULL;
	int rc = http_client_call(c,
	    &(struct http_call){
	        .path = path, .what = what, .doing = "exporting", .limit_s = LIMIT_S },
	    NULL, &doc);

	if (rc == CLI_OK && file != NULL && strcmp(file, "-") != 0)
		rc = write_file(c, file, doc);
	else if (rc == CLI_OK && write_to(stdout, doc) < 0 && !cli_nobody_reads())
		rc = cli_fail(c, "cannot write the output: %s", strerror(errno));
	json_decref(doc);
	free(what);
	free(path);
	return rc;
}
