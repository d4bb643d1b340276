"""Quorum queues over restarts: their messages, how often each came back, and where it stands."""
# SPDX-License-Identifier: Apache-2.0
import os
import random
import threading
import time

import pytest

import wire
from api import Api
from node import SLOW, wait_for
from test_durable import again, barrier, both, fill

QUORUM = {"x-queue-type": "quorum"}
KILLS = int(os.environ.get("HERMES_KILLS", "10"))


def channel(node):
    return node.raw().channel()


def quorum(chan, name="qq", **arguments):
    chan.declare(name, durable=True,
                 arguments=dict(QUORUM, **{k.replace("_", "-"): v for k, v in arguments.items()}))
    return name


def counts(event):
    """(body, redelivered, x-delivery-count, x-acquired-count)"""
    headers = event.headers or {}
    return (event.body.decode(), event.redelivered, headers.get("x-delivery-count"),
            headers.get("x-acquired-count"))


def drain(chan, queue):
    out = []
    while True:
        event = chan.get(queue, no_ack=True)
        if event is None:
            return out
        out.append(counts(event))


@both
def test_all_messages_are_kept(node, how):
    """Also those that are not persistent; their confirm is worth as much as that of others."""
    this = node()
    chan = channel(this)
    quorum(chan)
    chan.declare("classic", durable=True)
    for queue in ("qq", "classic"):
        chan.bind(queue, "amq.fanout")
    fill(chan, "", ["both-1", "both-2"], exchange="amq.fanout", delivery_mode=1)
    fill(chan, "", ["kept"], exchange="amq.fanout", delivery_mode=2)
    fill(chan, "qq", ["alone"], delivery_mode=1, headers={"a": 1})
    again(this, how)
    chan = channel(this)
    assert [entry[0] for entry in drain(chan, "classic")] == ["kept"]
    events = [chan.get("qq", no_ack=True) for _ in range(4)]
    assert [e.body for e in events] == [b"both-1", b"both-2", b"kept", b"alone"]
    assert [e.props["delivery_mode"] for e in events] == [1, 1, 2, 1]
    assert events[3].headers == {"a": 1, "x-delivery-count": 0}
    assert chan.get("qq") is None
    fill(chan, "classic", ["after"])    # its confirm says that what was acknowledged before is on disk, too
    again(this, how)
    assert channel(this).counts("qq") == (0, 0)


def test_counts_over_kills(node):
    """A process that is killed while a message is out costs the message one time, no more and no less."""
    this = node()
    chan = channel(this)
    quorum(chan)
    fill(chan, "qq", ["m", "n"])
    times = 0
    for turn in range(4):
        chan.consume("qq")
        event = chan.deliver()
        assert counts(event) == ("m", times > 0, times or None, times or None)
        chan.deliver()
        if turn % 2:
            chan.nack(0, multiple=True)
            assert {chan.deliver().body for _ in range(2)} == {b"m", b"n"}
            times += 1
        barrier(chan)
        again(this, "kill")
        chan = channel(this)
        times += 1
    # it went to the tail together with the other, and both were out: nobody was passed over
    assert sorted(drain(chan, "qq")) == [("m", True, times, times), ("n", True, times, times)]


@both
def test_the_tail_is_where_it_was(node, how):
    this = node()
    chan = channel(this)
    quorum(chan)
    fill(chan, "qq", [str(i) for i in range(1, 7)])
    tags = [chan.get("qq", no_ack=False).delivery_tag for _ in range(4)]
    for i in (3, 0, 2):
        chan.nack(tags[i])
    chan.ack(tags[1])
    barrier(chan)
    again(this, how)
    chan = channel(this)
    assert [entry[::2] for entry in drain(chan, "qq")] == [("5", 0), ("6", 0), ("4", 1), ("1", 1), ("3", 1)]


@pytest.mark.parametrize("settings,arguments", [("", {"x_delivery_limit": 2}),
                                                ("limits: {quorum_delivery_limit: 2}\n", {})])
