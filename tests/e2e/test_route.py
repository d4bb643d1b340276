"""Where a message would go: the answer of `route` against what a publish of the same message does, for each type of exchange."""
# SPDX-License-Identifier: Apache-2.0
from urllib.parse import quote

import pytest

from api import Api
from node import Node


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("route")).start()
    try:
        yield Api(this)
        this.stop()
    finally:
        this.kill()


class Place:
    """A vhost with exchanges and queues; tries a message, and publishes it to see."""

    def __init__(self, api, name):
        self.api = api
        self.name = name
        self.queues = []
        api("PUT", "vhosts/" + name, 201, body={})

    def exchange(self, name, type, **arguments):
        self.api("PUT", "exchanges/%s/%s" % (self.name, name), 201, body={
            "type": type, "durable": False, "arguments": {k.replace("_", "-"): v for k, v in arguments.items()}})

    def queue(self, *names):
        self.queues += names
        for name in names:
            self.api("PUT", "queues/%s/%s" % (self.name, name), 201, body={"durable": False})

    def bind(self, source, to, key="", kind="q", **arguments):
        self.api("POST", "bindings/%s/e/%s/%s/%s" % (self.name, source, kind, to), 201, body={
            "routing_key": key, "arguments": {k.replace("_", "-"): v for k, v in arguments.items()}})

    def contents(self):
        """How many messages each queue has; empties them."""
        counts = {}
        for name in self.queues:
            got = self.api("POST", "queues/%s/%s/get" % (self.name, name), body={
                "count": 10, "ackmode": "ack_requeue_false", "encoding": "auto"})
            if got:
                counts[name] = len(got)
        return counts

    def ask(self, exchange, key="", headers=None, want=200, **properties):
        body = {"routing_key": key, "properties": properties}
        if headers is not None:
            body["headers"] = headers
        return self.api("POST", "hermes/exchanges/%s/%s/route" % (self.name, quote(exchange)), want, body=body)

    def same(self, exchange, key="", headers=None, **properties):
        """The answer, which has to be what happens."""
        doc = self.ask(exchange, key, headers, **properties)
        assert self.contents() == {}, "a message came out of a question"
        if headers is not None:
            properties["headers"] = headers
        done = self.api("POST", "exchanges/%s/%s/publish" % (self.name, exchange), body={
            "properties": properties, "routing_key": key, "payload": "x", "payload_encoding": "string"})
        assert self.contents() == dict.fromkeys(doc["queues"], 1)
        assert done["routed"] == doc["routed"] == bool(doc["queues"])
        assert doc["complete"] and (doc["vhost"], doc["routing_key"]) == (self.name, key)
        led = {s["destination"] for s in doc["steps"] if s["destination_type"] == "queue"}
        assert led == set(doc["queues"]) and len(set(doc["queues"])) == len(doc["queues"])
        return doc


@pytest.fixture
def place(api, request):
    name = request.node.name.partition("[")[0]
    yield Place(api, name)
    api("DELETE", "vhosts/" + name, 204)


def steps(doc):
    return [(s["source"], s["via"], s["destination"]) for s in doc["steps"]]


def test_direct(place):
    place.queue("a", "b")
    place.exchange("x", "direct")
    place.bind("x", "a", "k")
    place.bind("x", "a", "other")
    place.bind("x", "b", "k")
    doc = place.same("x", "k")
    assert sorted(doc["queues"]) == ["a", "b"]
    assert doc["exchanges"] == [{"name": "x", "type": "direct", "depth": 0}]
    assert {(s["routing_key"], s["properties_key"], s["via"]) for s in doc["steps"]} == {("k", "k", "binding")}
    assert place.same("x", "none")["steps"] == []


def test_fanout_and_bindings_twice(place):
    place.queue("a", "b")
    place.exchange("x", "fanout")
    for key in ("", "k"):
        place.bind("x", "a", key)
    place.bind("x", "b")
    doc = place.same("x", "whatever")
    assert sorted(s["again"] for s in doc["steps"]) == [False, False, True]
    assert len(doc["steps"]) == 3


@pytest.mark.parametrize("key", ["a.b.c", "a", "", "b.b", "x.y.z"])
def test_topic(place, key):
    place.queue("one", "two", "all")
    place.exchange("x", "topic")
    for pattern in ("a.#", "a.*.c", "#.c"):
        place.bind("x", "one", pattern)
    place.bind("x", "two", "*.b")
    place.bind("x", "all", "#")
    doc = place.same("x", key)
    assert "all" in doc["queues"]


@pytest.mark.parametrize("headers", [{}, {"a": 1}, {"a": 1, "b": "x"}, {"b": "x"}, {"a": "1"}])
def test_headers(place, headers):
    place.queue("all", "any")
    place.exchange("x", "headers")
    place.bind("x", "all", x_match="all", a=1, b="x")
    place.bind("x", "any", x_match="any", a=1, b="x")
    doc = place.same("x", "", headers)
    assert all(s["arguments"]["x-match"] == s["destination"] for s in doc["steps"])
    beside = place.api("POST", "hermes/exchanges/%s/x/route" % place.name, body={"properties": {"headers": headers}})
    assert doc == beside


