/* SPDX-License-Identifier: Apache-2.0
 * What a socket goes through between accept and the protocol that it is for: the header of the PROXY protocol, where it
 * comes from an address that may send one, and the handshake of TLS. A socket that needs neither passes at once.
 *
 * Handshakes are worked on by threads of their own, so that a crowd that connects again does not keep running traffic
 * waiting. All of it has the time of limits.handshake, and tls.handshakes bounds how many there are: beyond it the oldest goes
 * that waits for its client. What fails is counted, and logged with its peer and the reason (rate limited). */
#ifndef NET_GATE_H
#define NET_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "net/tls.h"
#include "net/transport.h"

struct config;
struct gate;
struct listener;
struct loop;
struct sockaddr_storage;
struct workers;

#define GATE_STATS(X)                                                                             \
	X(tls_handshakes, COUNTER, "handshakes of TLS that succeeded")                            \
	X(tls_resumed, COUNTER, "those of them that resumed a session")                           \
	X(tls_failures, COUNTER, "handshakes of TLS that failed")                                 \
	X(proxied, COUNTER, "connections whose address came from a load balancer (PROXY protocol)") \
	X(proxy_failures, COUNTER, "connections refused for their header of the PROXY protocol")  \
	X(gate_timeouts, COUNTER, "connections ended because their handshake took longer than limits.handshake") \
	X(gate_evicted, COUNTER, "connections ended during their handshake to make room (tls.handshakes)") \
	X(gate_refused, COUNTER, "connections refused because all handshakes (tls.handshakes) were being worked on") \
	X(gate_waiting, GAUGE, "connections before the end of their handshake")                   \
	X(gate_working, GAUGE, "those of them whose handshake waits for a thread, or has one")
struct gate_stats {
#define X(name, kind, help) uint64_t name;
	GATE_STATS(X)
#undef X
};

/* One that got through. Whoever takes it owns fd and tls. */
struct arrival {
	int fd;
	struct tls_session *tls; /* NULL: plain. For transport_set_tls() */
	struct transport_addr peer, local; /* as a load balancer said, if one did */
	uint64_t since_ms; /* when it was accepted */
};
typedef void arrival_fn(void *arg, const struct arrival *a);

/* A port by which sockets come; lives as long as the gate. */
struct gate_port {
	struct listener *listener; /* borrowed: told of those that do not get through; NULL: nobody */
	bool is_tls, may_proxy;
	arrival_fn *fn;
	void *arg; /* borrowed */
};

/* workers: for handshakes, and nothing else; readers: for files. */
struct gate *gate_new(struct loop *l, const struct config *cfg, struct workers *workers, struct workers *readers);
/* Reads the certificates, at the start. False: err says what is wrong. */
bool gate_load(struct gate *g, char err[TLS_ERROR]) MUSTUSE;
/* The same while the node runs, on a worker. What is wrong leaves the old ones in force; either is logged. */
void gate_reload(struct gate *g);
/* A socket that was accepted; it is the gate's, or who the port says has it already. */
void gate_enter(struct gate *g, const struct gate_port *port, int fd);
uint32_t gate_waiting(const struct gate *g);
const struct gate_stats *gate_stats(const struct gate *g);
/* When the first certificate in force expires, in seconds since 1970, and its file; 0: there is none. */
int64_t gate_expiry(const struct gate *g, const char **file);
/* Closes all that are on their way; nobody enters any more. */
void gate_stop(struct gate *g);
void gate_free(struct gate **gp); /* after the workers have ended */

#endif
