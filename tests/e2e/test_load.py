"""Load shapes: very many channels and connections, storms, huge bodies, and peers slow at either end.

Each shape loses nothing, delivers nothing twice, keeps the order, leaves others their time and the node as
small as it was. HERMES_LOAD multiplies how much of each there is.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import hashlib
import os
import resource
import select
import socket
import struct
import threading
import time

import pytest

import wire
from control import Control
from node import SLOW, wait_for
from test_pressure import LIMIT_MIB, SETTINGS, Flood
from wire import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, enc_frame, enc_header, enc_method

pytestmark = pytest.mark.alone

LOAD = float(os.environ.get("HERMES_LOAD", "1"))
MIB = 2**20
PATIENCE = 30 * SLOW        # seconds for one answer; what others wait is measured by Control
#: what the node keeps of a heap that was in use: up to 32 MiB (TRIM_FALL of src/base/mem.c), and connections' memory
KEPT_MIB = 45
#: slacks of a shape that is run twice: what the first run left is there for the second
TWICE = (KEPT_MIB, 10) if SLOW == 1 else (KEPT_MIB,)


def scaled(count):
    return max(1, int(count * LOAD))


@contextlib.contextmanager
def bystander(node, p99=0.1, longest=3.0):
    """Somebody else is served while the body runs; what the machine does beside it may take a process off for a while."""
    with Control(node) as control:
        yield
    got = control.percentile(99), control.times[-1]
    print("control: %d round trips, p99 %.1f ms, longest %.1f ms" % (
        len(control.times), got[0] * 1000, got[1] * 1000))
    # A message for all of N connections is N writes, and whoever comes then waits for them.
    assert got[0] < p99 * SLOW and got[1] < longest * SLOW * max(1, LOAD)
    turn = node.overview()["hermes"]["process"]["turn_longest_us"]      # in the node's own processor time
    print("longest turn: %.1f ms" % (turn / 1000))
    assert turn < 100000 * SLOW * max(1, LOAD)


@contextlib.contextmanager
def no_growth(node, slack_mib=8):
    """Descriptors, and resident memory on the release build, are back after the body."""
    slack_mib *= max(1, LOAD)
    node.raw().close()
    descriptors, rss = node.descriptors(), node.rss_kb()
    yield
    wait_for(lambda: node.descriptors() <= descriptors, 10, "descriptors back")
    if SLOW == 1:
        with contextlib.suppress(AssertionError):
            wait_for(lambda: node.rss_kb() < rss + slack_mib * 1024, 10, "memory back")
        print("resident: %.1f MiB before, %.1f after" % (rss / 1024, node.rss_kb() / 1024))
        assert node.rss_kb() < rss + slack_mib * 1024


@pytest.fixture
def descriptors():
    """descriptors(count): this process may have that many."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def allow(count):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(count, before[0]), max(count, before[1])))

    yield allow
    with contextlib.suppress(ValueError):       # as high as it was raised is right for the others, too
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def method(channel, name, **args):
    return enc_frame(FRAME_METHOD, channel, enc_method(name, **args))


def publish(channel, queue, body):
    """The frames of a small message for a queue: method, header, body."""
    return (method(channel, "basic.publish", routing_key=queue),
            enc_frame(FRAME_HEADER, channel, enc_header(len(body))),
            enc_frame(FRAME_BODY, channel, body))


#: all that a client says up to an open connection with an open channel 1, without waiting for answers
START_OK = method(0, "connection.start-ok", client_properties=wire.CLIENT_PROPERTIES, mechanism="PLAIN",
                  response=wire.plain("guest", "guest"), locale="en_US")
