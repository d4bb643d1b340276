/* SPDX-License-Identifier: Apache-2.0
 * Counters, declared once: struct, JSON, metrics and the manual follow from these lists.
 *	X(name, kind, help) */
#ifndef BROKER_STATS_H
#define BROKER_STATS_H

#include <stdint.h>

/* What goes out: of the node, a queue, a channel, a vhost. */
#define DELIVERY_STATS(X)                                                                         \
	X(deliver, COUNTER, "messages delivered to consumers that acknowledge")                   \
	X(deliver_no_ack, COUNTER, "messages delivered to consumers that do not acknowledge")     \
	X(get, COUNTER, "messages got with basic.get, to be acknowledged")                        \
	X(get_no_ack, COUNTER, "messages got with basic.get without acknowledgement")             \
	X(get_empty, COUNTER, "basic.get on an empty queue")                                      \
	X(ack, COUNTER, "messages acknowledged")                                                  \
	X(redeliver, COUNTER, "messages delivered again")

/* Of the node. Names follow RabbitMQ's message_stats where it has the thing. */
#define BROKER_STATS(X)                                                                           \
	X(publish, COUNTER, "messages published by clients")                                      \
	X(publish_in, COUNTER, "bytes of bodies published by clients")                            \
	X(publish_confirm, COUNTER, "those of them that are to be confirmed")                     \
	X(routed, COUNTER, "copies of published messages put into queues")                        \
	X(confirm, COUNTER, "messages confirmed to publishers")                                   \
	X(confirm_waited, COUNTER, "messages whose confirm had to wait for the disk")             \
	X(confirm_wait_us, COUNTER, "microseconds that they waited, added up")                    \
	X(return_unroutable, COUNTER, "mandatory messages returned because no queue took them")   \
	X(drop_unroutable, COUNTER, "messages dropped because no queue took them")                \
	DELIVERY_STATS(X)                                                                         \
	X(requeue, COUNTER, "messages returned to their queue")                                   \
	X(reject, COUNTER, "messages rejected without requeue")                                   \
	X(expired, COUNTER, "messages dropped at their expiry")                                   \
	X(retained_out, COUNTER, "messages dropped at the end of the retention time")             \
	X(dropped_maxlen, COUNTER, "messages dropped because their queue held too many")          \
	X(refused, COUNTER, "messages refused by a queue that was full")                          \
	X(dead_lettered, COUNTER, "messages sent on to a dead letter exchange")                   \
	X(dead_letters_lost, COUNTER, "dead letters dropped: no exchange or queue for them, or too many of one message") \
	X(dead_letters_late, COUNTER, "times that a publishing channel waited for dead letters, or traces, to be sent") \
	X(dead_letter_cycles, COUNTER, "dead letters not put into a queue where they died before") \
	X(transferred, COUNTER, "messages moved by operators, and dead letters sent back")         \
	X(duplicates, COUNTER, "messages that a queue or exchange dropped as duplicates")         \
	X(dedup_evicted, COUNTER, "keys of duplicates forgotten early for lack of memory")        \
	X(purged, COUNTER, "messages removed by purge or deletion of their queue")                \
	X(reply_to, COUNTER, "messages delivered through direct reply-to")                        \
	X(reply_to_dropped, COUNTER, "direct replies dropped because their taker does not read")  \
	X(delayed, COUNTER, "messages that came into delayed-message exchanges")                  \
	X(delayed_out, COUNTER, "messages whose delay was over")                                  \
	X(route_refused, COUNTER, "messages refused because their route takes too many steps")   \
	X(over_delivery_limit, COUNTER, "messages that came back to a quorum queue too often")    \
	X(notices, COUNTER, "messages of the broker itself: events, and messages that were traced") \
	X(notices_dropped, COUNTER, "of these, those dropped because too many waited")            \
	X(parked, COUNTER, "times that a publishing channel was parked by an alarm")              \
	X(parked_dropped, COUNTER, "bytes of frames of parked channels that went before their turn") \
	X(alarm_closed, COUNTER, "channels closed because of the hard memory limit")              \
	X(connections_opened, COUNTER, "connections opened")                                      \
	X(connections_closed, COUNTER, "connections closed")                                      \
	X(channels_opened, COUNTER, "channels opened")                                            \
	X(channels_closed, COUNTER, "channels closed")                                            \
	X(queues_declared, COUNTER, "queues declared, those that were there among them")          \
	X(queues_created, COUNTER, "queues made")                                                 \
	X(queues_deleted, COUNTER, "queues deleted")                                              \
	X(queues_expired, COUNTER, "of these, because nobody used them (x-expires)")              \
	X(errors_channel, COUNTER, "channel errors sent")                                         \
	X(errors_connection, COUNTER, "connection errors sent")                                   \
	X(logins, COUNTER, "logins that were let in")                                             \
	X(login_failures, COUNTER, "logins refused")                                              \
	X(logins_dropped, COUNTER, "logins refused because too many waited for their password's hash") \
	X(route_cache_misses, COUNTER, "routes that no cache had")                                \
	X(consumers_paused, COUNTER, "consumers without prefetch that reached limits.unacknowledged") \
	X(consumer_timeouts, COUNTER, "consumers cancelled because they held a delivery for too long") \
	X(late, COUNTER, "deliveries taken back because they were not acknowledged in time")      \
	X(connections, GAUGE, "open connections")                                                 \
	X(channels, GAUGE, "open channels")                                                       \
	X(consumers, GAUGE, "consumers")                                                          \
	X(publishers, GAUGE, "open channels that have published")                                 \
	X(queues, GAUGE, "queues")                                                                \
	X(quorum_queues, GAUGE, "those of them that are quorum queues")                           \
	X(queues_paused, GAUGE, "those of them that are paused")                                  \
	X(exchanges, GAUGE, "exchanges")                                                          \
	X(bindings, GAUGE, "bindings")                                                            \
	X(dead_letters, GAUGE, "dead letters that wait for their turn")                           \
	X(dead_letters_kept, GAUGE, "dead letters that quorum queues keep until they are taken")  \
	X(messages_delayed, GAUGE, "messages that wait in delayed-message exchanges")             \
	X(messages_ready, GAUGE, "messages ready for delivery, in all queues")                    \
	X(messages_unacknowledged, GAUGE, "messages delivered and not acknowledged, in all queues")

