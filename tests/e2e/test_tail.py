"""Live tails: what is published to an exchange, or enters a queue, as an event stream."""
# SPDX-License-Identifier: Apache-2.0
import base64
import contextlib
import json
import socket
import time

import pytest

from api import Api
from node import SLOW, Node, wait_for

LOGIN = {"guest": "guest", "watcher": "pw"}


class Tail:
    """An open tail: next() is an event's name and data."""

    def __init__(self, node, where, user="guest", version="1.1", accept="text/event-stream", rcvbuf=None,
                 cookie=None):
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(10 * SLOW)
        self.sock.connect(("127.0.0.1", node.management_port))
        login = "Authorization: Basic " + base64.b64encode(("%s:%s" % (user, LOGIN[user])).encode()).decode()
        if cookie:
            login = "Cookie: hermes_session=" + cookie
        self.sock.sendall(("GET /api/hermes/tail/%s HTTP/%s\r\nHost: x\r\nAccept: %s\r\n%s\r\n\r\n"
                           % (where, version, accept, login)).encode())
        self.raw = b""
        self.text = b""
        head = self.upto(b"\r\n\r\n").decode()
        self.status = int(head.split()[1])
        self.head = head.lower()
        self.chunked = "chunked" in self.head

    def more(self):
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError(self.raw + self.text)
        self.raw += data

    def upto(self, end):
        while end not in self.raw:
            self.more()
        before, self.raw = self.raw.split(end, 1)
        return before

    def piece(self):
        if not self.chunked:
            while not self.raw:
                self.more()
            piece, self.raw = self.raw, b""
            return piece
        size = int(self.upto(b"\r\n"), 16)
        while len(self.raw) < size + 2:
            self.more()
        piece, self.raw = self.raw[:size], self.raw[size + 2:]
        if not piece:
            raise EOFError
        return piece

    def block(self):
        while b"\n\n" not in self.text:
            self.text += self.piece()
        block, self.text = self.text.split(b"\n\n", 1)
        return block.decode()

    def next(self):
        while True:
            block = self.block()
            if not block.startswith(":"):
                (event, data) = (line.split(": ", 1)[1] for line in block.split("\n"))
                return event, json.loads(data)

    def message(self):
        event, data = self.next()
        assert event == "message", (event, data)
        return data

    def close(self):
        self.sock.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("tail")).start()
    yield this
    try:
        this.abort_conns()
        this.stop()
    finally:
        this.kill()


@pytest.fixture
def api(node):
    return Api(node)


@pytest.fixture
def tail(node, api):
    made = []

    def make(where, **kw):
        made.append(Tail(node, where, **kw))
        assert made[-1].status == 200, made[-1].head
        return made[-1]

    yield make
    for this in made:
        with contextlib.suppress(OSError):
            this.close()
    wait_for(lambda: tails(api)["open"] == 0, what="the end of all tails")


@pytest.fixture(scope="module")
def chan(node):
    return node.raw().channel()


def tails(api):
    return api.get("overview")["hermes"]["tails"]


def test_a_queue_is_watched_and_keeps_its_messages(chan, tail, api):
    chan.declare("watched")
    watcher = tail("%2F/queue/watched")
    assert "content-type: text/event-stream" in watcher.head and "no-cache" in watcher.head
    chan.publish("", "watched", b"hello", content_type="text/plain", headers={"n": 7})
    message = watcher.message()
    at_ms = message.pop("at_ms")
    assert abs(at_ms - time.time() * 1000) < 60000
    assert message == {"exchange": "", "routing_key": "watched", "payload": "hello", "payload_bytes": 5, "payload_encoding": "string",
                       "properties": {"content_type": "text/plain", "headers": {"n": 7}}}
    chan.publish("", "watched", b"\xff\n\n\0")
    message = watcher.message()
    assert base64.b64decode(message["payload"]) == b"\xff\n\n\0" and message["payload_encoding"] == "base64"
    chan.publish("", "watched", b"line\n\nevent: end\r\ndata: {}\n\n")
    assert watcher.message()["payload"] == "line\n\nevent: end\r\ndata: {}\n\n"
    assert chan.call("basic.get", queue="watched", no_ack=True).body == b"hello"


