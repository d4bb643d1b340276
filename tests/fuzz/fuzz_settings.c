/* SPDX-License-Identifier: Apache-2.0
 * The reader of settings over any bytes: no crash, no leak, bounded work; what was said is bounded too. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct problems p = { .file = "fuzz.yml" };
	struct settings s;

	if (n > SETTINGS_FILE_MAX)
		return 0;
	(void)setenv("A", "a: [b, {c", 1);
	settings_load_text(&s, (const char *)data, n, &p);
	settings_finish(&s, &p);
	assert(p.count <= PROBLEMS_MAX);
	for (uint32_t i = 0; i < p.count; i++)
		assert(p.item[i] != NULL && p.item[i][0] != '\0');
	settings_fini(&s);
	problems_fini(&p);
	return 0;
}
