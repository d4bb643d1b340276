/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/password_input.h"

#include <stdbool.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

char *
password_read(FILE *in)
{
	char *line = xmalloc(PASSWORD_MAX + 1);
	size_t n = 0;
	int byte = getc(in);
	bool fine = byte != EOF;

	for (; byte != EOF && byte != '\n' && fine; byte = getc(in)) {
		fine = byte != '\0' && n < PASSWORD_MAX;
		if (fine)
			line[n++] = (char)byte;
	}
	if (!fine) {
		free(line);
		return NULL;
	}
	if (n > 0 && line[n - 1] == '\r')
		n--;
	line[n] = '\0';
	return line;
}

char *
password_ask(const char *prompt)
{
	enum { INTERRUPT = 3 };
	struct termios shown, hidden;
	char *line = xmalloc(PASSWORD_MAX + 2);
	ssize_t n;

	if (tcgetattr(STDIN_FILENO, &shown) != 0) {
		free(line);
		return NULL;
	}
	hidden = shown;
	hidden.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
	hidden.c_cc[VEOL] = INTERRUPT;
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
	fputs(prompt, stderr);
	n = read(STDIN_FILENO, line, PASSWORD_MAX + 1);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
	fputc('\n', stderr);
	if (n > 0 && line[n - 1] == '\n') {
		line[n - 1] = '\0';
		return line;
	}
	free(line);
	return NULL;
}
