"""Answers of the HTTP API that operators of RabbitMQ know: limits as a whole, base64 with line ends, what is refused and how."""
# SPDX-License-Identifier: Apache-2.0
import base64
import http.client
import json
import socket
import urllib.parse

import pika
import pytest

from api import Api
from node import Node


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("answers")).start()
    try:
        this_api = Api(this)
        this_api.amqp_port = this.port
        yield this_api
        this.stop()
    finally:
        this.kill()


@pytest.fixture
def vhost(api, request):
    name = request.node.name.partition("[")[0]
    api("PUT", "vhosts/" + name, 201, body={})
    yield name
    api("DELETE", "vhosts/" + name, 204)


def limits(api, vhost):
    rows = api.get("vhost-limits/" + vhost)
    return rows[0]["value"] if rows else {}


def test_limits_as_a_parameter_are_all_there_are(api, vhost):
    api("PUT", "vhost-limits/%s/max-connections" % vhost, 204, body={"value": 7})
    where = "parameters/vhost-limits/%s/limits" % vhost
    api("PUT", where, 204, body={"value": {"max-queues": 100}})
    assert limits(api, vhost) == {"max-queues": 100}
    api("PUT", "vhost-limits/%s/max-connections" % vhost, 204, body={"value": 7})
    for wrong in ({"max-queues": "x"}, {"max-queues": 5, "max-apples": 1}, 5, ["max-queues"]):
        api("PUT", where, 400, body={"value": wrong})
    assert limits(api, vhost) == {"max-queues": 100, "max-connections": 7}
    row = {"component": "vhost-limits", "name": "limits", "vhost": vhost}
    api("POST", "definitions", 204, body={"parameters": [dict(row, value={"max-queues": 9})]})
    assert limits(api, vhost) == {"max-queues": 9}
    # as RabbitMQ exports limits that were taken away
    api("POST", "definitions", 204, body={"parameters": [dict(row, value=[])]})
    assert limits(api, vhost) == {}


def test_values_that_are_no_numbers_are_shown_as_terms(api, vhost):
    was = 'should be a number, actually was <<"5">>'
    for where in ("vhost-limits/%s/max-queues" % vhost, "user-limits/guest/max-channels"):
        assert was in api("PUT", where, 400, body={"value": "5"})["reason"]
    body = {"pattern": "x", "definition": {"max-length": 5}, "priority": "5"}
    assert "priority " + was in api("PUT", "policies/%s/p" % vhost, 400, body=body)["reason"]


def test_base64_as_the_tool_writes_it(api, vhost):
    """base64(1) cuts lines. Without its padding it is none."""
    api("PUT", "queues/%s/q" % vhost, 201, body={})
    raw = bytes(range(256))
    where = "exchanges/%s/amq.default/publish" % vhost
    body = {"properties": {}, "routing_key": "q", "payload_encoding": "base64",
            "payload": base64.encodebytes(raw).decode().replace("\n", "\r\n")}
    assert api("POST", where, body=body) == {"routed": True}
    for wrong in ("aGk", "aGk==", "aGk=aGk=", "a"):
        assert api("POST", where, 400, body=dict(body, payload=wrong))["reason"] == ["not_base64", wrong]
    got = api("POST", "queues/%s/q/get" % vhost, body={"count": 5, "ackmode": "ack_requeue_false", "encoding": "base64"})
    assert [base64.b64decode(m["payload"]) for m in got] == [raw]


def test_a_browser_is_led_to_the_help_page(api):
    where = api.base[:-len("/api/")]
    for path in ("/api", "/api/"):
        answer = api.session.get(where + path, auth=("nobody", "no"), timeout=30)
        assert answer.status_code == 200 and answer.url == where + "/api/index.html" and "/api/queues" in answer.text


def test_a_path_that_is_not_encoded(api, vhost):
    """Many clients would mend it before it goes out."""
    for path in ("queues/%s/a%%zz", "queues/%s/a%%", "queues/%s/a%%4", "queues/%%5/%s", "no%%xsuch/%s"):
        conn = http.client.HTTPConnection(urllib.parse.urlsplit(api.base).netloc, timeout=30)
        conn.request("PUT", "/api/" + path % vhost, b"{}")
        answer = conn.getresponse()
        assert answer.status == 400 and "hexadecimal" in json.load(answer)["reason"], path
        conn.close()
    assert api.get("queues/" + vhost) == []


def test_users_that_are_not_there_are_missed(api):
    for name in ("one", "two"):
        api("PUT", "users/" + name, 201, body={"password": "x", "tags": ""})
    answer = api("POST", "users/bulk-delete", 400, body={"users": ["one", "nobody", 5, "two"]})
    assert answer == {"error": "bad_request", "reason": ["no_such_user", "nobody"]}
    assert [u["name"] for u in api.get("users?columns=name&sort=name")] == ["admin", "guest"]
    assert api("POST", "users/bulk-delete", 400, body={"users": [5]})["reason"] == ["no_such_user", 5]
    api("POST", "users/bulk-delete", 204, body={"users": []})


