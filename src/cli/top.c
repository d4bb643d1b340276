/* SPDX-License-Identifier: Apache-2.0
 * hermes top: a node and its queues, over and over. A picture is drawn over the one before, line by line; lines that are too
 * long for the terminal end at its edge. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"
#include "cli/top.h"

enum {
	ROWS_MAX = 500, /* a page of the node's lists */
	ROWS_ONCE = 20,
	FRAME_LINES = 7, /* beside the queues: the node's, the header, keys, one for errors */
	INTERVAL_MIN_MS = 100,
	INTERVAL_MAX_MS = 3600 * 1000,
	SHARE = 4 /* at most one part of so many of the time goes to asking */
};

struct top {
	struct cli *cli; /* borrowed */
	const struct top_order *order;
	uint64_t interval_ms, rows;
	json_t *overview, *queues; /* owned; the answers that are shown */
	struct termios before;
};

static volatile sig_atomic_t stop;

static void
on_signal(int n)
{
	if (n != SIGWINCH) /* that only interrupts a wait */
		stop = 1;
}

/* Whatever ends it by a signal has to leave the terminal in order. */
static void
watch_signals(void)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	struct sigaction sa = { .sa_handler = on_signal };

	for (size_t i = 0; i < COUNT_OF(all); i++)
		sigaction(all[i], &sa, NULL);
}

/* poll() of standard input; a signal that came just before it ends it, too. */
static int
wait_for_input(uint64_t ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	const struct timespec limit = { .tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000 };
	sigset_t all, before;
	int n, saved;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	n = stop ? -1 : ppoll(&p, 1, &limit, &before);
	saved = stop ? EINTR : errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return n;
}

/* ---- what the node says ---- */

static char *
path_of(const struct top *t)
{
	static const char columns[] =
	    "name,vhost,state,consumers,messages_ready,messages_unacknowledged,"
	    "message_stats.publish_details.rate,message_stats.deliver_get_details.rate,"
	    "message_stats.ack_details.rate";
	const char *vhost = cli_value(t->cli, "vhost");
	char *list = vhost != NULL ? HTTP_PATH("/api/queues/*", vhost) : xstrdup("/api/queues"),
	     *path = xasprintf("%s?page=1&page_size=%llu&sort=%s&sort_reverse=%s&columns=%s", list,
	         (unsigned long long)t->rows, t->order->column,
	         t->order->is_rising ? "false" : "true", columns);

	free(list);
	return path;
}

static int
ask(struct top *t)
{
	const char *vhost = cli_value(t->cli, "vhost");
	char *path = path_of(t),
	     *what = vhost != NULL ? text_safe_format("vhost '%s'", vhost) : NULL;
	json_t *page = NULL;
	int rc;

	json_decref(t->overview);
	json_decref(t->queues);
	t->overview = t->queues = NULL;
	rc = http_client_get(t->cli, "/api/overview", &t->overview);
	if (rc == CLI_OK && !json_is_object(json_object_get(t->overview, "hermes")))
		rc = cli_fail(t->cli, "what answers is not a Hermes node");
	if (rc == CLI_OK)
		rc = http_client_call(
		    t->cli, &(struct http_call){ .path = path, .what = what }, NULL, &page);
	if (rc == CLI_OK)
		t->queues = json_incref(json_object_get(page, "items"));
	json_decref(page);
	free(what);
	free(path);
	return rc;
}

/* ---- the terminal ---- */

