/* SPDX-License-Identifier: Apache-2.0
 * Policies by name, set and cleared, and which of them an object has: see the header. */
#include "broker/policy.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/definition.h"
#include "broker/event.h"
#include "broker/exchange.h"
#include "broker/pattern.h"
#include "broker/persist.h"
#include "broker/policy_apply.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum {
	NAME_LEN_MAX = 255,
	REASON_MAX = 1600,
	/* Steps of matching, for an object and a kind of policy: of one of them, of all, and those that each has even when
	 * the others have used up all. In all under two milliseconds, for names and patterns made to take long. */
	STEPS_ONE = 4000,
	STEPS_ALL = 8000,
	STEPS_LEAST = 32
};

/* The word, and the kinds of object that it means. */
enum { TO_CLASSIC = 1, TO_QUORUM = 2, TO_STREAM = 4, TO_EXCHANGE = 8 };
static const struct {
	const char *word;
	unsigned kinds;
} targets[] = {
	{ "all", TO_CLASSIC | TO_QUORUM | TO_STREAM | TO_EXCHANGE },
	{ "queues", TO_CLASSIC | TO_QUORUM | TO_STREAM },
	{ "exchanges", TO_EXCHANGE },
	{ "classic_queues", TO_CLASSIC },
	{ "quorum_queues", TO_QUORUM },
	{ "streams", TO_STREAM },
};

/* -1: no such word. */
static int
target_of(struct span word)
{
	if (word.n == 0)
		return 0;
	for (size_t i = 0; i < COUNT_OF(targets); i++) {
		if (span_is(word, targets[i].word))
			return (int)i;
	}
	return -1;
}

const char *
policy_apply_to(const struct policy *p)
{
	return targets[p->apply_to].word;
}

struct policy *
policy_find(const struct vhost *vh, enum policy_kind kind, struct span name)
{
	struct policy *p = NULL;

	HASH_FIND(hh, vh->policies[kind], name.n > 0 ? (const void *)name.p : "", name.n, p);
	return p;
}

/* ---- life ---- */

static size_t
policy_size(const struct policy *p)
{
	return sizeof *p + strlen(p->name) + strlen(p->pattern_text) + 2 +
	       table_size(p->definition);
}

static void
policy_unref(struct policy *p)
{
	if (p == NULL || --p->refs > 0)
		return;
	mem_sub(MEM_TOPOLOGY, policy_size(p));
	pattern_free(&p->pattern);
	table_free(&p->definition);
	free(p->name);
	free(p->pattern_text);
	free(p);
}

/* Of equal priority: the first by name, so that the answer is the same on every call. */
static bool
goes_before(const struct policy *a, const struct policy *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return strcmp(a->name, b->name) < 0;
}

static int
by_id(const struct policy *a, const struct policy *b)
{
	return a->id < b->id ? -1 : a->id > b->id;
}

/* In lists one that is set again stays where it was. */
static void
link_policy(struct vhost *vh, struct policy *p, size_t name_len)
{
	struct policy_list *list = &vh->policy_order[p->kind];
	struct policy *other;

	HASH_ADD_KEYPTR_INORDER(hh, vh->policies[p->kind], p->name, name_len, p, by_id);
	TAILQ_FOREACH (other, list, link)
		if (goes_before(p, other))
			break;
	if (other != NULL)
		TAILQ_INSERT_BEFORE(other, p, link);
	else
		TAILQ_INSERT_TAIL(list, p, link);
}

/* Takes the pattern. */
static struct policy *
make(struct vhost *vh, enum policy_kind kind, const struct policy_spec *spec, int apply_to,
    struct pattern *pattern, uint64_t id)
{
	struct policy *p = xcalloc(1, sizeof *p);

	p->vhost = vh;
	p->kind = kind;
	p->id = id;
	p->name = xstrndup((const char *)spec->name.p, spec->name.n);
	p->pattern_text =
	    xstrndup(spec->pattern.n > 0 ? (const char *)spec->pattern.p : "", spec->pattern.n);
	p->pattern = pattern;
	p->priority = spec->priority;
	p->apply_to = (uint8_t)apply_to;
	p->of_settings = spec->of_settings;
	p->definition = table_from_raw(table_span(spec->definition));
	p->refs = 1;
	mem_add(MEM_TOPOLOGY, policy_size(p));
	link_policy(vh, p, spec->name.n);
	return p;
}

