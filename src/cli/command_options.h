/* SPDX-License-Identifier: Apache-2.0
 * The options of each command, for commands.c alone. */
#ifndef CLI_COMMAND_OPTIONS_H
#define CLI_COMMAND_OPTIONS_H

#include "cli/cli.h"

#define END_OF_TABLE         \
	{                    \
		.name = NULL \
	}

static const struct cli_option server_options[] = {
	{ .name = "config",
	    .letter = 'c',
	    .value = "FILE",
	    .env = "HERMES_CONFIG_FILE",
	    .text = "settings (YAML); without a file every setting has its default" },
	{ .name = "data",
	    .letter = 'd',
	    .value = "DIR",
	    .env = "HERMES_DATA_DIR",
	    .text = "data folder, made if it is not there; /var/lib/hermes if nothing says "
	            "otherwise" },
	{ .name = "node-name",
	    .value = "NAME",
	    .env = "HERMES_NODE_NAME",
	    .text = "name of the node" },
	{ .name = "listen",
	    .value = "ADDR",
	    .repeats = true,
	    .text = "address, or name of the machine, for AMQP, HTTP and metrics" },
	{ .name = "port", .letter = 'p', .value = "PORT", .text = "port for AMQP; 0: none" },
	{ .name = "management-port", .value = "PORT", .text = "port for the HTTP API; 0: none" },
	{ .name = "prometheus-port", .value = "PORT", .text = "port for metrics; 0: none" },
	{ .name = "pid-file",
	    .value = "FILE",
	    .text = "written once the node is ready, removed at its end" },
	{ .name = "log-level", .value = "LEVEL", .text = "error, warning, info or debug" },
	{ .name = "check", .text = "read the settings, say what is wrong, start nothing" },
	END_OF_TABLE,
};

static const struct cli_option status_options[] = {
	{ .name = "json", .text = "as JSON" },
	{ .name = "health", .text = "only whether it is healthy, which needs no account" },
	END_OF_TABLE,
};

static const struct cli_option top_options[] = {
	{ .name = "once", .text = "print it once; elsewhere than on a terminal cells are parted by tabs" },
	{ .name = "sort",
	    .letter = 's',
	    .value = "WHAT",
	    .def = "backlog",
	    .text = "backlog, in, out, unacked, consumers or name" },
	{ .name = "interval",
	    .letter = 'i',
	    .value = "TIME",
	    .def = "2s",
	    .text = "between two looks (such as 500ms)" },
	{ .name = "count",
	    .letter = 'n',
	    .value = "N",
	    .text = "with --once: N queues; 20 if nothing says otherwise" },
	{ .name = "vhost", .value = "NAME", .text = "queues of this virtual host only" },
	END_OF_TABLE,
};

static const struct cli_option publish_options[] = {
	{ .name = "exchange",
	    .letter = 'e',
	    .value = "NAME",
	    .def = "",
	    .text = "exchange; the empty one routes to the queue named by the key" },
	{ .name = "key",
	    .letter = 'k',
	    .value = "KEY",
	    .text = "routing key; without --exchange: the queue's name" },
	{ .name = "body", .letter = 'b', .value = "TEXT", .text = "the message's body" },
	{ .name = "file",
	    .letter = 'f',
	    .value = "FILE",
	    .text = "the body from a file; without either, from standard input" },
	{ .name = "persistent", .text = "mark it persistent (delivery mode 2)" },
	{ .name = "header", .value = "NAME=VALUE", .repeats = true, .text = "one header, as text" },
	{ .name = "property",
	    .value = "NAME=VALUE",
	    .repeats = true,
	    .text = "content_type, content_encoding, priority, correlation_id, reply_to, "
	            "expiration, message_id, "
	            "timestamp, type, user_id or app_id" },
	{ .name = "mandatory", .text = "fail if no queue takes the message (this is the default)" },
	{ .name = "no-mandatory", .text = "a message that no queue takes is dropped" },
	{ .name = "count", .letter = 'n', .value = "N", .def = "1", .text = "publish it N times" },
	{ .name = "declare", .text = "first make a durable queue with the key's name" },
	END_OF_TABLE,
};

