/* SPDX-License-Identifier: Apache-2.0
 * hermes version: ours and those of the libraries that are in use now. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "cli/cli.h"

#include <amqp.h>
#include <event2/event.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <pcre2.h>
#include <stdio.h>
#include <xxhash.h>
#include <yaml.h>

#include "base/version.h"

enum { TEXT = 64 };

static const char *
pcre2_version(char text[TEXT])
{
	if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) > TEXT ||
	    pcre2_config(PCRE2_CONFIG_VERSION, text) < 0)
		(void)snprintf(text, TEXT, "unknown");
	return text;
}

static const char *
xxhash_version(char text[TEXT])
{
	(void)snprintf(text, TEXT, "%u.%u.%u", XXH_versionNumber() / 10000,
	    XXH_versionNumber() / 100 % 100, XXH_versionNumber() % 100);
	return text;
}

int
cmd_version(struct cli *c)
{
	char pcre[TEXT], xxhash[TEXT];
	const char *const all[][2] = {
		{ "rabbitmq-c", amqp_version() },
		{ "libevent", event_get_version() },
		{ "libyaml", yaml_get_version_string() },
		{ "jansson", JANSSON_VERSION },
		{ "PCRE2", pcre2_version(pcre) },
		{ "OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING) },
		{ "xxHash", xxhash_version(xxhash) },
		{ "compiler", __VERSION__ },
	};
	json_t *o = json_pack("{s:s}", "hermes", HERMES_VERSION);

	if (!cli_switch(c, "json"))
		printf("hermes %s\n", HERMES_VERSION);
	for (size_t i = 0; i < COUNT_OF(all); i++)
		if (cli_switch(c, "json"))
			(void)json_object_set_new(o, all[i][0], json_string(all[i][1]));
		else
			printf("  %-11s %s\n", all[i][0], all[i][1]);
	if (cli_switch(c, "json")) {
		(void)json_dumpf(o, stdout, JSON_INDENT(2));
		printf("\n");
	}
	json_decref(o);
	return CLI_OK;
}
