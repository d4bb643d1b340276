/* SPDX-License-Identifier: Apache-2.0
 * The one table of commands, and the options of each. */
#include "cli/cli_options.h"

#define END_OF_TABLE         \
	{                    \
		.name = NULL \
	}
#define LATER(n, u, t)                           \
	{                                        \
		.name = n, .usage = u, .text = t \
	}

const struct cli_option cli_common_options[] = {
	{ .name = "help", .letter = 'h', .text = "show this" },
	END_OF_TABLE,
};

const struct cli_option cli_http_options[] = {
	{ .name = "url",
	    .value = "URL",
	    .env = "HERMES_URL",
	    .def = "http://127.0.0.1:15672",
	    .text = "the node's HTTP API" },
	END_OF_TABLE,
};

const struct cli_option cli_amqp_options[] = {
	{ .name = "amqp",
	    .value = "URL",
	    .env = "HERMES_AMQP",
	    .text = "the node's AMQP address: amqp://USER:PASSWORD@HOST:PORT/VHOST "
	            "(default: amqp://guest:guest@127.0.0.1:5672/)" },
	{ .name = "vhost",
	    .value = "NAME",
	    .env = "HERMES_VHOST",
	    .text = "virtual host; / if nothing says otherwise" },
	END_OF_TABLE,
};

const struct cli_option cli_client_options[] = {
	{ .name = "user",
	    .letter = 'u',
	    .value = "NAME",
	    .env = "HERMES_USER",
	    .text = "who to log in as; guest if nothing says otherwise" },
	{ .name = "password",
	    .value = "WORD",
	    .env = "HERMES_PASSWORD",
	    .text = "that user's password" },
	END_OF_TABLE,
};

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
	    .text = "IP address for AMQP and HTTP" },
	{ .name = "port", .letter = 'p', .value = "PORT", .text = "port for AMQP; 0: none" },
	{ .name = "management-port", .value = "PORT", .text = "port for the HTTP API; 0: none" },
	{ .name = "prometheus-port",
	    .value = "PORT",
	    .text = "port for metrics; comes with a later version" },
	{ .name = "pid-file",
	    .value = "FILE",
	    .text = "written once the node is ready, removed at its end" },
	{ .name = "log-level", .value = "LEVEL", .text = "error, warning, info or debug" },
	{ .name = "check", .text = "read the settings, say what is wrong, start nothing" },
	END_OF_TABLE,
};

