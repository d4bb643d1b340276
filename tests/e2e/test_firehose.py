"""The firehose of a vhost: copies of what is published and delivered, each once, and nothing while it is off."""
# SPDX-License-Identifier: Apache-2.0
import threading

import pika
import pytest

from api import Api
from node import sanitized, wait_for

TRACE = "amq.rabbitmq.trace"


@pytest.fixture
def connect(node):
    """Connections that are closed before the node is to stop."""
    made = []

    def make(this, **kw):
        made.append(this.pika(**kw))
        return made[-1]
    yield make
    for conn in made:
        if conn.is_open:
            conn.close()


def tracing(api, on, vhost="%2F"):
    api("PUT", "vhosts/" + vhost, 204, {"tracing": on})


def watch(conn, *keys):
    chan = conn.channel()
    chan.queue_declare("seen")
    for key in keys or "#":
        chan.queue_bind("seen", TRACE, key)
    return chan


def take(chan, count):
    """The next messages of the firehose, and there are no more."""
    seen = []

    def one():
        m = chan.basic_get("seen", auto_ack=True)
        if m[0] is not None:
            seen.append(m)
        return len(seen) == count
    wait_for(one)
    assert chan.basic_get("seen", auto_ack=True)[0] is None
    return seen


def test_what_is_published_and_delivered(node, connect):
    this = node()
    api = Api(this)
    tracing(api, True)
    seen = watch(connect(this))
    conn = connect(this)
    chan = conn.channel(7)
    for queue in ("a", "b"):
        chan.queue_declare(queue)
        chan.queue_bind(queue, "amq.fanout")
    props = pika.BasicProperties(
        content_type="text/plain", content_encoding="utf-8", headers={"CC": ["c1", "c2"], "n": {"deep": [1, "x"]}},
        delivery_mode=2, priority=3, correlation_id="c", reply_to="r", expiration="100000", message_id="m1",
        timestamp=1234567, type="t", user_id="guest", app_id="app", cluster_id="cl")
    chan.basic_publish("amq.fanout", "key", b"body", props)
    (method, own, body), = take(seen, 1)
    assert (method.exchange, method.routing_key, body, own.delivery_mode) == (TRACE, "publish.amq.fanout", b"body", None)
    told = own.headers
    told["routed_queues"].sort()
    name = told["connection"]
    assert api.get("connections/" + name)["user"] == "guest"
    said = {"content_type": "text/plain", "content_encoding": "utf-8", "headers": props.headers, "delivery_mode": 2,
            "priority": 3, "correlation_id": "c", "reply_to": "r", "expiration": "100000", "message_id": "m1",
            "timestamp": 1234567, "type": "t", "user_id": "guest", "app_id": "app", "cluster_id": "cl"}
    common = {"exchange_name": "amq.fanout", "routing_keys": ["key", "c1", "c2"], "properties": said,
              "node": api.get("overview")["node"], "vhost": "/", "connection": name, "channel": 7, "user": "guest"}
    assert told == {**common, "routed_queues": ["a", "b"]}

    method = chan.basic_get("a")[0]
    (traced, own, body), = take(seen, 1)
    assert (traced.routing_key, body) == ("deliver.a", b"body")
    assert own.headers == {**common, "redelivered": 0}
    chan.basic_nack(method.delivery_tag)
    chan.basic_get("a", auto_ack=True)
    (traced, own, body), = take(seen, 1)
    assert (traced.routing_key, own.headers["redelivered"]) == ("deliver.a", 1)
    chan.basic_consume("b", lambda *_: None, auto_ack=True)
    assert [m[0].routing_key for m in take(seen, 1)] == ["deliver.b"]


