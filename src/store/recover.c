/* SPDX-License-Identifier: Apache-2.0
 * The start: the file `store`, the journal replayed into lanes and objects, what a crash left over removed; and the
 * handing over of what was found to the broker. No segment is opened: the time does not grow with the backlog. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "store/lane.h"
#include "store/segment_file.h"
#include "store/store_priv.h"
#include "store/window_priv.h"

enum {
	JOURNAL_FILE_MIN = 1 << 20,
	JOURNAL_FILE_MAX = 32 << 20,
	DISK_SHARE = 16,
	ORPHANS_SAID = 20 /* lines */
};

static int
fail(char err[STORE_ERROR], int error, const char *what)
{
	snprintf(err, STORE_ERROR, "%s: %s", what, strerror(-error));
	return error;
}

/* ---- the folder ---- */

struct names {
	char **name; /* owned */
	uint32_t n, cap;
};

static void
names_add(void *arg, const char *name, uint64_t size)
{
	struct names *l = arg;

	(void)size;
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 64 : l->cap * 2;
		l->name = xrealloc(l->name, l->cap * sizeof *l->name);
	}
	l->name[l->n++] = xstrdup(name);
}

static void
names_fini(struct names *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		free(l->name[i]);
	free(l->name);
}

static int
make_folders(struct store *s, char err[STORE_ERROR])
{
	static const char *const folder[] = { "journal", "segments", "transient" };
	struct disk *d = s->disk;
	int error;

	for (size_t i = 0; i < COUNT_OF(folder); i++) {
		error = d->ops->make_folder(d, folder[i]);
		if (error != 0) {
			snprintf(err, STORE_ERROR,
			    "the folder %s cannot be made in the data folder: %s", folder[i],
			    strerror(-error));
			return error;
		}
	}
	error = d->ops->sync_folder(d, "");
	return error == 0 ? 0 : fail(err, error, "the data folder cannot be synced");
}

/* ---- the file `store` ---- */

static int
read_id(struct store *s, char err[STORE_ERROR])
{
	uint8_t p[STORE_FILE_SIZE];
	struct disk_file *f;
	int error = s->disk->ops->open(s->disk, "store", DISK_READ, &f);

	if (error == -ENOENT)
		return error;
	if (error != 0)
		return fail(err, error, "the file `store` cannot be opened");
	error = disk_read_all(s->disk, f, p, sizeof p, 0);
	s->disk->ops->close(f);
	if (error != 0)
		return fail(err, error, "the file `store` cannot be read");
	error = store_id_decode(&s->id, p, sizeof p);
	if (error == -EPROTONOSUPPORT)
		snprintf(err, STORE_ERROR,
		    "the data folder is of a newer format (%" PRIu32
		    "); this version reads up to %d",
		    s->id.format, FORMAT_VERSION);
	else if (error != 0)
		snprintf(err, STORE_ERROR,
		    "the file `store` of the data folder is damaged or not of this program");
	return error;
}

static int
write_id(struct store *s, char err[STORE_ERROR])
{
	uint8_t p[STORE_FILE_SIZE];
	struct names journal = { 0 };
	int error = s->disk->ops->list(s->disk, "journal", names_add, &journal);
	uint32_t n = journal.n;

	names_fini(&journal);
	if (error != 0)
		return fail(err, error, "the folder of the journal cannot be read");
	if (n > 0) {
		snprintf(err, STORE_ERROR,
		    "the data folder has a journal, but the file `store` that belongs to it is "
		    "missing");
		return -EBADMSG;
	}
	s->id.format = FORMAT_VERSION;
	random_bytes(&s->id.id, sizeof s->id.id);
	random_bytes(&s->id.seed, sizeof s->id.seed);
	store_id_encode(&s->id, p);
	error = disk_replace(s->disk, "store", p, sizeof p);
	return error == 0 ? 0 : fail(err, error, "the file `store` cannot be written");
}

/* ---- the journal ---- */

static uint64_t
wanted_file_size(const struct store *s)
{
	uint64_t total = 0, available = 0, size = s->cfg.journal_file_size;

	if (size != 0)
		return size;
	size = JOURNAL_FILE_MAX;
	if (s->disk->ops->space(s->disk, &total, &available) == 0 && total / DISK_SHARE < size)
		size = total / DISK_SHARE;
	if (size < JOURNAL_FILE_MIN)
		size = JOURNAL_FILE_MIN;
	return size & ~(uint64_t)(FILE_HEADER - 1);
}