static const struct cli_option status_options[] = {
	{ .name = "json", .text = "as JSON" },
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

static const struct cli_option restore_options[] = {
	{ .name = "data",
	    .letter = 'd',
	    .value = "DIR",
	    .env = "HERMES_DATA_DIR",
	    .def = "/var/lib/hermes",
	    .text = "data folder, empty or not there yet" },
	END_OF_TABLE,
};

/* In the order in which help shows them. */
const struct cli_command cli_commands[] = {
	{ .name = "server",
	    .run = cmd_server,
	    .usage = "[OPTIONS]",
	    .text = "run the node in the foreground",
	    .help = "Options stand above the environment, the environment above the settings.\n"
	            "SIGTERM and SIGINT stop the node, SIGHUP reads the settings again.\n"
	            "  hermes server --data ./data\n"
	            "  hermes server --check --config hermes.yml\n",
	    .options = server_options },
	{ .name = "status",
	    .run = cmd_status,
	    .usage = "[OPTIONS]",
	    .text = "show the state of a node",
	    .help = "Exit status 0 only if the node is healthy.\n"
	            "  hermes status --url http://broker-1:15672 --user app --password secret\n",
	    .options = status_options,
	    .client_http = true },
	{ .name = "publish",
	    .run = cmd_publish,
	    .usage = "--key KEY [OPTIONS]",
	    .text = "publish a message",
	    .help = "Waits until the node has confirmed it. A message that no queue takes is an "
	            "error.\n"
	            "  hermes publish --declare --key hello --body 'Hello world'\n"
	            "  hermes publish --exchange orders --key order.created --file order.json "
	            "--persistent\n",
	    .options = publish_options,
	    .client_amqp = true },
	{ .name = "get",
	    .run = cmd_get,
	    .usage = "QUEUE [OPTIONS]",
	    .text = "take messages from a queue",
	    .help = "Prints each body and a newline. Exit status 1 if the queue is empty.\n"
	            "  hermes get hello\n"
	            "  hermes get hello --count 10 --requeue --json\n",
	    .args_min = 1,
	    .args_max = 1,
	    .options = get_options,
	    .client_amqp = true },
	{ .name = "snapshot",
	    .run = cmd_snapshot,
	    .usage = "DIR [OPTIONS]",
	    .text = "back up a running node",
	    .help =
	        "The node copies its data as of now into DIR, a new folder on its machine, and "
	        "goes on\n"
	        "meanwhile; only one at a time. The user has to be an administrator. On the file\n"
	        "system of the data folder files of long queues are linked, which takes no space.\n"
	        "Keep a copy elsewhere.\n"
	        "  hermes snapshot /var/backups/hermes-1\n",
	    .args_min = 1,
	    .args_max = 1,
	    .client_http = true },
	{ .name = "restore",
	    .run = cmd_restore,
	    .usage = "DIR [OPTIONS]",
	    .text = "put a backup into an empty data folder",
	    .help = "DIR is a snapshot; it is copied and stays as it is. The copy is checked as\n"
	            "check-data does it. No node may run on the data folder.\n"
	            "  hermes restore /var/backups/hermes-1 --data ./data\n",
	    .args_min = 1,
	    .args_max = 1,
	    .options = restore_options },
	{ .name = "check-data",
	    .run = cmd_check_data,
	    .usage = "DIR",
	    .text = "say whether a data folder is whole",
	    .help =
	        "Reads all of a data folder that no node uses, or of a snapshot, and changes "
	        "nothing.\n"
	        "Exit status 1 if it is damaged. A node starts on a damaged folder all the same,\n"
	        "without what is lost.\n"
	        "  hermes check-data ./data\n",
	    .args_min = 1,
	    .args_max = 1 },
	{ .name = "help",
	    .run = cmd_help,
	    .usage = "[COMMAND]",
	    .text = "explain a command",
	    .args_max = 1 },
	{ .name = "version",
	    .run = cmd_version,
	    .usage = "",
	    .text = "show the version, and those of libraries" },
	LATER("consume", "QUEUE", "receive messages as they come"),
	LATER("list", "WHAT", "list queues, exchanges, bindings, connections and others"),
	LATER("declare", "WHAT", "make a queue or an exchange"),
	LATER("delete", "WHAT", "delete a queue or an exchange"),
	LATER("bind", "SOURCE DESTINATION", "bind a queue or an exchange to an exchange"),
	LATER("unbind", "SOURCE DESTINATION", "undo a binding"),
	LATER("purge", "QUEUE", "drop the messages of a queue"),
	LATER("user", "VERB", "add, set, delete and list users"),
	LATER("vhost", "VERB", "add, delete and list virtual hosts"),
	LATER("permission", "VERB", "set, delete and list permissions"),
	LATER("policy", "VERB", "set, delete and list policies"),
	LATER("export", "[FILE]", "write the definitions of a node"),
	LATER("import", "FILE", "read definitions into a node"),
	LATER("apply", "FILE", "show how definitions differ from a node, and make it so"),
	LATER("drain", "", "maintenance mode on"),
	LATER("resume", "", "maintenance mode off"),
	LATER("replay", "QUEUE", "send dead letters back to where they came from"),
	LATER("trace", "MESSAGE", "show the life of a message"),
	LATER("bench", "", "put load on a node"),
	LATER("top", "", "live view of a node"),
	END_OF_TABLE,
};
