"""The boards of contrib/grafana and RabbitMQ's own overview, and the rules of contrib/prometheus: a real Prometheus asks a node
that is at work, and each query has to find something."""
# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import re
import threading
import urllib.parse

import pika
import pytest

from api import Api
from node import TOP, Node, wait_for
from prometheus import Prometheus

BOARDS = sorted((TOP / "contrib" / "grafana").glob("*.json"))
#: of a queue, and of its vhost
ODD = ['two\nlines, "quoted" \\ zażółć {a="b"} 😀', 'new\nline "v"']
#: as RabbitMQ's boards want it: a namespace, and a job for each kind of answer is one that they tell apart
OFFICIAL = """
  - job_name: official
    static_configs:
      - targets: ["localhost:15692"]
        labels: {namespace: shop, instance: "rabbit-0:15692"}
"""
DETAILS = re.compile(r"# (family: \[queue_coarse_metrics.*hermes_queue_metrics\])")


def with_details(config):
    """As prometheus.yml says for those who want each queue in detail."""
    line = DETAILS.search(config)
    return re.sub(r"^( +)family: .*$", lambda m: m.group(1) + line.group(1), config, flags=re.M)


class Work(threading.Thread):
    """Confirms, deliveries of all kinds, refusals: for as long as it is asked for."""

    def __init__(self, node):
        super().__init__()
        self.node, self.over, self.failed = node, threading.Event(), None
        self.start()

    def run(self):
        try:
            with pika.BlockingConnection(pika.ConnectionParameters(port=self.node.port)) as conn:
                self.setup(conn)
                while not self.over.is_set():
                    self.turn(conn)
        except Exception as exc:            # told by the fixture
            self.failed = exc

    def setup(self, conn):
        self.chan = conn.channel()
        self.chan.confirm_delivery()
        self.chan.queue_declare("work", durable=True)
        self.chan.queue_declare("backlog", durable=True)
        self.chan.basic_consume("work", lambda chan, method, *rest: chan.basic_ack(method.delivery_tag))
        self.chan.queue_declare("taken", durable=True)
        self.chan.basic_consume("taken", lambda *args: None, auto_ack=True)

    def turn(self, conn):
        for queue in ("work", "backlog", "taken", "nowhere"):
            self.chan.basic_publish("", queue, b"x" * 300, pika.BasicProperties(delivery_mode=2))
        self.chan.basic_get("backlog", auto_ack=True)
        conn.process_data_events(0.02)

    def stop(self):
        self.over.set()
        self.join()
        assert self.failed is None, self.failed


def make_odd_queue(api):
    queue, vhost = [urllib.parse.quote(name, safe="") for name in ODD]
    api("PUT", "vhosts/" + vhost, 201)
    api("PUT", "queues/%s/%s" % (vhost, queue), 201, {})


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boards")
    node = Node(folder / "node", metrics=True).start()
    asks = work = None
    try:
        make_odd_queue(Api(node))
        work = Work(node)
        asks = Prometheus(node, folder, OFFICIAL, with_details)
        asks.node = node
        asks.await_targets(3)
        yield asks
        work.stop()
        node.stop()
    finally:
        if work is not None:
            work.over.set()
        if asks is not None:
            asks.stop()
        node.kill()


def find_data(prometheus, expressions):
    """Waits until each of them has a finite value."""
    left = dict.fromkeys(expressions)

    def look():
        for e in list(left):
            if prometheus.rows(e):
                del left[e]
        return not left

    try:
        wait_for(look, 60, "data")
    except AssertionError as exc:
        raise AssertionError("%s; no data for:\n%s" % (exc, "\n".join(left))) from exc


# ------------------------------------------------------------------ our boards
def read(path):
    return json.loads(path.read_text())


def targets(board):
    return [t for panel in board["panels"] for t in panel.get("targets", [])]


def filled(text, job):
    """With the variables of the board as Grafana sets them when all is chosen."""
    for name, value in {"$job": job, "$instance": ".*", "$vhost": ".*", "$queue": ".*", "$top": "10",
                        "$__rate_interval": "1m"}.items():
        text = text.replace(name, value)
    assert "$" not in text, text
    return text