struct replay {
	struct store *store;
	int error; /* of apply_record */
};

static int
replay(void *arg, uint64_t lsn, struct span payload)
{
	struct replay *r = arg;

	r->error = apply_record(r->store, lsn, payload);
	return r->error;
}

static int
replay_journal(struct store *s, struct journal_report *jr, char err[STORE_ERROR])
{
	struct journal_config c = {
		.file_size = wanted_file_size(s),
		.max = s->cfg.journal_max,
		.threads = s->cfg.threads,
	};
	struct replay r = { .store = s };
	char text[JOURNAL_ERROR] = "";
	int error;

	s->journal = journal_new(s->disk, s->workers, &c, &s->id);
	error = journal_recover(s->journal, replay, &r, jr, text);
	if (error == 0)
		return 0;
	if (r.error == -EPROTONOSUPPORT)
		snprintf(err, STORE_ERROR,
		    "the journal has operations of a newer version than this one; format %d is "
		    "read",
		    FORMAT_VERSION);
	else if (r.error == -ENOMEM)
		snprintf(err, STORE_ERROR, "no memory for the messages in the journal");
	else
		snprintf(err, STORE_ERROR, "%s", text[0] != '\0' ? text : strerror(-error));
	return error;
}

/* ---- what a crash left ---- */

static bool
is_named(struct store *s, const char *path)
{
	struct op_lane name;
	const struct segment *g;
	uint64_t first;
	struct lane *l;

	if (!segment_name_parse(path, &name, &first))
		return false;
	l = lane_find(s, name);
	if (l != NULL && segment_by_first(l, first) != NULL)
		return true;
	/* Those that the replay emptied go their own way. */
	TAILQ_FOREACH (g, &s->chains.doomed, link)
		if (strcmp(g->doomed_name, path) == 0)
			return true;
	return false;
}

/* A file of segments/ without SEG: what is in it is in the journal, too. After damage that is not certain. */
static int
remove_file(struct store *s, const char *folder, const char *name, bool set_aside)
{
	struct disk *d = s->disk;
	char *path = xasprintf("%s/%s", folder, name), *to = xasprintf("set-aside/%s", name);
	int error;

	if (set_aside) {
		error = d->ops->make_folder(d, "set-aside");
		if (error == 0)
			error = d->ops->rename(d, path, to);
		if (error == 0)
			log_warning(
			    "store: %s, which no record names, was moved to set-aside/", path);
	} else {
		error = d->ops->unlink(d, path);
	}
	if (error == -ENOENT)
		error = 0;
	if (error != 0)
		log_warning("store: %s cannot be removed: %s", path, strerror(-error));
	free(path);
	free(to);
	return error;
}

/* There is a `store` file, so there was a journal, or a first start that did not come so far. */
static void
say_no_journal(struct store *s, uint32_t segments)
{
	if (segments == 0) {
		log_warning(
		    "the data folder has no journal: its first start was cut off, or the journal "
		    "was removed");
		return;
	}
	s->stats.damaged++;
	log_error("the journal of the data folder is gone; %" PRIu32
	          " files of segments/ had messages of queues that nobody knows any more",
	    segments);
}

static int
clean(struct store *s, bool no_journal, char err[STORE_ERROR])
{
	struct names segments = { 0 }, transient = { 0 };
	int error = s->disk->ops->list(s->disk, "segments", names_add, &segments);
	bool damage;

	if (error == 0 && no_journal)
		say_no_journal(s, segments.n);
	damage = s->stats.damaged > 0;
	for (uint32_t i = 0; error == 0 && i < segments.n; i++) {
		char *path = xasprintf("segments/%s", segments.name[i]);

		if (!is_named(s, path))
			error = remove_file(s, "segments", segments.name[i], damage);
		free(path);
	}
	if (error == 0)
		error = s->disk->ops->list(s->disk, "transient", names_add, &transient);
	for (uint32_t i = 0; error == 0 && i < transient.n; i++)
		error = remove_file(s, "transient", transient.name[i], false);
	names_fini(&segments);
	names_fini(&transient);
	return error == 0 ? 0 : fail(err, error, "files of an earlier run cannot be removed");
}

