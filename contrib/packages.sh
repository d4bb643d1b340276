# SPDX-License-Identifier: Apache-2.0
# Shared by contrib/quickstart and contrib/test: packages, progress lines, the top folder. Sourced by bash.
# shellcheck shell=bash disable=SC2034

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What the build needs on Debian 12, and what the tests need beyond it.
build_packages=(gcc libc6-dev make autoconf automake pkg-config librabbitmq-dev libevent-dev libyaml-dev
	libssl-dev libpcre2-dev libjansson-dev libxxhash-dev zlib1g-dev uthash-dev)
test_packages=(check clang libclang-rt-14-dev python3 python3-pytest python3-pytest-xdist python3-pika python3-requests
	amqp-tools xz-utils valgrind strace python3-aio-pika python3-kombu python3-celery openjdk-17-jdk-headless
	librabbitmq-client-java libslf4j-java golang-go golang-github-rabbitmq-amqp091-go-dev
	ruby ruby-bunny php-cli php-amqplib php-amqp perl libanyevent-rabbitmq-perl nagios-plugins-rabbitmq)
# For the console. Node and npm may be there from elsewhere; Debian's npm cannot be installed beside those.
command -v npm >/dev/null || build_packages+=(nodejs npm)
# It reads what the node says of itself; as a service it is not started.
test_packages+=(prometheus)
# Certificates for tests.
test_packages+=(openssl)
# The unit, the image and the package: systemd is not to run, only to look at files.
test_packages+=(systemd logrotate mmdebstrap debhelper)
# The console in a browser, with letters for what people write.
test_packages+=(chromium fonts-noto-cjk fonts-noto-color-emoji)

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
	else
		sudo "$@"
	fi
}

# Asks for a password, if there is one to ask for, before anything is done.
need_root() {	# PACKAGES...
	[ "$(id -u)" != 0 ] || return 0
	if command -v sudo >/dev/null && sudo true; then
		return 0
	fi
	die "packages are missing, and only root can install them. As root: apt-get install --no-install-recommends $*"
}

end_install() {
	[ "$install_policy" = no ] || as_root rm -f /usr/sbin/policy-rc.d
	[ -z "$install_log" ] || rm -f "$install_log"
	install_policy=no install_log=
}

# Installs the packages that are not there yet. A package that brings a service must not start it: a
# policy says no while we install, and is taken away again unless the machine had one before.
install_missing() {
	local missing=() p rc=0
	install_policy=no install_log=
	# Elsewhere than on Debian: configure says what it misses.
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
	for p in "$@"; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || :)" = installed ] || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	need_root "${missing[@]}"
	say "installing ${missing[*]}"
	trap end_install EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	install_log=$(mktemp)
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		install_policy=yes
		printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
		as_root chmod 755 /usr/sbin/policy-rc.d
	fi
	{
		as_root apt-get -q update &&
		    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"
	} >"$install_log" 2>&1 </dev/null || rc=$?
	if [ $rc != 0 ]; then
		grep '^Err:\|^W: \(Failed\|The repository\)' "$install_log" | sort -u | head -n 5 >&2 || :
		tail -n 20 "$install_log" >&2
		die "installing packages failed; what apt-get said stands above. If it cannot find packages: is the network there, and Debian 12 in /etc/apt/sources.list? Once they are installed, this needs neither: ${missing[*]}"
	fi
	end_install
	trap - EXIT INT TERM
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
