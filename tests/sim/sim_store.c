/* SPDX-License-Identifier: Apache-2.0
 * The store on a disk that fails in every way, from seeds: random work, a cut at a random moment (within a start, a spill,
 * a roll, a rewrite too), a start, and a comparison with a simple model; several times a seed (src/store/README.md:
 * invariants).
 *
 *	sim_store [--seeds N] [--first S] [--list FILE] [--mutant M] [--verbose]
 *
 * Without arguments: 500 seeds (or HERMES_SIM_SEEDS), and those of seeds.txt, which failed once.
 *
 * The first seed that fails is printed with what differs, and the exit status is 1. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/mutant.h"
#include "tests/sim/sim.h"

static const struct sim *running;
unsigned store_mutant; /* store/mutant.h; the store looks at it only in the build of mutants.sh */

void
sim_fail(const struct sim *s, const char *fmt, ...)
{
	va_list ap;

	printf("seed %llu fails after %u runs, %llu steps: ", (unsigned long long)s->seed, s->runs,
	    (unsigned long long)s->steps);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

void
sim_say(const struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->verbose)
		return;
	printf("[%u.%llu] ", s->runs, (unsigned long long)s->steps);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

/* An assertion or a crash: which seed? */
static void
on_signal(int number)
{
	char text[64];
	int n = snprintf(text, sizeof text, "seed %llu fails with signal %d\n",
	    running == NULL ? 0ULL : (unsigned long long)running->seed, number);

	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(2);
	_exit(1);
}

/* A sanitizer may have one of its own. */
static void catch (int number)
{
	struct sigaction was, ours = { .sa_handler = on_signal };

	if (sigaction(number, NULL, &was) == 0 && was.sa_handler == SIG_DFL)
		(void)sigaction(number, &ours, NULL);
}

/* ---- a seed ---- */

static const unsigned usual[STEPS] = {
	[STEP_PUBLISH] = 20,
	[STEP_VOLATILE] = 4,
	[STEP_DELIVER] = 14,
	[STEP_ACK] = 14,
	[STEP_REQUEUE] = 5,
	[STEP_PURGE] = 1,
	[STEP_ATOMIC] = 4,
	[STEP_QUEUE] = 2,
	[STEP_OBJECT] = 3,
	[STEP_READ] = 8,
	[STEP_SPILL] = 2,
	[STEP_EXPIRE] = 1,
	[STEP_TURN] = 25,
	[STEP_JOURNAL] = 20,
	[STEP_WORKER] = 25,
	[STEP_EVENTS] = 25,
	[STEP_FLUSH] = 1,
	[STEP_SYNC] = 1,
	[STEP_CAPACITY] = 0,
	[STEP_TRANSIENT] = 1,
	[STEP_SNAPSHOT] = 0,
};

/* Some things much more often than others, or never. */
static void
choose_weights(struct sim *s)
{
	for (unsigned i = 0; i < STEPS; i++) {
		s->weight[i] = usual[i] * 4;
		switch (rnd(&s->r, 8)) {
		case 0: s->weight[i] /= 4; break;
		case 1: s->weight[i] *= 4; break;
		case 2: s->weight[i] = i < STEP_TURN ? 0 : s->weight[i]; break;
		default: break;
		}
	}
	if (rnd_chance(&s->r, 15))
		s->weight[STEP_CAPACITY] = 8;
	if (rnd_chance(&s->r, 25))
		s->weight[STEP_SNAPSHOT] = 6;
	if (rnd_chance(&s->r, 10))
		s->weight[STEP_JOURNAL] = 1; /* a sync that hangs */
	if (rnd_chance(&s->r, 10))
		s->weight[STEP_WORKER] = 1;
	s->weight[STEP_TURN]++;
}

static void
choose_config(struct sim *s)
{
	static const enum sync_policy policy[] = { SYNC_POLICY_ALWAYS, SYNC_POLICY_ALWAYS,
		SYNC_POLICY_MS, SYNC_POLICY_NEVER };
	struct store_config *c = &s->cfg;

	c->journal_file_size = (uint64_t)(64 << 10) << rnd(&s->r, 4);
	if (rnd_chance(&s->r, 50))
		c->journal_file_size = 64 << 10;
	c->journal_max = c->journal_file_size * (6 + rnd(&s->r, 60));
	c->sync.policy = policy[rnd(&s->r, 4)];
	c->sync.ms = 1 + (uint32_t)rnd(&s->r, 200);
	c->lane_entries = 4 + rnd(&s->r, rnd_chance(&s->r, 50) ? 40 : 2000);
	c->lane_bytes = (uint64_t)1024 << rnd(&s->r, 9);
	c->garbage_max = rnd_chance(&s->r, 50) ? 1 : (uint64_t)1024 << rnd(&s->r, 10);
	if (rnd_chance(&s->r, 70)) {
		c->segment_bytes = 5000 + ((uint64_t)500 << rnd(&s->r, 8));
		c->segment_messages = 1 + rnd(&s->r, 100);
	}
	s->turn_ms = rnd_chance(&s->r, 50) ? 60 : 2000;
	s->body_usual = (uint64_t)8 << rnd(&s->r, 9);
}

static void
arm(struct sim *s)
{
	s->make_fails = rnd_chance(&s->r, 10) ? 20 : 0;
	if (rnd_chance(&s->r, 60))
		disk_sim_cut_after(s->disk, 1 + rnd(&s->r, (uint64_t)1 << rnd(&s->r, 12)), false);
	if (rnd_chance(&s->r, 6))
		disk_sim_fail_sync(s->disk, 1 + rnd(&s->r, 60));
	if (rnd_chance(&s->r, 4))
		disk_sim_fail_write(s->disk, 1 + rnd(&s->r, 80));
	/* Not beside a block that cannot be read: each may be worth a second try, both together are not. */
	if (rnd_chance(&s->r, 6) && !s->damage_expected)
		disk_sim_fail_read(s->disk, 1 + rnd(&s->r, 60));
}

static void
run(struct sim *s)
{
	uint64_t steps = rnd(&s->r, rnd_chance(&s->r, 30) ? 4000 : 600);
	bool power;

	choose_weights(s);
	s->keep_every = rnd_chance(&s->r, 30) ? 2 + rnd(&s->r, 30) : 0;
	if (s->keep_every > 0) {
		s->weight[STEP_READ] *= 4;
		s->weight[STEP_DELIVER] *= 4;
	}
	arm(s);
	for (uint64_t i = 0; i < steps && !disk_sim_is_dead(s->disk); i++) {
		sim_step(s);
		if (store_failed(s->store) != 0 && rnd_chance(&s->r, 5))
			break;
	}
	power = sim_cut(s);
	s->runs++;
	/* Not after kill -9: a power cut later might make the flipped bits the last ones, which are not below anything. */
	if (power && rnd_chance(&s->r, 15))
		sim_damage(s);
}

static void
finish(struct sim *s)
{
	sim_drain(s);
	sim_drop(s);
	s->durable = s->written = 0;
	disk_sim_crash(s->disk, rnd_next(&s->r));
	sim_start(s);
	for (uint32_t i = 0; i < s->model.lanes; i++) {
		struct model_lane *l = s->model.lane[i];

		SIM_CHECK(s, !l->is_open || l->n == 0, "queue %llu/%u was emptied, and is not",
		    (unsigned long long)l->name.queue, l->name.lane);
	}
	sim_drop(s);
}

static void
one_seed(uint64_t seed, bool verbose, struct sim *sum)
{
	struct sim s = { .seed = seed,
		.r = rnd_of(seed),
		.window_r = rnd_of(~seed),
		.verbose = verbose,
		.next_id = 1,
		.now_ms = 1700000000000 };
	uint64_t runs;

	running = &s;
	sim_set_current(&s);
	choose_config(&s);
	s.disk = disk_sim_new(seed, 1ULL << 32);
	runs = 1 + rnd(&s.r, 6);
	for (uint64_t i = 0; i < runs; i++) {
		sim_start(&s);
		run(&s);
	}
	sim_start(&s);
	finish(&s);
	disk_free(&s.disk);
	model_fini(&s.model);
	free(s.wait);
	sum->runs += s.runs;
	sum->cuts += s.cuts;
	sum->steps += s.steps;
	sum->delivered += s.delivered;
	sum->snapshots += s.snapshots_seen;
	sum->total.spilled += s.total.spilled;
	sum->total.rolled += s.total.rolled;
	sum->total.loaded += s.total.loaded;
	sum->total.rewritten += s.total.rewritten;
	sum->total.damaged += s.total.damaged;
	running = NULL;
}

/* ---- options ---- */

static void
usage(void)
{
	fprintf(stderr,
	    "usage: sim_store [--seeds N] [--first S] [--list FILE] [--mutant M] [--verbose]\n");
	exit(2);
}

static uint64_t
number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (end == text || *end != '\0')
		usage();
	return n;
}