def test_there_are_boards():
    assert [path.stem for path in BOARDS] == ["hermes-node", "hermes-queues"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda p: p.stem)
def test_boards_can_be_drawn(path):
    board = read(path)
    variables = {v["name"]: v for v in board["templating"]["list"]}
    assert board["uid"] == path.stem and variables["datasource"]["type"] == "datasource"
    ids, cells = [p["id"] for p in board["panels"]], set()
    assert len(ids) == len(set(ids))
    for panel in board["panels"]:
        at = panel["gridPos"]
        taken = set(itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])))
        assert not taken & cells and at["x"] + at["w"] <= 24, panel["title"]
        cells |= taken
        if panel["type"] != "row":
            assert panel["targets"] and panel["title"]
    for has_source in [p for p in board["panels"] if p["type"] != "row"] + targets(board) + [
            v for v in variables.values() if v["type"] == "query"]:
        assert has_source["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("path", BOARDS, ids=lambda p: p.stem)
def test_each_query_of_our_boards_finds_something(prometheus, path):
    board = read(path)
    job = {"hermes-node": "hermes", "hermes-queues": "hermes-queues"}[path.stem]
    values = [re.fullmatch(r"label_values\((.*), (\w+)\)", v["query"]["query"]).groups()
              for v in board["templating"]["list"] if v["type"] == "query"]
    find_data(prometheus, [filled(t["expr"], job) for t in targets(board)]
              + ["count by (%s) (%s)" % (label, filled(series, job)) for series, label in values])


def test_names_come_through_as_they_are(prometheus):
    find_data(prometheus, ["count(rabbitmq_detailed_queue_messages) > 3"])
    assert [tuple(labels[of] for of in ("queue", "vhost")) for labels, _ in prometheus.rows("rabbitmq_detailed_queue_messages")
            if labels["vhost"] != "/"] == [tuple(ODD)]


def test_every_metric_of_ours_that_matters_is_on_a_board():
    shown = "".join(path.read_text() for path in BOARDS)
    for name in ("hermes_healthy", "journal_bytes", "journal_syncs", "journal_batch_bytes", "journal_sync_seconds",
                 "confirm_latency_seconds", "loop_lag_seconds", "messages_paged_out", "hermes_memory_bytes", "back_pressure",
                 "bounds_reached", "message_size_bytes", "queues_over_10000", "queues_without_consumers"):
        assert name in shown, name


# ------------------------------------------------------------------ RabbitMQ's overview
#: the series of its panels: what is shown as it is, and as a rate
SHOWN = ["queue_messages_ready", "queue_messages_unacked", "queues", "channels", "connections", "global_publishers",
         "global_consumers", "disk_space_available_bytes", "build_info", "channel_consumers"]
RATES = ["global_messages_%s_total" % name for name in (
    "received", "confirmed", "routed", "unroutable_dropped", "unroutable_returned", "delivered", "redelivered", "acknowledged",
    "delivered_consume_manual_ack", "delivered_consume_auto_ack", "delivered_get_manual_ack", "delivered_get_auto_ack",
    "get_empty")] + ["%s_total" % name for name in (
        "queues_declared", "queues_created", "queues_deleted", "channels_opened", "channels_closed", "connections_opened",
        "connections_closed")]
#: of its editions before counters of all channels together
OLD_RATES = ["channel_%s_total" % name for name in (
    "messages_published", "messages_confirmed", "messages_unroutable_dropped", "messages_unroutable_returned",
    "messages_delivered", "messages_delivered_ack", "messages_redelivered", "messages_acked", "get", "get_ack",
    "get_empty")] + ["queue_messages_published_total"]
LEFT = [("resident_memory_limit_bytes", "process_resident_memory_bytes"), ("process_max_fds", "process_open_fds"),
        ("process_max_tcp_sockets", "process_open_tcp_sockets")]
SIZES = ["100", "1000", "10000", "100000", "1000000", "10000000", "50000000", "100000000", "+Inf"]


def official(on, cluster, endpoint):
    """Its queries, in the way of one of its editions: those that join by instance alone are the oldest ones."""
    who = 'rabbitmq_identity_info{rabbitmq_cluster="%s", namespace="shop"%s}' % (cluster, endpoint)

    def of(series):
        return "%s * on(%s) group_left(rabbitmq_cluster, rabbitmq_node) %s" % (series, on, who)

    def grown(name):
        return "sum(%s)" % of("increase(rabbitmq_message_size_bytes_%s[1m])" % name)

    yield "count(%s)" % who
    for name in SHOWN:
        yield of("rabbitmq_" + name)
        yield "sum(%s)" % of("rabbitmq_" + name)
        yield "sum(%s) by(rabbitmq_node)" % of("rabbitmq_" + name)
    for name in RATES + OLD_RATES:
        yield "sum(%s) by(rabbitmq_node)" % of("rate(rabbitmq_%s[60s])" % name)
        yield "sum(%s)" % of("irate(rabbitmq_%s[1m])" % name)
    for most, used in LEFT:
        yield "(%s) - (%s)" % (of("rabbitmq_" + most), of("rabbitmq_" + used))
    yield "sum(%s - %s) by(rabbitmq_node)" % (of("rate(rabbitmq_global_messages_received_confirm_total[60s])"),
                                              of("rate(rabbitmq_global_messages_confirmed_total[60s])"))
    yield "sum(%s)" % of("rabbitmq_channel_messages_unconfirmed")
    if on == "instance":
        return
    yield of("rabbitmq_erlang_uptime_seconds * on(%s) group_left(rabbitmq_version, erlang_version) rabbitmq_build_info" % on)
    yield "%s / %s" % (grown("sum"), grown("count"))
    for least, most in zip([None] + SIZES, SIZES):
        share = grown('bucket{le="%s"}' % most) + (" - " + grown('bucket{le="%s"}' % least) if least else "")
        yield "(%s) / %s" % (share, grown('bucket{le="+Inf"}'))


@pytest.mark.parametrize("on,endpoint", [("instance, job", ', rabbitmq_endpoint="aggregated"'), ("instance, job", ""),
                                         ("instance", "")], ids=["endpoint", "instance-job", "instance"])
def test_each_query_of_the_official_overview_finds_something(prometheus, on, endpoint):
    # its variables
    find_data(prometheus, ['rabbitmq_identity_info{namespace="shop", rabbitmq_endpoint!="memory-breakdown"}'])
    who = prometheus.rows('rabbitmq_identity_info{namespace="shop"}')
    assert len(who) == 1 and who[0][0]["rabbitmq_endpoint"] == "aggregated"
    find_data(prometheus, official(on, who[0][0]["rabbitmq_cluster"], endpoint))


# ------------------------------------------------------------------ contrib/prometheus
def test_rules_are_evaluated_and_an_alert_fires(prometheus):
    def evaluated():
        rules = [r for g in (prometheus.ask("rules") or {"groups": []})["groups"] for r in g["rules"]]
        assert all(r["health"] != "err" for r in rules), rules
        return rules and all(r["health"] == "ok" for r in rules)

    def fires():
        return [a["labels"] for a in (prometheus.ask("alerts") or {"alerts": []})["alerts"]
                if a["state"] == "firing" and a["labels"].get("bound") == "vhost_limits"]

    wait_for(evaluated, 60, "all rules evaluated")
    find_data(prometheus, ["hermes:publish:rate1m > 0", "hermes:journal_sync_seconds:p99_5m", "hermes:memory:share"])
    assert not fires()
    api = Api(prometheus.node)
    api("PUT", "vhosts/small", 201)
    api("PUT", "vhost-limits/small/max-queues", 204, {"value": 0})
    api("PUT", "queues/small/q", 400, {})
    wait_for(fires, 60, "an alert")
    assert {f["alertname"] for f in fires()} == {"HermesBoundReached"}
