"""Time to live, length limits and dead letters, across a stop and kill -9."""
# SPDX-License-Identifier: Apache-2.0
import time

import pytest

from node import SLOW, wait_for

both = pytest.mark.parametrize("how", ["stop", "kill"])


def again(node, how):
    """Restart it over the same data."""
    node.abort_conns()
    if how == "kill":
        node.kill()
    else:
        node.stop()
    return node.start()


def declare(chan, name, **arguments):
    chan.declare(name, durable=True, arguments={k.replace("_", "-"): v for k, v in arguments.items()})


def dead_pair(chan, **arguments):
    """`q`, whose dead letters go to `dead`."""
    declare(chan, "dead")
    declare(chan, "q", x_dead_letter_exchange="", x_dead_letter_routing_key="dead", **arguments)


def fill(chan, queue, bodies):
    """Persistent messages; True for each that was confirmed, in their order."""
    own = chan.conn.channel()       # its confirms begin with 1
    own.call("confirm.select")
    bodies = list(bodies)
    for body in bodies:
        own.publish("", queue, body, delivery_mode=2)
    outcome = own.confirmed(len(bodies))
    own.close()
    return [outcome[tag] == "basic.ack" for tag in sorted(outcome)]


def barrier(chan):
    """All that this node did before is on disk when this returns."""
    chan.declare("barrier", durable=True)
    chan.call("queue.delete", queue="barrier")


def deaths(event):
    return [(d["queue"], d["reason"], d["count"]) for d in event.headers["x-death"]]


def test_each_queue_of_a_chain_gives_the_full_time(node):
    this = node()
    chan = this.raw().channel()
    declare(chan, "c")
    for name, after in (("a", "b"), ("b", "c")):
        declare(chan, name, x_message_ttl=700, x_dead_letter_exchange="", x_dead_letter_routing_key=after)
    start = time.monotonic()
    chan.publish("", "a", "m", delivery_mode=2, expiration="600")
    event = chan.get_wait("c", timeout=10 * SLOW)
    assert 1.3 <= time.monotonic() - start
    assert deaths(event) == [("b", "expired", 1), ("a", "expired", 1)]
    assert event.headers["x-death"][1]["original-expiration"] == "600"


@both
def test_what_was_given_out_counts_again_after_a_restart(node, how):
    """As when it comes back from a consumer: what is too much then goes, before anybody publishes."""
    this = node()
    chan = this.raw().channel()
    dead_pair(chan, x_max_length=3)
    taker = this.raw().channel()
    tag = taker.consume("q")
    assert all(fill(chan, "q", ["out%d" % i for i in range(20)]))
    chan.wait_count("q", 0)
    taker.call("basic.cancel", consumer_tag=tag)
    chan = this.raw().channel()
    assert all(fill(chan, "q", ["in%d" % i for i in range(3)]))
    again(this, how)
    chan = this.raw().channel()
    chan.wait_count("dead", 20)
    assert chan.drain("dead") == ["out%d" % i for i in range(20)]
    assert chan.drain("q") == ["in0", "in1", "in2"]


def test_one_outcome_for_each_tag(node):
    this = node()
    chan = this.raw().channel()
    declare(chan, "q", x_max_length=1, x_overflow="reject-publish")
    declare(chan, "free")
    chan.call("confirm.select")
    for queue in ("q", "q", "free", "q", "free"):
        chan.publish("", queue, "m", delivery_mode=2)
    outcome = {}
    while len(outcome) < 5:
        event = chan.expect("basic.ack", "basic.nack")
        first = event.delivery_tag if not event.multiple else max(list(outcome) + [0]) + 1
        for tag in range(first, event.delivery_tag + 1):
            assert tag not in outcome
            outcome[tag] = event.name
    assert [outcome[t] for t in range(1, 6)] == \
        ["basic.ack", "basic.nack", "basic.ack", "basic.nack", "basic.ack"]
    chan.expect_nothing()


def test_a_commit_that_a_queue_refuses(node):
    this = node()
    chan = this.raw().channel()
    declare(chan, "q", x_max_length=1, x_overflow="reject-publish")
    tx = chan.conn.channel()
    tx.call("tx.select")
    for body in "ab":
        tx.publish("", "q", body, delivery_mode=2)
    tx.send("tx.commit")
    assert "partial tx completion" in str(tx.expect_close(406))
    assert chan.drain("q") == ["a"]


@both
def test_rejected_ones_are_in_one_place(node, how):
    this = node()
    chan = this.raw().channel()
    dead_pair(chan)
    bodies = [str(i) for i in range(200)]
    assert all(fill(chan, "q", bodies))
    for _ in range(100):
        event = chan.get_wait("q", no_ack=False)
    chan.nack(event.delivery_tag, multiple=True, requeue=False)
    barrier(chan)
    again(this, how)
    chan = this.raw().channel()
    got = [chan.get_wait("dead") for _ in range(100)]
    assert [e.body.decode() for e in got] == bodies[:100]
    assert all(deaths(e) == [("q", "rejected", 1)] for e in got)
    assert chan.drain("q") == bodies[100:]


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05])
def test_killed_amid_dead_letters(node, after):
    """Wherever it stops: each message is in one queue, once; and those that were left go on their way after the start."""
    this = node()
    chan = this.raw().channel()
    dead_pair(chan, x_message_ttl=1500 * SLOW)
    bodies = [str(i) for i in range(5000)]
    assert all(fill(chan, "q", bodies))
    wait_for(lambda: chan.counts("dead")[0] > 0, 20 * SLOW, "the first dead letter")
    time.sleep(after)
    this.abort_conns()
    this.kill()
    this.start()
    chan = this.raw().channel()
    chan.wait_count("dead", len(bodies), timeout=30 * SLOW)
    assert sorted(chan.drain("dead"), key=int) == bodies
    assert chan.counts("q")[0] == 0


