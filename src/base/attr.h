/* SPDX-License-Identifier: Apache-2.0
 * Compiler attributes that the whole tree uses. */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#define MUSTUSE __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
#define COLD __attribute__((cold, noinline)) /* kept out of the way of those who call it rarely */
/* Apart from a caller on the way of every message, whose registers it would take. */
#define NOINLINE __attribute__((noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define BIT(n) (1u << (n))
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, field) ((type *)(void *)((char *)(p)-offsetof(type, field)))

#endif
