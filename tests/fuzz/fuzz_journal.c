/* SPDX-License-Identifier: Apache-2.0
 * Recovery over hostile files: the input is a list of commands that build journal files out of right records in wrong
 * places, lying CHUNK and OPEN records and rubbish, with checksums made right, because no input finds those. Whatever
 * comes of it, a start that succeeds can be written to, and the next one finds the same as the first, and that behind it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "store/journal.h"
#include "tests/sim/disk_sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { FILE_SIZE = 64 << 10, FILES = 6, RECORDS = 100000 };

enum command {
	PUT_OPS,
	PUT_CHUNK,
	PUT_OPEN,
	PUT_RUBBISH,
	PUT_BAD_SUM,
	PUT_OTHER_KIND,
	SKIP,
	NEXT_FILE,
	COMMANDS
};

struct input {
	const uint8_t *p;
	size_t n;
};

struct builder {
	uint8_t file[FILE_SIZE];
	uint32_t number, at;
	uint64_t size;
};

static const struct store_id id = { FORMAT_VERSION, 11, 12 };

static uint64_t
take(struct input *in, unsigned bytes)
{
	uint64_t v = 0;

	for (; bytes > 0 && in->n > 0; bytes--, in->p++, in->n--)
		v = v << 8 | *in->p;
	return v;
}

/* ---- files ---- */

static void
begin(struct builder *b, struct input *in)
{
	struct file_header h = { FILE_JOURNAL, FORMAT_VERSION, id.id, 0, FILE_SIZE, 0, 0 };
	unsigned how = (unsigned)take(in, 1);

	memset(b, 0, sizeof *b);
	b->number = (uint32_t)take(in, how & 1 ? 4 : 1);
	b->at = FILE_HEADER;
	b->size = how & 2 ? take(in, 2) : FILE_SIZE;
	h.number = b->number;
	if (how & 4)
		h.size = take(in, 8);
	file_header_encode(&h, id.seed, b->file);
	if (how & 8)
		b->file[take(in, 2) % HEADER_USED] ^= 1;
}

static void
put_record(struct builder *b, struct input *in, enum command c)
{
	struct record_header h = { .kind = RECORD_OPS, .lsn = lsn_of(b->number, b->at) };
	struct chunk_record chunk;
	struct open_record open;
	uint8_t *p = b->file + b->at;

	h.length = c == PUT_CHUNK  ? CHUNK_PAYLOAD
	           : c == PUT_OPEN ? OPEN_PAYLOAD
	                           : (uint32_t)take(in, 2);
	if (b->at + record_size(h.length) > FILE_SIZE)
		return;
	memset(p + RECORD_HEADER, (int)take(in, 1), h.length);
	if (c == PUT_CHUNK) {
		h.kind = RECORD_CHUNK;
		chunk = (struct chunk_record){ lsn_of((uint32_t)take(in, 1), (uint32_t)take(in, 2)),
			(uint32_t)take(in, 1), 0, take(in, 1), take(in, 1) };
		chunk_encode(&chunk, p + RECORD_HEADER);
	} else if (c == PUT_OPEN) {
		h.kind = RECORD_OPEN;
		open = (struct open_record){ lsn_of((uint32_t)take(in, 1), (uint32_t)take(in, 2)),
			1, 1 };
		open_encode(&open, p + RECORD_HEADER);
	} else if (c == PUT_OTHER_KIND) {
		h.kind = (uint8_t)take(in, 1);
	}
	record_header_encode(&h, p);
	record_seal(p, id.seed);
	if (c == PUT_BAD_SUM)
		p[take(in, 2) % record_size(h.length)] ^= 4;
	b->at += (uint32_t)record_size(h.length);
}

static void
put_rubbish(struct builder *b, struct input *in)
{
	for (uint64_t n = take(in, 1); n > 0 && b->at < FILE_SIZE; n--)
		b->file[b->at++] = (uint8_t)take(in, 1);
	b->at = (b->at + 7) & ~7u;
}

static void
end(struct builder *b, struct disk *d, int slot)
{
	char name[JOURNAL_NAME] = "journal/00000000";
	struct disk_file *f;

	name[strlen(name) - 1] = (char)('0' + slot);
	assert(d->ops->open(d, name, DISK_CREATE, &f) == 0);
	assert(disk_write_one(d, f, b->file, b->size, 0) == 0);
	d->ops->close(f);
}

static void
build(struct disk *d, struct input *in)
{
	static struct builder b;
	int slot = 0;

	assert(d->ops->make_folder(d, "journal") == 0);
	begin(&b, in);
	while (in->n > 0 && slot < FILES) {
		enum command c = (enum command)(take(in, 1) % COMMANDS);

		if (b.at > FILE_SIZE - RECORD_HEADER || c == NEXT_FILE) {
			end(&b, d, slot++);
			begin(&b, in);
		} else if (c == SKIP) {
			b.at += 8 * (uint32_t)take(in, 1);
			b.at = b.at < FILE_SIZE ? b.at : FILE_SIZE - 8;
		} else if (c == PUT_RUBBISH) {
			put_rubbish(&b, in);
		} else {
			put_record(&b, in, c);
		}
	}
	if (slot < FILES)
		end(&b, d, slot);
}

/* ---- starts ---- */

struct seen {
	uint64_t lsn[RECORDS];
	uint32_t n;
};

static int
note(void *arg, uint64_t lsn, struct span payload)
{
	struct seen *s = arg;
	uint8_t sum = 0;

	for (size_t i = 0; i < payload.n; i++)
		sum ^= payload.p[i];
	assert(s->n < RECORDS);
	assert(s->n == 0 || lsn > s->lsn[s->n - 1]);
	s->lsn[s->n++] = lsn + (sum == 255); /* the payload was read */
	return 0;
}

/* Starts, writes one record, ends. Its LSN; 0: the start was refused. */
static uint64_t
live_once(struct disk *d, struct seen *s)
{
	struct journal_config cfg = { FILE_SIZE, 1 << 20, false };
	struct journal *j = journal_new(d, NULL, &cfg, &id);
	struct journal_report r;
	char err[JOURNAL_ERROR] = "";
	uint64_t lsn = 0;

	s->n = 0;
	if (journal_recover(j, note, s, &r, err) == 0) {
		*journal_append(j, 1, 1, SYNC_NOW, 0, &lsn) = 1;
		assert(s->n == 0 || lsn > s->lsn[s->n - 1]);
		journal_hand_over(j, 1, 1);
		assert(journal_step(j));
		(void)journal_poll(j);
		assert(journal_durable(j) > lsn);
	} else {
		assert(err[0] != '\0');
	}
	journal_free(&j);
	return lsn;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct seen first, second;
	static bool is_quiet;
	struct input in = { p, n };
	struct disk *d;
	uint64_t lsn;

	if (n < 2 || n > 8192)
		return 0;
	if (!is_quiet)
		is_quiet = log_open(LOG_ERROR, LOG_TEXT, "/dev/null") ==
		           0; /* damage is told line by line */
	d = disk_sim_new(1, 1ULL << 40);
	build(d, &in);
	lsn = live_once(d, &first);
	if (lsn != 0 && lsn_file(lsn) < UINT32_MAX - 1) { /* else the numbers are used up */
		disk_sim_crash(d, 2);
		assert(live_once(d, &second) > lsn);
		assert(second.n == first.n + 1 && second.lsn[first.n] == lsn);
		assert(memcmp(second.lsn, first.lsn, first.n * sizeof first.lsn[0]) == 0);
	}
	assert(disk_sim_open_files(d) == 0);
	disk_free(&d);
	return 0;
}
