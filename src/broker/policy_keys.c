/* SPDX-License-Identifier: Apache-2.0
 * What a policy's definition may say: the keys of the queue arguments' table, that of exchanges, and those about the
 * mirrors of classic queues, which are taken because files of definitions hold them: on one node there are none, as in
 * RabbitMQ. */
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/utf8.h"
#include "broker/policy.h"
#include "broker/queue_argument.h"
#include "broker/table.h"

/* What RabbitMQ says of a wrong value behind the value itself. */
static const struct refusal {
	const char *key, *text;
} refusals[] = {
	{ "alternate-exchange", "is not a valid alternate exchange name" },
	{ "consumer-timeout", "is not a valid consumer timeout" },
	{ "dead-letter-exchange", "is not a valid dead letter exchange name" },
	{ "dead-letter-routing-key", "is not a valid dead letter routing key" },
	{ "dead-letter-strategy", "is not a valid dead letter strategy" },
	{ "delivery-limit", "is not a valid delivery limit" },
	{ "expires", "is not a valid queue expiry" },
	{ "initial-cluster-size", "is not a valid cluster size" },
	{ "max-age", "is not a valid max age" },
	{ "max-in-memory-bytes", "is not a valid maximum memory in bytes" },
	{ "max-in-memory-length", "is not a valid maximum memory in bytes" },
	{ "max-length", "is not a valid maximum length" },
	{ "max-length-bytes", "is not a valid maximum length in bytes" },
	{ "message-ttl", "is not a valid message TTL" },
	{ "overflow", "is not a valid overflow value" },
	{ "queue-leader-locator", "is not a valid queue leader locator value" },
	{ "queue-master-locator", "invalid queue-master-locator value" },
	{ "queue-mode", "is not a valid queue-mode value" },
	{ "queue-version", "is not a valid queue-version value" },
	{ "stream-max-segment-size-bytes", "is not a valid segment size" },
};

enum { SHOWN_MAX = 40 /* bytes of a name */ };

static const char *const mirror_modes[] = { "all", "exactly", "nodes", NULL };
static const char *const sync_modes[] = { "manual", "automatic", NULL };
static const char *const promote_modes[] = { "always", "when-synced", NULL };

/* Keys that only come with ha-mode. */
static const struct {
	const char *key;
	const char *const
	    *words; /* NULL: a number above 0, or for ha-params what the mode asks for */
} mirror_keys[] = {
	{ "ha-params", NULL },
	{ "ha-sync-mode", sync_modes },
	{ "ha-sync-batch-size", NULL },
	{ "ha-promote-on-shutdown", promote_modes },
	{ "ha-promote-on-failure", promote_modes },
};

static const struct argument *
find_row(struct span key)
{
	for (size_t i = 0; i < queue_arguments_count; i++) {
		const char *name = queue_arguments[i].policy;

		if (name != NULL && span_is(key, name))
			return &queue_arguments[i];
	}
	return NULL;
}

bool
policy_key_is_least(struct span key)
{
	const struct argument *a = find_row(key);

	return a != NULL && a->least;
}

static bool
is_mirror_key(struct span key)
{
	if (span_is(key, "ha-mode"))
		return true;
	for (size_t i = 0; i < COUNT_OF(mirror_keys); i++) {
		if (span_is(key, mirror_keys[i].key))
			return true;
	}
	return false;
}

static bool
is_known(struct span key, enum policy_kind kind)
{
	const struct argument *a = find_row(key);

	if (kind == POLICY_OPERATOR)
		return a != NULL && a->by_operator;
	return a != NULL || span_is(key, "alternate-exchange") || is_mirror_key(key);
}

static size_t
print_term(char *buf, size_t n, const struct field *f)
{
	char term[100];
	int len = snprintf(buf, n, "%s", field_term(f, term, sizeof term));

	return len < 0 ? 0 : (size_t)len < n ? (size_t)len : n - 1;
}

/* The known key that is nearest to one that is not; NULL: none is near. */
static const char *
nearest(struct span key, enum policy_kind kind)
{
	const char *words[64] = { "alternate-exchange", "ha-mode" };
	size_t n = kind == POLICY_OPERATOR ? 0 : 2;
	char word[SHOWN_MAX + 1];

	if (key.n > SHOWN_MAX || memchr(key.p, '\0', key.n) != NULL)
		return NULL;
	memcpy(word, key.p, key.n);
	word[key.n] = '\0';
	for (size_t i = 0; i < queue_arguments_count && n < COUNT_OF(words); i++) {
		const char *name = queue_arguments[i].policy;

		if (name != NULL && is_known(span_str(name), kind))
			words[n++] = name;
	}
	for (size_t i = 0; i < COUNT_OF(mirror_keys) && n < COUNT_OF(words); i++) {
		if (is_known(span_str(mirror_keys[i].key), kind))
			words[n++] = mirror_keys[i].key;
	}
	return suggest_nearest(word, words, n);
}