/* Seeds that failed once, one a line; '#' begins a comment. */
static uint64_t
seeds_of(const char *path, struct sim *sum)
{
	FILE *f = fopen(path, "r");
	char line[128], *end;
	uint64_t n = 0, seed;

	if (f == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	while (fgets(line, sizeof line, f) != NULL) {
		seed = strtoull(line, &end, 10);
		if (end != line) {
			one_seed(seed, false, sum);
			n++;
		}
	}
	(void)fclose(f);
	return n;
}

int
main(int argc, char **argv)
{
	const char *given = getenv("HERMES_SIM_SEEDS"), *top = getenv("srcdir"), *list = NULL;
	uint64_t seeds = given != NULL ? number(given) : 500, first = 1, n = 0;
	struct sim sum = { 0 };
	bool verbose = false;
	char kept[512];

	if (argc == 1 && top != NULL &&
	    snprintf(kept, sizeof kept, "%s/tests/sim/seeds.txt", top) < (int)sizeof kept)
		list = kept;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--verbose") == 0)
			verbose = true;
		else if (i + 1 == argc)
			usage();
		else if (strcmp(argv[i], "--seeds") == 0)
			seeds = number(argv[++i]);
		else if (strcmp(argv[i], "--first") == 0)
			first = number(argv[++i]);
		else if (strcmp(argv[i], "--mutant") == 0)
			store_mutant = (unsigned)number(argv[++i]);
		else if (strcmp(argv[i], "--list") == 0)
			list = argv[++i];
		else
			usage();
	}
	catch (SIGABRT);
	catch (SIGSEGV);
	catch (SIGBUS);
	if (!verbose && log_open(LOG_ERROR, LOG_TEXT, "/dev/null") != 0)
		return 2;
	if (list != NULL)
		n = seeds_of(list, &sum);
	for (uint64_t i = 0; i < seeds; i++)
		one_seed(first + i, verbose, &sum);
	n += seeds;
	log_close();
	printf("%llu seeds: %u runs, %u cuts, %llu steps, %llu deliveries, %llu spilled, %llu read "
	       "back, %llu files rolled, "
	       "%llu segments rewritten, %u snapshots\n",
	    (unsigned long long)n, sum.runs, sum.cuts, (unsigned long long)sum.steps,
	    (unsigned long long)sum.delivered, (unsigned long long)sum.total.spilled,
	    (unsigned long long)sum.total.loaded, (unsigned long long)sum.total.rolled,
	    (unsigned long long)sum.total.rewritten, sum.snapshots);
	return 0;
}
