"""What the log says of messages: a message-id can be followed at level debug; what is dropped is said, with a count."""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import signal

import pika
import pytest
import requests
import wire

from api import Api
from node import wait_for


def lines(this, word):
    return [line for line in this.log.splitlines() if word in line]


def send(chan, to, ident, **kw):
    chan.basic_publish("", to, b"m", pika.BasicProperties(message_id=ident, **kw))


def test_what_the_broker_sends_on_is_followed(node):
    """Delayed, and moved by an operator."""
    this = node("log: {level: debug}\n")
    api = Api(this)
    conn = this.pika()
    chan = conn.channel()
    chan.queue_declare("q")
    chan.exchange_declare("later", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    chan.queue_bind("q", "later", "k")
    chan.basic_publish("later", "k", b"m", pika.BasicProperties(message_id="slow", headers={"x-delay": 20}))
    wait_for(lambda: len(lines(this, "'slow'")) == 2)
    kept, due = lines(this, "'slow'")
    assert kept.endswith("0 queues, and kept until it is due")
    assert due.endswith("message 'slow' is due, and goes on with exchange 'later' and key 'k' to 1 queues: 'q'")
    chan.queue_declare("other")
    api("POST", "hermes/queues/%2F/q/move", 202, {"destination": "other"})
    wait_for(lambda: "message 'slow' is moved with exchange 'later' and key 'k' to 1 queues: 'other'" in this.log)
    conn.close()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_message_is_followed(node, form):
    this = node("log: {level: debug, format: %s}\n" % form)
    conn = this.pika()
    chan = conn.channel()
    chan.queue_declare("dead")
    chan.queue_declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    send(chan, "q", "id-1")
    send(chan, "q", "id-2")
    chan.basic_nack(chan.basic_get("q")[0].delivery_tag)
    chan.basic_reject(chan.basic_get("q")[0].delivery_tag, requeue=False)
    wait_for(lambda: chan.queue_declare("dead", passive=True).method.message_count == 1)
    chan.basic_ack(chan.basic_get("dead")[0].delivery_tag)
    conn.close()
    wait_for(lambda: len(lines(this, "'id-1'")) == 9)
    said = lines(this, "'id-1'")
    for what, line in zip([
            "is published to exchange '' with key 'q', 1 queues: 'q'", "of queue 'q' is given out",
            "of queue 'q' is given back",
            "of queue 'q' is given out again", "of queue 'q' is rejected|dies in queue 'q': rejected",
            "of queue 'q' is rejected|dies in queue 'q': rejected",
            "goes on as a dead letter with exchange '' and key 'dead' to 1 queues: 'dead'", "of queue 'dead' is given out",
            "of queue 'dead' is acknowledged"], said):
        assert re.search(what, line), said
        if form == "json":
            row = json.loads(line)
            assert row["level"] == "debug"
            assert "dies" in line or "goes on" in line or (row["user"], row["vhost"]) == ("guest", "/") and row["peer"].startswith("127.0.0.1:")
    wait_for(lambda: len(lines(this, "'id-2'")) == 1)


def test_the_level_changes(node):
    """While it runs; and at the level of operation there is nothing of single messages."""
    this = node("log: {level: info}\n")
    conn = this.pika()
    chan = conn.channel()
    chan.queue_declare("q")
    send(chan, "q", "before")
    for level, ident in (("debug", "at-debug"), ("info", "after")):
        again = len(lines(this, "settings were read again"))
        this.config.write_text("log: {level: %s}\n" % level)
        this.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(lines(this, "settings were read again")) > again)
        chan.queue_declare("q", passive=True)       # a turn has passed
        send(chan, "q", ident)
        chan.queue_declare("q", passive=True)
    conn.close()
    wait_for(lambda: lines(this, "'at-debug'"))
    assert [len(lines(this, "'%s'" % ident)) for ident in ("before", "at-debug", "after")] == [0, 1, 0]