def test_a_limit_over_kills(node, settings, arguments):
    """One time by a nack, one by a channel that ends, one by a kill: once more than it may."""
    this = node(settings)
    chan = channel(this)
    chan.declare("dead", durable=True)
    quorum(chan, x_dead_letter_exchange="", x_dead_letter_routing_key="dead", **arguments)
    fill(chan, "qq", ["m", "n"])
    chan.nack(chan.get("qq", no_ack=False).delivery_tag)
    assert counts(chan.get_wait("qq", no_ack=False)) == ("m", True, 1, 1)
    conn = chan.conn
    chan.close()
    chan = conn.channel()
    assert counts(chan.get_wait("qq", no_ack=False)) == ("m", True, 2, 2)
    barrier(chan)
    again(this, "kill")
    chan = channel(this)
    event = chan.get_wait("dead", no_ack=False)
    assert event.body == b"m"
    death, = event.headers["x-death"]
    assert (death["reason"], death["queue"], death["count"]) == ("delivery_limit", "qq", 1)
    barrier(chan)
    again(this, "kill")
    chan = channel(this)
    assert [entry[0] for entry in drain(chan, "dead")] == ["m"]
    assert drain(chan, "qq") == [("n", False, 0, None)]


class Worker(threading.Thread):
    """Takes messages, acknowledges some and gives others back, until the node goes."""

    def __init__(self, node, seed):
        super().__init__(daemon=True)
        self.chan = channel(node)
        self.random = random.Random(seed)
        self.acked, self.error = set(), None

    def run(self):
        try:
            self.chan.qos(50)
            self.chan.consume("qq")
            while True:
                event = self.chan.deliver(timeout=30 * SLOW)
                if self.random.random() < 0.05:
                    self.acked.add(event.body.decode())
                    self.chan.ack(event.delivery_tag)
                else:
                    self.chan.nack(event.delivery_tag)
        except (wire.Eof, ConnectionError):
            pass
        except BaseException as exc:        # told by the test
            self.error = exc


def test_nothing_is_lost_or_doubled_on_its_way(node):
    """Killed again and again while messages go to the tail: each of them is there once, or was acknowledged."""
    this = node()
    chan = channel(this)
    quorum(chan)
    rest = {"%04d-%s" % (i, "x" * (i % 7 * 300)) for i in range(400)}
    fill(chan, "qq", sorted(rest))
    for kill in range(KILLS):
        workers = [Worker(this, kill * 10 + i) for i in range(3)]
        for worker in workers:
            worker.start()
        time.sleep(random.Random(kill).uniform(0.05, 0.4) * SLOW)
        this.kill()
        for worker in workers:
            worker.join(30 * SLOW)
            assert not worker.is_alive() and worker.error is None, worker.error
        this.abort_conns()
        this.start()
        chan = channel(this)
        left = [chan.get("qq", no_ack=False) for _ in range(chan.counts("qq")[0])]
        bodies = [event.body.decode() for event in left]
        assert len(bodies) == len(set(bodies)), "doubled"
        acked = set().union(*(worker.acked for worker in workers))
        assert rest - acked <= set(bodies), "lost"
        assert set(bodies) <= rest, "not gone"
        rest = set(bodies)
        chan.close()
        if not rest:
            break
    wait_for(lambda: channel(this).counts("qq")[0] == len(rest))


def letters(node):
    queue = Api(node).get("queues/%2F/qq")
    return queue["messages_dlx"], queue["message_bytes_dlx"]


@pytest.mark.parametrize("how", ["stop", "kill", None])
def test_dead_letters_at_least_once(node, how):
    """A full target holds them back, over restarts too; then each arrives, once. Nobody gets them meanwhile."""
    this = node()
    chan = channel(this)
    chan.declare("dead", durable=True, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    quorum(chan, x_dead_letter_exchange="", x_dead_letter_routing_key="dead", x_dead_letter_strategy="at-least-once",
           x_overflow="reject-publish", x_delivery_limit=0)
    fill(chan, "qq", [str(i) for i in range(7)])
    tags = [chan.get("qq", no_ack=False).delivery_tag for _ in range(6)]
    for number, tag in enumerate(tags):
        if number % 2:
            chan.nack(tag)          # once too often
        else:
            chan.reject(tag, requeue=False)
    chan.wait_count("dead", 2)
    barrier(chan)
    if how:
        again(this, how)
        chan = channel(this)
    assert chan.counts("qq")[0] == 1
    assert letters(this) == (4, 4)
    seen = []
    while len(seen) < 6:
        event = chan.get_wait("dead", timeout=10 * SLOW)
        death, = event.headers["x-death"]
        seen.append((event.body.decode(), death["reason"], death["count"]))
    assert seen == [(str(i), "delivery_limit" if i % 2 else "rejected", 1) for i in range(6)]
    assert [entry[:2] for entry in drain(chan, "qq")] == [("6", False)]
    wait_for(lambda: letters(this) == (0, 0), what="the confirm of the last one")
    barrier(chan)
    again(this, "kill")
    assert channel(this).counts("dead")[0] == 0 and channel(this).counts("qq")[0] == 0