def test_an_exchange_is_watched_by_key(chan, tail):
    chan.exchange("prices", "topic")
    all_, some, old = tail("%2F/exchange/prices"), tail("%2F/exchange/prices?routing_key=*.gold.%23"), tail("%2F/exchange/prices", version="1.0")
    for key in ("a.silver", "b.gold", "c.gold.d.e", "gold"):
        chan.publish("prices", key, key.encode())
    assert [all_.message()["routing_key"] for _ in range(4)] == ["a.silver", "b.gold", "c.gold.d.e", "gold"]
    assert [some.message()["payload"] for _ in range(2)] == ["b.gold", "c.gold.d.e"]
    assert not old.chunked and old.message()["exchange"] == "prices"
    chan.publish("prices", "x.gold")
    assert some.message()["routing_key"] == "x.gold"


def test_over_http_in_transactions_and_as_dead_letters(chan, tail, node, api):
    chan.exchange("sources", "fanout")
    chan.declare("short", arguments={"x-message-ttl": 1, "x-dead-letter-exchange": "sources"})
    watcher = tail("%2F/exchange/sources")
    api("POST", "exchanges/%2F/sources/publish", 200, {"properties": {}, "routing_key": "http", "payload": "1", "payload_encoding": "string"})
    assert watcher.message()["routing_key"] == "http"
    tx = node.raw().channel()
    tx.call("tx.select")
    tx.publish("sources", "tx")
    tx.call("tx.commit")
    assert watcher.message()["routing_key"] == "tx"
    chan.declare("from")
    chan.publish("", "from", b"moved")
    api("POST", "hermes/queues/%2F/from/move", 202, {"destination": {"exchange": "sources", "routing_key": "moved"}})
    # no queue is bound: it stays, and nobody saw it
    chan.declare("to")
    chan.bind("to", "sources")
    api("POST", "hermes/queues/%2F/from/move", 202, {"destination": {"exchange": "sources", "routing_key": "moved"}})
    assert watcher.message()["routing_key"] == "moved"
    chan.publish("", "short", b"late")
    letter = watcher.message()
    assert letter["routing_key"] == "short" and letter["properties"]["headers"]["x-death"][0]["reason"] == "expired"


def test_a_long_payload_is_cut_between_characters(chan, tail):
    chan.declare("long")
    watcher = tail("%2F/queue/long?max_bytes=10")
    chan.publish("", "long", "héllo wörld €€".encode() * 5000)
    message = watcher.message()
    assert message["payload"] == "héllo wö"     # 10 bytes
    assert message["payload_encoding"] == "string" and message["payload_bytes"] == len("héllo wörld €€".encode()) * 5000
    chan.publish("", "long", "€€€€".encode())
    assert watcher.message()["payload"] == "€€€"     # 9 of 12


def test_ten_thousand_a_second_are_bounded(chan, tail, api):
    chan.declare("flood", arguments={"x-max-length": 10})
    watcher = tail("%2F/queue/flood?rate=100")
    before = tails(api)
    for _ in range(20):
        chan.conn.send_raw(b"".join(chan.encode_publish("", "flood", b"x" * 200) for _ in range(1000)))
    seen = left = 0
    while seen + left < 20000:
        event, data = watcher.next()
        seen += event == "message"
        left += data["count"] if event == "left-out" else 0
    assert seen + left == 20000 and 100 <= seen <= 2000
    after = tails(api)
    assert after["left_out"] - before["left_out"] == left and after["messages"] - before["messages"] == seen


