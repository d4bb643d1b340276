"""The disk: what lies between a publish and its confirm, how many syncs there are, what happens when it is full."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import re
import select
import shutil
import subprocess
import threading
import time

import pytest
import requests

import wire
from node import SLOW, hermes, wait_for
from test_durable import barrier, fill
from test_pressure import Flood

MIB = 1 << 20


# --------------------------------------------------------------------------
# what the process asks of the kernel
# --------------------------------------------------------------------------
class Strace:
    """All threads of a node; its calls in the order in which they began and ended."""

    def __init__(self, node, calls, length=4096):
        self.out = node.folder / "strace"
        self.process = subprocess.Popen(["strace", "-f", "-p", str(node.pid), "-e", "trace=" + calls, "-s", str(length),
                                         "-xx", "-o", str(self.out)], stderr=subprocess.PIPE, text=True)
        assert "attached" in self.process.stderr.readline()    # with all threads

    def stop(self):
        """[(began or ended, name, text)]; text is the whole line, bytes as \\xNN."""
        self.process.terminate()
        self.process.communicate()
        events = []
        for line in self.out.read_text().splitlines():
            found = re.match(r"\d+ +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)", line)
            if found is None:
                continue
            if found.group(1):
                events.append(("end", found.group(1), found.group(3)))
                continue
            events.append(("begin", found.group(2), found.group(3)))
            if "<unfinished ...>" not in line:
                events.append(("end", found.group(2), found.group(3)))
        return events


def escaped(raw):
    return "".join("\\x%02x" % byte for byte in raw)


CONFIRM = escaped(b"\x00\x3c\x00\x50")      # basic.ack
SYNCS = ("fdatasync", "fsync")


def between(events, marker):
    """What happened from the receipt of the marker to the next confirm: names of calls that began and ended in it."""
    names = []
    begun = None
    for kind, name, text in events:
        if begun is None:
            if name in ("recvfrom", "read", "readv", "recvmsg") and kind == "end" and marker in text:
                begun = []
            continue
        if name in ("writev", "sendmsg", "sendto", "write") and kind == "begin" and CONFIRM in text:
            return names
        if kind == "begin":
            begun.append(name)
        elif name in begun:         # one that began before may not cover what came after it
            begun.remove(name)
            names.append(name)
    raise AssertionError("no confirm for %s" % marker)


WRITES = ("pwritev", "pwrite64", "pwritev2")
CALLS = "recvfrom,read,readv,recvmsg,writev,sendmsg,sendto,write,pwritev,pwritev2,pwrite64,fdatasync,fsync"


@pytest.mark.parametrize("sync, queue_sync", [("always", None), ("50ms", None), ("never", None), ("never", "always"),
                                              ("always", "50ms")])
def test_what_a_confirm_waits_for(node, sync, queue_sync):
    """always: a write and then a sync that began after the receipt; otherwise a write."""
    this = node("store: {sync: %s}\n" % sync)
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments={"x-sync": queue_sync} if queue_sync else {})
    chan.call("confirm.select")
    strace = Strace(this, CALLS)
    markers = [b"marker-%05d-" % n for n in range(40)]
    began = time.monotonic()
    try:
        for n, marker in enumerate(markers):
            chan.publish("", "q", marker, delivery_mode=2)
            chan.confirmed(1, timeout=20 * SLOW)
            if n % 10 == 0:
                time.sleep(0.06)
    finally:
        took = time.monotonic() - began
        events = strace.stop()
    strict = (queue_sync or sync) == "always"
    for marker in markers:
        names = between(events, escaped(marker))
        wrote = [i for i, name in enumerate(names) if name in WRITES]
        synced = [i for i, name in enumerate(names) if name in SYNCS]
        assert wrote, "%s: confirmed without a write: %s" % (marker, names)
        if strict:
            assert synced and synced[-1] > wrote[0], "%s: confirmed without a sync: %s" % (marker, names)
    if not strict:
        syncs = sum(kind == "begin" and name in SYNCS for kind, name, _ in events)
        # a busy machine takes longer than 50 ms for some of them
        assert syncs < max(len(markers) / 2, took / 0.05 + 5), "%d syncs in %.3f s" % (syncs, took)


def test_an_answer_waits_for_the_sync(node):
    this = node("store: {sync: never}\n")
    chan = this.raw().channel()
    strace = Strace(this, CALLS)
    try:
        for n in range(10):
            chan.declare("durable-%05d" % n, durable=True)
    finally:
        events = strace.stop()
    for n in range(10):
        seen = []
        marker = escaped(b"durable-%05d" % n)
        for kind, name, text in events:
            if not seen and name in ("recvfrom", "read", "readv", "recvmsg") and kind == "end" and marker in text:
                seen.append("received")
            elif seen and name in ("writev", "sendmsg", "sendto") and kind == "begin" and marker in text:
                seen.append("answered")
                break
            elif seen and kind == "end" and name in SYNCS:
                seen.append("synced")
        assert "synced" in seen and seen[-1] == "answered", seen


class OneByOne(threading.Thread):
    """A publisher of window 1."""

    def __init__(self, node, until):
        super().__init__(daemon=True)
        self.chan = node.raw().channel()
        self.chan.call("confirm.select")
        self.until = until
        self.count = 0

    def run(self):
        raw = self.chan.encode_publish("", "q", b"x" * 200, delivery_mode=2)
        while time.monotonic() < self.until:
            self.chan.conn.send_raw(raw)
            self.chan.expect("basic.ack", timeout=20 * SLOW)
            self.count += 1


@pytest.mark.release
def test_one_sync_for_many(node):
    """50 publishers of window 1: under 0.1 syncs a confirm."""
    this = node()
    this.raw().channel().declare("q", durable=True)
    strace = Strace(this, "fdatasync,fsync", length=0)
    until = time.monotonic() + 4
    publishers = [OneByOne(this, until) for _ in range(50)]
    for publisher in publishers:
        publisher.start()
    for publisher in publishers:
        publisher.join(60)
    confirms = sum(publisher.count for publisher in publishers)
    syncs = sum(kind == "begin" for kind, _, _ in strace.stop())
    print("%d confirms, %d syncs" % (confirms, syncs))
    assert confirms > 2000
    assert syncs < confirms * 0.1


# --------------------------------------------------------------------------
# a disk that hangs or fails
# --------------------------------------------------------------------------
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int
told(const char *what)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", getenv("DISK_SHIM"), what);
	return access(path, F_OK) == 0;
}

static int
sync_with(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

	while (told("hang"))
		usleep(1000);
	if (told("fail")) {
		errno = EIO;
		return -1;
	}
	return real(fd);
}

int
fdatasync(int fd)
{
	return sync_with("fdatasync", fd);
}

int
fsync(int fd)
{
	return sync_with("fsync", fd);
}
"""


