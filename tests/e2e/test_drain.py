"""Maintenance: publishers wait, consumers empty the queues, and nothing is lost."""
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import re
import threading
import time

import pytest
import requests
import wire

from api import Api
from node import BINARY, SLOW, Node, clean_env, hermes, wait_for
from shell import at_terminal

WHERE = "hermes/maintenance"


def run(node, *words, **kw):
    return hermes(*words, env={"HERMES_URL": node.http_url}, timeout=60, **kw)


class Client(threading.Thread):
    """Works on a connection of its own until it has nothing to do any more, or the node ends it."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.conn = node.raw()
        self.chan = self.conn.channel()
        self.done = threading.Event()

    def run(self):
        try:
            while not self.is_idle():
                self.work()
                try:
                    self.take(self.conn.next_event(timeout=0.05))
                except wire.Timeout:
                    pass
        except (wire.Eof, wire.ConnectionClosed, OSError):
            pass

    def work(self):
        pass


class Publisher(Client):
    """Publishes numbers to the queue, some ahead of their confirms, until it is told to stop; what it is told meanwhile."""
    AHEAD = 50

    def __init__(self, node, queue, first):
        super().__init__(node)
        self.chan.call("confirm.select")
        self.queue, self.first = queue, first
        self.sent, self.waits, self.confirmed, self.told = 0, set(), [], []

    def is_idle(self):
        return self.done.is_set() and not self.waits

    def work(self):
        while len(self.waits) < self.AHEAD and not self.done.is_set():
            self.sent += 1
            self.waits.add(self.sent)
            self.chan.publish("", self.queue, b"%d" % (self.first + self.sent), delivery_mode=2)

    def take(self, event):
        if event.name == "basic.ack":
            tag = event.delivery_tag
            tags = {t for t in self.waits if t <= tag} if event.multiple else {tag}
            self.waits -= tags
            self.confirmed += [self.first + t for t in tags]
        else:
            self.told.append(event.args["reason"] if event.name == "connection.blocked" else event.name)


class Consumer(Client):
    """Takes what comes, publishes a result of each, on the same channel, and acknowledges; behind `limit` it keeps what it has."""

    def __init__(self, node, queue, results, limit=None):
        super().__init__(node)
        self.results, self.limit, self.got = results, limit, []
        self.chan.qos(20)
        self.chan.consume(queue)

    def is_idle(self):
        return self.done.is_set()

    def take(self, event):
        assert event.name == "basic.deliver", event
        if self.limit is None or len(self.got) < self.limit:
            self.got.append(int(event.body))
            self.chan.publish("", self.results, event.body, delivery_mode=2)
            self.chan.ack(event.delivery_tag)


def confirmed(publishers):
    return sorted(i for p in publishers for i in list(p.confirmed))


def started(node, limit=None):
    """Two publishers of "work" and a consumer, which run; a channel beside them."""
    chan = node.raw().channel()
    for name in ("work", "results"):
        chan.declare(name, durable=True)
    publishers = [Publisher(node, "work", i * 1000000) for i in range(2)]
    consumer = Consumer(node, "work", "results", limit)
    for thread in publishers + [consumer]:
        thread.start()
    wait_for(lambda: all(len(p.confirmed) > 200 for p in publishers) and len(consumer.got) > 100, 60, "messages flow")
    return publishers, consumer, chan


def drained(node, publishers, consumer, chan, reason):
    """Drains it: all that was confirmed is consumed, once, and the rest of what was published waits."""
    said = run(node, "drain", "--wait", "60s", "--reason", reason)
    assert (said.returncode, said.stderr) == (0, "")
    lines = said.stdout.splitlines()
    assert lines[0] == "drained" and lines[1].startswith("nobody takes ") and "in 2 queues" in lines[1], lines
    api = Api(node)
    wait_for(lambda: api.get(WHERE)["channels_waiting"] == 2, 30, "publishers wait")
    wait_for(lambda: all(p.told[-1:] == [reason] for p in publishers), 30, "publishers are told")
    wait_for(lambda: sorted(consumer.got) == confirmed(publishers), 30, "what was confirmed is consumed, once")
    assert chan.counts("work")[0] == 0 and chan.counts("results")[0] == len(consumer.got)
    state = api.get(WHERE)
    assert state["draining"] and state["empty"] and state["reason"] == reason
    assert (state["messages_left"], state["queues_not_taken"]) == (0, 2)
    assert api.get("queues/%2F/work")["messages"] == 0


def test_under_load_without_loss(node):
    this = node()
    chan = this.raw().channel()
    chan.declare("nobody", durable=True)
    for _ in range(3):
        chan.publish("", "nobody", b"x", delivery_mode=2)
    chan.wait_count("nobody", 3)
    chan.conn.close()
    publishers, consumer, chan = started(this)
    drained(this, publishers, consumer, chan, "upgrade")
    before = [len(p.confirmed) for p in publishers]
    assert run(this, "resume").stdout == "publishers go on\n"
    assert Api(this).get(WHERE) == {"draining": False}
    wait_for(lambda: all(len(p.confirmed) > n + 100 for p, n in zip(publishers, before, strict=True)), 30, "publishers go on")
    wait_for(lambda: all(p.told == ["upgrade", "connection.unblocked"] for p in publishers), 30, "publishers are told")

    # once more, and now it is stopped, although publishers wait
    drained(this, publishers, consumer, chan, "now it goes")
    chan.conn.close()
    begin = time.monotonic()
    this.stop()
    assert time.monotonic() - begin < 10 * SLOW
    for thread in publishers + [consumer]:
        thread.join(30 * SLOW)
        assert not thread.is_alive()
    assert sorted(consumer.got) == confirmed(publishers)
    this.start()
    chan = this.raw().channel()
    assert Api(this).get(WHERE) == {"draining": False}
    assert [chan.counts(q)[0] for q in ("work", "nobody", "results")] == [0, 3, len(consumer.got)]
    assert sorted(int(i) for i in chan.drain("results")) == sorted(consumer.got)


def test_killed_while_it_is_drained(node):
    """What was confirmed was consumed or is there afterwards, what waited is not; and it serves everybody."""
    this = node()
    publishers, consumer, _ = started(this, 150)
    Api(this)("PUT", WHERE, 204, {"reason": "killed soon"})
    wait_for(lambda: all(p.told == ["killed soon"] for p in publishers), 30, "publishers are told")
    state = wait_for(lambda: Api(this).get(WHERE).get("messages_left") and Api(this).get(WHERE), 30, "a look at the queues")
    assert state["draining"] and not state["empty"]
    this.kill()
    for thread in publishers + [consumer]:
        thread.join(30 * SLOW)
        assert not thread.is_alive()
    this.start()
    assert Api(this).get(WHERE) == {"draining": False}
    chan = this.raw().channel()
    left = {int(i) for i in chan.drain("work")}
    sent = {p.first + i for p in publishers for i in range(1, p.sent + 1)}
    assert set(confirmed(publishers)) <= left | set(consumer.got) <= sent
    chan.publish("", "work", b"1", delivery_mode=2)
    chan.wait_count("work", 1)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A node for what needs none of its own."""
    this = Node(tmp_path_factory.mktemp("drain")).start()
    yield this
    this.abort_conns()
    this.stop()