/* [{<<"a">>,1},{<<"b">>,2}] are not recognised policy settings, and of the first that is nearly one which it is. */
static const char *
check_known(const struct table *definition, enum policy_kind kind, char *buf, size_t n)
{
	const char *meant = NULL;
	size_t at = 0, len = 0;
	struct span typo = SPAN_LIT("");
	struct field f;

	while (table_next(table_span(definition), &at, &f)) {
		if (is_known(f.name, kind) || len + 300 > n)
			continue;
		if (meant == NULL && (meant = nearest(f.name, kind)) != NULL)
			typo = f.name;
		len +=
		    (size_t)snprintf(buf + len, n - len, "%s{<<\"%.*s\">>,", len == 0 ? "[" : ",",
		        (int)utf8_cut((const char *)f.name.p, f.name.n, SHOWN_MAX),
		        (const char *)f.name.p);
		len += print_term(buf + len, n - len > 60 ? n - len - 50 : 10, &f);
		len += (size_t)snprintf(buf + len, n - len, "}");
	}
	if (len == 0)
		return NULL;
	len += (size_t)snprintf(buf + len, n - len, "] are not recognised policy settings");
	if (meant != NULL)
		(void)snprintf(buf + len, n - len, ": unknown key '%.*s'; did you mean '%s'?",
		    SPAN_FMT(typo), meant);
	return buf;
}

static const char *
wrong(const struct field *f, const char *text, char *buf, size_t n)
{
	size_t len = print_term(buf, n, f);

	(void)snprintf(buf + len, n - len, " %s", text);
	return buf;
}

static const char *
refusal_of(struct span key)
{
	for (size_t i = 0; i < COUNT_OF(refusals); i++) {
		if (span_is(key, refusals[i].key))
			return refusals[i].text;
	}
	return "is not a valid value";
}

/* Arguments whose rows check nothing themselves: names of exchanges, and numbers. */
static bool
is_right(const struct argument *a, const struct field *f)
{
	char detail[ARGUMENT_DETAIL_MAX];

	if (a == NULL || a->kind == SET_SPAN)
		return f->kind == 'S' && f->bytes.n <= 255;
	if (a->check == NULL)
		return field_is_integer(f) && f->integer >= 0;
	return a->check(f, detail);
}

static const char *
check_mode(const struct table *definition, const struct field *mode, char *buf, size_t n)
{
	struct field params;
	bool has = table_find(table_span(definition), "ha-params", &params);

	if (mode->kind != 'S' || argument_word(mirror_modes, mode->bytes) < 0)
		return wrong(mode, "is not a valid ha-mode value", buf, n);
	if (span_is(mode->bytes, "exactly") &&
	    (!has || !field_is_integer(&params) || params.integer < 1)) {
		(void)snprintf(buf, n, "ha-mode=\"exactly\" takes an integer, %s",
		    has ? "another value was given" : "none given");
		return buf;
	}
	if (span_is(mode->bytes, "nodes") && (!has || params.kind != 'A')) {
		(void)snprintf(buf, n, "ha-mode=\"nodes\" takes a list, %s",
		    has ? "another value was given" : "none given");
		return buf;
	}
	return NULL;
}

static const char *
check_mirrors(const struct table *definition, char *buf, size_t n)
{
	struct span raw = table_span(definition);
	struct field f, mode;
	bool has_mode = table_find(raw, "ha-mode", &mode);

	for (size_t i = 0; i < COUNT_OF(mirror_keys); i++) {
		const char *const *words = mirror_keys[i].words;

		if (!table_find(raw, mirror_keys[i].key, &f))
			continue;
		if (!has_mode)
			return "ha-mode must be specified to specify ha-params, ha-sync-mode or "
			       "ha-promote-on-shutdown";
		if (words != NULL && (f.kind != 'S' || argument_word(words, f.bytes) < 0)) {
			char term[100];

			(void)snprintf(buf, n, "%s must be \"%s\" or \"%s\", got %s",
			    mirror_keys[i].key, words[0], words[1],
			    field_term(&f, term, sizeof term));
			return buf;
		}
		if (span_is(f.name, "ha-sync-batch-size") &&
		    (!field_is_integer(&f) || f.integer < 1))
			return wrong(&f, "is not a valid ha-sync-batch-size", buf, n);
	}
	return has_mode ? check_mode(definition, &mode, buf, n) : NULL;
}

const char *
policy_check_definition(const struct table *definition, enum policy_kind kind, char *buf, size_t n)
{
	const char *why;
	struct field f;
	size_t at = 0;

	if (table_span(definition).n == 0)
		return "no policy provided";
	if ((why = check_known(definition, kind, buf, n)) != NULL)
		return why;
	while (table_next(table_span(definition), &at, &f)) {
		if (!is_mirror_key(f.name) && !is_right(find_row(f.name), &f))
			return wrong(&f, refusal_of(f.name), buf, n);
	}
	return check_mirrors(definition, buf, n);
}