def test_consistent_hash(place):
    place.queue(*"abcd")
    for name, arguments in (("key", {}), ("header", {"hash_header": "h"}), ("property", {"hash_property": "message_id"})):
        place.exchange(name, "x-consistent-hash", **arguments)
        for queue in "abcd":
            place.bind(name, queue, "10")
    chosen = {"key": set(), "header": set(), "property": set()}
    for n in range(12):
        chosen["key"] |= set(place.same("key", "k%d" % n)["queues"])
        chosen["header"] |= set(place.same("header", "k", {"h": n})["queues"])
        chosen["property"] |= set(place.same("property", "k", message_id="m%d" % n)["queues"])
    assert all(len(queues) > 1 for queues in chosen.values())


def test_delayed(place):
    place.queue("a")
    place.exchange("x", "x-delayed-message", x_delayed_type="direct")
    place.bind("x", "a", "k")
    assert place.same("x", "k")["exchanges"][0] == {"name": "x", "type": "x-delayed-message", "depth": 0}
    doc = place.ask("x", "k", {"x-delay": 3600000})
    assert (doc["queues"], doc["exchanges"][0]["delay_ms"]) == (["a"], 3600000)
    assert "x-delay" in place.ask("x", "k", {"x-delay": "soon"}, want=400)["reason"]
    # what is kept goes on when it is due
    doc = place.ask("x", "k", {"x-delay": 1})
    place.api("POST", "exchanges/%s/x/publish" % place.name, body={
        "properties": {"headers": {"x-delay": 1}}, "routing_key": "k", "payload": "x", "payload_encoding": "string"})
    got = []
    while not got:
        got = place.contents()
    assert got == dict.fromkeys(doc["queues"], 1)


def test_exchanges_bound_to_exchanges_in_a_circle(place):
    place.queue("a", "b")
    for name in ("x", "y", "z"):
        place.exchange(name, "fanout")
    place.bind("x", "y", kind="e")
    place.bind("y", "z", kind="e")
    place.bind("z", "x", kind="e")
    place.bind("z", "a")
    place.bind("y", "b")
    doc = place.same("x", "k")
    assert [(x["name"], x["depth"]) for x in doc["exchanges"]] == [("x", 0), ("y", 1), ("z", 2)]
    assert [s["again"] for s in doc["steps"] if s["destination"] == "x"] == [True]


def test_alternates(place):
    place.queue("a", "late")
    place.exchange("x", "direct", alternate_exchange="y")
    place.exchange("y", "topic", alternate_exchange="z")
    place.exchange("z", "fanout", alternate_exchange="nobody")
    place.bind("x", "a", "k")
    assert steps(place.same("x", "k")) == [("x", "binding", "a")]
    doc = place.same("x", "other")
    assert steps(doc) == [("x", "alternate", "y"), ("y", "alternate", "z"), ("z", "alternate", "nobody")]
    assert doc["steps"][2]["missing"] is True and doc["routed"] is False
    place.bind("z", "late")
    assert place.same("x", "other")["queues"] == ["late"]


def test_the_default_exchange(place):
    place.queue("a", "b")
    doc = place.same("amq.default", "a")
    assert (doc["exchange"], steps(doc)) == ("", [("", "name", "a")])
    assert place.same("amq.default", "none")["queues"] == []
    assert place.same("amq.default", "a", {"CC": ["b", "a"]})["queues"] == ["a", "b"]
    assert place.same("amq.direct", "x", {"CC": ["b"]})["queues"] == []
    assert "CC" in place.ask("amq.default", "a", {"CC": "b"}, want=400)["reason"]


def test_internal_exchanges_are_shown(place):
    place.api("PUT", "exchanges/%s/in" % place.name, 201, body={"type": "fanout", "internal": True})
    place.queue("a")
    place.bind("in", "a")
    doc = place.ask("in")
    assert doc["internal"] is True and doc["queues"] == ["a"]


def test_what_is_refused(place):
    place.ask("nobody", want=404)
    place.ask("amq.direct", key=5, want=400)
    place.ask("amq.direct", key="k" * 256, want=400)
    place.ask("amq.direct", headers="x", want=400)
    place.api("POST", "hermes/exchanges/%s/amq.direct/route" % place.name, 400, body={"properties": 5})
    place.api("POST", "hermes/exchanges/nowhere/amq.direct/route", 404, body={})
    assert place.api("POST", "hermes/exchanges/%s/amq.direct/route" % place.name, body={})["queues"] == []


def test_an_answer_has_an_end(place):
    """More steps than an answer holds; long arguments."""
    place.exchange("x", "fanout")
    place.exchange("long", "headers")
    place.queue("a")
    for n in range(1001):
        place.bind("x", "a", str(n))
    for n in range(40):
        place.bind("long", "a", str(n), x_match="any", a=1, note="y" * 20000)
    doc = place.ask("x")
    assert (doc["complete"], len(doc["steps"]), doc["queues"]) == (False, 1000, ["a"])
    doc = place.ask("long", headers={"a": 1})
    assert doc["complete"] is False and len(doc["steps"]) < 40 and doc["queues"] == ["a"]
