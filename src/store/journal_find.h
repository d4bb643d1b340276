/* SPDX-License-Identifier: Apache-2.0
 * Private to the journal's start: journal_find.c (which files there are, where each ends, which of them count) and
 * journal_recover.c (what is done with them). */
#ifndef STORE_JOURNAL_FIND_H
#define STORE_JOURNAL_FIND_H

#include "store/journal_priv.h"

struct found {
	uint32_t slot, number; /* number 0: nothing is known of it */
	uint64_t size, actual; /* by its header; of the file */
	bool in_chain, has_bad_header;
	uint64_t end; /* in the chain */
};

struct stamps { /* of the last CHUNK record */
	bool is_set;
	uint32_t oldest;
	uint64_t next_id, clock_ms;
};

struct recovery {
	struct journal *j;
	journal_replay_fn *replay;
	void *arg;
	struct journal_report *report;
	char *err;
	struct found *found; /* owned; ascending by number */
	uint32_t n, cap;
	uint32_t last;    /* index of the last file that counts */
	uint32_t highest; /* number seen */
	uint32_t missing; /* files */
	uint64_t durable; /* highest LSN known to be synced */
	uint32_t oldest;
	struct stamps stamps;
	struct open_record open; /* of the last file */
	bool has_open;
	uint32_t asides; /* damaged places that were copied */
	int error; /* of listing */
};


/* Fills found, last, stamps, durable; marks the chain. No file: last is n. 0 or -errno with the reason in err. */
int recovery_find(struct recovery *v) MUSTUSE;

/* A reason for not starting; returns the error. */
int recovery_refuse(struct recovery *v, int error, const char *fmt, ...) PRINTF(3, 4);
int recovery_no_memory(struct recovery *v, const struct scan *s);
/* Counted and told. */
void recovery_damage(struct recovery *v, const char *fmt, ...) PRINTF(2, 3);
int recovery_open(struct recovery *v, const struct found *x, struct scan *s) MUSTUSE;

#endif
