#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Takes one rule of order out of the store at a time (src/store/mutant.h): the simulation has to fail within 5,000 seeds.
#
#	tests/sim/mutants.sh [SEEDS]
#
# Builds a program of its own in a temporary folder; CC and CFLAGS are taken from the environment.
set -euo pipefail
cd "${srcdir:-$(dirname "$0")/../..}"
seeds=${1:-5000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() {	# FILE...: each to an object, on all processors
	printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c \
	    '${CC:-cc} -std=gnu11 ${CFLAGS:--O2} -D_GNU_SOURCE -DSTORE_MUTANTS -I. -Isrc -c "$1" -o "$2/$(echo "$1" | tr / _).o"' \
	    - {} "$work"
}

compile src/store/*.c src/base/*.c tests/sim/*.c
${CC:-cc} "$work"/*.o -o "$work/sim_store" -lxxhash -lcrypto -lpthread -lm

"$work/sim_store" --seeds 200 --first 1 >"$work/out" || { cat "$work/out"; echo "fails without a mutant"; exit 1; }
sed -n 's/^	MUTANT_\([A-Z_]*\).*\/\* *\(.*\) \*\/$/\1 \2/p' src/store/mutant.h >"$work/mutants"
[ -s "$work/mutants" ] || { echo "no mutants in src/store/mutant.h" >&2; exit 1; }

export work seeds
# shellcheck disable=SC2016 # the dollars are for the inner shell
nl -w 1 -s ' ' "$work/mutants" | xargs -P "$(nproc)" -d '\n' -n 1 bash -c '
	read -r number name text <<<"$1"
	if "$work/sim_store" --seeds "$seeds" --first 1 --mutant "$number" >"$work/out.$number" 2>/dev/null; then
		echo "MISSED $name ($text): $seeds seeds pass"
		exit 1
	fi
	echo "found $name ($text): $(tail -n 1 "$work/out.$number")"' -
