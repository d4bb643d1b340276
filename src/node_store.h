/* SPDX-License-Identifier: Apache-2.0
 * The node's store: opened before anything else that lasts, fed at the end of each turn, watched for a full disk. */
#ifndef NODE_STORE_H
#define NODE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/worker.h"
#include "store/store.h"

struct broker;
struct config;
struct disk;
struct loop;
struct loop_watch;
struct pid_file;

/* Free space is asked for by a worker, once a second. */
struct space_job {
	struct worker_job job; /* first */
	struct node_store *ns; /* borrowed: outlives the job */
	uint64_t total, available;
	int error;
	bool is_running;
};

struct node_store {
	struct broker *broker;	   /* borrowed */
	const struct config *cfg;  /* borrowed */
	struct workers *workers;   /* owned, as all below */
	struct disk *disk;
	struct store *store;	   /* broker->store is the same */
	struct loop_watch *positions, *answers;
	struct space_job space;
	bool space_failed; /* was said */
	struct pid_file *pid_file; /* borrowed: removed where the process ends here; NULL: none */
};

/* Opens the store of cfg->data_dir, which is locked, and recovers what it has into the broker. False: err says why. */
bool node_store_open(struct node_store *ns, struct loop *l, struct broker *b, const struct config *cfg,
    char err[STORE_ERROR]) MUSTUSE;
/* The end of a turn. True: there is more to do. Ends the process, with one line, when the disk failed. */
bool node_store_turn(struct node_store *ns, uint64_t now_ms);
void node_store_each_second(struct node_store *ns);
/* disk.min_free in bytes; 0: not known yet. */
uint64_t node_store_least_free(const struct node_store *ns);
/* Everything is written and synced. A disk that does not answer for CLOSE_MS ends the process, with a line. */
void node_store_close(struct node_store *ns);

#endif
