/* SPDX-License-Identifier: Apache-2.0
 * What the environment says above the file: the account, the vhost and the definitions of the first start, under our names
 * and those that RabbitMQ's images have. NAME_FILE names a file that holds the value, as secrets of containers are given. */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_MAX = 4096, VARIABLE_MAX = 64 };

/* A value and the variable that it came from; text NULL: it is not set. */
struct given {
	const char *text; /* borrowed: of the environment, or file */
	char variable[VARIABLE_MAX];
	char file[SECRET_MAX + 2];
};

/* The bytes of the file, as many as fit into g->file; -1: said. */
static ssize_t
read_bytes(struct given *g, const char *path, struct problems *p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe is none */
	struct stat st;
	ssize_t got = -1;
	size_t n = 0;

	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		problem(p, NOWHERE, "%s: %s is not a file", g->variable, path);
		close(fd);
		return -1;
	}
	while (fd >= 0 && n <= SECRET_MAX) {
		got = read(fd, g->file + n, SECRET_MAX + 1 - n);
		if (got <= 0 && !(got < 0 && errno == EINTR))
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	if (got < 0)
		problem(
		    p, NOWHERE, "%s: %s cannot be read: %s", g->variable, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return got < 0 ? -1 : (ssize_t)n;
}

/* What the file holds but for the end of its last line. False: said. */
static bool
read_secret(struct given *g, const char *path, struct problems *p)
{
	ssize_t got = read_bytes(g, path, p);
	size_t n = got > 0 ? (size_t)got : 0;

	if (got < 0)
		return false;
	if (n > SECRET_MAX) {
		problem(
		    p, NOWHERE, "%s: %s is larger than %d bytes", g->variable, path, SECRET_MAX);
		return false;
	}
	while (n > 0 && g->file[n - 1] == '\n')
		n -= n > 1 && g->file[n - 2] == '\r' ? 2 : 1;
	g->file[n] = '\0';
	if (strlen(g->file) != n) {
		problem(p, NOWHERE, "%s: %s has a NUL in it", g->variable, path);
		return false;
	}
	g->text = g->file;
	return true;
}

/* PREFIX_rest, or what stands in the file that PREFIX_rest_FILE names. True: one of them is set, be it wrong. */
static bool
take(struct given *g, const char *prefix, const char *rest, struct problems *p)
{
	char of_file[VARIABLE_MAX];
	const char *path;

	(void)snprintf(of_file, sizeof of_file, "%s_%s_FILE", prefix, rest);
	(void)snprintf(g->variable, sizeof g->variable, "%s_%s", prefix, rest);
	path = getenv(of_file);
	g->text = getenv(g->variable);
	if (path == NULL || path[0] == '\0')
		return g->text != NULL;
	if (g->text != NULL) {
		problem(p, NOWHERE, "both %s and %s are set", g->variable, of_file);
		return true;
	}
	(void)snprintf(g->variable, sizeof g->variable, "%s", of_file);
	(void)read_secret(g, path, p);
	return true;
}

/* Ours, or else theirs. */
static bool
either(struct given *g, const char *rest, struct problems *p)
{
	return take(g, "HERMES", rest, p) || take(g, "RABBITMQ", rest, p);
}

static void
set_from(struct settings *s, const char *path, const struct given *g, struct problems *p)
{
	char err[CONFIG_ERROR_MAX];

	if (!config_set(&s->config, config_find(path, strlen(path)), g->text, err))
		problem(p, NOWHERE, "%s%s", g->variable, err + strlen(path));
}

/* Some of RabbitMQ's images have a switch beside the name. */
static bool
definitions_are_off(void)
{
	const char *load = getenv("RABBITMQ_LOAD_DEFINITIONS");

	return load != NULL && getenv("HERMES_DEFINITIONS_FILE") == NULL &&
	       (strcmp(load, "no") == 0 || strcmp(load, "false") == 0 || strcmp(load, "0") == 0);
}

static void
set_definitions(struct settings *s, struct problems *p)
{
	static const char *const names[] = { "HERMES_DEFINITIONS_FILE",
		"RABBITMQ_DEFINITIONS_FILE" };
	struct given g = { .text = NULL };

	for (size_t i = 0; i < COUNT_OF(names) && g.text == NULL && !definitions_are_off(); i++) {
		(void)snprintf(g.variable, sizeof g.variable, "%s", names[i]);
		g.text = getenv(names[i]);
	}
	if (g.text != NULL)
		set_from(s, "definitions.file", &g, p);
}

static void
set_account(struct settings *s, struct problems *p)
{
	struct given user, pass;
	bool has_user = either(&user, "DEFAULT_USER", p);
	bool has_pass = either(&pass, "DEFAULT_PASS", p);

	if (has_user != has_pass)
		problem(p, NOWHERE,
		    "HERMES_DEFAULT_USER and HERMES_DEFAULT_PASS go together; %s is not set",
		    has_pass ? "HERMES_DEFAULT_USER" : "HERMES_DEFAULT_PASS");
	else if (has_user && user.text != NULL && pass.text != NULL) {
		set_from(s, "default_user.name", &user, p);
		set_from(s, "default_user.password", &pass, p);
		s->config.default_user_remote = true;
	}
	explicit_bzero(&pass, sizeof pass);
}

void
settings_environment(struct settings *s, struct problems *p)
{
	const char *file = p->file;
	struct given vhost;

	p->file = "environment";
	set_definitions(s, p);
	if (either(&vhost, "DEFAULT_VHOST", p) && vhost.text != NULL)
		set_from(s, "default_user.vhost", &vhost, p);
	set_account(s, p);
	p->file = file;
}
