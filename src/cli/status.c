/* SPDX-License-Identifier: Apache-2.0
 * hermes status: one screen about a node. Exit status 0 only if it is healthy. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/http_client.h"
#include "cli/human.h"
#include "cli/text_safe.h"

static json_t *
at(json_t *o, const char *a, const char *b)
{
	o = json_object_get(o, a);
	return b != NULL ? json_object_get(o, b) : o;
}

static const char *
text_at(json_t *o, const char *a, const char *b)
{
	const char *s = json_string_value(at(o, a, b));

	return s != NULL ? s : "?";
}

static long long
number_at(json_t *o, const char *a, const char *b)
{
	return (long long)json_integer_value(at(o, a, b));
}

/* All texts in it: none of them speaks to the terminal. The library that read it has bounded the depth. */
static void
make_safe(json_t *j)
{
	const char *key;
	json_t *one;
	size_t i;

	json_object_foreach(j, key, one) make_safe(one);
	json_array_foreach(j, i, one) make_safe(one);
	if (json_is_string(j)) {
		char *safe = text_safe(json_string_value(j), json_string_length(j), NULL);

		(void)json_string_set(j, safe);
		free(safe);
	}
}

static void
print_ports(json_t *o)
{
	json_t *ports = at(o, "listeners", NULL), *port;
	size_t i;

	printf("%-13s", "ports");
	json_array_foreach(ports, i, port)
	    printf("%s%s %s %lld", i > 0 ? ", " : "", text_at(port, "protocol", NULL),
	        text_at(port, "ip_address", NULL), number_at(port, "port", NULL));
	printf("\n");
}

static void
print_alarms(json_t *hermes)
{
	json_t *alarms = at(hermes, "alarms", NULL), *alarm;
	size_t i;

	printf("%-13s%s", "alarms", json_array_size(alarms) == 0 ? "none" : "");
	json_array_foreach(alarms, i, alarm)
	    printf("%s%s%s", i > 0 ? ", " : "", text_at(alarm, "kind", NULL),
	        json_is_true(at(alarm, "hard", NULL)) ? " (hard limit)" : "");
	printf("\n");
}

static void
print_maintenance(json_t *hermes)
{
	json_t *m = at(hermes, "maintenance", NULL);

	if (!json_is_true(at(m, "draining", NULL)))
		return;
	printf("%-13sdrained: %s", "maintenance", text_at(m, "reason", NULL));
	if (at(m, "messages_left", NULL) != NULL) /* there was a look at the queues */
		printf("; %lld messages are left to take, %lld that nobody takes",
		    number_at(m, "messages_left", NULL), number_at(m, "messages_not_taken", NULL));
	printf("\n");
}

static void
print_memory(json_t *hermes)
{
	long long limit = number_at(hermes, "memory", "limit"),
	          held = number_at(hermes, "memory", "held");

	printf("%-13s", "memory");
	human_bytes(stdout, held);
	printf(" held");
	if (limit > 0) {
		printf(" of ");
		human_bytes(stdout, limit);
		printf(" (%.1f %%)", (double)held * 100.0 / (double)limit);
	}
	printf(", resident ");
	human_bytes(stdout, number_at(hermes, "memory", "resident"));
	printf("\n");
}

static void
print_disk(json_t *hermes)
{
	json_t *disk = at(hermes, "disk", NULL);

	if (!json_is_object(disk))
		return;
	printf("%-13s", "disk");
	human_bytes(stdout, number_at(disk, "free", NULL));
	printf(" free; publishers are held back below ");
	human_bytes(stdout, number_at(disk, "limit", NULL));
	printf("\n");
}

static void
print_rates(json_t *o)
{
	static const char *const names[] = { "publish", "deliver_get", "ack" };

	printf("%-13s", "rates");
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char details[32];

		(void)snprintf(details, sizeof details, "%s_details", names[i]);
		printf("%s%s %.1f/s", i > 0 ? ", " : "", names[i],
		    json_number_value(json_object_get(at(o, "message_stats", details), "rate")));
	}
	printf("\n");
}

