/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/list_kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "cli/text_safe.h"

enum { WORDS_MAX = 128 };

/* Counters of deliveries and of publishes. */
#define OUT_STATS                                                                    \
	"message_stats.ack+,message_stats.deliver+,message_stats.deliver_get+,"      \
	"message_stats.deliver_no_ack+,message_stats.get+,message_stats.get_empty+," \
	"message_stats.get_no_ack+,message_stats.redeliver+,"
#define IN_STATS                                                                        \
	"message_stats.publish+,message_stats.confirm+,message_stats.drop_unroutable+," \
	"message_stats.return_unroutable+"
#define POLICY_FIELDS "vhost,name,pattern,apply-to,priority,definition.*"

const struct list_kind list_kinds[] = {
	{ "queues", "/api/queues", "/api/queues/*",
	    "vhost,name,type,state,messages_ready,messages_unacknowledged,consumers,policy",
	    "vhost,name,type,node,state,durable,auto_delete,exclusive,arguments.*,policy,"
	    "operator_policy,effective_policy_definition.*,messages+,messages_ready+,"
	    "messages_unacknowledged+,messages_persistent,messages_ram,messages_ready_ram,"
	    "messages_unacknowledged_ram,messages_paged_out,message_bytes,message_bytes_ready,"
	    "message_bytes_unacknowledged,message_bytes_persistent,message_bytes_ram,"
	    "message_bytes_paged_out,messages_dlx,message_bytes_dlx,memory,head_message_timestamp,"
	    "head_arrived,"
	    "consumers,consumer_capacity,"
	    "consumer_utilisation,exclusive_consumer_tag,single_active_consumer_tag,idle_since,"
	    "leader,members,online," OUT_STATS "message_stats.publish+" },
	{ "exchanges", "/api/exchanges", "/api/exchanges/*",
	    "vhost,name,type,durable,auto_delete,internal,policy",
	    "vhost,name,type,durable,auto_delete,internal,arguments.*,policy,"
	    "message_stats.publish_in+,message_stats.publish_out+" },
	{ "bindings", "/api/bindings", "/api/bindings/*",
	    "vhost,source,destination_type,destination,routing_key,arguments",
	    "vhost,source,destination_type,destination,routing_key,arguments.*,properties_key" },
	{ "connections", "/api/connections", "/api/vhosts/*/connections",
	    "name,user_provided_name,user,vhost,state,channels",
	    "name,user_provided_name,user,user_who_performed_action,vhost,node,state,type,protocol,"
	    "auth_mechanism,host,port,peer_host,peer_port,ssl,ssl_protocol,ssl_cipher,ssl_hash,"
	    "ssl_key_exchange,peer_cert_issuer,peer_cert_subject,peer_cert_validity,channels,"
	    "channel_max,frame_max,timeout,connected_at,recv_cnt,recv_oct+,send_cnt,send_oct+,"
	    "send_pend,client_properties.*" },
	{ "channels", "/api/channels", "/api/vhosts/*/channels",
	    "name,user,vhost,state,consumer_count,prefetch_count,messages_unacknowledged,"
	    "messages_unconfirmed",
	    "name,number,user,user_who_performed_action,vhost,node,state,confirm,transactional,"
	    "consumer_count,prefetch_count,global_prefetch_count,messages_unacknowledged,"
	    "messages_unconfirmed,messages_uncommitted,acks_uncommitted,idle_since,"
	    "connection_details.name,connection_details.peer_host,connection_details.peer_"
	    "port," OUT_STATS IN_STATS },
	{ "consumers", "/api/consumers", "/api/consumers/*",
	    "queue.vhost,queue.name,consumer_tag,channel_details.name,ack_required,exclusive,"
	    "active,prefetch_count",
	    "queue.vhost,queue.name,consumer_tag,ack_required,exclusive,active,activity_status,"
	    "prefetch_count,consumer_timeout,arguments.*,channel_details.name,"
	    "channel_details.number,channel_details.user,channel_details.node,"
	    "channel_details.connection_name,channel_details.peer_host,channel_details.peer_port" },
	{ "users", "/api/users", NULL, "name,tags",
	    "name,tags,password_hash,hashing_algorithm,limits.*,loopback_only,vhosts,vhost_count" },
	{ "vhosts", "/api/vhosts", NULL, "name,description,default_queue_type,tags",
	    "name,description,tags,default_queue_type,tracing,metadata.*,cluster_state.*,messages+,"
	    "messages_ready+,messages_unacknowledged+,recv_oct+,send_oct+," OUT_STATS IN_STATS },
	{ "permissions", "/api/permissions", "/api/vhosts/*/permissions",
	    "vhost,user,configure,write,read", "vhost,user,configure,write,read" },
	{ "topic-permissions", "/api/topic-permissions", "/api/vhosts/*/topic-permissions",
	    "vhost,user,exchange,write,read", "vhost,user,exchange,write,read" },
	{ "policies", "/api/policies", "/api/policies/*",
	    "vhost,name,pattern,apply-to,priority,definition", POLICY_FIELDS },
	{ "operator-policies", "/api/operator-policies", "/api/operator-policies/*",
	    "vhost,name,pattern,apply-to,priority,definition", POLICY_FIELDS },
	{ "parameters", "/api/parameters", "/api/parameters", "vhost,component,name,value",
	    "vhost,component,name,value.*" },
	{ "global-parameters", "/api/global-parameters", NULL, "name,value", "name,value.*" },
	{ "vhost-limits", "/api/vhost-limits", "/api/vhost-limits/*",
	    "vhost,value.max-connections,value.max-queues",
	    "vhost,value.max-connections,value.max-queues" },
	{ "user-limits", "/api/user-limits", NULL, "user,value.max-connections,value.max-channels",
	    "user,value.max-connections,value.max-channels" },
	{ "dead-letters", "/api/hermes/dead-letters", "/api/hermes/dead-letters/*",
	    "vhost,name,messages_ready,dead_letters,first.reason,first.queue",
	    "vhost,name,messages_ready,messages_unacknowledged,message_bytes_ready,consumers,"
	    "dead_letters,first.*" },
	{ "jobs", "/api/hermes/jobs", NULL,
	    "id,kind,vhost,queue,state,done,total,failed,rate_now,waiting",
	    "id,kind,vhost,queue,destination.*,state,total,done,failed,left,reasons.*,rate,rate_"
	    "now,"
	    "reason,waiting,user,started,ended" },
	{ .name = NULL },
};

