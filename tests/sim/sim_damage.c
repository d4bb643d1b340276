/* SPDX-License-Identifier: Apache-2.0
 * Bits that flip while the node is down, below what was durable: the model learns what the hit record spoke of. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/sim.h"

enum { NAME = 96, CANDIDATES = 20000, BLOCK = 4096 };

struct place { /* of a record of the journal */
	uint64_t lsn;
	uint64_t size;
};

struct file {
	char name[NAME];
	uint64_t number;
};

struct look {
	struct sim *s;
	const char *folder;
	struct file *file; /* owned */
	uint32_t files;
	struct place *place; /* owned */
	uint32_t places;
	uint64_t durable; /* the highest that a chunk states */
	uint32_t oldest;
	bool says;
};

static void
add_file(void *arg, const char *name, uint64_t size)
{
	struct look *k = arg;
	struct file f = { .number = 0 };
	struct file_header h;
	size_t folder = strlen(k->folder), n = strlen(name);
	const uint8_t *p;

	if (folder + n + 1 > NAME)
		return;
	memcpy(f.name, k->folder, folder);
	memcpy(f.name + folder, name, n + 1);
	p = disk_sim_bytes(k->s->disk, f.name, &size);
	if (p == NULL || size < FILE_HEADER || file_header_decode(&h, k->s->id.seed, p) != 0 ||
	    h.store_id != k->s->id.id)
		return;
	f.number = h.number;
	k->file = xrealloc(k->file, (k->files + 1) * sizeof *k->file);
	k->file[k->files++] = f;
}

static int
by_number(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- the journal ---- */

static void
walk(struct look *k, const struct file *f)
{
	uint64_t size, at = FILE_HEADER, lsn;
	const uint8_t *p = disk_sim_bytes(k->s->disk, f->name, &size);
	struct record_header r;
	struct chunk_record c;

	while (at + RECORD_HEADER <= size) {
		lsn = lsn_of((uint32_t)f->number, (uint32_t)at);
		if (!record_check(p + at, size - at, lsn, k->s->id.seed, &r)) {
			at += RECORD_ALIGN; /* hit before */
			continue;
		}
		if (r.kind == RECORD_CHUNK) {
			chunk_decode(&c, p + at + RECORD_HEADER);
			k->durable = c.durable > k->durable ? c.durable : k->durable;
			k->oldest = c.oldest > k->oldest ? c.oldest : k->oldest;
			if (k->says)
				sim_say(k->s, "    %llx chunk: durable %llx, oldest %u",
				    (unsigned long long)lsn, (unsigned long long)c.durable,
				    c.oldest);
		}
		if (k->places < CANDIDATES)
			k->place[k->places++] = (struct place){ lsn, record_size(r.length) };
		at += record_size(r.length);
	}
}

static struct model_lane *
lane_of(struct sim *s, uint64_t queue, uint32_t lane)
{
	return model_find_lane(&s->model, (struct op_lane){ queue, lane });
}

/* Nothing is known any more of these. */
static void
doubt(struct model_lane *l, uint64_t first, uint64_t last, bool ghosts)
{
	if (l == NULL)
		return;
	l->ghosts = l->ghosts || ghosts;
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->e[i].seq < first || l->e[i].seq > last)
			continue;
		l->e[i].maybe = true;
		l->e[i].is_doubtful = true;
		if (l->e[i].where == MODEL_GONE)
			l->e[i].removed = MODEL_WHO_KNOWS;
	}
}

static void
doubt_object(struct sim *s, const struct op_object *o)
{
	model_object(&s->model, o->kind, o->id)->unknown = true;
	for (uint32_t i = 0; i < s->model.lanes && o->kind == OBJECT_QUEUE; i++) {
		if (s->model.lane[i]->name.queue == o->id)
			doubt(s->model.lane[i], 0, UINT64_MAX, true);
	}
}

