"""Deduplication of queues and exchanges: what is confirmed and dropped, and that no restart forgets a key."""
# SPDX-License-Identifier: Apache-2.0
import os

import pika
import pytest

import wire
from node import SLOW
from wire import Val


def again(node, how):
    node.abort_conns()
    if how == "kill":
        node.kill()
    else:
        node.stop()
    return node.start()


def arguments(size=None, ttl=None):
    out = {"x-message-deduplication": True}
    if size is not None:
        out["x-cache-size"] = Val("l", size)
    if ttl is not None:
        out["x-cache-ttl"] = Val("l", ttl)
    return out


class Publisher:
    """Publishes persistent messages one at a time and waits for each confirm."""

    def __init__(self, node):
        self.chan = node.raw().channel()
        self.chan.call("confirm.select")

    def send(self, queue, key=None, exchange="", body=b"x", header=True, **props):
        props.setdefault("delivery_mode", 2)
        if key is not None and header:
            props["headers"] = {"x-deduplication-header": key}
        elif key is not None:
            props["message_id"] = key
        self.chan.publish(exchange, queue, body, **props)
        return self.chan.expect("basic.ack", "basic.nack", timeout=30 * SLOW)


def count(chan, queue):
    return chan.declare(queue, passive=True).message_count


both = pytest.mark.parametrize("how", ["stop", "kill"])


def test_duplicates_are_confirmed_and_dropped(node):
    this = node()
    p = Publisher(this)
    p.chan.declare("q", durable=True, arguments=arguments())
    for key, header in (("a", True), ("b", False), ("a", True), ("a", False), ("b", True), (None, True), (None, True)):
        assert p.send("q", key, header=header).name == "basic.ack"
    assert count(p.chan, "q") == 4
    # consumed and acknowledged, it is known all the same
    p.chan.drain("q")
    p.send("q", "a")
    assert count(p.chan, "q") == 0
    # a mandatory one is not returned: its queue has it
    p.chan.publish("", "q", b"x", mandatory=True, delivery_mode=2, message_id="a")
    p.chan.expect("basic.ack", timeout=10 * SLOW)
    # one that no queue takes is returned, and may come again
    p.chan.exchange("x", "direct", durable=True, arguments=arguments())
    for _ in range(2):
        p.chan.publish("x", "k", b"x", mandatory=True, delivery_mode=2, message_id="new")
        p.chan.expect("basic.return")
        p.chan.expect("basic.ack")
    p.chan.bind("q", "x", "k")
    p.send("k", "new", exchange="x", header=False)
    assert count(p.chan, "q") == 1
    p.chan.drain("q")
    p.chan.declare("other", durable=True)
    p.chan.bind("other", "x", "k")
    p.send("k", "new", exchange="x")
    assert count(p.chan, "other") == 0


@pytest.mark.parametrize("bad, text", [
    ({"x-cache-size": Val("I", 0)}, "'x-cache-size'"), ({"x-cache-size": Val("l", 10000001)}, "'x-cache-size'"),
    ({"x-cache-size": "10"}, "'x-cache-size'"), ({"x-cache-ttl": Val("I", 0)}, "'x-cache-ttl'"),
    ({"x-cache-ttl": Val("I", -1)}, "'x-cache-ttl'"), ({"x-message-deduplication": "true"}, "'x-message-deduplication'"),
])
def test_wrong_arguments(node, bad, text):
    conn = node().raw()
    for kind in ("queue", "exchange"):
        chan = conn.channel()
        with pytest.raises(wire.ChannelClosed) as refused:
            if kind == "queue":
                chan.declare("q", durable=True, arguments={**arguments(), **bad})
            else:
                chan.exchange("x", "topic", durable=True, arguments={**arguments(), **bad})
        assert refused.value.code == 406
        assert "invalid arg " + text in refused.value.text and " for " + kind + " '" in refused.value.text


@both
def test_a_key_survives(node, how):
    this = node("store: {journal_file_size: 1MiB, journal_max: 16MiB}\n")
    p = Publisher(this)
    p.chan.declare("q", durable=True, arguments=arguments(size=500))
    p.chan.declare("plain", durable=True)
    p.chan.exchange("x", "fanout", durable=True, arguments=arguments())
    p.chan.bind("plain", "x")
    keys = [f"key-{i}" for i in range(300)]
    for i, key in enumerate(keys):
        p.send("q", key, header=i % 2 == 0)
        p.send("", key, exchange="x", header=i % 3 == 0)
    p.chan.drain("q")
    p.chan.drain("plain")
    for _ in range(2):
        # the files go in which the messages stood
        for _ in range(40):
            p.send("plain", body=os.urandom(200000))
            p.chan.drain("plain")
        again(this, how)
        p = Publisher(this)
        p.chan.drain("plain")       # a kill may forget the last acknowledgement
        for key in keys:
            p.send("q", key)
            p.send("", key, exchange="x")
        assert count(p.chan, "q") == 0 and count(p.chan, "plain") == 0
        # what it says when it is declared again
        p.chan.declare("q", durable=True, arguments=arguments(size=500))
    with pytest.raises(wire.ChannelClosed) as refused:
        this.raw().channel().declare("q", durable=True, arguments=arguments(size=501))
    assert "inequivalent arg 'x-cache-size' for queue 'q'" in refused.value.text


