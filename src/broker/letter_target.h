/* SPDX-License-Identifier: Apache-2.0
 * Where dead letters of a queue may go, as its settings and the bindings of now say: for lists of the queues that may get
 * some. Whoever lists takes a number, marks the targets of all queues with it, some in a slice, and asks then. A mark of a
 * later list says yes to an earlier one, too: so several go on at once. */
#ifndef BROKER_LETTER_TARGET_H
#define BROKER_LETTER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct broker;
struct queue;

uint32_t letter_targets_begin(struct broker *b);
void letter_targets_mark(struct queue *q, uint32_t number);
/* Not const: what was found is remembered. What many hundred bindings lead to may be missed. */
bool letter_target_is(struct queue *q, uint32_t number) MUSTUSE;

#endif
