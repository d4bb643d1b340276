/* SPDX-License-Identifier: Apache-2.0
 * Leaky buckets in two tables. A place holds four buckets; the one that has leaked most makes room for a new one, so who
 * wants to be forgotten must fill the table with others that guess as much. IPv6 counts by /64, which is what one
 * subscriber has. */
#include "mgmt/throttle.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/mac.h"
#include "base/mem.h"
#include "net/transport.h"

enum { PLACES = 256, WAYS = 4, KEY_MAX = 16 + 255 };

struct bucket {
	uint8_t code[MAC_SIZE];
	uint64_t until_ms; /* empty from then on */
};

struct throttle {
	struct bucket account[PLACES][WAYS], address[PLACES][WAYS];
};

struct throttle *
throttle_new(void)
{
	return xcalloc(1, sizeof(struct throttle));
}

void
throttle_free(struct throttle **tp)
{
	free(*tp);
	*tp = NULL;
}

static void
code_of(const struct transport_addr *peer, struct span account, uint8_t code[MAC_SIZE])
{
	uint8_t key[KEY_MAX] = { 0 };
	struct in6_addr six;
	struct in_addr four;
	size_t n = account.n < KEY_MAX - 16 ? account.n : KEY_MAX - 16;

	if (inet_pton(AF_INET, peer->host, &four) == 1)
		memcpy(key, &four, sizeof four);
	else if (inet_pton(AF_INET6, peer->host, &six) == 1)
		memcpy(key + 8, &six, 8);
	if (n > 0)
		memcpy(key + 16, account.p, n);
	mac_compute(key, 16 + n, code);
}

static struct bucket *
find(struct bucket table[PLACES][WAYS], const uint8_t code[MAC_SIZE])
{
	struct bucket *place = table[code[0]], *least = place;

	for (unsigned i = 0; i < WAYS; i++) {
		if (memcmp(place[i].code, code, MAC_SIZE) == 0)
			return &place[i];
		if (place[i].until_ms < least->until_ms)
			least = &place[i];
	}
	return least;
}

/* How long until there is room for one more. */
static uint64_t
wait_of(const struct bucket table[PLACES][WAYS], const uint8_t code[MAC_SIZE], uint64_t room_ms,
    uint64_t now_ms)
{
	for (unsigned i = 0; i < WAYS; i++) {
		const struct bucket *b = &table[code[0]][i];

		if (memcmp(b->code, code, MAC_SIZE) == 0)
			return b->until_ms > now_ms + room_ms ? b->until_ms - now_ms - room_ms : 0;
	}
	return 0;
}

uint64_t
throttle_wait(const struct throttle *t, const struct transport_addr *peer, struct span account,
    uint64_t now_ms)
{
	uint8_t code[MAC_SIZE];
	uint64_t one, all;

	code_of(peer, account, code);
	one = wait_of(t->account, code, (THROTTLE_ACCOUNT - 1) * THROTTLE_ACCOUNT_MS, now_ms);
	code_of(peer, SPAN_LIT(""), code);
	all = wait_of(t->address, code, (THROTTLE_ADDRESS - 1) * THROTTLE_ADDRESS_MS, now_ms);
	return one > all ? one : all;
}

static void
fill(struct bucket table[PLACES][WAYS], const uint8_t code[MAC_SIZE], uint64_t ms, uint64_t now_ms)
{
	struct bucket *b = find(table, code);

	if (memcmp(b->code, code, MAC_SIZE) != 0) {
		memcpy(b->code, code, MAC_SIZE);
		b->until_ms = 0;
	}
	b->until_ms = (b->until_ms > now_ms ? b->until_ms : now_ms) + ms;
}

void
throttle_failed(
    struct throttle *t, const struct transport_addr *peer, struct span account, uint64_t now_ms)
{
	uint8_t code[MAC_SIZE];

	code_of(peer, account, code);
	fill(t->account, code, THROTTLE_ACCOUNT_MS, now_ms);
	code_of(peer, SPAN_LIT(""), code);
	fill(t->address, code, THROTTLE_ADDRESS_MS, now_ms);
}
