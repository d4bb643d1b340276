"""Situations in which brokers and clients are known to have failed, one test or more each.

The number in a test's name is the case's; those that go through the HTTP API are in test_cases_http.py. What is
right was asked of RabbitMQ 3.10 where it has the thing.
"""
# SPDX-License-Identifier: Apache-2.0
import struct
import time

import pytest

import wire
from node import SLOW
from wire import enc_frame, enc_header, enc_method, enc_table


@pytest.fixture
def running(node):
    return node()


@pytest.fixture
def ch(running):
    return running.raw().channel()


def served(running):
    """The node does an honest piece of work for somebody else."""
    chan = running.raw().channel()
    queue = chan.declare("", exclusive=True).queue
    chan.publish("", queue, "m")
    assert chan.get_wait(queue).body == b"m"
    chan.conn.close()


def nothing_answered(conn, wait=0.3):
    with pytest.raises(wire.Timeout):
        conn.read_event(timeout=wait)


# ---- K1: refused and routed messages on one channel -------------------------------------------
def test_k1_each_tag_has_one_outcome(running):
    chan = running.raw().channel()
    queue = chan.declare("", exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}).queue
    chan.call("confirm.select")
    for turn in range(3):
        for n in range(3):                                  # one after the other
            chan.publish("", queue, str(n))
            tag = turn * 9 + n + 1
            assert outcomes(chan, tag, 1) == {tag: "basic.ack" if n == 0 else "basic.nack"}
        assert chan.get(queue).body == b"0"
        # in one piece: routed, refused, to nobody, refused
        for key in (queue, queue, "nobody", queue, queue, "nobody"):
            chan.publish("", key, "m")
        first = turn * 9 + 4
        want = ["basic.ack", "basic.nack", "basic.ack", "basic.nack", "basic.nack", "basic.ack"]
        seen = outcomes(chan, first, len(want))
        assert seen == {first + n: name for n, name in enumerate(want)}
        assert chan.get(queue).body == b"m"
    chan.expect_nothing(0.1)


def outcomes(chan, first, count):
    """{tag: method}; none is said twice, and a `multiple` covers open tags of its own kind only."""
    seen = {}
    while len(seen) < count:
        event = chan.expect("basic.ack", "basic.nack")
        low = min(tag for tag in range(first, first + count) if tag not in seen) if event.multiple else event.delivery_tag
        for tag in range(low, event.delivery_tag + 1):
            assert tag not in seen, "tag %d twice" % tag
            seen[tag] = event.name
    return seen


# ---- K2: after an error nothing is read but the end -----------------------------------------
@pytest.mark.parametrize("raw,code", [
    (enc_frame(8, 1, b""), 505),
    (enc_frame(1, 1, enc_method("channel.flow", active=True), end=0), 501),
    (enc_frame(1, 1, enc_method("queue.declare") + b"x"), 501),
], ids=["heartbeat on 1", "frame end", "excess"])
def test_k2_reading_stops_at_the_error(running, raw, code):
    conn = running.raw()
    chan = conn.channel()
    chan.declare("k2")
    publish = chan.encode_publish("", "k2", "behind the error")
    conn.send_raw(raw + publish + enc_frame(1, 1, enc_method("queue.delete", queue="k2")))
    event = conn.read_event()
    assert event.name == "connection.close" and event.reply_code == code
    # Where frames can no longer be told apart, the end comes without waiting for close-ok.
    with pytest.raises((wire.Timeout, wire.Eof)) as info:
        conn.read_event(timeout=0.3)
    other = running.raw().channel()
    assert other.counts("k2") == (0, 0)
    if info.type is wire.Timeout:
        conn.send_method(0, "connection.close-ok")
        conn.expect_eof()


def test_k2_no_endless_wait_for_close_ok(running):
    conn = running.raw()
    conn.send_frame(8, 1, b"")
    assert conn.read_event().reply_code == 505
    began = time.monotonic()
    conn.expect_eof(timeout=20 * SLOW)
    assert time.monotonic() - began < 15 * SLOW


