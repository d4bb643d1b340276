/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/other_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"

#define NO_CLUSTER "there are no clusters yet: a node stands by itself"
#define NO_PLUGINS "there are no plugins: what there is is built in"
#define NO_ERLANG "there is no Erlang here"
#define NO_FLAGS "what RabbitMQ has feature flags for is always there"
#define OVER_HTTP "there is no command for it; over HTTP it is "
#define PREFIX \
	"that stands before no command here: 'hermes list queues', and 'hermes help' shows all"

static const struct other_name {
	const char *name;
	const char *here; /* the command, or in a sentence why there is none */
} names[] = {
	/* users and what they may do */
	{ "add_user", "hermes user add NAME" },
	{ "authenticate_user", "hermes status --user NAME" },
	{ "change_password", "hermes user passwd NAME" },
	{ "clear_password", "hermes user passwd NAME --no-password" },
	{ "delete_user", "hermes user delete NAME" },
	{ "list_users", "hermes list users" },
	{ "set_user_tags", "hermes user set NAME --tags TAG,..." },
	{ "set_user_limits", "hermes user set NAME --max-connections N --max-channels N" },
	{ "clear_user_limits", "hermes user set NAME --max-connections none" },
	{ "list_user_limits", "hermes list user-limits" },
	{ "set_permissions", "hermes permission set USER CONFIGURE WRITE READ --vhost NAME" },
	{ "clear_permissions", "hermes permission delete USER --vhost NAME" },
	{ "list_permissions", "hermes list permissions --vhost NAME" },
	{ "list_user_permissions", "hermes list permissions" },
	{ "set_topic_permissions",
	    "hermes permission set USER WRITE READ --topic --exchange NAME --vhost NAME" },
	{ "clear_topic_permissions", "hermes permission delete USER --topic --vhost NAME" },
	{ "list_topic_permissions", "hermes list topic-permissions --vhost NAME" },
	{ "list_user_topic_permissions", "hermes list topic-permissions" },
	{ "hash_password",
	    "there is no command for it; 'hermes list users --columns name,password_hash' shows "
	    "hashes" },
	/* virtual hosts */
	{ "add_vhost", "hermes vhost add NAME" },
	{ "delete_vhost", "hermes vhost delete NAME" },
	{ "list_vhosts", "hermes list vhosts" },
	{ "update_vhost_metadata", "hermes vhost set NAME --description TEXT --tags TAG,..." },
	{ "set_vhost_tags", "hermes vhost set NAME --tags TAG,..." },
	{ "set_vhost_limits", "hermes vhost set NAME --max-connections N --max-queues N" },
	{ "clear_vhost_limits", "hermes vhost set NAME --max-connections none --max-queues none" },
	{ "list_vhost_limits", "hermes list vhost-limits" },
	{ "restart_vhost", "a virtual host is never down by itself" },
	{ "trace_on", "hermes vhost set NAME --tracing on" },
	{ "trace_off", "hermes vhost set NAME --tracing off" },
	/* policies and parameters */
	{ "set_policy", "hermes policy set NAME PATTERN --definition JSON --vhost NAME" },
	{ "clear_policy", "hermes policy delete NAME --vhost NAME" },
	{ "list_policies", "hermes list policies --vhost NAME" },
	{ "set_operator_policy",
	    "hermes policy set NAME PATTERN --definition JSON --operator --vhost NAME" },
	{ "clear_operator_policy", "hermes policy delete NAME --operator --vhost NAME" },
	{ "list_operator_policies", "hermes list operator-policies --vhost NAME" },
	{ "set_parameter", "hermes parameter set COMPONENT NAME VALUE --vhost NAME" },
	{ "clear_parameter", "hermes parameter delete COMPONENT NAME --vhost NAME" },
	{ "list_parameters", "hermes list parameters --vhost NAME" },
	{ "set_global_parameter", "hermes parameter set NAME VALUE --global" },
	{ "clear_global_parameter", "hermes parameter delete NAME --global" },
	{ "list_global_parameters", "hermes list global-parameters" },
	{ "set_cluster_name", "hermes parameter set cluster_name NAME --global" },
	/* queues and what is connected */
	{ "list_queues", "hermes list queues --columns name,messages" },
	{ "list_exchanges", "hermes list exchanges" },
	{ "list_bindings", "hermes list bindings" },
	{ "list_connections", "hermes list connections" },
	{ "list_channels", "hermes list channels" },
	{ "list_consumers", "hermes list consumers" },
	{ "list_unresponsive_queues", "no queue can hang by itself" },
	{ "declare_queue", "hermes declare queue NAME" },
	{ "delete_queue", "hermes delete queue NAME" },
	{ "purge_queue", "hermes purge QUEUE" },
	{ "quorum_status", "hermes list queues --columns name,type,leader,members,online" },
	{ "close", "hermes delete connection NAME" },
	{ "close_connection", "hermes delete connection NAME --reason TEXT" },
	{ "close_all_connections",
	    "there is no command for it; 'hermes delete connection NAME' closes one" },
	{ "close_all_user_connections", OVER_HTTP "DELETE /api/connections/username/USER" },
	{ "sync_queue", "there are no mirrored queues" },
	{ "cancel_sync_queue", "there are no mirrored queues" },
	/* definitions */
	{ "export_definitions", "hermes export FILE" },
	{ "import_definitions", "hermes import FILE" },
	/* the node */
	{ "show", "hermes status" },
	{ "overview", "hermes status" },
	{ "ping", "hermes status" },
	{ "report", "hermes status" },
	{ "environment", "hermes server --check --config FILE" },
	{ "listeners", "hermes status" },
	{ "alarms", "hermes status" },
	{ "memory_breakdown", "hermes status" },
	{ "node_health_check", "hermes status" },
	{ "check_alarms", "hermes status" },
	{ "check_local_alarms", "hermes status" },
	{ "check_running", "hermes status" },
	{ "check_local_running", "hermes status" },
	{ "check_port_connectivity", "hermes status" },
	{ "check_virtual_hosts", "hermes status" },
	{ "is_running", "hermes status" },
	{ "is_booting", "hermes status" },
	{ "cluster_status", "hermes status" },
	{ "server_version", "hermes status" },
	{ "observer", "hermes top --once" },
	{ "wait", "hermes status" },
	{ "revive", "hermes resume" },
	{ "await_startup", "hermes status" },
	{ "await_online_nodes", "hermes status" },
	{ "start", "hermes server" },
	{ "start_app", "hermes server" },
	{ "stop", "SIGTERM stops a node: 'systemctl stop hermes', or kill with its process id" },
	{ "stop_app",
	    "SIGTERM stops a node: 'systemctl stop hermes', or kill with its process id" },
	{ "shutdown",
	    "SIGTERM stops a node: 'systemctl stop hermes', or kill with its process id" },
	{ "reset", "stop the node, remove its data folder, start it again" },
	{ "force_reset", "stop the node, remove its data folder, start it again" },
	{ "force_boot", NO_CLUSTER },
	{ "rotate_logs", "SIGHUP opens the log file again" },
	{ "log_location", "log.file of the settings says where the log is" },
	{ "set_log_level", "set log.level in the settings, then SIGHUP" },
	{ "set_disk_free_limit", "set disk.min_free in the settings and start the node again" },
	{ "set_vm_memory_high_watermark",
	    "set memory.limit in the settings and start the node again" },
	{ "list_feature_flags", NO_FLAGS },
	{ "enable_feature_flag", NO_FLAGS },
	{ "join_cluster", NO_CLUSTER },
	{ "forget_cluster_node", NO_CLUSTER },
	{ "change_cluster_node_type", NO_CLUSTER },
	{ "rename_cluster_node", NO_CLUSTER },
	{ "update_cluster_nodes", NO_CLUSTER },
	{ "add_member", NO_CLUSTER },
	{ "delete_member", NO_CLUSTER },
	{ "grow", NO_CLUSTER },
	{ "shrink", NO_CLUSTER },
	{ "rebalance", NO_CLUSTER },
	{ "eval", NO_ERLANG },
	{ "eval_file", NO_ERLANG },
	{ "remote_shell", NO_ERLANG },
	{ "enable", NO_PLUGINS },
	{ "disable", NO_PLUGINS },
	{ "rabbitmqctl", PREFIX },
	{ "rabbitmqadmin", PREFIX },
	{ "rabbitmq_diagnostics", PREFIX },
	{ "rabbitmq_queues", PREFIX },
	{ "rabbitmq_plugins", NO_PLUGINS },
	{ "rabbitmq_server", "hermes server" },
	/* things that are verbs' objects here, and verbs that stand behind what they are for */
	{ "add",
	    "it stands behind what is added: 'hermes user add NAME', 'hermes vhost add NAME'" },
	{ "create", "'hermes declare' makes queues and exchanges, 'hermes vhost add' and 'hermes "
	            "user add' the others" },
	{ "remove", "'hermes delete' deletes queues and exchanges, 'hermes vhost delete' and the "
	            "like the others" },
	{ "set", "it stands behind what is set: 'hermes policy set', 'hermes permission set'" },
	{ "queues", "hermes list queues" },
	{ "exchange", "hermes declare exchange NAME" },
	{ "exchanges", "hermes list exchanges" },
	{ "binding", "hermes bind SOURCE DESTINATION" },
	{ "bindings", "hermes list bindings" },
	{ "connections", "hermes list connections" },
	{ "channels", "hermes list channels" },
	{ "consumers", "hermes list consumers" },
};

