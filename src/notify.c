/* SPDX-License-Identifier: Apache-2.0
 * sd_notify(3) without its library: a datagram. */
#include "notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static void
send_text(const struct notify *n, const char *text)
{
	if (n->fd >= 0)
		(void)sendto(n->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
		    (const struct sockaddr *)&n->to, n->to_len);
}

/* A path, or a name of the kernel's own behind '@'. False: it is none. */
static bool
set_address(struct notify *n, const char *name)
{
	size_t len = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof n->to.sun_path)
		return false;
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, name, len + 1);
	if (name[0] == '@')
		n->to.sun_path[0] = '\0';
	else
		len++; /* the NUL at its end */
	n->to_len = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

/* Half of what the manager waits for; it may be meant for another process. */
static uint64_t
watchdog_from(const char *us, const char *pid)
{
	uint64_t ms;

	if (us == NULL || (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid()))
		return 0;
	ms = strtoull(us, NULL, 10) / 2000;
	return ms > INT32_MAX ? INT32_MAX : ms;
}

void
notify_open(struct notify *n)
{
	const char *name = getenv("NOTIFY_SOCKET");

	*n = (struct notify){ .fd = -1 };
	if (name == NULL || !set_address(n, name))
		return;
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	n->watchdog_ms = watchdog_from(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
}

void
notify_close(struct notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

void
notify_ready(struct notify *n)
{
	send_text(n, "READY=1");
}

void
notify_reloading(struct notify *n)
{
	char text[64];

	(void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_mono_us());
	send_text(n, text);
}

void
notify_stopping(struct notify *n)
{
	send_text(n, "STOPPING=1");
}

void
notify_alive(struct notify *n)
{
	send_text(n, "WATCHDOG=1");
}

void
notify_status(struct notify *n, const char *fmt, ...)
{
	char text[NOTIFY_MAX] = "STATUS=";
	size_t used = strlen(text);
	va_list ap;

	if (n->fd < 0)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text + used, sizeof text - used, fmt, ap);
	va_end(ap);
	for (char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20)
			*p = ' ';
	if (strcmp(text, n->status) == 0)
		return;
	memcpy(n->status, text, sizeof text);
	send_text(n, text);
}