def test_what_tells_of_it(calm):
    api = Api(calm)
    url = calm.http_url

    def state():
        metrics = api.request("GET", "../metrics").text
        return (requests.get(url + "/readyz").status_code, requests.get(url + "/healthz").status_code,
                api.request("GET", "health/checks/is-in-service").status_code,
                api.request("GET", "health/checks/ready-to-serve-clients").status_code,
                api.get("nodes")[0]["being_drained"], "\nhermes_draining 1\n" in metrics)

    def told(what):
        return calm.log.count("maintenance " + what)

    before = told("begins"), told("is over")
    assert state() == (200, 200, 200, 200, False, False)
    assert "maintenance" not in run(calm, "status").stdout
    for _ in range(2):
        api("PUT", WHERE, 204, {"reason": "two disks"})
    assert state() == (503, 200, 503, 503, True, True)
    said = run(calm, "status")
    assert said.returncode == 0 and "drained: two disks" in said.stdout
    assert api.get("overview")["hermes"]["maintenance"]["reason"] == "two disks"
    refused = api("POST", "exchanges/%2F/amq.default/publish", 503,
                  {"routing_key": "q", "properties": {}, "payload": "x", "payload_encoding": "string"})
    assert refused["reason"] == "two disks"
    assert api.get("health/checks/chain")["status"] == "ok"         # no client's message
    for _ in range(2):
        api("DELETE", WHERE, 204)
    assert state() == (200, 200, 200, 200, False, False)
    wait_for(lambda: told("is over") > before[1])          # a thread of its own writes it
    assert (told("begins"), told("is over")) == (before[0] + 1, before[1] + 1)