def test_other_ways_of_a_message(node, connect):
    """Over HTTP, unroutable, in transactions, as a dead letter; a long body; and no trace of traces."""
    this = node()
    api = Api(this)
    tracing(api, True)
    seen = watch(connect(this))
    api("POST", "exchanges/%2F/amq.default/publish",
        body={"properties": {}, "routing_key": "nowhere", "payload": "p", "payload_encoding": "string"})
    (method, own, body), = take(seen, 1)
    assert (method.routing_key, own.headers["routed_queues"], own.headers["user"]) == ("publish.", [], "guest")
    chan = connect(this).channel()
    chan.queue_declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    chan.queue_declare("dead")
    chan.tx_select()
    chan.basic_publish("", "q", b"x" * 300000)
    chan.tx_rollback()
    assert [m[2] for m in take(seen, 1)] == [b"x" * 300000]
    chan.basic_publish("", "q", b"y")
    chan.tx_commit()
    assert len(take(seen, 1)) == 1
    chan.basic_reject(chan.basic_get("q")[0].delivery_tag, requeue=False)
    chan.tx_commit()
    wait_for(lambda: chan.basic_get("dead", auto_ack=True)[0] is not None)
    keys = [m[0].routing_key for m in take(seen, 2)]
    assert keys == ["deliver.q", "deliver.dead"]
    # What was traced died in its queue: it is not traced again.
    other = connect(this).channel()
    other.queue_declare("mortal", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
                                             "x-max-length": 0})
    other.queue_bind("mortal", TRACE, "publish.amq.direct")
    other.basic_publish("amq.direct", "k", b"z")
    wait_for(lambda: other.basic_get("dead", auto_ack=True)[0] is not None)
    assert [m[0].routing_key for m in take(seen, 1)] == ["publish.amq.direct"]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart(node, connect, how):
    this = node()
    api = Api(this)
    api("PUT", "vhosts/traced", 201, {"tracing": True})
    tracing(api, True)
    tracing(api, False)
    this.kill() if how == "kill" else this.stop()
    this.start()
    api = Api(this)
    assert api.get("vhosts/traced")["tracing"] is True and api.get("vhosts/%2F")["tracing"] is False
    seen = watch(connect(this))
    seen.basic_publish("", "nowhere", b"m")
    take(seen, 0)
    other = connect(this, vhost="traced").channel()
    other.queue_declare("seen")
    other.queue_bind("seen", TRACE, "publish.#")
    other.basic_publish("amq.topic", "k", b"m")
    assert [m[0].routing_key for m in take(other, 1)] == ["publish.amq.topic"]
    tracing(api, False, "traced")
    other.basic_publish("amq.topic", "k", b"m")
    take(other, 0)


def test_all_of_many(node, connect):
    """As fast as one connection can, in both directions: none is missing, none is there twice, and they are in order."""
    this = node()
    tracing(Api(this), True)
    seen = watch(connect(this), "publish.#", "deliver.#")
    many = 10000
    chan, taker = connect(this).channel(), connect(this)
    chan.queue_declare("q")
    got = []
    there = taker.channel()
    there.basic_consume("q", lambda c, m, p, body: got.append(body), auto_ack=True)
    for i in range(many):
        chan.basic_publish("", "q", b"%d" % i)
        if i % 1000 == 0:
            taker.process_data_events(0)
    while len(got) < many:
        taker.process_data_events(1)
    wait_for(lambda: seen.queue_declare("seen", passive=True).method.message_count == 2 * many, timeout=60)
    traced = {"publish.": [], "deliver.q": []}
    for method, _, body in seen.consume("seen", auto_ack=True):
        traced[method.routing_key].append(body)
        if sum(map(len, traced.values())) == 2 * many:
            break
    assert traced["publish."] == traced["deliver.q"] == [b"%d" % i for i in range(many)]


def test_all_of_what_comes_too_fast(node):
    """Publishers wait where more is traced than can be sent on: then it would not fit into what may wait."""
    this = node()
    api = Api(this)
    tracing(api, True)
    many = 20000 if sanitized() else 100000
    conn, taker = this.raw(), this.raw()
    chan = conn.channel()
    for queue, key in (("pub", "publish.#"), ("del", "deliver.#")):
        chan.declare(queue, arguments={"x-max-length": 1})
        chan.bind(queue, TRACE, key)
    chan.declare("q")
    taker.channel().call("basic.consume", queue="q", consumer_tag="t", no_ack=True)
    taker.sock.settimeout(None)

    def drain():
        while taker.sock.recv(1 << 20):
            pass
    thread = threading.Thread(target=drain, daemon=True)
    thread.start()
    blob = chan.encode_publish("", "q", b"x" * 16) * 1000
    for _ in range(many // 1000):
        conn.send_raw(blob)

    def traced(queue):
        return api.get("queues/%2F/" + queue).get("message_stats", {}).get("publish", 0)
    wait_for(lambda: traced("pub") == traced("del") == many, timeout=100)
    assert api.get("overview")["hermes"]["counters"]["notices_dropped"] == 0
    conn.abort()
    taker.sock.shutdown(2)
    thread.join(60)
