/* SPDX-License-Identifier: Apache-2.0
 * hermes server: settings from the file, the environment and the command line, then the node. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "broker/broker.h"
#include "base/wheel.h"
#include "net/tls.h"
#include "node.h"
#include "settings.h"
#include "settings_apply.h"

/* Options and environment variables that stand above a key of the settings. */
static const struct override {
	const char *option, *env, *key;
} overrides[] = {
	{ "data", "HERMES_DATA_DIR", "store.path" },
	{ "node-name", "HERMES_NODE_NAME", "node.name" },
	{ "listen", NULL, "node.listen" },
	{ "listen", NULL, "management.listen" },
	{ "listen", NULL, "prometheus.listen" },
	{ "port", NULL, "node.port" },
	{ "management-port", NULL, "management.port" },
	{ "prometheus-port", NULL, "prometheus.port" },
	{ "log-level", NULL, "log.level" },
};

/* The text of config_set begins with the key's path; here it begins with what the user wrote. Of an option of several keys
 * only the first complains: they take the same values. */
static void
override_problem(const struct cli *c, const struct override *o, const char *err, struct problems *p)
{
	const char *text = err + strlen(o->key);

	if (o > overrides && strcmp(o->option, o[-1].option) == 0)
		return;
	if (cli_count(c, o->option) > 0) {
		p->file = "command line";
		problem(p, NOWHERE, "--%s%s", o->option, text);
	} else {
		p->file = "environment";
		problem(p, NOWHERE, "%s%s", o->env, text);
	}
}

static void
apply_override(
    const struct cli *c, const struct override *o, struct settings *s, struct problems *p)
{
	const struct cfg_key *k = config_find(o->key, strlen(o->key));
	size_t count = cli_count(c, o->option);
	char err[CONFIG_ERROR_MAX];

	if (k->type == CFG_LIST && count > 0) {
		config_clear(&s->config, k);
		for (size_t i = 0; i < count; i++)
			if (!config_add(&s->config, k, cli_nth(c, o->option, i), err))
				override_problem(c, o, err, p);
	} else if (cli_value(c, o->option) != NULL &&
	           !config_set(&s->config, k, cli_value(c, o->option), err)) {
		override_problem(c, o, err, p);
	}
}

static void
gather(void *arg, struct settings *s, struct problems *p)
{
	const struct cli *c = arg;

	settings_load(s, cli_value(c, "config"), p);
	settings_environment(s, p);
	for (size_t i = 0; i < COUNT_OF(overrides); i++)
		apply_override(c, &overrides[i], s, p);
	settings_finish(s, p);
}

/* Declares the topology in a broker that nobody sees, to find what only the broker can refuse. Where there are mistakes
 * already, what could be understood is tried. */
static void
try_topology(const struct settings *s, struct problems *p)
{
	struct wheel *w = wheel_new(0);
	struct broker *b = broker_new(&s->config, w, 0);

	b->is_silent = true;
	settings_declare(s, b, p);
	problems_sort(p);
	broker_free(&b);
	wheel_free(&w);
}

/* Reads the certificates as a start would. */
static void
try_certificates(const struct settings *s, struct problems *p)
{
	struct tls_options o;
	struct tls_set *set;
	char err[TLS_ERROR];

	tls_options_of(&s->config, &o);
	if (p->count > 0 || o.certificates->count == 0)
		return;
	set = tls_set_load(&o, err);
	if (set == NULL)
		problem(p, NOWHERE, "%s", err);
	tls_set_unref(&set);
}

static int
say_problems(const struct cli *c, const struct problems *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		fprintf(stderr, "%s\n", p->item[i]);
	if (p->more > 0)
		fprintf(stderr, "and %" PRIu32 " more\n", p->more);
	return cli_misuse(c, "the settings cannot be used: %" PRIu32 " mistake%s",
	    p->count + p->more, p->count + p->more == 1 ? "" : "s");
}

static void
say_settings(const struct settings *s)
{
	char value[1200];
	int width = 0;

	for (size_t i = 0; i < cfg_key_count; i++)
		if ((int)strlen(cfg_keys[i].path) > width)
			width = (int)strlen(cfg_keys[i].path);
	for (size_t i = 0; i < cfg_key_count; i++) {
		config_show(&s->config, &cfg_keys[i], value, sizeof value);
		printf("%-*s %s\n", width, cfg_keys[i].path, value);
	}
	printf("%s: fine\n", s->file != NULL ? s->file : "no settings file");
}

int
cmd_server(struct cli *c)
{
	struct problems p = { .file = "settings" };
	struct settings s;
	int status;

	gather(c, &s, &p);
	if (cli_switch(c, "check")) {
		try_topology(&s, &p);
		try_certificates(&s, &p);
	}
	if (p.count > 0) {
		status = say_problems(c, &p);
	} else if (cli_switch(c, "check")) {
		say_settings(&s);
		status = CLI_OK;
	} else {
		const struct node_start start = { .settings = &s,
			.pid_file = cli_value(c, "pid-file"),
			.reread = gather,
			.arg = c };

		status = node_run(&start);
	}
	problems_fini(&p);
	settings_fini(&s);
	return status;
}
