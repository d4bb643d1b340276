/* SPDX-License-Identifier: Apache-2.0
 * topic: keys are words with dots between them (0-9-1, 3.1.3.3). One node per word of a pattern; the children of all
 * nodes stand in one hash by (parent, word), those for * and # at their parent. A run of # is one #. The empty key has
 * no word, and "." two empty ones, as in RabbitMQ. */
#include "broker/exchange_type/topic.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"
#include "base/mem.h"
#include "broker/exchange_type/type.h"
#include "broker/hash.h"

struct node {
	struct node *parent;
	struct node *star, *hash; /* children for * and # */
	struct bucket_node child; /* in topic->children, unless it is for * or # */
	struct node *active
	    [2]; /* next in the list of active nodes, of this word and of the next one in turn */
	uint64_t step; /* word for which it was made active last */
	uint64_t id;
	struct binding_list bindings; /* those whose pattern ends here */
	uint32_t words;               /* children in the hash */
	bool is_hash;
	uint8_t len;
	uint8_t word[];
};

struct topic {
	struct node *root;
	struct buckets children; /* by parent and word */
	size_t nodes;
	uint64_t next_id, step, steps, stop; /* stop: of steps, for the match under way */
};

static struct node *
node_new(struct topic *t, struct node *parent, struct span word)
{
	struct node *n = xcalloc(1, sizeof *n + word.n);

	n->parent = parent;
	n->id = ++t->next_id;
	LIST_INIT(&n->bindings);
	n->len = (uint8_t)word.n;
	if (word.n > 0)
		memcpy(n->word, word.p, word.n);
	mem_add(MEM_TOPOLOGY, sizeof *n + word.n);
	t->nodes++;
	return n;
}

static void
node_free(struct topic *t, struct node *n)
{
	mem_sub(MEM_TOPOLOGY, sizeof *n + n->len);
	t->nodes--;
	free(n);
}

struct topic *
topic_new(void)
{
	struct topic *t = xcalloc(1, sizeof *t);

	t->root = node_new(t, NULL, span_of(NULL, 0));
	return t;
}

void
topic_free(struct topic **tp)
{
	struct topic *t = *tp;

	*tp = NULL;
	if (t == NULL)
		return;
	assert(t->nodes == 1 && LIST_EMPTY(&t->root->bindings));
	node_free(t, t->root);
	free(t);
}

static uint64_t
child_hash(const struct node *parent, uint64_t word_hash)
{
	return hash_mix(word_hash ^ parent->id * 0x9E3779B97F4A7C15ull);
}

static struct node *
child_find(const struct topic *t, const struct node *parent, struct span word, uint64_t word_hash)
{
	struct bucket_node *b;

	if (parent->words == 0)
		return NULL;
	b = buckets_first(&t->children, child_hash(parent, word_hash));
	for (; b != NULL; b = buckets_next(b)) {
		struct node *n = container_of(b, struct node, child);

		if (n->parent == parent && span_eq(span_of(n->word, n->len), word))
			return n;
	}
	return NULL;
}

/* The child for one word of a pattern, made if need be. */
static struct node *
child_make(struct topic *t, struct node *parent, struct span word)
{
	struct node *n, **np;
	uint64_t h;

	if (word.n == 1 && (word.p[0] == '*' || word.p[0] == '#')) {
		if (word.p[0] == '#' && parent->is_hash)
			return parent;
		np = word.p[0] == '*' ? &parent->star : &parent->hash;
		if (*np == NULL) {
			*np = node_new(t, parent, word);
			(*np)->is_hash = word.p[0] == '#';
		}
		return *np;
	}
	h = hash_span(word);
	n = child_find(t, parent, word, h);
	if (n != NULL)
		return n;
	n = node_new(t, parent, word);
	buckets_add(&t->children, &n->child, child_hash(parent, h));
	parent->words++;
	return n;
}

/* The next word of *rest, which loses it and its dot; false when there is none. A key that ends with a dot ends with an
 * empty word: *rest then points to its end. p NULL: nothing left. */
static bool
next_word(struct span *rest, struct span *word)
{
	const uint8_t *dot;

	if (rest->p == NULL)
		return false;
	dot = rest->n > 0 ? memchr(rest->p, '.', rest->n) : NULL;
	if (dot == NULL) {
		*word = *rest;
		*rest = span_of(NULL, 0);
		return true;
	}
	*word = span_of(rest->p, (size_t)(dot - rest->p));
	*rest = span_of(dot + 1, rest->n - word->n - 1);
	return true;
}

