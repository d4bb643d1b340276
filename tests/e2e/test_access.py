"""Accounts, rights, vhosts and limits on a real node: what they change at once, and what a kill -9 leaves of them."""
# SPDX-License-Identifier: Apache-2.0
import base64
import json
import re
import signal
import statistics
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import quote

import pytest

import wire
from node import SLOW, hermes, wait_for


class Http:
    """The API of a node as one account."""

    def __init__(self, node, user="guest", password="guest"):
        self.base = node.http_url + "/api/"
        self.auth = "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()

    def ask(self, method, path, body=None):
        """Status and body."""
        request = urllib.request.Request(self.base + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": self.auth})
        try:
            with urllib.request.urlopen(request, timeout=20 * SLOW) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    def get(self, path):
        status, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def put(self, path, body=None):
        status, answer = self.ask("PUT", path, body or {})
        assert status in (201, 204), (path, status, answer)

    def delete(self, path):
        status, answer = self.ask("DELETE", path)
        assert status == 204, (path, status, answer)


FULL = {"configure": ".*", "write": ".*", "read": ".*"}


def add_user(http, name, vhost, **permission):
    http.put("users/" + quote(name, safe=""), {"password": "pw-" + name, "tags": "management,own"})
    http.put("permissions/%s/%s" % (quote(vhost, safe=""), quote(name, safe="")), dict(FULL, **permission))


def killed(node):
    node.process.send_signal(signal.SIGKILL)
    node.wait()
    node.process = None
    node.start()


SEEN = ("users", "permissions", "topic-permissions", "vhost-limits", "user-limits", "global-parameters",
        "vhosts/v%2F1")


def test_all_of_it_survives_a_kill(node):
    this = node()
    http = Http(this)
    http.put("vhosts/v%2F1", {"description": "what for", "tags": "a,b"})
    add_user(http, "ż", "v/1", configure="^mine")
    for exchange in ("amq.topic", "a", "z"):
        http.put("topic-permissions/v%2F1/" + quote("ż"), {"exchange": exchange, "write": "^w", "read": ""})
    http.put("vhost-limits/v%2F1/max-queues", {"value": 2})
    http.put("user-limits/" + quote("ż") + "/max-channels", {"value": 3})
    http.put("global-parameters/g", {"value": [1, {"a": None}]})
    http.delete("users/admin")
    before = {path: http.get(path) for path in SEEN}
    killed(this)
    after = {path: http.get(path) for path in SEEN}
    for path in SEEN:
        assert after[path] == before[path], path
    conn = this.raw("ż", "pw-ż", "v/1")
    channels = [conn.channel() for _ in range(3)]
    with pytest.raises(wire.ConnectionClosed) as refusal:
        conn.channel()
    assert refusal.value.code == 530
    http.delete("user-limits/" + quote("ż") + "/max-channels")
    assert len(channels) == 3
    conn = this.raw("ż", "pw-ż", "v/1")
    channel = conn.channel()
    channel.declare("mine-1")
    with pytest.raises(wire.ChannelClosed) as refusal:
        channel.declare("other")
    assert refusal.value.code == 403
    channel = conn.channel()
    channel.declare("mine-2")
    with pytest.raises(wire.ChannelClosed) as refusal:
        channel.declare("mine-3")
    assert refusal.value.code == 406
    channel = conn.channel()
    channel.publish("amq.topic", "w", b"")
    with pytest.raises(wire.ChannelClosed) as refusal:
        channel.publish("amq.topic", "x", b"")
        channel.sync()
    assert refusal.value.code == 403


def test_a_vhost_that_was_deleted_stays_deleted(node):
    """The process is killed while what was in it goes."""
    this = node()
    http = Http(this)
    http.put("vhosts/v")
    conn = this.raw(vhost="v")
    channel = conn.channel()
    channel.call("confirm.select")
    for number in range(400):
        channel.declare("q%d" % number, durable=True)
        channel.publish("", "q%d" % number, b"m", delivery_mode=2)
    channel.confirmed(400)
    http.delete("vhosts/v")
    killed(this)
    assert [v["name"] for v in http.get("vhosts")] == ["/"]
    http.put("vhosts/v")
    channel = this.raw(vhost="v").channel()
    with pytest.raises(wire.ChannelClosed) as refusal:
        channel.declare("q0", passive=True)
    assert refusal.value.code == 404
    wait_for(lambda: this.overview()["object_totals"]["queues"] == 0, 10)
    killed(this)
    assert this.overview()["object_totals"]["queues"] == 0
    assert sorted(v["name"] for v in http.get("vhosts")) == ["/", "v"]


def fill(channel):
    """One of everything that keeps messages beside a plain queue; what waits for later, too."""
    channel.exchange("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    channel.declare("plain", durable=True, arguments={"x-dead-letter-exchange": "later", "x-message-ttl": 1,
                                                      "x-message-deduplication": True})
    channel.declare("levels", durable=True, arguments={"x-max-priority": 3})
    channel.declare("quorum", durable=True, arguments={
        "x-queue-type": "quorum", "x-dead-letter-exchange": "missing", "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish", "x-message-ttl": 1})
    channel.exchange("all", "fanout", durable=True)
    for queue in ("plain", "levels", "quorum"):
        channel.bind(queue, "all")
    channel.bind("levels", "later")
    channel.call("confirm.select")
    for number in range(50):
        channel.publish("later", "k", b"d", delivery_mode=2, headers={"x-delay": 3600000})
        channel.publish("all", "k", b"m", delivery_mode=2, priority=number % 4, message_id="m%d" % number)
    channel.confirmed(100)


