"""Requests over HTTP whose answers come later: what is long is parsed and compressed elsewhere, what is to last is on disk."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import gzip
import http.client
import json
import os
import signal
import socket
from base64 import b64encode

from node import SLOW, wait_for

LOGIN = {"Authorization": "Basic " + b64encode(b"guest:guest").decode()}


def ask(this, method, path, body=None, headers=None, conn=None):
    own = conn is None
    conn = conn or http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=30 * SLOW)
    try:
        conn.request(method, path, None if body is None else json.dumps(body), headers=LOGIN if headers is None else headers)
        answer = conn.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        if own:
            conn.close()


def test_long_bodies_and_answers(node):
    this = node()
    values = {"p%d" % i: ["%d" % i] + ["x" * 100] * 900 for i in range(5)}     # 90 kB each
    conn = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=30 * SLOW)
    for name, value in values.items():
        assert ask(this, "PUT", "/api/global-parameters/" + name, {"value": value}, conn=conn)[0] == 201
    plain = ask(this, "GET", "/api/global-parameters", conn=conn)[2]
    status, headers, packed = ask(this, "GET", "/api/global-parameters", headers=dict(LOGIN, **{"Accept-Encoding": "gzip"}),
                                  conn=conn)
    assert status == 200 and headers["content-encoding"] == "gzip" and len(packed) < len(plain) // 10
    assert gzip.decompress(packed) == plain
    assert {row["name"]: row["value"] for row in json.loads(plain)}.items() >= values.items()
    status, headers, body = ask(this, "HEAD", "/api/global-parameters", headers=dict(LOGIN, **{"Accept-Encoding": "gzip"}))
    assert status == 200 and body == b"" and int(headers["content-length"]) == len(packed)
    bad = b'{"value": ' + b"[1]," * 30000
    conn.request("PUT", "/api/global-parameters/bad", bad, headers=LOGIN)
    answer = conn.getresponse()
    assert answer.status == 400 and json.load(answer)["reason"] == "not_json"


def test_packed_bodies(node):
    """Unpacked they are what they would be plain, with the same bounds."""
    this = node("limits: {http_body: 1MiB}\n")
    conn = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=30 * SLOW)

    def put(name, body, coding="gzip"):
        conn.request("PUT", "/api/global-parameters/" + name, body, headers=dict(LOGIN, **{"Content-Encoding": coding}))
        answer = conn.getresponse()
        return answer.status, answer.read().decode()

    for name, value in ("short", "x"), ("long", ["%d" % i for i in range(1000)]):
        assert put(name, gzip.compress(json.dumps({"value": value}).encode()))[0] == 201
        assert json.loads(ask(this, "GET", "/api/global-parameters/" + name)[2])["value"] == value
    assert put("plain", b'{"value": 1}', "identity")[0] == 201
    packed = gzip.compress(b'{"value": 1}')
    assert put("long", packed, "X-GZip")[0] == 204
    for bad in packed[:-1], packed + b"x", b'{"value": 1}':
        assert put("bad", bad) == (400, '{"error":"bad_request","reason":"the body is not gzip, or not all of it"}')
    status, reason = put("bad", gzip.compress(b'{"value": "' + b"x" * 2000000 + b'"}'))
    assert status == 413 and "more than 1048576 bytes once it is unpacked" in reason
    status, reason = put("bad", b"x", "br")
    assert status == 415 and "gzip" in reason
    definitions = json.dumps({"queues": [{"vhost": "/", "name": "q%d" % i, "durable": True} for i in range(100)]}).encode()
    conn.request("POST", "/api/definitions", gzip.compress(definitions), headers=dict(LOGIN, **{"Content-Encoding": "gzip"}))
    assert conn.getresponse().status == 204
    assert len(json.loads(ask(this, "GET", "/api/queues")[2])) == 100


def test_who_does_not_wait_for_the_answer(node):
    """The node parses, and makes the change, for nobody; and goes on."""
    this = node()
    body = json.dumps({"value": ["x" * 100] * 900}).encode()
    for i in range(50):
        sock = socket.create_connection(("127.0.0.1", this.management_port), timeout=10 * SLOW)
        head = "PUT /api/global-parameters/gone%d HTTP/1.1\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n"
        sock.sendall((head % (i, LOGIN["Authorization"], len(body))).encode() + body)
        sock.close()

    def all_there():
        rows = json.loads(ask(this, "GET", "/api/global-parameters?columns=name")[2])
        return sum(row["name"].startswith("gone") for row in rows) == 50

    wait_for(all_there, 10, "all changes made")
    wait_for(lambda: this.overview()["hermes"]["process"]["http_connections"] <= 1, 10, "connections gone")
    this.stop()


def test_stop_while_answers_are_due(node):
    """SIGTERM with passwords being hashed and bodies being parsed."""
    this = node(settings="management: {password_hash: pbkdf2}\n")
    socks = []
    body = json.dumps({"value": ["x" * 100] * 900}).encode()
    for i in range(20):
        sock = socket.create_connection(("127.0.0.1", this.management_port), timeout=10 * SLOW)
        head = "PUT /api/global-parameters/p%d HTTP/1.1\r\nAuthorization: Basic %s\r\nContent-Length: %d\r\n\r\n"
        login = b64encode(b"guest:guest" if i % 2 else b"nobody:%d" % i).decode()
        sock.sendall((head % (i, login, len(body))).encode() + body)
        socks.append(sock)
    this.stop()
    for sock in socks:
        sock.close()


def test_answers_that_nobody_reads(node):
    """They share a bound; who reads gets a large one, once others have had two seconds for theirs."""
    def answered():
        try:
            return ask(this, "POST", "/api/queues/%2F/large/get", json.loads(body))[0] == 200
        except (ConnectionError, http.client.IncompleteRead):
            return False

    this = node()
    with this.pika() as conn:
        channel = conn.channel()
        channel.queue_declare("large")
        channel.basic_publish("", "large", b"x" * (12 << 20))
    body = json.dumps({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"})
    text = "POST /api/queues/%%2F/large/get HTTP/1.1\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s"
    socks = []
    for _ in range(30):         # 360 MB
        socks.append(socket.socket())
        socks[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        socks[-1].connect(("127.0.0.1", this.management_port))
        socks[-1].sendall((text % (LOGIN["Authorization"], len(body), body)).encode())
    wait_for(lambda: this.overview()["hermes"]["process"]["http_too_much_output"] >= 5, what="answers that are given up")
    if SLOW == 1:
        assert this.rss_kb() < 400 << 10
    wait_for(answered, what="an answer")
    for sock in socks:
        sock.close()


def test_a_line_without_end(node):
    """Before a piece of a chunked body: the node neither keeps it nor looks for its end again and again."""
    this = node()
    head = b"PUT /api/vhosts/chunks HTTP/1.1\r\nAuthorization: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
    head %= LOGIN["Authorization"].encode()
    with socket.create_connection(("127.0.0.1", this.management_port), timeout=10 * SLOW) as sock:
        sock.sendall(head + b"2\r\n{}\r\n0\r\n\r\n" + head + b"1\r\n{\r\n1\r\n}\r\n0\r\nX: y\r\n\r\n")
        said = b""
        while said.count(b"\r\n\r\n") < 2:
            said += sock.recv(4096)
        assert b" 201 " in said and b" 204 " in said
        with contextlib.suppress(ConnectionError):
            sock.sendall(head + b"2\r\n{}\r\n")
            for _ in range(100):
                sock.sendall(b"0" * 65536)
            assert sock.recv(1) == b""
    assert this.overview()["hermes"]["process"]["http_too_much_input"] == 1
    assert ask(this, "GET", "/api/vhosts/chunks")[0] == 200


def test_a_million_values(node):
    """What they would take up is known before they are made; of what does not import or publish a body is short."""
    this = node()
    conn = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=30 * SLOW)

    def status(method, path, body):
        conn.request(method, path, body, headers=LOGIN)
        answer = conn.getresponse()
        return answer.status, answer.read().decode()

    value = b'{"value": [' + b"[]," * 5000000 + b"1]}"
    refused, why = status("POST", "/api/definitions", value)
    assert refused == 413 and "the body holds 5000004 names and values" in why
    refused, why = status("PUT", "/api/queues/%2F/q", value)
    assert refused == 413 and "at most 1048576 are allowed" in why
    short = b'{"value": [' + b"[]," * 300000 + b"1]}"
    assert status("PUT", "/api/queues/%2F/q", short)[0] == 201
    refused, why = status("PUT", "/api/global-parameters/p", short)
    assert refused == 400 and "longer than 131072" in why
    assert this.overview()["hermes"]["process"]["http_bodies_refused"] == 2
    wait_for(lambda: this.overview()["hermes"]["process"]["http_values_bytes"] == 0, what="the values gone")


def test_a_long_payload(node):
    """Of 13 MB: decoded, put together and kept in steps, and whole in the end."""
    this = node()
    conn = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=30 * SLOW)
    payload = os.urandom(13 << 20)
    assert ask(this, "PUT", "/api/queues/%2F/long", {"durable": True})[0] == 201
    for mode in (1, 2):
        body = {"routing_key": "long", "properties": {"delivery_mode": mode}, "payload_encoding": "base64",
                "payload": b64encode(payload).decode()}
        conn.request("POST", "/api/exchanges/%2F/amq.default/publish", json.dumps(body), headers=LOGIN)
        answer = conn.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"routed":true}')
    this.kill()
    this.start()
    conn = this.pika()
    method, _, got = conn.channel().basic_get("long", auto_ack=True)
    assert got == payload and method.message_count == 0
    conn.close()


def test_what_was_answered_survives(node):
    this = node()
    made = [("/api/users/u", {"password": "pw", "tags": "monitoring"}), ("/api/vhosts/v", {"description": "d"}),
            ("/api/permissions/v/u", {"configure": "a", "write": "b", "read": "c"}),
            ("/api/topic-permissions/v/u", {"exchange": "amq.topic", "write": "x", "read": "y"}),
            ("/api/global-parameters/g", {"value": [1, None]}), ("/api/cluster-name", {"name": "many"})]
    for path, body in made:
        assert ask(this, "PUT", path, body)[0] in (201, 204), path
    for path in ("/api/vhost-limits/v/max-queues", "/api/user-limits/u/max-channels"):
        assert ask(this, "PUT", path, {"value": 7})[0] == 204
    asked = ["/api/users", "/api/vhosts?columns=name,description,tags", "/api/permissions", "/api/topic-permissions",
             "/api/global-parameters", "/api/cluster-name", "/api/vhost-limits", "/api/user-limits"]
    before = [json.loads(ask(this, "GET", path)[2]) for path in asked]
    assert {"user": "u", "vhost": "v", "configure": "a", "write": "b", "read": "c"} in before[2]
    this.process.send_signal(signal.SIGKILL)
    this.wait()
    this.start()
    assert [json.loads(ask(this, "GET", path)[2]) for path in asked] == before
    assert ask(this, "GET", "/api/whoami", headers={"Authorization": "Basic " + b64encode(b"u:pw").decode()})[0] == 200


def test_session_of_the_console(node):
    this = node()
    conn = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=30 * SLOW)
    conn.request("POST", "/api/login", "username=guest&password=guest",
                 {"Content-Type": "application/x-www-form-urlencoded"})
    answer = conn.getresponse()
    cookie = answer.headers["set-cookie"]
    assert answer.status == 200 and answer.read() == b'"ok"'
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "guest" not in cookie
    token = {"Cookie": cookie.split(";")[0]}
    assert json.loads(ask(this, "GET", "/api/whoami", headers=token)[2])["name"] == "guest"
    assert ask(this, "PUT", "/api/users/guest", {"password": "other", "tags": "administrator"}, headers=token)[0] == 204
    status, headers, _ = ask(this, "GET", "/api/whoami", headers=token)
    assert status == 401 and "www-authenticate" not in headers, "another password ends sessions"


def test_sessions_end_with_the_account(node):
    """Also where one of the same name and password is made in its place."""
    this = node()
    assert ask(this, "PUT", "/api/users/ops", {"password": "pw", "tags": "management"})[0] == 201
    account = json.loads(ask(this, "GET", "/api/users/ops")[2])
    conn = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=30 * SLOW)
    conn.request("POST", "/api/login", "username=ops&password=pw")
    answer = conn.getresponse()
    token = {"Cookie": answer.headers["set-cookie"].split(";")[0]}
    assert answer.status == 200 and ask(this, "GET", "/api/whoami", headers=token)[0] == 200
    assert ask(this, "PUT", "/api/users/ops", account)[0] == 204
    assert ask(this, "GET", "/api/whoami", headers=token)[0] == 200, "nothing has changed"
    assert ask(this, "DELETE", "/api/users/ops")[0] == 204
    assert ask(this, "PUT", "/api/users/ops", account)[0] == 201
    assert ask(this, "GET", "/api/whoami", headers=token)[0] == 401