static bool
terminal_begin(struct top *t)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &t->before) != 0)
		return false;
	raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* it would leave the terminal like this */
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\x1b[?25l\x1b[?7l\x1b[H\x1b[2J", stdout); /* no cursor, no line is broken, empty */
	return true;
}

static void
terminal_end(const struct top *t)
{
	fputs("\x1b[?7h\x1b[?25h", stdout);
	(void)fflush(stdout);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static unsigned
terminal_lines(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 ? w.ws_row : 24;
}

static void
print_keys(FILE *out, const struct top_order *now)
{
	fputs("sorted by", out);
	for (const struct top_order *o = top_orders; o->name != NULL; o++)
		fprintf(out, o == now ? " [%c %s]" : "  %c %s ", o->key, o->name);
	fputs("  q ends", out);
}

/* Over what is there; behind the line of the keys one stays empty, for what is said at the end. */
static void
draw(const struct top *t)
{
	unsigned lines = terminal_lines(), left = lines > 2 ? lines - 2 : 0;
	char *text = NULL, *line, *end;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	top_print(f, t->overview, t->queues, true);
	(void)fclose(f);
	fputs("\x1b[H", stdout);
	for (line = text; left > 0 && (end = strchr(line, '\n')) != NULL; line = end + 1, left--)
		printf("%.*s\x1b[K\n", (int)(end - line), line);
	for (; left > 0; left--)
		fputs("\x1b[K\n", stdout);
	print_keys(stdout, t->order);
	fputs("\x1b[K\n\x1b[K", stdout);
	(void)fflush(stdout);
	free(text);
}

/* False: it ends. */
static bool
take_key(struct top *t, char key)
{
	for (const struct top_order *o = top_orders; o->name != NULL; o++)
		if (o->key == key)
			t->order = o;
	return key != 'q' && key != 'Q';
}

/* Until the time is up or a key was pressed, which means: at once. False: it ends. */
static bool
wait_for_key(struct top *t, uint64_t ms)
{
	char key;
	int n = wait_for_input(ms);

	if (stop || (n < 0 && errno != EINTR))
		return false;
	if (n <= 0)
		return true;
	/* none: the terminal is gone */
	return read(STDIN_FILENO, &key, 1) == 1 && take_key(t, key);
}

/* As many queues as there is room for; *took_ms: how long it took. */
static int
ask_for_screen(struct top *t, uint64_t *took_ms)
{
	uint64_t begin_ms = clock_now_ms();
	unsigned lines = terminal_lines();
	int rc;

	t->rows = lines > FRAME_LINES ? lines - FRAME_LINES : 1;
	if (t->rows > ROWS_MAX)
		t->rows = ROWS_MAX;
	rc = ask(t);
	*took_ms = clock_now_ms() - begin_ms;
	return rc;
}

static int
live(struct top *t)
{
	uint64_t took_ms;
	int rc = ask_for_screen(t, &took_ms); /* which may ask for a password */

	if (rc != CLI_OK)
		return rc;
	watch_signals();
	if (!terminal_begin(t))
		return cli_fail(t->cli, "this is no terminal; --once prints once");
	do {
		uint64_t ms = SHARE * took_ms;

		draw(t);
		if (!wait_for_key(t, ms > t->interval_ms ? ms : t->interval_ms))
			break;
		rc = ask_for_screen(t, &took_ms);
	} while (rc == CLI_OK);
	terminal_end(t);
	return rc;
}

/* ---- the command ---- */

static int
take_options(struct top *t)
{
	const char *sort = cli_value(t->cli, "sort"), *interval = cli_value(t->cli, "interval");

	for (t->order = top_orders; t->order->name != NULL; t->order++)
		if (strcmp(t->order->name, sort) == 0)
			break;
	if (t->order->name == NULL)
		return cli_misuse(t->cli,
		    "--sort: there is backlog, in, out, unacked, consumers, name; not '%.64s'",
		    sort);
	if (units_parse_ms(interval, &t->interval_ms) != 0 || t->interval_ms < INTERVAL_MIN_MS ||
	    t->interval_ms > INTERVAL_MAX_MS)
		return cli_misuse(
		    t->cli, "--interval: '%.64s' is not a time from 100ms to 1h", interval);
	if (!cli_number(t->cli, "count", 1, ROWS_MAX, &t->rows))
		return CLI_USAGE;
	if (cli_given(t->cli, "count") && !cli_switch(t->cli, "once"))
		return cli_misuse(t->cli, "--count is of use with --once only");
	if (!cli_switch(t->cli, "once") && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return cli_misuse(t->cli, "this is no terminal; --once prints once");
	return CLI_OK;
}

int
cmd_top(struct cli *c)
{
	struct top t = { .cli = c, .rows = ROWS_ONCE };
	int rc = take_options(&t);

	if (rc == CLI_OK && cli_switch(c, "once")) {
		rc = ask(&t);
		if (rc == CLI_OK)
			top_print(stdout, t.overview, t.queues, isatty(STDOUT_FILENO) == 1);
	} else if (rc == CLI_OK) {
		rc = live(&t);
	}
	json_decref(t.overview);
	json_decref(t.queues);
	return rc;
}
