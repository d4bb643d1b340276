/* SPDX-License-Identifier: Apache-2.0
 * A dead letter made again what was published: see transfer.h. What its deaths wrote goes, x-death and x-first-death-*, and what
 * they took away comes back: the keys of CC, where letters had a key of their own, and the time to live. So nobody who counts
 * deaths gives it up at once, and no rule against cycles takes it for one that goes round. */
#include <assert.h>
#include <string.h>

#include "broker/death.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/table.h"
#include "broker/transfer.h"

enum {
	NAME_BYTES = 255,
	FRAME_HEAD = 7,
	FRAME_END = 0xCE,
	CONTENT_HEAD = 12,
	MORE =
	    64 /* bytes of headers beyond those that there were: never needed, they come from x-death */
};

static bool
is_of_deaths(const struct field *f)
{
	static const char *const names[] = { "x-death", "x-first-death-reason",
		"x-first-death-queue", "x-first-death-exchange" };

	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (span_is(f->name, names[i]))
			return true;
	}
	return false;
}

/* The keys behind the first, which is the message's own. */
static void
put_copies(struct table_writer *w, struct span keys)
{
	uint32_t mark = 0;
	struct field key;
	size_t at = 0;

	for (unsigned i = 0; array_next(keys, &at, &key); i++) {
		if (i == 0 || key.kind != 'S')
			continue;
		if (mark == 0)
			mark = table_begin_array(w, "CC");
		table_put_item_text(w, key.bytes);
	}
	if (mark != 0)
		table_end(w, mark);
}

static void
write_headers(struct table_writer *w, struct span headers, const struct death_history *seen)
{
	struct field f;
	size_t at = 0;

	table_writer_init(w, (uint32_t)headers.n + MORE);
	while (table_next(headers, &at, &f)) {
		if (!is_of_deaths(&f))
			table_put_field(w, &f);
	}
	if (seen->first.keys.p != NULL && !table_find(headers, "CC", &f))
		put_copies(w, seen->first.keys);
}

static struct span
expiration_of(const struct props *pr, const struct death_history *seen)
{
	struct span was = seen->first.expiration;
	uint64_t ms;

	if (pr->expiration.p != NULL) /* somebody gave it another one since */
		return pr->expiration;
	if (was.p == NULL || was.n > NAME_BYTES || props_expiration(was, &ms) != 0)
		return span_of(NULL, 0);
	return was;
}

struct msg *
transfer_restore(struct msg *m, const struct props *pr, const struct death_history *seen,
    struct span exchange, struct span key)
{
	uint16_t names = (uint16_t)(2 + exchange.n + key.n + 1);
	struct span raw = msg_props(m), headers, expiration = expiration_of(pr, seen);
	struct msg *to = NULL;
	struct table_writer w;
	uint32_t payload;
	uint8_t *p;

	write_headers(&w, pr->headers, seen);
	headers = w.n > 0 ? span_of(w.p, w.n) : span_of(NULL, 0);
	payload = CONTENT_HEAD + (uint32_t)props_write_as(raw, pr, headers, expiration, NULL);
	if (!w.failed)
		to = msg_try_like(m, names, names + FRAME_HEAD + payload + 1);
	if (to != NULL) {
		msg_set_spread(to, 0);
		p = put_short_string(put_short_string(to->wire, exchange), key);
		*p++ = FRAME_END;
		memcpy(p, m->wire + m->names_len, FRAME_HEAD + CONTENT_HEAD);
		put_be32(p + 3, payload);
		(void)props_write_as(raw, pr, headers, expiration, p + FRAME_HEAD + CONTENT_HEAD);
		p[FRAME_HEAD + payload] = FRAME_END;
	}
	table_writer_fini(&w);
	return to;
}
