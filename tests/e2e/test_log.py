"""What the log says of messages: a message-id can be followed at level debug; what is dropped is said, with a count."""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import signal

import pika
import pytest

from api import Api
from node import wait_for


def lines(this, word):
    return [line for line in this.log.splitlines() if word in line]


def send(chan, to, ident, **kw):
    chan.basic_publish("", to, b"m", pika.BasicProperties(message_id=ident, **kw))


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
    wait_for(lambda: len(lines(this, "'id-1'")) == 8)
    said = lines(this, "'id-1'")
    for what, line in zip([
            "is published to exchange '' with key 'q', 1 queues: 'q'", "of queue 'q' is given out",
            "of queue 'q' is given back",
            "of queue 'q' is given out again", "of queue 'q' is rejected|dies in queue 'q': rejected",
            "of queue 'q' is rejected|dies in queue 'q': rejected", "of queue 'dead' is given out",
            "of queue 'dead' is acknowledged"], said):
        assert re.search(what, line), said
        if form == "json":
            row = json.loads(line)
            assert row["level"] == "debug"
            assert "dies" in line or (row["user"], row["vhost"]) == ("guest", "/") and row["peer"].startswith("127.0.0.1:")
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