static void
unlink_policy(struct policy *p)
{
	walk_pass(&p->vhost->broker->walks, &p->hh, WALK_LINK((struct policy *)p->hh.next, hh));
	HASH_DEL(p->vhost->policies[p->kind], p);
	TAILQ_REMOVE(&p->vhost->policy_order[p->kind], p, link);
	p->vhost = NULL;
	policy_unref(p);
}

void
policies_free(struct vhost *vh)
{
	for (int kind = 0; kind < POLICY_KINDS; kind++)
		while (vh->policies[kind] != NULL)
			unlink_policy(vh->policies[kind]);
}

/* ---- kept ---- */

static void
put(const struct policy *p)
{
	struct definition d = { 0 };

	definition_put(&d, DEF_NAME, span_str(p->name));
	definition_put(&d, DEF_VHOST, span_str(p->vhost->name));
	definition_put_number(&d, DEF_KIND, (uint64_t)p->kind);
	definition_put_number(&d, DEF_FLAGS, p->of_settings ? DEF_SETTINGS : 0u);
	definition_put(&d, DEF_PATTERN, span_str(p->pattern_text));
	definition_put(&d, DEF_APPLY_TO, span_str(policy_apply_to(p)));
	definition_put_number(&d, DEF_PRIORITY, (uint64_t)p->priority);
	definition_put(&d, DEF_ARGUMENTS, table_span(p->definition));
	persist_object(p->vhost->broker, OBJECT_POLICY, p->id, &d);
}

void
policies_put_again(struct vhost *vh)
{
	for (int kind = 0; kind < POLICY_KINDS; kind++)
		for (struct policy *p = vh->policies[kind]; p != NULL; p = p->hh.next)
			if (store_is_lost(vh->broker->store, OBJECT_POLICY, p->id))
				put(p);
}

struct policy *
policy_restore(struct vhost *vh, uint64_t id, struct span state)
{
	uint64_t kind = definition_number(state, DEF_KIND);
	struct policy_spec spec = { .priority = (int64_t)definition_number(state, DEF_PRIORITY),
		.of_settings = (definition_number(state, DEF_FLAGS) & DEF_SETTINGS) != 0 };
	struct table *definition;
	struct pattern *pattern;
	struct policy *p = NULL;
	struct span raw;
	char why[128];
	int to;

	if (kind >= POLICY_KINDS || !definition_name(state, DEF_NAME, &spec.name) ||
	    spec.name.n == 0 || policy_find(vh, (enum policy_kind)kind, spec.name) != NULL ||
	    !definition_find(state, DEF_PATTERN, &spec.pattern) ||
	    !definition_find(state, DEF_APPLY_TO, &spec.apply_to) ||
	    (to = target_of(spec.apply_to)) < 0 || !definition_find(state, DEF_ARGUMENTS, &raw) ||
	    table_check(raw, TABLE_DEPTH_MAX) != 0 || raw.n == 0 ||
	    (pattern = pattern_new(spec.pattern, why, sizeof why)) == NULL)
		return NULL;
	definition = table_from_raw(raw);
	spec.definition = definition;
	p = make(vh, (enum policy_kind)kind, &spec, to, pattern, id);
	table_free(&definition);
	policies_changed(vh); /* for the exchanges that every vhost has */
	return p;
}

/* ---- set and cleared ---- */

/* Lines of a refusal. */
struct reasons {
	char text[REASON_MAX];
	size_t n;
};

