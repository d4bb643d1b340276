/* SPDX-License-Identifier: Apache-2.0
 * A snapshot becomes a data folder: everything that the manifest names is copied, the `store` file last, so that what
 * was cut off in the middle is no data folder. Then it is checked. */
#include "store/store_priv.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "store/file_copy.h"
#include "store/manifest.h"

enum { LINE = 600 };

struct restore {
	struct disk *from, *to; /* borrowed */
	const struct store_restore_ask *ask;
	uint64_t files, bytes, total; /* total: as the manifest has it */
	bool has_store;
};

static void PRINTF(2, 3) say(const struct restore *r, const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	r->ask->check.say(r->ask->check.arg, line);
}

static void
tell_copied(const struct restore *r, uint64_t bytes)
{
	if (r->ask->copied != NULL)
		r->ask->copied(r->ask->check.arg, bytes, r->total > bytes ? r->total : bytes);
}

static int
copy(struct restore *r, const char *name, uint64_t end)
{
	struct file_copy c;
	int e = file_copy_begin(&c, r->from, name, r->to, name, end, 0);

	while (e == 0 && (e = file_copy_step(&c)) == 1) {
		tell_copied(r, r->bytes + c.at);
		e = 0;
	}
	r->bytes += c.size;
	tell_copied(r, r->bytes);
	return e;
}

/* A segment may have been cut to its end after its size was noted; what counts is looked at by the check. */
static int
size_of(const struct restore *r, const char *name, uint64_t *out)
{
	struct disk_file *f;
	int e = r->from->ops->open(r->from, name, DISK_READ, &f);

	if (e != 0)
		return e;
	e = r->from->ops->size(f, out);
	r->from->ops->close(f);
	return e;
}

static int
restore_file(void *arg, const char *name, uint64_t size)
{
	struct restore *r = arg;
	uint64_t there = 0;
	int e;

	if (strcmp(name, "store") == 0) {
		r->has_store = true;
		return 0;
	}
	e = size_of(r, name, &there);
	if (e == 0 && there < size) {
		say(r, "%s is shorter than the manifest says: %" PRIu64 " bytes, not %" PRIu64,
		    name, there, size);
		size = there;
	}
	if (e == 0)
		e = copy(r, name, size);
	if (e != 0)
		say(r, "cannot copy %s: %s", name, strerror(-e));
	r->files++;
	return e;
}

static int
add_size(void *arg, const char *name, uint64_t size)
{
	struct restore *r = arg;

	(void)name;
	r->total += size;
	return 0;
}

static int
read_manifest(struct restore *r, char **out, size_t *n)
{
	struct disk_file *f;
	uint64_t size = 0;
	int e = r->from->ops->open(r->from, MANIFEST_NAME, DISK_READ, &f);

	if (e != 0)
		return e;
	e = r->from->ops->size(f, &size);
	if (e == 0 && size > MANIFEST_MAX)
		e = -EBADMSG;
	*out = e == 0 ? try_malloc(size + 1) : NULL;
	if (e == 0)
		e = *out == NULL ? -ENOMEM : disk_read_all(r->from, f, *out, size, 0);
	r->from->ops->close(f);
	*n = size;
	return e;
}

static int
restore_files(struct restore *r)
{
	char *manifest = NULL;
	size_t n = 0;
	int e = read_manifest(r, &manifest, &n);

	if (e == 0)
		e = manifest_each(manifest, n, add_size, r);
	if (e == 0)
		e = manifest_each(manifest, n, restore_file, r);
	if (e == -ENOENT && manifest == NULL)
		say(r, "there is no manifest: this is no snapshot, or one that was not finished");
	else if (e == -EBADMSG)
		say(r, "the manifest is damaged");
	else if (e == -EPROTONOSUPPORT)
		say(r, "the snapshot is of a newer form than this version reads");
	else if (e != 0 && manifest == NULL)
		say(r, "cannot read the manifest: %s", strerror(-e));
	else if (e == 0 && !r->has_store) {
		say(r, "the manifest does not name the file `store`");
		e = -EBADMSG;
	}
	free(manifest);
	return e;
}

static int
restore_store_file(struct restore *r)
{
	uint8_t bytes[STORE_FILE_SIZE];
	struct disk_file *f;
	int e = r->from->ops->open(r->from, "store", DISK_READ, &f);

	if (e != 0)
		return e;
	e = disk_read_all(r->from, f, bytes, sizeof bytes, 0);
	r->from->ops->close(f);
	return e != 0 ? e : disk_replace(r->to, "store", bytes, sizeof bytes);
}

static int
for_folders(struct restore *r, int (*f)(struct disk *d, const char *name))
{
	static const char *const names[] = { "journal", "segments" };
	int e = 0;

	for (size_t i = 0; i < COUNT_OF(names) && e == 0; i++)
		e = f(r->to, names[i]);
	return e;
}

int
store_restore_disk(struct disk *from, struct disk *to, const struct store_restore_ask *ask)
{
	struct restore r = { .from = from, .to = to, .ask = ask };
	struct store_check_report report;
	int e = for_folders(&r, to->ops->make_folder);

	if (e != 0) {
		say(&r, "cannot make folders: %s", strerror(-e));
		return e;
	}
	e = restore_files(&r);
	if (e != 0)
		return e;
	e = for_folders(&r, to->ops->sync_folder);
	if (e == 0)
		e = restore_store_file(&r);
	if (e != 0) {
		say(&r, "cannot write the file `store`: %s", strerror(-e));
		return e;
	}
	say(&r, "%" PRIu64 " files with %" PRIu64 " bytes were copied", r.files + 1, r.bytes);
	return store_check_disk(to, &ask->check, &report);
}

/* The lock is the caller's, lost+found that of a file system. 0, -ENOTEMPTY or what else is wrong. */
static int
check_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int e = 0;

	if (dir == NULL)
		return -errno;
	while (e == 0 && (entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		    strcmp(name, "lock") != 0 && strcmp(name, "lost+found") != 0)
			e = -ENOTEMPTY;
	}
	closedir(dir);
	return e;
}

/* The entry of the folder itself. */
static int
sync_above(const char *path)
{
	char *above = xasprintf("%s/..", path);
	struct disk *d = disk_real_new(above);
	int e = d == NULL ? -errno : d->ops->sync_folder(d, "");

	if (d != NULL)
		disk_free(&d);
	free(above);
	return e == -EACCES
	           ? 0
	           : e; /* one that may be passed but not read: then it was not made by us */
}

int
store_restore(const char *from, const char *to, const struct store_restore_ask *ask)
{
	struct restore r = { .ask = ask };
	struct disk *source = disk_real_new(from), *target = NULL;
	int e = source == NULL ? -errno : 0;

	if (e != 0) {
		say(&r, "cannot open %s: %s", from, strerror(-e));
		return e;
	}
	if (mkdir(to, 0700) != 0 && errno != EEXIST)
		e = -errno;
	if (e == 0)
		e = check_empty(to);
	if (e == 0 && (target = disk_real_new(to)) == NULL)
		e = -errno;
	if (e == 0)
		e = sync_above(to);
	if (e == -ENOTEMPTY)
		say(&r, "%s is not empty; a snapshot is restored into an empty folder only", to);
	else if (e != 0)
		say(&r, "cannot use %s: %s", to, strerror(-e));
	else
		e = store_restore_disk(source, target, ask);
	if (target != NULL)
		disk_free(&target);
	disk_free(&source);
	return e;
}
