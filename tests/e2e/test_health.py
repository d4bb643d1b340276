"""Health: a message of the node's own that goes all the way; what those hear who have not logged in."""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures

import pytest
import requests

from api import Api
from node import wait_for

CHAIN = "health/checks/chain"


def well(said):
    return said.pop("status") == "ok" and set(said) == {"journal_us", "consumer_us"} and min(said.values()) > 0


def test_the_chain(node):
    """Users' limits and policies are not in its way, and it is in nobody's lists."""
    this = node("limits: {queues: 1, consumers: 1}\n")
    api = Api(this)
    conn = this.pika()
    chan = conn.channel()
    chan.queue_declare("events")
    chan.queue_bind("events", "amq.rabbitmq.event", "#")
    chan.basic_consume("events", lambda *_: None)
    api("PUT", "policies/%2F/all", 201, {"pattern": ".*", "definition": {"max-length": 0, "expires": 1}, "apply-to": "all"})
    api("DELETE", "policies/%2F/all", 204)
    api("PUT", "vhost-limits/%2F/max-queues", 204, {"value": 0})
    before = [api.get(what) for what in ("definitions", "vhosts?columns=name", "queues?columns=name", "exchanges?columns=name")]

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert all(pool.map(lambda i: well(Api(this).get(CHAIN)), range(48)))

    assert before == [api.get(what) for what in ("definitions", "vhosts?columns=name", "queues?columns=name",
                                                 "exchanges?columns=name")]
    totals = api.get("overview")["object_totals"]
    assert (totals["queues"], totals["consumers"], totals["channels"]) == (1, 1, 1)
    conn.close()
    assert "probe-" not in this.log and not any(" error " in line for line in this.log.splitlines())


def test_who_may_ask_and_what_does_not_come(node):
    this = node()
    api = Api(this)
    assert requests.get(this.http_url + "/api/" + CHAIN).status_code == 401
    api("PUT", "users/watcher", 201, {"password": "pw", "tags": "monitoring"})
    assert well(Api(this, "watcher", "pw").get(CHAIN))
    said = Api(this, "watcher", "pw")("GET", CHAIN + "?within_ms=0", 503)      # no disk is so quick
    assert said == {"status": "failed", "step": "journal", "reason": "the message was not safe on disk in time"}
    line, = wait_for(lambda: [li for li in this.log.splitlines() if "did not come through" in li])
    assert "watcher: " in line and "(journal)" in line
    assert any(row["path"] == "/api/" + CHAIN and "within_ms" in row["help"] for row in api.get("hermes/routes"))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart(node, how):
    this = node()
    for _ in range(5):
        Api(this)("GET", CHAIN + "?within_ms=0", 503)
    this.kill() if how == "kill" else this.stop()
    this.start()
    assert Api(this).get("queues") == [] and well(Api(this).get(CHAIN))
    assert not any(" error " in line or "damage" in line for line in this.log.splitlines())


def test_a_disk_alarm_keeps_nobody_out(node):
    """Consumers are to drain it, and publishers wait on their connections: /healthz fails, /readyz does not."""
    this = node("disk: {min_free: 100%}\n")
    wait_for(lambda: requests.get(this.http_url + "/healthz").status_code == 503, what="a disk alarm")
    for path in ("/readyz", "/api/health/checks/is-in-service", "/api/health/checks/ready-to-serve-clients"):
        assert requests.get(this.http_url + path, auth=("guest", "guest")).status_code == 200, path
    chan = this.raw().channel()
    chan.declare("q")
    chan.consume("q")


def test_without_a_login(node):
    """Nothing but whether; why is for the log and for who has logged in."""
    this = node("memory: {limit: 8MiB, spill: 0%}\n")
    for path in ("/healthz", "/readyz"):
        answer = requests.get(this.http_url + path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    conn = this.fill_memory()
    answer = wait_for(lambda: [a for a in [requests.get(this.http_url + "/healthz")] if a.status_code == 503])[0]
    assert answer.json() == {"status": "failed"}
    assert requests.get(this.http_url + "/readyz").status_code == 200       # consumers are to drain it
    this.await_log("127.0.0.1: /healthz is answered with 503: memory alarm: ")
    api = Api(this)
    assert "memory alarm: " in api("GET", "health/checks/alarms", 503)["reason"]
    assert api("GET", CHAIN, 503) == {"status": "failed", "step": "publisher", "reason": "memory is short"}
    conn.abort()