/* What is given out next would be further from what lives than a ring reaches: a MARK that is wrong. */
static void
check_next(struct store *s, struct lane *l)
{
	if (l->live == 0 || lane_is_near(l, l->next_seq))
		return;
	s->stats.damaged++;
	log_error("store: queue %" PRIu64 " lane %" PRIu32 " has message %" PRIu64
	          " and goes on with %" PRIu64 "; it goes on with %" PRIu64,
	    l->name.queue, l->name.lane, l->low, l->next_seq, l->high);
	l->next_seq = l->high;
}

static void
report(struct store *s, const struct journal_report *jr, struct store_report *r)
{
	struct lane *l;

	TAILQ_FOREACH (l, &s->lanes, all_link)
		check_next(s, l);
	*r = (struct store_report){
		.records = jr->records,
		.damaged = s->stats.damaged,
		.torn = jr->torn,
		.next_id = s->next_id,
		.clock_ms = jr->clock_ms,
		.is_new = jr->is_new,
	};
	TAILQ_FOREACH (l, &s->lanes, all_link) {
		r->lanes++;
		r->messages += l->live + l->unread;
	}
}

int
store_recover(struct store *s, struct store_report *r, char err[STORE_ERROR])
{
	struct journal_report jr = { 0 };
	bool is_new;
	int error;

	assert(s->journal == NULL);
	s->recovering = true;
	error = make_folders(s, err);
	if (error == 0)
		error = read_id(s, err);
	is_new = error == -ENOENT;
	if (is_new)
		error = write_id(s, err);
	if (error == 0)
		error = replay_journal(s, &jr, err);
	if (error != 0)
		return error;
	s->stats.damaged += jr.damaged;
	if (s->next_id < jr.next_id)
		s->next_id = jr.next_id;
	s->now_ms = jr.clock_ms;
	error = clean(s, jr.is_new && !is_new, err);
	if (error != 0)
		return error;
	s->recovering = false;
	report(s, &jr, r);
	return 0;
}

/* ---- linking ---- */

void
lane_each(struct lane *l, lane_entry_fn *f, void *arg)
{
	struct store *s = l->store;
	struct op_msg m;
	void *item;

	if (!l->owns_items)
		return;
	l->owns_items = false;
	for (uint64_t seq = l->low; seq < l->high; seq++) {
		const struct slot *slot = lane_slot(l, seq);

		if (slot == NULL)
			continue;
		item = slot->item;
		m = (struct op_msg){ 0 };
		s->ops->describe(item, &m);
		f(arg, seq, item, lane_state(l, seq), &m);
	}
}

/* Its queue's record was damaged, or could not be used. */
static void
orphan_goes(struct store *s, const struct lane *l, unsigned *said)
{
	uint64_t n = l->live + l->unread;

	if (n == 0)
		return;
	s->stats.damaged_messages += n;
	if (++*said <= ORPHANS_SAID)
		log_error("store: queue %" PRIu64 " lane %" PRIu32 " has %" PRIu64
		          " messages, but there is no such queue; they are lost",
		    l->name.queue, l->name.lane, n);
	object_gone(s, OBJECT_QUEUE, l->name.queue); /* or the next start would find them again */
}

void
store_each_lane(struct store *s, uint32_t from, store_lane_fn *f, void *arg)
{
	struct lane *l;

	TAILQ_FOREACH (l, &s->lanes, all_link) {
		if (l->name.lane >= from)
			f(arg, l->name.queue, l->name.lane);
	}
}

void
store_linked(struct store *s)
{
	struct lane *l, *next;
	unsigned said = 0;

	objects_forget_states(s);
	windows_linked(s);
	for (l = TAILQ_FIRST(&s->lanes); l != NULL; l = next) {
		next = TAILQ_NEXT(l, all_link);
		if (l->is_linked || object_exists(s, OBJECT_QUEUE, l->name.queue))
			continue;
		for (uint32_t i = 0; i < l->segments; i++)
			l->segment[i]->is_damaged |= s->stats.damaged > 0;
		orphan_goes(s, l, &said);
		lane_close(&l);
	}
	if (said > ORPHANS_SAID)
		log_error("store: so it is with %u more lanes", said - ORPHANS_SAID);
}
