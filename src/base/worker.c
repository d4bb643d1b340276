/* SPDX-License-Identifier: Apache-2.0
 * The worker pool: see the header. Two lists under one lock: what waits to be run and what has ended. The eventfd is
 * written when the second one stops being empty, not for each job. */
#include "base/worker.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/wake.h"

enum { STACK = 256 << 10, THREADS_MAX = 16 };

struct jobs {
	struct worker_job *first, **end;
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t work;  /* a job waits, or the end has come */
	pthread_cond_t ended; /* workers_free() waits for it */
	pthread_t thread[THREADS_MAX];
	unsigned threads;
	int fd;
	unsigned handed_in; /* and not taken yet; the core thread's */

	/* under the lock */
	struct jobs waiting, over;
	unsigned idle;    /* threads that sleep */
	unsigned writing; /* threads with a job that writes */
	bool stop;
};

static void
jobs_init(struct jobs *l)
{
	l->first = NULL;
	l->end = &l->first;
}

static void
jobs_push(struct jobs *l, struct worker_job *job)
{
	job->next = NULL;
	*l->end = job;
	l->end = &job->next;
}

/* The n-th of the list leaves it; NULL: there are not so many. */
static struct worker_job *
jobs_pull(struct jobs *l, unsigned n)
{
	struct worker_job **at = &l->first, *job;

	while (n > 0 && *at != NULL) {
		at = &(*at)->next;
		n--;
	}
	job = *at;
	if (job == NULL)
		return NULL;
	*at = job->next;
	if (*at == NULL)
		l->end = at;
	job->next = NULL;
	return job;
}

/* Under the lock: the oldest job that may be begun. */
static struct worker_job *
next_job(struct workers *w)
{
	const struct worker_job *job = w->waiting.first;
	unsigned n = 0;

	if (w->threads == 1 || w->writing + 1 < w->threads)
		return jobs_pull(&w->waiting, 0);
	for (; job != NULL && job->writes; job = job->next)
		n++;
	return jobs_pull(&w->waiting, n);
}

/* Under the lock. */
static void
job_is_over(struct workers *w, struct worker_job *job)
{
	if (w->over.first == NULL)
		wake_up(w->fd);
	jobs_push(&w->over, job);
	if (w->stop)
		pthread_cond_signal(&w->ended);
}

static void *
worker_thread(void *arg)
{
	struct workers *w = arg;
	struct worker_job *job;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		job = next_job(w);
		if (job != NULL) {
			w->writing += job->writes;
			pthread_mutex_unlock(&w->lock);
			job->run(job);
			pthread_mutex_lock(&w->lock);
			w->writing -= job->writes;
			job_is_over(w, job);
			continue;
		}
		if (w->stop && w->handed_in == 0)
			break;
		w->idle++;
		pthread_cond_wait(&w->work, &w->lock);
		w->idle--;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* Signals are the core thread's. */
static void
start_threads(struct workers *w, unsigned n)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	w->threads = n;
	for (unsigned i = 0; i < n; i++) {
		r = pthread_create(&w->thread[i], &attr, worker_thread, w);
		if (r != 0) {
			log_error("cannot start a worker thread: %s", strerror(r));
			log_flush();
			abort();
		}
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

struct workers *
workers_new(unsigned threads)
{
	struct workers *w = xcalloc(1, sizeof *w);

	assert(threads <= THREADS_MAX);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	pthread_cond_init(&w->ended, NULL);
	jobs_init(&w->waiting);
	jobs_init(&w->over);
	w->fd = wake_new();
	start_threads(w, threads);
	return w;
}

void
workers_submit(struct workers *w, struct worker_job *job)
{
	bool wake;

	assert(job->run != NULL && job->done != NULL);
	pthread_mutex_lock(&w->lock);
	w->handed_in++;
	jobs_push(&w->waiting, job);
	wake = w->idle > 0;
	pthread_mutex_unlock(&w->lock);
	if (wake)
		pthread_cond_signal(&w->work);
}

int
workers_fd(const struct workers *w)
{
	return w->fd;
}

/* A `done` may hand in further jobs, and may free its own. */
void
workers_take(struct workers *w)
{
	struct worker_job *job, *next;

	wake_clear(w->fd);
	pthread_mutex_lock(&w->lock);
	job = w->over.first;
	jobs_init(&w->over);
	pthread_mutex_unlock(&w->lock);
	for (; job != NULL; job = next) {
		next = job->next;
		pthread_mutex_lock(&w->lock);
		w->handed_in--;
		pthread_mutex_unlock(&w->lock);
		job->done(job);
	}
}

unsigned
workers_waiting(const struct workers *w)
{
	return w->handed_in;
}

bool
workers_step(struct workers *w, unsigned n)
{
	struct worker_job *job;

	assert(w->threads == 0);
	job = jobs_pull(&w->waiting, n);
	if (job == NULL)
		return false;
	job->run(job);
	pthread_mutex_lock(&w->lock);
	job_is_over(w, job);
	pthread_mutex_unlock(&w->lock);
	return true;
}

/* Ends every job, those included that a `done` hands in meanwhile. */
static void
finish_jobs(struct workers *w)
{
	while (w->handed_in > 0) {
		while (w->threads == 0 && workers_step(w, 0))
			continue;
		pthread_mutex_lock(&w->lock);
		while (w->over.first == NULL)
			pthread_cond_wait(&w->ended, &w->lock);
		pthread_mutex_unlock(&w->lock);
		workers_take(w);
	}
}

void
workers_free(struct workers **wp)
{
	struct workers *w = *wp;

	*wp = NULL;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_mutex_unlock(&w->lock);
	finish_jobs(w);
	pthread_mutex_lock(&w->lock);
	pthread_cond_broadcast(&w->work);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->threads; i++)
		pthread_join(w->thread[i], NULL);
	pthread_cond_destroy(&w->ended);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
	wake_free(&w->fd);
	free(w);
}
