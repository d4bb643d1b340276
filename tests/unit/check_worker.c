/* SPDX-License-Identifier: Apache-2.0
 * The worker pool: every job is run once and its end told once, with threads and without; nothing is lost at the end. */
#include "base/worker.h"

#include <check.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/wake.h"

enum { JOBS = 5000 };

struct job {
	struct worker_job job;
	atomic_int runs;
	int ends, order;
	struct workers *w; /* where to hand in another one when it ends */
	struct job *another;
};

static int ended;

static void
run(struct worker_job *job)
{
	atomic_fetch_add(&container_of(job, struct job, job)->runs, 1);
}

static void
end(struct worker_job *job)
{
	struct job *t = container_of(job, struct job, job);

	ck_assert_int_eq(atomic_load(&t->runs), 1);
	t->ends++;
	t->order = ended++;
	if (t->another != NULL)
		workers_submit(t->w, &t->another->job);
}

static struct job *
new_jobs(int n)
{
	struct job *t = calloc((size_t)n, sizeof *t);

	ck_assert_ptr_nonnull(t);
	for (int i = 0; i < n; i++) {
		t[i].job.run = run;
		t[i].job.done = end;
	}
	ended = 0;
	return t;
}

static void
all_ended(struct job *t, int n)
{
	for (int i = 0; i < n; i++) {
		ck_assert_int_eq(t[i].runs, 1);
		ck_assert_int_eq(t[i].ends, 1);
	}
	free(t);
}

static bool
is_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

START_TEST(every_job_once)
{
	struct workers *w = workers_new((unsigned)_i);
	struct job *t = new_jobs(JOBS);

	ck_assert(!is_readable(workers_fd(w), 0));
	for (int i = 0; i < JOBS; i++) {
		workers_submit(w, &t[i].job);
		if (i % 1000 == 0)
			workers_take(w);
	}
	ck_assert_uint_eq(workers_waiting(w), (unsigned)(JOBS - ended));
	while (ended < JOBS) {
		ck_assert(is_readable(workers_fd(w), 10000));
		workers_take(w);
	}
	ck_assert_uint_eq(workers_waiting(w), 0);
	ck_assert(!is_readable(workers_fd(w), 0));
	workers_free(&w);
	ck_assert_ptr_null(w);
	all_ended(t, JOBS);
}
END_TEST

/* Jobs that are handed in by the end of another one too. */
START_TEST(the_end_waits_for_all)
{
	struct workers *w = workers_new((unsigned)_i);
	struct job *t = new_jobs(1000);

	for (int i = 0; i < 500; i++) {
		t[i].w = w;
		t[i].another = &t[i + 500];
		workers_submit(w, &t[i].job);
	}
	workers_free(&w);
	ck_assert_int_eq(ended, 1000);
	all_ended(t, 1000);
}
END_TEST

START_TEST(without_threads_the_test_decides)
{
	static const int order[] = { 2, 0, 1, 3 };
	struct workers *w = workers_new(0);
	struct job *t = new_jobs(4);

	ck_assert(!workers_step(w, 0));
	for (int i = 0; i < 4; i++)
		workers_submit(w, &t[i].job);
	ck_assert(!workers_step(w, 4));
	ck_assert(workers_step(w, 2));
	ck_assert(workers_step(w, 0));
	ck_assert(is_readable(workers_fd(w), 0));
	ck_assert_int_eq(ended, 0);
	ck_assert_uint_eq(workers_waiting(w), 4);
	workers_take(w);
	ck_assert_int_eq(ended, 2);
	ck_assert_uint_eq(workers_waiting(w), 2);
	ck_assert(workers_step(w, 0));
	ck_assert(workers_step(w, 0));
	ck_assert(!workers_step(w, 0));
	workers_take(w);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(t[order[i]].order, i);
	workers_free(&w);
	all_ended(t, 4);
}
END_TEST

/* ---- a disk that hangs ---- */

static atomic_bool hangs;
static atomic_int hanging, most;

static void
hang(struct worker_job *job)
{
	int n = atomic_fetch_add(&hanging, 1) + 1;

	if (n > atomic_load(&most))
		atomic_store(&most, n);
	while (atomic_load(&hangs))
		poll(NULL, 0, 1);
	atomic_fetch_sub(&hanging, 1);
	run(job);
}

/* Jobs that write may fill all threads but one; those that read come to their end meanwhile, in order. */
START_TEST(one_is_free_for_reading)
{
	struct workers *w = workers_new((unsigned)_i);
	struct job *t = new_jobs(20);

	atomic_store(&hangs, true);
	atomic_store(&most, 0);
	for (int i = 0; i < 20; i++) {
		t[i].job.writes = i < 10;
		if (i < 10)
			t[i].job.run = hang;
		workers_submit(w, &t[i].job);
	}
	while (ended < 10) {
		ck_assert(is_readable(workers_fd(w), 10000));
		workers_take(w);
	}
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(t[i].ends, i < 10 ? 0 : 1);
	while (atomic_load(&hanging) < _i - 1) /* the others do hang */
		poll(NULL, 0, 1);
	atomic_store(&hangs, false);
	workers_free(&w);
	ck_assert_int_eq(atomic_load(&most), _i - 1);
	all_ended(t, 20);
}
END_TEST

START_TEST(a_wake_up_is_seen_once)
{
	int fd = wake_new();

	ck_assert(!is_readable(fd, 0));
	wake_clear(fd);
	wake_up(fd);
	wake_up(fd);
	ck_assert(is_readable(fd, 0));
	wake_clear(fd);
	ck_assert(!is_readable(fd, 0));
	wake_free(&fd);
	ck_assert_int_eq(fd, -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("worker");
	TCase *t = tcase_create("worker");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, every_job_once, 1, 5);
	tcase_add_loop_test(t, the_end_waits_for_all, 0, 4);
	tcase_add_test(t, without_threads_the_test_decides);
	tcase_add_loop_test(t, one_is_free_for_reading, 2, 5);
	tcase_add_test(t, a_wake_up_is_seen_once);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
