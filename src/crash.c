/* SPDX-License-Identifier: Apache-2.0
 * The handler runs on a stack of its own, because the crash may be an overflow of the usual one, and calls only what is
 * safe in a signal handler (signal-safety(7); backtrace(3): safe once its library is loaded, which crash_install
 * sees to). Then the signal gets its default action, so that a core is left and the parent sees the signal. That comes
 * about also when standard error is a pipe that nobody empties: an alarm cuts the report short. */
#include "crash.h"

#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/log.h"
#include "base/version.h"

enum {
	FRAMES_MAX = 64,
	STACK_BYTES = 64 << 10,
	LOG_MS = 20, /* for the log thread to write the last lines, which tell most */
	PATIENCE_S = 3
};

static const struct crash_signal {
	int number;
	const char *text;
} signals[] = {
	{ SIGABRT, "SIGABRT, something that must be true was not" },
	{ SIGSEGV, "SIGSEGV, memory that is not there" },
	{ SIGBUS, "SIGBUS, memory that is not there" },
	{ SIGFPE, "SIGFPE, arithmetic" },
	{ SIGILL, "SIGILL, illegal instruction" },
};

static uint8_t stack[STACK_BYTES];
static volatile sig_atomic_t crashed; /* by this signal */

static void
say(int fd, const char *text)
{
	ssize_t unused = write(fd, text, strlen(text));

	(void)unused; /* nothing can be done about it here */
}

static void
report(int fd, const char *what, void **frames, int count)
{
	say(fd, "\nhermes " HERMES_VERSION " crashed: ");
	say(fd, what);
	say(fd, "\nbacktrace:\n");
	backtrace_symbols_fd(frames, count, fd);
	say(fd, "please report these lines\n");
}

/* The report got stuck. The signal has its default action again, and is blocked while its handler runs. */
static void
on_alarm(int number UNUSED)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, crashed);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(crashed);
}

static void
on_crash(int number)
{
	const struct sigaction act = { .sa_handler = on_alarm };
	const char *what = "unknown signal";
	void *frames[FRAMES_MAX];
	int count = backtrace(frames, FRAMES_MAX), fd = log_fd();

	crashed = number;
	sigaction(SIGALRM, &act, NULL);
	alarm(PATIENCE_S);
	(void)poll(NULL, 0, LOG_MS);
	for (size_t i = 0; i < COUNT_OF(signals); i++)
		if (signals[i].number == number)
			what = signals[i].text;
	report(STDERR_FILENO, what, frames, count);
	if (fd != STDERR_FILENO)
		report(fd, what, frames, count);
	raise(number); /* SA_RESETHAND: the default action, once we return */
}

void
crash_install(void)
{
	struct sigaction act = { .sa_handler = on_crash,
		.sa_flags = SA_ONSTACK | (int)SA_RESETHAND };
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	stack_t there;
	void *frames[2];

	backtrace(frames, COUNT_OF(frames)); /* loads its library now */
	sigemptyset(&act.sa_mask);
	/* one that is there already (the address sanitizer makes one) does as well, and is not ours to take away */
	if (sigaltstack(NULL, &there) == 0 && (there.ss_flags & SS_DISABLE) &&
	    sigaltstack(&alternate, NULL) != 0)
		act.sa_flags &= ~SA_ONSTACK;
	for (size_t i = 0; i < COUNT_OF(signals); i++)
		sigaction(signals[i].number, &act, NULL);
}
