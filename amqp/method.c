/* SPDX-License-Identifier: Apache-2.0
 * The method table, and the walk that says whether arguments are what a row declares. */
#include "amqp/method.h"

#include "amqp/connection.h"
#include "base/utf8.h"
#include "broker/table.h"

#define IN(state) BIT(CONN_##state)
#define IN_ANY (IN(STARTING) | IN(SECURING) | IN(TUNING) | IN(OPENING) | IN(OPEN) | IN(CLOSING))

#define AMQP_METHOD(c, m, ci, mi, a, n, s, f) \
	[METHOD_##c##_##m] = { #c "." #m, ci, mi, a, n, s, false, f },
#define AMQP_RAW(c, m, ci, mi, a, n, s, f) \
	[METHOD_##c##_##m] = { #c "." #m, ci, mi, a, n, s, true, f },
const struct method methods[METHOD_COUNT] = {
#include "amqp/methods.def"
};
#undef AMQP_METHOD
#undef AMQP_RAW

uint64_t method_count[METHOD_COUNT];

const struct method *
method_find(uint16_t class_id, uint16_t method_id)
{
	uint32_t id = (uint32_t)class_id << 16 | method_id;
	size_t low = 0, high = METHOD_COUNT;

	/* the rows stand in ascending order of their ids; check_method.c looks after that */
	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct method *m = &methods[mid];
		uint32_t at = (uint32_t)m->class_id << 16 | m->method_id;

		if (at == id)
			return m;
		if (at < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const char *
method_name(const struct method *m)
{
	static char name[48];
	size_t i;

	for (i = 0; m->constant[i] != '\0' && i < sizeof name - 1; i++) {
		char ch = m->constant[i];

		if (ch == '_')
			ch = '-';
		else if (ch >= 'A' && ch <= 'Z')
			ch = (char)(ch - 'A' + 'a');
		name[i] = ch;
	}
	name[i] = '\0';
	return name;
}

/* Length of one argument at p, of n bytes that are left. False: it does not fit. */
static bool
argument_size(char kind, const uint8_t *p, size_t n, size_t *size)
{
	switch (kind) {
	case 'o':
	case 'b': *size = 1; break;
	case 'h': *size = 2; break;
	case 'l': *size = 4; break;
	case 'L': *size = 8; break;
	case 's':
		if (n < 1)
			return false;
		*size = 1 + (size_t)p[0];
		break;
	case 'S':
	case 't':
		if (n < 4)
			return false;
		*size = 4 + (size_t)get_be32(p);
		break;
	default: return false;
	}
	return *size <= n;
}

bool
method_check(const struct method *m, struct span raw)
{
	const uint8_t *p = raw.p;
	size_t left = raw.n, size = 0;

	for (const char *kind = m->arguments; *kind != '\0'; kind++) {
		if (!argument_size(*kind, p, left, &size))
			return false;
		if (*kind == 't' && table_check(span_of(p + 4, size - 4), TABLE_DEPTH_MAX) != 0)
			return false;
		p += size;
		left -= size;
	}
	return left == 0;
}

bool
method_texts_valid(const struct method *m, struct span raw)
{
	const uint8_t *p = raw.p;
	size_t left = raw.n, size = 0;

	for (const char *kind = m->arguments; *kind != '\0'; kind++) {
		if (!argument_size(*kind, p, left, &size))
			return false;
		if (*kind == 's' && size > 1 && !utf8_valid(p + 1, size - 1))
			return false;
		p += size;
		left -= size;
	}
	return true;
}
