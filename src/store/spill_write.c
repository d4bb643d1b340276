/* SPDX-License-Identifier: Apache-2.0
 * The worker's part of a spill: messages into one or more segment files, each synced, then the folder. Nothing here
 * touches what the core thread may change; the lane's name and kind do not change. */
#include "store/spill_priv.h"

#include <string.h>

#include "base/mem.h"
#include "store/mutant.h"

static struct spill_file *
add_file(struct spill *sp)
{
	if (sp->files == sp->files_cap) {
		sp->files_cap = sp->files_cap == 0 ? 4 : 2 * sp->files_cap;
		sp->file = xrealloc(sp->file, sp->files_cap * sizeof(*sp->file));
	}
	memset(&sp->file[sp->files], 0, sizeof *sp->file);
	return &sp->file[sp->files]; /* counted when it is whole */
}

static void
begin_file(struct spill *sp, struct segment_writer *w, uint32_t item)
{
	struct spill_file *f = add_file(sp);
	struct lane *l = sp->lane; /* its name and kind do not change */
	struct file_header h = { .kind = FILE_SEGMENT,
		.format = FORMAT_VERSION,
		.store_id = sp->store->id.id,
		.number = sp->item[item].seq,
		.queue = l->name.queue,
		.lane = l->name.lane };

	f->item = item;
	f->first = sp->item[item].seq;
	if (item == 0 && sp->continued != NULL) {
		f->is_continued = true;
		f->messages = sp->continued_messages;
		memcpy(f->name, sp->continued_name, sizeof f->name);
		segment_continue(w, f->name, sp->continued_end);
		return;
	}
	segment_name(l, f->first, f->name);
	segment_create(w, f->name, &h);
}

/* Written and synced it is one of the job's; otherwise nothing of it stays, and nothing comes after it. */
static void
end_file(struct spill *sp, struct segment_writer *w)
{
	struct spill_file *f = &sp->file[sp->files];

	f->end = segment_end(w);
	segment_finish(w, sp->lane->durable);
	sp->error = w->error;
	if (sp->error == 0)
		sp->files++;
	else if (!f->is_continued)
		(void)w->disk->ops->unlink(w->disk, f->name);
	else
		sp->continued_failed = true;
}

static bool
is_full(const struct spill *sp, const struct segment_writer *w, uint64_t size)
{
	const struct spill_file *f = &sp->file[sp->files];

	return f->messages >= sp->store->cfg.segment_messages ||
	       (f->messages > 0 && segment_end(w) + size > sp->store->cfg.segment_bytes);
}

static void
write_item(struct spill *sp, struct segment_writer *w, uint32_t i)
{
	struct op_target target = { sp->lane->name.queue, sp->item[i].seq, sp->lane->name.lane };
	struct op_msg m = { .target = &target, .targets = 1 };
	struct spill_file *f;
	uint64_t size;

	sp->store->ops->describe(sp->item[i].item, &m);
	m.state = sp->item[i].state;
	m.target = &target;
	m.targets = 1;
	size = record_size(op_msg_size(&m));
	if (i > 0 && is_full(sp, w, size)) {
		sp->file[sp->files].is_closed = true;
		end_file(sp, w);
		if (sp->error != 0)
			return;
		begin_file(sp, w, i);
	}
	f = &sp->file[sp->files];
	sp->item[i].at = segment_end(w);
	sp->item[i].bytes = m.body_size;
	segment_write(w, &m, target);
	f->last = target.seq;
	f->items++;
	f->messages++;
	if (m.expires_ms == 0)
		f->never_expires = true;
	else if (m.expires_ms > f->latest_expiry_ms)
		f->latest_expiry_ms = m.expires_ms;
	sp->bytes += size;
}

/* Of the new files. Without a name on disk none of them counts. */
static void
sync_names(struct spill *sp)
{
	struct disk *d = sp->store->disk;
	uint32_t continued = sp->files > 0 && sp->file[0].is_continued;
	int error;

	if (sp->files == continued)
		return;
	error = d->ops->sync_folder(d, "segments");
	if (error == 0)
		return;
	sp->error = error;
	while (sp->files > continued)
		(void)d->ops->unlink(d, sp->file[--sp->files].name);
}

void
spill_run(struct worker_job *job)
{
	struct spill *sp = container_of(job, struct spill, job);
	struct disk *d = sp->store->disk;
	struct segment_writer w;
	uint32_t i;

	segment_writer_init(&w, d, sp->store->id.seed);
	begin_file(sp, &w, 0);
	for (i = 0; i < sp->items && w.error == 0 && sp->error == 0; i++)
		write_item(sp, &w, i);
	if (sp->error == 0)
		end_file(sp, &w);
	segment_writer_fini(&w);
	if (sp->lane->durable && !MUTANT(SEGMENT_NAME))
		sync_names(sp);
}
