"""Programs as people write them with pika: work queue, publish and subscribe, topics, RPC, confirms."""
# SPDX-License-Identifier: Apache-2.0
import json
import threading
import urllib.request

import pika
import pika.exceptions
import pytest


def test_work_queue(node):
    """Every task is done, none is lost when a worker dies."""
    this = node()
    conn = this.pika()
    ch = conn.channel()
    ch.queue_declare("tasks", durable=True)
    ch.confirm_delivery()
    for i in range(50):
        ch.basic_publish("", "tasks", b"%d" % i, pika.BasicProperties(delivery_mode=2), mandatory=True)
    done = []

    dying = this.raw()                  # a worker that holds five tasks and vanishes
    dch = dying.channel()
    dch.qos(5)
    dch.consume("tasks")
    held = [int(dch.deliver().body) for _ in range(5)]
    dying.abort()

    redelivered = 0
    for method, _, body in ch.consume("tasks", inactivity_timeout=10):
        assert method is not None, "tasks are missing: %d of 50" % len(done)
        redelivered += method.redelivered
        done.append(int(body))
        ch.basic_ack(method.delivery_tag)
        if len(done) == 50:
            break
    assert sorted(done) == list(range(50))
    assert held == [0, 1, 2, 3, 4]
    assert redelivered == 5
    conn.close()


def test_publish_and_subscribe(node):
    this = node()
    conn = this.pika()
    ch = conn.channel()
    ch.exchange_declare("logs", "topic")
    got = {}
    for key in ("#", "*.error", "db.*"):
        queue = ch.queue_declare("", exclusive=True).method.queue
        ch.queue_bind(queue, "logs", key)
        got[key] = queue
    for key in ("db.error", "db.info", "web.error"):
        ch.basic_publish("logs", key, key)

    def drain(queue):
        out = []
        while True:
            method, _, body = ch.basic_get(queue, auto_ack=True)
            if method is None:
                return out
            out.append(body.decode())

    assert drain(got["#"]) == ["db.error", "db.info", "web.error"]
    assert drain(got["*.error"]) == ["db.error", "web.error"]
    assert drain(got["db.*"]) == ["db.error", "db.info"]
    conn.close()


@pytest.mark.parametrize("direct", [False, True], ids=["queue", "direct reply-to"])
def test_rpc(node, direct):
    this = node()
    ready = threading.Event()

    def server():
        conn = this.pika()
        ch = conn.channel()
        ch.queue_declare("rpc", auto_delete=True)
        ready.set()
        for method, props, body in ch.consume("rpc", inactivity_timeout=20):
            if method is None:
                break
            ch.basic_publish("", props.reply_to, body.upper(),
                             pika.BasicProperties(correlation_id=props.correlation_id))
            ch.basic_ack(method.delivery_tag)
            if body == b"end":
                break
        conn.close()

    thread = threading.Thread(target=server)
    thread.start()
    assert ready.wait(20)
    conn = this.pika()
    ch = conn.channel()
    replies = "amq.rabbitmq.reply-to" if direct else ch.queue_declare("", exclusive=True).method.queue
    answers = []
    ch.basic_consume(replies, lambda _c, _m, props, body: answers.append((props.correlation_id, body)),
                     auto_ack=True)
    for i, word in enumerate(("a", "b", "end")):
        ch.basic_publish("", "rpc", word, pika.BasicProperties(reply_to=replies, correlation_id=str(i)))
    while len(answers) < 3:
        conn.process_data_events(time_limit=1)
    assert answers == [("0", b"A"), ("1", b"B"), ("2", b"END")]
    thread.join(20)
    assert not thread.is_alive()
    conn.close()


def test_unroutable_with_confirms(node):
    conn = node().pika()
    ch = conn.channel()
    ch.confirm_delivery()
    with pytest.raises(pika.exceptions.UnroutableError):
        ch.basic_publish("", "nowhere", b"x", mandatory=True)
    conn.close()


def test_heartbeats_keep_a_quiet_connection(node):
    conn = node().pika(heartbeat=2)
    conn.sleep(5)
    assert conn.is_open
    conn.channel().queue_declare("", exclusive=True)
    conn.close()


def test_overview_counts_at_once(node):
    """What a client did is in /api/overview as soon as the client knows of it."""
    this = node()
    conn = this.pika()
    ch = conn.channel()
    ch.queue_declare("q")
    ch.confirm_delivery()
    ch.basic_publish("", "q", b"x")
    opener = urllib.request.build_opener()
    request = urllib.request.Request(this.http_url + "/api/overview", headers={
        "Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
    with opener.open(request, timeout=10) as reply:
        overview = json.load(reply)
    assert overview["object_totals"]["connections"] == 1
    assert overview["object_totals"]["channels"] == 1
    assert overview["object_totals"]["queues"] == 1
    assert overview["queue_totals"]["messages_ready"] == 1
    assert overview["product_name"] == "RabbitMQ"
    conn.close()


def test_healthz_needs_no_account(node):
    this = node()
    with urllib.request.urlopen(this.http_url + "/healthz", timeout=10) as reply:
        assert json.load(reply)["status"] == "ok"
