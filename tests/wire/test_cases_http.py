"""The cases of test_cases.py that go through the HTTP API. The number in a test's name is the case's."""
# SPDX-License-Identifier: Apache-2.0
import json
import re
from urllib.parse import quote

import pytest

import wire
from api import Api, strict_json
from node import TOP, Node

ODD = "a/b?c#d e+f%2F"
WHERE = quote(ODD, safe="")


@pytest.fixture
def running(node):
    return node()


# ---- K21: one object that cannot be made -----------------------------------------------------
UNKNOWN = {"name": "unknown", "vhost": "/", "type": "x-nobody-knows", "durable": True, "auto_delete": False,
           "internal": False, "arguments": {}}
DEFINITIONS = {
    "rabbit_version": "3.10.8", "users": [], "vhosts": [{"name": "/"}],
    "exchanges": [dict(UNKNOWN, name="before", type="direct"), UNKNOWN, dict(UNKNOWN, name="after", type="fanout")],
    "queues": [{"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}],
    "bindings": [{"source": source, "vhost": "/", "destination": "q", "destination_type": "queue", "routing_key": "k",
                  "arguments": {}} for source in ("before", "unknown", "after")],
}


def k21_the_rest_is_there(this):
    api = Api(this)
    names = {x["name"] for x in api.get("exchanges/%2F")}
    assert {"before", "after"} <= names and "unknown" not in names
    assert [b["source"] for b in api.get("queues/%2F/q/bindings")] == ["", "after", "before"]


def test_k21_over_http(running):
    answer = Api(running).request("POST", "definitions", DEFINITIONS)
    assert answer.status_code == 400
    said = strict_json(answer.content)
    assert "unknown" in str(said) and "x-nobody-knows" in str(said)
    assert "before" not in str(said) and "after" not in str(said)
    k21_the_rest_is_there(running)


def test_k21_at_start(node, tmp_path):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(DEFINITIONS))
    this = node(settings="definitions: {file: '%s'}\n" % file)
    this.await_log("exchange 'unknown' in vhost '/' cannot be made: unknown exchange type 'x-nobody-knows'")
    k21_the_rest_is_there(this)


# ---- K22: JSON of what is empty or idle --------------------------------------------------------
def routes():
    """All GET paths of the route table, without those of one thing."""
    table = (TOP / "mgmt/routes.def").read_text()
    return [where for where in re.findall(r'^ROUTE\w*\(GET, "/api/([^"]+)"', table, re.M) if ":" not in where]


AGES = "?%s" % "&".join("%s_age=60&%s_incr=5" % (kind, kind)
                        for kind in ("lengths", "msg_rates", "data_rates", "node_stats"))


@pytest.mark.parametrize("what", ["nothing", "empty queues"])
def test_k22_valid_json(running, what):
    """Api reads strictly: no doubled keys, no NaN."""
    api, chan = Api(running), running.raw().channel()
    if what == "empty queues":
        for name, arguments in (("q", {}), ("qq", {"x-queue-type": "quorum"}), ("p", {"x-max-priority": 3})):
            chan.declare(name, durable=True, arguments=arguments)
            chan.bind(name, "amq.headers")
        chan.consume("q")
        chan.publish("", "p", "m", headers={})
        chan.sync()
        chan.call("queue.purge", queue="p")
    listed = routes()
    assert len(listed) > 30
    for where in listed:
        for query in ("", AGES, "?disable_stats=true&columns=name,arguments"):
            answer = api.request("GET", where + query)
            assert answer.status_code == 200, (where, answer.status_code)
            if answer.headers["content-type"].startswith("application/json"):
                strict_json(answer.content)
    if what == "empty queues":
        for name in ("q", "qq", "p"):
            for query in ("", AGES):
                queue = api.get("queues/%2F/" + name + query)
                assert isinstance(queue["arguments"], dict) and queue["effective_policy_definition"] == {}
                assert queue["messages"] == 0 and queue["messages_details"]["rate"] <= 0
        assert api.get("queues/%2F/q")["arguments"] == {}
        assert api.get("consumers")[0]["arguments"] == {}
        assert all(b["arguments"] == {} for b in api.get("bindings"))
        assert all(x["arguments"] == {} for x in api.get("exchanges"))
        chan.publish("", "p", "m", headers={"t": {}, "l": []})
        chan.sync()
        got = api("POST", "queues/%2F/p/get", body={"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"})
        assert got[0]["properties"]["headers"] == {"t": {}, "l": []}


# ---- K23: a name full of what a URL is made of --------------------------------------------------
def test_k23_an_odd_name_everywhere(running):
    api, queue = Api(running), "queues/%2F/" + WHERE
    api("PUT", queue, 201, body={"durable": True})
    assert api.get(queue)["name"] == ODD
    assert [q["name"] for q in api.get("queues/%2F")] == [ODD]
    assert running.raw().channel().counts(ODD) == (0, 0)
    page = api.get("queues?page=1&page_size=10&name=" + quote("e+f%2F", safe=""))
    assert [q["name"] for q in page["items"]] == [ODD]
    # as source and destination of bindings, and as a routing key
    exchange = "exchanges/%2F/" + WHERE
    api("PUT", exchange, 201, body={"type": "topic"})
    assert api.get(exchange)["name"] == ODD
    between = "bindings/%%2F/e/%s/q/%s" % (WHERE, WHERE)
    made = api.request("POST", between, {"routing_key": ODD})
    assert made.status_code == 201
    binding, = api.get(between)
    assert (binding["source"], binding["destination"], binding["routing_key"]) == (ODD, ODD, ODD)
    one = between + "/" + quote(binding["properties_key"], safe="")
    assert api.get(one) == binding
    assert made.headers["location"] == "%s/%s" % (WHERE, quote(binding["properties_key"], safe=""))
    assert [b["source"] for b in api.get(queue + "/bindings")] == ["", ODD]
    assert api.get(exchange + "/bindings/source") == [binding]
    for key in (ODD, ODD.replace("+", " "), ODD.replace("%2F", "/")):
        routed = api("POST", exchange + "/publish", body={
            "properties": {}, "routing_key": key, "payload": key, "payload_encoding": "string"})
        assert routed == {"routed": key == ODD}
    got = api("POST", queue + "/get", body={"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"})
    assert [(m["exchange"], m["routing_key"], m["payload"]) for m in got] == [(ODD, ODD, ODD)]
    chan = running.raw().channel()
    chan.consume(ODD, tag=ODD)
    assert chan.deliver().body == ODD.encode()
    assert [(c["queue"]["name"], c["consumer_tag"]) for c in api.get("consumers/%2F")] == [(ODD, ODD)]
    # a policy, a parameter, a user, a vhost of that name
    api("PUT", "policies/%2F/" + WHERE, 201, body={"pattern": "^a/b", "definition": {"max-length": 5}})
    assert (api.get("policies/%2F/" + WHERE)["name"], api.get(queue)["policy"]) == (ODD, ODD)
    api("PUT", "users/" + WHERE, 201, body={"password": ODD, "tags": "administrator"})
    api("PUT", "vhosts/" + WHERE, 201)
    api("PUT", "permissions/%s/%s" % (WHERE, WHERE), 201, body={"configure": ".*", "write": ".*", "read": ".*"})
    same = Api(running, ODD, ODD)
    assert same.get("whoami")["name"] == ODD
    same("PUT", "queues/%s/%s" % (WHERE, WHERE), 201, body={})
    assert same.get("queues/%s/%s" % (WHERE, WHERE))["vhost"] == ODD
    assert same.get("permissions/%s/%s" % (WHERE, WHERE))["vhost"] == ODD
    running.raw(ODD, ODD, ODD).channel().declare(ODD, passive=True)
    api("DELETE", queue + "/contents", 204)
    for where in ("queues/%s/%s" % (WHERE, WHERE), "permissions/%s/%s" % (WHERE, WHERE), "vhosts/" + WHERE,
                  "users/" + WHERE, "policies/%2F/" + WHERE, one, queue, exchange):
        api("DELETE", where, 204)
        assert api.request("DELETE", where).status_code == 404, where


# ---- K24: without the right, over HTTP as over AMQP ----------------------------------------------
PUBLISH = {"properties": {}, "routing_key": "k", "payload": "m", "payload_encoding": "string"}
GET = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
#: over HTTP; over AMQP; the one right that the user has not, if he has the others
OPERATIONS = {
    "delete": ("DELETE", "queues/%2F/q", None, lambda ch: ch.call("queue.delete", queue="q"), "configure", 401),
    "declare": ("PUT", "queues/%2F/new", {}, lambda ch: ch.call("queue.declare", queue="new"), "configure", 401),
    "purge": ("DELETE", "queues/%2F/q/contents", None, lambda ch: ch.call("queue.purge", queue="q"), "read", 401),
    "get": ("POST", "queues/%2F/q/get", GET, lambda ch: ch.call("basic.get", queue="q"), "read", 401),
    "bind, read": ("POST", "bindings/%2F/e/x/q/q", {"routing_key": "k"},
                   lambda ch: ch.call("queue.bind", queue="q", exchange="x", routing_key="k"), "read", 401),
    "bind, write": ("POST", "bindings/%2F/e/x/q/q", {"routing_key": "k"},
                    lambda ch: ch.call("queue.bind", queue="q", exchange="x", routing_key="k"), "write", 401),
    "unbind": ("DELETE", "bindings/%2F/e/x/q/q/old", None,
               lambda ch: ch.call("queue.unbind", queue="q", exchange="x", routing_key="old"), "write", 401),
    "bind exchanges": ("POST", "bindings/%2F/e/x/e/y", {"routing_key": "k"},
                       lambda ch: ch.call("exchange.bind", destination="y", source="x", routing_key="k"), "read", 401),
    "publish": ("POST", "exchanges/%2F/x/publish", PUBLISH, lambda ch: (ch.publish("x", "k", "m"), ch.sync()), "write", 400),
    "delete exchange": ("DELETE", "exchanges/%2F/x", None, lambda ch: ch.call("exchange.delete", exchange="x"),
                        "configure", 401),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("guarded")).start()
    try:
        this.api = Api(this)
        chan = this.raw().channel()
        chan.declare("q", durable=True)
        for name in ("x", "y"):
            chan.exchange(name, "direct", durable=True)
        chan.bind("q", "x", "old")
        chan.publish("", "q", "secret")
        chan.sync()
        this.api("PUT", "users/eve", 201, body={"password": "e", "tags": "management"})
        this.state = lambda: (this.api.get("queues/%2F?columns=name,messages"), this.api.get("bindings"),
                              this.api.get("exchanges?columns=name"))
        yield this
        this.abort_conns()
        this.stop()
    finally:
        this.kill()


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("tag", ["management", "monitoring", "policymaker", "administrator"])
def test_k24_the_same_refusal(guarded, name, tag):
    """With all rights but the one: no tag stands in for it."""
    method, where, body, over_amqp, lacks, status = OPERATIONS[name]
    guarded.api("PUT", "users/eve", 204, body={"password": "e", "tags": tag})
    rights = {right: "" if right == lacks else ".*" for right in ("configure", "write", "read")}
    guarded.api.request("PUT", "permissions/%2F/eve", rights)
    before = guarded.state()
    with pytest.raises(wire.ChannelClosed) as refused:
        over_amqp(guarded.raw("eve", "e").channel())
    assert refused.value.code == 403
    answer = Api(guarded, "eve", "e").request(method, where, body)
    said = strict_json(answer.content)
    assert answer.status_code == status, said
    assert refused.value.text.split(" - ")[1] in said["reason"] or said["reason"] == "Access refused.", said
    assert said["error"] == ("bad_request" if status == 400 else "not_authorised")
    assert guarded.state() == before


@pytest.mark.parametrize("name", OPERATIONS)
def test_k24_no_right_in_the_vhost(guarded, name):
    """An administrator without a permission of his own may look, and no more."""
    method, where, body, *_ = OPERATIONS[name]
    guarded.api("PUT", "users/eve", 204, body={"password": "e", "tags": "administrator"})
    guarded.api.request("DELETE", "permissions/%2F/eve")
    before = guarded.state()
    answer = Api(guarded, "eve", "e").request(method, where, body)
    assert (answer.status_code, strict_json(answer.content)["error"]) == (401, "not_authorised")
    assert guarded.state() == before
