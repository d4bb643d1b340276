/* SPDX-License-Identifier: Apache-2.0
 * Rules of order that tests/sim/mutants.sh takes out one at a time, in a build of its own, to show that the simulation
 * notices. In every other build MUTANT() is false. */
#ifndef STORE_MUTANT_H
#define STORE_MUTANT_H

enum store_mutant {
	MUTANT_REUSE = 1,     /* a slot is reused before `oldest` is durable */
	MUTANT_SEGMENT,	      /* SEG is appended though its file was not synced */
	MUTANT_SEGMENT_NAME,  /* ... or the folder of the file */
	MUTANT_TAIL,	      /* recovery leaves what may be in the page cache only as it is */
	MUTANT_UNLINK,	      /* a segment is unlinked before its last ACK is durable */
	MUTANT_REWRITE,	      /* messages are left out of a rewritten segment before their ACK is durable */
	MUTANT_FILE_ORDER     /* a file of the journal is begun without a sync of the one before */
};

#ifdef STORE_MUTANTS
extern unsigned store_mutant;
#define MUTANT(name) (store_mutant == MUTANT_##name)
#else
#define MUTANT(name) 0
#endif

#endif