def test_killed_between_a_publish_and_the_same_again(node):
    """Whatever the moment: once it was confirmed it is there exactly once; not confirmed, the retry makes it so."""
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments=arguments(size=100000))
    total = 0
    for turn in range(8):
        chan = this.raw().channel()
        chan.call("confirm.select")
        keys = [f"{turn}-{i}" for i in range(500)]
        for key in keys:
            chan.publish("", "q", key.encode(), delivery_mode=2, message_id=key)
        if turn % 2 == 0:
            chan.expect("basic.ack", timeout=30 * SLOW)     # some of them
        again(this, "kill")
        p = Publisher(this)
        for key in keys:
            p.chan.publish("", "q", key.encode(), delivery_mode=2, message_id=key)
        seen = 0
        while seen < len(keys):
            event = p.chan.expect("basic.ack", timeout=30 * SLOW)
            seen = event.delivery_tag if event.multiple else max(seen, event.delivery_tag)
        total += len(keys)
        assert count(p.chan, "q") == total
        chan = p.chan
    assert len(set(chan.drain("q"))) == total


@both
def test_transactions(node, how):
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments=arguments())
    chan.call("tx.select")
    chan.publish("", "q", b"1", delivery_mode=2, message_id="a")
    chan.call("tx.rollback")
    for body in (b"2", b"3"):
        chan.publish("", "q", body, delivery_mode=2, message_id="a")
    chan.publish("", "q", b"4", delivery_mode=2, message_id="b")
    chan.call("tx.commit")
    chan.publish("", "q", b"5", delivery_mode=2, message_id="b")
    chan.call("tx.commit")
    chan.publish("", "q", b"6", delivery_mode=2, message_id="never committed")
    again(this, how)
    p = Publisher(this)
    p.send("q", "a", body=b"7")
    p.send("q", "never committed", body=b"8")
    assert p.chan.drain("q") == ["2", "4", "8"]


def test_time_goes_on_over_a_restart(node):
    this = node()
    p = Publisher(this)
    p.chan.declare("long", durable=True, arguments=arguments(ttl=600000))
    p.chan.declare("short", durable=True, arguments=arguments(ttl=1))
    for queue in ("long", "short"):
        p.send(queue, "a")
    again(this, "kill")
    p = Publisher(this)
    for queue in ("long", "short"):
        p.send(queue, "a")
    assert count(p.chan, "long") == 1 and count(p.chan, "short") == 2


def test_a_client_library(node):
    """With pika: confirms of duplicates raise nothing."""
    this = node()
    with pika.BlockingConnection(pika.ConnectionParameters(port=this.port)) as conn:
        chan = conn.channel()
        chan.queue_declare("q", durable=True, arguments={
            "x-message-deduplication": True, "x-cache-size": 1000, "x-cache-ttl": 60000})
        chan.confirm_delivery()
        for key in ("one", "two", "one", 3, 3, 2 ** 40, 2 ** 40, "3"):
            chan.basic_publish("", "q", str(key).encode(), mandatory=True, properties=pika.BasicProperties(
                delivery_mode=2, headers={"x-deduplication-header": key}))
        assert chan.queue_declare("q", passive=True).method.message_count == 5


