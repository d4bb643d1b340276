/* SPDX-License-Identifier: Apache-2.0
 * A job goes on in the node whatever becomes of the command, which only looks, more rarely as time goes on. */
#include "cli/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/mem.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/progress.h"
#include "cli/text_safe.h"

enum { LOOK_FIRST_MS = 20, LOOK_LAST_MS = 500, RATE_MAX = 1000000 };

static long long
number_of(const json_t *job, const char *name)
{
	return json_integer_value(json_object_get(job, name));
}

static const char *
state_of(const json_t *job)
{
	const char *state = json_string_value(json_object_get(job, "state"));

	return state != NULL ? state : "";
}

static bool
runs(const json_t *job)
{
	return strcmp(state_of(job), "running") == 0;
}

/* ---- progress ---- */

static void
show_progress(struct progress *p, const json_t *job, const struct job_words *w)
{
	const char *waiting = json_string_value(json_object_get(job, "waiting"));
	char *why = waiting != NULL ? text_safe_line(waiting) : NULL;

	progress_show(p, "%s %lld of %lld, %lld/s%s%s; job %lld goes on without this command",
	    w->done, number_of(job, "done"), number_of(job, "total"), number_of(job, "rate_now"),
	    why != NULL ? ", waits: " : "", why != NULL ? why : "", number_of(job, "id"));
	free(why);
}

static void
pause_ms(unsigned ms)
{
	(void)nanosleep(
	    &(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* Takes *job and gives what it is in the end. */
static int
wait_for_end(struct cli *c, json_t **job, const struct job_words *w)
{
	char id[24], *path, *what;
	unsigned ms = LOOK_FIRST_MS;
	struct progress progress;
	int rc = CLI_OK;

	(void)snprintf(id, sizeof id, "%lld", number_of(*job, "id"));
	path = HTTP_PATH("/api/hermes/jobs/*", id);
	what = text_safe_format("job %s any more (was the node started again?)", id);
	progress_init(&progress, !cli_switch(c, "json"));
	while (rc == CLI_OK && runs(*job)) {
		show_progress(&progress, *job, w);
		pause_ms(ms);
		ms = ms * 2 < LOOK_LAST_MS ? ms * 2 : LOOK_LAST_MS;
		json_decref(*job);
		*job = NULL;
		rc = http_client_call(
		    c, &(struct http_call){ .path = path, .what = what }, NULL, job);
	}
	progress_clear(&progress);
	free(path);
	free(what);
	return rc;
}

/* ---- the end ---- */

static int
tell_reasons(struct cli *c, json_t *job)
{
	json_t *all = json_object_get(job, "reasons"), *count;
	long long left = number_of(job, "failed");
	const char *why;

	json_object_foreach(all, why, count)
	{
		char *safe = text_safe_line(why);

		left -= json_integer_value(count);
		(void)cli_fail(c, "%lld stay: %s", (long long)json_integer_value(count), safe);
		free(safe);
	}
	if (left > 0)
		(void)cli_fail(c, "%lld stay for other reasons", left);
	return CLI_FAILED;
}

static int
tell_end(struct cli *c, json_t *job, const struct job_words *w)
{
	const char *why = json_string_value(json_object_get(job, "reason"));
	long long done = number_of(job, "done");
	int rc = CLI_OK;

	if (number_of(job, "failed") > 0)
		rc = tell_reasons(c, job);
	if (strcmp(state_of(job), "done") != 0) {
		char *safe = text_safe_line(why != NULL ? why : "somebody did it");

		rc = cli_fail(c, "the job was %s: %s",
		    strcmp(state_of(job), "failed") == 0 ? "given up" : "cancelled", safe);
		free(safe);
	}
	if (!cli_switch(c, "json"))
		printf("%s %lld %s %s\n", w->done, done, done == 1 ? w->one : w->many, w->of);
	return rc;
}

static int
tell(struct cli *c, json_t *job, const struct job_words *w)
{
	int rc = CLI_OK;

	if (!runs(job))
		rc = tell_end(c, job, w);
	else if (!cli_switch(c, "json"))
		printf("begun: job %lld\n", number_of(job, "id"));
	if (cli_switch(c, "json")) {
		(void)json_dumpf(job, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
		printf("\n");
	}
	return rc;
}

static int
start(struct cli *c, const char *path, json_t *body, const char *what, json_t **job)
{
	uint64_t rate = 0;
	int rc;

	if (!cli_number(c, "rate", 1, RATE_MAX, &rate))
		return CLI_USAGE;
	if (rate > 0)
		(void)json_object_set_new(body, "rate", json_integer((json_int_t)rate));
	rc = http_client_call(c,
	    &(struct http_call){
	        .method = HTTP_POST, .path = path, .body = body, .what = what, .status_too = 202 },
	    NULL, job);
	if (rc == CLI_OK && !json_is_object(*job))
		rc = cli_fail(c, "what answers is not a Hermes node");
	return rc;
}

int
job_run(struct cli *c, char *path, json_t *body, char *what, struct job_words words)
{
	json_t *job = NULL;
	int rc = start(c, path, body, what, &job);

	if (rc == CLI_OK && !cli_switch(c, "no-wait"))
		rc = wait_for_end(c, &job, &words);
	if (rc == CLI_OK)
		rc = tell(c, job, &words);
	json_decref(job);
	json_decref(body);
	free(path);
	free(what);
	free(words.of);
	return rc;
}