static const struct cli_option get_options[] = {
	{ .name = "count", .letter = 'n', .value = "N", .def = "1", .text = "at most N messages" },
	{ .name = "no-ack", .text = "take messages without acknowledging them" },
	{ .name = "requeue", .text = "look at messages, then put them back" },
	{ .name = "wait",
	    .letter = 'w',
	    .value = "TIME",
	    .text = "wait so long for a first message (such as 5s)" },
	{ .name = "json", .text = "one JSON object a line, with all properties" },
	END_OF_TABLE,
};

static const struct cli_option consume_options[] = {
	{ .name = "exchange",
	    .letter = 'e',
	    .value = "NAME",
	    .text = "instead of QUEUE: what goes to this exchange, through a queue of the "
	            "command's own" },
	{ .name = "key",
	    .letter = 'k',
	    .value = "KEY",
	    .repeats = true,
	    .text = "routing key, or pattern of a topic exchange; empty if not given" },
	{ .name = "count",
	    .letter = 'n',
	    .value = "N",
	    .text = "ends after N messages; without it, by Ctrl-C" },
	{ .name = "wait",
	    .letter = 'w',
	    .value = "TIME",
	    .text = "ends when no message came for so long (such as 5s)" },
	{ .name = "prefetch",
	    .value = "N",
	    .def = "100",
	    .text = "how many messages the node sends before the first is acknowledged" },
	{ .name = "no-ack", .text = "take messages without acknowledging them" },
	{ .name = "json", .text = "one JSON object a line, with all properties" },
	END_OF_TABLE,
};

static const struct cli_option bench_options[] = {
	{ .name = "publishers", .value = "N", .def = "1", .text = "connections that publish" },
	{ .name = "consumers",
	    .value = "N",
	    .text = "connections that consume; as many as there are queues if not given; 0: none" },
	{ .name = "queues", .value = "N", .def = "1", .text = "queues, taken in turn by both" },
	{ .name = "size",
	    .value = "SIZE,...",
	    .def = "256",
	    .text = "bytes of a body, such as 16, 4KiB; of several each in turn" },
	{ .name = "rate",
	    .value = "N",
	    .text = "messages a second of all publishers; as fast as it goes if not given" },
	{ .name = "confirms",
	    .value = "N",
	    .def = "1000",
	    .text = "a publisher has at most N messages unconfirmed; 0: without confirms" },
	{ .name = "in-flight",
	    .value = "N",
	    .text = "publishers wait while N messages are not delivered yet" },
	{ .name = "backlog",
	    .text = "consumers begin when all is published: how fast a queue fills, and empties" },
	{ .name = "persistent", .text = "persistent messages (delivery mode 2), durable queues" },
	{ .name = "queue-type",
	    .value = "TYPE",
	    .text = "classic, quorum or another that the broker knows" },
	{ .name = "exchange-type",
	    .value = "TYPE",
	    .text = "through an exchange: direct or topic, or fanout, where each queue gets all" },
	{ .name = "prefetch",
	    .value = "N",
	    .def = "1000",
	    .text = "messages that a consumer gets before it acknowledges; 0: any number" },
	{ .name = "ack", .value = "N", .def = "100", .text = "acknowledge every N messages" },
	{ .name = "no-ack", .text = "consume without acknowledgements" },
	{ .name = "duration",
	    .value = "TIME",
	    .text = "how long to publish (such as 30s); 10s if nothing says otherwise" },
	{ .name = "count", .letter = 'n', .value = "N", .text = "end after N messages" },
	{ .name = "warm-up",
	    .value = "TIME",
	    .def = "0s",
	    .text = "before that: publish for so long without measuring" },
	{ .name = "drain",
	    .value = "TIME",
	    .def = "5s",
	    .text = "what is under way is given up when nothing came for so long" },
	{ .name = "no-verify", .text = "do not look at what comes" },
	{ .name = "json", .text = "the figures as one JSON object" },
	END_OF_TABLE,
};

static const struct cli_option check_data_options[] = {
	{ .name = "json", .text = "as one JSON object, with the figures" },
	END_OF_TABLE,
};

