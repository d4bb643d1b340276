/* SPDX-License-Identifier: Apache-2.0
 * Field tables written into documents, as json_table.h makes trees of them. */
#ifndef MGMT_TABLE_OUT_H
#define MGMT_TABLE_OUT_H

#include "base/bytes.h"

struct json_out;

/* Content of a checked table. Bytes that are no UTF-8 become U+FFFD; of several fields of one name
 * the last is written. */
void out_table(struct json_out *o, struct span raw);
void out_fields_of(struct json_out *o, struct span raw); /* without the braces, within an object */

#endif
