"""The x-delayed-message and x-consistent-hash exchanges, through the wire, a stop and kill -9."""
# SPDX-License-Identifier: Apache-2.0
import threading
import time

import pytest

import wire
from node import SLOW, wait_for
from test_durable import again, both
from wire import Val

MS = 0.001


def delayed(chan, name="x", kind="direct", durable=True, **arguments):
    chan.exchange(name, "x-delayed-message", durable=durable, arguments={"x-delayed-type": kind, **arguments})


def waiting(this):
    """Messages that wait, as the node counts them."""
    return this.overview()["hermes"]["counters"]["messages_delayed"]


def ready(this):
    chan = this.raw().channel()
    delayed(chan)
    chan.declare("q", durable=True)
    chan.bind("q", "x", "k")
    return chan


def publish(chan, body, delay, key="k", exchange="x", **props):
    """Persistent, and confirmed."""
    if not getattr(chan, "confirming", False):
        chan.call("confirm.select")
        chan.confirming = True
    headers = props.pop("headers", {})
    chan.publish(exchange, key, body, delivery_mode=props.pop("delivery_mode", 2),
                 headers={"x-delay": delay, **headers}, **props)
    return chan.expect("basic.ack", "basic.nack", timeout=20 * SLOW)


def test_in_due_order(node):
    """K20, ten times as fast."""
    this = node()
    chan = ready(this)
    consumer = this.raw().channel()
    consumer.call("basic.consume", queue="q", consumer_tag="t", no_ack=True)
    begin = time.monotonic()
    chan.conn.send_raw(b"".join(
        chan.encode_publish("x", "k", body, delivery_mode=2, headers={"x-delay": delay}) for body, delay in (
            ("ten", 1000), ("one", 100), ("five", 500), ("beyond", 2**32 + 100), ("now", 0), ("past", -5))))
    for body, delay in (("now", 0), ("past", 0), ("one", 100), ("five", 500), ("ten", 1000)):
        event = consumer.expect("basic.deliver", timeout=10 * SLOW)
        assert event.body.decode() == body
        assert time.monotonic() - begin >= delay * MS - 0.01      # the clock of a turn
        assert event.headers["x-delay"] == (-delay if delay else 0 if body == "now" else -5)
    consumer.expect_nothing(0.3)


def test_numbers_and_what_is_none(node):
    conn = node().raw()
    chan = conn.channel()
    delayed(chan)
    chan.declare("q")
    chan.bind("q", "x", "k")
    for value, seen in ((Val("b", 1), -1), (Val("B", 1), -1), (Val("s", 1), -1), (Val("u", 1), -1), (Val("i", 1), -1),
                        (Val("l", 1), -1), (Val("L", 1), -1), ("1", "-1"), ("+1", "-1"), ("-1", "-1"), (0, 0)):
        publish(chan, b"m", value)
        assert chan.get_wait("q").headers["x-delay"] == seen
    for value, text in (("soon", "'soon' is no integer"), ("", "'' is no integer"), (True, "of type bool"),
                        (1.5, "of type double"), (None, "of type void"), ([1], "of type array"),
                        (315360000001, "is more than 315360000000 ms"), (2**63 - 1, "is more than"),
                        ("99999999999999999999999", "is more than")):
        other = conn.channel()
        with pytest.raises(wire.ChannelClosed) as refused:
            publish(other, b"m", value)
        assert refused.value.code == 406
        assert text in refused.value.text
    chan.expect_nothing(0.1)
    assert chan.counts("q")[0] == 0


def test_declaring(node):
    conn = node().raw()

    def refused(code, **arguments):
        with pytest.raises(wire.ServerClose) as error:
            conn.channel().exchange("a", "x-delayed-message", arguments=arguments)
        assert error.value.code == code
        return error.value.text

    must = "Invalid argument, 'x-delayed-type' must be an existing exchange type"
    assert must in refused(406)
    assert must in refused(406, **{"x-delayed-type": "none"})
    assert must in refused(406, **{"x-delayed-type": 5})
    assert "can't be used" in refused(406, **{"x-delayed-type": "x-delayed-message"})
    delayed(conn.channel(), "a", "topic", durable=False)
    delayed(conn.channel(), "a", "topic", durable=False)
    assert "inequivalent arg 'x-delayed-type'" in refused(406, **{"x-delayed-type": "direct"})


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers", "x-consistent-hash"])
def test_every_type(node, kind):
    chan = node().raw().channel()
    delayed(chan, kind=kind)
    chan.declare("q")
    chan.bind("q", "x", "1", arguments={"x-match": "all", "h": 1} if kind == "headers" else None)
    begin = time.monotonic()
    publish(chan, b"m", 50, key="1", headers={"h": 1})
    assert chan.get_wait("q").body == b"m"
    assert time.monotonic() - begin >= 50 * MS - 0.01       # the clock of a turn


