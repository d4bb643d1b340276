"""What happened, and by whom: messages of amq.rabbitmq.event and lines of the log."""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import time

import pika
import pytest
import wire

from api import Api
from node import wait_for

EVENTS = "amq.rabbitmq.event"


class Watch:
    def __init__(self, this, *keys):
        self.conn = this.pika()
        self.chan = self.conn.channel()
        self.chan.queue_declare("events")
        for key in keys:
            self.chan.queue_bind("events", EVENTS, key)

    def ready(self):
        """What is there now: keys and headers, without what differs each time."""
        got = []
        while True:
            method, props, body = self.chan.basic_get("events", auto_ack=True)
            if method is None:
                return got
            assert (method.exchange, body, props.delivery_mode) == (EVENTS, b"", 2)
            assert props.headers.pop("timestamp_in_ms") // 1000 == props.timestamp
            got.append((method.routing_key, props.headers))

    def take(self, *keys):
        """The next events have these keys; their headers."""
        got = []

        def enough():
            got.extend(self.ready())
            return len(got) >= len(keys)
        wait_for(enough)
        assert [key for key, _ in got] == list(keys)
        return [headers for _, headers in got]


@pytest.fixture
def watch(node):
    made = []

    def make(this, *keys):
        made.append(Watch(this, *keys))
        return made[-1]
    yield make
    for w in made:
        w.conn.close()


def test_the_exchange(node):
    this = node()
    assert not re.search(r"(exchange|vhost)\.(created|deleted)", this.log)   # of those that a node begins with
    api = Api(this)
    api("PUT", "vhosts/other", 201)
    row = api.get("exchanges/%2F/" + EVENTS)
    assert (row["type"], row["durable"], row["internal"], row["auto_delete"]) == ("topic", True, True, False)
    api("GET", "exchanges/other/" + EVENTS, 404)
    conn = this.pika()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="internal exchange"):
        chan = conn.channel()
        chan.basic_publish(EVENTS, "k", b"forged")
        chan.queue_declare("q")
    conn.close()


def test_of_clients(node, watch):
    this = node()
    seen = watch(this, "connection.*", "channel.*", "consumer.*", "user.authentication.*")
    conn = this.pika(client_properties={"connection_name": "mine"})
    login, opened = seen.take("user.authentication.success", "connection.created")
    name = opened["name"]
    assert (login["name"], login["connection_name"], login["auth_mechanism"]) == ("guest", name, "PLAIN")
    assert {k: opened[k] for k in ("user", "vhost", "user_provided_name", "user_who_performed_action", "ssl", "peer_host")} \
        == {"user": "guest", "vhost": "/", "user_provided_name": "mine", "user_who_performed_action": "guest", "ssl": False,
            "peer_host": "127.0.0.1"}
    assert '{<<"connection_name">>,longstr,<<"mine">>}' in opened["client_properties"]
    chan = conn.channel(3)
    made, = seen.take("channel.created")
    assert (made["number"], made["name"], made["user"]) == (3, name + " (3)", "guest")
    chan.queue_declare("q")
    tag = chan.basic_consume("q", lambda *_: None, consumer_tag="t", exclusive=True, arguments={"x-priority": 4})
    consumer, = seen.take("consumer.created")
    assert consumer == {"consumer_tag": "t", "queue": "q", "vhost": "/", "channel": made["pid"], "ack_required": True,
                        "exclusive": True, "prefetch_count": 0, "arguments": ['{<<"x-priority">>,signedint,4}'],
                        "user_who_performed_action": "guest"}
    chan.basic_cancel(tag)
    assert seen.take("consumer.deleted")[0]["consumer_tag"] == "t"
    conn.close()
    closed, gone = seen.take("channel.closed", "connection.closed")
    assert (closed["pid"], gone["pid"], gone["name"]) == (made["pid"], opened["pid"], name)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        this.pika(password="wrong")
    failed, gone = seen.take("user.authentication.failure", "connection.closed")
    assert failed["name"] == "guest" and failed["error"]
    assert "connection.created" not in this.log     # a line of its own says it; at level debug there is more


