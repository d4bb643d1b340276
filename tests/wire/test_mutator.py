"""Valid sessions with mistakes in them, by seed: the node survives each, and serves others all the time.

HERMES_MUTATIONS sets how many sessions are played (5,000 unless set; `contrib/test --long` plays 100,000),
HERMES_SEED the first seed. A failure names its seeds; play one again with HERMES_SEED=N HERMES_MUTATIONS=1.
"""
# SPDX-License-Identifier: Apache-2.0
import errno
import os
import random
import socket
import struct
import threading
import time

import pytest

import wire
from control import Control
from node import SLOW, sanitized, wait_for
from wire import Val, enc_frame, enc_header, enc_method

SESSIONS = int(os.environ.get("HERMES_MUTATIONS", "5000"))
SEED = int(os.environ.get("HERMES_SEED", "1"))


def nested(depth, leaf=b"\x01aV"):
    """A table in a table in a table ..., as deep as asked, without the outermost length."""
    raw = leaf
    for _ in range(depth):
        raw = b"\x01aF" + struct.pack(">I", len(raw)) + raw
    return raw


def handshake(rng):
    start_ok = enc_method(
        "connection.start-ok", client_properties=wire.CLIENT_PROPERTIES, mechanism="PLAIN",
        response=wire.plain("guest", "guest"), locale="en_US")
    return [
        wire.PROTOCOL_HEADER,
        enc_frame(1, 0, start_ok),
        enc_frame(1, 0, enc_method("connection.tune-ok", channel_max=rng.choice([5, 100, 2047]),
                                   frame_max=rng.choice([4096, 131072]), heartbeat=rng.choice([0, 60]))),
        enc_frame(1, 0, enc_method("connection.open", virtual_host="/")),
    ]


def publish(rng, channel, key):
    """Frames of one publish; the body in one to three pieces."""
    body = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 30, 300])))
    props = rng.choice([
        {}, {"delivery_mode": 2}, {"headers": {"a": [1, {"b": None}], "CC": ["mut.b"], "s": "x" * 50}},
        {"expiration": "60000", "priority": 3, "timestamp": 2**63}, {"reply_to": "amq.rabbitmq.reply-to"},
        {"headers": {"d": Val("D", (2, 314)), "f": 1.5, "t": Val("T", 7)}, "message_id": "m" * 200}])
    out = [enc_frame(1, channel, enc_method("basic.publish", exchange=rng.choice(["", "amq.topic", "amq.headers"]),
                                            routing_key=key, mandatory=rng.random() < 0.3)),
           enc_frame(2, channel, enc_header(len(body), props))]
    cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(3)))
    for start, end in zip([0] + cuts, cuts + [len(body)]):
        if end > start:
            out.append(enc_frame(3, channel, body[start:end]))
    return out


