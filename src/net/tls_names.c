/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Lower case of ASCII, without a dot at the end. False: empty or too long. */
static int
normal(const char *name, uint32_t n, char out[TLS_NAME_MAX + 1])
{
	if (n > 0 && name[n - 1] == '.')
		n--;
	if (n == 0 || n > TLS_NAME_MAX)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		out[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
	out[n] = '\0';
	return 1;
}

void
tls_names_add(struct tls_names *t, const char *name, uint32_t n)
{
	char text[TLS_NAME_MAX + 1];

	if (t->count == TLS_NAMES_MAX || !normal(name, n, text))
		return;
	t->name = xrealloc(t->name, (t->count + 1) * sizeof *t->name);
	t->name[t->count++] = xstrdup(text);
}

void
tls_names_fini(struct tls_names *t)
{
	while (t->count > 0)
		free(t->name[--t->count]);
	free(t->name);
	*t = (struct tls_names){ 0 };
}

unsigned
tls_name_fits(const char *name, const char *host)
{
	const char *dot;

	if (strcmp(name, host) == 0)
		return 2;
	if (name[0] != '*' || name[1] != '.' || strchr(name + 2, '.') == NULL)
		return 0;
	dot = strchr(host, '.');
	return dot != NULL && dot > host && strcmp(dot, name + 1) == 0;
}

uint32_t
tls_names_choose(const struct tls_names *const *all, uint32_t n, const char *host)
{
	char text[TLS_NAME_MAX + 1];
	uint32_t best = 0;
	unsigned how = 0;

	if (host == NULL || !normal(host, (uint32_t)strnlen(host, TLS_NAME_MAX + 2), text))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < all[i]->count; k++) {
			unsigned fits = tls_name_fits(all[i]->name[k], text);

			if (fits <= how)
				continue;
			how = fits;
			best = i;
		}
	return best;
}
