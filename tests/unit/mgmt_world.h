/* SPDX-License-Identifier: Apache-2.0
 * A broker and its HTTP side over real sockets, with nothing stored. */
#ifndef TESTS_MGMT_WORLD_H
#define TESTS_MGMT_WORLD_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "broker/broker.h"
#include "broker/user.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "net/loop.h"
#include "net/transport.h"
#include "tests/unit/dial.h"
#include "tests/unit/user_world.h"

#define GUEST "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n" /* guest:guest */

static struct config cfg;
static struct loop *l;
static struct broker *b;
static struct mgmt *m;
static bool to_metrics; /* requests go to the port for metrics */

static inline void
amqp_ports(void *arg, mgmt_port_fn *f, void *f_arg)
{
	(void)arg;
	f(f_arg, "amqp", "::", 5672);
}

static inline void
setup(void)
{
	struct mgmt_node_info info = { .version = "0.1.0", .ports = amqp_ports };
	const char *error = NULL;

	config_init(&cfg);
	cfg.management_port = cfg.prometheus_port = 0;
	free(cfg.node_name);
	cfg.node_name = strdup("unit@test");
	l = loop_new();
	info.started_ms = l->now_ms;
	b = broker_new(&cfg, l->wheel, l->now_ms);
	(void)user_add(b, "plain", "plain", "", false);
	info.metrics = true;
	m = mgmt_start(l, b, &cfg, &info, &error);
	ck_assert_msg(m != NULL, "%s", error);
}

static inline void
teardown(void)
{
	mgmt_stop(&m);
	broker_free(&b);
	loop_free(&l);
	config_fini(&cfg);
}

static inline int
dial(void)
{
	struct transport_addr metrics = { .port = 0 };

	(void)mgmt_metrics_listener(m, 0, &metrics, &(bool){ false });
	return dial_port(to_metrics ? metrics.port : mgmt_port(m), O_NONBLOCK);
}

static bool time_stands; /* for the broker: what is counted by time does not depend on how fast the machine is */

static inline void
turn(void)
{
	loop_wait(l, true);
	if (!time_stands)
		b->now_ms = l->now_ms;
	loop_read(l);
	if (m != NULL)
		(void)mgmt_run(m);
	loop_flush(l);
	loop_reap(l);
}

static char answer[64 << 10];

/* Sends text and returns what comes until the peer closes; the request asks for that. */
static inline const char *
ask(const char *text)
{
	int fd = dial();
	size_t sent = 0, n = 0, len = strlen(text);
	uint64_t until = clock_now_ms() + 3000;
	ssize_t r = -1;

	while (r != 0 && clock_now_ms() < until) {
		if (sent < len) {
			r = write(fd, text + sent, len - sent);
			sent += r > 0 ? (size_t)r : 0;
		}
		turn();
		r = read(fd, answer + n, sizeof answer - 1 - n);
		if (r > 0)
			n += (size_t)r;
		else if (r < 0 && errno != EAGAIN)
			break;
	}
	answer[n] = '\0';
	close(fd);
	return answer;
}

static inline int
status_of(const char *a)
{
	int status = 0;

	return sscanf(a, "HTTP/1.%*d %d", &status) == 1 ? status : 0;
}

static inline const char *
body_of(const char *a)
{
	const char *end = strstr(a, "\r\n\r\n");

	return end != NULL ? end + 4 : "";
}

static inline void
turns_until_open(uint32_t open)
{
	for (unsigned i = 0; i < 2000 && http_stats(m->http)->open != open; i++)
		turn();
	ck_assert_uint_eq(http_stats(m->http)->open, open);
}

#endif
