"""Policies and what waits in the queues that they are for."""
# SPDX-License-Identifier: Apache-2.0
import base64
import json
import time
import urllib.request

import pika
import pytest

from node import Node, wait_for

LOGIN = "Basic " + base64.b64encode(b"guest:guest").decode()


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path).start()
    yield node
    if node.running():
        node.stop()


def put(node, definition, pattern="^q", name="p"):
    body = json.dumps({"pattern": pattern, "definition": definition, "apply-to": "queues"}).encode()
    ask(node, "PUT", name, body)


def ask(node, method, name="p", body=None):
    request = urllib.request.Request(node.http_url + "/api/policies/%2F/" + name, body, {"Authorization": LOGIN},
                                     method=method)
    urllib.request.urlopen(request, timeout=20).close()


def count(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def publish(channel, queue, *bodies):
    for body in bodies:
        channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_message_keeps_the_time_to_live_under_which_it_came(node, kind):
    conn = node.pika()
    channel = conn.channel()
    channel.confirm_delivery()
    for queue in ("q", "q2"):
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
    publish(channel, "q", b"old")
    put(node, {"message-ttl": 60})
    time.sleep(0.005)
    channel.queue_declare("q3", durable=True, arguments={"x-queue-type": kind})     # has it from the start
    for queue in ("q", "q2", "q3"):
        publish(channel, queue, b"new")
    wait_for(lambda: count(channel, "q2") == 0 and count(channel, "q3") == 0, what="end of what came later")
    assert channel.basic_get("q")[2] == b"old"
    channel.basic_nack(1, requeue=True)     # it is its head, and keeps "new" of a quorum queue
    assert channel.basic_get("q")[2] == b"old"
    conn.close()
    node.kill()
    node.start()
    conn = node.pika()
    channel = conn.channel()
    channel.confirm_delivery()
    time.sleep(0.1)     # as long as nothing must happen
    method, _, body = channel.basic_get("q", auto_ack=True)
    assert body == b"old"
    wait_for(lambda: count(channel, "q") == 0, what="end of what came behind it")

    # The other way about: those that came under it still go.
    put(node, {"message-ttl": 300})
    publish(channel, "q", b"short")
    ask(node, "DELETE")
    time.sleep(0.005)   # what comes within the same millisecond counts as having come before
    publish(channel, "q", b"for good")
    node.kill()
    node.start()
    conn = node.pika()
    channel = conn.channel()
    wait_for(lambda: count(channel, "q") == 1, what="end of the one that came under the policy")
    assert channel.basic_get("q", auto_ack=True)[2] == b"for good"
    assert channel.basic_get("q")[0] is None
    conn.close()


def test_many_changes_are_bounded_and_lose_nothing(node):
    conn = node.pika()
    channel = conn.channel()
    channel.queue_declare("q", durable=True)
    for i in range(12):
        channel.basic_publish("", "q", b"%d" % i)
        count(channel, "q")
        put(node, {"message-ttl": 60000 + i})
    put(node, {"message-ttl": 0})
    assert count(channel, "q") == 12
    channel.basic_publish("", "q", b"gone")
    conn.close()
    node.stop()
    node.start()
    node.stop()
