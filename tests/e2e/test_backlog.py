"""Long backlogs: ready at once after a kill, memory and speed that do not depend on their length, complete drains.

HERMES_BACKLOG=20000000 (contrib/test --long) is the size that the promises are made for; without it everything is
smaller, and the same.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from control import Control
from node import SLOW, sanitized, wait_for

pytestmark = pytest.mark.alone

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
MILLION = 1000000 if not sanitized() else 100000
BACKLOG = int(os.environ.get("HERMES_BACKLOG", 2 * MILLION))
FULL = BACKLOG >= 20000000
SIZE = 256
MIB = 1024      # kB


@pytest.fixture(scope="module")
def flood(tmp_path_factory):
    program = tmp_path_factory.mktemp("tools") / "flood"
    subprocess.run(["cc", "-std=gnu11", "-O2", "-o", str(program), str(TOOLS / "flood.c")], check=True)

    def run(what, node, queue, first, count, *more, size=SIZE, timeout=600):
        done = subprocess.run([str(program), what, str(node.port), queue, str(first), str(count), str(size)] +
                              [str(m) for m in more], capture_output=True, text=True, timeout=timeout * SLOW)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def restart(node):
    """kill -9, start again: seconds until it is ready."""
    node.kill()
    began = time.monotonic()
    node.start(ready=False)
    while "agent is ready" not in node.log[node.log_before:]:
        assert node.running(), node.log
        assert time.monotonic() - began < 60
        time.sleep(0.001)
    return time.monotonic() - began


def rss_anon(node):
    return node.status("RssAnon")


def count(node, queue):
    conn = node.raw()
    ready, _ = conn.channel().counts(queue)
    conn.close()
    return ready


def test_a_million_is_there_at_once_after_a_kill(node, flood):
    this = node()
    flood("fill", this, "long", 0, MILLION, 5000)
    took = restart(this)
    assert count(this, "long") == MILLION
    if not sanitized():
        assert took < 0.2, "%.0f ms" % (took * 1000)
    flood("drain", this, "long", 0, MILLION)
    wait_for(lambda: count(this, "long") == 0)


def test_its_place_is_free_after_the_drain(node, flood):
    this = node()
    flood("fill", this, "long", 0, MILLION // 2, 5000)
    flood("drain", this, "long", 0, MILLION // 2)

    def used():
        return sum(f.stat().st_size for f in (this.data / "segments").iterdir())

    wait_for(lambda: used() == 0, timeout=15, what="segments gone")


def test_fills_while_it_drains(node, flood):
    """Two clients, one queue, a backlog between them: order and bytes hold across memory and files."""
    this = node()
    flood("fill", this, "long", 0, MILLION // 4, 5000)
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as pool:
        more = pool.submit(flood, "fill", this, "long", MILLION // 4, MILLION // 4, 5000)
        less = pool.submit(flood, "drain", this, "long", 0, MILLION // 2)
        more.result()
        less.result()


def test_every_16384th_unacknowledged(node, flood):
    """Held messages pin neither the journal nor the chain: the disk stays within twice what lives and 256 MiB."""
    this = node()
    total = 10000000 if FULL else MILLION // 2
    flood("fill", this, "held", 0, total, 5000)
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(flood, "drain", this, "held", 0, total, 16384, timeout=1200)
        while not work.done():
            time.sleep(0.2)
        work.result()

    def used():
        with contextlib.suppress(FileNotFoundError):       # a file may go meanwhile
            return sum(f.stat().st_size for folder in ("segments", "journal") for f in (this.data / folder).iterdir())

    wait_for(lambda: (used() or 1 << 40) < 256 << 20, 10, "what is left of the files below 256 MiB")


@pytest.mark.release
def test_the_longest(node, flood, tmp_path):
    need = BACKLOG * 400
    free = shutil.disk_usage(tmp_path).free
    assert free > need, "%d MiB of disk are free, %d are needed" % (free >> 20, need >> 20)
    this = node()
    empty = flood("fill", this, "first", 0, MILLION, 5000)
    flood("drain", this, "first", 0, MILLION)
    filled = flood("fill", this, "long", 0, BACKLOG, 5000, timeout=1200)
    if FULL:
        assert filled["slowest"] > empty["fastest"] / 2, (filled, empty)
    assert rss_anon(this) < 100 * MIB
    took = restart(this)
    # of what lies on disk at most the front, for whoever comes first
    assert this.overview()["hermes"]["store"]["loaded_bytes"] < 4 << 20
    assert took < 1, "%.2f s" % took
    assert count(this, "long") == BACKLOG
    assert rss_anon(this) < 100 * MIB
    flood("drain", this, "long", 0, BACKLOG, timeout=1200)
    assert rss_anon(this) < 100 * MIB


def quiet_beside_loud(node, flood, queues, each, volume):
    """`queues` queues with a few messages each beside one loud queue: what is moved, and how others are served."""
    this = node()
    conn = this.raw()
    ch = conn.channel()
    body = b"q" * SIZE
    for start in range(0, queues, 500):
        for i in range(start, min(start + 500, queues)):
            ch.send("queue.declare", queue="quiet-%d" % i, durable=True, nowait=True)
        ch.sync()
        conn.send_raw(b"".join(ch.encode_publish("", "quiet-%d" % i, body, delivery_mode=2)
                               for i in range(start, min(start + 500, queues)) for _ in range(each)))
    ch.sync()
    with Control(this) as idle:
        time.sleep(3)
    before = this.overview()["hermes"]["store"]
    with Control(this) as control:
        for first in range(0, volume, 200000):
            flood("fill", this, "loud", first, 200000, 5000)
            flood("drain", this, "loud", first, 200000)
    after = this.overview()["hermes"]["store"]
    published = volume * (SIZE + 100)
    moved = after["moved_bytes"] - before["moved_bytes"]
    assert moved <= published + (128 << 20), "%d of %d MiB" % (moved >> 20, published >> 20)
    assert after["segments"] < 200
    if FULL:
        assert control.percentile(99.9) - idle.percentile(99.9) < 0.050
    for i in (0, queues // 2, queues - 1):
        assert ch.counts("quiet-%d" % i) == (each, 0)
    conn.close()
    return this


def test_ten_thousand_quiet_queues(node, flood):
    """32 MiB files: 20 rolls are 2,000,000 messages of the loud queue."""
    quiet_beside_loud(node, flood, 10000 if FULL else 2000, 5, 2000000 if FULL else 600000 // SLOW)


@pytest.mark.release
def test_a_hundred_thousand_quiet_queues(node, flood):
    quiet_beside_loud(node, flood, 100000 if FULL else 10000, 10, 600000)
