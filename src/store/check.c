/* SPDX-License-Identifier: Apache-2.0
 * Is a data folder whole? The journal is recovered as a start would do it, through a view of the disk that forgets
 * what is written; then every segment is read to its end, and each message that has to be in it has to be found. */
#include "store/store_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/disk_readonly.h"
#include "store/segment_file.h"

enum { PIECE = 1 << 20, LINE = 600, SAID_MAX = 1000 };

struct check {
	struct disk *disk; /* borrowed: the view */
	struct store *store;
	const struct store_check_ask *ask; /* borrowed */
	struct store_check_report *report; /* borrowed */
	uint64_t said;
	uint64_t bytes, bytes_done; /* of segment files */
};

static void PRINTF(2, 3) say(struct check *c, const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	c->ask->say(c->ask->arg, line);
}

/* ---- messages as the store wants them: all that counts is their size ---- */

struct item {
	uint32_t refs;
	uint64_t size;
};

static void *
item_make(void *arg, const struct op_msg *m)
{
	struct item *i = try_malloc(sizeof *i);

	(void)arg;
	if (i != NULL)
		*i = (struct item){ .refs = 1, .size = m->body_size };
	return i;
}

static void
item_ref(void *item)
{
	((struct item *)item)->refs++;
}

static void
item_unref(void *item)
{
	struct item *i = item;

	if (--i->refs == 0)
		free(i);
}

static void
item_describe(const void *item, struct op_msg *out)
{
	*out = (struct op_msg){ .body_size = ((const struct item *)item)->size };
}

static uint64_t
item_size(const void *item)
{
	return ((const struct item *)item)->size;
}

static uint64_t
on_spilled(struct lane *l, uint64_t through, bool is_behind)
{
	(void)l;
	(void)is_behind;
	return through + 1;
}

static void
on_loaded(
    struct lane *l, void *item, uint64_t seq, const struct op_state *state, const struct op_msg *m)
{
	(void)l;
	(void)seq;
	(void)state;
	(void)m;
	item_unref(item);
}

static void
on_load_done(struct lane *l)
{
	(void)l;
}

static void
on_lost(struct lane *l, uint64_t count, uint64_t bytes)
{
	(void)l;
	(void)count;
	(void)bytes;
}

static const struct store_ops item_ops = {
	.make = item_make,
	.ref = item_ref,
	.unref = item_unref,
	.describe = item_describe,
	.body_size = item_size,
	.spilled = on_spilled,
	.loaded = on_loaded,
	.load_done = on_load_done,
	.lost = on_lost,
};

/* ---- segments ---- */