def conversation(rng, channel):
    """What one channel says: most methods, in an order that makes sense."""
    queue = rng.choice(["mut.a", "mut.b", ""])
    kind = rng.choice(["direct", "topic", "fanout", "headers"])
    exchange = "mut." + kind
    mode = rng.choice(["confirm.select", "tx.select", "channel.flow"])
    say = [
        ("channel.open", {}),
        ("queue.declare", {"queue": queue, "auto_delete": bool(queue), "exclusive": not queue,
                           "arguments": {"x-note": [1, {"y": "z"}]}}),
        ("exchange.declare", {"exchange": exchange, "type": kind}),
        ("queue.bind", {"queue": queue, "exchange": exchange, "routing_key": "a.b"}),
        ("queue.bind", {"queue": queue, "exchange": "amq.topic", "routing_key": rng.choice(["a.#", "#.b.*", "#"])}),
        ("queue.bind", {"queue": queue, "exchange": "amq.headers", "arguments": {"x-match": "any", "a": 1}}),
        ("exchange.bind", {"source": "amq.topic", "destination": exchange, "routing_key": "a.*"}),
        ("basic.qos", {"prefetch_count": rng.choice([0, 1, 3, 65535]), "global_": rng.random() < 0.5}),
        (mode, {}),
        ("basic.consume", {"queue": queue, "consumer_tag": "t", "no_ack": rng.random() < 0.3,
                           "arguments": {"x-priority": 1}}),
        ("basic.consume", {"queue": "amq.rabbitmq.reply-to", "no_ack": True}),
    ]
    out = [enc_frame(1, channel, enc_method(name, **({"active": True} if name == "channel.flow" else args)))
           for name, args in say]
    for _ in range(rng.randrange(8)):
        out += publish(rng, channel, rng.choice(["mut.a", "mut.b", "a.b", "a.b.c", ""]))
    rest = [
        ("basic.ack", {"delivery_tag": 0, "multiple": True}), ("basic.ack", {"delivery_tag": rng.choice([1, 2, 99])}),
        ("basic.nack", {"delivery_tag": 0, "multiple": True, "requeue": rng.random() < 0.5}),
        ("basic.reject", {"delivery_tag": 1, "requeue": True}), ("basic.recover", {"requeue": True}),
        ("basic.get", {"queue": queue}), ("basic.get", {"queue": queue, "no_ack": True}),
        ("basic.cancel", {"consumer_tag": "t"}), ("basic.qos", {"prefetch_count": 1, "global_": True}),
        ("queue.purge", {"queue": queue}), ("queue.declare", {"queue": queue, "passive": True}),
        ("queue.unbind", {"queue": queue, "exchange": exchange, "routing_key": "a.b"}),
        ("exchange.delete", {"exchange": exchange}), ("queue.delete", {"queue": queue}), ("channel.close", {}),
    ] + ([("tx.commit", {}), ("tx.rollback", {})] * 2 if mode == "tx.select" else [])
    for name, args in rng.sample(rest, rng.randrange(1, len(rest))):
        out.append(enc_frame(1, channel, enc_method(name, **args)))
    return out


def session(rng):
    """Frames of a whole connection: one to three channels, their frames interleaved."""
    talks = [conversation(rng, n + 1) for n in range(rng.choice([1, 1, 2, 3]))]
    out = handshake(rng)
    while any(talks):
        talk = rng.choice([t for t in talks if t])
        for _ in range(min(len(talk), rng.choice([1, 1, 2, 5]))):
            out.append(talk.pop(0))
    if rng.random() < 0.5:
        out.append(enc_frame(1, 0, enc_method("connection.close", reply_code=200)))
    return [bytearray(frame) for frame in out]


def length_lies(rng, frame):
    if len(frame) > 7:
        frame[3:7] = struct.pack(">I", rng.choice([0, 1, len(frame) - 8 + rng.randrange(-3, 4) & 0xFFFFFFFF, 4089,
                                                   131065, 2**31, 2**32 - 1]))


def inner_length_lies(rng, frame):
    if len(frame) > 16:
        at = rng.randrange(11, len(frame) - 4)
        frame[at:at + 4] = struct.pack(">I", rng.choice([0, 1, 255, len(frame), 2**31 - 1, 2**32 - 1]))


def deep(rng, frame):
    raw = nested(rng.choice([10, 63, 64, 65, 500]))
    frame[:] = enc_frame(1, 1, enc_method("queue.declare", queue="mut.deep", auto_delete=True,
                                          arguments=struct.pack(">I", len(raw)) + raw))


def one_octet(rng, frame):
    frame[rng.randrange(len(frame))] = rng.randrange(256)


def one_bit(rng, frame):
    frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)


def gone(rng, frame):
    at = rng.randrange(len(frame))
    del frame[at:at + rng.randint(1, 4)]


def more(rng, frame):
    at = rng.randrange(len(frame))
    frame[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 4)))


def frame_end(rng, frame):
    frame[-1] = rng.randrange(256)