static void
print_journal(json_t *store)
{
	long long syncs = number_at(store, "journal_syncs", NULL);

	printf("%-13s", "journal");
	human_bytes(stdout, number_at(store, "journal_file_bytes", NULL));
	printf(" in %lld files, ", number_at(store, "journal_files", NULL));
	human_bytes(stdout, number_at(store, "journal_backlog", NULL));
	printf(" not synced yet; syncs take %.1f ms, at most %.1f ms\n",
	    syncs == 0 ? 0.0
	               : (double)number_at(store, "journal_sync_us", NULL) / (double)syncs / 1000.0,
	    (double)number_at(store, "journal_sync_max_us", NULL) / 1000.0);
}

static void
print_segments(json_t *store)
{
	long long damaged = number_at(store, "damaged", NULL);

	printf("%-13s%lld messages in %lld segments, ", "spilled",
	    number_at(store, "segment_live", NULL), number_at(store, "segments", NULL));
	human_bytes(stdout, number_at(store, "segment_bytes", NULL));
	printf("; %lld messages since the start\n", number_at(store, "spilled", NULL));
	if (damaged > 0)
		printf("%-13splaces on disk: %lld, messages lost: %lld; see the log\n", "damage",
		    damaged, number_at(store, "damaged_messages", NULL));
}

static void
print_status(json_t *o)
{
	json_t *hermes = at(o, "hermes", NULL);
	bool healthy = json_is_true(at(hermes, "healthy", NULL));

	printf("%-13s%s, %s%s\n", "node", text_at(o, "node", NULL),
	    healthy ? "healthy" : "not healthy: ", healthy ? "" : text_at(hermes, "problem", NULL));
	printf("%-13sHermes %s, announces itself as %s %s\n", "version",
	    text_at(o, "hermes_version", NULL), text_at(o, "product_name", NULL),
	    text_at(o, "product_version", NULL));
	printf("%-13s", "uptime");
	human_duration(stdout, number_at(hermes, "uptime_ms", NULL));
	printf("\n");
	print_ports(o);
	print_alarms(hermes);
	print_maintenance(hermes);
	print_memory(hermes);
	print_disk(hermes);
	if (json_is_object(at(hermes, "store", NULL))) {
		print_journal(at(hermes, "store", NULL));
		print_segments(at(hermes, "store", NULL));
	}
	printf("%-13s%lld, channels %lld, consumers %lld\n", "connections",
	    number_at(o, "object_totals", "connections"), number_at(o, "object_totals", "channels"),
	    number_at(o, "object_totals", "consumers"));
	printf("%-13s%lld, exchanges %lld\n", "queues", number_at(o, "object_totals", "queues"),
	    number_at(o, "object_totals", "exchanges"));
	printf("%-13s%lld ready, %lld unacknowledged\n", "messages",
	    number_at(o, "queue_totals", "messages_ready"),
	    number_at(o, "queue_totals", "messages_unacknowledged"));
	print_rates(o);
}

/* What needs no account. */
static int
say_health(struct cli *c)
{
	const struct http_call call = { .path = "/healthz", .status_too = 503 };
	json_t *o = NULL;
	int status = 0, rc = http_client_call(c, &call, &status, &o);

	if (rc != CLI_OK)
		return rc;
	if (cli_switch(c, "json")) {
		(void)json_dumpf(o, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
		printf("\n");
	} else {
		const char *reason;

		make_safe(o);
		reason = json_string_value(json_object_get(o, "reason"));
		printf("%s%s%s\n", status == 200 ? "healthy" : "not healthy",
		    reason != NULL ? ": " : "", reason != NULL ? reason : "");
	}
	json_decref(o);
	return status == 200 ? CLI_OK : CLI_FAILED;
}

int
cmd_status(struct cli *c)
{
	json_t *o = NULL;
	int rc;

	if (cli_switch(c, "health"))
		return say_health(c);
	rc = http_client_get(c, "/api/overview", &o);
	if (rc != CLI_OK)
		return rc;
	if (!json_is_object(at(o, "hermes", NULL))) {
		rc = cli_fail(c, "what answers is not a Hermes node");
		json_decref(o);
		return rc;
	}
	if (cli_switch(c, "json")) {
		(void)json_dumpf(o, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
		printf("\n");
	} else {
		make_safe(o);
		print_status(o);
	}
	rc = json_is_true(at(at(o, "hermes", NULL), "healthy", NULL)) ? CLI_OK : CLI_FAILED;
	json_decref(o);
	return rc;
}
