/* SPDX-License-Identifier: Apache-2.0
 * A main() for fuzz targets built without libFuzzer: runs the target over every file of its corpus,
 * so that `make check` keeps what fuzzing once found, with any compiler.
 *
 * Usage: fuzz_NAME [FILE|FOLDER]...; without arguments $srcdir/tests/fuzz/corpus/fuzz_NAME. A target
 * without a corpus fails, as a test that runs nothing proves nothing. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int replay_path(const char *path);

enum { INPUT_MAX = 64 << 20 }; /* bytes; nothing in a corpus is near it */

/* Files run so far. Returns of the functions below: 0, or 1 after a line on standard error. */
static unsigned long runs;

static int
complain(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, what);
	return 1;
}

static int
replay_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	size_t n;

	if (f == NULL)
		return complain(path, strerror(errno));
	/* Exactly as large as the input, so that the sanitizer sees a read behind its end. */
	data = malloc(size > 0 ? size : 1);
	if (data == NULL) {
		fclose(f);
		return complain(path, "too large for memory");
	}
	n = fread(data, 1, size, f);
	fclose(f);
	if (n != size) {
		free(data);
		return complain(path, "cannot be read");
	}
	/* The name first: after a crash it is the last line of the log. */
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	runs++;
	return 0;
}

static int
replay_folder(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char sub[PATH_MAX];
	int bad = 0;

	if (d == NULL)
		return complain(path, strerror(errno));
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) >= (int)sizeof sub)
			bad |= complain(e->d_name, "the name is too long");
		else
			bad |= replay_path(sub);
	}
	closedir(d);
	return bad;
}

int
replay_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return complain(path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return replay_folder(path);
	if (!S_ISREG(st.st_mode) || st.st_size > INPUT_MAX)
		return complain(path, "not a file, or too large");
	return replay_file(path, (size_t)st.st_size);
}

int
main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir"), *name = strrchr(argv[0], '/');
	char corpus[PATH_MAX];
	int i, bad = 0;

	for (i = 1; i < argc; i++)
		bad |= replay_path(argv[i]);
	if (argc == 1) {
		snprintf(corpus, sizeof corpus, "%s/tests/fuzz/corpus/%s",
		    srcdir != NULL ? srcdir : ".", name != NULL ? name + 1 : argv[0]);
		bad = replay_path(corpus);
	}
	if (runs == 0)
		bad = complain(argc == 1 ? corpus : argv[0], "no input was run");
	printf("Checks: %lu, Failures: %d, Errors: 0\n", runs, bad);
	return bad;
}
