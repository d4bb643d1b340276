/* SPDX-License-Identifier: Apache-2.0
 * The one table of commands. */
#include "cli/cli_options.h"
#include "cli/command_options.h"

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
	    .text =
	        "that user's password; others on the machine can read it off the command line" },
	{ .name = "password-file",
	    .value = "FILE",
	    .env = "HERMES_PASSWORD_FILE",
	    .text = "the password is its first line; without any password a terminal is asked" },
	{ .name = "ca-file",
	    .value = "FILE",
	    .env = "HERMES_CA_FILE",
	    .text =
	        "authorities of the node's certificate, for https and amqps; else the system's" },
	{ .name = "cert-file",
	    .value = "FILE",
	    .env = "HERMES_CERT_FILE",
	    .text = "certificate to show, where the node asks for one" },
	{ .name = "key-file",
	    .value = "FILE",
	    .env = "HERMES_KEY_FILE",
	    .text = "its key; not given: in the same file" },
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
	    .help = "Exit status 0 only if the node is healthy; one that is drained for "
	            "maintenance is.\n"
	            "  hermes status --url http://broker-1:15672 --user app --password secret\n",
	    .options = status_options,
	    .client_http = true },
	{ .name = "top",
	    .run = cmd_top,
	    .usage = "[OPTIONS]",
	    .text = "live view of a node and its queues",
	    .help =
	        "The node's line, and the queues with the most messages; keys sort them by other "
	        "figures,\n"
	        "q ends. Rates are over the last seconds.\n"
	        "  hermes top --sort out\n"
	        "  hermes top --once --count 5\n",
	    .options = top_options,
	    .client_http = true },
	{ .name = "publish",
	    .run = cmd_publish,
	    .usage = "--key KEY [OPTIONS]",
	    .text = "publish a message",
	    .help = "Waits until the node has confirmed it, without end while publishers are held\n"
	            "back by an alarm or maintenance; 'timeout 30 hermes publish ...' gives up. A\n"
	            "message that no queue takes is an error.\n"
	            "  hermes publish --declare --key hello --body 'Hello world'\n"
	            "  hermes publish --exchange orders --key order.created --file order.json "
	            "--persistent\n",
	    .options = publish_options,
	    .client_amqp = true },
	{ .name = "get",
	    .run = cmd_get,
	    .usage = "QUEUE [OPTIONS]",
	    .text = "take messages from a queue",
	    .help =
	        "Prints each body and a newline; on a terminal, what it would act upon is shown "
	        "as \\x1b.\n"
	        "Exit status 1 if the queue is empty or paused.\n"
	        "  hermes get hello\n"
	        "  hermes get hello --count 10 --requeue --json\n",
	    .args_min = 1,
	    .args_max = 1,
	    .options = get_options,
	    .client_amqp = true },
	{ .name = "consume",
	    .run = cmd_consume,
	    .usage = "QUEUE | --exchange NAME [OPTIONS]",
	    .text = "receive messages as they come",
	    .help = "Prints each body and a newline, as get does, until Ctrl-C. A message is "
	            "acknowledged "
	            "once\n"
	            "it is written. With --exchange nobody else loses a message by it.\n"
	            "  hermes consume orders --count 10\n"
	            "  hermes consume --exchange events --key 'order.#' --json\n",
	    .args_max = 1,
	    .options = consume_options,
	    .client_amqp = true },
	{ .name = "list",
	    .run = cmd_list,
	    .usage = "WHAT [OPTIONS]",
	    .text = "list queues, exchanges, bindings, connections and others",
	    .help = "WHAT is queues, exchanges, bindings, connections, channels, consumers, users, "
	            "vhosts,\n"
	            "permissions, topic-permissions, policies, operator-policies, parameters, "
	            "global-parameters,\n"
	            "vhost-limits, user-limits, dead-letters (the queues that have some) or jobs.\n"
	            "On a terminal columns are aligned, else parted by tabs. What a terminal would "
	            "act\n"
	            "upon is shown as \\x1b: --json has names as they are.\n"
	            "  hermes list queues\n"
	            "  hermes list consumers --vhost shop --columns queue.name,prefetch_count\n",
	    .args_min = 1,
	    .args_max = 16,
	    .options = list_options,
	    .shared = { only_vhost_options },
	    .client_http = true },
	{ .name = "declare",
	    .run = cmd_declare,
	    .usage = "queue|exchange NAME [OPTIONS]",
	    .text = "make a queue or an exchange",
	    .help = "One that is there and the same is fine; one that differs is an error.\n"
	            "  hermes declare queue orders --type quorum --argument x-max-length=1000\n"
	            "  hermes declare exchange events --type topic\n",
	    .args_min = 2,
	    .args_max = 2,
	    .options = declare_options,
	    .shared = { argument_options, vhost_options },
	    .client_http = true },
	{ .name = "delete",
	    .run = cmd_delete,
	    .usage = "queue|exchange|connection NAME [OPTIONS]",
	    .text = "delete a queue or an exchange, close a connection",
	    .help =
	        "A queue's messages are gone with it. What a connection held goes back to its "
	        "queues.\n"
	        "  hermes delete queue orders --if-empty\n"
	        "  hermes delete connection '10.0.0.7:41234 -> 10.0.0.1:5672' --reason upgrade\n",
	    .args_min = 2,
	    .args_max = 2,
	    .options = delete_options,
	    .shared = { vhost_options },
	    .client_http = true },
	{ .name = "bind",
	    .run = cmd_bind,
	    .usage = "SOURCE DESTINATION [OPTIONS]",
	    .text = "bind a queue or an exchange to an exchange",
	    .help = "SOURCE is an exchange, DESTINATION a queue.\n"
	            "  hermes bind events orders --key 'order.#'\n"
	            "  hermes bind events audit --to-exchange --key '#'\n",
	    .args_min = 2,
	    .args_max = 2,
	    .options = bind_options,
	    .shared = { argument_options, vhost_options },
	    .client_http = true },
	{ .name = "unbind",
	    .run = cmd_unbind,
	    .usage = "SOURCE DESTINATION [OPTIONS]",
	    .text = "undo a binding",
	    .help = "The one with this key and these arguments, and no other.\n"
	            "  hermes unbind events orders --key 'order.#'\n",
	    .args_min = 2,
	    .args_max = 2,
	    .options = bind_options,
	    .shared = { argument_options, vhost_options },
	    .client_http = true },
	{ .name = "purge",
	    .run = cmd_purge,
	    .usage = "QUEUE [OPTIONS]",
	    .text = "drop the messages of a queue",
	    .help = "Those that are ready: what a consumer holds unacknowledged stays.\n"
	            "  hermes purge orders --vhost shop\n",
	    .args_min = 1,
	    .args_max = 1,
	    .shared = { vhost_options },
	    .client_http = true },
	{ .name = "queue",
	    .run = cmd_queue,
	    .usage = "pause|resume NAME [OPTIONS]",
	    .text = "stop the deliveries of a queue, and let them go on",
	    .help = "Publishers go on, and consumers keep their places. A durable queue is paused "
	            "after a\n"
	            "restart, too; 'hermes list queues' shows which are.\n"
	            "  hermes queue pause orders\n"
	            "  hermes queue resume orders\n",
	    .args_min = 2,
	    .args_max = 2,
	    .shared = { vhost_options },
	    .client_http = true },
	{ .name = "move",
	    .run = cmd_move,
	    .usage = "QUEUE DESTINATION [OPTIONS]",
	    .text = "move messages to another queue, or to an exchange",
	    .help =
	        "The node moves them, and goes on when the command is ended. Each message is in "
	        "one of the\n"
	        "two, whatever happens. Exit status 1 if some stay, with the reason.\n"
	        "  hermes move orders orders-2 --count 1000 --rate 100\n"
	        "  hermes move parked events --to-exchange --key order.created\n",
	    .args_min = 2,
	    .args_max = 2,
	    .options = move_options,
	    .shared = { job_options, vhost_options },
	    .client_http = true },
	{ .name = "replay",
	    .run = cmd_replay,
	    .usage = "QUEUE [ID...] [OPTIONS]",
	    .text = "send dead letters back to where they came from",
	    .help =
	        "To the exchange to which each was published, as it was then. All of a queue, or "
	        "those with\n"
	        "these IDs, which the console and GET /api/hermes/dead-letters show. Exit status "
	        "1 if some\n"
	        "stay, with the reason. 'hermes list dead-letters' shows the queues.\n"
	        "  hermes replay orders-dead --rate 50\n",
	    .args_min = 1,
	    .args_max = 1001,
	    .shared = { job_options, vhost_options },
	    .client_http = true },
	{ .name = "jobs",
	    .run = cmd_jobs,
	    .usage = "[list|cancel ID] [OPTIONS]",
	    .text = "list and cancel moves and replays",
	    .help = "Those under way, and those that ended within the hour. What was moved stays "
	            "moved.\n"
	            "  hermes jobs\n"
	            "  hermes jobs cancel 3\n",
	    .args_max = 2,
	    .shared = { list_options },
	    .client_http = true },
	{ .name = "user",
	    .run = cmd_user,
	    .usage = "add|set|passwd|delete|list [NAME] [OPTIONS]",
	    .text = "add, change, delete and list users",
	    .help = "set changes the tags, passwd the password. A user may do nothing in a vhost "
	            "before\n"
	            "'hermes permission set'. --user and --password are who you log in as.\n"
	            "'hermes list user-limits' shows limits.\n"
	            "A user of the settings has their password and tags again after a start or a "
	            "SIGHUP.\n"
	            "  hermes user add app --password-stdin < secret\n"
	            "  hermes user set app --tags monitoring --max-connections 100\n"
	            "  hermes user passwd app\n",
	    .args_min = 1,
	    .args_max = 2,
	    .options = user_options,
	    .shared = { list_options },
	    .client_http = true },
	{ .name = "vhost",
	    .run = cmd_vhost,
	    .usage = "add|set|delete|list [NAME] [OPTIONS]",
	    .text = "add, change, delete and list virtual hosts",
	    .help = "delete takes all that is in it, and closes its connections. What set is not "
	            "told stays.\n"
	            "'hermes list vhost-limits' shows limits.\n"
	            "  hermes vhost add shop --description 'orders' --default-queue-type quorum\n"
	            "  hermes vhost set shop --max-queues 1000 --max-connections none\n",
	    .args_min = 1,
	    .args_max = 2,
	    .options = vhost_set_options,
	    .shared = { list_options },
	    .client_http = true },
	{ .name = "permission",
	    .run = cmd_permission,
	    .usage = "set|delete|list [USER] [CONFIGURE WRITE READ] [OPTIONS]",
	    .text = "set, delete and list permissions",
	    .help = "Three regular expressions of names: what the user may declare and delete, "
	            "write to, and\n"
	            "read from. An empty one matches nothing. With --topic two, of routing keys.\n"
	            "  hermes permission set app '^app-' '.*' '^app-' --vhost shop\n"
	            "  hermes permission set app '^app\\.' '.*' --topic --exchange events\n",
	    .args_min = 1,
	    .args_max = 5,
	    .options = permission_options,
	    .shared = { list_options, only_vhost_options },
	    .client_http = true },
	{ .name = "policy",
	    .run = cmd_policy,
	    .usage = "set|delete|list [NAME] [PATTERN] [OPTIONS]",
	    .text = "set, delete and list policies",
	    .help = "PATTERN is a regular expression of the names of queues or exchanges.\n"
	            "  hermes policy set limit '^order' --set max-length=10000 --apply-to queues\n"
	            "  hermes policy list --operator\n",
	    .args_min = 1,
	    .args_max = 3,
	    .options = policy_options,
	    .shared = { list_options, only_vhost_options },
	    .client_http = true },
	{ .name = "parameter",
	    .run = cmd_parameter,
	    .usage = "set|delete|list [COMPONENT] [NAME] [VALUE] [OPTIONS]",
	    .text = "set, delete and list runtime parameters",
	    .help =
	        "A VALUE that is JSON is that, any other is text. With --global it is NAME VALUE. "
	        "Limits\n"
	        "of vhosts and operator policies are shown as parameters, too.\n"
	        "  hermes parameter set cluster_name orders --global\n"
	        "  hermes parameter list --vhost shop\n",
	    .args_min = 1,
	    .args_max = 4,
	    .options = parameter_options,
	    .shared = { list_options, only_vhost_options },
	    .client_http = true },
	{ .name = "export",
	    .run = cmd_export,
	    .usage = "[FILE] [OPTIONS]",
	    .text = "write the definitions of a node",
	    .help =
	        "Users, vhosts, permissions, policies, parameters, queues, exchanges and "
	        "bindings as JSON,\n"
	        "no messages; to standard output without FILE. Hashes of passwords are in it: "
	        "a new file\n"
	        "is readable for you only. A file that is there is replaced. FILE.gz is packed.\n"
	        "  hermes export definitions.json\n",
	    .args_max = 1,
	    .options = definitions_options,
	    .client_http = true },
	{ .name = "import",
	    .run = cmd_import,
	    .usage = "[FILE] [OPTIONS]",
	    .text = "read definitions into a node",
	    .help =
	        "Those of RabbitMQ, too, plain or packed with gzip; from standard input without "
	        "FILE.\n"
	        "Each object is tried: those that cannot be made are named with the reason, the "
	        "others\n"
	        "are made, and the exit status is 1. What was exported of one virtual host needs "
	        "--vhost.\n"
	        "  hermes import definitions.json\n"
	        "  hermes import shop.json --vhost shop-copy\n",
	    .args_max = 1,
	    .options = import_options,
	    .client_http = true },
	{ .name = "apply",
	    .run = cmd_apply,
	    .usage = "FILE [OPTIONS]",
	    .text = "show how definitions differ from a node, and make it so",
	    .help =
	        "FILE is what export writes, or a part of it; - is standard input. What is new "
	        "(+) or\n"
	        "changed (~) is sent once it is confirmed; what the node has besides stays without "
	        "--prune.\n"
	        "A queue or exchange that differs (!) cannot be changed. Exit status 0 only if the "
	        "node is\n"
	        "as the file says, so that without a terminal and --yes it tells whether it is.\n"
	        "  hermes apply definitions.json\n"
	        "  hermes apply definitions.json --yes --prune --yes-prune\n",
	    .args_min = 1,
	    .args_max = 1,
	    .options = apply_options,
	    .client_http = true },
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
	        "  hermes snapshot /var/backups/hermes/monday\n",
	    .args_min = 1,
	    .args_max = 1,
	    .client_http = true },
	{ .name = "restore",
	    .run = cmd_restore,
	    .usage = "DIR [OPTIONS]",
	    .text = "put a backup into an empty data folder",
	    .help = "DIR is a snapshot; it is copied and stays as it is. The copy is checked as\n"
	            "check-data does it. No node may run on the data folder.\n"
	            "  hermes restore /var/backups/hermes/monday --data ./data\n",
	    .args_min = 1,
	    .args_max = 1,
	    .options = restore_options },
	{ .name = "check-data",
	    .run = cmd_check_data,
	    .usage = "DIR [OPTIONS]",
	    .text = "say whether a data folder is whole",
	    .help = "Reads all of a data folder that no node uses, or of a snapshot, and changes "
	            "nothing.\n"
	            "Exit status 1 if it is damaged, in use, or of a format newer than this "
	            "version reads.\n"
	            "A node starts on a damaged folder all the same, without what is lost. A newer "
	            "version\n"
	            "reads the folders of all before: run its check-data before the upgrade.\n"
	            "  hermes check-data ./data\n",
	    .args_min = 1,
	    .args_max = 1,
	    .options = check_data_options },
	{ .name = "drain",
	    .run = cmd_drain,
	    .usage = "[OPTIONS]",
	    .text = "maintenance: publishers wait, queues are emptied",
	    .help = "Publishers get connection.blocked with the reason, consumers go on. Waits "
	            "until nothing\n"
	            "is left that somebody takes, and names what nobody takes; then the node can "
	            "be stopped.\n"
	            "Exit status 1 if the time is up before. Then, and after Ctrl-C, the node "
	            "stays drained,\n"
	            "until hermes resume or a restart. The user has to be an administrator.\n"
	            "  hermes drain --wait 5m --reason 'upgrade, back in ten minutes'\n",
	    .options = drain_options,
	    .client_http = true },
	{ .name = "resume",
	    .run = cmd_resume,
	    .usage = "[OPTIONS]",
	    .text = "end of maintenance: publishers go on",
	    .help = "Exit status 0 also if the node was not drained. The user has to be an "
	            "administrator.\n",
	    .client_http = true },
	{ .name = "bench",
	    .run = cmd_bench,
	    .usage = "[OPTIONS]",
	    .text = "put load on a broker, and measure it",
	    .help = "Publishes to queues of its own, consumes from them and deletes them: rates, "
	            "latencies\n"
	            "from publish to delivery and to the confirm, and whether each message came "
	            "once, in\n"
	            "order and as it was; exit status 1 if not. With any broker that speaks AMQP "
	            "0-9-1. With\n"
	            "--rate a message counts from when it was due, so that stalls show. Ctrl-C "
	            "ends it with\n"
	            "the figures so far. Publisher and consumer i take queue i, beginning anew "
	            "behind the\n"
	            "last. Where it is killed its queues, hermes-bench-..., go an hour later.\n"
	            "  hermes bench --duration 30s --size 1KiB --persistent --publishers 4\n"
	            "  hermes bench --rate 20000 --queues 10 --queue-type quorum --json\n",
	    .options = bench_options,
	    .client_amqp = true },
	{ .name = "completion",
	    .run = cmd_completion,
	    .usage = "bash",
	    .text = "print a script by which the shell completes these commands",
	    .help = "'make install' puts it where bash looks. Otherwise, in ~/.bashrc:\n"
	            "  source <(hermes completion bash)\n",
	    .args_min = 1,
	    .args_max = 1 },
	{ .name = "help",
	    .run = cmd_help,
	    .usage = "[COMMAND|KEY]",
	    .text = "explain a command, or a key of the settings",
	    .help = "'hermes help settings' shows all keys, 'hermes help tls' those of a section.\n"
	            "  hermes help publish\n"
	            "  hermes help store.sync\n",
	    .args_max = 2 },
	{ .name = "version",
	    .run = cmd_version,
	    .usage = "[OPTIONS]",
	    .text = "show the version, and those of libraries",
	    .options = version_options },
	LATER("trace", "MESSAGE", "show the life of a message"),
	END_OF_TABLE,
};
