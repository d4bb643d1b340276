# SPDX-License-Identifier: Apache-2.0
# Shared by contrib/quickstart and contrib/test: packages, progress lines, the top folder. Sourced by bash.
# shellcheck shell=bash disable=SC2034

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What the build needs on Debian 12, and what the tests need beyond it.
build_packages=(gcc libc6-dev make autoconf automake pkg-config librabbitmq-dev libevent-dev libyaml-dev
	libssl-dev libpcre2-dev libjansson-dev libxxhash-dev uthash-dev)
test_packages=(check clang libclang-rt-14-dev python3 python3-pytest python3-pika amqp-tools xz-utils)

say() {
	printf '%s: %s\n' "${0##*/}" "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "packages are missing, and only root can install them: run this as root, or install sudo"
	fi
}

# Installs the packages that are not there yet. A package that brings a service must not start it: a
# policy says no while we install, and is taken away again unless the machine had one before.
install_missing() {
	local missing=() p rc=0 policy=/usr/sbin/policy-rc.d made=no log
	# Elsewhere than on Debian: configure says what it misses.
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
	for p in "$@"; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || :)" = installed ] || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing ${missing[*]}"
	log=$(mktemp)
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
		made=yes
	fi
	{
		as_root apt-get -q update &&
		    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"
	} >"$log" 2>&1 </dev/null || rc=$?
	[ $made = no ] || as_root rm -f $policy
	if [ $rc != 0 ]; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "installing packages failed (the end of apt-get's output stands above)"
	fi
	rm -f "$log"
}

# step TEXT LOG COMMAND...: runs a long command with its output in a file, shown only if it fails.
step() {
	local text=$1 log=$2 start=$SECONDS
	shift 2
	say "$text"
	if ! "$@" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		say "failed: $text (all of it in $log)" >&2
		return 1
	fi
	[ $((SECONDS - start)) -lt 5 ] || say "  done in $((SECONDS - start)) s"
}
