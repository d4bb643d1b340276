"""The same bytes in other pieces: whatever TCP makes of a conversation, the answers are the same bytes.

Each script is what a client sends after the handshake, or instead of it. Its answer is taken once with
all bytes in one piece; then the script is sent byte by byte, and in two pieces cut at every place, and
has to be answered with exactly the same bytes.
"""
# SPDX-License-Identifier: Apache-2.0
import itertools
import time

import pytest

import wire
from wire import enc_frame, enc_header, enc_method

BODY, HEADER, METHOD, HEARTBEAT = 3, 2, 1, 8
QUEUE = "split"


def method(channel, name, **args):
    return enc_frame(METHOD, channel, enc_method(name, **args))


def content(channel, body, props=None, pieces=1, **args):
    size = -(-len(body) // pieces) if body else 1
    return (method(channel, "basic.publish", **args)
            + enc_frame(HEADER, channel, enc_header(len(body), props))
            + b"".join(enc_frame(BODY, channel, body[at:at + size]) for at in range(0, len(body), size)))


HANDSHAKE = (wire.PROTOCOL_HEADER
             + method(0, "connection.start-ok", client_properties={"product": "split"}, mechanism="PLAIN",
                      response=wire.plain("guest", "guest"), locale="en_US")
             + method(0, "connection.tune-ok", channel_max=100, frame_max=8192, heartbeat=0)
             + method(0, "connection.open", virtual_host="/"))
OPEN = method(1, "channel.open") + method(1, "queue.declare", queue=QUEUE, exclusive=True)
CLOSE = method(0, "connection.close", reply_code=200, reply_text="bye")
GET = method(1, "basic.get", queue=QUEUE, no_ack=True)

SCRIPTS = {
    "handshake and close": CLOSE,
    "publish and get": (
        OPEN + content(1, b"hello", {"headers": {"a": [1, {"b": None}]}, "delivery_mode": 1},
                       routing_key=QUEUE)
        + GET + GET + method(1, "channel.close", reply_code=200, reply_text="") + CLOSE),
    "body in three frames, heartbeats between": (
        OPEN + enc_frame(HEARTBEAT, 0, b"") + content(1, b"0123456789", {}, 3, routing_key=QUEUE)
        + enc_frame(HEARTBEAT, 0, b"") + GET + CLOSE),
    "no body": OPEN + content(1, b"", {"message_id": "m"}, routing_key=QUEUE) + GET + CLOSE,
    "returned": OPEN + content(1, b"x", mandatory=True, routing_key="split.nowhere") + CLOSE,
    "two channels, contents interleaved": (
        OPEN + method(2, "channel.open")
        + method(1, "basic.publish", routing_key=QUEUE) + method(2, "basic.publish", routing_key=QUEUE)
        + enc_frame(HEADER, 1, enc_header(2)) + enc_frame(BODY, 1, b"o")
        + enc_frame(HEADER, 2, enc_header(3)) + enc_frame(BODY, 1, b"1") + enc_frame(BODY, 2, b"two")
        + method(2, "channel.close", reply_code=200, reply_text="") + GET + GET + CLOSE),
    "channel error, then the channel again": (
        method(1, "channel.open") + method(1, "queue.declare", queue="split.none", passive=True)
        + method(1, "basic.qos", prefetch_count=1) + content(1, b"dropped", routing_key=QUEUE)
        + method(1, "channel.close-ok") + method(1, "channel.open") + CLOSE),
    "wrong frame end": OPEN + enc_frame(METHOD, 1, enc_method("queue.purge", queue=QUEUE), end=0xCF),
    "unknown frame type": OPEN + enc_frame(5, 1, b""),
    "body before header": OPEN + method(1, "basic.publish", routing_key=QUEUE) + enc_frame(BODY, 1, b"x"),
    "method before body": (OPEN + method(1, "basic.publish", routing_key=QUEUE)
                           + enc_frame(HEADER, 1, enc_header(5)) + GET),
    "unknown channel": method(7, "queue.declare", queue=QUEUE),
}
NO_HANDSHAKE = {
    "wrong protocol": b"HTTP/1.1",
    "AMQP 1.0": b"AMQP\x03\x01\x00\x00",
    "AMQP 0-10": b"AMQP\x01\x01\x00\x0a",
}


def answer(conn):
    """All frames up to close-ok or the end of the stream; a server that closes first is answered."""
    frames = []
    try:
        while True:
            frame = conn.read_frame()
            if frame.kind == HEARTBEAT:
                continue
            frames.append(frame)
            if frame.kind == METHOD and frame.payload[:4] == b"\x00\x0a\x00\x32":
                conn.send_method(0, "connection.close-ok")
            elif frame.kind == METHOD and frame.payload[:4] == b"\x00\x0a\x00\x33":
                return frames
    except wire.Eof:
        return frames
    finally:
        conn.abort()


def talk(peer, script, pieces):
    """Handshake in one piece, the script in pieces; the answer to the script."""
    conn = peer()
    conn.handshake("guest", "guest", "/", frame_max=8192, channel_max=100)
    for piece in pieces(script):
        try:
            conn.send_raw(piece)
        except OSError:
            break                   # the server has closed: its answer is there to be read
    return answer(conn)


def whole(script):
    yield script


def bytewise(script):
    for at in range(len(script)):
        yield script[at:at + 1]
        if at % 8 == 0:
            time.sleep(0.0005)      # so that most of them arrive alone


def cut(at):
    def pieces(script):
        yield script[:at]
        time.sleep(0.002)
        yield script[at:]
    return pieces


@pytest.mark.parametrize("name", SCRIPTS)
def test_bytewise(peer, name):
    expected = talk(peer, SCRIPTS[name], whole)
    assert expected
    assert talk(peer, SCRIPTS[name], bytewise) == expected


@pytest.mark.parametrize("name", SCRIPTS)
def test_cut_at_every_byte(peer, name):
    script = SCRIPTS[name]
    expected = talk(peer, script, whole)
    for at in range(1, len(script)):
        assert talk(peer, script, cut(at)) == expected, "cut after %d bytes" % at


@pytest.mark.parametrize("name", NO_HANDSHAKE)
def test_wrong_headers_cut_at_every_byte(peer, name):
    header = NO_HANDSHAKE[name]
    for at in range(1, len(header)):
        conn = peer()
        for piece in cut(at)(header):
            conn.send_raw(piece)
        assert conn.read_until_eof() == wire.PROTOCOL_HEADER, "cut after %d bytes" % at
        conn.abort()


def handshake(peer, pieces):
    """The whole handshake in pieces, each step after the answer to the last; the answers."""
    conn = peer()
    got = []
    try:
        for part, want in zip(split_frames(HANDSHAKE), (b"\x00\x0a\x00\x0a", b"\x00\x0a\x00\x1e", None, b"\x00\x0a\x00\x29")):
            for piece in pieces(part):
                conn.send_raw(piece)
            if want:
                frame = conn.read_frame()
                assert frame.payload[:4] == want
                got.append(frame)
    finally:
        conn.close()
        conn.abort()
    return got


def split_frames(raw):
    yield raw[:8]
    at = 8
    while at < len(raw):
        size = int.from_bytes(raw[at + 3:at + 7], "big") + 8
        yield raw[at:at + size]
        at += size


def test_handshake_bytewise(peer):
    assert handshake(peer, bytewise) == handshake(peer, whole)


def test_handshake_cut_at_every_byte(peer):
    expected = handshake(peer, whole)
    longest = max(len(part) for part in split_frames(HANDSHAKE))
    for at in range(1, longest):
        assert handshake(peer, lambda part, at=at: cut(min(at, len(part) - 1))(part)) == expected, at


def test_pipelined_handshake(peer):
    """A client that waits for nothing: everything in one piece."""
    conn = peer()
    conn.send_raw(HANDSHAKE + SCRIPTS["publish and get"])
    names = []
    try:
        while "connection.close-ok" not in names:
            names.append(conn.read_event().name)
    finally:
        conn.abort()
    assert names == ["connection.start", "connection.tune", "connection.open-ok", "channel.open-ok",
                     "queue.declare-ok", "basic.get-ok", "basic.get-empty", "channel.close-ok",
                     "connection.close-ok"]


@pytest.mark.parametrize("name", ["publish and get", "body in three frames, heartbeats between"])
def test_hang_up_at_every_byte(peer, name):
    """A client that goes in the middle of anything harms nobody."""
    script = SCRIPTS[name]
    witness = peer().handshake("guest", "guest", "/")
    ch = witness.channel()
    for at in range(len(script)):
        conn = peer()
        conn.handshake("guest", "guest", "/")
        conn.send_raw(script[:at])
        conn.abort()
    # The exclusive queue of the last of them goes with its connection.
    deadline = time.monotonic() + 10
    for _ in itertools.count():
        try:
            ch.declare(QUEUE, exclusive=True)
            break
        except wire.ChannelClosed as exc:
            assert exc.code == 405 and time.monotonic() < deadline
            ch = witness.channel()
    witness.close()


@pytest.mark.parametrize("size", [1, 7, 4095, 8184, 8185, 70000])
def test_body_sizes_at_frame_bounds(peer, size):
    conn = peer()
    conn.handshake("guest", "guest", "/", frame_max=8192)
    ch = conn.channel()
    name = ch.declare(exclusive=True).queue
    body = bytes(i % 251 for i in range(size))
    ch.publish("", name, body)
    event = ch.get_wait(name)
    assert event.body == body
    assert max(event.body_frames) <= 8184
    conn.close()
