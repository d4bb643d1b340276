/* SPDX-License-Identifier: Apache-2.0
 * What the broker knows of a client's connection: amqp/ keeps the record up to date, mgmt/ shows it. */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/log.h"
#include "broker/series.h"
#include "broker/stats.h"

struct broker;
struct client;
struct queue;
struct session;
struct table;
struct user;
struct vhost;

LIST_HEAD(session_list, session);
LIST_HEAD(owned_queue_list, queue);

/* What amqp/ does for others with a client's connection. */
struct client_ops {
	/* what its socket has moved so far; *pending: bytes that wait to be sent */
	void (*traffic)(const struct client *c, struct traffic_stats *out, uint64_t *pending);
};

/* Of a connection that came by TLS, in RabbitMQ's words. */
struct client_tls {
	const char *protocol, *cipher, *hash, *key_exchange;	/* static */
	char *subject, *issuer, *validity;			/* owned: of its certificate; NULL: it showed none */
};

struct client {
	struct broker *broker;			/* borrowed */
	uint64_t id;
	struct user *user;			/* borrowed; NULL until logged in */
	struct vhost *vhost;			/* borrowed; NULL until open */
	char peer_host[64], host[64];
	uint16_t peer_port, port;
	bool loopback;
	bool output_full;			/* output over limits.output: no deliveries until client_output_room() */
	bool is_leaving;			/* its exclusive queues are nobody's any more: who names one finds it gone */
	bool is_forced;				/* on broker->forced */
	bool cancel_notify;			/* understands basic.cancel from the server */
	uint64_t connected_at_ms;
	char *name, *product, *version, *platform, *mechanism;	/* owned, may be NULL; what the client says of itself */
	uint32_t frame_max, heartbeat_s;
	uint16_t channel_max;
	struct client_tls *tls;			/* owned; NULL: plain TCP */
	const struct client_ops *ops;		/* NULL: nobody serves it (any more) */
	struct traffic_stats counted;		/* of these, what the vhost has been told */
	struct table *properties;		/* owned, may be NULL: client-properties of connection.start-ok */
	const char *state;			/* static text: "starting", "running", "blocked", "closing" */
	struct session_list sessions;		/* borrowed: open channels */
	struct owned_queue_list exclusive;	/* borrowed: exclusive queues, deleted with the client */
	char *close_reason;			/* owned: it is to be closed; NULL: it is not */
	TAILQ_ENTRY(client) link, forced_link;
	LIST_ENTRY(client) vhost_link;		/* vhost->clients, or ->told */
	struct series series;
	struct log_who who;			/* for log lines; kept by client.c */
	char who_peer[80];
};

/* Linked into broker->clients, counted. *c was zeroed but for the addresses. */
void client_init(struct client *c, struct broker *b);
void client_fini(struct client *c);			/* no session may be left; exclusive queues go */
/* The client's exclusive queues go, now: before close-ok is written. */
void client_drop_exclusive(struct client *c);
/* The same as far as a turn allows (BROKER_END_MAX). True: none is left. */
bool client_leave(struct client *c) MUSTUSE;
void client_set_user(struct client *c, struct user *u);
void client_set_vhost(struct client *c, struct vhost *vh);	/* it is open: limits count it */

/* The connection is closed, soon: 320 "CONNECTION_FORCED - reason". The first reason counts. */
void client_force_close(struct client *c, const char *reason);
/* For amqp/: the next of them, off the list; NULL: none. */
struct client *client_take_forced(struct broker *b);

/* What its socket has moved so far; its vhost is told what is new. send_pend: bytes that wait to be sent. */
void client_traffic(struct client *c, struct traffic_stats *out, uint64_t *send_pend);
/* The socket goes: the last of it. */
void client_end_traffic(struct client *c);

/* "127.0.0.1:40000 -> 127.0.0.1:5672", as RabbitMQ names connections; cut to n. */
enum { CLIENT_NAME = 2 * (64 + 8) + 4 };
const char *client_name(const struct client *c, char buf[CLIENT_NAME]);
struct client *client_find(const struct broker *b, struct span name);	/* by that name; NULL */
struct client *client_find_id(const struct broker *b, uint64_t id);

/* Output fell under its bound: the client's consumers may take messages again. */
void client_output_room(struct client *c);

#endif
