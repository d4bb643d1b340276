/* SPDX-License-Identifier: Apache-2.0
 * What the settings say to listen on, as addresses: names are looked up, at the start only. */
#ifndef NET_LISTEN_ADDRESSES_H
#define NET_LISTEN_ADDRESSES_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/config.h"

/* Every address of every name, none twice; of a name only those that the machine has, and none of a single link. Blocks while
 * names are looked up. False: *error is a static text that says which one is wrong, and *out is empty. Else *out is the caller's:
 * listen_addresses_free(). */
bool listen_addresses(const struct config_list *given, struct config_list *out, const char **error) MUSTUSE;
void listen_addresses_free(struct config_list *list);

#endif
