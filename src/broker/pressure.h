/* SPDX-License-Identifier: Apache-2.0
 * Memory pressure: above memory.spill the long queues go to disk, the longest durable ones first, then the others. */
#ifndef BROKER_PRESSURE_H
#define BROKER_PRESSURE_H

struct broker;

/* Once a turn; looks at a bounded number of queues. */
void pressure_run(struct broker *b);

#endif
