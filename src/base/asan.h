/* SPDX-License-Identifier: Apache-2.0
 * What the address sanitizer has to be told about memory that does not come from malloc. Without it
 * everything here is empty. */
#ifndef BASE_ASAN_H
#define BASE_ASAN_H

#include <stddef.h>

#include "base/attr.h"

#if defined(__SANITIZE_ADDRESS__)
#define BASE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BASE_ASAN 1
#endif
#endif
#ifndef BASE_ASAN
#define BASE_ASAN 0
#endif

#if BASE_ASAN
#include <sanitizer/asan_interface.h>

static inline void
asan_forbid(const void *p, size_t n)
{
	__asan_poison_memory_region(p, n);
}

static inline void
asan_allow(const void *p, size_t n)
{
	__asan_unpoison_memory_region(p, n);
}

/* try_ sizes come from peers: malloc has to return NULL as it does without the sanitizer. Stands in
 * one file that every program links. */
#define ASAN_OPTIONS_HERE                             \
	const char *__asan_default_options(void);     \
	const char *__asan_default_options(void)      \
	{                                             \
		return "allocator_may_return_null=1"; \
	}

#else

static inline void
asan_forbid(UNUSED const void *p, UNUSED size_t n)
{
}

static inline void
asan_allow(UNUSED const void *p, UNUSED size_t n)
{
}

#define ASAN_OPTIONS_HERE

#endif
#endif
