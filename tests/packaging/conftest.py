"""Fixtures for what is around the program: a bare Debian, the tarball, what `make install` leaves."""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "lib"), str(TESTS / "conformance")]

import fixtures         # noqa: E402
from fixtures import *  # noqa: E402,F401,F403
from node import BINARY, clean_env      # noqa: E402

#: building and installing take longer than other tests
fixtures.TEST_LIMIT = 600

#: what images called "slim" leave out
SLIM = ["path-exclude=/usr/share/%s/*" % name for name in ("man", "locale", "info", "groff", "doc", "lintian")]
SLIM.append("path-include=/usr/share/doc/*/copyright")


def run(*args, env=None, cwd=None, timeout=500):
    """Runs a command to its end; what it said, if it succeeds."""
    done = subprocess.run([str(a) for a in args], env=clean_env(env), cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout)
    assert done.returncode == 0, "%s: status %d:\n%s" % (args, done.returncode, done.stdout[-6000:])
    return done.stdout


def proxies():
    """NAME=VALUE of the proxies that apt uses here, for what runs in a root tree."""
    found = {name: value for name, value in os.environ.items() if name in ("http_proxy", "https_proxy", "no_proxy")}
    of_apt = run("apt-config", "shell", "p", "Acquire::http::Proxy").strip()
    if of_apt and "http_proxy" not in found:
        found["http_proxy"] = of_apt.removeprefix("p=").strip("'")
    return ["%s=%s" % one for one in found.items()]


def mirror():
    """Where apt gets Debian from."""
    lines = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)")
    for line in lines.splitlines():
        uri, release, component, by = line.split()
        if (release, component, by) == ("bookworm", "main", "Packages"):
            return uri
    return "http://deb.debian.org/debian/"


@pytest.fixture(scope="session")
def tree():
    """The folder in which the program was built."""
    this = BINARY.parents[1]
    assert (this / "Makefile").exists(), this
    return this


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    this = tmp_path_factory.mktemp("packaging")
    this.chmod(0o755)
    this.parent.chmod(0o755)
    yield this
    shutil.rmtree(this, ignore_errors=True)


@pytest.fixture(scope="session")
def bare(work):
    """The root tree of debian:bookworm-slim, or nearly."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a root tree")
    # one that is there already, for whoever works on these tests
    if os.environ.get("HERMES_BARE_ROOT"):
        return pathlib.Path(os.environ["HERMES_BARE_ROOT"])
    root = work / "bare"
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", "--dpkgopt=force-unsafe-io"]
    command += ["--dpkgopt=" + one for one in SLIM] + ["--aptopt=Acquire::Retries 3", "bookworm", root, mirror()]
    try:
        run(*command, env=dict(one.split("=", 1) for one in proxies()))
    except AssertionError as exc:
        if "Could not connect" in str(exc) or "Temporary failure resolving" in str(exc):
            pytest.skip("no Debian mirror can be reached")
        raise
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    return root


@pytest.fixture(scope="session")
def installed(tree, work):
    """`make install` below /out, as the image's first stage does it."""
    out = work / "out"
    run("make", "-C", tree, "install", "prefix=/usr", "sysconfdir=/etc", "DESTDIR=%s" % out)
    run("strip", out / "usr/bin/hermes")
    return out


def copy_of(bare, to):
    run("cp", "-a", bare, to)
    return to
