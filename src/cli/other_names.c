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
#define NO_DEPRECATED "nothing that is there is deprecated"
#define NO_SECRETS \
	"no value of the settings is encrypted: '${VAR}' in them takes it from the environment"
#define LOG_TAIL "'journalctl -fu hermes', or 'tail -F' of log.file, shows the log as it grows"
#define CIPHERS \
	"'openssl ciphers -v' lists them; tls.min_version of the settings says what is taken"
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
	{ "list_policies_with_fallback", "hermes list policies --vhost NAME" },
	{ "set_permissions_globally",
	    "'hermes permission set USER CONFIGURE WRITE READ --vhost NAME', for each vhost" },
	{ "delete_vhosts_by_pattern", "'hermes vhost delete NAME' deletes one" },
	{ "peek", "hermes get QUEUE --requeue" },
	{ "stream_status", "there are no streams" },
	{ "consume_event_stream", "hermes consume --exchange amq.rabbitmq.event --key '#'" },
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
	{ "info", "hermes status" },
	{ "disk_info", "hermes status" },
	{ "rabbitmq_version", "hermes version" },
	{ "autocomplete", "hermes completion bash" },
	{ "suspend_listeners", "hermes drain" },
	{ "suspend_all_listeners", "hermes drain" },
	{ "resume_listeners", "hermes resume" },
	{ "resume_all_listeners", "hermes resume" },
	{ "check_port_listener", OVER_HTTP "GET /api/health/checks/port-listener/PORT" },
	{ "check_protocol_listener", OVER_HTTP "GET /api/health/checks/protocol-listener/NAME" },
	{ "check_certificate_expiration",
	    OVER_HTTP "GET /api/health/checks/certificate-expiration/30/days" },
	{ "check_if_node_is_quorum_critical",
	    OVER_HTTP "GET /api/health/checks/node-is-quorum-critical" },
	{ "check_if_node_is_mirror_sync_critical",
	    OVER_HTTP "GET /api/health/checks/node-is-mirror-sync-critical" },
	{ "list_node_auth_attempt_stats", OVER_HTTP "GET /api/auth/attempts/NODE" },
	{ "check_if_any_deprecated_features_are_used", NO_DEPRECATED },
	{ "list_deprecated_features", NO_DEPRECATED },
	{ "list_ciphers", CIPHERS },
	{ "cipher_suites", CIPHERS },
	{ "tls_versions", CIPHERS },
	{ "list_hashes", "management.password_hash of the settings says which one is used" },
	{ "list_network_interfaces", "'ip address' lists them" },
	{ "resolve_hostname", "'getent hosts NAME' does it" },
	{ "command_line_arguments", "'ps -o args -C hermes' shows them" },
	{ "os_env", "'systemctl show -p Environment hermes' shows it" },
	{ "directories", "hermes server --check --config FILE" },
	{ "get_data_dir", "hermes server --check --config FILE" },
	{ "encode", NO_SECRETS },
	{ "decode", NO_SECRETS },
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
	{ "log_tail", LOG_TAIL },
	{ "log_tail_stream", LOG_TAIL },
	{ "set_log_level", "set log.level in the settings, then SIGHUP" },
	{ "set_disk_free_limit", "set disk.min_free in the settings and start the node again" },
	{ "set_vm_memory_high_watermark",
	    "set memory.limit in the settings and start the node again" },
	{ "activate_free_disk_space_monitoring", "free disk space is always watched" },
	{ "deactivate_free_disk_space_monitoring", "free disk space is always watched" },
	{ "reclaim_quorum_memory", "memory is given back by itself" },
	{ "list_feature_flags", NO_FLAGS },
	{ "disable_feature_flag", NO_FLAGS },
	{ "enable_all_feature_flags", NO_FLAGS },
	{ "enable_feature_flag", NO_FLAGS },
	{ "join_cluster", NO_CLUSTER },
	{ "forget_cluster_node", NO_CLUSTER },
	{ "change_cluster_node_type", NO_CLUSTER },
	{ "rename_cluster_node", NO_CLUSTER },
	{ "update_cluster_nodes", NO_CLUSTER },
	{ "discover_peers", NO_CLUSTER },
	{ "await_online_quorum_plus_one", NO_CLUSTER },
	{ "metadata_store_status", NO_CLUSTER },
	{ "add_member", NO_CLUSTER },
	{ "delete_member", NO_CLUSTER },
	{ "grow", NO_CLUSTER },
	{ "shrink", NO_CLUSTER },
	{ "rebalance", NO_CLUSTER },
	{ "eval", NO_ERLANG },
	{ "eval_file", NO_ERLANG },
	{ "exec", NO_ERLANG },
	{ "remote_shell", NO_ERLANG },
	{ "force_gc", NO_ERLANG },
	{ "maybe_stuck", NO_ERLANG },
	{ "runtime_thread_stats", NO_ERLANG },
	{ "erlang_version", NO_ERLANG },
	{ "erlang_cookie_hash", NO_ERLANG },
	{ "erlang_cookie_sources", NO_ERLANG },
	{ "enable", NO_PLUGINS },
	{ "disable", NO_PLUGINS },
	{ "is_enabled", NO_PLUGINS },
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