class Shim:
    """Syncs that hang or fail while it is told so."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "shim.c").write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True)
        self.env = {"LD_PRELOAD": str(folder / "shim.so"), "DISK_SHIM": str(folder)}

    def tell(self, what):
        (self.folder / what).touch()

    def end(self, what):
        (self.folder / what).unlink()


@pytest.mark.release
def test_a_sync_that_hangs(node, tmp_path):
    """Holds what waits for it, and nobody else; past 64 MiB it holds persistent publishers, who are told nothing."""
    shim = Shim(tmp_path)
    this = node(env=shim.env)
    chan = this.raw().channel()
    for queue in ("q", "served"):
        chan.declare(queue, durable=True)
    chan.declare("passing")
    fill(chan, "served", (b"%d" % n for n in range(100)))
    shim.tell("hang")
    filler = Filler(this, "q", window=10 ** 6, size=65536)
    filler.start()
    waiting = this.raw().channel()
    waiting.send("queue.declare", queue="new", durable=True, arguments={})
    waiting.send("basic.qos", prefetch_count=1, global_=False, prefetch_size=0)
    # consumers, acknowledgements, transient messages, gets, declares of what does not survive
    other = this.raw().channel()
    for n in range(100):
        got = other.get("served", no_ack=False)
        assert got.body == b"%d" % n
        other.ack(got.delivery_tag)
    other.call("confirm.select")
    for n in range(100):
        other.publish("", "passing", b"%d" % n)
    other.confirmed(100)
    other.publish("", "q", b"volatile", delivery_mode=1)
    other.confirmed(1)
    other.declare(exclusive=True)
    assert len(other.drain("passing")) == 100
    wait_for(lambda: filler.is_stuck(), 30, "publisher held back")
    assert filler.confirmed == 0 and filler.blocked == []
    assert 60 * MIB < filler.sent * 65536 < 80 * MIB, filler.sent
    waiting.expect_nothing()
    assert this.rss_kb() < 400 * 1024
    assert status(this).returncode == 0
    shim.end("hang")
    waiting.expect("queue.declare-ok", timeout=20 * SLOW)
    waiting.expect("basic.qos-ok")
    at = filler.sent
    wait_for(lambda: filler.confirmed > at + 100 or filler.error, 30, "it goes on")
    assert filler.blocked == []
    filler.stop()


@pytest.mark.release
def test_a_stop_while_a_sync_hangs(node, tmp_path):
    """It is said, it takes ten seconds, and costs only what was not confirmed."""
    shim = Shim(tmp_path)
    pid_file = tmp_path / "hermes.pid"
    this = node(args=["--pid-file", str(pid_file)], env=shim.env)
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", (b"%d" % n for n in range(10)))
    shim.tell("hang")
    chan.publish("", "q", b"unconfirmed", delivery_mode=2)
    chan.conn.close()
    assert pid_file.exists()
    began = time.monotonic()
    this.process.terminate()
    assert this.wait(30) == 1
    assert 9 < time.monotonic() - began < 20 * SLOW
    assert "does not answer; the end waits for it, at most 10 s" in this.log
    assert "the process ends without it" in this.log
    assert not pid_file.exists()
    this.process = None
    this.conns.clear()
    shim.end("hang")
    this.start()
    assert this.raw().channel().drain("q")[:10] == [str(n) for n in range(10)]


@pytest.mark.release
def test_reading_goes_on_where_syncs_hang(node, tmp_path):
    """Files that cannot be synced keep workers back, all but one."""
    shim = Shim(tmp_path)
    this = node("store: {queue_messages: 1024}", env=shim.env)
    queues = [f"q{n}" for n in range(5)]
    chan = this.raw().channel()
    for queue in ["long", *queues]:
        chan.declare(queue, durable=True)
    fill(chan, "long", (b"%d" % n for n in range(6000)))
    wait_for(lambda: list((this.data / "segments").iterdir()), 20, "a part of the queue in a file")
    shim.tell("hang")
    other = this.raw().channel()
    other.call("confirm.select")
    for queue in queues:
        for n in range(2000):
            other.publish("", queue, b"%d" % n, delivery_mode=1)
        other.confirmed(2000)
    assert other.drain("long") == [str(n) for n in range(6000)]
    shim.end("hang")
    for queue in queues:
        assert other.drain(queue) == [str(n) for n in range(2000)]


@pytest.mark.release
def test_a_sync_that_fails(node, tmp_path):
    """No confirm, one clear line, exit; after that everything that was confirmed is there."""
    shim = Shim(tmp_path)
    pid_file = tmp_path / "hermes.pid"
    this = node(args=["--pid-file", str(pid_file)], env=shim.env)
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    filler = Filler(this, "q")
    filler.start()
    wait_for(lambda: filler.confirmed > 200, 30, "confirms")
    shim.tell("fail")
    assert this.wait() == 1
    filler.join(20)
    this.process = None
    lines = [line for line in this.log.splitlines() if "Input/output error" in line]
    assert len(lines) == 1 and str(this.data) in lines[0], this.log
    assert not pid_file.exists()
    shim.end("fail")
    this.conns.clear()
    this.start()
    numbers = [int(body[:8]) for body in this.raw().channel().drain("q")]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= filler.confirmed


# --------------------------------------------------------------------------
# a full disk
# --------------------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 MiB in memory."""
    assert os.geteuid() == 0, "this test mounts a file system"
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(path)], check=True)
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


