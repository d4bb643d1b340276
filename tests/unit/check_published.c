/* SPDX-License-Identifier: Apache-2.0
 * What channels have published, by exchange. */
#include "broker/published.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/exchange.h"
#include "broker/publish.h"
#include "tests/unit/queue_world.h"

START_TEST(channels_count_by_exchange)
{
	struct world w;
	struct broker *b;
	struct vhost *vh;
	static const struct session_ops none = { NULL, NULL, NULL };
	struct client c = { .vhost = NULL };
	struct exchange *x[PUBLISHED_MAX + 2];
	struct session s;

	world_init(&w);
	b = w.broker;
	vh = w.vhost;
	client_init(&c, b);
	c.vhost = vh;
	session_init(&s, &c, &none);
	for (unsigned i = 0; i < COUNT_OF(x); i++) {
		char name[16];
		struct exchange_spec spec = { .type = SPAN_LIT("fanout") };

		(void)snprintf(name, sizeof name, "x%u", i);
		spec.name = span_str(name);
		ck_assert_ptr_null(exchange_declare(vh, &spec, &x[i]));
	}
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < COUNT_OF(x); i++)
			for (unsigned k = 0; k <= i; k++)
				publish_late(&s, x[i], NULL, 0);
	ck_assert_uint_eq(b->stats.publishers, 1);
	ck_assert_uint_eq(s.published.count, PUBLISHED_MAX);
	for (uint32_t i = 0; i < PUBLISHED_MAX; i++)
		ck_assert_uint_eq(published_count(&s, i), 3 * (i + 1));
	session_fini(&s);
	ck_assert_uint_eq(b->exchanges_uncounted, 3 * (17 + 18));
	ck_assert_uint_eq(b->stats.publishers, 0);
	c.vhost = NULL;
	client_fini(&c);
	world_fini(&w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("published");
	TCase *t = tcase_create("published");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, channels_count_by_exchange);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
