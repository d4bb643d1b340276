/* SPDX-License-Identifier: Apache-2.0
 * What the routes of queues' messages share: ids of messages in texts. */
#ifndef MGMT_LETTERS_H
#define MGMT_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/transfer.h"

/* "17", or "17.3" in a queue with priorities: number and priority. A message keeps it as long as it is in its
 * queue, but one that is given back to a quorum queue gets another. */
enum { LETTER_ID_SIZE = 32 };
const char *letter_id_text(uint64_t seq, uint8_t priority, char out[LETTER_ID_SIZE]);
bool letter_id_parse(struct span text, struct letter_id *out) MUSTUSE;

#endif
