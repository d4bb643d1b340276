"""hermes consume: messages as they come, of a queue or of an exchange."""
# SPDX-License-Identifier: Apache-2.0
import json
import signal
import subprocess

import pytest

from api import Api
from node import BINARY, SLOW, clean_env, wait_for
from shell import broker, cli      # noqa: F401 (fixtures)


@pytest.fixture
def consume(broker, cli):
    """consume(WORDS..., **kw): what it prints, of a failure standard error."""
    def run(*words, **kw):
        return cli("consume", *words, "--amqp", broker.amqp_url, **kw)

    return run


@pytest.fixture
def started(broker):
    """started(WORDS...): hermes consume, running."""
    children = []

    def start(*words):
        children.append(subprocess.Popen([str(BINARY), "consume", *words, "--amqp", broker.amqp_url], stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, env=clean_env({})))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


def consumers(broker, queue):
    return broker.raw().channel().declare(queue).consumer_count


def test_as_they_come(broker, started):
    chan = broker.raw().channel()
    queue = chan.declare("come").queue
    child = started(queue)
    wait_for(lambda: consumers(broker, queue) == 1, 10 * SLOW)
    for n in range(3):
        chan.publish("", queue, "%d" % n)
        assert child.stdout.readline() == "%d\n" % n
    child.send_signal(signal.SIGINT)
    assert child.wait(10 * SLOW) == 0 and child.stderr.read() == ""
    ok = chan.declare(queue)
    assert (ok.message_count, ok.consumer_count) == (0, 0)


def test_a_machine_that_is_gone(broker, started):
    """A node that has vanished answers no probe: the system asks for it while the command waits."""
    broker.raw().channel().declare("probed")
    started("probed")
    wait_for(lambda: consumers(broker, "probed") == 1)

    def timers():
        rows = [row.split() for row in open("/proc/net/tcp").read().splitlines()[1:]]
        return [row[5][:2] for row in rows if row[2].endswith(":%04X" % broker.port) and row[3] == "01"]
    # 02: of keepalive; the tests' own connections have none
    wait_for(lambda: "02" in timers())


def test_no_more_than_asked_for(broker, consume):
    chan = broker.raw().channel()
    queue = chan.declare("some").queue
    for n in range(5):
        chan.publish("", queue, "%d" % n)
    assert consume(queue, "--count", "3") == "0\n1\n2\n"
    assert chan.get(queue).redelivered is False         # the others were never taken
    assert consume(queue, "--count", "9", "--wait", "500ms", status=1) == "hermes consume: 1 of 9 messages came\n"


def test_thousands_in_order(broker, consume):
    chan = broker.raw().channel()
    queue = chan.declare("many").queue
    for n in range(5000):
        chan.publish("", queue, "%d" % n)
    for words in (["--prefetch", "1"], []):
        got = consume(queue, "--count", "2500", *words).split()
        assert got == ["%d" % n for n in (range(2500) if words else range(2500, 5000))]
    assert chan.declare(queue).message_count == 0


def test_of_an_exchange(broker, started):
    """Through a queue of its own: those of others keep their messages."""
    chan = broker.raw().channel()
    other = chan.declare("other").queue
    chan.call("queue.bind", queue=other, exchange="amq.topic", routing_key="#")
    child = started("--exchange", "amq.topic", "--key", "order.*", "--key", "invoice", "--json", "--count", "2")
    wait_for(lambda: len(Api(broker).get("exchanges/%2F/amq.topic/bindings/source")) == 3, 10 * SLOW)
    for key in ("order.new", "news", "invoice"):
        chan.publish("amq.topic", key, "to " + key)
    out, err = child.communicate(timeout=20 * SLOW)
    got = [json.loads(line) for line in out.splitlines()]
    assert (child.returncode, err) == (0, "")
    assert [(m["exchange"], m["routing_key"], m["payload"]) for m in got] == [
        ("amq.topic", "order.new", "to order.new"), ("amq.topic", "invoice", "to invoice")]
    assert all(m["consumer_tag"] and "message_count" not in m for m in got)
    assert chan.declare(other).message_count == 3


def test_what_was_not_written_stays(broker, started):
    chan = broker.raw().channel()
    queue = chan.declare("stays").queue
    child = started(queue)
    child.stdout.close()
    wait_for(lambda: consumers(broker, queue) == 1, 10 * SLOW)
    chan.publish("", queue, "x")
    assert child.wait(10 * SLOW) in (1, -signal.SIGPIPE)
    wait_for(lambda: chan.declare(queue).message_count == 1, 10 * SLOW)


def test_the_queue_goes(broker, started):
    chan = broker.raw().channel()
    queue = chan.declare("goes").queue
    child = started(queue)
    wait_for(lambda: consumers(broker, queue) == 1, 10 * SLOW)
    chan.call("queue.delete", queue=queue)
    assert child.wait(10 * SLOW) == 1
    assert child.stderr.read() == "hermes consume: the node ended it: the queue was deleted\n"


@pytest.mark.parametrize("words, said", [
    ([], "of a QUEUE and --exchange NAME it has to be one"),
    (["q", "--exchange", "x"], "of a QUEUE and --exchange NAME it has to be one"),
    (["q", "--key", "x"], "--key is of use with --exchange only"),
    (["q", "--prefetch", "0"], "--prefetch"),
    (["q", "--wait", "soon"], "is not a time"),
])
def test_wrong_words(consume, words, said):
    assert said in consume(*words, status=2)


def test_what_is_not_there(consume):
    assert "404 NOT_FOUND - no queue 'nothing' in vhost '/'" in consume("nothing", status=1)
    assert "404 NOT_FOUND - no exchange 'nothing' in vhost '/'" in consume("--exchange", "nothing", status=1)


def test_no_right_to_a_queue(broker, cli):
    """No queue of its own is made, and none is given back."""
    api = Api(broker)
    api("PUT", "users/looker", 201, {"password": "p", "tags": ""})
    api("PUT", "permissions/%2F/looker", 201, {"configure": "", "write": "", "read": ".*"})
    url = broker.amqp_url.replace("guest:guest@", "looker:p@")
    assert "403 ACCESS_REFUSED" in cli("consume", "--exchange", "amq.topic", "--amqp", url, status=1)
