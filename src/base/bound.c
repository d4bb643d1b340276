/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bound.h"

_Atomic uint64_t bound_times[BOUND_COUNT];