static void
doubt_ack(struct sim *s, const struct op_ack *a)
{
	struct range r;

	for (uint32_t i = 0; i < a->ranges; i++) {
		op_range(a->raw, i, &r);
		doubt(lane_of(s, a->lane.queue, a->lane.lane), r.first, r.last, true);
	}
}

static void
doubt_op(struct sim *s, const struct op *op)
{
	struct op_msg m;
	struct op_target t;
	struct op_ack a;
	struct op_state_change c;
	struct op_object o;
	struct op_seg g;
	struct op_dedup d;

	switch (op->kind) {
	case OP_MSG:
		if (op_msg_decode(op->body, &m) != 0)
			break;
		for (uint32_t i = 0; i < m.targets; i++) {
			op_msg_target(&m, i, &t);
			doubt(lane_of(s, t.queue, t.lane), t.seq, t.seq, false);
		}
		break;
	case OP_ACK:
		if (op_ack_decode(op->body, &a) == 0)
			doubt_ack(s, &a);
		break;
	case OP_STATE:
		if (op_state_decode(op->body, &c) == 0)
			doubt(lane_of(s, c.lane.queue, c.lane.lane), c.range.first, c.range.last,
			    false);
		break;
	case OP_PUT:
	case OP_GONE:
		if (op_object_decode(op->body, &o) == 0)
			doubt_object(s, &o);
		break;
	case OP_SEG:
		if (op_seg_decode(op->body, &g) == 0)
			doubt(lane_of(s, g.lane.queue, g.lane.lane), g.first, g.last, true);
		break;
	case OP_DEDUP:
		if (op_dedup_decode(op->body, &d) == 0)
			sim_window_doubt(s, &d);
		break;
	default: break;
	}
}

static const struct file *
file_of(const struct look *k, uint32_t number)
{
	for (uint32_t i = 0; i < k->files; i++) {
		if (k->file[i].number == number)
			return &k->file[i];
	}
	return NULL;
}

/* The model doubts all that the record speaks of. */
static void
doubt_record(struct look *k, const struct place *at)
{
	const struct file *f = file_of(k, lsn_file(at->lsn));
	uint64_t size;
	const uint8_t *p = disk_sim_bytes(k->s->disk, f->name, &size) + lsn_at(at->lsn);
	struct record_header r;
	struct op op;
	size_t next = 0;
	int error = 0;

	record_header_decode(&r, p);
	sim_say(
	    k->s, "  hit: %s at %u, %u bytes, kind %u", f->name, lsn_at(at->lsn), r.length, r.kind);
	while (r.kind == RECORD_OPS &&
	       op_next(span_of(p + RECORD_HEADER, r.length), &next, &op, &error)) {
		sim_say(k->s, "    operation %u", op.kind);
		doubt_op(k->s, &op);
	}
	k->s->damage_due = k->s->damage_expected = true;
}

static void
hit_bit(struct look *k, const struct place *at)
{
	const struct file *f = file_of(k, lsn_file(at->lsn));
	uint64_t size, flip;
	struct record_header r;

	record_header_decode(&r, disk_sim_bytes(k->s->disk, f->name, &size) + lsn_at(at->lsn));
	flip = rnd(&k->s->r, RECORD_HEADER + r.length);
	doubt_record(k, at);
	disk_sim_flip(k->s->disk, f->name, lsn_at(at->lsn) + flip, (unsigned)rnd(&k->s->r, 8));
}

/* The disk cannot read the block in which the record begins: all records that touch it are hit. */
static void
hit_block(struct look *k, const struct place *at)
{
	uint64_t from = at->lsn / BLOCK * BLOCK, to = from + BLOCK;

	if (lsn_at(from) < FILE_HEADER || to > k->durable || k->s->is_broken)
		return;
	k->s->is_broken = true; /* one at a time: the one before must not heal */
	for (uint32_t i = 0; i < k->places; i++) {
		if (k->place[i].lsn < to && k->place[i].lsn + k->place[i].size > from)
			doubt_record(k, &k->place[i]);
	}
	disk_sim_break(k->s->disk, file_of(k, lsn_file(at->lsn))->name, lsn_at(from),
	    (uint64_t)lsn_at(from) + BLOCK);
}

