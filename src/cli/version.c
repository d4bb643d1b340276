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

int
cmd_version(struct cli *c UNUSED)
{
	char pcre[64];

	if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) > (int)sizeof pcre ||
	    pcre2_config(PCRE2_CONFIG_VERSION, pcre) < 0)
		snprintf(pcre, sizeof pcre, "unknown");
	printf("hermes %s\n", HERMES_VERSION);
	printf("  rabbitmq-c  %s\n", amqp_version());
	printf("  libevent    %s\n", event_get_version());
	printf("  libyaml     %s\n", yaml_get_version_string());
	printf("  jansson     %s\n", JANSSON_VERSION);
	printf("  PCRE2       %s\n", pcre);
	printf("  OpenSSL     %s\n", OpenSSL_version(OPENSSL_VERSION_STRING));
	printf("  xxHash      %u.%u.%u\n", XXH_versionNumber() / 10000,
	    XXH_versionNumber() / 100 % 100, XXH_versionNumber() % 100);
	printf("  compiler    %s\n", __VERSION__);
	return CLI_OK;
}
