/* SPDX-License-Identifier: Apache-2.0
 * What the settings in force name. Each reading of them has a number, broker->settings_read; what bears that of the last one
 * is in them, and whatever is changed about it elsewhere lasts until they are read again. Not kept: a start reads them. */
#ifndef BROKER_IN_SETTINGS_H
#define BROKER_IN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct in_settings {
	uint32_t object, rights, limits; /* numbers of the last reading that named it, its permissions, its limits */
	bool is_changed, rights_changed; /* elsewhere, since */
};

#endif