static const struct cli_option restore_options[] = {
	{ .name = "data",
	    .letter = 'd',
	    .value = "DIR",
	    .env = "HERMES_DATA_DIR",
	    .def = "/var/lib/hermes",
	    .text = "data folder, empty or not there yet" },
	END_OF_TABLE,
};

/* Of commands about objects in a vhost, over HTTP. */
static const struct cli_option vhost_options[] = {
	{ .name = "vhost",
	    .value = "NAME",
	    .env = "HERMES_VHOST",
	    .text = "virtual host; / if nothing says otherwise" },
	END_OF_TABLE,
};

/* Of what can list several vhosts. */
static const struct cli_option only_vhost_options[] = {
	{ .name = "vhost",
	    .value = "NAME",
	    .env = "HERMES_VHOST",
	    .text = "of this virtual host only; lists are of all if nothing says otherwise, other "
	            "verbs take /" },
	END_OF_TABLE,
};

static const struct cli_option list_options[] = {
	{ .name = "json", .text = "as JSON" },
	{ .name = "columns",
	    .value = "NAME,...",
	    .text = "these fields of the JSON; queue.name is a field of a field" },
	{ .name = "no-header", .text = "no line with the names of the columns" },
	END_OF_TABLE,
};

static const struct cli_option argument_options[] = {
	{ .name = "argument",
	    .letter = 'a',
	    .value = "NAME=VALUE",
	    .repeats = true,
	    .text = "one argument; a VALUE that is JSON, such as 5 or true, is that, any other is "
	            "text" },
	{ .name = "arguments", .value = "JSON", .text = "arguments as a JSON object" },
	END_OF_TABLE,
};

static const struct cli_option declare_options[] = {
	{ .name = "type",
	    .letter = 't',
	    .value = "TYPE",
	    .text = "of a queue: classic or quorum; of an exchange: direct (if nothing says "
	            "otherwise), fanout, topic, headers or another that the node knows" },
	{ .name = "transient", .text = "not durable: gone when the node stops" },
	{ .name = "auto-delete", .text = "gone with its last consumer or binding" },
	{ .name = "internal", .text = "an exchange that takes messages from exchanges only" },
	END_OF_TABLE,
};

static const struct cli_option delete_options[] = {
	{ .name = "if-empty", .text = "only a queue without messages" },
	{ .name = "if-unused",
	    .text = "only a queue without consumers, an exchange without "
	            "bindings" },
	{ .name = "reason",
	    .value = "TEXT",
	    .text = "why a connection is closed, which its client is told" },
	END_OF_TABLE,
};

static const struct cli_option bind_options[] = {
	{ .name = "key",
	    .letter = 'k',
	    .value = "KEY",
	    .text = "routing key, or pattern of a topic exchange; empty if not given" },
	{ .name = "to-exchange", .text = "DESTINATION is an exchange, not a queue" },
	END_OF_TABLE,
};

/* Of commands that start a job on the node. */
static const struct cli_option job_options[] = {
	{ .name = "rate", .value = "N", .text = "at most N messages a second" },
	{ .name = "no-wait", .text = "do not wait for the end: 'hermes jobs' shows how far it is" },
	{ .name = "json", .text = "the job as JSON" },
	END_OF_TABLE,
};

static const struct cli_option move_options[] = {
	{ .name = "count",
	    .letter = 'n',
	    .value = "N",
	    .text = "N messages; all that are ready now if nothing says otherwise" },
	{ .name = "to-exchange", .text = "DESTINATION is an exchange, which routes them anew" },
	{ .name = "key",
	    .letter = 'k',
	    .value = "KEY",
	    .text = "with --to-exchange: their routing key; each its own if not given" },
	END_OF_TABLE,
};

