"""Every AMQP operation, what right it needs, and that no tag stands in for it.

The table has a row for each method that a client may send on a channel (amqp/methods.def), so that a new one cannot be
forgotten. Rights are changed while the connection is open: nothing that was allowed before is remembered.
"""
# SPDX-License-Identifier: Apache-2.0
import base64
import json
import re
import urllib.request

import pytest

import wire
from node import SLOW, TOP, Node

TAGS = ("", "management", "policymaker", "monitoring", "administrator", "impersonator", "own")
KINDS = ("configure", "write", "read")


def call(method, **args):
    return lambda ch: ch.call(method, **args)


def publish(exchange, **props):
    def run(ch):
        ch.publish(exchange, "k", b"m", **props)
        ch.sync()
    return run


def on_tag_zero(method):
    """All that is not settled, which is nothing."""
    def run(ch):
        ch.send(method, delivery_tag=0, multiple=True)
        ch.sync()
    return run


def reject(ch):
    """Of a delivery of its own; it was got while there was a right to read."""
    with pytest.raises(wire.ChannelClosed) as refusal:
        ch.send("basic.reject", delivery_tag=1, requeue=True)
        ch.sync()
    assert refusal.value.code == 406


DLX = {"x-dead-letter-exchange": "x"}
AE = {"alternate-exchange": "x"}
C_Q, W_Q, R_Q = (("configure", "queue", "q"), ("write", "queue", "q"), ("read", "queue", "q"))
C_X, W_X, R_X = (("configure", "exchange", "x"), ("write", "exchange", "x"), ("read", "exchange", "x"))
#: method, what it does, what it needs
OPERATIONS = [
    ("exchange.declare", call("exchange.declare", exchange="x", type="topic"), [C_X]),
    ("exchange.declare", call("exchange.declare", exchange="x", passive=True), []),
    ("exchange.declare", call("exchange.declare", exchange="new", type="direct", arguments=AE),
     [("configure", "exchange", "new"), ("read", "exchange", "new"), W_X]),
    ("exchange.delete", call("exchange.delete", exchange="x"), [C_X]),
    ("exchange.bind", call("exchange.bind", destination="x", source="amq.topic"),
     [W_X, ("read", "exchange", "amq.topic")]),
    ("exchange.unbind", call("exchange.unbind", destination="x", source="amq.topic"),
     [W_X, ("read", "exchange", "amq.topic")]),
    ("queue.declare", call("queue.declare", queue="q"), [C_Q]),
    ("queue.declare", call("queue.declare", queue="q", passive=True), []),
    ("queue.declare", call("queue.declare", queue="new", arguments=DLX),
     [("configure", "queue", "new"), ("read", "queue", "new"), W_X]),
    ("queue.bind", call("queue.bind", queue="q", exchange="x"), [W_Q, R_X]),
    ("queue.unbind", call("queue.unbind", queue="q", exchange="x"), [W_Q, R_X]),
    ("queue.purge", call("queue.purge", queue="q"), [R_Q]),
    ("queue.delete", call("queue.delete", queue="q"), [C_Q]),
    ("basic.publish", publish("x"), [W_X]),
    ("basic.publish", publish(""), [("write", "exchange", "amq.default")]),
    ("basic.get", call("basic.get", queue="q"), [R_Q]),
    ("basic.consume", call("basic.consume", queue="q"), [R_Q]),
    ("basic.cancel", call("basic.cancel", consumer_tag="none"), []),
    ("basic.qos", call("basic.qos", prefetch_count=5), []),
    ("basic.ack", on_tag_zero("basic.ack"), []),
    ("basic.nack", on_tag_zero("basic.nack"), []),
    ("basic.reject", reject, []),
    ("basic.recover", call("basic.recover", requeue=True), []),
    ("basic.recover_async", lambda ch: ch.send("basic.recover-async", requeue=True), []),
    ("confirm.select", call("confirm.select"), []),
    ("tx.select", call("tx.select"), []),
    ("tx.commit", lambda ch: (ch.call("tx.select"), ch.call("tx.commit")), []),
    ("tx.rollback", lambda ch: (ch.call("tx.select"), ch.call("tx.rollback")), []),
    ("channel.flow", call("channel.flow", active=True), []),
    ("channel.close", call("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0), []),
    ("access.request", call("access.request", realm="/data", active=True), []),
]
#: answers to what the node never asks: 503 for everybody
NO_OPERATIONS = {"channel.flow_ok", "channel.close_ok", "basic.cancel_ok"}


def test_no_method_is_missing():
    rows = re.findall(r"^AMQP_\w+\(\s*(\w+),\s*(\w+),.*ON_CHANNEL", (TOP / "amqp/methods.def").read_text(), re.M)
    methods = {("%s.%s" % row).lower() for row in rows}
    assert len(methods) > 25
    assert {row[0] for row in OPERATIONS} | NO_OPERATIONS == methods


class World:
    def __init__(self, node):
        self.node = node
        self.auth = "Basic " + base64.b64encode(b"guest:guest").decode()
        for vhost in ("own", "foreign"):
            self.put("vhosts/" + vhost)
        for tag in TAGS:
            self.put("users/u-" + tag, {"password": "pw", "tags": tag})
            self.permit(tag)
        self.keeper = node.raw(vhost="own").channel()
        self.conns = {tag: node.raw("u-" + tag, "pw", "own") for tag in TAGS}
        self.restore()

    def put(self, path, body=None):
        request = urllib.request.Request(self.node.http_url + "/api/" + path, method="PUT",
                                         data=json.dumps(body or {}).encode(), headers={"Authorization": self.auth})
        with urllib.request.urlopen(request, timeout=20 * SLOW) as answer:
            assert answer.status in (201, 204)

    def permit(self, tag, rights=()):
        """Exactly these, or none."""
        names = {kind: [re.escape(r[2]) for r in rights if r[0] == kind] for kind in KINDS}
        self.put("permissions/own/u-" + tag, {kind: "^(%s)$" % "|".join(names[kind]) for kind in KINDS})

    def restore(self):
        self.keeper.call("queue.delete", queue="new")
        self.keeper.call("exchange.delete", exchange="new")
        self.keeper.declare("q")
        self.keeper.exchange("x", "topic")

    def channel(self, tag):
        return self.conns[tag].channel()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    node = Node(tmp_path_factory.mktemp("rights")).start()
    try:
        yield World(node)
        node.abort_conns()
        node.stop()
    finally:
        node.kill()


@pytest.mark.parametrize("number", range(len(OPERATIONS)), ids=["%d-%s" % (i, o[0]) for i, o in enumerate(OPERATIONS)])
def test_operation(world, number):
    _, run, needs = OPERATIONS[number]
    for tag in TAGS:
        for missing in needs:
            world.permit(tag, [n for n in needs if n != missing])
            with pytest.raises(wire.ChannelClosed) as refusal:
                run(world.channel(tag))
            assert refusal.value.code == 403
            assert refusal.value.text == ("ACCESS_REFUSED - access to %s '%s' in vhost 'own' refused for user 'u-%s'"
                                          % (missing[1], missing[2], tag))
        world.permit(tag, needs)
        run(world.channel(tag))
        world.restore()


@pytest.mark.parametrize("tag", TAGS)
def test_foreign_vhost(world, tag):
    with pytest.raises(wire.ConnectionClosed) as refusal:
        world.node.raw("u-" + tag, "pw", "foreign")
    assert refusal.value.code == 530
    assert refusal.value.text == "NOT_ALLOWED - access to vhost 'foreign' refused for user 'u-%s'" % tag


@pytest.mark.parametrize("tag", TAGS)
def test_user_id(world, tag):
    """Only an impersonator publishes in another's name."""
    world.permit(tag, [W_X])
    publish("x", user_id="u-" + tag)(world.channel(tag))
    if tag == "impersonator":
        publish("x", user_id="guest")(world.channel(tag))
        return
    with pytest.raises(wire.ChannelClosed) as refusal:
        publish("x", user_id="guest")(world.channel(tag))
    assert refusal.value.code == 406
