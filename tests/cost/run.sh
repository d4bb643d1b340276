#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does a message take more instructions than figures.txt says? Run by `make check` in a tree that configure found fit
# for it (gcc 12 with the release flags on x86-64: the figures mean nothing elsewhere), in the build folder.
#
#	tests/cost/run.sh		fails where a figure grew by more than 5 %, and says where one fell
#	tests/cost/run.sh --write	writes figures.txt anew, for the same commit as the change that moved them
#
# A row of figures.txt: scenario of cost_messages.c, path, instructions a message in user mode. The path "total" is the
# whole program; others are what is spent in a function and all that it calls. A run without messages is subtracted.
set -eu
LC_ALL=C; export LC_ALL
MESSAGES=100000
PERCENT=5
here=$(cd "$(dirname "$0")" && pwd)
program=tests/cost/cost_messages
figures=$here/figures.txt
# Functions on the way of every message, from the outside to the inside; not static ones, which may be inlined away.
paths='total frame_walk channel_publish_fast publish_route queue_publish delivery_write'
acked_paths="$paths basic_on_ack"

die() {
	echo "tests/cost/run.sh: $*" >&2
	echo 'Checks: 1, Failures: 1, Errors: 0'
	exit 1
}

case "${1:-}" in
'' | --write) ;;
*) echo "usage: tests/cost/run.sh [--write], in the build folder" >&2; exit 2 ;;
esac
command -v valgrind >/dev/null || die 'valgrind is missing; on Debian: apt-get install valgrind'
[ -x "$program" ] || die "$program is not built: make $program, and run this in the build folder"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# One run: "total N", then "FUNCTION N" for each function that is called.
count() {	# SCENARIO MESSAGES
	# The environment takes part in what the start of a program costs, so there is none.
	env -i PATH="$PATH" TMPDIR="$folder" valgrind -q --tool=callgrind --compress-strings=no --compress-pos=no \
	    --callgrind-out-file="$folder/out" "./$program" "$1" "$2" >&2 || return
	awk '/^cfn=/ { name = substr($0, 5) }
	    /^calls=/ { getline; spent[name] += $2 }
	    /^(summary|totals): / { total = $2 }
	    END { if (total == 0) exit 1; print "total", total; for (name in spent) print name, spent[name] }' "$folder/out"
}

for scenario in s1 s2; do
	count $scenario 0 >"$folder/none" || die "$program $scenario 0 failed"
	count $scenario $MESSAGES >"$folder/all" || die "$program $scenario $MESSAGES failed"
	[ $scenario = s1 ] || paths=$acked_paths
	for path in $paths; do
		awk -v path="$path" -v scenario=$scenario -v n=$MESSAGES '$1 == path { sum += NR == FNR ? -$2 : $2 }
		    END { printf "%s %s %.1f\n", scenario, path, sum / n }' "$folder/none" "$folder/all"
	done
done >"$folder/measured"

if [ "${1:-}" = --write ]; then
	{
		sed -n '/^#/p' "$figures"
		cat "$folder/measured"
	} >"$folder/figures"
	cp "$folder/figures" "$figures"
	cat "$folder/measured"
	exit
fi

awk -v percent=$PERCENT '
	/^#/ { next }
	NR == FNR { want[$1 " " $2] = $3; next }
	{
		row = $1 " " $2
		checks++
		seen[row] = 1
		verdict = "fine"
		if (!(row in want))
			verdict = "NOT IN figures.txt"
		else if ($3 <= 0)
			verdict = "NOT CALLED ANY MORE"
		else if ($3 > want[row] * (1 + percent / 100))
			verdict = "GREW"
		else if ($3 < want[row] * (1 - percent / 100))
			verdict = "FELL"
		change = want[row] ? ($3 / want[row] - 1) * 100 : 0
		printf "%-3s %-24s %8.1f instructions a message, figure %8.1f, %+6.1f %%: %s\n", $1, $2, $3, want[row],
		    change, verdict
		bad += verdict != "fine" && verdict != "FELL"
	}
	END {
		for (row in want)
			if (!(row in seen)) {
				print row ": in figures.txt, but not measured"
				checks++
				bad++
			}
		if (bad > 0) {
			print "What grew is to be made cheap again, or to be worth it; a gain is to be kept. Then, in the build"
			print "folder: " cmd " --write, and figures.txt goes into the same commit."
		}
		printf "Checks: %d, Failures: %d, Errors: 0\n", checks, bad
		exit (bad > 0)
	}' cmd="$0" "$figures" "$folder/measured"
