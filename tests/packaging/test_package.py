"""The release tarball, and the Debian package that is built from it: its life in a root tree of the same Debian."""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import subprocess

import pika
import pytest

from conftest import copy_of, proxies, run
from node import TOP, Node, clean_env, wait_for

#: without optimisation and symbols, which takes a third of the time
BUILD = {"DEB_BUILD_OPTIONS": "nocheck noopt noautodbgsym parallel=%d" % (os.cpu_count() or 1), "DEB_CFLAGS_STRIP": "-g"}


@pytest.fixture(scope="module")
def unpacked(tree, work):
    """What is in the tarball of `make dist`, unpacked."""
    folder = work / "dist"
    folder.mkdir()
    # a tree of its own, so that whoever builds in the other is not in the way
    run("make", "-C", tree, "distdir", "distdir=%s/hermes" % folder)
    run("tar", "-C", folder, "-czf", folder / "hermes.tar.gz", "hermes")
    shutil.rmtree(folder / "hermes")
    run("tar", "-C", folder, "-xzf", folder / "hermes.tar.gz")
    return folder / "hermes"


@pytest.fixture(scope="module")
def package(unpacked):
    """The .deb."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a root tree")
    shutil.copytree(unpacked / "contrib/debian", unpacked / "debian")
    run("dpkg-buildpackage", "-b", "-us", "-uc", "-d", cwd=unpacked, env=BUILD)
    (deb,) = unpacked.parent.glob("hermes_*.deb")
    return deb


def test_tarball_has_what_it_needs(unpacked):
    for name in ("configure", "console/console_files.c", "etc/hermes.service.in", "contrib/docker/Dockerfile",
                 "contrib/debian/control", "contrib/manual/README.md", "tests/packaging/test_package.py"):
        assert (unpacked / name).exists(), name
    assert (unpacked / "contrib/debian/rules").stat().st_mode & 0o111
    version = re.search(r"AC_INIT\(\[hermes\], \[([\d.]+)\]", (unpacked / "configure.ac").read_text()).group(1)
    assert (unpacked / "contrib/debian/changelog").read_text().startswith("hermes (%s-1)" % version)


def newer(deb, to):
    """The package as its next version has it, with other settings in the sample."""
    run("dpkg-deb", "-R", deb, to / "newer")
    control = to / "newer/DEBIAN/control"
    control.write_text(re.sub(r"^Version: (.*)$", r"Version: \1+next", control.read_text(), flags=re.M))
    sample = to / "newer/etc/hermes/hermes.yml"
    sample.write_text(sample.read_text() + "# of the next version\n")
    run("dpkg-deb", "-b", to / "newer", to / "newer.deb")
    return to / "newer.deb"


class Installed(Node):
    """A node of the package's program, in its root tree, as the package's user, with the settings and folders of its unit."""

    def __init__(self, root, folder):
        super().__init__(folder)
        self.root = root

    def start(self, ready=True):
        unit = (self.root / "lib/systemd/system/hermes.service").read_text()
        words = re.search(r"^ExecStart=(.*)$", unit, re.M).group(1).split()
        user = re.search(r"^User=(.*)$", unit, re.M).group(1)
        words += ["--port", str(self.port), "--management-port", str(self.management_port), "--prometheus-port", "0"]
        self.log_before = len(self.log)
        with open(self.log_file, "a") as log:
            self.process = subprocess.Popen(["chroot", "--userspec=%s:%s" % (user, user), str(self.root)] + words,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_env())
        if ready:
            self.await_ready(30)
        return self


@pytest.fixture
def root(bare, work):
    this = copy_of(bare, work / "installed")
    yield this
    shutil.rmtree(this, ignore_errors=True)


def inside(root, *words):
    return run("chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive",
               *proxies(), *words)


def backup_lines():
    """The commands of the manual's chapter on backups."""
    chapter = (TOP / "contrib/manual/operations.md").read_text().split("\n## Backups\n")[1].split("\n## ")[0]
    return [line.split("#")[0].strip() for line in re.findall(r"^    (.*)$", chapter, re.M)]


