/* SPDX-License-Identifier: Apache-2.0
 * All settings of a node as plain values, and the one table of keys that fills them. The YAML reader
 * (src/settings.c), `--check`, hints for misspelt keys and the manual all come from that table. */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { CONFIG_LISTEN_MAX = 16 };
#define CONFIG_SYNC_ALWAYS 0
#define CONFIG_SYNC_NEVER UINT32_MAX
#define CONFIG_SHARE ((uint64_t)1 << 62)

struct config_list {
	char *item[CONFIG_LISTEN_MAX];	/* owned */
	uint32_t count;
};

struct config {
	/* node */
	char *node_given;		/* as it was set, or hermes@HOST: for the log */
	char *node_name;		/* as shown over HTTP: NAME@HOST */
	struct config_list listen;
	uint16_t port;			/* 0: closed */
	/* tls */
	uint16_t tls_port, management_tls_port, prometheus_tls_port;	/* 0: closed */
	struct config_list tls_certificates, tls_keys;	/* files; no keys: they are in the same files */
	char *tls_ca;
	uint32_t tls_verify, tls_login_from, tls_login_san;	/* enums of net/tls.h */
	uint32_t tls_login_san_index, tls_min_version;	/* min_version 0: 1.2, 1: 1.3 */
	uint32_t tls_tickets_s;		/* 0: no session is resumed */
	uint32_t tls_handshakes;
	/* proxy */
	struct config_list proxy_trusted;	/* networks */
	bool proxy_management;
	/* management */
	bool management_enabled;
	struct config_list management_listen;
	uint16_t management_port;
	char *management_prefix;	/* before every path: begins with / and does not end with one; NULL or "": none */
	uint32_t password_kind;		/* how passwords that are set are kept: 0 sha256, 1 sha512, 2 pbkdf2 */
	/* prometheus */
	bool prometheus_enabled;
	struct config_list prometheus_listen;
	uint16_t prometheus_port;
	/* log */
	uint32_t log_level;		/* enum log_level */
	uint32_t log_format;		/* enum log_format */
	char *log_file;
	/* store */
	char *data_dir;
	uint32_t store_sync;		/* milliseconds, CONFIG_SYNC_ALWAYS or CONFIG_SYNC_NEVER */
	uint64_t journal_file_size;	/* 0: auto, by the size of the disk */
	uint64_t journal_max, queue_bytes;
	uint32_t queue_messages, retention_hours; /* retention 0: for ever */
	/* memory, disk */
	uint64_t memory_limit;		/* bytes; filled from the percentage at the start */
	uint32_t memory_spill, memory_deduplication;	/* percent of it */
	uint64_t disk_min_free;		/* bytes, or CONFIG_SHARE + percent of the disk */
	/* limits */
	uint32_t frame_max, heartbeat_s, unacknowledged, quorum_delivery_limit, consumers, queues, tails;
	uint16_t channel_max;
	uint32_t connections;		/* 0: auto, what the descriptor limit allows less a reserve */
	uint64_t message_size, output, output_max, content_in_flight;
	uint64_t http_body, http_bodies, http_values;
	uint64_t handshake_ms, consumer_timeout_ms; /* consumer_timeout 0: none */
	/* tcp */
	bool tcp_nodelay, tcp_keepalive;
	uint32_t tcp_keepalive_idle_s, tcp_keepalive_interval_s, tcp_keepalive_count; /* 0: the system's */
	uint32_t tcp_backlog;
	/* default_user: see INTERFACES; name NULL means admin and guest from loopback only */
	char *default_user, *default_password, *default_vhost;
	bool default_user_remote;
	bool has_users;			/* not a key: the list `users` of the settings has one */
	/* compat */
	char *definitions_file;
	char *compat_product, *compat_version;
};

/* The table of keys, setting one by its path, and what is checked. */
#include "base/config_keys.h"

#endif
