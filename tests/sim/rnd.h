/* SPDX-License-Identifier: Apache-2.0
 * Random numbers that a seed decides (xorshift64*), for the simulation. */
#ifndef TESTS_SIM_RND_H
#define TESTS_SIM_RND_H

#include <stdbool.h>
#include <stdint.h>

struct rnd {
	uint64_t s;
};

static inline uint64_t
rnd_next(struct rnd *r)
{
	r->s ^= r->s >> 12;
	r->s ^= r->s << 25;
	r->s ^= r->s >> 27;
	return r->s * 0x2545f4914f6cdd1dULL;
}

static inline struct rnd
rnd_of(uint64_t seed)
{
	struct rnd r = { (seed + 1) * 0x9e3779b97f4a7c15ULL | 1 };

	for (int i = 0; i < 4; i++)
		(void)rnd_next(&r);
	return r;
}

/* Below n; n > 0. */
static inline uint64_t
rnd(struct rnd *r, uint64_t n)
{
	return (rnd_next(r) >> 11) % n;
}

/* True in `percent` of 100 cases. */
static inline bool
rnd_chance(struct rnd *r, unsigned percent)
{
	return rnd(r, 100) < percent;
}

#endif
