"""Priority queues: across a stop and kill -9 at every step, on disk, and emptied and filled again."""
# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from test_durable import again, barrier, fill

both = pytest.mark.parametrize("how", ["stop", "kill"])


def put(chan, queue, numbers, priority):
    fill(chan, queue, [b"%d" % n for n in numbers], priority=priority)


def order(sent, levels):
    """What is given out first: the highest priority, in each the first published."""
    return [str(n) for n, _ in sorted(sent, key=lambda s: (-min(s[1], levels), s[0]))]


# --------------------------------------------------------------------------
# a restart between any two steps changes nothing
# --------------------------------------------------------------------------
def step_publish(chan):
    put(chan, "q", range(0, 10), 0)
    put(chan, "q", range(10, 20), 9)
    put(chan, "q", range(20, 30), 3)


def step_take(chan):
    assert [chan.get("q").body for _ in range(3)] == [b"10", b"11", b"12"]
    barrier(chan)


def step_give_back(chan):
    """Three are taken; the first and the last come back, the second is dropped."""
    got = [chan.get("q", no_ack=False) for _ in range(3)]
    assert [m.body for m in got] == [b"13", b"14", b"15"]
    chan.nack(got[2].delivery_tag)
    chan.reject(got[1].delivery_tag, requeue=False)
    chan.nack(got[0].delivery_tag)
    barrier(chan)


def step_more(chan):
    put(chan, "q", range(30, 32), 200)     # counts as 5
    put(chan, "q", range(32, 34), 4)
    put(chan, "q", range(34, 36), 0)


def step_hold(chan):
    """One is out, of a channel that goes."""
    assert chan.get("q", no_ack=False).body == b"13"
    chan.sync()
    chan.close()


STEPS = [step_publish, step_take, step_give_back, step_more, step_hold]
LEFT = [13, *range(15, 20), 30, 31, 32, 33, *range(20, 30), *range(0, 10), 34, 35]


@both
@pytest.mark.parametrize("after", range(len(STEPS) + 1))
def test_a_restart_between_any_two_steps(node, how, after):
    this = node()
    this.raw().channel().declare("q", durable=True, arguments={"x-max-priority": 5})
    for n, step in enumerate([*STEPS, None]):
        if n == after:
            again(this, how)
        if step is not None:
            step(this.raw().channel())
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments={"x-max-priority": 5})    # it is still that queue
    assert chan.counts("q")[0] == len(LEFT)
    assert chan.drain("q") == [str(n) for n in LEFT]


# --------------------------------------------------------------------------
# counts and consumers
# --------------------------------------------------------------------------
@pytest.mark.parametrize("durable", [False, True])
def test_purged_and_filled_again(node, durable):
    """K11: publish, purge, publish again, consume: counts are those of all levels, and the consumer wakes."""
    chan = node().raw().channel()
    chan.declare("q", durable=durable, arguments={"x-max-priority": 10})
    other = chan.conn.channel()
    for n in range(3):
        for priority in (0, 10, 4):
            put(chan, "q", range(20), priority)
        assert chan.counts("q")[0] == 60
        assert chan.call("queue.purge", queue="q").message_count == 60
        assert chan.counts("q")[0] == 0
        assert chan.get("q") is None
        put(chan, "q", [1, 2], 2)
        put(chan, "q", [3], 7)
        assert chan.counts("q")[0] == 3
        other.consume("q", tag="t%d" % n, no_ack=True)
        assert [other.deliver().body for _ in range(3)] == [b"3", b"1", b"2"]
        put(chan, "q", [4], 0)
        assert other.deliver().body == b"4"
        other.call("basic.cancel", consumer_tag="t%d" % n)
    assert chan.call("queue.delete", queue="q").message_count == 0


# --------------------------------------------------------------------------
# more than is kept in memory
# --------------------------------------------------------------------------
@both
@pytest.mark.parametrize("levels", [9, 255])
def test_on_disk(node, how, levels):
    this = node("store: {queue_messages: 2048, queue_bytes: 1MiB}\n")
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments={"x-max-priority": levels})
    rng = random.Random(levels)
    sent = []
    for n in range(0, 20000, 100):
        priority = rng.randrange(256)
        put(chan, "q", range(n, n + 100), priority)
        sent += [(k, priority) for k in range(n, n + 100)]
    assert chan.counts("q")[0] == len(sent)
    want = order(sent, levels)
    assert [chan.get("q").body.decode() for _ in range(3000)] == want[:3000]
    barrier(chan)
    again(this, how)
    chan = this.raw().channel()
    assert chan.counts("q")[0] == len(sent) - 3000
    chan.qos(500)
    chan.consume("q", tag="t")
    for n, body in enumerate(want[3000:]):
        got = chan.deliver()
        assert got.body.decode() == body
        if n % 100 == 99:
            chan.ack(got.delivery_tag, multiple=True)
    chan.ack(0, multiple=True)
    barrier(chan)
    again(this, how)
    assert this.raw().channel().counts("q")[0] == 0