static void PRINTF(2, 3) add_reason(struct reasons *r, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(r->text + r->n, sizeof r->text - r->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		r->n += (size_t)n < sizeof r->text - r->n ? (size_t)n : sizeof r->text - 1 - r->n;
}

static const struct error *
check_bounds(const struct vhost *vh, enum policy_kind kind, const struct policy_spec *spec)
{
	if (spec->name.n == 0 || spec->name.n > NAME_LEN_MAX ||
	    memchr(spec->name.p, 0, spec->name.n) != NULL)
		return error_make(E_PRECONDITION_FAILED,
		    "the name of a policy has 1 to %d bytes and no NUL", NAME_LEN_MAX);
	if (table_span(spec->definition).n > POLICY_DEFINITION_MAX)
		return error_make(E_PRECONDITION_FAILED,
		    "the definition of policy '%.*s' has more than %d bytes", SPAN_FMT(spec->name),
		    POLICY_DEFINITION_MAX);
	if (HASH_COUNT(vh->policies[kind]) >= POLICIES_MAX &&
	    policy_find(vh, kind, spec->name) == NULL) {
		bound_reached(BOUND_policies);
		return error_make(E_PRECONDITION_FAILED,
		    "vhost '%s' has %d policies, more are not allowed", vh->name, POLICIES_MAX);
	}
	return memory_check_topology(&vh->broker->memory, "set policy", spec->name, vh->name);
}

/* RabbitMQ's order. *pattern: owned by the caller where NULL is returned. */
static const struct error *
check(const struct policy_spec *spec, enum policy_kind kind, struct pattern **pattern)
{
	struct reasons r = { .n = 0 };
	char buf[REASON_MAX], why[128];
	const char *wrong = policy_check_definition(spec->definition, kind, buf, sizeof buf);

	*pattern = NULL;
	if (memchr(spec->pattern.n > 0 ? (const void *)spec->pattern.p : "", 0, spec->pattern.n) !=
	    NULL)
		add_reason(&r, "pattern should not have a NUL in it\n");
	else if ((*pattern = pattern_new(spec->pattern, why, sizeof why)) == NULL)
		add_reason(&r, "pattern should be regular expression but is invalid: %s\n", why);
	if (wrong != NULL)
		add_reason(&r, "%s\n", wrong);
	if (target_of(spec->apply_to) < 0)
		add_reason(&r,
		    "apply-to '%.*s' unrecognised; should be 'queues', 'classic_queues', "
		    "'quorum_queues', 'streams', 'exchanges' or 'all'\n",
		    SPAN_FMT(spec->apply_to));
	if (r.n == 0)
		return NULL;
	pattern_free(pattern);
	return error_make(E_PRECONDITION_FAILED, "Validation failed\n\n%s", r.text);
}

const struct error *
policy_set(struct vhost *vh, enum policy_kind kind, const struct policy_spec *spec, bool *is_new)
{
	const struct error *e = check_bounds(vh, kind, spec);
	struct policy *old, *p;
	struct pattern *pattern;
	uint64_t id;

	if (e != NULL || (e = check(spec, kind, &pattern)) != NULL)
		return e;
	old = policy_find(vh, kind, spec->name);
	id = old != NULL ? old->id : ++vh->broker->next_id;
	if (is_new != NULL)
		*is_new = old == NULL;
	p = make(vh, kind, spec, target_of(spec->apply_to), pattern, id);
	p->in_settings = old != NULL ? old->in_settings : 0;
	if (old != NULL)
		unlink_policy(old); /* walks that stand there go on with the new one */
	put(p);
	event_policy(p, true);
	policies_changed(vh);
	return NULL;
}

bool
policy_clear(struct vhost *vh, enum policy_kind kind, struct span name)
{
	struct policy *p = policy_find(vh, kind, name);

	if (p == NULL)
		return false;
	event_policy(p, false);
	persist_object_gone(vh->broker, OBJECT_POLICY, p->id);
	unlink_policy(p);
	policies_changed(vh);
	return true;
}

bool
policies_drop_some(struct vhost *vh, unsigned *left)
{
	bool more = false;

	for (int kind = 0; kind < POLICY_KINDS; kind++) {
		for (; *left > 0 && vh->policies[kind] != NULL; --*left) {
			persist_object_gone(vh->broker, OBJECT_POLICY, vh->policies[kind]->id);
			unlink_policy(vh->policies[kind]);
		}
		more |= vh->policies[kind] != NULL;
	}
	return more;
}

/* ---- which one applies ---- */

/* The pattern may be one that takes too long for this name: then it does not match. *left: steps for this object. */
static bool
matches(const struct policy *p, struct span name, uint32_t *left)
{
	static struct log_limit limit = { .burst = 20 };
	uint32_t most = *left < STEPS_ONE ? *left : STEPS_ONE, took;
	enum pattern_result r;

	if (most < STEPS_LEAST)
		most = STEPS_LEAST;
	r = pattern_match(p->pattern, name, most, &took);
	*left -= took < *left ? took : *left;
	p->vhost->broker->work += 1 + took / PATTERN_STEPS_WORK;
	if (r == PATTERN_TOO_LONG && log_allowed(&limit))
		log_warning("the pattern of policy '%s' in vhost '%s' takes too long for '%.*s'%s: "
		            "it does not apply there",
		    p->name, p->vhost->name, SPAN_FMT(name),
		    most < STEPS_ONE ? ", behind others that do" : "");
	return r == PATTERN_YES;
}

/* The bounds of a single match do not bound a thousand of them: they share some steps. The answer depends on the policies
 * and the name alone, and not on what was matched before: it is the same after a restart. */
static struct policy *
choose(const struct vhost *vh, enum policy_kind kind, unsigned what, struct span name)
{
	uint32_t left = STEPS_ALL;
	struct policy *p;

	TAILQ_FOREACH (p, &vh->policy_order[kind], link)
		if ((targets[p->apply_to].kinds & what) != 0 && matches(p, name, &left))
			break;
	return p;
}

static bool
choose_both(const struct vhost *vh, unsigned what, struct span name,
    struct policy *at[POLICY_KINDS], struct policy *old[POLICY_KINDS])
{
	bool changed = false;

	for (int kind = 0; kind < POLICY_KINDS; kind++) {
		struct policy *p = choose(vh, (enum policy_kind)kind, what, name);

		changed |= p != at[kind];
		if (p != NULL)
			p->refs++;
		old[kind] = at[kind];
		at[kind] = p;
	}
	if (!changed)
		policy_drop(old);
	return changed;
}

bool
policy_choose_queue(struct queue *q, struct policy *old[POLICY_KINDS])
{
	unsigned what = 1u << q->set.type; /* as TO_CLASSIC and so on have it */

	return choose_both(q->vhost, what, span_of(q->name, q->name_len), q->policy, old);
}

bool
policy_choose_exchange(struct exchange *x, struct policy *old[POLICY_KINDS])
{
	return choose_both(x->vhost, TO_EXCHANGE, span_of(x->name, x->name_len), x->policy, old);
}

void
policy_drop(struct policy *of[POLICY_KINDS])
{
	for (int kind = 0; kind < POLICY_KINDS; kind++) {
		policy_unref(of[kind]);
		of[kind] = NULL;
	}
}

/* ---- what they say ---- */

static bool
find(const struct policy *p, const char *key, struct field *f)
{
	return p != NULL && table_find(table_span(p->definition), key, f);
}

bool
policy_value(struct policy *const of[POLICY_KINDS], const char *key, bool least, struct field *f)
{
	struct field user;
	bool has_user = find(of[POLICY_USER], key, &user);

	if (find(of[POLICY_OPERATOR], key, f)) {
		if (has_user && least && user.integer < f->integer)
			*f = user;
		return true;
	}
	if (has_user)
		*f = user;
	return has_user;
}

struct span
policy_alternate(const struct exchange *x)
{
	struct field f;

	return policy_value(x->policy, "alternate-exchange", false, &f) ? f.bytes
	                                                                : span_of(NULL, 0);
}

/* The user's keys, with the operator's value where that counts; then the operator's others. */
int
policy_effective(struct policy *const of[POLICY_KINDS], struct table **out)
{
	struct table_writer w;
	struct field f, other;
	size_t at;
	int rc;

	*out = NULL;
	table_writer_init(&w, 2 * POLICY_DEFINITION_MAX);
	for (int kind = 0; kind < POLICY_KINDS; kind++) {
		if (of[kind] == NULL)
			continue;
		for (at = 0; table_next(table_span(of[kind]->definition), &at, &f);) {
			char key[256];

			snprintf(key, sizeof key, "%.*s", SPAN_FMT(f.name));
			if (kind == POLICY_OPERATOR && find(of[POLICY_USER], key, &other))
				continue;
			if (policy_value(of, key, policy_key_is_least(f.name), &other))
				table_put_field(&w, &other);
		}
	}
	rc = w.failed ? -ENOMEM : table_try_copy(span_of(w.p, w.n), out);
	table_writer_fini(&w);
	return rc;
}
