/* SPDX-License-Identifier: Apache-2.0
 * hermes drain, hermes resume: maintenance of a node begins and ends. The node goes on draining whatever becomes of the
 * command, which only looks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "cli/api.h"
#include "cli/http_client.h"
#include "cli/progress.h"
#include "cli/text_safe.h"

enum { LOOK_FIRST_MS = 50, LOOK_LAST_MS = 1000, WAIT_MAX_MS = 7 * 24 * 3600 * 1000 };

static const char PATH[] = "/api/hermes/maintenance";

static long long
number_of(const json_t *o, const char *name)
{
	return (long long)json_integer_value(json_object_get(o, name));
}

static bool
is(const json_t *o, const char *name)
{
	return json_is_true(json_object_get(o, name));
}

static void
show_progress(struct progress *p, const json_t *o)
{
	progress_show(p, "%lld messages in %lld queues are left; Ctrl-C leaves the node drained",
	    number_of(o, "messages_left"), number_of(o, "queues_left"));
}

/* Takes nothing; *o as the node has it now. */
static int
look(struct cli *c, json_t **o)
{
	int rc;

	json_decref(*o);
	*o = NULL;
	rc = http_client_get(c, PATH, o);
	if (rc == CLI_OK && !json_is_boolean(json_object_get(*o, "draining")))
		rc = cli_fail(c, "what answers is not a Hermes node");
	return rc;
}

/* Until it is empty, is drained no more, or the time is up; there was a look at the queues (--no-wait: at least that). */
static int
wait_for_end(struct cli *c, uint64_t wait_ms, json_t **o)
{
	uint64_t until_ms = wait_ms != 0 ? clock_now_ms() + wait_ms : UINT64_MAX;
	bool once = cli_switch(c, "no-wait");
	unsigned ms = LOOK_FIRST_MS;
	struct progress progress;
	int rc;

	progress_init(&progress, !cli_switch(c, "json"));
	while ((rc = look(c, o)) == CLI_OK && is(*o, "draining") && !is(*o, "empty")) {
		uint64_t now_ms = clock_now_ms();

		if (json_object_get(*o, "messages_left") != NULL && (once || now_ms >= until_ms))
			break;
		show_progress(&progress, *o);
		if (now_ms < until_ms && ms > until_ms - now_ms)
			ms = (unsigned)(until_ms - now_ms);
		(void)nanosleep(
		    &(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L },
		    NULL);
		ms = ms * 2 < LOOK_LAST_MS ? ms * 2 : LOOK_LAST_MS;
	}
	progress_clear(&progress);
	return rc;
}

/* What keeps it from being empty, and where to look. The caller's. */
static char *
say_left(const json_t *o)
{
	long long unacked = number_of(o, "messages_unacknowledged"), jobs = number_of(o, "jobs");
	char held[64] = "", moves[96] = "";

	if (unacked > 0)
		(void)snprintf(
		    held, sizeof held, ", %lld of them delivered and not acknowledged", unacked);
	if (jobs > 0)
		(void)snprintf(moves, sizeof moves,
		    "; %lld moves or replays are under way (see hermes jobs)", jobs);
	return xasprintf("%lld messages in %lld queues are left%s%s", number_of(o, "messages_left"),
	    number_of(o, "queues_left"), held, moves);
}

static void
tell_state(const json_t *o, const char *left)
{
	long long stay = number_of(o, "messages_not_taken"),
	          delayed = number_of(o, "messages_delayed");

	if (is(o, "empty"))
		printf("drained\n");
	else
		printf("the node is being drained: %s\n", left);
	if (stay > 0)
		printf(
		    "nobody takes %lld messages in %lld queues; those that are durable stay over "
		    "a restart\n",
		    stay, number_of(o, "queues_not_taken"));
	if (delayed > 0)
		printf("%lld messages wait for the end of their delay\n", delayed);
}

static int
tell(struct cli *c, const json_t *o)
{
	char *left = say_left(o);
	int rc = CLI_OK;

	if (cli_switch(c, "json")) {
		(void)json_dumpf(o, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
		printf("\n");
	}
	if (!is(o, "draining"))
		rc = cli_fail(c, "maintenance was ended meanwhile: publishers go on");
	else if (!is(o, "empty") && !cli_switch(c, "no-wait"))
		rc = cli_fail(c, "the time is up: %s", left);
	if (is(o, "draining") && !cli_switch(c, "json"))
		tell_state(o, left);
	free(left);
	return rc;
}

static int
begin(struct cli *c)
{
	const char *reason = cli_value(c, "reason");
	json_t *body = json_object(), *text = NULL;
	int rc = CLI_USAGE;

	if (reason == NULL || (text = api_text(c, "--reason", reason)) != NULL) {
		if (text != NULL)
			(void)json_object_set_new(body, "reason", text);
		rc = http_client_call(c,
		    &(struct http_call){ .method = HTTP_PUT, .path = PATH, .body = body }, NULL,
		    NULL);
	}
	json_decref(body);
	return rc;
}

int
cmd_drain(struct cli *c)
{
	const char *wait = cli_value(c, "wait");
	uint64_t wait_ms = 0;
	json_t *o = NULL;
	int rc;

	if (wait != NULL &&
	    (units_parse_ms(wait, &wait_ms) != 0 || wait_ms == 0 || wait_ms > WAIT_MAX_MS))
		return cli_misuse(c, "--wait: '%.64s' is not a time such as 30s, 5m, 1h", wait);
	if (wait != NULL && cli_switch(c, "no-wait"))
		return cli_misuse(c, "of --wait and --no-wait it has to be one");
	rc = begin(c);
	if (rc == CLI_OK)
		rc = wait_for_end(c, wait_ms, &o);
	if (rc == CLI_OK)
		rc = tell(c, o);
	json_decref(o);
	return rc;
}

int
cmd_resume(struct cli *c)
{
	int rc = http_client_call(
	    c, &(struct http_call){ .method = HTTP_DELETE, .path = PATH }, NULL, NULL);

	if (rc == CLI_OK)
		printf("publishers go on\n");
	return rc;
}
