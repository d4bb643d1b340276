/* SPDX-License-Identifier: Apache-2.0
 * Who guesses passwords has to wait. Wrong logins are counted per address, and per address and account, in tables of fixed
 * size; nobody is locked out by what comes from another address. */
#ifndef MGMT_THROTTLE_H
#define MGMT_THROTTLE_H

#include <stdint.h>

#include "base/bytes.h"

struct throttle;
struct transport_addr;

enum {
	THROTTLE_ACCOUNT = 20,	/* wrong logins for one account from one address in a row; one more each ... */
	THROTTLE_ACCOUNT_MS = 3000,
	THROTTLE_ADDRESS = 200, /* for all accounts from one address */
	THROTTLE_ADDRESS_MS = 300
};

struct throttle *throttle_new(void);
void throttle_free(struct throttle **tp);

/* For how many ms logins for this account from this address are refused unseen; 0: they are not. */
uint64_t throttle_wait(
    const struct throttle *t, const struct transport_addr *peer, struct span account, uint64_t now_ms);
void throttle_failed(
    struct throttle *t, const struct transport_addr *peer, struct span account, uint64_t now_ms);

#endif
