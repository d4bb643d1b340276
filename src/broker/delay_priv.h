/* SPDX-License-Identifier: Apache-2.0
 * Private to delay.c and delay_lane.c. */
#ifndef BROKER_DELAY_PRIV_H
#define BROKER_DELAY_PRIV_H

#include <sys/queue.h>

#include "base/wheel.h"
#include "broker/delay.h"
#include "broker/delay_heap.h"
#include "broker/map.h"

struct delay_list { /* entries e[head .. n) */
	struct delay_entry *e; /* owned */
	uint32_t head, n, cap;
	uint64_t bytes; /* memory of the messages */
};

struct delay_lane {
	struct delay *delay;
	struct lane *lane; /* owned; NULL: not opened, or there is no store */
	uint32_t number;
	/* Of a run: those in memory before the unread ones, and those behind them. */
	struct delay_list front, back;
	uint64_t through; /* the last one that lies in files or was read from there: it does not go there again */
	bool wants_spill; /* filled: what is in memory is to go to files */
	TAILQ_ENTRY(delay_lane) link;
};
TAILQ_HEAD(delay_lane_list, delay_lane);

struct delay {
	struct exchange *x; /* borrowed: owns us */
	struct broker *broker;
	uint64_t id; /* the exchange's */
	bool durable;
	struct wheel_node node;
	struct delay_heap buffer, sealed; /* sealed: on its way to `filling` */
	struct delay_lane in[2];          /* buffers' lanes; in[now] takes what comes */
	unsigned now;
	struct delay_lane_list runs, idle; /* owned; idle: empty ones */
	uint32_t run_count;
	struct delay_lane *filling;        /* borrowed from runs; NULL: nothing is sealed */
	uint64_t next_seq, filling_seq;
	uint32_t next_number; /* of a lane */
	uint32_t came;        /* since the last run: moves have to keep up */
	uint64_t messages;    /* all that wait */
	bool is_listed;       /* in broker->delay_work */
	TAILQ_ENTRY(delay) work_link;
	UT_hash_handle hh; /* broker->delays by id */
};

/* ---- delay_lane.c ---- */
static inline bool
delay_lane_is_run(const struct delay_lane *l)
{
	return l->number >= DELAY_LANE_FIRST + 2;
}
static inline uint32_t
delay_list_count(const struct delay_list *a)
{
	return a->n - a->head;
}
void delay_lane_init(struct delay_lane *l, struct delay *d, uint32_t number);
void delay_lane_fini(struct delay_lane *l); /* drops what it holds */
void delay_lane_open(struct delay_lane *l); /* if it is not, and there is a store */
struct delay_entry delay_list_take(struct delay_list *a); /* its first one */
void delay_lane_append(struct delay_lane *l, const struct delay_entry *e);
uint64_t delay_lane_unread(const struct delay_lane *l);
void delay_lane_read(struct delay_lane *l); /* if it is time to */
/* Puts what is in memory into files. False: nothing is left that could be. */
bool delay_lane_spill(struct delay_lane *l);

/* ---- delay.c ---- */
void delay_list_work(struct delay *d); /* it has something to do */
struct delay_lane *delay_run_new(struct delay *d, uint32_t number);
void delay_count_out(struct delay *d, uint64_t n);

#endif
