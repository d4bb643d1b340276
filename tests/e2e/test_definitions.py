"""Definitions: the file that is imported at the start, and the import over HTTP."""
# SPDX-License-Identifier: Apache-2.0
import base64
import gzip
import json
import re
import threading
import urllib.error
import urllib.request

import pika
import pytest

from node import hermes

#: as RabbitMQ exports it, with two objects that nobody can make (an exchange of an unknown type among them)
DEFINITIONS = {
    "rabbit_version": "3.10.8",
    "users": [{"name": "app", "password_hash": "c2FsdEPmxZqf1dmnTmRshtWe00Zl8KH7e/jeGk7s9sKyB2UQ",
               "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["administrator"], "limits": {}}],
    "vhosts": [{"name": "/"}, {"name": "shop", "metadata": {"description": "orders", "tags": []}}],
    "permissions": [{"user": "app", "vhost": v, "configure": ".*", "write": ".*", "read": ".*"} for v in ("/", "shop")],
    "topic_permissions": [],
    "parameters": [{"vhost": "shop", "component": "operator_policy", "name": "cap",
                    "value": {"pattern": "^o", "definition": {"max-length": 2}, "priority": 0, "apply-to": "queues"}}],
    "global_parameters": [{"name": "cluster_name", "value": "somewhere"}],
    "policies": [{"vhost": "shop", "name": "dead", "pattern": "^orders$", "apply-to": "queues", "priority": 0,
                  "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}}],
    "queues": [{"name": n, "vhost": "shop", "durable": True, "auto_delete": False, "arguments": {}}
               for n in ("orders", "dead")] +
              [{"name": "wrong", "vhost": "shop", "durable": True, "auto_delete": False,
                "arguments": {"x-max-length": "many"}}],
    "exchanges": [{"name": "unknown", "vhost": "shop", "type": "x-nobody-knows", "durable": True,
                   "auto_delete": False, "internal": False, "arguments": {}},
                  {"name": "events", "vhost": "shop", "type": "topic", "durable": True, "auto_delete": False,
                   "internal": False, "arguments": {}}],
    "bindings": [{"source": "events", "vhost": "shop", "destination": "orders", "destination_type": "queue",
                  "routing_key": "order.#", "arguments": {}}],
}


def ask(node, path, body=None, user="guest", password="guest"):
    request = urllib.request.Request(node.http_url + path, None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Basic " + base64.b64encode(b"%s:%s" % (user.encode(), password.encode())).decode())
    request.add_header("Content-Type", "application/json")
    return request


def post(node, path, body, **login):
    request = ask(node, path, body, **login)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())


def check_topology(node):
    """Three orders: the first is pushed out by the operator's limit, to where the policy says."""
    conn = node.pika("app", "imported", "shop")
    ch = conn.channel()
    ch.confirm_delivery()
    for n in range(3):
        ch.basic_publish("events", "order.new", b"%d" % n, pika.BasicProperties(delivery_mode=2))
    assert ch.queue_declare("dead", passive=True).method.message_count == 1
    assert ch.basic_get("dead", auto_ack=True)[2] == b"0"
    ch.queue_purge("orders")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as e:
        ch.exchange_declare("unknown", passive=True)
    assert e.value.reply_code == 404
    conn.close()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps(DEFINITIONS))
    return path


def test_file_at_the_start(node, file):
    node = node("definitions: {file: %s}\n" % file)
    log = node.log
    assert "exchange 'unknown' in vhost 'shop' cannot be made: unknown exchange type 'x-nobody-knows'" in log
    assert re.search(r"queue 'wrong' in vhost 'shop' cannot be made: invalid arg 'x-max-length'", log)
    assert re.search(r"imported: \d+ objects, 2 could not be", log)
    check_topology(node)
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        node.pika()  # guest: the file brought users
    node.kill()
    node.start()
    check_topology(node)


def test_packed_file_at_the_start(node, tmp_path):
    path = tmp_path / "definitions.json.gz"
    path.write_bytes(gzip.compress(json.dumps(DEFINITIONS).encode()))
    check_topology(node("definitions: {file: %s}\n" % path))


PACKED = gzip.compress(b"{}", mtime=0)       # the same for all processes of pytest


@pytest.mark.parametrize("text, reason", [
    (PACKED[:-9], r"definitions\.json (ends too early|cannot be read)"), (PACKED[:-2] + b"xx", "cannot be read: .*incorrect length"),
    ("{", r"definitions\.json:1: "), ("[]", "holds no JSON object"), (None, "cannot be read: No such file")])
def test_file_that_cannot_be_used(tmp_path, text, reason):
    path = tmp_path / "definitions.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    settings = tmp_path / "hermes.yml"
    settings.write_text("definitions: {file: %s}\nstore: {path: %s}\n" % (path, tmp_path / "data"))
    done = hermes("server", "-c", settings, "--port", "0", "--management-port", "0", "--prometheus-port", "0")
    assert done.returncode == 2
    assert re.search(reason, done.stderr)


def test_import_over_http_tries_all(node):
    node = node()
    status, answer = post(node, "/api/definitions", DEFINITIONS)
    assert status == 400 and answer["error"] == "bad_request"
    assert answer["failed"] == 2
    assert [e["object"] for e in answer["errors"]] == ["queue 'wrong' in vhost 'shop'", "exchange 'unknown' in vhost 'shop'"]
    assert answer["reason"] == answer["errors"][0]["reason"]
    node.kill()  # what was made is there though something was not
    node.start()
    check_topology(node)
    good = {k: [x for x in v if x.get("name") not in ("wrong", "unknown")] if isinstance(v, list) else v
            for k, v in DEFINITIONS.items()}
    assert post(node, "/api/definitions", good) == (204, b"")
    check_topology(node)
    node.kill()
    node.start()
    check_topology(node)


def test_what_is_of_the_wrong_type_is_said(node):
    node = node()
    status, answer = post(node, "/api/definitions", {
        "users": [{"name": "a", "password": 5, "tags": ""}, {"name": "b", "password_hash": [], "tags": ""},
                  {"name": "c", "password": None, "password_hash": "", "tags": ""}],
        "vhosts": [{"name": "v", "metadata": {"description": 7}}, {"name": "w", "default_queue_type": 7},
                   {"name": "x", "description": None}]})
    assert status == 400
    assert [(e["object"], e["reason"]) for e in answer["errors"]] == [
        ("user 'a'", "password is no string"), ("user 'b'", "password_hash is no string"),
        ("vhost 'v'", "description is no string"), ("vhost 'w'", "default_queue_type is no string")]
    assert answer["imported"] == 2


def test_many_objects_hold_nobody_up(node):
    node = node()
    many = {"queues": [{"name": "q%d" % n, "durable": True, "auto_delete": False, "arguments": {"x-max-length": 3}}
                       for n in range(20000)],
            "bindings": [{"source": "amq.topic", "destination": "q%d" % n, "destination_type": "queue",
                          "routing_key": "a.%d.#" % n, "arguments": {}} for n in range(20000)]}
    node.overview()
    assert post(node, "/api/definitions/%2F", many) == (204, b"")
    assert node.overview()["object_totals"]["queues"] == 20000


def export(node, **login):
    """What GET /api/definitions says, its lists in an order of their own."""
    with urllib.request.urlopen(ask(node, "/api/definitions", **login), timeout=60) as answer:
        doc = json.loads(answer.read())
    return {k: sorted(v, key=lambda row: json.dumps(row, sort_keys=True)) if isinstance(v, list) else v
            for k, v in doc.items()}


def test_what_is_exported_makes_the_same_again(node, tmp_path):
    first = node()
    post(first, "/api/definitions", DEFINITIONS)
    doc = export(first)
    assert [u["name"] for u in doc["users"]] == ["admin", "app", "guest"]
    assert [q["name"] for q in doc["queues"]] == ["dead", "orders"]
    assert [b["routing_key"] for b in doc["bindings"]] == ["order.#"]
    assert doc["parameters"] == DEFINITIONS["parameters"] and doc["policies"] == DEFINITIONS["policies"]
    path = tmp_path / "exported.json"
    path.write_text(json.dumps(doc))
    second = node("definitions: {file: %s}\n" % path)
    assert "0 could not be" in second.log
    assert export(second) == doc
    check_topology(second)


def test_many_objects_are_exported_while_others_go(node):
    node = node()
    many = {"queues": [{"name": "q%d" % n, "durable": True, "auto_delete": False, "arguments": {}} for n in range(20000)],
            "bindings": [{"source": "amq.topic", "destination": "q%d" % n, "destination_type": "queue",
                          "routing_key": "a.%d" % n, "arguments": {}} for n in range(20000)]}
    assert post(node, "/api/definitions/%2F", many) == (204, b"")
    conn = node.pika()
    ch = conn.channel()
    results = []
    exporter = threading.Thread(target=lambda: results.append(export(node)))
    exporter.start()
    for n in range(0, 20000, 100):
        ch.queue_delete("q%d" % n)
    exporter.join()
    names = [q["name"] for q in results[0]["queues"]]
    assert len(names) == len(set(names))
    stay = {"q%d" % n for n in range(20000) if n % 100 != 0}
    assert stay <= set(names)
    assert stay <= {b["destination"] for b in results[0]["bindings"]}
    conn.close()
