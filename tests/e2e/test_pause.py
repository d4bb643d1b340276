"""Queues that are paused over HTTP: consumers and basic.get get nothing, publishers go on, a restart changes nothing."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from api import Api
from node import hermes, wait_for

PAUSE = "hermes/queues/%2F/{}/pause"


def again(this, how):
    this.abort_conns()
    if how == "kill":
        this.kill()
    else:
        this.stop()
    return this.start()


def state(api, queue):
    return api.get("queues/%2F/" + queue)["state"]


def test_nothing_goes_out(node):
    this = node()
    api = Api(this)
    chan, other = this.raw().channel(), this.raw().channel()
    chan.declare("q", durable=True)
    other.consume("q", no_ack=True)
    assert state(api, "q") == "running"
    api("PUT", PAUSE.format("q"), 204)
    api("PUT", PAUSE.format("q"), 204)
    assert state(api, "q") == "paused"
    rows = api.get("queues?disable_stats=true") + api.get("queues?disable_stats=true&enable_queue_totals=true")
    assert [r["state"] for r in rows] == ["paused"] * 2
    for i in range(3):
        chan.publish("", "q", "m%d" % i, delivery_mode=2)
    chan.wait_count("q", 3)
    assert chan.get("q") is None
    other.expect_nothing()
    got = api("POST", "queues/%2F/q/get", body={"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"})
    assert [m["payload"] for m in got] == ["m0"]
    api("DELETE", PAUSE.format("q"), 204)
    assert [other.deliver().body for _ in range(2)] == [b"m1", b"m2"]
    assert state(api, "q") == "running"


def test_get_says_that_a_queue_is_paused(node):
    this = node()
    api = Api(this)
    chan = this.raw().channel()
    chan.declare("q")
    api("PUT", PAUSE.format("q"), 204)

    def get(*more, status=1):
        done = hermes("get", "q", "--amqp", "amqp://127.0.0.1:%d" % this.port, *more)
        assert done.returncode == status, done.stderr
        return done.stdout or done.stderr

    assert get() == "hermes get: queue is empty\n"
    chan.publish("", "q", "m")
    chan.wait_count("q", 1)
    for said in get(), get("--requeue", "--count", "3"):
        assert said.startswith("hermes get: queue is paused and keeps its 1 message; 'hermes queue resume' lets them go"), said
    api("DELETE", PAUSE.format("q"), 204)
    assert get(status=0) == "m\n"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_over_a_restart(node, how):
    this = node()
    api = Api(this)
    chan = this.raw().channel()
    for name in ("q", "resumed", "never"):
        chan.declare(name, durable=True)
        chan.publish("", name, "m", delivery_mode=2)
    chan.declare("p", durable=True, arguments={"x-max-priority": 5})
    chan.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    for name in ("q", "resumed", "p", "quorum"):
        api("PUT", PAUSE.format(name), 204)
    api("DELETE", PAUSE.format("resumed"), 204)
    again(this, how)
    states = {row["name"]: row["state"] for row in api.get("queues")}
    assert states == {"q": "paused", "p": "paused", "quorum": "paused", "resumed": "running", "never": "running"}
    chan = this.raw().channel()
    for name in ("q", "resumed", "never"):
        chan.consume(name, tag=name, no_ack=True)
    assert {chan.deliver().consumer_tag for _ in range(2)} == {"resumed", "never"}
    api("DELETE", PAUSE.format("q"), 204)
    assert chan.deliver().consumer_tag == "q"
    this.abort_conns()
    wait_for(lambda: not api.get("consumers"), what="no consumers")


def test_rights(node):
    this = node()
    api = Api(this)
    chan = this.raw().channel()
    for name in ("mine", "theirs"):
        chan.declare(name)
    chan.declare("only", exclusive=True)
    api("PUT", "users/u", 201, {"password": "pw", "tags": "management"})
    api("PUT", "permissions/%2F/u", 201, {"configure": "^(mine|only)$", "write": ".*", "read": ".*"})
    user = Api(this, "u", "pw")
    for method in ("PUT", "DELETE"):
        assert user.request(method, PAUSE.format("theirs")).status_code == 401
        assert user.request(method, PAUSE.format("only")).status_code == 400
        assert user.request(method, PAUSE.format("nope")).status_code == 404
        user(method, PAUSE.format("mine"), 204)
