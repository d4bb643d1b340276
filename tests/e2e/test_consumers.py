"""What decides which consumer gets a message and for how long it may keep it, across a restart and kill -9 too."""
# SPDX-License-Identifier: Apache-2.0
import time

import pytest

import wire
from node import SLOW, wait_for
from test_durable import again, barrier, both, fill

SINGLE = {"x-single-active-consumer": True}


def take(chan, count, ack=False):
    events = [chan.deliver() for _ in range(count)]
    if ack:
        for event in events:
            chan.ack(event.delivery_tag)
    return [event.body.decode() for event in events]


# --------------------------------------------------------------------------
# x-single-active-consumer
# --------------------------------------------------------------------------
@pytest.mark.parametrize("end", ["cancel", "channel", "close", "abort"])
def test_single_active_moves_on(node, end):
    this = node()
    chan = this.raw().channel()
    chan.declare("q", arguments=SINGLE)
    conns = [this.raw() for _ in range(3)]
    one, two, three = (conn.channel() for conn in conns)
    one.qos(2)
    tag = one.consume("q")
    two.consume("q")
    three.consume("q", arguments={"x-priority": 1})
    for number in range(4):
        chan.publish("", "q", str(number))
    assert take(one, 2) == ["0", "1"]
    two.expect_nothing(0.1)
    three.expect_nothing(0.1)
    if end == "cancel":
        one.call("basic.cancel", consumer_tag=tag)
    elif end == "channel":
        one.close()
    elif end == "close":
        conns[0].close()
    else:
        conns[0].abort()
    # What the first one holds stays with its channel after basic.cancel, else it comes first.
    assert take(three, 2 if end == "cancel" else 4) == (["2", "3"] if end == "cancel" else ["0", "1", "2", "3"])
    two.expect_nothing(0.1)
    conns[2].close()
    assert sorted(take(two, 2 if end == "cancel" else 4)) == \
        (["2", "3"] if end == "cancel" else ["0", "1", "2", "3"])


# --------------------------------------------------------------------------
# x-expires
# --------------------------------------------------------------------------
def exists(this, name):
    chan = this.raw().channel()
    try:
        chan.call("queue.declare", queue=name, passive=True)
    except wire.ChannelClosed as refused:
        assert refused.code == 404
        return False
    return True


def queues(this):
    return this.overview()["object_totals"]["queues"]


@both
def test_expires_begins_anew_with_the_node(node, how):
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments={"x-expires": 6000 * SLOW})
    fill(chan, "q", ["m"])
    time.sleep(3 * SLOW)
    again(this, how)
    time.sleep(3.2 * SLOW)
    assert queues(this) == 1        # more than 6 s since it was declared
    assert this.raw().channel().drain("q") == ["m"]
    wait_for(lambda: queues(this) == 0, 20 * SLOW)
    # nobody was told that it is gone; what is answered now comes after it in the journal
    this.raw().channel().declare("other", durable=True)
    again(this, how)
    assert not exists(this, "q")


@pytest.mark.alone
def test_expires_of_many(node):
    """They go at about the same time, and the node answers others meanwhile."""
    this = node()
    chan = this.raw().channel()
    chan.declare("other")
    many = 20000 // SLOW
    for number in range(many):
        chan.send("queue.declare", queue="q%d" % number, passive=False, durable=False, exclusive=False,
                  auto_delete=False, nowait=True, arguments={"x-expires": 2000})
    chan.sync()
    worst = 0
    deadline = time.monotonic() + 60 * SLOW
    while queues(this) > 1:
        assert time.monotonic() < deadline
        before = time.monotonic()
        chan.get("other")
        worst = max(worst, time.monotonic() - before)
        time.sleep(0.005)
    assert worst < 5 * SLOW
    # the node's own processor time, for the machine may be busy
    assert this.overview()["hermes"]["process"]["turn_longest_us"] < 100000 * SLOW


# --------------------------------------------------------------------------
# consumer timeout
# --------------------------------------------------------------------------
TIMEOUT = {"x-consumer-timeout": 1000}


def timed_out(this, count=1):
    return this.await_log(r"did not acknowledge a message within", timeout=20 * SLOW, count=count)


@pytest.mark.parametrize("where", ["consumer", "queue", "node"])
def test_consumer_timeout(node, where):
    """The consumer is cancelled, its late message goes to another one, everything else stays as it was."""
    this = node("limits:\n  consumer_timeout: 1s\n" if where == "node" else "")
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments=TIMEOUT if where == "queue" else None)
    chan.declare("other", durable=True)
    slow = this.raw().channel()
    slow.qos(1)
    tag = slow.consume("q", arguments=TIMEOUT if where == "consumer" else None)
    never = slow.consume("other", arguments={"x-consumer-timeout": 0})
    chan.publish("", "other", "kept")
    chan.publish("", "q", "late")
    held = {event.body: event.delivery_tag for event in (slow.deliver(), slow.deliver())}
    assert slow.expect("basic.cancel", timeout=20 * SLOW).consumer_tag == tag
    timed_out(this)
    line = [line for line in this.log.splitlines() if "did not acknowledge" in line][0]
    assert "'%s' of queue 'q'" % tag in line and "guest@/" in line
    event = chan.get_wait("q", no_ack=False)
    assert (event.body, event.redelivered) == (b"late", True)
    chan.ack(event.delivery_tag)
    slow.ack(held[b"late"])             # too late, and no harm done
    slow.ack(held[b"kept"])
    chan.publish("", "other", "more")
    event = slow.deliver()
    assert (event.body, event.consumer_tag) == (b"more", never)
    slow.sync()
    assert chan.counts("q") == (0, 0)


