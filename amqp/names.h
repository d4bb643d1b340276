/* SPDX-License-Identifier: Apache-2.0
 * Names in methods: what an empty one means, what RabbitMQ takes out of them, which ones are
 * refused before anything is looked up. And argument tables. */
#ifndef AMQP_NAMES_H
#define AMQP_NAMES_H

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

struct table;

/* The given name, or the queue declared last on the channel. 404 "no previously declared queue". */
const struct error *name_queue(
    const struct channel *ch, amqp_bytes_t given, struct span *out) MUSTUSE;
/* A queue was declared: an empty name means this one from now on. */
void name_declared(struct channel *ch, struct span name);

/* Line ends are taken out of names in declare, delete, bind and unbind; buf holds 255 bytes. */
struct span name_clean(amqp_bytes_t given, uint8_t *buf);

/* Copies a decoded table; *out (owned) is NULL if it is empty. 502 for one that cannot be kept, 506
 * without memory. */
const struct error *name_table(const amqp_table_t *given, struct table **out) MUSTUSE;

/* 403 for "", the default exchange. */
const struct error *name_not_default(struct span exchange) MUSTUSE;

#endif
