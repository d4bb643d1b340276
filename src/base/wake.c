/* SPDX-License-Identifier: Apache-2.0
 * How other threads wake the core thread: see the header. */
#include "base/wake.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

int
wake_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0) {
		log_error("no descriptor for an eventfd: %s", strerror(errno));
		log_flush();
		abort();
	}
	return fd;
}

/* EAGAIN means that the counter is full: then the descriptor is readable, which is all we want. */
void
wake_up(int fd)
{
	const uint64_t one = 1;
	ssize_t n;

	do
		n = write(fd, &one, sizeof one);
	while (n < 0 && errno == EINTR);
	assert(n == (ssize_t)sizeof one || errno == EAGAIN);
}

void
wake_clear(int fd)
{
	uint64_t count;
	ssize_t n;

	do
		n = read(fd, &count, sizeof count);
	while (n < 0 && errno == EINTR);
	assert(n == (ssize_t)sizeof count || errno == EAGAIN);
}

void
wake_wait(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)poll(&p, 1, ms);
}

void
wake_free(int *fd)
{
	assert(*fd >= 0);
	close(*fd);
	*fd = -1;
}