def test_what_is_dropped(node):
    this = node()
    conn = this.pika()
    chan = conn.channel()
    for _ in range(100):
        chan.basic_publish("amq.direct", "nowhere", b"m")
    chan.queue_declare("q")
    conn.close()
    wait_for(lambda: lines(this, "is dropped"))     # a thread of its own writes them
    line, = lines(this, "is dropped")
    assert "guest@/: a message for exchange 'amq.direct' with key 'nowhere' is dropped: no queue takes it" in line


def test_what_is_refused_over_http(node):
    """With whose it was, where, and the reason, which the answer need not tell."""
    this = node()
    api = Api(this)
    api("PUT", "users/u", 201, {"password": "p", "tags": "management"})
    api("PUT", "permissions/%2F/u", 201, {"configure": "^a", "write": "", "read": ""})
    Api(this, "u", "p")("PUT", "queues/%2F/q", 401, {})
    wait_for(lambda: lines(this, " refused: "))
    line, = lines(this, " refused: ")
    assert re.search(r"127\.0\.0\.1\S* u@/: PUT \S+ refused: .*access to queue 'q' in vhost '/' refused for user 'u'", line)


class Said:
    """Lines of a log of JSON, each asked for once."""

    def __init__(self, this):
        self.this = this

    def rows(self, text):
        whole = self.this.log.rpartition("\n")[0].splitlines()
        return [row for row in map(json.loads, whole) if re.search(text, row["message"])]

    def once(self, level, text, user=None, vhost=None, peer=True):
        row, = wait_for(lambda: self.rows(text), what="a line like %r in\n%s" % (text, self.this.log))
        got = (row["level"], row.get("user"), row.get("vhost"))
        assert got == (level, user, vhost), row
        assert ("127.0.0.1" in row.get("peer", "")) == peer, row


def closes(call, *args, **kw):
    with pytest.raises((pika.exceptions.AMQPError, wire.ServerClose, wire.Eof)):
        call(*args, **kw)


