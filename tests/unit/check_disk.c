/* SPDX-License-Identifier: Apache-2.0
 * The real disk: each operation does what the header says, also with short vectors, folders and things that are not
 * there. */
#include "store/disk.h"

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct disk *d;

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	return remove(path);
}

static void
setup(void)
{
	(void)snprintf(folder, sizeof folder, "/tmp/check_disk.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	d = disk_real_new(folder);
	ck_assert_ptr_nonnull(d);
}

static void
teardown(void)
{
	disk_free(&d);
	ck_assert_ptr_null(d);
	(void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct disk_file *
must_open(const char *name, enum disk_open how)
{
	struct disk_file *f;

	ck_assert_int_eq(d->ops->open(d, name, how, &f), 0);
	return f;
}

static void
make(const char *name, const char *text)
{
	struct disk_file *f = must_open(name, DISK_CREATE);

	ck_assert_int_eq(disk_write_one(d, f, text, strlen(text), 0), 0);
	d->ops->close(f);
}

static void
has(const char *name, const char *text)
{
	struct disk_file *f = must_open(name, DISK_READ);
	char got[64];
	ssize_t n = d->ops->read(f, got, sizeof got, 0);

	ck_assert_int_eq(n, (ssize_t)strlen(text));
	ck_assert_mem_eq(got, text, (size_t)n);
	d->ops->close(f);
}

START_TEST(files_are_made_once)
{
	struct disk_file *f;

	ck_assert_int_eq(d->ops->open(d, "a", DISK_READ, &f), -ENOENT);
	ck_assert_int_eq(d->ops->open(d, "a", DISK_WRITE, &f), -ENOENT);
	make("a", "one");
	ck_assert_int_eq(d->ops->open(d, "a", DISK_CREATE, &f), -EEXIST);
	has("a", "one");
	f = must_open("a", DISK_READ);
	ck_assert_int_eq(disk_write_one(d, f, "x", 1, 0), -EBADF);
	d->ops->close(f);
	ck_assert_int_eq(d->ops->open(d, "no/a", DISK_CREATE, &f), -ENOENT);
	ck_assert_ptr_null(disk_real_new("/nowhere/at/all"));
}
END_TEST

START_TEST(reads_end_where_the_file_does)
{
	struct disk_file *f;
	char p[8];

	make("a", "0123456789");
	f = must_open("a", DISK_READ);
	ck_assert_int_eq(d->ops->read(f, p, 8, 6), 4);
	ck_assert_mem_eq(p, "6789", 4);
	ck_assert_int_eq(d->ops->read(f, p, 8, 10), 0);
	ck_assert_int_eq(d->ops->read(f, p, 8, 1000), 0);
	ck_assert_int_eq(disk_read_all(d, f, p, 8, 2), 0);
	ck_assert_mem_eq(p, "23456789", 8);
	ck_assert_int_eq(disk_read_all(d, f, p, 8, 3), -EIO);
	d->ops->close(f);
}
END_TEST

/* Vectors of all lengths, empty ones too; the kernel takes at most 2 GiB at once, and less where the file may not grow. */
START_TEST(vectors_are_written_whole)
{
	static uint8_t bytes[100000], got[100000];
	struct iovec v[DISK_IOV_MAX];
	struct disk_file *f = must_open("a", DISK_CREATE);
	size_t at = 0;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 131 >> 3);
	for (int i = 0; i < DISK_IOV_MAX; i++) {
		v[i] = (struct iovec){ bytes + at, (size_t)(i % 5) * 97 };
		at += v[i].iov_len;
	}
	ck_assert_int_eq(d->ops->write(f, v, DISK_IOV_MAX, 5), 0);
	ck_assert_int_eq(disk_read_all(d, f, got, at, 5), 0);
	ck_assert_mem_eq(got, bytes, at);
	ck_assert_int_eq(d->ops->sync(f), 0);
	d->ops->close(f);
}
END_TEST

/* A limit in the middle of a vector: the kernel writes a part, then refuses. */
START_TEST(a_short_write_is_an_error_in_the_end)
{
	static char bytes[3000];
	struct rlimit limit = { 5000, RLIM_INFINITY }, before;
	struct iovec v[3] = { { bytes, 3000 }, { bytes, 3000 }, { bytes, 3000 } };
	struct disk_file *f = must_open("a", DISK_CREATE);
	uint64_t size;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(d->ops->write(f, v, 3, 0), -EFBIG);
	ck_assert_int_eq(d->ops->size(f, &size), 0);
	ck_assert_uint_eq(size, 5000);
	d->ops->close(f);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
}
END_TEST

START_TEST(lengths)
{
	struct disk_file *f = must_open("a", DISK_CREATE);
	struct stat st;
	char path[80], p[4];
	uint64_t size;

	ck_assert_int_eq(d->ops->resize(f, 1 << 20), 0);
	ck_assert_int_eq(d->ops->size(f, &size), 0);
	ck_assert_uint_eq(size, 1 << 20);
	(void)snprintf(path, sizeof path, "%s/a", folder);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_ge(st.st_blocks, (1 << 20) / 512); /* room, not a hole */
	ck_assert_int_eq(disk_write_one(d, f, "abcd", 4, 0), 0);
	ck_assert_int_eq(d->ops->resize(f, 2), 0);
	ck_assert_int_eq(d->ops->resize(f, 4), 0);
	ck_assert_int_eq(disk_read_all(d, f, p, 4, 0), 0);
	ck_assert_mem_eq(p, "ab\0\0", 4);
	d->ops->close(f);
}
END_TEST

static int listed;
static uint64_t listed_bytes;

static void
count(void *arg, const char *name, uint64_t size)
{
	ck_assert_ptr_eq(arg, &listed);
	ck_assert(strcmp(name, "b") == 0 || strcmp(name, "c") == 0);
	listed++;
	listed_bytes += size;
}

START_TEST(names_and_folders)
{
	uint64_t total, available;

	ck_assert_int_eq(d->ops->make_folder(d, "x"), 0);
	ck_assert_int_eq(d->ops->make_folder(d, "x"), 0);
	ck_assert_int_eq(d->ops->make_folder(d, "x/sub"), 0);
	make("x/a", "one");
	ck_assert_int_eq(d->ops->link(d, "x/a", "x/b"), 0);
	ck_assert_int_eq(d->ops->link(d, "x/a", "x/b"), -EEXIST);
	ck_assert_int_eq(d->ops->rename(d, "x/a", "x/c"), 0);
	ck_assert_int_eq(d->ops->rename(d, "x/a", "x/c"), -ENOENT);
	has("x/b", "one");
	has("x/c", "one");
	ck_assert_int_eq(d->ops->sync_folder(d, "x"), 0);
	ck_assert_int_eq(d->ops->sync_folder(d, ""), 0);
	ck_assert_int_eq(d->ops->sync_folder(d, "y"), -ENOENT);
	listed = 0;
	listed_bytes = 0;
	ck_assert_int_eq(d->ops->list(d, "x", count, &listed), 0); /* no folders */
	ck_assert_int_eq(listed, 2);
	ck_assert_uint_eq(listed_bytes, 6);
	ck_assert_int_eq(d->ops->list(d, "y", count, &listed), -ENOENT);
	ck_assert_int_eq(d->ops->unlink(d, "x/b"), 0);
	ck_assert_int_eq(d->ops->unlink(d, "x/b"), -ENOENT);
	has("x/c", "one");
	ck_assert_int_eq(d->ops->space(d, &total, &available), 0);
	ck_assert_uint_gt(total, 0);
	ck_assert_uint_le(available, total);
}
END_TEST

/* Over what was there, over what a failed attempt left; what fails leaves the old one. */
START_TEST(a_small_file_is_replaced_whole)
{
	ck_assert_int_eq(disk_replace(d, "s", "one", 3), 0);
	has("s", "one");
	make("s.new", "left behind, and longer");
	ck_assert_int_eq(disk_replace(d, "s", "two!", 4), 0);
	has("s", "two!");
	ck_assert_int_eq(d->ops->unlink(d, "s.new"), -ENOENT);
	ck_assert_int_eq(d->ops->make_folder(d, "x"), 0);
	ck_assert_int_eq(disk_replace(d, "x/s", "three", 5), 0);
	has("x/s", "three");
	ck_assert_int_eq(d->ops->make_folder(d, "f"), 0);
	ck_assert_int_eq(disk_replace(d, "f", "four", 4), -EISDIR);
	ck_assert_int_eq(d->ops->unlink(d, "f.new"), -ENOENT);
	ck_assert_int_eq(disk_replace(d, "no/s", "five", 4), -ENOENT);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("disk");
	TCase *t = tcase_create("disk");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, files_are_made_once);
	tcase_add_test(t, reads_end_where_the_file_does);
	tcase_add_test(t, vectors_are_written_whole);
	tcase_add_test(t, a_short_write_is_an_error_in_the_end);
	tcase_add_test(t, lengths);
	tcase_add_test(t, names_and_folders);
	tcase_add_test(t, a_small_file_is_replaced_whole);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
