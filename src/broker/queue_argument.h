/* SPDX-License-Identifier: Apache-2.0
 * The one table of what queues can be told: by `x-` arguments when they are declared, by policies at any time. */
#ifndef BROKER_QUEUE_ARGUMENT_H
#define BROKER_QUEUE_ARGUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/queue_settings.h"
#include "broker/table.h"

enum { ARGUMENT_DETAIL_MAX = 160 };

/* Is the value one that the argument may have? If not, detail says why, in the form of RabbitMQ's text. */
typedef bool argument_check_fn(const struct field *f, char *detail);

/* Where the value goes: what kind of field of q->set stands at the offset. */
enum set_kind { SET_NOTHING, SET_NUMBER, SET_BYTE, SET_BOOL, SET_SPAN, SET_WORD };

struct argument {
	const char *name;
	argument_check_fn *check;	/* NULL: any value */
	unsigned types;			/* bit 1 << enum queue_type: elsewhere it is refused. One that belongs to the
					 * queue's type counts when the queue is declared again */
	const char *policy;		/* key of a policy that says the same; NULL: none does */
	bool by_operator;		/* an operator policy may say it */
	bool least;			/* a number: the least of what argument and policies say holds; else an argument goes
					 * before a policy, and an operator's policy before a user's */
	const char *const *words;	/* of an enum or a bool that is said by a word */
	size_t at;
	enum set_kind kind;
	const char *behind;		/* in a quorum queue: compared behind this one */
	bool is_later;			/* comes with a later version */
};

/* In the order in which RabbitMQ looks at them. */
extern const struct argument queue_arguments[];
extern const size_t queue_arguments_count;

/* The place of a word in a list that ends with NULL, which is what it stands for. -1: it is none of them. */
int argument_word(const char *const *words, struct span s);
extern const char *const queue_type_words[];

argument_check_fn argument_check_type;

#endif