def test_what_leaves_is_as_it_came(node):
    """Properties, key, a time to live that begins then, and nothing of BCC."""
    this = node()
    chan = this.raw().channel()
    delayed(chan)
    for queue in ("q", "cc", "bcc"):
        chan.declare(queue)
        chan.bind(queue, "x", queue)
    publish(chan, b"m" * 300000, 100, key="q", headers={"CC": ["cc"], "BCC": ["bcc"], "h": "v"}, message_id="id",
            priority=3, expiration="60000")
    for queue in ("q", "cc", "bcc"):
        event = chan.get_wait(queue)
        assert event.body == b"m" * 300000
        assert event.routing_key == "q" and event.exchange == "x"
        assert event.headers == {"CC": ["cc"], "h": "v", "x-delay": -100}
        assert (event.props["message_id"], event.props["priority"], event.props["expiration"]) == ("id", 3, "60000")
    chan.declare("short")
    chan.bind("short", "x", "short")
    publish(chan, b"m", 200, key="short", expiration="100")
    assert chan.get_wait("short").body == b"m"


def test_nothing_is_returned(node):
    """mandatory asks for a route now: that there will be none is not known."""
    chan = ready(node())
    chan.call("confirm.select")
    chan.publish("x", "nowhere", b"m", mandatory=True, headers={"x-delay": 50})
    chan.expect("basic.ack")
    chan.publish("x", "nowhere", b"m", mandatory=True, headers={"x-delay": 0})
    chan.expect("basic.return")


def test_transaction(node):
    conn = node().raw()
    other = conn.channel()
    delayed(other)
    other.declare("q")
    other.bind("q", "x", "k")
    chan = conn.channel()
    chan.call("tx.select")
    chan.publish("x", "k", b"no", headers={"x-delay": 1})
    chan.call("tx.rollback")
    for body in (b"a", b"b"):
        chan.publish("x", "k", body, delivery_mode=2, headers={"x-delay": 50})
    time.sleep(0.2)
    assert other.counts("q")[0] == 0
    chan.call("tx.commit")
    other.wait_count("q", 2)
    assert other.drain("q") == ["a", "b"]
    chan.publish("x", "k", b"gone", headers={"x-delay": 50})
    other.call("exchange.delete", exchange="x")
    chan.call("tx.commit")


@both
def test_a_restart(node, how):
    """Confirmed is kept, of whatever delivery mode; what became due meanwhile comes at once, in order."""
    this = node()
    chan = ready(this)
    chan.declare("late", durable=True)
    chan.bind("late", "x", "late")
    publish(chan, b"much later", 3600000, key="late")
    begin = time.monotonic()
    publish(chan, b"later", 8000 * SLOW, key="late")
    batch = [chan.encode_publish("x", "k", "%d" % i, delivery_mode=1 + i % 2,
                                 headers={"x-delay": 4000 * SLOW - 10 * i}) for i in range(100)]
    chan.conn.send_raw(b"".join(batch))
    confirmed = 2
    while confirmed < 102:
        event = chan.expect("basic.ack", timeout=20 * SLOW)
        confirmed = event.delivery_tag if event.multiple else confirmed + 1
    assert chan.counts("q")[0] == 0
    this.abort_conns()
    this.kill() if how == "kill" else this.stop()
    time.sleep(max(0, begin + 4.1 * SLOW - time.monotonic()))
    this.start()
    chan = this.raw().channel()
    chan.wait_count("q", 100)
    assert chan.drain("q") == ["%d" % i for i in range(99, -1, -1)]
    assert chan.counts("late")[0] == 0
    chan.wait_count("late", 1, timeout=20 * SLOW)
    assert time.monotonic() - begin > 8 * SLOW - 0.1
    assert chan.drain("late") == ["later"]
    assert waiting(this) == 1
    again(this, how)
    chan = this.raw().channel()
    assert waiting(this) == 1
    chan.call("exchange.delete", exchange="x")
    assert waiting(this) == 0
    again(this, how)
    assert waiting(this) == 0