const struct list_kind *
list_kind_find(const char *name)
{
	for (const struct list_kind *k = list_kinds; k->name != NULL; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	abort(); /* names come from our tables */
}

/* Whole names, made of the words of a kind's fields. */
struct words {
	char *word[WORDS_MAX]; /* owned */
	size_t n;
};

static void
add_word(struct words *w, char *word)
{
	if (w->n == WORDS_MAX)
		abort(); /* the table has outgrown us */
	w->word[w->n++] = word;
}

static void
words_make(struct words *w, const char *fields)
{
	w->n = 0;
	for (size_t n; *fields != '\0'; fields += n + (fields[n] == ',')) {
		bool is_counter;

		n = strcspn(fields, ",");
		is_counter = fields[n - 1] == '+';
		add_word(w, xstrndup(fields, n - is_counter));
		if (is_counter)
			add_word(w, xasprintf("%.*s_details.rate", (int)n - 1, fields));
	}
}

static void
words_free(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->word[i]);
}

/* A word names a column, what is in it ("arguments.*"), and what it is in ("queue" of "queue.name"). */
static bool
names(const char *word, const char *column, bool *is_open)
{
	size_t n = strlen(column), open = strlen(word);

	if (strncmp(word, column, n) == 0 && (word[n] == '\0' || word[n] == '.'))
		return true;
	if (open < 2 || strcmp(word + open - 2, ".*") != 0 || strncmp(word, column, open - 1) != 0)
		return false;
	*is_open = true;
	return true;
}

/* What may be typed, for the nearest: "arguments" of "arguments.*". */
static void
strip(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		w->word[i][strcspn(w->word[i], "*")] = '\0';
	for (size_t i = 0; i < w->n; i++)
		if (w->word[i][strlen(w->word[i]) - 1] == '.')
			w->word[i][strlen(w->word[i]) - 1] = '\0';
}

/* The words with blanks between, rates left out: they are many. */
static char *
all_of(const struct words *w)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < w->n; i++) {
		char *before = all;

		if (strstr(w->word[i], "_details.rate") != NULL)
			continue;
		all = xasprintf("%s%s%s", before, i > 0 ? ", " : "", w->word[i]);
		free(before);
	}
	return all;
}

static void
explain(struct cli *c, const struct list_kind *kind, const char *column, struct words *w)
{
	const char *nearest;
	char *all;

	strip(w);
	nearest = suggest_nearest(column, (const char *const *)w->word, w->n);
	if (nearest != NULL) {
		(void)cli_misuse(
		    c, "%s have no column '%.200s'; nearest: '%s'", kind->name, column, nearest);
		return;
	}
	all = all_of(w);
	(void)cli_misuse(c, "%s have no column '%.200s'; they have %s", kind->name, column, all);
	free(all);
}

bool
list_kind_has(struct cli *c, const struct list_kind *kind, const char *column, bool *is_open)
{
	struct words w;
	bool found = false;

	*is_open = false;
	words_make(&w, kind->fields);
	for (size_t i = 0; i < w.n && !found; i++)
		found = names(w.word[i], column, is_open);
	if (!found)
		explain(c, kind, column, &w);
	words_free(&w);
	return found;
}
