/* SPDX-License-Identifier: Apache-2.0
 * A place in a list that somebody goes through over several turns, while others take things out of it. The place is the
 * address of a link: the member by which a thing is in that list. Whoever takes something out says so first (walk_pass), and
 * who stands there goes on to the next one. What comes in later is met or not. */
#ifndef BROKER_WALK_H
#define BROKER_WALK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct walk {
	LIST_ENTRY(walk) others;
	const void *at; /* borrowed: the link of the next one; NULL: there is none */
};
LIST_HEAD(walk_list, walk);

static inline void
walk_begin(struct walk_list *all, struct walk *w)
{
	w->at = NULL;
	LIST_INSERT_HEAD(all, w, others);
}

static inline void
walk_end(struct walk *w)
{
	LIST_REMOVE(w, others);
	w->at = NULL;
}

/* The thing with this link leaves the list; next: the link of the one behind it, or NULL. */
static inline void
walk_pass(const struct walk_list *all, const void *link, const void *next)
{
	struct walk *w;

	LIST_FOREACH (w, all, others)
		if (w->at == link)
			w->at = next;
}

/* Of a thing, the address of its link; NULL of none. And back. */
#define WALK_LINK(p, member) ((p) != NULL ? (const void *)&(p)->member : NULL)
#define WALK_AT(at, type, member) ((struct type *)((uintptr_t)(at) - offsetof(struct type, member)))

#endif