static struct span
words_of(struct span key)
{
	return key.n > 0 ? key : span_of(NULL, 0);
}

void
topic_add(struct topic *t, struct binding *b)
{
	struct span rest = words_of(binding_key(b)), word;
	struct node *n = t->root;

	while (next_word(&rest, &word))
		n = child_make(t, n, word);
	LIST_INSERT_HEAD(&n->bindings, b, index_link);
	b->index_node = n;
}

static bool
is_needed(const struct node *n)
{
	return !LIST_EMPTY(&n->bindings) || n->star != NULL || n->hash != NULL || n->words > 0;
}

static void
node_unlink(struct topic *t, struct node *n)
{
	struct node *parent = n->parent;

	if (parent->star == n) {
		parent->star = NULL;
		return;
	}
	if (parent->hash == n) {
		parent->hash = NULL;
		return;
	}
	buckets_remove(&t->children, &n->child);
	parent->words--;
}

void
topic_remove(struct topic *t, struct binding *b)
{
	struct node *n = b->index_node, *parent;

	LIST_REMOVE(b, index_link);
	b->index_node = NULL;
	while (n != t->root && !is_needed(n)) {
		parent = n->parent;
		node_unlink(t, n);
		node_free(t, n);
		n = parent;
	}
}

/* Active nodes are two lists in turn, linked through active[0] and active[1]: a node may stand in both, because # stays
 * active while it takes words. */
static void
activate(struct topic *t, struct node **list, unsigned which, struct node *n)
{
	while (n != NULL && n->step != t->step) {
		n->step = t->step;
		n->active[which] = *list;
		*list = n;
		n = n->hash; /* # takes no word as well */
	}
}

static struct node *
follow(struct topic *t, struct node *now, unsigned which, struct span word)
{
	uint64_t h = hash_span(word);
	struct node *then = NULL;

	t->step++;
	for (; now != NULL && t->steps < t->stop; now = now->active[which]) {
		t->steps++;
		if (now->is_hash)
			activate(t, &then, !which, now);
		activate(t, &then, !which, now->star);
		activate(t, &then, !which, child_find(t, now, word, h));
	}
	return then;
}

bool
topic_match(struct topic *t, struct span key, uint32_t steps_max, topic_hit *hit, void *arg)
{
	struct span rest = words_of(key), word;
	struct node *now = NULL;
	struct binding *b;
	unsigned which = 0;

	t->stop = t->steps + steps_max;
	t->step++;
	activate(t, &now, which, t->root);
	while (now != NULL && next_word(&rest, &word)) {
		now = follow(t, now, which, word);
		which = !which;
	}
	for (; now != NULL && t->steps < t->stop; now = now->active[which]) {
		t->steps++;
		LIST_FOREACH (b, &now->bindings, index_link) {
			if (!hit(arg, b))
				return false;
		}
	}
	return t->steps < t->stop;
}

size_t
topic_nodes(const struct topic *t)
{
	return t->nodes;
}

uint64_t
topic_steps(const struct topic *t)
{
	return t->steps;
}

static void
exchange_add(struct exchange *x, struct binding *b)
{
	if (x->index == NULL)
		x->index = topic_new();
	topic_add(x->index, b);
}

static void
exchange_remove(struct exchange *x, struct binding *b)
{
	topic_remove(x->index, b);
}

static bool
hit_route(void *arg, struct binding *b)
{
	return route_hit(arg, b);
}

static void
exchange_route(struct exchange *x, struct span key, struct route_walk *w)
{
	struct topic *t = x->index;
	uint64_t before;

	if (t == NULL)
		return;
	before = t->steps;
	(void)topic_match(t, key, route_steps_left(w), hit_route, w);
	route_steps_taken(w, (uint32_t)(t->steps - before));
}

static void
exchange_free(struct exchange *x)
{
	struct topic *t = x->index;

	topic_free(&t);
	x->index = NULL;
}

const struct exchange_type_ops exchange_topic = {
	.name = "topic",
	.add = exchange_add,
	.remove = exchange_remove,
	.route = exchange_route,
	.free = exchange_free,
	.by_key = true,
};