def test_of_topology(node, watch):
    this = node()
    seen = watch(this, "queue.*", "exchange.*", "binding.*")
    conn = this.pika()
    chan = conn.channel()
    seen.take("binding.created")    # its own, the last one
    chan.queue_declare("q", durable=True, arguments={"x-max-length": 5})
    assert seen.take("queue.created") == [
        {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "exclusive": False,
         "arguments": ['{<<"x-max-length">>,signedint,5}'], "user_who_performed_action": "guest"}]
    chan.queue_declare("q", durable=True, arguments={"x-max-length": 5})
    chan.exchange_declare("x", "topic", auto_delete=True)
    assert seen.take("exchange.created") == [
        {"name": "x", "vhost": "/", "type": "topic", "durable": False, "auto_delete": True, "internal": False,
         "arguments": [], "user_who_performed_action": "guest"}]
    chan.queue_bind("q", "x", "a.*", {"h": "v"})
    bound = {"source_name": "x", "source_kind": "exchange", "destination_name": "q", "destination_kind": "queue",
             "routing_key": "a.*", "arguments": ['{<<"h">>,longstr,<<"v">>}'], "vhost": "/",
             "user_who_performed_action": "guest"}
    assert seen.take("binding.created") == [bound]
    Api(this)("DELETE", "queues/%2F/q", 204)
    gone, unbound, source = seen.take("queue.deleted", "binding.deleted", "exchange.deleted")
    assert gone == {"name": "q", "vhost": "/", "user_who_performed_action": "guest"}
    assert (unbound, source["name"]) == (bound, "x")
    chan.queue_declare("own", exclusive=True)
    seen.take("queue.created")
    conn.close()
    assert seen.take("queue.deleted")[0]["user_who_performed_action"] == "rmq-internal"
    wait_for(lambda: "guest@/: queue.created: 'q' in vhost '/'" in this.log)
    wait_for(lambda: "guest: queue.deleted: 'q' in vhost '/'" in this.log)


def test_of_operators(node, watch):
    this = node()
    api = Api(this)
    seen = watch(this, "vhost.#", "user.#", "permission.*", "topic.#", "policy.*", "operator.#", "parameter.*")
    by = {"user_who_performed_action": "guest"}
    api("PUT", "users/u", 201, {"password": "p", "tags": "monitoring,mine"})
    assert seen.take("user.created", "user.tags.set") == [
        {"name": "u", **by}, {"name": "u", "tags": ["monitoring", "mine"], **by}]
    api("PUT", "users/u", 204, {"password": "q", "tags": ""})
    assert seen.take("user.password.changed", "user.tags.set")[1] == {"name": "u", "tags": [], **by}
    api("PUT", "vhosts/v", 201, {"description": "d", "tags": "a"})
    made, rights = seen.take("vhost.created", "permission.created")
    assert made == {"name": "v", "description": "d", "tags": ["a"], "default_queue_type": "undefined", "tracing": False,
                    "cluster_state": {api.get("overview")["node"]: "running"}, **by}
    assert rights == {"user": "guest", "vhost": "v", "configure": ".*", "write": ".*", "read": ".*", **by}
    api("PUT", "vhosts/v", 204, {"tracing": True})
    assert seen.take("vhost.updated")[0]["tracing"] is True
    api("PUT", "permissions/v/u", 201, {"configure": "a", "write": "b", "read": "c"})
    seen.take("permission.created")
    api("PUT", "topic-permissions/v/u", 201, {"exchange": "amq.topic", "write": "b", "read": "c"})
    assert seen.take("topic.permission.created") == [
        {"user": "u", "vhost": "v", "exchange": "amq.topic", "write": "b", "read": "c", **by}]
    policy = {"pattern": "^a", "definition": {"max-length": 5}, "priority": 1, "apply-to": "queues"}
    api("PUT", "policies/v/p", 201, policy)
    assert seen.take("policy.set") == [{"name": "p", "vhost": "v", "operator": False, **policy, **by}]
    api("PUT", "operator-policies/v/o", 201, policy)
    api("DELETE", "policies/v/p", 204)
    api("DELETE", "operator-policies/v/o", 204)
    seen.take("policy.set", "policy.cleared", "operator.policy.cleared")
    api("PUT", "vhost-limits/v/max-queues", 204, {"value": 5})
    api("DELETE", "vhost-limits/v/max-queues", 204)
    assert [e.get("max-queues") for e in seen.take("vhost.limits.set", "vhost.limits.cleared")] == [5, None]
    api("PUT", "user-limits/u/max-channels", 204, {"value": 7})
    api("PUT", "global-parameters/g", 201, {"name": "g", "value": {"a": 1}})
    limits, parameter = seen.take("user.limits.set", "parameter.set")
    assert limits == {"name": "limits", "username": "u", "max-channels": 7, **by}
    assert json.loads(parameter["value"]) == {"a": 1} and parameter["component"] == "global"
    api("DELETE", "users/u", 204)
    seen.take("user.deleted", "permission.deleted", "topic.permission.deleted")
    api("DELETE", "vhosts/v", 204)
    assert seen.take("vhost.deleted", "permission.deleted")[0] == {"name": "v", **by}
    for line in ("guest: policy.set: 'p' in vhost 'v'", "guest: vhost.deleted: 'v'", "guest: user.limits.set: 'u'"):
        wait_for(lambda: line in this.log)