def test_consumer_timeout_unknown_tags_stay_unknown(node):
    this = node()
    chan = this.raw().channel()
    chan.declare("q")
    chan.consume("q", arguments=TIMEOUT)
    chan.publish("", "q", "late")
    late = chan.deliver().delivery_tag
    chan.expect("basic.cancel", timeout=20 * SLOW)
    chan.nack(late)
    chan.sync()
    chan.ack(late)
    chan.expect_close(406)


def test_consumer_timeout_of_a_client_that_cannot_be_told(node):
    """Without the capability consumer_cancel_notify nothing is said; the message goes on all the same."""
    this = node()
    conn = wire.Conn("127.0.0.1", this.port)
    conn.start()
    conn.start_ok("guest", "guest", properties={})
    conn.await_tune()
    conn.tune_ok()
    conn.call("connection.open", virtual_host="/")
    chan = conn.channel()
    chan.declare("q")
    chan.consume("q", arguments=TIMEOUT)
    chan.publish("", "q", "late")
    chan.deliver()
    timed_out(this)
    chan.expect_nothing(0.2)
    assert chan.get_wait("q").body == b"late"
    conn.abort()


def test_consumer_timeout_with_pika(node):
    """What a user sees of it."""
    this = node()
    with this.pika() as conn:
        chan = conn.channel()
        chan.queue_declare("q", arguments=TIMEOUT)
        chan.basic_publish("", "q", b"m")
        got = []
        for method, _, body in chan.consume("q", inactivity_timeout=20 * SLOW):
            if method is None:
                break           # the consumer was cancelled
            got.append((method.redelivered, body))
        assert got == [(False, b"m")]
        assert chan.is_open
        got = chan.basic_get("q", auto_ack=True)
        assert (got[0].redelivered, got[2]) == (True, b"m")


@both
def test_late_messages_are_redelivered_after_a_restart(node, how):
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True, arguments=TIMEOUT)
    fill(chan, "q", ["late"])
    chan.consume("q")
    chan.deliver()
    chan.expect("basic.cancel", timeout=20 * SLOW)
    barrier(chan)
    again(this, how)
    event = this.raw().channel().get_wait("q", no_ack=False)
    assert (event.body, event.redelivered) == (b"late", True)


# --------------------------------------------------------------------------
# limits.unacknowledged
# --------------------------------------------------------------------------
def test_consumer_without_prefetch_pauses(node):
    this = node("limits:\n  unacknowledged: 100\n")
    chan = this.raw().channel()
    chan.declare("q")
    one, two = (this.raw().channel() for _ in range(2))
    one.consume("q")
    for number in range(150):
        chan.publish("", "q", str(number))
    assert take(one, 100) == [str(number) for number in range(100)]
    one.expect_nothing(0.2)
    two.qos(200)                # what a client sets itself is not cut
    two.consume("q")
    assert take(two, 50) == [str(number) for number in range(100, 150)]
    two.close()
    one.ack(10, multiple=True)
    assert take(one, 10) == [str(number) for number in range(100, 110)]
    one.expect_nothing(0.1)
    one.ack(0, multiple=True)
    assert take(one, 40) == [str(number) for number in range(110, 150)]
    assert this.log.count("which is limits.unacknowledged") == 1
    assert this.overview()["hermes"]["counters"]["consumers_paused"] == 1


def test_the_pause_is_each_consumers_own(node):
    """One channel: its consumers have ten each, basic.get and no-ack ones as many as there are, and a requeue makes room."""
    this = node("limits:\n  unacknowledged: 10\n")
    chan = this.raw().channel()
    queues = [chan.declare("q%d" % n).queue for n in range(4)]
    for queue in queues:
        for number in range(30):
            chan.publish("", queue, "%s:%d" % (queue, number))
    chan.qos(0)                 # is no prefetch
    tags = {queue: chan.consume(queue, tag=queue, no_ack=queue == "q3") for queue in queues[1:]}
    events = [chan.deliver() for _ in range(10 + 10 + 30)]
    by = {tag: [e for e in events if e.consumer_tag == tag] for tag in tags.values()}
    assert {tag: len(got) for tag, got in by.items()} == {"q1": 10, "q2": 10, "q3": 30}
    assert [chan.get("q0", no_ack=False).body for _ in range(30)] == [b"q0:%d" % n for n in range(30)]
    chan.expect_nothing(0.1)
    # room for one in q1, by a requeue: it is the one that came back; q2 stays as it was
    chan.nack(by["q1"][3].delivery_tag)
    event = chan.deliver()
    assert (event.body, event.redelivered) == (b"q1:3", True)
    chan.expect_nothing(0.1)
    chan.reject(by["q2"][0].delivery_tag, requeue=False)
    assert chan.deliver().body == b"q2:10"
    # another consumer of the same queue takes what the paused one left
    other = this.raw().channel()
    other.qos(20)
    other.consume("q1")
    assert take(other, 20) == ["q1:%d" % n for n in range(10, 30)]
    assert this.overview()["hermes"]["counters"]["consumers_paused"] == 2