OPENING = (wire.PROTOCOL_HEADER + START_OK
           + method(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
           + method(0, "connection.open", virtual_host="/") + method(1, "channel.open"))


def connect(node):
    return wire.Conn("127.0.0.1", node.port, timeout=PATIENCE)


def read_to(conn, name):
    """Skip events up to one of that name."""
    while True:
        event = conn.read_event()
        conn._raise_if_close(event)
        if event.name == name:
            return event


def reset(conn):
    """End the connection with a TCP reset, whatever is still on its way."""
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.abort()


def drain(node, queue, count):
    """Bodies of exactly that many messages; none may be left."""
    chan = node.raw().channel()
    chan.consume(queue, no_ack=True)
    bodies = [chan.deliver(PATIENCE).body for _ in range(count)]
    chan.sync()
    assert not chan.conn.pending and chan.counts(queue)[0] == 0
    chan.conn.close()
    return bodies


# ---- very many of them --------------------------------------------------------
def test_two_thousand_channels_of_a_connection(node):
    """Each channel publishes to the queue of the next, all contents interleaved, and acknowledges its own."""
    count, rounds = min(scaled(2000), 65000), 5
    this = node(settings="limits: {channel_max: %d}\n" % count)
    with no_growth(this, 10), bystander(this):       # the allocator keeps 4 KiB of each channel, once
        conn = this.raw()
        conn.timeout = PATIENCE
        numbers = range(1, count + 1)
        for names, args in (("channel.open", {}), ("confirm.select", {}),
                            ("queue.declare", {"exclusive": True}), ("basic.consume", {})):
            for n in numbers:
                if "queue" in names or "consume" in names:
                    args["queue"] = "q%d" % n
                conn.send_method(n, names, **args)
            assert sorted(conn.next_event(names=(names + "-ok",)).channel for _ in numbers) == list(numbers)
        got = {n: [] for n in numbers}
        confirmed = dict.fromkeys(numbers, 0)
        for turn in range(rounds):
            parts = zip(*(publish(n, "q%d" % (n % count + 1), b"%d %d" % (n, turn)) for n in numbers))
            conn.send_raw(b"".join(b"".join(part) for part in parts))
            acks = []
            missing = 2 * count
            while missing:
                event = conn.next_event(names=("basic.deliver", "basic.ack"))
                missing -= 1
                if event.name == "basic.ack":
                    assert event.delivery_tag == turn + 1
                    confirmed[event.channel] += 1
                else:
                    assert event.delivery_tag == turn + 1 and not event.redelivered
                    got[event.channel].append(event.body)
                    acks.append(method(event.channel, "basic.ack", delivery_tag=turn + 1))
            conn.send_raw(b"".join(acks))
        assert set(confirmed.values()) == {rounds}
        for n in numbers:
            assert got[n] == [b"%d %d" % ((n - 2) % count + 1, turn) for turn in range(rounds)]
        for n in numbers[::2]:
            conn.send_method(n, "channel.close", reply_code=200, reply_text="bye")
        closed = [conn.next_event(names=("channel.close-ok",)).channel for _ in numbers[::2]]
        assert sorted(closed) == list(numbers[::2])
        conn.close()


@pytest.mark.parametrize("queues", [1, 1000])
def test_thousands_of_consumers_under_one_limit(node, queues):
    """One message may be out for all consumers of a channel, each of another priority: an ack does not walk over all."""
    count, acks = scaled(4000), 1000
    this = node()
    with no_growth(this), bystander(this, p99=0.05):
        chan = this.raw().channel()
        chan.conn.timeout = PATIENCE
        chan.qos(1, global_=True)
        for n in range(queues):
            chan.declare("q%d" % n, exclusive=True)
            chan.conn.send_raw(b"".join(publish(1, "q%d" % n, b"m")) * (acks // queues))
        chan.conn.send_raw(b"".join(
            method(1, "basic.consume", queue="q%d" % (n % queues), consumer_tag="t%d" % n, nowait=True,
                   arguments={"x-priority": n * 7919 % count}) for n in range(count)))
        tags = []
        for n in range(acks):
            event = chan.deliver(PATIENCE)
            assert event.delivery_tag == n + 1
            tags.append(event.consumer_tag)
            chan.ack(n + 1)
        assert len({int(tag[1:]) % queues for tag in tags}) == queues
        for n in range(count):              # by its tag each
            chan.send("basic.cancel", consumer_tag="t%d" % n, nowait=True)
        chan.sync()
        assert chan.counts("q0") == (0, 0)
        chan.conn.close()


def test_five_thousand_connections(node, descriptors):
    """All consume; each publishes to the next, and what a fanout takes comes to all."""
    count, rounds = scaled(5000), 3
    descriptors(count + 500)
    this = node(nofile=count + 500)
    main = this.raw().channel()
    main.exchange("all", "fanout")
    for slack in TWICE:
        with no_growth(this, slack), bystander(this):
            conns = []
            for start in range(0, count, 100):
                some = [connect(this) for _ in range(min(100, count - start))]
                for n, conn in enumerate(some, start):
                    conn.send_raw(OPENING + method(1, "queue.declare", queue="q%d" % n, exclusive=True)
                                  + method(1, "queue.bind", queue="q%d" % n, exchange="all")
                                  + method(1, "basic.consume", queue="q%d" % n, no_ack=True))
                for conn in some:
                    read_to(conn, "basic.consume-ok")
                conns += some
            assert this.descriptors() > count
            # A queue is exclusive to its owner for all but publishing.
            for turn in range(rounds):
                for n, conn in enumerate(conns):
                    conn.send_raw(b"".join(publish(1, "q%d" % ((n + 1) % count), b"%d %d" % (n, turn))))
            for turn in range(rounds):
                main.publish("all", "", "all %d" % turn)
            for n, conn in enumerate(conns):
                want = [[b"%d %d" % ((n - 1) % count, turn) for turn in range(rounds)],
                        [b"all %d" % turn for turn in range(rounds)]]
                got = [], []
                for _ in range(2 * rounds):
                    event = conn.read_event()
                    assert event.name == "basic.deliver"
                    got[event.exchange == "all"].append(event.body)
                assert list(got) == want
                conn.send_raw(method(1, "channel.flow", active=True))
            for conn in conns:      # and nothing came twice
                assert conn.read_event().name == "channel.flow-ok"
            for n, conn in enumerate(conns):
                if n % 2:
                    reset(conn)
                else:
                    conn.send_method(0, "connection.close", reply_code=200)
            for conn in conns[::2]:
                assert conn.read_event().name == "connection.close-ok"
                conn.abort()
            wait_for(lambda: this.descriptors() < 100, what="connections gone")
            main.publish("all", "", "for nobody", mandatory=True)
            main.expect("basic.return", timeout=PATIENCE)     # their queues went with them


def test_wrong_passwords_all_at_once(node, descriptors):
    """Each costs a hash on the core thread; those who have logged in do not wait for it."""
    count, rounds = 1000, scaled(5)
    descriptors(count + 500)
    this = node(nofile=3 * count)       # those turned away are held for a second
    with no_growth(this), bystander(this, p99=0.05):
        for turn in range(rounds):
            conns = [connect(this) for _ in range(count)]
            for conn in conns:
                conn.send_raw(wire.PROTOCOL_HEADER)
                assert conn.read_event().name == "connection.start"
            for n, conn in enumerate(conns):
                conn.send_raw(method(0, "connection.start-ok", client_properties={}, mechanism="PLAIN",
                                     response=wire.plain("guest", "%d %d" % (turn, n)), locale="en_US"))
            time.sleep(0.2)
            for conn in conns:
                conn.abort()
        this.overview()


# ---- storms -------------------------------------------------------------------
SILENT, HALF, OPEN, CONSUMES, CONFIRMS, FIRES = range(6)
CLOSE = method(0, "connection.close", reply_code=200)
SAYS = {
    SILENT: b"",
    HALF: wire.PROTOCOL_HEADER + START_OK[:40],
    OPEN: OPENING + CLOSE,
    CONSUMES: (OPENING + method(1, "queue.declare", queue="", exclusive=True)
               + method(1, "basic.consume", queue="") + method(1, "basic.consume", queue="kept")),
}


def storm(node, first, size):
    """So many connections at once, of all kinds; (bodies that were confirmed, bodies sent for luck)."""
    conns = [connect(node) for _ in range(size)]
    sure, unsure = [], []
    for n, conn in enumerate(conns, first):
        kind, body = n % 6, b"%d" % n
        if kind == CONFIRMS:
            conn.send_raw(OPENING + method(1, "confirm.select") + b"".join(publish(1, "safe", body)))
            sure.append(body)
        elif kind == FIRES:
            conn.send_raw(OPENING + b"".join(publish(1, "safe", body)))
            unsure.append(body)
        else:
            conn.send_raw(SAYS[kind])
    for n, conn in enumerate(conns, first):
        kind = n % 6
        if kind == OPEN:
            read_to(conn, "connection.close-ok")
            conn.abort()
            continue
        if kind == CONSUMES:
            read_to(conn, "basic.consume-ok")
        elif kind == CONFIRMS:
            assert read_to(conn, "basic.ack").delivery_tag == 1
            conn.send_raw(CLOSE)
            read_to(conn, "connection.close-ok")
        reset(conn)
    return sure, unsure


def test_connection_storm(node):
    rate, seconds, burst = 1000, scaled(5), 50
    this = node()
    chan = this.raw().channel()
    chan.declare("safe")
    chan.declare("kept")
    for n in range(10):
        chan.publish("", "kept", str(n))
    chan.sync()
    storm(this, 0, 200)                     # what is allocated once is there before anything is measured
    chan.call("queue.purge", queue="safe")
    with no_growth(this), bystander(this):
        sure, unsure = [], []
        began = time.monotonic()
        for n in range(0, rate * seconds, burst):
            some = storm(this, n, burst)
            sure += some[0]
            unsure += some[1]
            ahead = began + (n + burst) / rate - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
        took = time.monotonic() - began
    print("storm: %.0f connections a second" % (rate * seconds / took))
    assert took < 2 * seconds * SLOW
    kept = drain(this, "safe", chan.counts("safe")[0])
    assert len(set(kept)) == len(kept)
    assert set(sure) <= set(kept) <= set(sure + unsure)
    # What the consumers held has come back, each message once and in order, and they have left nothing.
    chan.wait_count("kept", 10, timeout=PATIENCE)
    assert chan.counts("kept") == (10, 0)
    assert chan.drain("kept") == [str(n) for n in range(10)]


def test_thousands_of_exclusive_queues_go(node):
    """They go with their connection, some at a time, and the longest turn can be seen."""
    this = node()
    count = scaled(20000)
    with bystander(this):
        before = this.overview()["object_totals"]["queues"]
        chan = this.raw().channel()
        declare = [enc_frame(FRAME_METHOD, chan.number, enc_method(
            "queue.declare", queue="q%d" % n, exclusive=True, nowait=True, arguments={})) for n in range(count)]
        for at in range(0, count, 1000):
            chan.conn.send_raw(b"".join(declare[at:at + 1000]))
        assert chan.counts("q%d" % (count - 1)) == (0, 0)
        chan.conn.abort()
        wait_for(lambda: this.overview()["object_totals"]["queues"] == before, 20, "no queue left")
        other = this.raw().channel()
        other.declare("q%d" % (count - 1))
    process = this.overview()["hermes"]["process"]
    assert 0 < process["turn_longest_us"] < 20000 * SLOW * max(1, LOAD)
    assert 0 < process["turn_longest_lately_us"] <= process["turn_longest_us"]


# ---- huge, slow ---------------------------------------------------------------
class Digests:
    """Reads deliveries without putting bodies together: a digest of each, by channel."""

    def __init__(self, conn):
        self.conn = conn
        self.open = {}                      # channel: [bytes left, digest]
        self.done = {}                      # channel: digests

    def read(self, count):
        while count:
            frame = self.conn.read_frame(PATIENCE)
            if frame.kind == FRAME_METHOD:
                assert frame.payload[:4] == struct.pack(">HH", 60, 60) and frame.channel not in self.open
                continue
            if frame.kind == FRAME_HEADER:
                self.open[frame.channel] = [struct.unpack(">Q", frame.payload[4:12])[0], hashlib.blake2b()]
                continue
            state = self.open[frame.channel]
            state[0] -= len(frame.payload)
            state[1].update(frame.payload)
            if state[0] == 0:
                self.done.setdefault(frame.channel, []).append(state[1].digest())
                del self.open[frame.channel]
                count -= 1


def test_huge_bodies_interleaved(node):
    """16 MiB on each of several channels, one frame in turn, with small requests in between."""
    channels, rounds, size = 6, scaled(2), 16 * MIB
    this = node()
    sender, receiver = this.raw(), this.raw()
    sender.timeout = receiver.timeout = PATIENCE
    out = [sender.channel() for _ in range(channels)]
    small = sender.channel()
    small.call("confirm.select")
    small.declare("small")
    for chan in out:
        chan.call("confirm.select")
        chan.declare("big%d" % chan.number)
        receiver.channel(chan.number).consume("big%d" % chan.number, no_ack=True)
    block = os.urandom(131072 - 8)
    sums = {chan.number: [] for chan in out}
    smalls = []

    def send():
        for turn in range(rounds):
            digest = {chan.number: hashlib.blake2b() for chan in out}
            for chan in out:
                sender.send_raw(method(chan.number, "basic.publish", routing_key="big%d" % chan.number)
                                + enc_frame(FRAME_HEADER, chan.number, enc_header(size)))
            for at in range(0, size, len(block)):
                for chan in out:
                    piece = (struct.pack(">HHI", chan.number, turn, at) + block)[:min(len(block), size - at)]
                    digest[chan.number].update(piece)
                    sender.send_raw(enc_frame(FRAME_BODY, chan.number, piece))
                small.publish("", "small", "%d %d" % (turn, at))
                smalls.append("%d %d" % (turn, at))
            for number, one in digest.items():
                sums[number].append(one.digest())

    with no_growth(this, slack_mib=KEPT_MIB), bystander(this):
        thread = threading.Thread(target=send)
        thread.start()
        digests = Digests(receiver)
        digests.read(channels * rounds)
        thread.join()
        assert digests.done == sums and not digests.open
        for chan in out:
            assert chan.confirmed(rounds, timeout=PATIENCE) == dict.fromkeys(range(1, rounds + 1), "basic.ack")
        assert len(small.confirmed(len(smalls), timeout=PATIENCE)) == len(smalls)
        assert small.drain("small") == smalls


def test_senders_of_single_bytes(node):
    """Whole sessions from the protocol header on, each byte a packet, many of them in turn."""
    count, messages = scaled(50), 10
    this = node(settings="limits: {handshake: 10m}\n")
    main = this.raw().channel()
    main.declare("slow")
    with no_growth(this), bystander(this):
        conns = [connect(this) for _ in range(count)]
        sessions = [OPENING + method(1, "confirm.select")
                    + b"".join(b"".join(publish(1, "slow", b"%03d %02d" % (n, at))) for at in range(messages))
                    for n in range(count)]
        for at in range(len(sessions[0])):
            for conn, session in zip(conns, sessions):
                conn.sock.send(session[at:at + 1])
            time.sleep(0.0005)
        for conn in conns:
            read_to(conn, "confirm.select-ok")
            chan = wire.Chan(conn, 1)
            assert len(chan.confirmed(messages, timeout=PATIENCE)) == messages
            conn.opened = True
            conn.close()
        got = drain(this, "slow", count * messages)
    for n in range(count):
        mine = [body for body in got if body.startswith(b"%03d " % n)]
        assert mine == [b"%03d %02d" % (n, at) for at in range(messages)]


def deafness(node, main, queues, bodies):
    messages = len(bodies)
    deaf = []
    for queue in queues:
        main.declare(queue)
        main.bind(queue, "all")
        chan = node.raw().channel()
        chan.consume(queue)
        deaf.append(chan)
    main.declare("read")
    main.bind("read", "all")
    reader = node.raw().channel()
    reader.consume("read", no_ack=True)
    rss = node.rss_kb()
    with bystander(node):
        sent = b"".join(main.encode_publish("all", "", body) for body in bodies)
        thread = threading.Thread(target=main.conn.send_raw, args=(sent,))
        thread.start()
        main.conn.timeout = PATIENCE
        got = [reader.deliver(PATIENCE) for _ in range(messages)]
        thread.join()
        assert [event.body for event in got] == bodies
        if SLOW == 1:       # the bodies once, the entries of the queues, and what waits for each socket
            grown = node.rss_kb() - rss
            print("resident: %.1f MiB more for %d deaf consumers" % (grown / 1024, len(queues)))
            assert grown < (messages * 5 + len(queues) * 3 * 1024 + messages * len(queues) // 4)
        # Half of them read after all and acknowledge, the others go.
        for chan in deaf[::2]:
            for n in range(messages):
                event = chan.deliver(PATIENCE)
                assert event.delivery_tag == n + 1 and event.body == bodies[n] and not event.redelivered
            chan.ack(messages, multiple=True)
            chan.sync()
        for chan in deaf[1::2]:
            reset(chan.conn)
        for n, queue in enumerate(queues):
            main.wait_count(queue, messages if n % 2 else 0, timeout=PATIENCE)
        for queue in queues[1:4:2]:
            assert drain(node, queue, messages) == bodies
        for queue in queues + ["read"]:
            main.call("queue.delete", queue=queue)
        for chan in deaf[::2]:
            chan.conn.close()
        reader.conn.close()


def test_consumers_that_never_read(node):
    """They get no more than fits; the one that reads gets all at once, they get theirs when they read."""
    count, messages = scaled(20), 5000
    this = node()
    main = this.raw().channel()
    main.exchange("all", "fanout")
    queues = ["deaf%d" % n for n in range(count)]
    bodies = [b"%05d" % n + b"x" * 4000 for n in range(messages)]
    main.conn.timeout = PATIENCE
    for slack in TWICE:
        with no_growth(this, slack):
            deafness(this, main, queues, bodies)


# ---- publisher and consumer on one connection, no memory left -------------------
class Both:
    """A connection that publishes on channel 1 and consumes on `back`, in one thread."""

    def __init__(self, node, queue, back, size):
        self.conn = node.raw()
        self.conn.timeout = PATIENCE
        self.conn.channel(1).call("confirm.select")
        self.back = self.conn.channels[1] if back == 1 else self.conn.channel(back)
        self.queue = queue
        self.filling = b"x" * (size - 6)
        self.total = self.window = 0        # messages to publish, and how many of them unconfirmed
        self.published = self.confirmed = self.received = 0
        self.blocked = []                   # names of events
        self.to_send = bytearray()
        self.acks = False

    def consume(self, prefetch):
        self.acks = prefetch > 0
        if self.acks:
            self.back.qos(prefetch)
        self.back.consume(self.queue, no_ack=not self.acks)

    def run(self, done, reads=True, patience=PATIENCE):
        """Send and read until done() or until nothing has happened for `patience` seconds; was it done?"""
        sock = self.conn.sock
        sock.setblocking(False)
        moved = time.monotonic()
        while not done():
            while len(self.to_send) < MIB and self.published < min(self.total, self.confirmed + self.window):
                self.to_send += b"".join(publish(1, self.queue, b"%06d" % self.published + self.filling))
                self.published += 1
            readable, writable, _ = select.select([sock] if reads else [], [sock] if self.to_send else [], [], 0.05)
            if readable or writable:
                moved = time.monotonic()
            elif time.monotonic() - moved > patience:
                break
            if writable:
                del self.to_send[:sock.send(self.to_send)]
            if readable:
                data = sock.recv(MIB)
                assert data, "the node ended the connection"
                self.conn.buf += data
                self.take()
        sock.setblocking(True)
        return done()

    def take(self):
        """All that has come in whole."""
        while True:
            left = self.conn.buf
            if len(left) < 8 or len(left) < 8 + struct.unpack(">I", left[3:7])[0]:
                return
            with contextlib.suppress(wire.Timeout):     # a content that has not come in whole
                self.heard(self.conn.read_event(0))

    def heard(self, event):
        if event.name == "basic.deliver":
            assert int(event.body[:6]) == self.received, "lost, doubled or out of order"
            assert event.delivery_tag == self.received + 1 and not event.redelivered
            self.received += 1
            if self.acks:
                self.to_send += method(event.channel, "basic.ack", delivery_tag=event.delivery_tag)
        elif event.name == "basic.ack":
            assert event.delivery_tag > self.confirmed
            self.confirmed = event.delivery_tag
        else:
            assert event.name == ("connection.unblocked" if len(self.blocked) % 2 else "connection.blocked")
            self.blocked.append(event.name)

    def all_done(self):
        return self.received == self.confirmed == self.total and not self.to_send


def test_one_connection_fills_the_memory_and_drains_it(node):
    """It does not read until nothing goes any more, then it does: all it sent comes, twice what memory holds."""
    this = node(settings=SETTINGS)
    with no_growth(this, slack_mib=KEPT_MIB), bystander(this):
        both = Both(this, "both", 2, 8192)
        both.back.declare("both")
        both.consume(0)
        both.total = both.window = scaled(2 * LIMIT_MIB * MIB // 8192)
        assert not both.run(lambda: both.published == both.total and not both.to_send, reads=False, patience=1)
        if SLOW == 1:
            assert this.rss_kb() < (LIMIT_MIB * 1.1 + 20) * 1024
        assert both.run(both.all_done)
        assert both.blocked[:1] == ["connection.blocked"]
        assert both.back.counts("both") == (0, 1)
        both.back.call("queue.delete", queue="both")
        both.conn.close()


def test_one_channel_works_on_under_an_alarm_of_others(node):
    """Others hold the memory; who publishes no more than it takes and acknowledges goes on to its last message."""
    this = node(settings=SETTINGS)
    with no_growth(this, slack_mib=KEPT_MIB):
        main = this.raw().channel()
        main.declare("both")
        main.declare("fill")
        both = Both(this, "both", 1, 1024)
        both.total = both.window = 100
        assert both.run(lambda: both.confirmed == both.total)
        both.consume(50)
        flood = Flood(this, "fill")
        flood.start()
        wait_for(flood.held_back, 60, "publisher held back")
        with bystander(this):
            both.total, both.window = scaled(5000), 50
            assert both.run(lambda: both.confirmed >= both.total // 2)
            assert flood.held_back(0.2), "the alarm is over"
            assert both.run(both.all_done)
            assert flood.held_back(0.2), "the alarm is over"
        flood.stop()
        reset(flood.chan.conn)
        both.conn.close()
        assert main.counts("both") == (0, 0)
        main.call("queue.purge", queue="fill")
        main.conn.close()
