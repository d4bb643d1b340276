/* SPDX-License-Identifier: Apache-2.0
 * The store's counters, declared once. X(name, kind, help) */
#ifndef STORE_STATS_H
#define STORE_STATS_H

#include <stdint.h>

#define STORE_STATS(X)                                                                        \
	X(journal_bytes, COUNTER, "bytes appended to the journal")                            \
	X(journal_records, COUNTER, "records appended to the journal")                        \
	X(journal_batches, COUNTER, "writes of the journal thread, each of many records")     \
	X(journal_syncs, COUNTER, "syncs of the journal")                                     \
	X(journal_sync_us, COUNTER, "microseconds spent in syncs of the journal")             \
	X(journal_sync_max_us, GAUGE, "longest sync of the journal, microseconds")            \
	X(journal_files, GAUGE, "files of the journal, spares included")                      \
	X(journal_file_bytes, GAUGE, "bytes of these files")                                  \
	X(journal_live_bytes, GAUGE, "bytes of bodies of messages that only the journal has") \
	X(journal_backlog, GAUGE, "bytes appended and not synced yet")                        \
	X(rolled, COUNTER, "files of the journal that were given up")                         \
	X(moved_bytes, COUNTER, "bytes appended again because their file was given up")       \
	X(spilled, COUNTER, "messages written to segments")                                   \
	X(spilled_bytes, COUNTER, "bytes written to segments")                                \
	X(loaded, COUNTER, "messages read from segments")                                     \
	X(loaded_bytes, COUNTER, "bytes read from segments")                                  \
	X(segments, GAUGE, "segment files")                                                   \
	X(segment_bytes, GAUGE, "bytes of segment files")                                     \
	X(segment_live, GAUGE, "messages that lie in segments")                               \
	X(segment_garbage, GAUGE, "bytes of segments that nothing needs")                     \
	X(rewritten, COUNTER, "segments rewritten because they were sparse")                  \
	X(rewritten_bytes, COUNTER, "bytes written by that")                                  \
	X(window_keys, GAUGE, "keys that durable windows remember (deduplication)")           \
	X(damaged, COUNTER, "places on disk found damaged")                                   \
	X(damaged_messages, COUNTER, "messages lost to damage")

#define STORE_STATS_FIELD(name, kind, help) uint64_t name;
struct store_stats {
	STORE_STATS(STORE_STATS_FIELD)
};
#undef STORE_STATS_FIELD

#endif