def test_what_goes_with_a_vhost(node, watch):
    """By whom, though it goes in later turns; but not the exchanges that every vhost has."""
    this = node()
    api = Api(this)
    api("PUT", "vhosts/v", 201)
    for name in ("a", "b"):
        api("PUT", "queues/v/" + name, 201, {"durable": True})
    api("PUT", "exchanges/v/x", 201, {"type": "topic"})
    seen = watch(this, "queue.deleted", "exchange.*")
    api("DELETE", "vhosts/v", 204)
    gone = seen.take("queue.deleted", "queue.deleted", "exchange.deleted")
    assert gone == [{"name": name, "vhost": "v", "user_who_performed_action": "guest"} for name in ("a", "b", "x")]
    api("PUT", "vhosts/w", 201)
    seen.take()


def test_of_logins_over_http(node, watch):
    """Those that were refused: each request logs in."""
    this = node()
    seen = watch(this, "user.authentication.*")
    Api(this, "guest", "wrong")("GET", "overview", 401)
    Api(this, "nobody", "wrong")("GET", "overview", 401)
    guest, nobody = seen.take("user.authentication.failure", "user.authentication.failure")
    assert guest.pop("peer_port") > 0
    assert guest == {"name": "guest", "connection_type": "http", "peer_host": "127.0.0.1", "error": "wrong password"}
    assert nobody["name"] == "nobody"


def test_of_alarms(node, watch):
    """Near the limit the alarm may come and go more than once: what connections have read counts as well."""
    this = node("memory: {limit: 8MiB, spill: 0%}\n")
    seen = watch(this, "alarm.*")
    conn = this.raw()
    chan = conn.channel()
    chan.declare("q")
    for _ in range(9):
        chan.publish("", "q", b"x" * 1000000)
    events = wait_for(seen.ready)
    api = Api(this)
    api("DELETE", "queues/%2F/q/contents", 204)

    def over():
        events.extend(seen.ready())
        return events[-1][0] == "alarm.cleared" and not api.get("nodes")[0]["mem_alarm"]
    wait_for(over)
    assert [key for key, _ in events] == ["alarm.set", "alarm.cleared"] * (len(events) // 2)
    name = api.get("overview")["node"]
    assert all(alarm == {"source": "memory", "node": name} for _, alarm in events)
    conn.abort()


def test_lines_of_a_flood(node):
    """So many lines of one kind, and how many were left out."""
    this = node()
    conn = this.pika()
    chan = conn.channel()
    began = time.monotonic()
    for i in range(500):
        chan.queue_declare("q%d" % i)
    wait_for(lambda: "queue.created: 'q199'" in this.log)
    conn.close()
    spans = 1 + int((time.monotonic() - began) / 10)        # each of 10 s has its own
    assert 150 <= this.log.count("queue.created") <= 201 * spans


def counters(api):
    return api.get("overview")["hermes"]["counters"]


def test_a_flood_that_nobody_takes(node):
    """Of 10,000 queues none is left out. Where memory is short, events are: counted, told, and nobody else is harmed."""
    this = node("memory: {limit: 30MiB, spill: 0%}\n")
    api = Api(this)
    conn = this.raw()
    chan = conn.channel()
    for queue, key in (("events", "queue.*"), ("alarms", "alarm.*")):
        chan.declare(queue)
        chan.bind(queue, EVENTS, key)
    chan.declare("mine")
    chan.publish("", "mine", b"before")
    declare = "queue.declare"
    before = chan.call(declare, queue="events", passive=True).message_count     # of the two that came after it
    for i in range(10000):
        chan.send(declare, queue="q%d" % i, nowait=True)
        if i % 500 == 499:
            chan.call(declare, queue="mine", passive=True, timeout=60)
    wait_for(lambda: chan.call(declare, queue="events", passive=True, timeout=60).message_count == before + 10000, timeout=60)
    assert counters(api)["notices_dropped"] == 0

    pair = b"".join(wire.enc_frame(wire.FRAME_METHOD, chan.number, wire.enc_method(name, queue="short", nowait=True))
                    for name in (declare, "queue.delete"))

    def more():
        conn.send_raw(pair * 2000)
        chan.call(declare, queue="mine", passive=True, timeout=60)
        return counters(api)["notices_dropped"] > 5000
    wait_for(more, timeout=100)
    memory = api.get("overview")["hermes"]["memory"]
    assert memory["held"] < memory["limit"] * 1.1       # the hard limit, above which nobody may publish at all
    this.await_log(r"a message for exchange 'amq.rabbitmq.event' is dropped: memory is short")
    assert this.log.count("is dropped: memory is short") < 20       # but not each
    assert chan.get_wait("alarms").args["routing_key"] == "alarm.set"
    assert chan.get("mine").body == b"before"
    api("DELETE", "queues/%2F/events/contents", 204)
    assert chan.get_wait("alarms").args["routing_key"] == "alarm.cleared"
    chan.publish("", "mine", b"after")
    assert chan.get_wait("mine").body == b"after"
    conn.abort()
