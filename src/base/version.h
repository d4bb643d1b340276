/* SPDX-License-Identifier: Apache-2.0
 * The version of Hermes; configure.ac has the number. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#ifdef PACKAGE_VERSION
#define HERMES_VERSION PACKAGE_VERSION
#else
#define HERMES_VERSION "0.1.0" /* a file compiled by hand */
#endif

#endif