class Filler(threading.Thread):
    """Publishes numbered persistent messages with confirms until it is told to stop."""

    SIZE = 16384

    def __init__(self, node, queue, window=50, size=SIZE):
        super().__init__(daemon=True)
        self.window, self.size = window, size
        self.conn = node.raw()
        self.chan = self.conn.channel()
        self.chan.call("confirm.select")
        self.queue = queue
        self.sent = self.confirmed = 0
        self.moved = time.monotonic()       # bytes that the node took last
        self.blocked = []
        self.stopping = False
        self.error = None

    def run(self):
        try:
            while not self.stopping:
                while self.sent - self.confirmed < self.window and not self.stopping:
                    self.send(self.chan.encode_publish("", self.queue, self.body(self.sent, self.size), delivery_mode=2))
                    self.sent += 1
                    if select.select([self.conn.sock], [], [], 0)[0]:
                        break
                with contextlib.suppress(wire.Timeout):
                    self.take(self.conn.next_event(timeout=0.1))
        except BaseException as exc:
            self.error = exc

    def send(self, raw):
        """All of it, however long the node does not read; what it says meanwhile is heard."""
        view = memoryview(raw)
        while view and not self.stopping:
            readable, writable, _ = select.select([self.conn.sock], [self.conn.sock], [], 0.1)
            if writable:
                self.conn.sock.setblocking(False)
                view = view[self.conn.sock.send(view):]
                self.conn.sock.setblocking(True)
                self.moved = time.monotonic()
            elif readable:
                self.take(self.conn.next_event())

    def is_stuck(self, seconds=1):
        return time.monotonic() - self.moved > seconds

    def await_blocked(self, seconds=1):
        """It was told, and is. (What a spill frees may have let it go on once, and what a quiet node gives up.)"""
        def told():
            count = len(self.blocked)
            return self.error or (count if count % 2 == 1 and self.is_stuck(seconds) else None)

        count = wait_for(told, 60, "connection.blocked")
        assert self.error is None, repr(self.error)
        names = [name for name, _ in self.blocked[:count]]
        assert names == (["connection.blocked", "connection.unblocked"] * len(names))[:len(names)]
        assert all("disk" in reason or "journal" in reason for name, reason in self.blocked[::2]), self.blocked
        return count

    def await_unblocked(self, told):
        wait_for(lambda: self.error or len(self.blocked) > told, 30, "connection.unblocked")
        assert self.error is None, repr(self.error)
        assert self.blocked[told][0] == "connection.unblocked", self.blocked

    def take(self, event):
        if event.name == "basic.ack":
            self.confirmed = event.delivery_tag
        else:
            self.blocked.append((event.name, getattr(event, "args", {}).get("reason")))

    @staticmethod
    def body(n, size=SIZE):
        return b"%08d" % n + b"x" * (size - 8)

    def stop(self):
        self.stopping = True
        self.join(20 * SLOW)
        if self.error is not None:
            raise self.error


