/* SPDX-License-Identifier: Apache-2.0
 * A node and its settings: what their lists say is applied at the start, and SIGHUP reads them again. The file is read by a
 * worker, as its disk may be slow; what is in it is applied in slices, and while passwords are hashed everything else goes
 * on. */
#ifndef NODE_SETTINGS_H
#define NODE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/worker.h"
#include "node.h"
#include "settings.h"

struct broker;
struct settings_apply;

struct node_settings {
	struct worker_job job; /* first: reads */
	const struct node_start *start;	/* borrowed, as the next four */
	struct settings *settings;	/* in force; only what CFG_RELOAD says is ever changed in them */
	struct broker *broker;
	struct workers *readers, *hashers;
	struct settings_apply *apply;	/* owned; NULL: nothing is being applied */
	struct settings fresh, read;	/* owned: what is being applied, unless it is `settings`; what was read last */
	struct problems refused, wrong;	/* owned: of apply; of the file that was read */
	/* called when the file was read again, whatever came of it: other files may have changed, too */
	void (*on_read)(void *arg);
	void *on_read_arg;
	bool is_reload;			/* apply is of SIGHUP */
	bool is_reading, again;		/* a job is under way; SIGHUP came since */
	bool is_pipe;			/* the file cannot be read again */
	bool stopped;
};

/* Applies what the lists say, and logs each entry that was refused. Waits for workers to hash passwords, START_WAIT_MS at
 * most; what is not done then goes on while the node runs. */
void node_settings_begin(struct node_settings *ns);
/* SIGHUP. What is wrong in the file leaves all as it is, and is logged. */
void node_settings_reload(struct node_settings *ns);
/* Each turn. True: there is more to do now. */
bool node_settings_run(struct node_settings *ns);
/* Is something of a SIGHUP still to be done? */
bool node_settings_busy(const struct node_settings *ns);
/* Before the workers end. */
void node_settings_stop(struct node_settings *ns);
/* After they ended. */
void node_settings_fini(struct node_settings *ns);

#endif
