"""Charts: /api/hermes/history of the node, vhosts, queues and connections."""
# SPDX-License-Identifier: Apache-2.0
from urllib.parse import quote

import pytest

from api import Api
from node import wait_for

NODE = {"publish", "deliver", "ack", "redeliver", "ready", "unacked", "connections", "memory", "disk_free", "loop_lag_us"}
LINES = {"node": NODE, "vhosts/%2F": NODE - {"memory", "disk_free", "loop_lag_us"},
         "queues/%2F/charted": {"publish", "deliver", "ack", "redeliver", "ready", "unacked"},
         "connections/": {"received", "sent", "publish", "deliver", "ack"}}
RANGES = {"minute": (1000, 60), "10m": (5000, 120), "hour": (30000, 120), "day": (600000, 144)}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    from node import Node
    this = Node(tmp_path_factory.mktemp("history")).start()
    yield Api(this), this
    try:
        this.abort_conns()
        this.stop()
    finally:
        this.kill()


def known(samples):
    return [v for v in samples if v is not None]


def test_what_was_published_is_in_every_chart(api):
    api, node = api
    conn = node.raw()
    chan = conn.channel()
    chan.declare("charted")
    name = wait_for(lambda: [c["name"] for c in api.get("connections") if c["channels"] == 1], what="the connection")[0]
    places = [p + (quote(name, safe="") if p == "connections/" else "") for p in LINES]

    def ask(where, span="minute"):
        return api.get("hermes/history/%s?range=%s" % (where, span))

    for where in places:
        ask(where)
    for _ in range(500):
        chan.publish("", "charted", b"x" * 100)
    chan.call("basic.get", queue="charted", no_ack=True)

    def seen():
        docs = [ask(where)["samples"] for where in places]
        return docs if all(sum(known(d["publish"])) > 0 for d in docs) else None

    docs = wait_for(seen, what="the messages in all charts")
    for (key, lines), doc in zip(LINES.items(), docs):
        assert set(doc) == lines, key
    minute = wait_for(lambda: (d := ask("queues/%2F/charted")["samples"]) and (known(d["ready"]) or [0])[-1] == 499 and d)
    assert 480 < sum(known(minute["publish"])) < 520         # a sample is a second
    assert sum(known(ask(places[-1])["samples"]["received"])) > 500 * 100
    node_now = ask("node")["samples"]
    assert known(node_now["memory"])[-1] > 1 << 20 and known(node_now["disk_free"])[-1] > 0
    assert known(node_now["connections"])[-1] == 1 and max(known(node_now["loop_lag_us"])) > 0


def test_ranges(api):
    api, _ = api
    for name, (step, count) in RANGES.items():
        doc = api.get("hermes/history/node?range=" + name)
        assert doc["step_ms"] == step and {len(v) for v in doc["samples"].values()} == {count}
    for odd in ("?range=week", "?range=minutes", "?range=0"):
        assert "10m" in api("GET", "hermes/history/node" + odd, 400)["reason"]


def test_what_is_not_there(api):
    api, _ = api
    for where in ("queues/%2F/none", "vhosts/none", "connections/none"):
        api("GET", "hermes/history/%s?range=minute" % where, 404)


def test_others_connections_are_for_those_who_monitor(api):
    api, node = api
    api("PUT", "users/looker", 201, {"password": "pw", "tags": "management"})
    api("PUT", "permissions/%2F/looker", 201, {"configure": "", "write": "", "read": ""})
    conn = node.raw()
    name = wait_for(lambda: [c["name"] for c in api.get("connections")])[0]
    looker = Api(node, "looker", "pw")
    looker("GET", "hermes/history/connections/%s?range=minute" % quote(name, safe=""), 401)
    looker("GET", "hermes/history/node?range=minute", 401)
    looker("GET", "hermes/history/vhosts/%2F?range=minute", 200)
    conn.abort()


def test_the_table_is_bounded(api):
    api, _ = api
    for i in range(260):
        api("PUT", "queues/%%2F/many%d" % i, 201, {})
        api.get("hermes/history/queues/%%2F/many%d?range=minute" % i)
    table = api.get("overview")["hermes"]["history"]
    assert table["asked"] == table["asked_max"] == 256 and table["evicted"] >= 4
    assert table["bytes"] < 4 << 20