# ---- K3: acks for a channel that the server has just closed ---------------------------------
def test_k3_late_acks_are_dropped_and_the_connection_lives(ch):
    conn = ch.conn
    queue = ch.declare("", exclusive=True).queue
    for _ in range(3):
        ch.publish("", queue, "m")
    ch.consume(queue)
    tags = [ch.deliver().delivery_tag for _ in range(3)]
    conn.send_raw(
        enc_frame(1, 1, enc_method("basic.ack", delivery_tag=99))
        + b"".join(enc_frame(1, 1, enc_method("basic.ack", delivery_tag=t)) for t in tags)
        + ch.encode_publish("", queue, "dropped"))
    event = conn.read_event()
    assert event.name == "channel.close" and event.reply_code == 406
    nothing_answered(conn)
    conn.send_method(1, "channel.close-ok")
    again = conn.channel(1)
    assert sorted(again.drain(queue)) == ["m", "m", "m"]


def test_k3_opening_the_number_early_is_504(ch):
    conn = ch.conn
    ch.send("basic.ack", delivery_tag=99)
    assert conn.read_event().name == "channel.close"
    conn.send_method(1, "channel.open")
    assert conn.expect_connection_close(504).text.startswith("CHANNEL_ERROR - ")


# ---- K4: names of exactly 255 bytes ----------------------------------------------------------
@pytest.mark.parametrize("letter", ["n", "é"])
def test_k4_names_of_255_bytes(ch, letter):
    name = letter * (255 // len(letter.encode()))
    name += "n" * (255 - len(name.encode()))
    ch.exchange(name, "topic")
    assert ch.declare(name).queue == name
    ch.bind(name, name, name)
    ch.publish(name, name, "m")
    event = ch.get_wait(name)
    assert (event.exchange, event.routing_key, event.body) == (name, name, b"m")
    assert ch.consume(name, tag=name) == name
    ch.publish(name, name, "n")
    event = ch.deliver()
    assert (event.consumer_tag, event.exchange, event.routing_key) == (name, name, name)
    ch.call("queue.unbind", queue=name, exchange=name, routing_key=name)
    ch.call("queue.delete", queue=name)
    ch.expect_any_order("basic.cancel")
    ch.call("exchange.delete", exchange=name)


# ---- K5: AMQPLAIN tables that are no login ---------------------------------------------------
@pytest.mark.parametrize("table", [
    {}, {"LOGIN": "guest"}, {"PASSWORD": "guest"}, {"LOGIN": 1, "PASSWORD": "guest"},
    {"LOGIN": "guest", "PASSWORD": {"a": 1}}, {"login": "guest", "password": "guest"},
    {"LOGIN": None, "PASSWORD": None}, {"LOGIN": ["guest"], "PASSWORD": True},
], ids=repr)
def test_k5_amqplain_without_a_login(running, table):
    conn = running.tcp()
    conn.start()
    conn.start_ok(None, None, "AMQPLAIN", response=enc_table(table)[4:])
    conn.expect_eof(timeout=10 * SLOW)
    running.await_log(r"(warning|error).*AMQPLAIN")
    served(running)


# ---- K6: a header table that cannot be read --------------------------------------------------
@pytest.mark.parametrize("table", [
    b"\x01aZ\x00", b"\x00", b"\x01a", b"\x01aS\xff\xff\xff\xff", b"\x05ab", b"\x01at",
    b"\x01aA\x00\x00\x00\x05\x00", b"\x01aF\x00\x00\x00\x02\x01a",
], ids=lambda t: t.hex())
def test_k6_unreadable_headers(running, table):
    chan = running.raw().channel()
    chan.declare("k6")
    raw = struct.pack(">HHQH", 60, 0, 1, 1 << 13) + struct.pack(">I", len(table)) + table
    chan.conn.send_raw(enc_frame(1, 1, enc_method("basic.publish", routing_key="k6"))
                       + enc_frame(2, 1, raw) + enc_frame(3, 1, b"x"))
    assert chan.conn.expect_connection_close().code == 502
    assert running.raw().channel().counts("k6")[0] == 0
    served(running)


def test_k6_excess_bytes_behind_the_properties(running):
    chan = running.raw().channel()
    chan.conn.send_raw(enc_frame(1, 1, enc_method("basic.publish", routing_key="q"))
                       + enc_frame(2, 1, enc_header(0) + b"\x00"))
    assert chan.conn.expect_connection_close().code == 502


# ---- K7: more body than was announced --------------------------------------------------------
@pytest.mark.parametrize("second", [1, 10, 100000])
def test_k7_more_body_than_declared(running, second):
    chan = running.raw().channel()
    chan.declare("k7")
    chan.conn.send_raw(enc_frame(1, 1, enc_method("basic.publish", routing_key="k7"))
                       + enc_frame(2, 1, enc_header(10)) + enc_frame(3, 1, b"x" * 9)
                       + enc_frame(3, 1, b"y" * (1 + second)))
    assert chan.conn.expect_connection_close().code == 501
    assert running.raw().channel().counts("k7")[0] == 0


def test_k7_one_frame_too_long_at_once(running):
    chan = running.raw().channel()
    chan.conn.send_raw(enc_frame(1, 1, enc_method("basic.publish", routing_key="k7"))
                       + enc_frame(2, 1, enc_header(10)) + enc_frame(3, 1, b"x" * 11))
    assert chan.conn.expect_connection_close().code == 501


def test_k7_oversize_is_refused_at_the_header(ch):
    ch.conn.send_raw(enc_frame(1, 1, enc_method("basic.publish", routing_key="q"))
                     + enc_frame(2, 1, enc_header(2**40)))
    exc = ch.expect_close(406)
    assert exc.text.startswith("PRECONDITION_FAILED - message size 1099511627776 is larger")


# ---- K8: refusals that name something long ---------------------------------------------------
def test_k8_text_is_cut_on_a_character_boundary(ch):
    name = "é" * 127
    with pytest.raises(wire.ChannelClosed) as info:
        ch.declare(name, passive=True)
    assert info.value.code == 404
    assert isinstance(info.value.text, str)          # wire leaves bytes that are no UTF-8 as bytes
    assert 250 <= len(info.value.text.encode()) <= 255
    ch.conn.channel().sync()


# ---- K9: timestamps --------------------------------------------------------------------------
@pytest.mark.parametrize("stamp", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_k9_timestamps_come_back(ch, stamp):
    queue = ch.declare("", exclusive=True).queue
    ch.publish("", queue, "m", timestamp=stamp, headers={"t": wire.Val("T", stamp)})
    event = ch.get_wait(queue)
    assert event.props["timestamp"] == stamp
    assert event.typed_headers["t"] == wire.Val("T", stamp)


# ---- K10: prefetch lowered below what is out -------------------------------------------------
@pytest.mark.alone
@pytest.mark.parametrize("global_", [False, True])
def test_k10_prefetch_below_what_is_unacknowledged(running, global_):
    chan = running.raw().channel()
    queue = chan.declare("", exclusive=True).queue
    chan.qos(10, global_=global_)
    chan.consume(queue)
    for n in range(20):
        chan.publish("", queue, str(n))
    tags = [chan.deliver().delivery_tag for _ in range(10)]
    chan.qos(3, global_=global_)
    chan.expect_nothing(0.1)
    before = running.cpu_s()
    time.sleep(0.5)
    assert running.cpu_s() - before < 0.2 * SLOW            # nothing spins
    if not global_:                                         # counts for later consumers only
        chan.ack(tags[0])
        assert chan.deliver().body == b"10"
        return
    for tag in tags[:7]:
        chan.ack(tag)
    chan.expect_nothing(0.1)
    chan.ack(tags[7])
    assert chan.deliver().body == b"10"
    chan.expect_nothing(0.1)


@pytest.mark.parametrize("count", [0, 65535])
@pytest.mark.parametrize("global_", [False, True])
def test_k10_widest_prefetch(ch, count, global_):
    queue = ch.declare("", exclusive=True).queue
    ch.qos(1, global_=global_)
    ch.qos(count, global_=global_)
    for n in range(300):
        ch.publish("", queue, str(n))
    ch.consume(queue)
    assert [int(ch.deliver().body) for _ in range(300)] == list(range(300))


# ---- K11: a priority queue that is purged -----------------------------------------------------
@pytest.mark.parametrize("waiting", [False, True], ids=["consumer later", "consumer waits"])
def test_k11_purge_of_a_priority_queue(running, waiting):
    chan = running.raw().channel()
    queue = chan.declare("", exclusive=True, arguments={"x-max-priority": 9}).queue
    for n in range(60):
        chan.publish("", queue, str(n), priority=n % 12)
    assert chan.counts(queue) == (60, 0)
    assert chan.call("queue.purge", queue=queue).message_count == 60
    assert chan.counts(queue) == (0, 0)
    if waiting:
        chan.consume(queue, no_ack=True)
    order = [3, 9, 0, 11, 5]
    for n in order:
        chan.publish("", queue, str(n), priority=n)
    if waiting:
        assert sorted(int(chan.deliver().body) for _ in order) == sorted(order)
        return
    assert chan.counts(queue) == (5, 0)
    chan.consume(queue, no_ack=True)
    # 9 and above are one level
    assert [int(chan.deliver().body) for _ in order] == [9, 11, 5, 3, 0]


@pytest.mark.parametrize("levels", [1, 255])
def test_k11_purge_leaves_what_is_out(running, levels):
    """It comes back to its level, before and after the purge; so does what is published meanwhile."""
    chan = running.raw().channel()
    queue = chan.declare("", exclusive=True, arguments={"x-max-priority": levels}).queue
    for n in range(6):
        chan.publish("", queue, str(n), priority=n * 50)
    held = [chan.get(queue, no_ack=False) for _ in range(2)]
    first = [event.body for event in held]
    assert first == ([b"1", b"2"] if levels == 1 else [b"5", b"4"])
    assert chan.call("queue.purge", queue=queue).message_count == 4
    assert chan.counts(queue) == (0, 0)
    chan.publish("", queue, "low")
    chan.publish("", queue, "high", priority=255)
    chan.nack(held[1].delivery_tag)
    chan.sync()
    assert chan.counts(queue) == (3, 0)
    chan.nack(held[0].delivery_tag)
    chan.sync()
    assert chan.call("queue.purge", queue=queue).message_count == 4
    assert chan.get(queue) is None
    chan.consume(queue, no_ack=True)
    chan.publish("", queue, "again", priority=1)
    assert chan.deliver().body == b"again"
    assert chan.call("queue.delete", queue=queue).message_count == 0


# ---- K12: what is pushed out, in order ---------------------------------------------------------
@pytest.mark.parametrize("arguments", [
    {"x-max-length": 2}, {"x-max-length": 2, "x-overflow": "drop-head"}, {"x-max-length-bytes": 2},
    {"x-max-length": 2, "x-queue-type": "quorum"}, {"x-max-length": 2, "x-max-priority": 3}], ids=str)
def test_k12_dropped_heads_are_dead_letters_in_order(running, arguments):
    conn = running.raw()
    chan = conn.channel()
    dead = chan.declare("dead", durable=True).queue
    queue = chan.declare("short", durable=True, arguments={
        **arguments, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}).queue
    chan.exchange("later", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    chan.bind(queue, "later", queue)
    for way in ("one by one", "at once", "commit", "delayed"):
        to, headers = ("later", {"x-delay": 50}) if way == "delayed" else ("", {})
        sender = conn.channel()
        if way == "commit":
            sender.call("tx.select")
        batch = [sender.encode_publish(to, queue, str(n), delivery_mode=2, headers=headers) for n in range(1, 6)]
        for raw in batch if way == "one by one" else [b"".join(batch)]:
            conn.send_raw(raw)
            sender.sync()
        if way == "commit":
            sender.call("tx.commit")
        chan.wait_count(dead, 3)
        assert chan.drain(dead) == ["1", "2", "3"], way
        assert chan.drain(queue) == ["4", "5"], way


def test_k12_one_that_pushes_out_many(running):
    chan = running.raw().channel()
    dead = chan.declare("", exclusive=True).queue
    queue = chan.declare("", exclusive=True, arguments={
        "x-max-length-bytes": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}).queue
    for n in range(100):
        chan.publish("", queue, chr(n + 20))
    chan.publish("", queue, "x" * 98)
    chan.wait_count(dead, 98)
    assert chan.drain(dead) == [chr(n + 20) for n in range(98)]
    chan.publish("", queue, "y" * 101)              # pushes out all, itself at last
    chan.wait_count(dead, 4)
    assert chan.drain(dead) == [chr(118), chr(119), "x" * 98, "y" * 101]
    assert chan.counts(queue)[0] == 0


# ---- K13: a socket that dies in the middle of a delivery -------------------------------------
def test_k13_one_copy_at_its_old_place(running):
    ch = running.raw().channel()
    ch.declare("k13")
    for n in range(20):
        ch.publish("", "k13", bytes([65 + n]) * 300000)
    ch.wait_count("k13", 20)
    victim = running.raw()
    chan = victim.channel()
    chan.qos(12)
    chan.send("basic.consume", queue="k13", consumer_tag="t")
    victim.read_exact(400000)                # in the middle of the second message
    victim.abort()
    ch.wait_count("k13", 20)
    got = [ch.get_wait("k13") for _ in range(20)]
    assert [e.body[:1] for e in got] == [bytes([65 + n]) for n in range(20)]
    assert all(e.body == e.body[:1] * 300000 for e in got)
    assert got[0].redelivered is True and got[19].redelivered is False
    assert ch.get("k13") is None


# ---- K14: requeue, then cancel at once -------------------------------------------------------
def test_k14_requeued_and_cancelled(running):
    ch = running.raw().channel()
    ch.declare("k14")
    ch.consume("k14", tag="t")
    for n in range(5):
        ch.publish("", "k14", str(n))
    for _ in range(5):
        event = ch.deliver()
    ch.conn.send_raw(
        enc_frame(1, 1, enc_method("basic.nack", delivery_tag=event.delivery_tag, multiple=True,
                                   requeue=True))
        + enc_frame(1, 1, enc_method("basic.cancel", consumer_tag="t")))
    names = set()
    while "basic.cancel-ok" not in names:
        names.add(ch.conn.read_event().name)
    ch.close()
    other = running.raw().channel()
    other.consume("k14")
    assert [other.deliver().body for _ in range(5)] == [str(n).encode() for n in range(5)]
    other.expect_nothing(0.1)


# ---- K15: topic patterns ---------------------------------------------------------------------
@pytest.mark.parametrize("pattern,keys,not_keys", [
    ("a.#", ["a", "a.b", "a."], ["", "b", "aa"]),
    ("#.b", ["b", "a.b", ".b"], ["", "a", "b.a"]),
    ("*.#.c", ["a.c", ".c", "a.b.c"], ["c", "", "a.c.b"]),
    ("", [""], ["a", "."]),
    ("#.#.#.#.#", ["", "a", "a.b.c"], []),
])
def test_k15_patterns(ch, pattern, keys, not_keys):
    ch.exchange("k15", "topic")
    queue = ch.declare("", exclusive=True).queue
    ch.bind(queue, "k15", pattern)
    for key in keys + not_keys:
        ch.publish("k15", key, key)
    assert ch.drain(queue) == keys
    ch.call("exchange.delete", exchange="k15")


@pytest.mark.alone
def test_k15_hostile_patterns_stay_linear(running):
    ch = running.raw().channel()
    ch.exchange("k15", "topic")
    queue = ch.declare("", exclusive=True).queue
    for pattern in ("#.a." * 60 + "b", "#." * 120 + "b", "*.#." * 40 + "#.x", "#.*." * 50 + "y"):
        ch.bind(queue, "k15", pattern[:255])
    before = running.cpu_s()
    for n in range(200):
        ch.publish("k15", ("a." * 120 + "%d" % n)[:255], "m")
    ch.sync()
    assert running.cpu_s() - before < 2 * SLOW
    served(running)


# ---- K16: an exclusive queue declared anew while the old connection is cleaned up -----------
def test_k16_the_new_queue_stays(running):
    for _ in range(30):
        old = running.raw()
        old.channel().declare("k16", exclusive=True)
        new = running.raw()
        old.abort()
        deadline = time.monotonic() + 5 * SLOW
        while True:
            chan = new.channel()
            try:
                chan.declare("k16", exclusive=True)
                break
            except wire.ChannelClosed as exc:
                assert exc.code == 405 and time.monotonic() < deadline
        chan.publish("", "k16", "m")
        time.sleep(0.005)
        assert chan.get_wait("k16").body == b"m"
        chan.declare("k16", exclusive=True)
        new.close()


def test_short_strings_of_methods_are_utf8(ch):
    ch.send("basic.consume", queue="q", consumer_tag=b"\xff\x00\xfe")
    exc = ch.conn.expect_connection_close(501)
    assert exc.text == "FRAME_ERROR - Malformed UTF-8 in shortstr"


# ---- K15: patterns that were made to be slow ----------------------------------------------------
def test_k15_a_key_that_takes_too_long_is_refused(running):
    chan = running.raw().channel()
    chan.declare("q")
    for number in range(8192):
        words = ["#." + "a*"[number >> bit & 1] for bit in range(13)]
        chan.send("queue.bind", queue="q", exchange="amq.topic", routing_key=".".join(words),
                  nowait=True)
    chan.publish("amq.topic", "a." * 120 + "b", "m")
    assert "take more than 131072 steps" in chan.expect_close(406).text
    chan = chan.conn.channel()
    chan.publish("amq.topic", "a." * 12 + "a", "m")
    assert chan.get_wait("q").body == b"m"
    served(running)


# ---- K18: a time to live that comes to the head -------------------------------------------------
@pytest.mark.alone
def test_k18_expires_once_it_is_the_head(running):
    chan = running.raw().channel()
    queue = chan.declare("", exclusive=True).queue
    chan.publish("", queue, "first")
    chan.publish("", queue, "second", expiration="400")
    since = time.monotonic()
    assert chan.get(queue).body == b"first"
    assert chan.counts(queue) == (1, 0)
    chan.wait_count(queue, 0, timeout=10 * SLOW)
    assert 0.38 < time.monotonic() - since < 0.4 + 5 * SLOW
    # over already when it becomes the head
    chan.publish("", queue, "first")
    chan.publish("", queue, "second", expiration="50")
    time.sleep(0.2)
    assert chan.counts(queue) == (2, 0)
    assert chan.get(queue).body == b"first"
    chan.wait_count(queue, 0, timeout=5 * SLOW)
    assert chan.get(queue) is None


@pytest.mark.parametrize("kind", [{}, {"x-queue-type": "quorum"}, {"x-max-priority": 5}], ids=str)
def test_k18_whatever_becomes_of_the_head(running, kind):
    """What is behind it expires on time, and only that."""
    chan = running.raw().channel()
    taker = chan.conn.channel()
    for how in ("held", "consumed", "rejected", "dropped"):
        limit = {"x-max-length": 3} if how == "dropped" else {}
        queue = chan.declare("k18" + how, durable=True, arguments={**kind, **limit}).queue
        chan.publish("", queue, "first", priority=1)
        chan.publish("", queue, "second", expiration="150", priority=1)
        chan.publish("", queue, "third", priority=1)
        if how == "consumed":
            taker.qos(1)
            taker.consume(queue)
            event = taker.deliver()
        elif how == "dropped":
            chan.publish("", queue, "fourth", priority=1)
        else:
            event = chan.get(queue, no_ack=False)
            if how == "rejected":
                chan.reject(event.delivery_tag, requeue=False)
        chan.wait_count(queue, 2 if how == "dropped" else 1, timeout=10 * SLOW)
        if how == "held":
            chan.nack(event.delivery_tag)
            chan.wait_count(queue, 2)
            assert sorted(chan.drain(queue)) == ["first", "third"]
        elif how == "consumed":
            taker.ack(event.delivery_tag)
            assert taker.deliver().body == b"third"
        else:
            assert chan.drain(queue) == (["third", "fourth"] if how == "dropped" else ["third"])


# ---- K19: time to live in a chain of queues ------------------------------------------------------
@pytest.mark.alone
def test_k19_the_full_time_in_each_queue(running):
    chan = running.raw().channel()
    last = chan.declare("k19-3").queue
    for n in (2, 1):
        chan.declare("k19-%d" % n, arguments={"x-message-ttl": 400, "x-dead-letter-exchange": "",
                                              "x-dead-letter-routing-key": "k19-%d" % (n + 1)})
    since = time.monotonic()
    chan.publish("", "k19-1", "m")
    chan.wait_count("k19-2", 1, timeout=10 * SLOW)
    assert 0.39 < time.monotonic() - since < 0.4 + 5 * SLOW
    event = chan.get_wait(last, timeout=10 * SLOW)
    assert event.body == b"m"
    assert 0.79 < time.monotonic() - since < 0.8 + 5 * SLOW
    deaths = event.headers["x-death"]
    assert [(d["queue"], d["reason"], d["count"]) for d in deaths] == [("k19-2", "expired", 1), ("k19-1", "expired", 1)]


# ---- K20: delays ---------------------------------------------------------------------------------
@pytest.mark.alone
def test_k20_delays_in_order_and_beyond_32_bits(running):
    chan = running.raw().channel()
    queue = chan.declare("", exclusive=True).queue
    chan.exchange("k20", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    chan.bind(queue, "k20")
    since = time.monotonic()
    for seconds in (1.0, 0.1, 0.5):
        chan.publish("k20", "", str(seconds), headers={"x-delay": int(seconds * 1000)})
    for delay in (2 ** 32 + 1, 2 ** 33, "4294967297"):
        chan.publish("k20", "", "far", headers={"x-delay": wire.Val("l", delay) if isinstance(delay, int) else delay})
    chan.consume(queue, no_ack=True)
    for seconds in (0.1, 0.5, 1.0):
        assert chan.deliver(timeout=10 * SLOW).body == str(seconds).encode()
        assert seconds - 0.02 < time.monotonic() - since < seconds + 5 * SLOW
    chan.expect_nothing(0.3)


@pytest.mark.parametrize("what", ["expiration", "x-message-ttl", "x-expires", "x-cache-ttl", "x-consumer-timeout"])
def test_k20_no_time_beyond_32_bits_is_over_at_once(running, what):
    """It is refused, or not over at once."""
    conn = running.raw()
    left = {}
    for time_ms in (2 ** 32, 2 ** 32 + 1, 2 ** 33 + 50, 2 ** 63 - 1):
        chan = conn.channel()
        arguments = {} if what == "expiration" else {what: wire.Val("l", time_ms)}
        if what == "x-cache-ttl":
            arguments["x-message-deduplication"] = True
        props = {"expiration": str(time_ms)} if what == "expiration" else {}
        try:
            queue = chan.declare("k20-%d" % time_ms, arguments=arguments).queue
            for _ in range(2):
                chan.publish("", queue, "m", message_id="1", **props)
            chan.sync()
        except wire.ChannelClosed as refused:
            assert refused.code == 406
            assert what in refused.text and str(time_ms)[:5] in refused.text, refused.text
            continue
        left[queue] = chan
        if what == "x-consumer-timeout":
            chan.consume(queue)
            assert {chan.deliver().body for _ in range(2)} == {b"m"}
    time.sleep(0.3)
    for queue, chan in left.items():
        chan.sync()
        assert not [event for event in conn.pending if event.name == "basic.cancel"]
        assert chan.counts(queue)[0] == {"x-cache-ttl": 1, "x-consumer-timeout": 0}.get(what, 2)
