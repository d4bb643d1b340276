/* SPDX-License-Identifier: Apache-2.0
 * Tells whoever started the node how it goes, by the protocol of sd_notify(3): datagrams of lines NAME=VALUE to the
 * socket that NOTIFY_SOCKET names. Without the variable, nothing is sent. Nothing here blocks: what the manager does not
 * take at once is lost to it. */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/attr.h"

enum { NOTIFY_MAX = 512 };

struct notify {
	int fd;			/* owned; -1: nobody is to be told */
	uint64_t watchdog_ms;	/* a sign of life is wanted this often, at least; 0: never */
	char status[NOTIFY_MAX];	/* what was said last */
	struct sockaddr_un to;
	uint32_t to_len;
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);

void notify_ready(struct notify *n);	/* at the start, and when what notify_reloading() said is done */
void notify_reloading(struct notify *n);
void notify_stopping(struct notify *n);
void notify_alive(struct notify *n);
/* What `systemctl status` shows; said again only when it has changed. Control characters become blanks. */
void notify_status(struct notify *n, const char *fmt, ...) PRINTF(2, 3);

#endif