static const struct cli_option user_options[] = {
	{ .name = "tags",
	    .value = "TAG,...",
	    .text = "administrator, monitoring, policymaker, management or others" },
	{ .name = "new-password",
	    .value = "WORD",
	    .env = "HERMES_NEW_PASSWORD",
	    .text = "the password; others on the machine can read it off the command line, from "
	            "the environment they cannot" },
	{ .name = "password-stdin", .text = "the password is a line on standard input" },
	{ .name = "no-password", .text = "no password lets that user in; a client certificate may" },
	{ .name = "password-hash",
	    .value = "BASE64",
	    .text = "a hash instead of the password, such as another node exports it" },
	{ .name = "hashing-algorithm",
	    .value = "NAME",
	    .def = "sha256",
	    .text = "how that hash was made: sha256, sha512, md5, or the name that an export has" },
	{ .name = "max-connections",
	    .value = "N|none",
	    .text = "how many connections the user may have; none: as many as it likes" },
	{ .name = "max-channels",
	    .value = "N|none",
	    .text = "how many channels on all of them; none: as many as it likes" },
	END_OF_TABLE,
};

static const struct cli_option vhost_set_options[] = {
	{ .name = "description", .value = "TEXT", .text = "what it is for" },
	{ .name = "tags", .value = "TAG,...", .text = "words that mean something to you" },
	{ .name = "default-queue-type",
	    .value = "TYPE",
	    .text = "type of queues that are declared without one: classic or quorum" },
	{ .name = "max-connections",
	    .value = "N|none",
	    .text = "how many connections may be open in it; none: no limit" },
	{ .name = "max-queues",
	    .value = "N|none",
	    .text = "how many queues may be in it; none: no limit" },
	{ .name = "tracing",
	    .value = "on|off",
	    .text = "copies of all its messages to the exchange amq.rabbitmq.trace" },
	END_OF_TABLE,
};

static const struct cli_option parameter_options[] = {
	{ .name = "global", .text = "of no component and no vhost" },
	END_OF_TABLE,
};

static const struct cli_option permission_options[] = {
	{ .name = "topic", .text = "routing keys of topic exchanges" },
	{ .name = "exchange", .value = "NAME", .text = "with --topic: which exchange" },
	END_OF_TABLE,
};

static const struct cli_option policy_options[] = {
	{ .name = "operator", .text = "operators' policies, which stand above the others" },
	{ .name = "set",
	    .letter = 's',
	    .value = "KEY=VALUE",
	    .repeats = true,
	    .text = "one key of the definition; a VALUE that is JSON is that, any other is text" },
	{ .name = "definition", .value = "JSON", .text = "the definition as a JSON object" },
	{ .name = "apply-to",
	    .value = "WHAT",
	    .def = "all",
	    .text = "queues, classic_queues, quorum_queues, exchanges or all" },
	{ .name = "priority",
	    .value = "N",
	    .def = "0",
	    .text = "of those that match, the one with the highest counts" },
	END_OF_TABLE,
};

static const struct cli_option apply_options[] = {
	{ .name = "vhost",
	    .value = "NAME",
	    .text = "FILE was exported of one virtual host, and goes into this one" },
	{ .name = "yes", .letter = 'y', .text = "make what is new or changed without asking" },
	{ .name = "prune",
	    .text = "remove what the node has and the file has not, of kinds that the file lists; "
	            "asks, too" },
	{ .name = "yes-prune", .text = "remove it without asking" },
	{ .name = "json", .text = "the difference as JSON, without asking" },
	END_OF_TABLE,
};

static const struct cli_option drain_options[] = {
	{ .name = "wait",
	    .letter = 'w',
	    .value = "TIME",
	    .text = "at most so long (such as 5m); as long as it takes if not given" },
	{ .name = "no-wait", .text = "do not wait: 'hermes status' shows how far it is" },
	{ .name = "reason",
	    .value = "TEXT",
	    .text = "what clients are told, in at most 200 bytes" },
	{ .name = "json", .text = "the state in the end as JSON" },
	END_OF_TABLE,
};

static const struct cli_option definitions_options[] = {
	{ .name = "vhost",
	    .value = "NAME",
	    .text = "of this virtual host only, or into it, without users" },
	END_OF_TABLE,
};

static const struct cli_option import_options[] = {
	{ .name = "vhost",
	    .value = "NAME",
	    .text = "of this virtual host only, or into it, without users" },
	{ .name = "json", .text = "what could not be made, and why, as JSON" },
	END_OF_TABLE,
};

static const struct cli_option version_options[] = {
	{ .name = "json", .text = "as one JSON object" },
	END_OF_TABLE,
};

#endif