static const struct other_name *
find(const char *word)
{
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(names[i].name, word) == 0)
			return &names[i];
	return NULL;
}

static const struct other_name *
find_nearest(const char *word)
{
	const char *words[COUNT_OF(names)], *nearest;

	for (size_t i = 0; i < COUNT_OF(names); i++)
		words[i] = names[i].name;
	nearest = suggest_nearest(word, words, COUNT_OF(names));
	return nearest != NULL ? find(nearest) : NULL;
}

char *
other_name_explain(const char *word, bool near)
{
	const struct other_name *n;
	char *name = xstrdup(word);

	for (char *p = name; *p != '\0'; p++)
		if (*p == '-')
			*p = '_';
	n = find(name);
	if (n != NULL)
		near = false;
	else if (near && strchr(name, '_') != NULL) /* to a short word many are near */
		n = find_nearest(name);
	free(name);
	if (n == NULL)
		return NULL;
	return xasprintf(strncmp(n->here, "hermes ", 7) == 0 ? "'%s' is '%s' here" : "'%s': %s",
	    near ? n->name : word, n->here);
}

const char *
other_option_explain(const char *name)
{
	static const struct {
		const char *name, *text;
	} options[] = {
		{ "p", "a virtual host is --vhost NAME, a password is in --password-file FILE" },
		{ "V", "a virtual host is --vhost NAME" },
		{ "H", "a node is --url http://HOST:PORT" },
		{ "P", "a node is --url http://HOST:PORT" },
		{ "N", "a node is --url http://HOST:PORT" },
		{ "host", "a node is --url http://HOST:PORT" },
		{ "hostname", "a node is --url http://HOST:PORT" },
		{ "port", "a node is --url http://HOST:PORT" },
		{ "node", "a node is --url http://HOST:PORT" },
		{ "username", "it is --user NAME" },
		{ "formatter", "it is --json, or a table" },
		{ "format", "it is --json, or a table" },
		{ "pre-hashed-password", "it is --password-hash BASE64" },
	};

	for (size_t i = 0; i < COUNT_OF(options); i++)
		if (strcmp(options[i].name, name) == 0)
			return options[i].text;
	return NULL;
}