def status(node):
    return hermes("status", "--url", node.http_url)


@pytest.mark.parametrize("min_free", ["5%", "0"])
def test_a_disk_that_fills(node, small_disk, min_free):
    """Publishers wait, everybody else goes on; nothing confirmed is lost; it goes on when there is space."""
    this = node("disk: {min_free: %s}\n" % min_free, args=["-d", small_disk / "data"], data=False)
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    filler = Filler(this, "q")
    filler.start()
    told = filler.await_blocked()
    at = filler.confirmed
    assert at > 500, "only %d messages of 16 KiB on 64 MiB" % at
    said = status(this)
    assert said.returncode == 0 or "disk alarm" in said.stdout, said
    other = this.raw().channel()
    other.declare("transient")
    other.call("confirm.select")
    other.publish("", "transient", b"x")
    other.confirmed(1)
    other.publish("", "q", b"transient", delivery_mode=1)
    other.confirmed(1)

    # what frees the space is not held up by its being short
    chan.qos(100)
    chan.consume("q", tag="t")
    taken = 0
    while taken < at:
        got = chan.deliver(timeout=20 * SLOW)
        if got.body == b"transient":
            chan.ack(got.delivery_tag)
            continue
        assert got.body == Filler.body(taken)
        chan.ack(got.delivery_tag)
        taken += 1
    chan.call("basic.cancel", consumer_tag="t")
    filler.await_unblocked(told)
    wait_for(lambda: filler.confirmed > at + 50, 30, "it goes on")
    filler.stop()
    confirmed = filler.confirmed
    this.kill()
    this.conns.clear()
    this.start()
    left = this.raw().channel().drain("q")
    numbers = [int(body[:8]) for body in left if body != "transient"]
    assert numbers == sorted(set(numbers))
    assert set(range(taken, confirmed)) - set(numbers) == set()
    assert all(len(body) == Filler.SIZE for body in left if body != "transient")


