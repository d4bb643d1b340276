/* SPDX-License-Identifier: Apache-2.0
 * Data folder and pid file: made, locked against a second process, left alone where they are something else. */
#include "data_dir.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64], path[256], err[DATA_DIR_ERROR];

static void
setup(void)
{
	snprintf(root, sizeof root, "/tmp/hermes-data-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	err[0] = '\0';
}

static void
teardown(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

static const char *
below(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", root, name);
	return path;
}

static void
write_file(const char *name, const char *text)
{
	FILE *f = fopen(below(name), "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static const char *
read_file(const char *name)
{
	static char text[128];
	FILE *f = fopen(below(name), "r");
	size_t n;

	if (f == NULL)
		return NULL;
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static const char *const folders[] = { "a", "a/b/c", "a//b/", "./a/./b", "a/" };

START_TEST(made_with_those_above)
{
	struct stat st;
	int fd = data_dir_open(below(folders[_i]), err);

	ck_assert_msg(fd >= 0, "%s", err);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0700);
	close(fd);
	fd = data_dir_open(below(folders[_i]), err); /* again, with everything there */
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

START_TEST(relative_path)
{
	int fd;

	ck_assert_int_eq(chdir(root), 0);
	fd = data_dir_open("x/y", err);
	ck_assert_msg(fd >= 0, "%s", err);
	close(fd);
	ck_assert_int_eq(access(below("x/y/lock"), F_OK), 0);
}
END_TEST

START_TEST(one_process_at_a_time)
{
	int fd = data_dir_open(below("d"), err), status;
	pid_t child;

	ck_assert_int_ge(fd, 0);
	child = fork();
	if (child == 0) {
		int second = data_dir_open(below("d"), err);

		_exit(second < 0 && strstr(err, "is in use by another process (") != NULL &&
		              strstr(err, path) != NULL && strchr(err, '\n') == NULL
		          ? 0
		          : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close(fd);
	fd = data_dir_open(below("d"), err);
	ck_assert_msg(fd >= 0, "%s", err);
	close(fd);
}
END_TEST

START_TEST(places_that_are_no_folders)
{
	write_file("file", "");
	ck_assert_int_lt(data_dir_open(below("file"), err), 0);
	ck_assert_ptr_nonnull(strstr(err, path));
	ck_assert_int_lt(data_dir_open(below("file/data"), err), 0);
	ck_assert_ptr_nonnull(strstr(err, "cannot be made: Not a directory"));
	ck_assert_int_lt(data_dir_open("/proc/none/data", err), 0);
	ck_assert_ptr_nonnull(strstr(err, "data folder /proc/none/data cannot be made"));
	/* a link in place of the lock could lead anywhere */
	ck_assert_int_eq(mkdir(below("d"), 0700), 0);
	ck_assert_int_eq(symlink("/tmp/hermes-elsewhere", below("d/lock")), 0);
	ck_assert_int_lt(data_dir_open(below("d"), err), 0);
	ck_assert_int_ne(access("/tmp/hermes-elsewhere", F_OK), 0);
}
END_TEST

static void
take_pid_file(const char *name)
{
	struct pid_file f;
	char want[32];

	ck_assert_msg(pid_file_prepare(&f, below(name), err), "%s", err);
	ck_assert_msg(pid_file_publish(&f, err), "%s", err);
	snprintf(want, sizeof want, "%ld\n", (long)getpid());
	ck_assert_str_eq(read_file(name), want);
	pid_file_remove(&f);
	ck_assert_ptr_null(read_file(name));
}

static const char *const stale[] = { "", "999999999\n", "1", "17 \n" };

START_TEST(stale_pid_file)
{
	write_file("pid", stale[_i]);
	take_pid_file("pid");
}
END_TEST

START_TEST(no_pid_file_yet)
{
	take_pid_file("pid");
}
END_TEST

static const char *const others[] = { "root:x:0:0\n", "17 18\n", "-1\n", "a",
	"12345678901234567890123\n" };

START_TEST(something_else_is_left_alone)
{
	struct pid_file f;

	write_file("pid", others[_i]);
	ck_assert(!pid_file_prepare(&f, below("pid"), err));
	ck_assert_ptr_nonnull(strstr(err, "is no pid file; it is left alone"));
	ck_assert_str_eq(read_file("pid"), others[_i]);
	pid_file_remove(&f);
	ck_assert_str_eq(read_file("pid"), others[_i]);
}
END_TEST

START_TEST(pid_file_that_cannot_be)
{
	struct pid_file f;

	ck_assert(!pid_file_prepare(&f, below("none/pid"), err));
	ck_assert_ptr_nonnull(strstr(err, "cannot be written: No such file or directory"));
	ck_assert_int_eq(symlink("/etc/passwd", below("link")), 0);
	ck_assert(!pid_file_prepare(&f, below("link"), err));
}
END_TEST

/* Somebody else's by now: not ours to remove. Never in place: nothing is left behind. */
START_TEST(removed_only_if_ours)
{
	struct pid_file f;
	char temporary[300];

	ck_assert(pid_file_prepare(&f, below("pid"), err));
	snprintf(temporary, sizeof temporary, "%s", f.temporary);
	ck_assert_int_eq(access(temporary, F_OK), 0);
	pid_file_remove(&f);
	ck_assert_int_ne(access(temporary, F_OK), 0);
	ck_assert(pid_file_prepare(&f, below("pid"), err));
	ck_assert(pid_file_publish(&f, err));
	write_file("pid", "4711\n");
	pid_file_remove(&f);
	ck_assert_str_eq(read_file("pid"), "4711\n");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("data_dir");
	TCase *t = tcase_create("data_dir");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, made_with_those_above, 0, (int)(sizeof folders / sizeof *folders));
	tcase_add_test(t, relative_path);
	tcase_add_test(t, one_process_at_a_time);
	tcase_add_test(t, places_that_are_no_folders);
	tcase_add_test(t, no_pid_file_yet);
	tcase_add_loop_test(t, stale_pid_file, 0, (int)(sizeof stale / sizeof *stale));
	tcase_add_loop_test(
	    t, something_else_is_left_alone, 0, (int)(sizeof others / sizeof *others));
	tcase_add_test(t, pid_file_that_cannot_be);
	tcase_add_test(t, removed_only_if_ours);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
