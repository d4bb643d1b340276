/* SPDX-License-Identifier: Apache-2.0
 * What `hermes get --json` makes of a message: nothing changed on the way, whatever the bytes are. */
#include "cli/message_json.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct message_way way;
static amqp_message_t m;

static amqp_bytes_t
bytes(const char *p, size_t n)
{
	return (amqp_bytes_t){ n, (void *)(uintptr_t)p };
}

/* The JSON as text; the caller frees it. */
static char *
text(void)
{
	json_t *j = message_json(&way, &m);
	char *s = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);

	ck_assert_ptr_nonnull(s);
	json_decref(j);
	return s;
}

static void
has(const char *piece)
{
	char *s = text();

	ck_assert_msg(strstr(s, piece) != NULL, "%s is not in %s", piece, s);
	free(s);
}

static void
setup(void)
{
	way = (struct message_way){ .redelivered = 1, .message_count = 3 };
	m = (amqp_message_t){ 0 };
}

START_TEST(whole_message)
{
	char *s;

	way.exchange = bytes("x", 1);
	way.routing_key = bytes("a\"b\n", 4);
	m.body = bytes("hello", 5);
	m.properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
	m.properties.content_type = bytes("text/plain", 10);
	m.properties.delivery_mode = 2;
	s = text();
	ck_assert_str_eq(s, "{\"exchange\":\"x\",\"message_count\":3,\"payload\":\"hello\","
	                    "\"payload_bytes\":5,\"payload_encoding\":\"string\",\"properties\":"
	                    "{\"content_type\":\"text/plain\",\"delivery_mode\":2},"
	                    "\"redelivered\":true,\"routing_key\":\"a\\\"b\\n\"}");
	free(s);
}
END_TEST

static const struct body {
	const char *bytes;
	size_t n;
	const char *piece;
} bodies[] = {
	{ "", 0, "\"payload\":\"\",\"payload_bytes\":0,\"payload_encoding\":\"string\"" },
	{ "a\0b", 3, "\"payload\":\"a\\u0000b\",\"payload_bytes\":3" },
	{ "\xc3\xa4", 2, "\"payload_encoding\":\"string\"" },
	{ "\xff", 1, "\"payload\":\"/w==\",\"payload_bytes\":1,\"payload_encoding\":\"base64\"" },
	{ "\xff\xfe", 2, "\"payload\":\"//4=\"" },
	{ "\xff\xfe\0", 3, "\"payload\":\"//4A\"" },
};

START_TEST(body)
{
	m.body = bytes(bodies[_i].bytes, bodies[_i].n);
	has(bodies[_i].piece);
}
END_TEST

static const struct {
	uint64_t value;
	const char *piece;
} timestamps[] = {
	{ 0, "\"timestamp\":0" },
	{ INT64_MAX, "\"timestamp\":9223372036854775807" },
	{ (uint64_t)INT64_MAX + 1, "\"timestamp\":\"9223372036854775808\"" },
	{ UINT64_MAX, "\"timestamp\":\"18446744073709551615\"" },
};

START_TEST(timestamp)
{
	m.properties._flags = AMQP_BASIC_TIMESTAMP_FLAG;
	m.properties.timestamp = timestamps[_i].value;
	has(timestamps[_i].piece);
}
END_TEST

START_TEST(headers)
{
	amqp_table_entry_t e[] = {
		{ bytes("big", 3), { .kind = AMQP_FIELD_KIND_U64, .value.u64 = UINT64_MAX } },
		{ bytes("nan", 3), { .kind = AMQP_FIELD_KIND_F64, .value.f64 = NAN } },
		{ bytes("none", 4), { .kind = AMQP_FIELD_KIND_VOID } },
		{ bytes("raw", 3), { .kind = AMQP_FIELD_KIND_BYTES,
		                       .value.bytes = { 1, (void *)(uintptr_t) "\xff" } } },
		{ bytes("\xff", 1), { .kind = AMQP_FIELD_KIND_I8, .value.i8 = -1 } },
	};

	m.properties._flags = AMQP_BASIC_HEADERS_FLAG;
	m.properties.headers = (amqp_table_t){ 5, e };
	has("\"headers\":{\"/w==\":-1,\"big\":\"18446744073709551615\",\"nan\":null,\"none\":null,"
	    "\"raw\":\"/w==\"}");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("message_json");
	TCase *t = tcase_create("message_json");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, whole_message);
	tcase_add_loop_test(t, body, 0, (int)(sizeof bodies / sizeof *bodies));
	tcase_add_loop_test(t, timestamp, 0, (int)(sizeof timestamps / sizeof *timestamps));
	tcase_add_test(t, headers);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