def test_deleting_a_queue_on_a_full_disk(node, small_disk):
    this = node("disk: {min_free: 0}\n", args=["-d", small_disk / "data"], data=False)
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    filler = Filler(this, "q")
    filler.start()
    told = filler.await_blocked()
    chan.call("queue.purge", queue="q", timeout=20 * SLOW)
    filler.await_unblocked(told)
    filler.stop()
    chan.call("queue.delete", queue="q", timeout=20 * SLOW)
    this.kill()
    this.conns.clear()
    this.start()
    chan = this.raw().channel()
    with pytest.raises(wire.ChannelClosed):
        chan.declare("q", passive=True)


def test_changes_over_http_on_a_full_disk(node, small_disk):
    """They wait for space, and it is said why: by the log and by the health checks. Then they are done."""
    def put(name, **kw):
        return requests.put(this.http_url + "/api/global-parameters/" + name, json={"value": "x" * 100000},
                            auth=("guest", "guest"), **kw).status_code

    this = node("disk: {min_free: 0}\n", args=["-d", small_disk / "data"], data=False)
    with open(small_disk / "ballast", "wb") as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(b"x" * 65536)
    full = "disk alarm: there is no space to write"
    done, names = set(), iter("p%d" % i for i in range(1000))
    while full not in this.log:
        name = next(names)
        with contextlib.suppress(requests.Timeout):
            assert put(name, timeout=1 * SLOW) == 201
            done.add(name)
    said = requests.get(this.http_url + "/api/health/checks/alarms", auth=("guest", "guest"), timeout=20 * SLOW)
    assert said.status_code == 503 and "no space to write" in said.text
    os.unlink(small_disk / "ballast")
    assert put("late", timeout=20 * SLOW) == 201
    this.await_log("disk alarm is over")
    assert requests.get(this.http_url + "/healthz", timeout=20 * SLOW).status_code == 200
    this.kill()
    this.start()
    left = requests.get(this.http_url + "/api/global-parameters?columns=name", auth=("guest", "guest"), timeout=20 * SLOW).json()
    assert {"late"} | done <= {row["name"] for row in left}


def test_a_start_on_a_full_disk(node, small_disk):
    """It starts, gives out what it has, and takes more when there is room."""
    this = node("disk: {min_free: 0}\n", args=["-d", small_disk / "data"], data=False)
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", (Filler.body(n) for n in range(1000)))
    this.stop()
    with open(small_disk / "ballast", "wb") as ballast, contextlib.suppress(OSError):
        for _ in range(64 * 16):
            ballast.write(b"x" * 65536)
            ballast.flush()
    this.start(ready=False)
    try:
        this.await_ready(timeout=30)
    except AssertionError:
        # a clear refusal is an answer, too
        assert not this.running()
        assert re.search(r"[Nn]o space left", this.log[this.log_before:])
        this.process = None
        os.unlink(small_disk / "ballast")
        this.start()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(small_disk / "ballast")
    chan = this.raw().channel()
    for n in range(1000):
        assert chan.get("q").body == Filler.body(n)
    assert chan.get("q") is None
    barrier(chan)


def test_memory_and_disk(node, small_disk):
    """K25: two alarms; the first that ends changes nothing for clients."""
    this = node("disk: {min_free: 30%}\nmemory: {limit: 160MiB, spill: 0%}\n", args=["-d", small_disk / "data"], data=False)
    reader = this.raw().channel()
    reader.declare("flood")
    reader.declare("q", durable=True)
    filler = Filler(this, "q")
    filler.start()
    filler.await_blocked()
    # so little is left that what a quiet node gives up ends no alarm
    ballast = small_disk / "ballast"
    left = shutil.disk_usage(small_disk).free
    ballast.write_bytes(bytes(max(0, left - 4 * MIB)))
    told = filler.await_blocked(3)
    flood = Flood(this, "flood")
    flood.start()
    this.await_log("memory alarm: ", 30)
    flood.stop()
    flood.chan.conn.abort()
    reader.call("queue.purge", queue="flood", timeout=20 * SLOW)
    this.await_log("memory alarm is over", 30)
    time.sleep(1.5)
    assert len(filler.blocked) == told
    ballast.unlink()
    reader.call("queue.purge", queue="q", timeout=20 * SLOW)
    filler.await_unblocked(told)
    filler.stop()
