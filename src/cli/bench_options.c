/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/units.h"

enum {
	TIME_MAX_MS = 30 * 24 * 3600 * 1000u,
	CONFIRMS_MAX = 1 << 20,
	WINDOWS_MAX = 8 << 20, /* unconfirmed messages of all publishers */
	PAIRS_MAX = 4 << 20,   /* of publisher and consumer, both kept track of */
	SHARED_MAX = 16 << 10, /* of publisher and queue, where each has a bitmap of 32 KiB */
	RATE_MAX = 10000000,
	DEFAULT_MS = 10000
};

static bool
read_time(struct cli *c, const char *name, uint64_t *ms)
{
	const char *text = cli_value(c, name);

	if (text == NULL || (units_parse_ms(text, ms) == 0 && *ms <= TIME_MAX_MS))
		return true;
	(void)cli_misuse(c, "--%s: '%.64s' is not a time such as 500ms, 10s, 5m", name, text);
	return false;
}

/* "256", "16,1KiB": sizes used in turn. */
static bool
read_sizes(struct cli *c, struct bench_options *o)
{
	char *all = xstrdup(cli_value(c, "size")), *save = NULL;
	bool fine = true;

	for (char *one = strtok_r(all, ",", &save); one != NULL && fine;
	     one = strtok_r(NULL, ",", &save)) {
		fine = o->sizes < BENCH_SIZES_MAX &&
		       units_parse_size(one, &o->size[o->sizes]) == 0 &&
		       o->size[o->sizes] <= BENCH_BODY_MAX;
		o->sizes++;
	}
	fine = fine && o->sizes > 0;
	if (!fine)
		(void)cli_misuse(c,
		    "--size: '%.64s' is not a size such as 256 or 4KiB (at most 16MiB), nor at "
		    "most %d of them parted by commas",
		    cli_value(c, "size"), BENCH_SIZES_MAX);
	free(all);
	return fine;
}

static bool
read_numbers(struct cli *c, struct bench_options *o)
{
	return cli_number(c, "publishers", 1, BENCH_CLIENTS_MAX, &o->publishers) &&
	       cli_number(c, "queues", 1, BENCH_QUEUES_MAX, &o->queues) &&
	       cli_number(c, "consumers", 0, BENCH_CLIENTS_MAX, &o->consumers) &&
	       cli_number(c, "confirms", 0, CONFIRMS_MAX, &o->confirms) &&
	       cli_number(c, "prefetch", 0, UINT16_MAX, &o->prefetch) &&
	       cli_number(c, "ack", 1, UINT16_MAX, &o->ack) &&
	       cli_number(c, "rate", 1, RATE_MAX, &o->rate) &&
	       cli_number(c, "count", 1, 1000000000000, &o->count) &&
	       cli_number(c, "in-flight", 1, 1000000000000, &o->in_flight);
}

static bool
is_exchange_type(const char *type)
{
	return type == NULL || strcmp(type, "direct") == 0 || strcmp(type, "topic") == 0 ||
	       strcmp(type, "fanout") == 0;
}

/* What is asked for costs memory. */
static int
bound(struct cli *c, const struct bench_options *o)
{
	uint64_t most = o->consumers > o->queues ? o->consumers : o->queues;
	bool is_shared = o->to_all && o->consumers > o->queues;

	if (o->publishers * o->confirms > WINDOWS_MAX)
		return cli_misuse(c, "--publishers times --confirms is above %d", WINDOWS_MAX);
	if (o->verify && (o->publishers * most > PAIRS_MAX ||
	                     (is_shared && o->publishers * o->queues > SHARED_MAX)))
		return cli_misuse(
		    c, "so many publishers and consumers are not verified; see --no-verify");
	return CLI_OK;
}

/* What does not go together. */
static int
check(struct cli *c, const struct bench_options *o)
{
	if (cli_given(c, "duration") && o->duration_ms == 0 && o->count == 0)
		return cli_misuse(c, "--duration 0s leaves no time to publish");
	if (o->consumers > 0 && o->consumers < o->queues)
		return cli_misuse(c,
		    "--consumers %" PRIu64 " leaves queues without one: at least %" PRIu64
		    ", as --queues says, or 0",
		    o->consumers, o->queues);
	if (o->consumers == 0 && o->in_flight > 0)
		return cli_misuse(c, "--in-flight needs consumers");
	if (o->backlog && (o->consumers == 0 || o->in_flight > 0))
		return cli_misuse(c, "--backlog needs consumers, and goes without --in-flight");
	if (o->backlog && o->queue_type != NULL && strcmp(o->queue_type, "stream") == 0)
		return cli_misuse(c, "--backlog: consumers of a stream get what comes after them");
	if (!is_exchange_type(o->exchange_type))
		return cli_misuse(
		    c, "--exchange-type: '%.64s' is not direct, topic or fanout", o->exchange_type);
	if (cli_given(c, "ack") && cli_switch(c, "no-ack"))
		return cli_misuse(c, "--ack and --no-ack do not go together");
	if (o->prefetch > 0 && o->ack > o->prefetch && cli_given(c, "ack"))
		return cli_misuse(c, "with --ack above --prefetch nothing would be acknowledged");
	return CLI_OK;
}

static int
settle(struct cli *c, struct bench_options *o)
{
	int status;

	if (!cli_given(c, "consumers"))
		o->consumers = o->queues;
	if ((status = check(c, o)) != CLI_OK)
		return status;
	if (cli_switch(c, "no-ack"))
		o->ack = 0;
	else if (o->prefetch > 0 && o->ack > o->prefetch)
		o->ack = o->prefetch;
	if (o->duration_ms == 0 && o->count == 0)
		o->duration_ms = DEFAULT_MS;
	o->to_all = o->exchange_type != NULL && strcmp(o->exchange_type, "fanout") == 0;
	return bound(c, o);
}

int
bench_options_read(struct bench_options *o, struct cli *c)
{
	char unique[RANDOM_NAME_SIZE];

	*o = (struct bench_options){
		.queue_type = cli_value(c, "queue-type"),
		.exchange_type = cli_value(c, "exchange-type"),
		.persistent = cli_switch(c, "persistent"),
		.verify = !cli_switch(c, "no-verify"),
		.json = cli_switch(c, "json"),
		.backlog = cli_switch(c, "backlog"),
	};
	if (!read_numbers(c, o) || !read_sizes(c, o) ||
	    !read_time(c, "duration", &o->duration_ms) || !read_time(c, "warm-up", &o->warmup_ms) ||
	    !read_time(c, "drain", &o->drain_ms))
		return CLI_USAGE;
	if (o->queue_type != NULL && strlen(o->queue_type) > BENCH_NAME_SIZE)
		return cli_misuse(c, "--queue-type: no queue has such a type");
	o->durable =
	    o->persistent || (o->queue_type != NULL && strcmp(o->queue_type, "classic") != 0);
	random_name(unique);
	(void)snprintf(o->name, sizeof o->name, "hermes-bench-%s", unique);
	return settle(c, o);
}

void
bench_queue_name(const struct bench_options *o, uint64_t queue, char out[BENCH_NAME_SIZE])
{
	(void)snprintf(out, BENCH_NAME_SIZE, "%.48s.%" PRIu64, o->name, queue % BENCH_QUEUES_MAX);
}
