/* SPDX-License-Identifier: Apache-2.0
 * The handler runs on a stack of its own, because the crash may be an overflow of the usual one, and calls only what is
 * safe in a signal handler (signal-safety(7); backtrace(3): safe once its library is loaded, which crash_install
 * sees to). Then the signal gets its default action, so that a core is left and the parent sees the signal. */
#include "crash.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/version.h"

enum { FRAMES_MAX = 64, STACK_BYTES = 64 << 10 };

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
static volatile sig_atomic_t log_fd = -1;

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

static void
on_crash(int number)
{
	const char *what = "unknown signal";
	void *frames[FRAMES_MAX];
	int count = backtrace(frames, FRAMES_MAX);

	for (size_t i = 0; i < COUNT_OF(signals); i++)
		if (signals[i].number == number)
			what = signals[i].text;
	report(STDERR_FILENO, what, frames, count);
	if (log_fd >= 0)
		report(log_fd, what, frames, count);
	raise(number); /* SA_RESETHAND: the default action, once we return */
}

void
crash_install(const char *log_file)
{
	struct sigaction act = { .sa_handler = on_crash,
		.sa_flags = SA_ONSTACK | (int)SA_RESETHAND };
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	stack_t there;
	int old = log_fd;
	void *frames[2];

	backtrace(frames, COUNT_OF(frames)); /* loads its library now */
	if (log_file != NULL && strcmp(log_file, "-") != 0)
		log_fd = open(log_file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
	if (old >= 0)
		close(old);
	sigemptyset(&act.sa_mask);
	/* one that is there already (the address sanitizer makes one) does as well, and is not ours to take away */
	if (sigaltstack(NULL, &there) == 0 && (there.ss_flags & SS_DISABLE) &&
	    sigaltstack(&alternate, NULL) != 0)
		act.sa_flags &= ~SA_ONSTACK;
	for (size_t i = 0; i < COUNT_OF(signals); i++)
		sigaction(signals[i].number, &act, NULL);
}
