#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The steps of README.md that amqp-tools can do: each call is a connection of its own.
set -euo pipefail

tool() {
	local name=$1
	shift
	"amqp-$name" --server="$host" --port="$port" --username=guest --password=guest "$@"
}

ok() {
	echo "ok $1"
}

same() {
	[ "$1" = "$2" ] || { printf 'got %s, wanted %s\n' "$1" "$2" >&2; exit 1; }
}

host=$1 port=$2
work=clients.shell.$$.work
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export folder

same "$(tool declare-queue --queue="$work" --durable)" "$work"
ok connect

# One connection, a message for each line, no confirms: the connection is closed in order after the last.
seq 0 99 | tool publish --routing-key="$work" --persistent --line-buffered
tool consume --queue="$work" --count=100 cat >"$folder/all"
# Since 0.10 a line keeps its end.
same "$(tr -s '\n' ' ' <"$folder/all")" "$(seq 0 99 | tr '\n' ' ')"
ok consume

# It acknowledges a message when its command is done, and takes no other before that.
for i in 0 1 2 3 4; do tool publish --routing-key="$work" --body="$i"; done
tool consume --queue="$work" --prefetch-count=2 --count=3 cat >"$folder/few"
same "$(cat "$folder/few")" 012
same "$(tool get --queue="$work")$(tool get --queue="$work")" 34
ok prefetch

tool publish --routing-key="$work" --body=one
same "$(tool get --queue="$work")" one
same "$(tool get --queue="$work" || echo "empty $?")" "empty 2"
ok get

tool publish --routing-key="$work" --body=x --persistent --content-type=text/plain --content-encoding=utf-8 \
    --reply-to=somewhere --header='one: Grüße' --header='two: 2'
same "$(tool get --queue="$work")" x
ok properties

tool publish --routing-key="$work" </dev/null
head -c 10485760 /dev/urandom >"$folder/big"
tool publish --routing-key="$work" <"$folder/big"
same "$(tool get --queue="$work")" ""
tool get --queue="$work" >"$folder/back"
cmp "$folder/big" "$folder/back"
ok bodies

# Cut while it holds a message that its command has not done: the message comes again.
tool publish --routing-key="$work" --persistent --body=first
tool publish --routing-key="$work" --persistent --body=second
cat >"$folder/hold" <<'END'
#!/bin/sh
cat >>"$folder/seen"
! grep -q second "$folder/seen" || sleep 1
END
chmod +x "$folder/hold"
tool consume --queue="$work" "$folder/hold" 2>/dev/null &
consumer=$!
for ((i = 0; i < 600; i++)); do
	! grep -qs second "$folder/seen" || break
	sleep 0.05
done
echo cut
if wait "$consumer"; then
	echo "a consumer whose connection was cut ended with 0" >&2
	exit 1
fi
same "$(tool get --queue="$work")" second
same "$(tool get --queue="$work" || echo "empty $?")" "empty 2"
ok reconnect

same "$(tool delete-queue --queue="$work")" 0
ok close