/* Behind the end of its file: it was cut off once. */
static bool
is_void(const struct model *m, uint64_t lsn)
{
	for (uint32_t i = 0; i < m->ends; i++) {
		if (lsn_file(m->end[i]) == lsn_file(lsn))
			return lsn >= m->end[i];
	}
	return false;
}

static void
damage_journal(struct sim *s)
{
	struct look k = { .s = s, .folder = "journal/" };
	const struct place *chosen = NULL;
	uint32_t n = 0;

	k.place = xmalloc(CANDIDATES * sizeof *k.place);
	(void)s->disk->ops->list(s->disk, "journal", add_file, &k);
	if (k.files > 0)
		qsort(k.file, k.files, sizeof *k.file, by_number);
	for (uint32_t i = 0; i < k.files; i++)
		walk(&k, &k.file[i]);
	sim_find_ends(s, k.oldest);
	for (uint32_t i = 0; i < k.places; i++) {
		const struct place *p = &k.place[i];

		if (lsn_file(p->lsn) >= k.oldest && p->lsn + p->size <= k.durable &&
		    !is_void(&s->model, p->lsn) && rnd(&s->r, ++n) == 0)
			chosen = p;
	}
	if (chosen != NULL) {
		if (rnd_chance(&s->r, 70))
			hit_bit(&k, chosen);
		else
			hit_block(&k, chosen);
	}
	free(k.place);
	free(k.file);
}

/* For those who look into a failure: the chunks of all files. */
void
sim_dump_journal(struct sim *s)
{
	struct look k = { .s = s, .folder = "journal/", .says = true };

	if (!s->verbose)
		return;
	k.place = xmalloc(CANDIDATES * sizeof *k.place);
	(void)s->disk->ops->list(s->disk, "journal", add_file, &k);
	if (k.files > 0)
		qsort(k.file, k.files, sizeof *k.file, by_number);
	for (uint32_t i = 0; i < k.files; i++) {
		sim_say(s, "  %s: file %llu", k.file[i].name, (unsigned long long)k.file[i].number);
		walk(&k, &k.file[i]);
	}
	free(k.place);
	free(k.file);
}

/* ---- segments ---- */

static void
damage_segment(struct sim *s)
{
	struct look k = { .s = s, .folder = "segments/" };
	const uint8_t *p;
	uint64_t size, at = FILE_HEADER, chosen = 0, chosen_n = 0, n = 0;
	struct record_header r;
	struct file_header h;

	(void)s->disk->ops->list(s->disk, "segments", add_file, &k);
	if (k.files > 0) {
		const struct file *f = &k.file[rnd(&s->r, k.files)];

		p = disk_sim_bytes(s->disk, f->name, &size);
		(void)!file_header_decode(&h, s->id.seed, p);
		while (at + RECORD_HEADER <= size) {
			record_header_decode(&r, p + at);
			if (!record_check(p + at, size - at, r.lsn, s->id.seed, &r))
				break;
			if (rnd(&s->r, ++n) == 0) {
				chosen = at;
				chosen_n = RECORD_HEADER + r.length;
			}
			at += record_size(r.length);
		}
		if (n > 0) {
			record_header_decode(&r, p + chosen);
			sim_say(s, "flip in %s, seq %llu", f->name, (unsigned long long)r.lsn);
			doubt(lane_of(s, h.queue, h.lane), r.lsn, r.lsn, false);
			disk_sim_flip(s->disk, f->name, chosen + rnd(&s->r, chosen_n),
			    (unsigned)rnd(&s->r, 8));
			s->damage_expected = true;
		}
	}
	free(k.file);
}

void
sim_damage(struct sim *s)
{
	if (rnd_chance(&s->r, 70))
		damage_journal(s);
	else
		damage_segment(s);
}
