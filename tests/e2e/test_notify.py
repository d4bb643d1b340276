"""What the node tells a service manager (sd_notify): a socket of the test's own stands in for systemd's."""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import select
import signal
import socket
import time

import pytest

from node import SLOW, wait_for


class Manager:
    """The manager's end of the socket, and all that came so far, a datagram an entry."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name[0] == "@" else name)
        self.socket.settimeout(0.05)
        self.heard = []

    def hear(self):
        """Takes one more datagram, if there is one within a moment; all of them."""
        try:
            self.heard.append(self.socket.recv(4096).decode())
        except TimeoutError:
            pass
        return self.heard

    def await_text(self, text, after=0):
        """The place of the first datagram that begins with it."""
        def found():
            for i, one in enumerate(self.hear()):
                if i >= after and one.startswith(text):
                    return i + 1
            return None
        return wait_for(found, 20, "%r of %r" % (text, self.heard)) - 1


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    this = Manager(str(tmp_path / "notify") if request.param == "path" else "@hermes-notify-%d" % os.getpid())
    yield this
    this.socket.close()


def test_ready_reload_stop(node, manager):
    this = node(env={"NOTIFY_SOCKET": manager.name})
    assert manager.hear()[0] == "STATUS=reading the data in %s" % this.data
    ready = manager.await_text("READY=1")
    manager.await_text("STATUS=connections: 0, queues: 0, messages ready: 0", ready)

    this.config.write_text("log: {level: debug}\n")
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    this.process.send_signal(signal.SIGHUP)
    reloading = manager.await_text("RELOADING=1\nMONOTONIC_USEC=")
    assert before <= int(manager.heard[reloading].split("=")[2]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    manager.await_text("READY=1", reloading)
    this.await_log("settings were read again")
    # what is wrong in the settings ends the reload, too
    this.config.write_text("nonsense: 1\n")
    this.process.send_signal(signal.SIGHUP)
    again = manager.await_text("RELOADING=1", reloading + 1)
    manager.await_text("READY=1", again)

    this.raw().abort()
    this.process.send_signal(signal.SIGTERM)
    stopping = manager.await_text("STOPPING=1")
    manager.await_text("STATUS=stopping", stopping)
    this.stop(sig=None)
    assert not any(one.startswith("WATCHDOG") for one in manager.heard)


def test_ready_comes_with_the_ports(node, manager):
    """Whoever is started behind the node finds its ports open."""
    this = node(start=False, env={"NOTIFY_SOCKET": manager.name}, metrics=True)
    this.start(ready=False)
    manager.await_text("READY=1")
    for port in (this.port, this.management_port, this.metrics_port):
        socket.create_connection(("127.0.0.1", port), timeout=5 * SLOW).close()


def test_a_failed_start_says_why(node, manager):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        this = node(start=False, env={"NOTIFY_SOCKET": manager.name}, args=["--listen", "127.0.0.1"],
                    port=taken.getsockname()[1])
        this.start(ready=False)
        assert this.wait() == 1
    this.process = None
    wait_for(lambda: any("%d" % this.port in one for one in manager.hear()), 20, "the reason in %r" % manager.heard)
    assert "hermes server: %s\n" % manager.heard[-1].removeprefix("STATUS=") in this.log
    assert not any(one.startswith("READY") for one in manager.heard)


def test_watchdog(node, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    this = node(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "200000"})
    place = manager.await_text("WATCHDOG=1")
    for _ in range(3):
        place = manager.await_text("WATCHDOG=1", place + 1)
    # a node that hangs says nothing more
    this.process.send_signal(signal.SIGSTOP)
    while manager.socket in select.select([manager.socket], [], [], 0.3)[0]:
        manager.hear()
    this.process.send_signal(signal.SIGCONT)
    manager.await_text("WATCHDOG=1", len(manager.heard))


def test_watchdog_of_another_process(node, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    this = node(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"})
    manager.await_text("READY=1")
    this.stop()
    while manager.socket in select.select([manager.socket], [], [], 0)[0]:
        manager.hear()
    assert not any(one.startswith("WATCHDOG") for one in manager.heard)


@pytest.mark.parametrize("name", ["relative", "/nowhere/at/all", "@", "/" + "x" * 200])
def test_a_socket_that_is_not_there(node, name):
    """Whoever starts the node may say what he likes: it starts."""
    this = node(env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "rubbish"})
    assert this.overview()["hermes"]["healthy"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_levels_for_the_journal_of_systemd(node, tmp_path, form):
    """Before each line, where standard error is what JOURNAL_STREAM names, and nowhere else."""
    this = node(start=False, settings="log: {level: debug, format: %s}\n" % form)
    this.log_file.touch()
    stat = this.log_file.stat()
    this.env["JOURNAL_STREAM"] = "%d:%d" % (stat.st_dev, stat.st_ino)
    this.start()
    with socket.create_connection(("127.0.0.1", this.port), timeout=10 * SLOW) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        this.await_log("warning")
    levels = {"error": "<3>", "warning": "<4>", "info": "<6>", "debug": "<7>"}
    lines = [line for line in this.log.splitlines(True) if line.endswith("\n")]
    found = [re.match(r'(<.>)(?:\{"time":"\S+?","level":"(\w+)"|\S+ (\w+) )', line) for line in lines]
    assert all(found), lines
    assert all(levels[one[2] or one[3]] == one[1] for one in found), lines
    assert {one[1] for one in found} >= {"<4>", "<6>", "<7>"}
    # a file of its own
    this.stop()
    this.config.write_text("log: {file: %s/hermes.log}\n" % tmp_path)
    this.start(ready=False)
    file = tmp_path / "hermes.log"
    wait_for(lambda: file.exists() and "agent is ready" in file.read_text(), 20)
    assert file.read_text().startswith("20")
    # standard error is something else
    this.stop()
    this.config.write_text("")
    this.env["JOURNAL_STREAM"] = "%d:1" % stat.st_dev
    before = len(this.log)
    this.start()
    assert this.log[before:].startswith("20")