static void PRINTF(2, 3) damage(struct check *c, const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	c->report->damaged++;
	if (c->said++ >= SAID_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	c->ask->say(c->ask->arg, line);
}

/* What a piece holds of what lives. */
static uint64_t
count_piece(struct check *c, const struct segment *g, const struct segment_read *r)
{
	uint64_t found = 0;
	struct op_msg m;

	for (uint32_t i = 0; i < r->damages && i < SEGMENT_DAMAGE; i++)
		damage(c, "%s: damage from %" PRIu64 " to %" PRIu64, r->name, r->damage[i].from,
		    r->damage[i].to);
	if (r->damages > SEGMENT_DAMAGE)
		damage(c, "%s: further damaged places: %" PRIu32, r->name,
		    r->damages - SEGMENT_DAMAGE);
	for (uint32_t i = 0; i < r->records; i++) {
		const struct segment_record *record = &r->record[i];

		if (record->seq < g->first || record->seq > g->last ||
		    rangeset_has(&g->removed, record->seq))
			continue;
		if (segment_message(r, record, &m) == 0)
			found++;
		else
			damage(c, "%s: the record of message %" PRIu64 " says something else",
			    r->name, record->seq);
	}
	return found;
}

static void
said_done(struct check *c, uint64_t bytes)
{
	c->bytes_done += bytes;
	if (c->ask->progress != NULL)
		c->ask->progress(c->ask->arg, c->bytes_done, c->bytes);
}

static void
check_segment(struct check *c, const struct lane *l, const struct segment *g)
{
	struct segment_read r = { .disk = c->disk,
		.id = c->store->id,
		.lane = l->name,
		.first = g->first,
		.last = g->last,
		.after = g->first - 1,
		.at = FILE_HEADER,
		.end = g->end,
		.want = PIECE };
	uint64_t found = 0, end = g->end;

	if (g->live ==
	    0) /* its file may have been unlinked already: recovery forgets it in its own time */
		return;
	segment_name(l, g->first, r.name);
	c->report->segments++;
	c->report->in_segments += g->live;
	while (r.at < end) {
		segment_read(&r);
		if (r.error != 0) {
			damage(c, "%s: %s", r.name, strerror(-r.error));
			break;
		}
		if (r.at == FILE_HEADER && r.header_end != 0)
			r.end = end = r.header_end;
		found += count_piece(c, g, &r);
		if (r.records > 0)
			r.after = r.record[r.records - 1].seq;
		if (r.next <= r.at)
			break;
		said_done(c, r.next - r.at);
		r.at = r.next;
		segment_read_fini(&r);
	}
	segment_read_fini(&r);
	if (found < g->live)
		damage(c, "%s: %" PRIu64 " of %" PRIu64 " messages are missing", r.name,
		    g->live - found, g->live);
}

static void
check_lanes(struct check *c)
{
	struct lane *l;

	TAILQ_FOREACH (l, &c->store->lanes, all_link) {
		for (uint32_t i = 0; i < l->segments; i++)
			if (l->segment[i]->live > 0)
				c->bytes += l->segment[i]->end - FILE_HEADER;
	}
	TAILQ_FOREACH (l, &c->store->lanes, all_link) {
		c->report->in_journal += l->live;
		for (uint32_t i = 0; i < l->segments; i++)
			check_segment(c, l, l->segment[i]);
	}
}

/* ---- the whole ---- */

/* Without a `store` file a start would make a new store. */
static int
look_for_store(struct check *c)
{
	uint8_t bytes[STORE_FILE_SIZE];
	struct store_id id;
	struct disk_file *f;
	int e = c->disk->ops->open(c->disk, "store", DISK_READ, &f);

	if (e != 0) {
		say(c, "the file `store` cannot be read: %s%s", strerror(-e),
		    e == -ENOENT ? "; is this a data folder?" : "");
		return e;
	}
	e = disk_read_all(c->disk, f, bytes, sizeof bytes, 0);
	c->disk->ops->close(f);
	if (e == 0)
		e = store_id_decode(&id, bytes, sizeof bytes);
	if (e == 0 || e == -EPROTONOSUPPORT)
		c->report->format = id.format;
	if (e == -EPROTONOSUPPORT)
		say(c, "the data folder is of format %" PRIu32 ", this version reads %d and older",
		    id.format, FORMAT_VERSION);
	else if (e != 0)
		say(c, "the file `store` is damaged or of something else");
	return e;
}

static int
check_all(struct check *c)
{
	struct store_check_report *out = c->report;
	struct store_report r = { 0 };
	char err[STORE_ERROR];
	int e = store_recover(c->store, &r, err);

	if (e != 0) {
		say(c, "%s", err);
		return e;
	}
	out->torn = r.torn;
	if (r.torn > 0)
		say(c,
		    "the journal ends with %" PRIu64 " bytes that were being written; "
		    "nothing that was confirmed is in them",
		    r.torn);
	if (r.damaged > 0)
		say(c, "damaged places in the journal (see above): %" PRIu64, r.damaged);
	check_lanes(c);
	if (c->said > SAID_MAX)
		say(c, "and %" PRIu64 " more", c->said - SAID_MAX);
	out->records = r.records;
	out->damaged += r.damaged;
	say(c,
	    "journal: %" PRIu64 " records, %" PRIu64 " messages; %" PRIu64 " segments with %" PRIu64
	    " messages",
	    r.records, out->in_journal, out->segments, out->in_segments);
	return out->damaged > 0 ? 1 : 0;
}

int
store_check_disk(struct disk *d, const struct store_check_ask *ask, struct store_check_report *out)
{
	static const struct store_config cfg = { .journal_max = UINT64_MAX,
		.sync = { .policy = SYNC_POLICY_ALWAYS },
		.lane_entries = UINT64_MAX,
		.lane_bytes = UINT64_MAX,
		.garbage_max = UINT64_MAX };
	struct check c = { .disk = disk_readonly_new(d), .ask = ask, .report = out };
	struct workers *w = workers_new(0);
	int e;

	*out = (struct store_check_report){ 0 };
	e = look_for_store(&c);
	if (e == 0) {
		c.store = store_new(&cfg, c.disk, w, &item_ops, NULL);
		e = check_all(&c);
		store_free(&c.store);
	}
	workers_free(&w);
	disk_free(&c.disk);
	return e;
}

int
store_check_with(
    const char *path, const struct store_check_ask *ask, struct store_check_report *out)
{
	struct disk *d = disk_real_new(path);
	char line[LINE];
	int e = -errno;

	*out = (struct store_check_report){ 0 };
	if (d == NULL) {
		(void)snprintf(line, sizeof line, "cannot open %s: %s", path, strerror(-e));
		ask->say(ask->arg, line);
		return e;
	}
	e = store_check_disk(d, ask, out);
	disk_free(&d);
	return e;
}

int
store_check(const char *path, store_say_fn *say_line, void *arg)
{
	const struct store_check_ask ask = { .say = say_line, .arg = arg };
	struct store_check_report report;

	return store_check_with(path, &ask, &report);
}

uint32_t
store_format(void)
{
	return FORMAT_VERSION;
}
