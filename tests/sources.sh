#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Are all files of the tree in sources.am? A .c file that no Makefile knows would never be compiled, a
# header or test that is not listed would be missing from the tarball.
#
#	tests/sources.sh		fails, and shows what differs
#	tests/sources.sh --write	writes sources.am anew
set -eu
LC_ALL=C; export LC_ALL
cd "${srcdir:-$(dirname "$0")/..}"

# NAME = words of standard input, one a line
list() {
	printf '%s =' "$1"
	sort | while read -r word; do printf ' \\\n\t%s' "$word"; done
	printf '\n\n'
}

find_in() {	# DIRECTORY... -- find's expression; directories that do not exist yet are passed over
	dirs=
	while [ "$1" != -- ]; do [ ! -d "$1" ] || dirs="$dirs $1"; shift; done
	shift
	# shellcheck disable=SC2086 # the names are ours and have no blanks
	[ -z "$dirs" ] || find $dirs -name '.?*' -prune -o -name __pycache__ -prune -o -type f \( "$@" \) -print
}

# shellcheck disable=SC2016 # the dollars are for make
programs() {	# VARIABLE DIRECTORY PREFIX EXTRA-SOURCES LDFLAGS
	names=$(find_in "$2" -- -name "$3_*.c" | sed 's/\.c$//' | sort)
	printf '%s\n' "$names" | grep . | list "$1"
	for name in $names; do
		var=$(printf '%s' "$name" | tr -c 'a-zA-Z0-9' _)
		printf '%s_SOURCES = %s.c%s\n' "$var" "$name" "$4"
		[ -z "$5" ] || printf '%s_LDFLAGS = $(AM_LDFLAGS) %s\n' "$var" "$5"
	done
	echo
}

# shellcheck disable=SC2016
make_list() {
	echo '# Written by tests/sources.sh --write: lists of files for Makefile.am.'
	echo
	find_in src amqp mgmt -- -name '*.[ch]' -o -name '*.def' | grep -vx -e 'src/main\.c' -e 'mgmt/console_[fn].*\.c' |
	    list hermes_sources
	find_in console -- ! -path '*/node_modules/*' ! -name console_files.c | list console_sources
	helpers=$(find_in tests/unit -- -name '*.[ch]' ! -name 'check_*.c' | sort | sed 's/^/ /' | tr -d '\n')
	programs unit_tests tests/unit check "$helpers" '$(unit_ldflags)'
	programs fuzz_targets tests/fuzz fuzz ' $(fuzz_main)' '$(fuzz_ldflags)'
	programs cost_programs tests/cost cost '' ''
	# The simulated disk, for many programs, and one program of several files.
	find_in tests/sim -- -name 'disk_sim*.[ch]' -o -name 'platter*.[ch]' | list sim_disk_sources
	find_in tests/sim -- -name '*.[ch]' ! -name 'disk_sim*' ! -name 'platter*' | list sim_sources
	# Measuring programs: built by name only, never part of the tests.
	programs EXTRA_PROGRAMS tests/bench bench '' ''
	{
		find_in tests/lib tests/wire tests/conformance tests/conformance-mgmt tests/e2e tests/packaging -- \
		    -name '*.py' -o -name '*.txt' -o -name '*.md' -o -name '*.ini' -o -name '*.sh'
		find_in tests/e2e/formats -- -name '*.tar.xz' -o -name '*.json'
		find_in tests/differential -- -name '*.py' -o -name '*.md' -o -name run
		[ ! -d tests/differential/traces ] || echo tests/differential/traces
		find_in tests/clients tests/console -- ! -path '*/node_modules/*'
		find_in tests/fuzz -- -path 'tests/fuzz/*.h' -o -path 'tests/fuzz/replay_main.c'
		# by what they are called: a build in the tree leaves objects, programs and logs beside them
		find_in tests/cost tests/sim -- -name '*.sh' -o -name '*.txt'
		find_in tests/bench -- -name run -o -name '*.py' -o -name '*.md'
		find_in tests/tools -- -name '*.c'
		find_in contrib -- ! -path contrib/quickstart ! -path contrib/test ! -path contrib/packages.sh
		[ ! -d tests/fuzz/corpus ] || echo tests/fuzz/corpus
	} | list other_files
}

case "${1:-}" in
--write)
	make_list >sources.am.new
	mv sources.am.new sources.am ;;
'')
	made=$(mktemp)
	trap 'rm -f "$made"' EXIT
	make_list >"$made"
	if ! diff -u sources.am "$made"; then
		echo 'sources.am is out of date: run tests/sources.sh --write' >&2
		exit 1
	fi ;;
*)
	echo "usage: tests/sources.sh [--write]" >&2
	exit 2 ;;
esac