def test_a_slow_reader_costs_a_bounded_amount(chan, tail, api, node):
    chan.declare("slow", arguments={"x-max-length": 10})
    slow = tail("%2F/queue/slow?rate=1000&max_bytes=65536", rcvbuf=4096)
    quick = tail("%2F/queue/slow?rate=1000&max_bytes=0")
    before, left_out = node.rss_kb(), tails(api)["left_out"]
    for _ in range(300):
        chan.publish("", "slow", b"y" * 65536)
    wait_for(lambda: tails(api)["left_out"] > left_out + 100, what="messages left out")
    assert [quick.message()["payload_bytes"] for _ in range(100)] == [65536] * 100
    assert node.rss_kb() - before < 40 << 10
    events = [slow.next()]
    while events[-1][0] != "left-out":      # what it missed it is told
        events.append(slow.next())
    assert {len(data["payload"]) for event, data in events[:-1]} == {65536} and events[-1][1]["count"] > 0


def test_the_client_is_noticed_to_go(tail, api, node, chan):
    chan.declare("left")
    watcher = tail("%2F/queue/left")
    assert tails(api)["open"] == 1
    watcher.close()
    wait_for(lambda: tails(api)["open"] == 0, what="the end of the tail")
    assert api.get("queues/%2F/left")["messages"] == 0


def test_a_queue_that_is_deleted(chan, tail, api):
    chan.declare("short-lived")
    chan.exchange("short-lived", "fanout")
    watchers = tail("%2F/queue/short-lived"), tail("%2F/exchange/short-lived")
    api("DELETE", "queues/%2F/short-lived", 204)
    api("DELETE", "exchanges/%2F/short-lived", 204)
    for watcher in watchers:
        assert watcher.next() == ("end", {"reason": "what was watched is gone"})
        with pytest.raises(EOFError):
            watcher.next()


@pytest.fixture
def watcher(api):
    api("PUT", "users/watcher", 201, {"password": "pw", "tags": "management"})
    api("PUT", "permissions/%2F/watcher", 201, {"configure": "", "write": "", "read": "^seen"})
    yield
    api.request("DELETE", "users/watcher")


def test_rights(chan, tail, api, node, watcher):
    chan.exchange("seen", "topic")
    chan.declare("hidden")
    for where in ("queue/hidden", "exchange/amq.topic", "exchange/amq.default"):
        assert Tail(node, "%2F/" + where, user="watcher").status == 401
    api("PUT", "topic-permissions/%2F/watcher", 201, {"exchange": "seen", "write": "", "read": "^open"})
    mine = tail("%2F/exchange/seen", user="watcher")
    for key in ("open.1", "secret", "open.2"):
        chan.publish("seen", key)
    assert [mine.message()["routing_key"] for _ in range(2)] == ["open.1", "open.2"]
    api("PUT", "permissions/%2F/watcher", 204, {"configure": "", "write": "", "read": ""})
    chan.publish("seen", "open.3")
    assert mine.next() == ("end", {"reason": "the user may not read this any more"})


def test_a_user_who_is_deleted_or_loses_the_tag(chan, tail, api, watcher):
    chan.declare("seen")
    mine = tail("%2F/queue/seen", user="watcher")
    api("PUT", "users/watcher", 204, {"password": "pw", "tags": ""})
    chan.publish("", "seen", b"x")
    assert mine.next() == ("end", {"reason": "the user may not use the HTTP API any more"})
    api("PUT", "users/watcher", 204, {"password": "pw", "tags": "management"})
    mine = tail("%2F/queue/seen", user="watcher")
    api("DELETE", "users/watcher", 204)
    chan.publish("", "seen", b"x")
    assert mine.next() == ("end", {"reason": "the user is deleted"})


def cookie_of(api):
    answer = api.session.post(api.base + "login", data={"username": "watcher", "password": "pw"}, auth=lambda r: r)
    assert answer.status_code == 200
    return answer.cookies["hermes_session"]


