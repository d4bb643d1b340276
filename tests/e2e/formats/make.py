#!/usr/bin/env python3
"""Writes NAME.tar.xz, a data folder of the version that HERMES_BINARY is, and NAME.json, what is in it.

What a version does not know yet is left out. See README.md.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import pathlib
import sys
import tarfile
import tempfile
import urllib.error

import pika

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "lib"), str(HERE.parents[1] / "conformance")]

from node import Node, hermes       # noqa: E402

LASTING = pika.BasicProperties(delivery_mode=2)
SETTINGS = "store: {journal_file_size: 1MiB, queue_messages: 1024}\n"
#: what is declared, with arguments; those that a version refuses are left out
QUEUES = {
    "plain": {}, "long": {}, "empty": {},
    "priority": {"x-max-priority": 5},
    "limited": {"x-max-length": 3, "x-overflow": "drop-head", "x-dead-letter-exchange": "amq.direct",
                "x-dead-letter-routing-key": "dead"},
    "dead": {},
    "lasting": {"x-message-ttl": 315360000000},
    "once": {"x-message-deduplication": True},
    "single": {"x-single-active-consumer": True},
    "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 5},
    "never": {"x-sync": "never"},
}
EXCHANGES = {
    "topics": ("topic", {}), "heads": ("headers", {}), "spread": ("fanout", {"alternate-exchange": "topics"}),
    "hash": ("x-consistent-hash", {}), "later": ("x-delayed-message", {"x-delayed-type": "direct"}),
}
HTTP = [
    ("/api/vhosts/shop", {"description": "orders", "tags": "prod", "default_queue_type": "quorum"}),
    ("/api/users/app", {"password": "secret", "tags": "monitoring"}),
    ("/api/permissions/shop/app", {"configure": "^app", "write": ".*", "read": "^app"}),
    ("/api/topic-permissions/shop/app", {"exchange": "amq.topic", "write": "^a", "read": "^b"}),
    ("/api/policies/%2F/few", {"pattern": "^empty$", "definition": {"max-length": 7}, "apply-to": "queues"}),
    ("/api/operator-policies/%2F/cap", {"pattern": "^empty$", "definition": {"max-length-bytes": 7000}}),
    ("/api/vhost-limits/shop/max-queues", {"value": 50}),
    ("/api/user-limits/app/max-channels", {"value": 9}),
    ("/api/global-parameters/cluster_name", {"value": "of a fixture"}),
    ("/api/hermes/queues/%2F/empty/pause", None),
]


def attempt(this, call):
    """Whether the node takes it; a refusal may close the connection, so each has its own."""
    conn = this.pika()
    try:
        call(conn.channel())
        conn.close()
        return True
    except pika.exceptions.AMQPError:
        return False


def fill(this, conn):
    """Returns what is there, in the form of NAME.json."""
    has = {"queues": {}, "exchanges": [], "messages": {}, "http": []}
    for name, (kind, args) in EXCHANGES.items():
        if attempt(this, lambda ch: ch.exchange_declare(name, kind, durable=True, arguments=args)):
            has["exchanges"].append(name)
    for name, args in QUEUES.items():
        if attempt(this, lambda ch: ch.queue_declare(name, durable=True, arguments=args)):
            has["queues"][name] = args
    channel = conn.channel()
    channel.confirm_delivery()
    channel.queue_bind("plain", "topics", "a.#")
    channel.queue_bind("plain", "heads", arguments={"x-match": "all", "kind": "order", "n": 5})
    channel.queue_bind("dead", "amq.direct", "dead")
    channel.exchange_bind("spread", "topics", "b.*")

    def put(queue, bodies, **kw):
        if queue not in has["queues"]:
            return
        for body in bodies:
            properties = pika.BasicProperties(delivery_mode=2, **kw)
            channel.basic_publish("", queue, body.encode(), properties)
        has["messages"].setdefault(queue, []).extend(bodies)

    put("plain", ["one", "two", "x" * 5000, "four"], headers={"k": "v", "n": [1, 2]}, message_id="m1", content_type="text/plain")
    # one acknowledged, one that came back
    method, _, _ = channel.basic_get("plain")
    channel.basic_ack(method.delivery_tag)
    method, _, _ = channel.basic_get("plain")
    channel.basic_reject(method.delivery_tag, requeue=True)
    del has["messages"]["plain"][0]
    put("long", ["number %d" % i for i in range(1500)])
    for priority in (1, 5, 3):
        put("priority", ["of %d" % priority], priority=priority)
    if "priority" in has["messages"]:
        has["messages"]["priority"].sort(reverse=True)
    put("limited", ["l%d" % i for i in range(5)])
    if "limited" in has["messages"]:
        has["messages"].update(limited=["l2", "l3", "l4"], dead=["l0", "l1"])
    for queue in ("lasting", "once", "quorum", "never"):
        put(queue, ["in " + queue], message_id="m2")
    channel.basic_publish("", "once", b"twice", pika.BasicProperties(delivery_mode=2, message_id="m2"))
    has["deduplicates"] = channel.queue_declare("once", passive=True).method.message_count == 1
    if not has["deduplicates"]:
        has["messages"]["once"].append("twice")
    if "later" in has["exchanges"]:
        channel.queue_bind("empty", "later", "k")
        channel.basic_publish("later", "k", b"in ten years", pika.BasicProperties(
            delivery_mode=2, headers={"x-delay": 2 ** 32 - 2}))
        has["delayed"] = 1
    for path, body in HTTP:
        with contextlib.suppress(urllib.error.HTTPError):
            this.http(path, "PUT", body)
            has["http"].append(path)
    return has


def main(name):
    with tempfile.TemporaryDirectory() as folder:
        this = Node(pathlib.Path(folder) / "node", SETTINGS)
        this.start()
        conn = this.pika()
        has = fill(this, conn)
        conn.close()
        this.stop()
        has["version"] = hermes("version").stdout.splitlines()[0]
        with tarfile.open(HERE / (name + ".tar.xz"), "w:xz", preset=9) as tar:
            tar.add(this.data, "data", filter=lambda one: one.replace(uid=0, gid=0, uname="", gname="")
                    if hasattr(one, "replace") else one)
        has["messages"]["long"] = len(has["messages"]["long"])
        (HERE / (name + ".json")).write_text(json.dumps(has, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
