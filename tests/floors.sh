#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes run downwards only. Each file may include its own floor and those below; the houses of one
# floor do not know each other; a third-party library enters by the floors that are listed for it.
#
#	tests/floors.sh [ROOT]		prints each include that breaks this, exits 1 if there is one
#
# Before it looks at the tree it plants files that break each rule in a folder of its own and fails if
# one of them passes.
set -eu
LC_ALL=C; export LC_ALL

# Prints FILE:LINE: REASON for each bad include below the current directory.
check_tree() {
	dirs=
	for d in src amqp mgmt; do [ ! -d $d ] || dirs="$dirs $d"; done
	# shellcheck disable=SC2086
	find $dirs -type f \( -name '*.[ch]' -o -name '*.def' \) | sort |
	    xargs grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null | awk '
	BEGIN {
		# house: the houses that it may include, itself among them
		may["base"] = " base "
		may["store"] = " store base "
		may["net"] = " net base "
		may["broker"] = " broker store base "
		may["amqp"] = " amqp broker net store base "
		may["mgmt"] = " mgmt broker net store base "
		may["agent"] = " agent broker net store base "
		may["main"] = " main cli amqp mgmt agent broker net store base "
		may["cli"] = may["main"]
		# third-party headers: pattern, name, the houses that may use it
		lib("^event2/", "libevent", "net amqp mgmt agent main cli")
		lib("^openssl/", "OpenSSL", "base store net agent main cli")
		lib("^(rabbitmq-c/)?amqp.*\\.h$", "rabbitmq-c", "broker amqp main cli")
		lib("^pcre2\\.h$", "PCRE2", "broker main cli")
		lib("^ut(hash|list|array|string|stack|ringbuffer)\\.h$", "uthash", "broker store amqp mgmt agent main cli")
		lib("^jansson\\.h$", "jansson", "mgmt agent main cli")
		lib("^yaml\\.h$", "libyaml", "main cli")
		lib("^xxhash\\.h$", "xxhash", "store broker main cli")
		lib("^zlib\\.h$", "zlib", "mgmt main cli")
		lib("^systemd/", "libsystemd", "main cli")
		lib("^(curl|librdkafka|hiredis)/|^mosquitto\\.h$", "a library of the connectors", "agent main cli")
		# The broker floor is a deterministic core: no sockets, no threads, no loop.
		lib("^(sys/(socket|epoll|eventfd|un|select|poll)|netinet/.*|arpa/.*|netdb|poll)\\.h$", "sockets",
		    "base net amqp mgmt agent main cli")
		lib("^(pthread|threads|semaphore|stdatomic)\\.h$", "threads", "base store net mgmt agent main cli")
		# What else stands in angle brackets comes with the C library or the compiler.
		lib("^(assert|ctype|dirent|dlfcn|endian|err|errno|execinfo|fcntl|float|getopt|grp|inttypes|limits|locale|malloc|math|memory|pwd|regex|sched|setjmp|signal|stdalign|stdarg|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|syslog|termios|time|ucontext|unistd|utime|wchar)\\.h$",
		    "the C library", "base store net broker amqp mgmt agent main cli")
		lib("^(sys|linux|asm|bits|sanitizer)/|^(.*intrin|cpuid)\\.h$", "the system",
		    "base store net broker amqp mgmt agent main cli")
	}
	function lib(pattern, name, houses) {
		n_libs++
		lib_pattern[n_libs] = pattern; lib_name[n_libs] = name; lib_houses[n_libs] = " " houses " "
	}
	function house_of(path, parts, n) {
		n = split(path, parts, "/")
		if (parts[1] != "src") return parts[1]
		return n == 2 ? "main" : parts[2]
	}
	function bad(reason) {
		print file ":" line ": " what ": " reason
	}
	function quoted(house, target, parts, n) {
		n = split(target, parts, "/")
		if (target ~ /(^|\/)\.\.?\//) { bad("paths start from the root, never with ./ or ../"); return }
		where = n == 1 ? "main" : parts[1]
		if (n == 1 && house != "main" && house != "cli") {
			bad("paths start from the root (base/..., broker/..., amqp/...); only floor 4 has files without a folder"); return
		}
		if (!(where in may)) { bad("no such house: " where); return }
		if (index(may[house], " " where " ") == 0) bad("from " house " upwards or sideways to " where)
		if (house == "broker" && target == "base/clock.h") bad("time comes into the broker floor as an argument")
	}
	function angled(house, target, i) {
		for (i = 1; i <= n_libs; i++) {
			if (target !~ lib_pattern[i]) continue
			if (index(lib_houses[i], " " house " ") == 0) bad(lib_name[i] " does not belong into " house)
			else if (lib_name[i] == "uthash" && file !~ /\/map\.h$/)
				bad("uthash as it comes has no seed, and exits without a word: include broker/map.h or store/map.h")
			else if (house == "base" && lib_name[i] == "OpenSSL") base_openssl[file] = 1
			return
		}
		bad("unknown header: give it a row in tests/floors.sh, with the floors that may use it")
	}
	{
		split($0, part, ":")
		file = part[1]; line = part[2]
		what = substr($0, length(file) + length(line) + 3)
		house = house_of(file)
		if (!(house in may)) { bad("no such house: " house); next }
		if (match(what, /"[^"]*"/)) quoted(house, substr(what, RSTART + 1, RLENGTH - 2))
		else if (match(what, /<[^>]*>/)) angled(house, substr(what, RSTART + 1, RLENGTH - 2))
		else bad("an include that cannot be followed")
	}
	END {
		n = 0
		for (f in base_openssl) { n++; names = names " " f }
		if (n > 1) print "src/base: OpenSSL is wrapped in one file on floor 0, not in" names
	}'
}

# plant PATH INCLUDE yes|no: does a file with this include have to be found?
plant() {
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/$(dirname "$1")"
	printf '/* planted */\n#include %s\n' "$2" >"$tmp/tree/$1"
	found=$(cd "$tmp/tree" && check_tree)
	case "$3:$found" in
	yes:"$1":2:*|no:) return ;;
	esac
	echo "floors.sh itself is broken: #include $2 in $1, expected to be found: $3, said: ${found:-nothing}" >&2
	exit 1
}

self_test() {
	plant src/base/log.c '"broker/queue.h"' yes
	plant src/base/log.c '"net/loop.h"' yes
	plant src/base/log.c '"base/clock.h"' no
	plant src/base/mac.c '<openssl/evp.h>' no
	plant src/base/map.h '<uthash.h>' yes
	plant src/store/segment.c '"net/loop.h"' yes
	plant src/store/segment.c '<xxhash.h>' no
	plant src/net/transport.c '"store/journal.h"' yes
	plant src/net/transport.c '  "amqp/frame.h"' yes
	plant src/net/loop.c '<event2/event.h>' no
	plant src/broker/queue.c '"net/transport.h"' yes
	plant src/broker/queue.c '"amqp/channel.h"' yes
	plant src/broker/queue.c '<event2/event.h>' yes
	plant src/broker/queue.c '<sys/socket.h>' yes
	plant src/broker/queue.c '<pthread.h>' yes
	plant src/broker/queue.c '<jansson.h>' yes
	plant src/broker/queue.c '"base/clock.h"' yes
	plant src/broker/queue.c '"../base/mem.h"' yes
	plant src/broker/queue.c '"queue.h"' yes
	plant src/broker/queue.c '"store/journal.h"' no
	plant src/broker/policy.c '<pcre2.h>' no
	plant src/broker/table.h '<amqp.h>' no
	plant amqp/channel.c '"mgmt/http.h"' yes
	plant amqp/channel.c '"settings.h"' yes
	plant amqp/channel.c '<jansson.h>' yes
	plant amqp/channel.c '"broker/queue.h"' no
	plant mgmt/http.c '"amqp/frame.h"' yes
	plant mgmt/http.c '<yaml.h>' yes
	plant mgmt/http.c '<jansson.h>' no
	plant mgmt/http.c '<uthash.h>' yes
	plant mgmt/http.c '"broker/map.h"' no
	plant src/store/map.h '<uthash.h>' no
	plant src/agent/webhook.c '"mgmt/http.h"' yes
	plant src/node.c '"amqp/amqp.h"' no
	plant src/settings.c '<yaml.h>' no
	plant src/cli/publish.c '<nonsense.h>' yes
	plant src/cli/publish.c 'SOME_MACRO' yes
	plant src/attic/old.c '"base/mem.h"' yes
}

cd "${1:-${srcdir:-$(dirname "$0")/..}}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
self_test
bad=$(check_tree)
if [ -n "$bad" ]; then
	printf '%s\n' "$bad" >&2
	exit 1
fi
echo 'all includes run downwards'
