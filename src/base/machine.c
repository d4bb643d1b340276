/* SPDX-License-Identifier: Apache-2.0
 * Limits of machine and control group. See cgroups(7) and the kernel's cgroup-v1/memory.txt, cgroup-v2.txt.
 *
 * In a container /proc/self/cgroup often names a path of the host's that is not visible inside; then only the
 * mounted root is, and it carries the container's own limit. So the root is always looked at too. */
#include "base/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4096 };

/* Version 1 says "no limit" with a number near 2^63, rounded to pages. */
static const uint64_t unlimited = (uint64_t)1 << 60;

static uint64_t
read_limit(const char *root, const char *mount, const char *path, const char *file)
{
	char name[LINE], text[64], *end;
	unsigned long long v;
	FILE *f;
	int n;

	n = snprintf(name, sizeof name, "%s%s%s/%s", root, mount, path, file);
	if (n < 0 || (size_t)n >= sizeof name || (f = fopen(name, "re")) == NULL)
		return UINT64_MAX;
	if (fgets(text, sizeof text, f) == NULL)
		text[0] = '\0';
	fclose(f);
	errno = 0;
	v = strtoull(text, &end, 10); /* "max" is no number: no limit */
	if (end == text || errno != 0 || v == 0 || v >= unlimited)
		return UINT64_MAX;
	return v;
}

/* The least limit of `path` and of all above it. Cuts path up as it climbs. */
static uint64_t
least_limit(const char *root, const char *mount, char *path, const char *file)
{
	uint64_t least = UINT64_MAX, v;
	char *slash;

	for (;;) {
		size_t n = strlen(path);

		while (n > 0 && path[n - 1] == '/')
			path[--n] = '\0';
		v = read_limit(root, mount, path, file);
		if (v < least)
			least = v;
		if ((slash = strrchr(path, '/')) == NULL)
			return least;
		*slash = '\0';
	}
}

static bool
has_controller(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p != NULL && *p != '\0';) {
		size_t len = strcspn(p, ",");

		if (len == n && memcmp(p, name, n) == 0)
			return true;
		p += len + (p[len] == ',');
	}
	return false;
}

/* One line of /proc/self/cgroup: "5:memory,cpu:/a/b" (version 1) or "0::/a/b" (version 2). */
static uint64_t
line_limit(const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *path;

	line[strcspn(line, "\n")] = '\0';
	if (controllers == NULL || (path = strchr(controllers + 1, ':')) == NULL)
		return UINT64_MAX;
	*controllers++ = '\0';
	*path++ = '\0';
	if (strstr(path, "/..") != NULL) /* outside our namespace: only the root is of use */
		*path = '\0';
	if (has_controller(controllers, "memory"))
		return least_limit(root, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
	if (*controllers != '\0')
		return UINT64_MAX;
	return least_limit(root, "/sys/fs/cgroup", path, "memory.max");
}

static uint64_t
group_limit(const char *root)
{
	uint64_t least = UINT64_MAX, v;
	char line[LINE];
	FILE *f;
	int n;

	n = snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
	if (n < 0 || (size_t)n >= sizeof line || (f = fopen(line, "re")) == NULL)
		return least;
	while (fgets(line, sizeof line, f) != NULL) {
		v = line_limit(root, line);
		if (v < least)
			least = v;
	}
	fclose(f);
	return least;
}

static uint64_t
total_memory(const char *root)
{
	char line[LINE];
	uint64_t kib = 0;
	FILE *f;
	int n;

	n = snprintf(line, sizeof line, "%s/proc/meminfo", root);
	if (n < 0 || (size_t)n >= sizeof line || (f = fopen(line, "re")) == NULL)
		return (uint64_t)1 << 30; /* no /proc: a careful guess */
	while (fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "MemTotal: %" SCNu64, &kib) == 1)
			break;
	fclose(f);
	return kib > 0 && kib < unlimited >> 10 ? kib << 10 : (uint64_t)1 << 30;
}

uint64_t
machine_memory_at(const char *root)
{
	uint64_t total = total_memory(root), group = group_limit(root);

	return group < total ? group : total;
}

uint64_t
machine_memory(void)
{
	return machine_memory_at("");
}

void
machine_host(char *out, size_t n)
{
	char name[HOST_NAME_MAX + 1];

	if (gethostname(name, sizeof name) != 0)
		name[0] = '\0';
	name[sizeof name - 1] = '\0';
	name[strcspn(name, ".")] = '\0';
	snprintf(out, n, "%s", name[0] != '\0' ? name : "localhost");
}