def test_a_vhost_full_of_everything(node, tmp_path):
    """Delayed messages, dead letters that nobody takes, deduplication: all of it goes with the vhost."""
    this = node()
    http = Http(this)
    for _ in range(2):
        http.put("vhosts/v")
        channel = this.raw(vhost="v").channel()
        fill(channel)
        consumer = channel.consume("levels")
        channel.deliver()
        assert consumer
        http.delete("vhosts/v")
        killed(this)
        wait_for(lambda: this.overview()["object_totals"]["queues"] == 0, 10)
    http.put("vhosts/v")
    channel = this.raw(vhost="v").channel()
    fill(channel)
    assert channel.get("levels").body == b"m"      # no duplicate of an earlier vhost's
    http.delete("vhosts/v")
    wait_for(lambda: this.overview()["object_totals"]["queues"] == 0, 10)
    this.abort_conns()
    this.stop()
    done = hermes("check-data", this.data)
    assert done.returncode == 0, done.stdout
    assert not re.search("damage|left out|made again", this.log), this.log
    this.start()
    assert this.overview()["queue_totals"]["messages"] == 0


def test_open_connections(node):
    """A change of rights counts at once; who loses the account or the vhost loses the connection."""
    this = node()
    http = Http(this)
    http.put("vhosts/v")
    add_user(http, "u", "v")
    conn = this.raw("u", "pw-u", "v")
    channel = conn.channel()
    channel.declare("q")
    http.put("permissions/v/u", {"configure": "", "write": ".*", "read": "^$"})
    with pytest.raises(wire.ChannelClosed) as refusal:
        channel.declare("r")
    assert refusal.value.code == 403
    channel = conn.channel()
    channel.publish("", "q", b"1")
    channel.sync()
    http.put("permissions/v/u", {"configure": "", "write": "^$", "read": "^$"})
    with pytest.raises(wire.ChannelClosed) as refusal:
        channel.publish("", "q", b"2")      # to the place that it has just published to
        channel.sync()
    assert refusal.value.code == 403
    other = this.raw(vhost="v")
    http.delete("users/u")
    assert conn.expect_connection_close(320).text == "CONNECTION_FORCED - user 'u' is deleted"
    http.delete("vhosts/v")
    assert other.expect_connection_close(320).text == "CONNECTION_FORCED - vhost 'v' is deleted"


def test_topic_rights_hold_for_bindings_over_http(node):
    """As for queue.bind and exchange.bind: who may not read a key cannot have it sent to a queue of his own."""
    n = node()
    http = Http(n)
    add_user(http, "reader", "/")
    http.put("topic-permissions/%2F/reader", {"exchange": "amq.topic", "write": "", "read": "^mine"})
    http.put("queues/%2F/q")
    http.put("exchanges/%2F/x", {"type": "fanout"})
    reader = Http(n, "reader", "pw-reader")
    for end in "q/q", "e/x":
        where = "bindings/%2F/e/amq.topic/" + end
        assert reader.ask("POST", where, {"routing_key": "secret"})[0] == 401
        assert http.get(where) == []
        assert reader.ask("POST", where, {"routing_key": "mine"})[0] == 201
        assert http.ask("POST", where, {"routing_key": "secret"})[0] == 201
        assert reader.ask("DELETE", where + "/secret")[0] == 401
        reader.delete(where + "/mine")
        assert [b["routing_key"] for b in http.get(where)] == ["secret"]