def test_the_command_and_its_limits(calm):
    api = Api(calm)
    chan = calm.raw().channel()
    chan.declare("held")
    chan.publish("", "held", b"x")
    chan.wait_count("held", 1)
    assert chan.get("held", no_ack=False) is not None
    said = run(calm, "drain", "--wait", "100ms")
    assert said.returncode == 1 and said.stderr == "hermes drain: the time is up: 1 messages in 1 queues are left, " \
        "1 of them delivered and not acknowledged\n"
    assert api.get(WHERE)["reason"] == "the node is drained for maintenance"
    said = run(calm, "drain", "--no-wait")
    assert (said.returncode, said.stdout) == (
        0, "the node is being drained: 1 messages in 1 queues are left, 1 of them delivered and not acknowledged\n")
    # somebody ends it while somebody waits
    status, shown = at_terminal(calm, ["drain"], [(b"1 messages in 1 queues are left; Ctrl-C", lambda: api("DELETE", WHERE, 204))])
    assert status == 1 and b"was ended meanwhile" in shown
    for words, want in ((["--wait", "soon"], "not a time"), (["--wait", "1s", "--no-wait"], "it has to be one")):
        said = run(calm, "drain", *words)
        assert said.returncode == 2 and want in said.stderr
    for reason in (5, "a\nb", "x" * 201):
        assert "200 bytes" in api("PUT", WHERE, 400, {"reason": reason})["reason"]
    assert not api.get(WHERE)["draining"]
    chan.call("queue.delete", queue="held")
    assert json.loads(run(calm, "drain", "--json").stdout)["empty"] is True
    api("DELETE", WHERE, 204)


def test_a_move_is_waited_for(calm):
    """What it has not moved yet is going to be taken."""
    api = Api(calm)
    chan = calm.raw().channel()
    for name in ("from", "to"):
        chan.declare(name, durable=True)
    for _ in range(1000):
        chan.publish("", "from", b"x", delivery_mode=2)
    chan.wait_count("from", 1000)
    chan.consume("to", no_ack=True)
    try:
        assert json.loads(run(calm, "drain", "--json").stdout)["empty"] is True
        job = api("POST", "hermes/queues/%2F/from/move", 202, {"destination": "to", "rate": 1})
        # not even what was seen just before it began is taken for an end
        said = run(calm, "drain", "--wait", "1ms")
        assert said.returncode == 1 and said.stderr.endswith("; 1 moves or replays are under way (see hermes jobs)\n"), said
        api("DELETE", "hermes/jobs/%d" % job["id"], 204)
        assert run(calm, "drain").stdout.startswith("drained\nnobody takes ")
    finally:
        api("DELETE", WHERE, 204)
        for name in ("from", "to"):
            api("DELETE", "queues/%2F/" + name, 204)


@pytest.mark.parametrize("count", [1, 3000])
def test_hermes_publish_says_why_it_waits(node, count):
    this = node()
    run(this, "declare", "queue", "q")
    assert run(this, "drain", "--no-wait", "--reason", "a new disk").returncode == 0
    publisher = subprocess.Popen(
        [str(BINARY), "publish", "--key", "q", "--body", "x" * 4000, "--count", str(count)], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env({"HERMES_AMQP": this.amqp_url}))
    try:
        told = publisher.stderr.readline()
        assert re.fullmatch("hermes publish: the node holds publishers back: .*a new disk; waiting\n", told), told
        assert run(this, "resume").returncode == 0
        said, more = publisher.communicate(timeout=60 * SLOW)
    finally:
        publisher.kill()
    assert (publisher.returncode, said, more) == (0, "published%s\n" % (" 3000 messages" if count > 1 else ""), "")
    assert Api(this).get("queues/%2F/q")["messages"] == count
