/* SPDX-License-Identifier: Apache-2.0
 * Connections and channels as documents, and their lists. */
#ifndef MGMT_CLIENT_DOC_H
#define MGMT_CLIENT_DOC_H

#include "broker/client.h"
#include "mgmt/listing.h"

struct session;

extern const struct listing_source connection_list, connection_brief_list, channel_list;
/* The same, never in pages. */
extern const struct listing_source vhost_connection_list, vhost_channel_list;
/* The rows of one connection: listing_reply(..., &client->series). */
extern const struct listing_source connection_channel_list;

/* {name, peer_host, peer_port} */
void client_write_brief(struct json_out *o, const struct client *c);
/* "127.0.0.1:40000 -> 127.0.0.1:5672 (1)" */
enum { CHANNEL_NAME = CLIENT_NAME + 16 };
const char *channel_name(const struct session *s, char buf[CHANNEL_NAME]);
uint32_t channel_number(const struct session *s);
/* Is it a client that others should see: open, and not somebody's request over HTTP? */
bool client_is_shown(const struct client *c);

/* The connection that a path names, if the user may see it (connections.c); NULL: it was answered. */
struct client *connection_arg(struct request *r, unsigned i);

#endif