def test_what_an_alternate_exchange_needs_over_http(node):
    """As for exchange.declare: who may not write to an exchange cannot have it written to by one of his own."""
    n = node()
    http = Http(n)
    add_user(http, "maker", "/", configure="^m", write="^m|^open", read="^mr")
    maker = Http(n, "maker", "pw-maker")
    for name, alternate, want in (("mr1", "amq.direct", 401), ("m1", "open", 401), ("mr2", "open", 201), ("mr2", "amq.direct", 400)):
        body = {"type": "fanout", "arguments": {"alternate-exchange": alternate}}
        assert maker.ask("PUT", "exchanges/%2F/" + name, body)[0] == want, (name, alternate)


@pytest.mark.parametrize("kind, name, size", [
    ("sha256", "rabbit_password_hashing_sha256", 36), ("sha512", "rabbit_password_hashing_sha512", 68),
    ("pbkdf2", "hermes_password_hashing_pbkdf2_sha512", 84)])
def test_how_passwords_are_kept(node, kind, name, size):
    """And that they can be moved to another node, as hashes."""
    this = node("management: {password_hash: %s}\n" % kind)
    http = Http(this)
    add_user(http, "u", "/")
    row = http.get("users/u")
    assert row["hashing_algorithm"] == name
    assert len(base64.b64decode(row["password_hash"])) == size
    http.put("users/moved", {key: row[key] for key in ("hashing_algorithm", "password_hash", "tags")})
    http.put("permissions/%2F/moved", FULL)
    killed(this)
    for user in ("u", "moved"):
        this.raw(user, "pw-u").close()
        assert Http(this, user, "pw-u").get("whoami")["name"] == user
        assert Http(this, user, "pw-v").ask("GET", "whoami")[0] == 401


def test_accounts_are_in_a_snapshot(node, tmp_path):
    this = node()
    add_user(Http(this), "u", "/")
    done = hermes("snapshot", tmp_path / "backup", env={"HERMES_URL": this.http_url})
    assert done.returncode == 0, done.stderr
    other = node(start=False)
    done = hermes("restore", tmp_path / "backup", "-d", other.data)
    assert done.returncode == 0, done.stderr
    other.start()
    other.raw("u", "pw-u").close()
    assert Http(other).get("permissions") == Http(this).get("permissions")


def test_environment_of_the_image(node):
    this = node(env={"RABBITMQ_DEFAULT_USER": "app", "RABBITMQ_DEFAULT_PASS": "s3cret", "RABBITMQ_DEFAULT_VHOST": "shop"})
    this.raw("app", "s3cret", "shop").close()
    conn = this.tcp()
    with pytest.raises(wire.ConnectionClosed) as refusal:
        conn.handshake("app", "s3cret", "/")
    assert refusal.value.code == 530
    killed(this)
    this.raw("app", "s3cret", "shop").close()


def test_frames_that_do_not_wait_for_the_login(node):
    """The first login of this account is hashed elsewhere; what the client has sent meanwhile is read after it."""
    this = node("default_user: {name: app, password: s3cret}\n")
    conn = this.tcp()
    conn.start()
    conn.start_ok("app", "s3cret")
    conn.tune_ok(channel_max=100, frame_max=131072)
    conn.send_method(0, "connection.open", virtual_host="/")
    conn.send_method(1, "channel.open")
    conn.await_tune()
    conn.next_event(0, names=["connection.open-ok"])
    conn.next_event(1, names=["channel.open-ok"])
    # and one that goes away meanwhile
    for _ in range(20):
        conn = this.tcp()
        conn.start()
        conn.start_ok("app", "wrong")
        conn.abort()
    conn = this.tcp()
    conn.start()
    conn.start_ok("app", "wrong too")
    with pytest.raises(wire.ConnectionClosed) as refusal:
        conn.await_tune(20 * SLOW)      # the others' passwords are hashed before
    assert refusal.value.code == 403
    this.raw("app", "s3cret").close()


@pytest.mark.release
def test_guessing_holds_nobody_up(node):
    this = node("default_user: {name: app, password: s3cret}\n")
    channel = this.raw("app", "s3cret").channel()
    channel.declare("q")
    done = threading.Event()

    def guess(number):
        count = 0
        while not done.is_set():
            Http(this, "app", "guess %d %d" % (number, count)).ask("GET", "whoami")
            count += 1

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    times = []
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        begin = time.monotonic()
        channel.publish("", "q", b"m")
        assert channel.get_wait("q").body == b"m"
        times.append(time.monotonic() - begin)
    done.set()
    for thread in threads:
        thread.join()
    assert statistics.median(times) < 0.02, sorted(times)[-10:]
