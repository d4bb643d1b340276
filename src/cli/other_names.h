/* SPDX-License-Identifier: Apache-2.0
 * What those type who come from rabbitmqctl, rabbitmqadmin and rabbitmq-diagnostics, and what it is here. */
#ifndef CLI_OTHER_NAMES_H
#define CLI_OTHER_NAMES_H

#include <stdbool.h>

#include "base/attr.h"

/* For a word that is no command of ours; '-' goes for '_'. "'add_user' is 'hermes user add NAME' here", or why there is none:
 * a sentence, owned by the caller. NULL: nobody calls anything so; `near`: not even something like it. */
char *other_name_explain(const char *word, bool near) MUSTUSE;

/* For an option that the command does not have, without its dashes: what stands for it, or NULL. */
const char *other_option_explain(const char *name) MUSTUSE;

#endif
