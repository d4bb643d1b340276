/* SPDX-License-Identifier: Apache-2.0
 * Options that limit what a vhost or a user may have: --max-queues 50, and "none" takes the limit away. */
#ifndef CLI_LIMIT_OPTIONS_H
#define CLI_LIMIT_OPTIONS_H

#include "base/attr.h"
#include "cli/cli.h"

/* Of the options `names`, which a NULL ends: is one on the command line? */
bool limit_options_given(const struct cli *c, const char *const *names);

/* False: a value is wrong, which was said. */
bool limit_options_fine(const struct cli *c, const char *const *names) MUSTUSE;

/* Makes it so, one request a limit; they are known to be fine. `path` has room for the owner's name and the limit's
 * ("/api/vhost-limits/" and two stars), `what` is safe to print ("vhost 'shop'"). Answers with the exit status. */
int limit_options_put(struct cli *c, const char *const *names, const char *path, const char *owner, const char *what);

#endif