def test_the_end_of_a_login_is_the_end_of_its_tails(chan, tail, api, watcher):
    """Of those of the same login only; another password ends all of them."""
    chan.declare("seen")
    first, second = cookie_of(api), cookie_of(api)
    mine, other, basic = (tail("%2F/queue/seen", user="watcher", cookie=c) for c in (first, second, None))
    answer = api.session.delete(api.base + "hermes/session", headers={"Cookie": "hermes_session=" + first}, auth=lambda r: r)
    assert answer.status_code == 204
    assert mine.next() == ("end", {"reason": "the login has ended"})
    with pytest.raises(EOFError):
        mine.next()
    chan.publish("", "seen", b"x")
    assert other.message()["payload"] == basic.message()["payload"] == "x"
    user = api.get("users/watcher")
    api("PUT", "users/watcher", 204, {k: user[k] for k in ("password_hash", "hashing_algorithm", "tags")})      # the same one
    chan.publish("", "seen", b"y")
    assert other.message()["payload"] == basic.message()["payload"] == "y"
    api("PUT", "users/watcher", 204, {"password": "next", "tags": "management"})
    for this in (other, basic):
        assert this.next() == ("end", {"reason": "the user has another password"})


def test_a_vhost_that_is_deleted(tail, api, watcher):
    api("PUT", "vhosts/gone", 201)
    api("PUT", "permissions/gone/watcher", 201, {"configure": "", "write": "", "read": ".*"})
    api("PUT", "queues/gone/q", 201, {})
    watchers = tail("gone/queue/q", user="watcher"), tail("gone/exchange/amq.topic", user="watcher")
    api("DELETE", "vhosts/gone", 204)
    for this in watchers:
        assert this.next() == ("end", {"reason": "what was watched is gone"})


def test_what_is_asked_is_checked(chan, node, api):
    chan.declare("plain")
    for where, status in (("%2F/queue/none", 404), ("%2F/exchange/none", 404), ("none/queue/plain", 404), ("%2F/queue/plain?rate=0", 400),
                          ("%2F/queue/plain?rate=1001", 400), ("%2F/queue/plain?rate=-1", 400), ("%2F/queue/plain?max_bytes=65537", 400),
                          ("%2F/queue/plain?routing_key=" + "k" * 256, 400)):
        answer = Tail(node, where)
        assert answer.status == status, where
        answer.close()
    assert Tail(node, "%2F/queue/plain", accept="application/json").status == 406
    assert api.request("HEAD", "hermes/tail/%2F/queue/plain", headers={"Accept": "*/*"}).status_code == 200


def test_so_many_at_a_time(chan, node, tail, api):
    chan.declare("many")
    open_ = [tail("%2F/queue/many") for _ in range(8)]
    assert Tail(node, "%2F/queue/many").status == 503
    chan.publish("", "many", b"x")
    assert [t.message()["payload"] for t in open_] == ["x"] * 8


def test_what_the_client_sends_meanwhile_is_no_request(chan, tail, api):
    chan.declare("chatty")
    watcher = tail("%2F/queue/chatty")
    watcher.sock.sendall(b"GET /api/overview HTTP/1.1\r\nHost: x\r\n\r\n" * 100 + b"\0\r\n" * 10000)
    chan.publish("", "chatty", b"x")
    with contextlib.suppress(EOFError, ConnectionError):
        assert watcher.message()["payload"] == "x"
    assert api.get("overview")["node"]


def test_a_node_stops_under_a_tail_and_may_have_none(tmp_path):
    node = Node(tmp_path, "limits: {tails: 1}\n").start()
    try:
        node.raw().channel().declare("q")
        node.abort_conns()
        watcher = Tail(node, "%2F/queue/q")
        assert watcher.status == 200
        assert Tail(node, "%2F/queue/q").status == 503
        assert tails(Api(node))["refused"] == 1
        node.stop()
    finally:
        node.kill()
