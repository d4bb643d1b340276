/* SPDX-License-Identifier: Apache-2.0
 * The body of struct mgmt, for the files of this folder. */
#ifndef MGMT_MGMT_PRIV_H
#define MGMT_MGMT_PRIV_H

#include "mgmt/mgmt.h"
#include "mgmt/rates.h"

struct evhttp_request;
struct http;

struct mgmt {
	struct loop *loop; /* borrowed, as the next two; all outlive us */
	struct broker *broker;
	const struct config *cfg;
	struct mgmt_node_info node;
	struct http *http; /* owned */
	struct rates rates;
	struct evhttp_request *snapshot; /* deferred: whoever asked for the one that is being made; NULL: nobody */
};

#endif
