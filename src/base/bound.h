/* SPDX-License-Identifier: Apache-2.0
 * Bounds that were reached: how often something was refused, dropped or left out because there was too much of it. One row
 * a bound, with the name that metrics give it; whoever refuses says so with bound_reached(), from any thread. What has a
 * counter of its own already is no row here: mgmt/metric_node.c has both.
 *	X(name, label) */
#ifndef BASE_BOUND_H
#define BASE_BOUND_H

#include <stdatomic.h>
#include <stdint.h>

#define BOUNDS(X)                                                                                 \
	X(connections, "limits.connections")       /* connections refused, of all listeners */    \
	X(handshake, "limits.handshake")           /* connections closed before they were open */ \
	X(frame_max, "limits.frame_max")                                                          \
	X(channel_max, "limits.channel_max")                                                      \
	X(message_size, "limits.message_size")                                                    \
	X(content_in_flight, "limits.content_in_flight")                                          \
	X(queues, "limits.queues")                                                                \
	X(consumers, "limits.consumers")                                                          \
	X(http_body, "http_body")                                                                 \
	X(http_values, "limits.http_values")                                                      \
	X(of_vhost, "vhost_limits")                                                               \
	X(of_user, "user_limits")                                                                 \
	X(vhosts, "vhosts")                                                                       \
	X(users, "users")                                                                         \
	X(parameters, "parameters")                                                               \
	X(policies, "policies")                                                                   \
	X(topic_permissions, "topic_permissions")                                                 \
	X(failed_logins, "failed_logins")          /* logins not looked at: too many had failed */ \
	X(pattern_steps, "pattern_steps")          /* regular expressions given up */             \
	X(confirms, "confirms")                    /* of a channel, open */                       \
	X(transaction, "transaction")                                                             \
	X(letter_copies, "dead_letter_copies")                                                    \
	X(letter_looks, "dead_letter_looks")       /* for lists: not read, or not followed */     \
	X(jobs, "jobs")                            /* moves and replays */                        \
	X(browses, "browses")                                                                     \
	X(web_sessions, "web_sessions")            /* ended for a newer one */                    \
	X(imports, "imports")                                                                     \
	X(exports, "exports")                                                                     \
	X(lists, "lists")                          /* answers that would have been too long */    \
	X(scrapes, "scrapes")                                                                     \
	X(chains, "health_checks")                 /* of the chain, at a time */

enum bound {
#define X(name, label) BOUND_##name,
	BOUNDS(X)
#undef X
	BOUND_COUNT
};

extern _Atomic uint64_t bound_times[BOUND_COUNT];

static inline void
bound_reached(enum bound b)
{
	atomic_fetch_add_explicit(&bound_times[b], 1, memory_order_relaxed);
}

static inline uint64_t
bound_count(enum bound b)
{
	return atomic_load_explicit(&bound_times[b], memory_order_relaxed);
}

#endif