def test_each_refusal_once(node):
    """With its level, and with peer, user, vhost and reason as far as there are such."""
    this = node("log: {level: info, format: json}\nlimits: {connections: 20}\n")
    api, said = Api(this), Said(this)
    api("PUT", "users/u", 201, {"password": "p", "tags": "management"})
    api("PUT", "vhosts/v", 201)
    for vhost, rights in (("%2F", "^a"), ("v", "")):
        api("PUT", "permissions/%s/u" % vhost, 201, {"configure": rights, "write": rights, "read": rights})
    api("PUT", "vhost-limits/v/max-connections", 204, {"value": 0})

    # connections
    this.tcp().send_raw(b"GET / HTTP/1.1\r\n\r\n")
    said.once("warning", "connection refused: the protocol is HTTP")
    closes(this.raw, "guest", "wrong")
    said.once("warning", "login refused for user 'guest' using mechanism PLAIN: wrong password")
    closes(this.raw, "u", "p", "nowhere")
    said.once("warning", "530 NOT_ALLOWED - .*nowhere", "u")
    closes(this.raw, "u", "p", "v")
    said.once("warning", "530 NOT_ALLOWED - .*limit", "u")
    closes(this.raw, "nobody", "p")
    said.once("warning", "login refused for user 'nobody'")

    # channels: no right, no such thing, and what the connection does not survive
    conn = this.raw("u", "p")
    closes(conn.channel().call, "queue.declare", queue="b")
    said.once("warning", "channel closed.*403 ACCESS_REFUSED - access to queue 'b' in vhost '/' refused for user 'u'|"
              "403 ACCESS_REFUSED", "u", "/")
    closes(conn.channel().call, "queue.declare", queue="a", passive=True)
    said.once("warning", "404 NOT_FOUND - no queue 'a' in vhost '/'", "u", "/")
    closes(conn.channel().call, "basic.qos", prefetch_size=1)
    said.once("warning", "540 NOT_IMPLEMENTED", "u", "/")
    conn.abort()

    # messages
    conn = this.raw("u", "p")
    chan = conn.channel()
    chan.declare("a")
    chan.publish("", "a", b"m")
    chan.publish("", "a-nowhere", b"m")
    said.once("info", "key 'a-nowhere' is dropped: no queue takes it", "u", "/")
    assert chan.call("queue.purge", queue="a").message_count == 1
    said.once("info", "queue 'a' in vhost '/' is purged of 1 messages", "u", "/")
    chan.call("queue.declare", queue="a-slow", arguments={"x-consumer-timeout": 50})
    chan.publish("", "a-slow", b"m")
    chan.call("basic.consume", queue="a-slow", consumer_tag="lazy")
    said.once("warning", "lazy.*a-slow", "u", "/")
    conn.abort()

    # over HTTP: who may not log in, has not the tag, the vhost, or the right, or comes from another's page
    Api(this, "u", "wrong")("GET", "overview", 401)
    said.once("warning", "HTTP login refused: wrong password", "u")
    api_u = Api(this, "u", "p")
    api_u("PUT", "vhosts/other", 401, {})
    said.once("warning", "PUT /api/vhosts/:vhost refused: Not administrator user", "u")
    api("PUT", "vhosts/hidden", 201)
    api_u("GET", "queues/hidden", 401)
    said.once("warning", "GET /api/queues/:vhost refused: ", "u", "hidden")
    api_u("PUT", "queues/%2F/b", 401, {})
    said.once("warning", "PUT /api/queues/:vhost/:queue refused: access to queue 'b'", "u", "/")
    api_u("PUT", "queues/%2F/a2", 403, {}, headers={"Sec-Fetch-Site": "cross-site"})
    said.once("warning", "refused: a page of another site may not do this")
    requests.get(this.http_url + "/api/overview", cookies={"hermes_session": "forged"})
    said.once("warning", "GET /api/overview refused: the session is over, or there was none")
    api("PUT", "vhosts/x", 413, {"description": "x" * (1 << 20)})
    said.once("warning", "PUT /api/vhosts/:vhost refused: the body has ", "guest")

    # too many of them: of those above some may be open still, so several are refused
    held = [this.tcp() for _ in range(22)]
    rows = wait_for(lambda: said.rows("refused: .*limit"))
    assert all(row["level"] == "warning" and "127.0.0.1" in row["peer"] for row in rows)
    for sock in held:
        sock.abort()
    assert {row["level"] for row in said.rows("")} == {"info", "warning"}


def test_what_queues_give_up(node):
    """At debug, with or without a message-id; who published it stands in the line before."""
    this = node("log: {level: debug, format: json}\n")
    said = Said(this)
    conn = this.pika()
    chan = conn.channel()
    chan.queue_declare("short", arguments={"x-max-length": 1})
    send(chan, "short", "first")
    send(chan, "short", "second")
    said.once("debug", "^message 'first' dies in queue 'short': maxlen$", peer=False)
    chan.queue_declare("brief", arguments={"x-message-ttl": 0})
    chan.basic_publish("", "brief", b"m")
    said.once("debug", r"^message \(without a message-id\) dies in queue 'brief': expired$", peer=False)
    chan.queue_declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    send(chan, "full", "late")
    said.once("debug", "^message 'late' dies in queue 'full': refused, the queue is full$", peer=False)
    chan.queue_declare("once", arguments={"x-message-deduplication": True})
    for _ in range(2):
        send(chan, "once", "twin", headers={"x-deduplication-header": "k"})
    said.once("debug", "^message 'twin' is dropped at queue 'once': a duplicate$", peer=False)
    conn.close()


def test_alarms(node):
    this = node("log: {format: json}\nmemory: {limit: 8MiB, spill: 0%}\n")
    said = Said(this)
    conn = this.fill_memory()
    rows = wait_for(lambda: said.rows("^memory alarm: .*(publishers are held back|over the hard limit)"))
    assert rows[0]["level"] == "warning"
    Api(this)("DELETE", "queues/%2F/q/contents", 204)
    said.once("info", "^memory alarm is over", peer=False)
    conn.abort()