@both
def test_delayed(node, how):
    """The exchange looks when a message comes, the queue when it is due."""
    this = node()
    p = Publisher(this)
    p.chan.exchange("x", "x-delayed-message", durable=True, arguments={**arguments(), "x-delayed-type": "direct"})
    p.chan.exchange("y", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
    p.chan.declare("q", durable=True, arguments=arguments())
    p.chan.declare("plain", durable=True)
    for queue, exchange in (("q", "y"), ("plain", "x")):
        p.chan.bind(queue, exchange, "k")
    # in one piece: between the first and the others no time passes
    p.chan.conn.send_raw(b"".join(
        p.chan.encode_publish(exchange, "k", body, delivery_mode=2, message_id="a", headers={"x-delay": Val("l", wait)})
        for body, wait in ((b"1", 300), (b"2", 1), (b"3", 0)) for exchange in ("x", "y")))
    assert set(p.chan.confirmed(6, timeout=20 * SLOW).values()) == {"basic.ack"}
    again(this, how)
    p = Publisher(this)
    p.chan.publish("x", "k", b"4", delivery_mode=2, message_id="a", headers={"x-delay": Val("l", 1)})
    p.chan.expect("basic.ack", timeout=10 * SLOW)
    p.chan.publish("x", "k", b"5", delivery_mode=2, headers={"x-delay": Val("l", 400)})
    p.chan.publish("y", "k", b"5", delivery_mode=2, headers={"x-delay": Val("l", 400)})
    p.chan.wait_count("plain", 2, timeout=10 * SLOW)
    p.chan.wait_count("q", 2, timeout=10 * SLOW)
    assert p.chan.drain("plain") == ["1", "5"]
    first, second = p.chan.drain("q")
    assert first in ("2", "3") and second == "5"


def test_what_a_queue_refuses_may_come_again(node):
    this = node()
    p = Publisher(this)
    full = {"x-max-length": Val("I", 1), "x-overflow": "reject-publish"}
    p.chan.declare("q", durable=True, arguments={**arguments(), **full})
    p.chan.declare("full", durable=True, arguments=full)
    p.chan.exchange("x", "fanout", durable=True, arguments=arguments())
    for queue in ("q", "full"):
        p.chan.bind(queue, "x")
    assert p.send("q", "a").name == "basic.ack"
    assert p.send("q", "b").name == "basic.nack"
    assert p.send("q", "a").name == "basic.ack"         # a duplicate, full or not
    p.chan.drain("q")
    assert p.send("q", "b").name == "basic.ack"
    p.chan.drain("q")
    # one of two refuses: the exchange does not remember it, the queue that took it does
    assert p.send("full").name == "basic.ack"
    assert p.send("", "c", exchange="x").name == "basic.nack"
    p.chan.drain("full")
    assert p.send("", "c", exchange="x").name == "basic.ack"
    assert count(p.chan, "q") == 1 and count(p.chan, "full") == 1
    p.chan.drain("full")
    assert p.send("", "c", exchange="x").name == "basic.ack"
    assert count(p.chan, "q") == 1 and count(p.chan, "full") == 0


@both
def test_dead_letters(node, how):
    """They come in like others: what the queue has had is not put into it again, and leaves where it died."""
    this = node()
    p = Publisher(this)
    p.chan.exchange("dlx", "direct", durable=True, arguments=arguments())
    p.chan.declare("dead", durable=True, arguments=arguments())
    p.chan.declare("plain", durable=True)
    for queue in ("dead", "plain"):
        p.chan.bind(queue, "dlx", queue)
    for name, to in (("q1", "dead"), ("q2", "dead"), ("q3", "plain"), ("q4", "plain")):
        p.chan.declare(name, durable=True, arguments={"x-dead-letter-exchange": "" if name == "q1" else "dlx",
                                                      "x-dead-letter-routing-key": to})
        p.send(name, "a")
        if name in ("q2", "q4"):
            again(this, how)
            p = Publisher(this)
        p.chan.reject(p.chan.get(name, no_ack=False).delivery_tag, requeue=False)
        p.chan.sync()
    p.chan.wait_count("dead", 1)
    for name in ("q1", "q2", "q3", "q4"):
        p.chan.wait_count(name, 0)
    p.chan.declare("barrier", durable=True)     # what was before is on disk: a kill forgets no rejection
    again(this, how)
    chan = this.raw().channel()
    # dlx let q2's through, but the queue dropped it; it remembers q3's
    assert chan.counts("dead")[0] == 1
    assert [chan.counts(name)[0] for name in ("q1", "q2", "q3", "q4")] == [0] * 4
    assert chan.counts("plain")[0] == 1


@both
def test_a_key_that_only_a_delayed_message_keeps(node, how):
    """Beside its place in a delayed-message exchange it went to a queue that no restart survives."""
    this = node()
    p = Publisher(this)
    p.chan.exchange("x", "fanout", durable=True, arguments=arguments())
    p.chan.exchange("late", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    p.chan.call("exchange.bind", destination="late", source="x", routing_key="")
    p.chan.declare("q")
    p.chan.bind("q", "x")
    p.chan.publish("x", "", b"m", delivery_mode=2, message_id="1", headers={"x-delay": Val("l", 100000)})
    p.chan.expect("basic.ack", timeout=30 * SLOW)
    again(this, how)
    p = Publisher(this)
    p.chan.declare("kept", durable=True)
    p.chan.bind("kept", "x")
    p.send("", "1", exchange="x", header=False)
    assert count(p.chan, "kept") == 0
    p.send("", "2", exchange="x", header=False)
    assert count(p.chan, "kept") == 1


def test_retries_of_a_queue_that_deduplicates(node):
    this = node()
    p = Publisher(this)
    retry = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"}
    p.chan.declare("work", durable=True, arguments={**arguments(), **retry})
    p.chan.declare("wait", durable=True, arguments={
        **arguments(), "x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"})
    p.send("work", "1")
    for turn in range(3):
        event = p.chan.get_wait("work", no_ack=False, timeout=10 * SLOW)
        assert (event.headers or {}).get("x-death", [{"count": 0}])[0]["count"] == turn
        p.chan.reject(event.delivery_tag, requeue=False)
    event = p.chan.get_wait("work", timeout=10 * SLOW)
    p.send("work", "1")
    assert count(p.chan, "work") == 0
