"""Back pressure: the memory limit holds, publishers are held back, everybody else goes on."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import socket
import threading
import time

import pytest

import wire
from node import SLOW, wait_for
from wire import enc_frame, enc_method

pytestmark = pytest.mark.alone

LIMIT_MIB = 64
#: nothing goes to disk, so that memory is short at all
SETTINGS = "memory: {limit: %dMiB, spill: 0%%}\n" % LIMIT_MIB


class Flood(threading.Thread):
    """Publishes as fast as the socket takes it, until stopped; counts what the socket took."""

    def __init__(self, node, queue, size=1024):
        super().__init__(daemon=True)
        self.chan = node.raw().channel()
        self.batch = self.chan.encode_publish("", queue, b"x" * size) * (1 + 65536 // size)
        self.taken = 0
        self.stopping = False
        self.error = None

    def run(self):
        sock = self.chan.conn.sock
        sock.settimeout(0.05)
        view = memoryview(self.batch)
        at = 0
        while not self.stopping:
            try:
                sent = sock.send(view[at:])
                self.taken += sent
                at = (at + sent) % len(view)
            except socket.timeout:
                pass
            except OSError as exc:
                self.error = exc
                return

    def stop(self):
        self.stopping = True
        self.join()

    def held_back(self, seconds=0.5):
        before = self.taken
        time.sleep(seconds)
        return self.taken == before


@pytest.fixture
def flooded(node):
    """A node at its memory limit: (node, flood, its consumer that has not read yet)."""
    this = node(settings=SETTINGS)
    reader = this.raw().channel()
    reader.declare("flood")
    reader.send("basic.consume", queue="flood", consumer_tag="t", no_ack=True)
    flood = Flood(this, "flood")
    flood.start()
    wait_for(flood.held_back, 60, "publisher held back")
    yield this, flood, reader
    flood.stop()


def round_trips(chan, seconds):
    """Times of passive declares, one after another, in seconds."""
    chan.declare("control-%d" % id(chan), exclusive=True)
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        chan.sync()
        times.append(time.perf_counter() - began)
        time.sleep(0.002)
    return sorted(times)


def test_the_limit_holds_and_is_told(flooded):
    node, flood, _ = flooded
    assert flood.error is None
    if SLOW == 1:
        assert node.rss_kb() < (LIMIT_MIB * 1.1 + 20) * 1024
    event = flood.chan.conn.read_event()
    assert event.name == "connection.blocked" and "memory" in event.reason
    node.await_log("memory")


def test_others_are_served_meanwhile(flooded):
    node, _, _ = flooded
    times = round_trips(node.raw().channel(), 2)
    assert times[len(times) * 99 // 100] < 0.02 * SLOW


def test_publishing_goes_on_when_the_consumer_reads(flooded):
    node, flood, reader = flooded
    conn = reader.conn
    before = flood.taken
    end = time.monotonic() + 20 * SLOW
    conn.sock.settimeout(1)
    while flood.taken < before + 4 * LIMIT_MIB * 2**20 and time.monotonic() < end:
        conn.sock.recv(1 << 20)
    assert flood.taken >= before + 4 * LIMIT_MIB * 2**20
    flood.stop()
    with contextlib.suppress(socket.timeout):       # all that is left
        while conn.sock.recv(1 << 20):
            pass
    names = []
    with contextlib.suppress(wire.Timeout):
        while True:
            names.append(flood.chan.conn.read_event(timeout=0.5 * SLOW).name)
    # one unblocked for each blocked, in turn
    assert names and names == ["connection.blocked", "connection.unblocked"] * (len(names) // 2)


def test_memory_falls_again_after_a_drain(node):
    this = node()
    chan = this.raw().channel()
    chan.declare("drain")
    before = this.rss_kb()
    batch = chan.encode_publish("", "drain", b"x" * 1000) * 1000
    for _ in range(60):
        chan.conn.send_raw(batch)
    chan.wait_count("drain", 60000, timeout=30 * SLOW)
    if SLOW == 1:
        assert this.rss_kb() > before + 50000
    chan.send("queue.purge", queue="drain")
    if SLOW == 1:
        wait_for(lambda: this.rss_kb() < before + 15000, 15, "memory given back")


@pytest.fixture
def short_of_memory(node):
    """A node under its alarm (not at the hard limit), and a channel that holds ten deliveries."""
    this = node(settings=SETTINGS)
    worker = this.raw().channel()
    worker.declare("work")
    for n in range(10):
        worker.publish("", "work", str(n))
    worker.wait_count("work", 10)
    worker.consume("work")
    tags = [worker.deliver().delivery_tag for _ in range(10)]
    filler = this.raw().channel()
    filler.declare("fill")
    flood = Flood(this, "fill")
    flood.start()
    wait_for(flood.held_back, 60, "publisher held back")
    yield this, worker, tags
    flood.stop()


def test_settling_is_never_held_back(short_of_memory):
    node, worker, tags = short_of_memory
    for tag in tags:
        worker.ack(tag)
    worker.sync()
    other = node.raw().channel()
    assert other.counts("work") == (0, 1)


def test_who_consumes_may_publish_as_many(short_of_memory):
    """The result of each message, then its ack: neither is lost, nobody waits for ever."""
    node, worker, tags = short_of_memory
    worker.call("confirm.select")
    done = node.raw().channel()
    done.declare("done")
    for tag in tags:
        worker.conn.send_raw(worker.encode_publish("", "done", "r%d" % tag)
                             + enc_frame(1, 1, enc_method("basic.ack", delivery_tag=tag)))
    assert worker.confirmed(len(tags), timeout=10 * SLOW) == {n: "basic.ack" for n in range(1, len(tags) + 1)}
    assert done.drain("done") == ["r%d" % tag for tag in tags]
    assert done.counts("work")[0] == 0


def test_a_parked_channel_keeps_its_order(short_of_memory):
    """What stands behind a parked publish waits with it, and other channels of the connection do not."""
    node, _, _ = short_of_memory
    conn = node.raw()
    one, two = conn.channel(1), conn.channel(2)
    one.declare("parked")
    one.publish("", "parked", "m")
    one.send("queue.delete", queue="parked")
    two.sync()
    assert two.counts("parked") == (0, 0)
    two.call("queue.purge", queue="fill")
    assert one.expect_any_order("queue.delete-ok", timeout=15 * SLOW).message_count == 1


def test_a_parked_client_that_closes_loses_nothing(short_of_memory):
    """connection.close waits behind the publishes before it, as it does where the whole connection is not read."""
    node, _, _ = short_of_memory
    conn = node.raw()
    chan = conn.channel()
    chan.declare("closing")
    chan.publish("", "closing", "last words")
    conn.send_method(0, "connection.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    assert conn.read_event().name == "connection.blocked"
    other = node.raw().channel()
    assert other.counts("closing") == (0, 0)
    other.call("queue.purge", queue="fill")
    names = [conn.read_event(timeout=15 * SLOW).name for _ in range(2)]
    assert names == ["connection.unblocked", "connection.close-ok"]
    assert other.drain("closing") == ["last words"]


def test_a_parked_client_that_goes_leaves_nothing(short_of_memory):
    node, _, _ = short_of_memory
    for _ in range(20):
        conn = node.raw()
        chan = conn.channel()
        chan.publish("", "work", "never")
        conn.abort()
    assert node.raw().channel().counts("work")[0] == 0


def test_slow_requests_leave_a_bystander_its_time(node):
    """Thousands of publishes that match themselves against thousands of patterns each come in one read."""
    this = node()
    chan = this.raw().channel()
    chan.exchange("patterns", "headers")
    chan.declare("never")
    for n in range(5000):
        chan.send("queue.bind", queue="never", exchange="patterns", arguments={"n": n}, nowait=True)
    chan.sync()
    other = this.raw().channel()
    other.sync()
    chan.conn.send_raw(chan.encode_publish("patterns", "k", b"x") * 3000)
    done = threading.Thread(target=chan.sync)
    done.start()
    trips = 0
    while done.is_alive():
        other.sync()
        trips += 1
    assert trips > 20


def test_many_publishers_leave_a_bystander_its_time(node):
    this = node(settings=SETTINGS)
    sink = this.raw().channel()
    sink.declare("sink", arguments={})
    floods = [Flood(this, "nowhere", size=256) for _ in range(20)]
    for flood in floods:
        flood.start()
    try:
        times = round_trips(this.raw().channel(), 3)
    finally:
        for flood in floods:
            flood.stop()
    assert len(times) > 50
    assert times[len(times) // 2] < 0.05 * SLOW