def walk_through_backups(root, this, ready):
    """As they stand there, but that the service is this node."""
    lines = backup_lines()
    assert {"systemctl stop hermes", "systemctl start hermes"} < set(lines) and len(lines) > 6
    for line in lines:
        if line == "systemctl stop hermes":
            this.stop()
        elif line == "systemctl start hermes":
            this.start(ready=False)
            ready()
        else:
            inside(root, "HERMES_URL=" + this.http_url, "sh", "-c", line)


def status_of(root):
    done = subprocess.run(["chroot", str(root), "dpkg-query", "-W", "-f", "${db:Status-Abbrev}", "hermes"],
                          capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def test_life_of_the_package(root, package, work, tmp_path):
    """Installed, used, upgraded, removed, installed again, purged."""
    shutil.copy(package, root / "tmp/first.deb")
    shutil.copy(newer(package, work), root / "tmp/next.deb")
    inside(root, "apt-get", "update")
    inside(root, "apt-get", "install", "-y", "--no-install-recommends", "/tmp/first.deb")
    assert status_of(root) == "ii"
    owner = re.search(r"^hermes:x:(\d+):(\d+):", (root / "etc/passwd").read_text(), re.M)
    data, logs, settings = root / "var/lib/hermes", root / "var/log/hermes", root / "etc/hermes/hermes.yml"
    assert (data.stat().st_uid, data.stat().st_mode & 0o777) == (int(owner.group(1)), 0o700)
    assert (logs.stat().st_uid, logs.stat().st_mode & 0o777) == (int(owner.group(1)), 0o750)
    assert (root / "etc/systemd/system/multi-user.target.wants/hermes.service").is_symlink()
    assert (root / "etc/logrotate.d/hermes").exists() and (root / "usr/lib/sysusers.d/hermes.conf").exists()
    assert "hermes.yml: fine" in inside(root, "hermes", "server", "--check", "-c", "/etc/hermes/hermes.yml")
    inside(root, "dpkg", "--verify", "hermes")

    settings.write_text("node: {name: mine}\nlog: {file: /var/log/hermes/hermes.log}\n")
    this = Installed(root, tmp_path / "node")
    try:
        this.start(ready=False)
        log = logs / "hermes.log"
        wait_for(lambda: log.exists() and "agent is ready, node=mine" in log.read_text(), 60)
        conn = this.pika()
        channel = conn.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
        conn.close()
        this.stop()

        # the settings that somebody has edited stay, and the sample comes beside them
        inside(root, "dpkg", "--force-confdef", "--force-confold", "-i", "/tmp/next.deb")
        assert inside(root, "dpkg-query", "-W", "-f", "${Version}", "hermes").endswith("+next")
        assert settings.read_text().startswith("node: {name: mine}")
        assert (root / "etc/hermes/hermes.yml.dpkg-dist").read_text().endswith("# of the next version\n")
        assert "is whole" in inside(root, "hermes", "check-data", "/var/lib/hermes")
        this.start(ready=False)
        wait_for(lambda: log.read_text().count("agent is ready, node=mine") == 2, 60)
        walk_through_backups(root, this, lambda: wait_for(
            lambda: log.read_text().count("agent is ready, node=mine") == 3, 60))
        conn = this.pika()
        assert conn.channel().basic_get("q", auto_ack=True)[2] == b"kept"
        conn.close()
        this.stop()
    finally:
        this.kill()

    inside(root, "dpkg", "-r", "hermes")
    assert status_of(root) == "rc"
    assert not (root / "usr/bin/hermes").exists() and not (root / "lib/systemd/system/hermes.service").exists()
    assert settings.exists() and any(data.iterdir())
    inside(root, "dpkg", "--force-confdef", "--force-confold", "-i", "/tmp/next.deb")
    assert status_of(root) == "ii" and any(data.iterdir()) and settings.read_text().startswith("node: {name: mine}")
    inside(root, "dpkg", "-P", "hermes")
    assert status_of(root) in ("", "un")
    assert not data.exists() and not logs.exists() and not (root / "etc/hermes").exists()
    assert (root / "var/backups/hermes/monday").exists()
    assert not list((root / "etc/systemd/system").rglob("hermes*")) and not (root / "etc/logrotate.d/hermes").exists()