def test_a_key_that_no_message_can_have(node):
    this = node()
    chan = this.raw().channel()
    declare(chan, "q", x_dead_letter_exchange="amq.fanout", x_dead_letter_routing_key="k" * 70000)
    declare(chan, "dead")
    chan.bind("dead", "amq.fanout")
    chan.publish("", "q", "m" * 1000)
    chan.reject(chan.get_wait("q", no_ack=False).delivery_tag, requeue=False)
    this.await_log("is lost: its routing key is longer than 255 bytes")
    assert chan.counts("dead")[0] == 0


@pytest.mark.parametrize("size", [0, 1000, 131064, 131065, 3000000])
def test_a_body_of_any_size(node, size):
    this = node()
    chan = this.raw().channel()
    dead_pair(chan)
    body = bytes(i * 7 % 251 for i in range(1000)) * (size // 1000 + 1)
    chan.publish("", "q", body[:size], delivery_mode=2, headers={"h": "x" * 1000}, content_type="t",
                 expiration="100000", message_id="id")
    chan.reject(chan.get_wait("q", no_ack=False).delivery_tag, requeue=False)
    event = chan.get_wait("dead", timeout=10 * SLOW, no_ack=False)
    chan.nack(event.delivery_tag)
    barrier(chan)
    for _ in range(2):
        event = chan.get_wait("dead", timeout=10 * SLOW, no_ack=False)
        assert event.body == body[:size]
        assert deaths(event) == [("q", "rejected", 1)]
        assert (event.props["content_type"], event.props["message_id"]) == ("t", "id")
        assert "expiration" not in event.props
        again(this, "kill")
        chan = this.raw().channel()


FLOODED = {"drop-head": {"x-max-length": 10}, "expired": {"x-message-ttl": 0},
           "refused": {"x-max-length": 10, "x-overflow": "reject-publish-dlx"}}


@pytest.mark.parametrize("how", FLOODED)
def test_a_flood_waits_for_its_dead_letters(node, how):
    """A queue that gives up what comes takes no memory, however fast it comes."""
    this = node()
    chan = this.raw().channel()
    chan.declare("dead", arguments={"x-max-length": 10})
    chan.declare("q", arguments={**FLOODED[how], "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    block = chan.encode_publish("", "q", b"x" * 500) * 1000
    before = this.status("RssAnon")
    chan.conn.sock.settimeout(60)
    for _ in range(300 // SLOW):
        chan.conn.send_raw(block)
    chan.sync()
    if SLOW == 1:
        assert this.status("RssAnon") < before + (64 << 10)
    wait_for(lambda: chan.counts("q")[0] == (0 if how == "expired" else 10), what="the bound")
    wait_for(lambda: chan.counts("dead")[0] == 10, what="the dead letters")
    this.await_log("queue 'q' gives up messages faster than they can be sent on")
    chan.conn.close()


@pytest.mark.parametrize("ttl", [0, 20])
def test_one_message_does_not_become_a_thousand_million(node, ttl):
    """Twelve queues, each of which sends its dead letters to the other eleven."""
    this = node()
    chan = this.raw().channel()
    chan.exchange("x", "fanout", durable=True)
    for i in range(12):
        declare(chan, "q%d" % i, x_message_ttl=ttl, x_dead_letter_exchange="x")
        chan.bind("q%d" % i, "x")
    before = this.status("RssAnon")
    chan.publish("x", "", b"x" * 1000, delivery_mode=2)

    def is_over():
        counters = this.overview()["hermes"]["counters"]
        return counters["dead_letters_lost"] > 0 and counters["dead_letters"] + counters["messages_ready"] == 0
    wait_for(is_over, 20 * SLOW, "the end of it")
    counters = this.overview()["hermes"]["counters"]
    assert 1000 < counters["dead_lettered"] <= 12 * 4096
    if SLOW == 1:
        # others are served meanwhile; the node's own processor time, for the machine may be busy
        assert this.overview()["hermes"]["process"]["turn_longest_us"] < 50000
        assert this.status("RssAnon") < before + (64 << 10)
    this.await_log("is lost: one message has become too many dead letters")


@both
def test_a_letter_waits_for_its_exchange(node, how):
    """At least once: an exchange that is not there yet. A purge leaves what waits, and the queue's length counts it."""
    this = node()
    chan = this.raw().channel()
    declare(chan, "q", x_queue_type="quorum", x_overflow="reject-publish", x_max_length=2, x_message_ttl=20,
            x_dead_letter_strategy="at-least-once", x_dead_letter_exchange="later")
    assert all(fill(chan, "q", "12"))
    chan.wait_count("q", 0, timeout=10 * SLOW)
    again(this, how)
    chan = this.raw().channel()
    assert fill(chan, "q", "3") == [False]
    assert chan.call("queue.purge", queue="q").message_count == 0
    declare(chan, "dead")
    chan.exchange("later", "fanout", durable=True)
    chan.bind("dead", "later")
    assert [chan.get_wait("dead", timeout=10 * SLOW).body for _ in "12"] == [b"1", b"2"]
    wait_for(lambda: fill(this.raw().channel(), "q", "3") == [True], what="room")
