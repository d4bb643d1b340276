/* SPDX-License-Identifier: Apache-2.0
 * The worker pool: what blocks (files, names, long hashes) runs on a few threads; the answers come back to the core
 * thread through one eventfd. Jobs are taken in the order they were handed in; their ends may come in any order. Of
 * several threads one never takes a job that writes: a disk whose syncs hang does not keep back what only reads. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <stdbool.h>

struct workers;
struct worker_job;
typedef void worker_fn(struct worker_job *);

struct worker_job { /* embedded in what the job is about, which lives until `done` was called */
	worker_fn *run;  /* on a worker; touches nothing that the core thread may change meanwhile */
	worker_fn *done; /* on the core thread, from workers_take(); may free the job */
	struct worker_job *next;
	bool writes; /* it may hang in a sync */
};

/* threads 0: none; jobs run when workers_step() is called, which is how tests decide the order. */
struct workers *workers_new(unsigned threads);
/* Waits for what runs; jobs that did not begin are run too. `done` of all is called. */
void workers_free(struct workers **wp);
void workers_submit(struct workers *w, struct worker_job *job);
int workers_fd(const struct workers *w); /* readable when answers wait */
void workers_take(struct workers *w);    /* calls `done` of what has ended */
unsigned workers_waiting(const struct workers *w); /* handed in and not taken yet */

/* Without threads: runs the n-th waiting job (0: the oldest). False: there is none. */
bool workers_step(struct workers *w, unsigned n);

#endif