def test_dead_letters_are_delayed(node):
    """Once: the sign of their header is changed then."""
    this = node()
    chan = this.raw().channel()
    delayed(chan)
    chan.declare("q", durable=True, arguments={"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "again"})
    chan.declare("again", durable=True)
    chan.bind("again", "x", "again")
    begin = time.monotonic()
    chan.publish("", "q", b"m", delivery_mode=2, headers={"x-delay": 300})
    event = chan.get_wait("q", no_ack=False)
    assert event.headers == {"x-delay": 300}
    chan.send("basic.reject", delivery_tag=event.delivery_tag, requeue=False)
    event = chan.get_wait("again")
    assert time.monotonic() - begin >= 0.29
    assert event.headers["x-delay"] == -300
    assert event.headers["x-death"][0]["queue"] == "q"


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_queue_that_is_full_when_it_is_due(node, overflow):
    this = node()
    chan = this.raw().channel()
    delayed(chan)
    chan.exchange("dlx", "fanout")
    chan.declare("dead")
    chan.bind("dead", "dlx")
    chan.declare("q", durable=True, arguments={"x-max-length": 1, "x-overflow": overflow, "x-dead-letter-exchange": "dlx"})
    chan.bind("q", "x", "k")
    for body in (b"first", b"second"):
        publish(chan, body, 50)
    wait_for(lambda: waiting(this) == 0)
    assert chan.drain("q") == ["first"]
    if overflow == "reject-publish-dlx":
        chan.wait_count("dead", 1)
    assert chan.drain("dead") == (["second"] if overflow == "reject-publish-dlx" else [])


def test_nothing_inside_is_to_be_found(node):
    """What waits is no queue: it has no name, counts as none, and goes with the exchange."""
    this = node()
    chan = ready(this)
    publish(chan, b"m", 3600000)
    totals = this.overview()
    assert totals["object_totals"]["queues"] == 1
    assert totals["queue_totals"]["messages"] == 0
    assert waiting(this) == 1
    chan.call("exchange.delete", exchange="x")
    delayed(chan)
    assert waiting(this) == 0


def backlog(this, messages, spread_ms, body=b"m" * 100, least_ms=3600000):
    """So many in any order of due time, confirmed; the anonymous memory in kB before that."""
    chan = ready(this)
    publish(chan, body, 1)
    chan.get_wait("q")
    before = this.status("RssAnon")
    conn = this.raw()
    chan = conn.channel()
    chan.call("confirm.select")
    done = threading.Event()

    def confirms():
        seen = 0
        while seen < messages:
            event = chan.expect("basic.ack", timeout=60 * SLOW)
            seen = event.delivery_tag if event.multiple else seen + 1
        done.set()

    reader = threading.Thread(target=confirms, daemon=True)
    reader.start()
    batch, step = [], 7919
    for i in range(messages):
        delay = least_ms + i * step % spread_ms
        batch.append(chan.encode_publish("x", "k", body, delivery_mode=2, headers={"x-delay": Val("l", delay)}))
        if len(batch) == 500:
            conn.send_raw(b"".join(batch))
            batch = []
    conn.send_raw(b"".join(batch))
    assert done.wait(120 * SLOW)
    reader.join()
    return before


@pytest.mark.release
def test_memory_does_not_grow_with_what_waits(node):
    messages = 300000
    this = node()
    before = backlog(this, messages, 86400000)
    assert waiting(this) == messages
    wait_for(lambda: this.status("RssAnon") - before < 40 * 1024, 30, "what waits is in files")
    again(this, "kill")
    assert waiting(this) == messages


@both
def test_places_of_a_consistent_hash_are_the_same_after_a_restart(node, how):
    this = node()

    def places():
        chan = this.raw().channel()
        for i in range(200):
            chan.publish("h", "key-%d" % i, "%d" % i)
        for i in range(4):
            chan.wait_count("q%d" % i, counts[i]) if counts else time.sleep(0.2)
        return [sorted(chan.drain("q%d" % i)) for i in range(4)]

    chan = this.raw().channel()
    chan.exchange("h", "x-consistent-hash", durable=True)
    for i in range(4):
        chan.declare("q%d" % i, durable=True)
        chan.bind("q%d" % i, "h", str(i + 1))
    counts = None
    before = places()
    counts = [len(place) for place in before]
    assert sum(counts) == 200 and min(counts) > 0
    again(this, how)
    assert places() == before