/* What channels wait for, so that whoever uses them is held back (DESIGN: ownership, bounds, back pressure).
 *	X(name, help) */
#define BACK_PRESSURE(X)                                                                          \
	X(memory, "the memory alarm, or maintenance")                                             \
	X(disk, "a disk that is full or far behind")                                              \
	X(queue, "a queue that has too much in memory")                                           \
	X(letters, "dead letters to be sent")                                                     \
	X(journal, "the journal, with an answer")                                                 \
	X(read, "messages to be read from disk")
enum pressure {
#define X(name, help) PRESSURE_##name,
	BACK_PRESSURE(X)
#undef X
	PRESSURES
};
struct back_pressure {
	uint64_t now, times; /* so many wait; had to, so far */
};

/* Of a queue. */
#define QUEUE_STATS(X)                                                                            \
	X(publish, COUNTER, "messages that came in")                                              \
	DELIVERY_STATS(X)                                                                         \
	X(expired, COUNTER, "messages dropped at their expiry")                                   \
	X(retained_out, COUNTER, "messages dropped at the end of the retention time")             \
	X(dropped_maxlen, COUNTER, "messages dropped because the queue held too many")            \
	X(refused, COUNTER, "messages refused because the queue was full")                        \
	X(over_delivery_limit, COUNTER, "messages dropped because they came back too often")      \
	X(duplicates, COUNTER, "messages dropped because their key had come before")

/* Of a channel, and of a vhost: all of its channels, those that are closed among them. */
#define MESSAGE_STATS(X)                                                                          \
	X(publish, COUNTER, "messages published")                                                 \
	X(confirm, COUNTER, "messages confirmed")                                                 \
	X(return_unroutable, COUNTER, "mandatory messages returned because no queue took them")   \
	X(drop_unroutable, COUNTER, "messages dropped because no queue took them")                \
	DELIVERY_STATS(X)

/* Of an exchange: by the exchange that clients named, not those that a binding or an alternate led to. */
#define EXCHANGE_STATS(X)                                                                         \
	X(publish_in, COUNTER, "messages published to it")                                        \
	X(publish_out, COUNTER, "copies of them put into queues")

/* Of a connection, and of a vhost: all that were open in it. */
#define TRAFFIC_STATS(X)                                                                          \
	X(recv_oct, COUNTER, "bytes received")                                                    \
	X(recv_cnt, COUNTER, "reads from the socket")                                             \
	X(send_oct, COUNTER, "bytes sent")                                                        \
	X(send_cnt, COUNTER, "writes to the socket")

#define STATS_FIELD(name, kind, help) uint64_t name;
struct broker_stats {
	BROKER_STATS(STATS_FIELD)
};
struct queue_stats {
	QUEUE_STATS(STATS_FIELD)
};
struct delivery_stats {
	DELIVERY_STATS(STATS_FIELD)
};
struct message_stats {
	MESSAGE_STATS(STATS_FIELD)
};
struct exchange_stats {
	EXCHANGE_STATS(STATS_FIELD)
};
struct traffic_stats {
	TRAFFIC_STATS(STATS_FIELD)
};

/* Messages in all queues of a vhost: gauges. */
struct queue_depth {
	uint64_t ready, unacked;
};
#undef STATS_FIELD

#endif