def other_channel(rng, frame):
    if len(frame) > 3:
        frame[1:3] = struct.pack(">H", rng.choice([0, 1, 2, 7, 2047, 2048, 65535]))


def other_type(rng, frame):
    frame[0] = rng.choice([0, 1, 2, 3, 4, 8, 255])


MISTAKES = [length_lies, inner_length_lies, deep, one_octet, one_octet, one_bit, gone, more, frame_end, other_channel,
            other_type]


def mutate(rng, frames):
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
        rng.choice(MISTAKES)(rng, frames[rng.randrange(len(frames))])
        frames[:] = [f for f in frames if f] or [bytearray(b"\0")]
    how = rng.random()
    if how < 0.05:
        tail = frames[4:]
        rng.shuffle(tail)
        frames[4:] = tail
    elif how < 0.1:
        frames.insert(rng.randrange(len(frames)), frames[rng.randrange(len(frames))])
    elif how < 0.15:
        del frames[rng.randrange(len(frames))]
    raw = b"".join(frames)
    return raw[:rng.randrange(len(raw))] if rng.random() < 0.1 else raw


def play(port, seed):
    """One session; ends in any manner the node likes, but it ends."""
    rng = random.Random(seed)
    raw = mutate(rng, session(rng))
    sock = socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW)
    try:
        at = 0
        while at < len(raw):
            n = rng.choice([1, 7, 100, 4096, len(raw), len(raw), len(raw)])
            sock.sendall(raw[at:at + n])
            at += n
        if rng.random() < 0.1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))    # a reset
            return
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass
    except socket.timeout:
        raise AssertionError("seed %d: the node does not end the connection" % seed) from None
    except OSError as exc:              # after a reset: which of these depends on the moment it came
        if exc.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
            raise
    finally:
        sock.close()


class Honest(threading.Thread):
    """An honest client that is to be served all the time."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.chan = node.raw().channel()
        self.queue = self.chan.declare("", exclusive=True).queue
        self.chan.call("confirm.select")
        self.error = None
        self.stopping = False

    def run(self):
        tag = 0
        try:
            while not self.stopping:
                tag += 1
                self.chan.publish("", self.queue, "%d" % tag)
                assert self.chan.expect("basic.ack", timeout=10 * SLOW).delivery_tag == tag
                assert self.chan.get(self.queue).body == b"%d" % tag
                time.sleep(0.005)
        except Exception as exc:        # noqa: BLE001: told by the test
            self.error = exc

    def stop(self):
        self.stopping = True
        self.join(60)


@pytest.mark.alone
def test_mutated_sessions(node):
    this = node()
    honest = Honest(this)
    for seed in range(SEED, SEED + min(200, SESSIONS)):      # what is made once is there before it is measured
        play(this.port, 10**9 + seed)
    descriptors, memory = this.descriptors(), this.rss_kb()
    honest.start()
    with Control(this) as control:
        for seed in range(SEED, SEED + SESSIONS):
            play(this.port, seed)
            if seed % 100 == 0:
                assert this.running() and honest.error is None, "at seed %d: %r\n%s" % (
                    seed, honest.error, this.log[-3000:])
    honest.stop()
    assert honest.error is None, repr(honest.error)
    wait_for(lambda: this.descriptors() <= descriptors + 2, 10, "descriptors back")
    if not sanitized():
        assert len(control.times) > 20 and control.percentile(99) < 0.05, control.times[-20:]
        # Mistakes in names make queues and exchanges that stay, and messages in them: the node counts those.
        # It also keeps 4 MiB of empty slabs for the next burst.
        kinds = this.overview()["hermes"]["memory"]["kinds"]
        known = (kinds["slabs"] + kinds["topology"]) // 1024
        assert this.rss_kb() < memory + known + 12 * 1024, "%d kB, then %d, of it %d known" % (memory, this.rss_kb(), known)
