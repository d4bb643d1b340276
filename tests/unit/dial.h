/* SPDX-License-Identifier: Apache-2.0
 * A client's socket to a port of this machine. */
#ifndef TESTS_DIAL_H
#define TESTS_DIAL_H

#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* flags: 0 or O_NONBLOCK, of what is connected. */
static inline int
dial_port(uint16_t port, int flags)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(fcntl(fd, F_SETFL, flags), 0);
	return fd;
}

#endif
