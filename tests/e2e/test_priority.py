"""Priority queues: on disk, across a stop and kill -9, and emptied and filled again."""
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