def test_policies_in_short(api, vhost):
    for name, priority in (("b", 2), ("a", 1)):
        api("PUT", "policies/%s/%s" % (vhost, name), 201,
            body={"pattern": "^limited", "definition": {"max-length": 1, "overflow": "reject-publish"}, "priority": priority})
    for where in ("policies", "policies/" + vhost):
        assert api.get(where + "?columns=name,priority&sort=priority") == [{"name": "a", "priority": 1}, {"name": "b", "priority": 2}]
    assert api.get("policies/%s/a?columns=name" % vhost) == {"name": "a"}
    for name in ("limited", "free"):
        api("PUT", "queues/%s/%s" % (vhost, name), 201, body={"durable": True})
    short = {"arguments": {}, "auto_delete": False, "durable": True, "exclusive": False, "type": "classic", "vhost": vhost,
             "node": api.get("overview?columns=node")["node"]}
    counts = {"messages": 0, "messages_ready": 0, "messages_unacknowledged": 0, "state": "running"}
    where = "queues/%s?disable_stats=true" % vhost
    assert api.get(where) == [dict(short, name="free", state="live"), dict(short, name="limited", policy="b", state="live")]
    assert api.get(where + "&enable_queue_totals=true") == [
        dict(short, name="free", **counts), dict(short, name="limited", policy="b", **counts)]
    body = {"properties": {}, "routing_key": "limited", "payload": "x", "payload_encoding": "string"}
    assert api("POST", "exchanges/%s/amq.default/publish" % vhost, body=body) == {"routed": True}
    assert api("POST", "exchanges/%s/amq.default/publish" % vhost, 400, body=body)["reason"] == \
        "rejected Unable to publish message. Check queue limits."
    for component in ("policy", "operator_policy"):
        answer = api("PUT", "parameters/%s/%s/p" % (component, vhost), 400, body={"value": {}})
        assert answer["reason"] == "policies may not be set using this method"


def test_objects_that_rabbitmqctl_writes_as_pairs(api, vhost):
    row = {"vhost": vhost, "component": "vhost-limits", "name": "limits"}
    api("POST", "definitions", 204, body={"parameters": [dict(row, value=[["max-connections", 10], ["max-queues", 50]])]})
    assert limits(api, vhost) == {"max-connections": 10, "max-queues": 50}
    for wrong in ([["max-queues"]], ["max-queues"], [[5, 5]], [["max-queues", 5], 5], [["max-queues", "x"]]):
        api("POST", "definitions", 400, body={"parameters": [dict(row, value=wrong)]})
    assert limits(api, vhost) == {"max-connections": 10, "max-queues": 50}
    value = {"pattern": "", "apply-to": "queues", "priority": 0}
    row = {"vhost": vhost, "component": "operator_policy", "name": "op"}
    for wrong in ([], [["no-such-key", 1]], [["max-length"]], [["max-length", [["a", 1]]]]):
        api("POST", "definitions", 400, body={"parameters": [dict(row, value=dict(value, definition=wrong))]})
    pairs = [["max-length-bytes", 1000000], ["message-ttl", 5]]
    api("POST", "definitions", 204, body={"parameters": [dict(row, value=dict(value, definition=pairs))]})
    assert api.get("operator-policies/%s/op?columns=definition" % vhost) == {"definition": dict(pairs)}


def own_address():
    """One of this machine that is not on loopback; None: it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))     # sends nothing
        except OSError:
            return None
        return s.getsockname()[0]


def test_guest_from_another_address(api):
    """Only who knows the password is told why it does not help."""
    host = own_address()
    if host is None:
        pytest.skip("this machine has no address but loopback's")
    base = "http://%s:%d/api/" % (host, urllib.parse.urlsplit(api.base).port)
    local = {"error": "not_authorised", "reason": "User can only log in via localhost until it has another password: "
             "set one there (hermes user passwd), or use another account"}
    for _ in range(2):
        answer = api.session.get(base + "whoami", timeout=30)
        assert (answer.status_code, answer.json()) == (401, local) and "www-authenticate" not in answer.headers
        answer = api.session.post(base + "login", data={"username": "guest", "password": "guest"}, timeout=30)
        assert (answer.status_code, answer.json()) == (401, local)
        answer = api.session.get(base + "whoami", auth=("guest", "other"), timeout=30)
        assert (answer.status_code, answer.json()["reason"]) == (401, "Login failed") and "www-authenticate" in answer.headers


def test_declarations_and_queues_that_they_made(api):
    """Who declares again and again makes few queues, and is seen all the same."""
    names = ("queue_declared", "queue_created", "queue_deleted")

    def churn():
        rates = api.get("overview?columns=churn_rates")["churn_rates"]
        return [rates[name] for name in names]

    before = churn()
    host = urllib.parse.urlsplit(api.base).hostname
    conn = pika.BlockingConnection(pika.ConnectionParameters(host, api.amqp_port))
    chan = conn.channel()
    for _ in range(5):
        chan.queue_declare("again")
    chan.queue_declare("again", passive=True)
    chan.queue_declare("", exclusive=True)
    for wrong in ({"queue": "again", "durable": True}, {"queue": "missing", "passive": True}):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            conn.channel().queue_declare(**wrong)
    api("PUT", "queues/%2F/again", 204, body={"durable": False})
    chan.queue_delete("again")
    conn.close()
    assert [now - then for now, then in zip(churn(), before)] == [8, 2, 2]
