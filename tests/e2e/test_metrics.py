"""Metrics as Prometheus sees them: its own tools read what the node writes, and the rules of contrib/prometheus."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import re
import signal
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

import pika
import pytest

from api import Api
from node import SLOW, Node, free_port, wait_for
from prometheus import RULES, tool

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
PATHS = ["/metrics", "/metrics/per-object",
         "/metrics/detailed?family=queue_coarse_metrics&family=queue_metrics&family=vhost_status&family=exchange_bindings"
         "&family=hermes_queue_metrics&family=node_coarse_metrics&family=channel_exchange_metrics"]
NAMES = ['a "quoted" name', 'back\\slash', '\\n is no line end', 'zażółć {a="b"}, €😀', "tab\tand, comma", "}", "two\nlines"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("metrics"), metrics=True).start()
    yield this
    try:
        this.abort_conns()
        this.stop()
        this.check_reports()
    finally:
        this.kill()


def scrape(node, path="/metrics"):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (node.metrics_port, path), timeout=60 * SLOW) as answer:
        return answer.read().decode()


def labels(text):
    out, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        assert m, "bad labels: %r" % text
        out[m.group(1)] = re.sub(r'\\(.)', lambda x: "\n" if x.group(1) == "n" else x.group(1), m.group(2))
        at = m.end()
    return out


def samples(text):
    """{(name, labels): value}; no series twice, no metric in two places, none without its type."""
    out, types, done, last = {}, {}, set(), None
    assert text.endswith("\n")
    for line in text.split("\n")[:-1]:
        if line.startswith("#"):
            word, name, rest = line[2:].split(" ", 2)
            assert word in ("HELP", "TYPE"), line
            if word == "TYPE":
                assert name not in types, line
                types[name] = rest
            continue
        m = SAMPLE.match(line)
        assert m, line
        name = m.group(1)
        family = name if name in types else re.sub("_(bucket|sum|count)$", "", name)
        assert family in types, line
        if family != last:
            assert family not in done, line
            done.add(family)
            last = family
        key = (name, frozenset(labels(m.group(2) or "").items()))
        assert key not in out, line
        out[key] = float(m.group(3))
    return out


def one(all_samples, name, **want):
    found = [v for (n, got), v in all_samples.items() if n == name and want.items() <= dict(got).items()]
    assert len(found) == 1, (name, want, found)
    return found[0]


def test_names_of_all_kinds(broker):
    api = Api(broker)
    vhosts = ["new\nline \"v\"", "plain"]
    for vhost in vhosts:
        api("PUT", "vhosts/" + urllib.parse.quote(vhost, safe=""), 201)
        for name in NAMES:
            where = "%s/%s" % (urllib.parse.quote(vhost, safe=""), urllib.parse.quote(name, safe=""))
            api("PUT", "queues/" + where, 201, {})
            api("PUT", "exchanges/" + where, 201, {"type": "fanout"})
    got = samples(scrape(broker, "/metrics/per-object"))
    both = samples(scrape(broker, PATHS[2]))
    for vhost in vhosts:
        for name in NAMES:
            assert one(got, "rabbitmq_queue_messages", vhost=vhost, queue=name) == 0
            assert one(both, "rabbitmq_detailed_queue_consumers", vhost=vhost, queue=name) == 0
            assert one(both, "rabbitmq_cluster_exchange_bindings", vhost=vhost, exchange=name, type="fanout") == 0
        assert one(both, "rabbitmq_cluster_vhost_status", vhost=vhost) == 1
    part = samples(scrape(broker, "/metrics/detailed?family=queue_coarse_metrics&vhost=" + urllib.parse.quote(vhosts[0])))
    assert {dict(l)["vhost"] for n, l in part if n.startswith("rabbitmq_detailed_")} == {vhosts[0]}


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.split("?")[0].split("/")[-1])
def test_promtool_likes_it(broker, path):
    with pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)) as conn:
        chan = conn.channel()
        chan.queue_declare("tool")
        chan.basic_publish("", "tool", b"x")
        for name in NAMES:
            Api(broker).request("PUT", "queues/%2F/" + urllib.parse.quote(name, safe=""), {}).raise_for_status()
        text = scrape(broker, path)
    done = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_queues_come_and_go_meanwhile(broker):
    stop, failed = threading.Event(), []

    def churn():
        try:
            with pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)) as conn:
                chan = conn.channel()
                number = 0
                while not stop.is_set():
                    for i in range(50):
                        chan.queue_declare("churn-%d" % (number + i), exclusive=True)
                    for i in range(50):
                        chan.queue_delete("churn-%d" % (number + i))
                    number += 25
        except Exception as exc:            # said by the other thread
            failed.append(exc)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for i in range(30):
            got = samples(scrape(broker, PATHS[1 + i % 2]))
            assert any(n.startswith("rabbitmq_") for n, _ in got)
    finally:
        stop.set()
        thread.join(60 * SLOW)
    assert not failed


def test_a_crowd_that_asks_for_all_queues_keeps_nobody_else_waiting(broker):
    """Metrics of the node have their turn after one such answer, not after all of them."""
    def ask(path):
        sock = socket.create_connection(("127.0.0.1", broker.metrics_port), timeout=60 * SLOW)
        sock.sendall(b"GET %s HTTP/1.0\r\n\r\n" % path)
        return sock

    def turn(sock):
        """The one of the loop in which the answer was begun."""
        with sock, sock.makefile("rb") as answer:
            return int(re.search(rb"^hermes_loop_turns_total (\d+)$", answer.read(), re.M).group(1))

    with pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)) as conn:
        chan = conn.channel()
        for i in range(500):
            chan.queue_declare("crowd-%d" % i, exclusive=True)
        broker.process.send_signal(signal.SIGSTOP)      # so that all of them come at once
        try:
            crowd = [ask(b"/metrics/per-object") for _ in range(30)]
            lone = ask(b"/metrics")
        finally:
            broker.process.send_signal(signal.SIGCONT)
        turns = [turn(sock) for sock in crowd]
        assert sum(t < max(turns) for t in turns) > 20      # each takes some turns
        mine = turn(lone)
        assert sum(t < mine for t in turns) < 10


def test_counts_of_queue_types_and_sizes(broker):
    def of(scraped, kind):
        return one(scraped, "rabbitmq_global_messages_delivered_get_auto_ack_total", queue_type="rabbit_%s_queue" % kind)

    before = samples(scrape(broker))
    with pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)) as conn:
        chan = conn.channel()
        chan.confirm_delivery()
        for _ in range(2):
            chan.queue_declare("counted", durable=True)
        chan.queue_declare("counted-quorum", durable=True, arguments={"x-queue-type": "quorum"})
        persistent = pika.BasicProperties(delivery_mode=2)
        for size in (0, 100, 101, 1000, 20000):
            chan.basic_publish("", "counted", b"x" * size, persistent)
        chan.basic_publish("", "counted-quorum", b"x")
        for queue in ("counted", "counted", "counted-quorum"):
            assert chan.basic_get(queue, auto_ack=True)[0]
        after = samples(scrape(broker))
        assert one(after, "hermes_queues_without_consumers") >= 1
    assert of(after, "classic") - of(before, "classic") == 2
    assert of(after, "quorum") - of(before, "quorum") == 1
    assert of(after, "stream") == 0

    def grew(name, **want):
        return one(after, name, **want) - one(before, name, **want)

    assert grew("rabbitmq_message_size_bytes_bucket", le="100") == 3
    assert grew("rabbitmq_message_size_bytes_bucket", le="1000") == 5
    assert grew("rabbitmq_message_size_bytes_bucket", le="10000") == 5
    assert grew("rabbitmq_message_size_bytes_bucket", le="100000") == 6
    assert grew("rabbitmq_message_size_bytes_count") == 6
    assert grew("rabbitmq_message_size_bytes_sum") == 21202
    assert grew("rabbitmq_global_messages_received_confirm_total") == 6
    assert grew("rabbitmq_global_messages_routed_total") == 6
    assert grew("hermes_confirm_latency_seconds_count") >= 5
    assert grew("hermes_confirm_latency_seconds_count") == grew("hermes_confirm_waited_total")
    assert grew("hermes_journal_batch_bytes_sum") >= 21202
    assert grew("rabbitmq_queues_declared_total") == 3 and grew("rabbitmq_queues_created_total") == 2
    assert grew("hermes_journal_batch_bytes_count") > 0 and grew("hermes_journal_sync_seconds_count") > 0

    def agree():        # the journal's thread may write between two looks of one scrape
        now = samples(scrape(broker))
        return (one(now, "hermes_journal_batch_bytes_count") == one(now, "hermes_store_journal_batches_total")
                and one(now, "hermes_journal_sync_seconds_count") == one(now, "hermes_store_journal_syncs_total"))

    wait_for(agree, what="counts that agree with their histograms")


def test_a_channel_that_waits_is_counted(node):
    this = node("memory: {limit: 8MiB, spill: 0%}\n", metrics=True)
    parameters = pika.ConnectionParameters(port=this.port, blocked_connection_timeout=60)
    conn = pika.BlockingConnection(parameters)
    chan = conn.channel()
    chan.queue_declare("full")
    wait_for(lambda: chan.basic_publish("", "full", b"x" * 65536)
             or one(samples(scrape(this)), "rabbitmq_alarms_memory_used_watermark") == 1, what="the alarm")
    chan.basic_publish("", "full", b"")
    wait_for(lambda: one(samples(scrape(this)), "hermes_back_pressure", reason="memory") == 1, what="a channel that waits")
    got = samples(scrape(this))
    assert one(got, "rabbitmq_alarms_memory_used_watermark") == 1
    assert one(got, "hermes_healthy") == 0
    assert one(got, "hermes_back_pressure_total", reason="memory") >= 1
    Api(this)("DELETE", "queues/%2F/full/contents", 204)
    wait_for(lambda: one(samples(scrape(this)), "hermes_back_pressure", reason="memory") == 0, what="that it goes on")
    conn.close()


BOUNDED = """
limits: {queues: 3, consumers: 1, channel_max: 5, message_size: 4KiB, frame_max: 4KiB, connections: 4, tails: 0,
         handshake: 1s}
"""


def overstep_amqp(this):
    """Yields the bound that has been reached, each time."""
    conn = this.raw()

    def refused(chan, name, **args):
        chan.send(name, **args)
        chan.expect_close()
        return chan.conn.channel()

    chan = conn.channel()
    for n in range(3):
        chan.declare("bound-%d" % n)
    chan = refused(chan, "queue.declare", queue="one more", arguments={})
    yield "limits.queues"
    chan.call("basic.consume", queue="bound-0", arguments={})
    chan = refused(chan, "basic.consume", queue="bound-1", arguments={})
    yield "limits.consumers"
    chan.publish("", "bound-0", b"x" * 5000)
    chan.expect_close(406)
    yield "limits.message_size"
    conn.send_method(6, "channel.open")
    conn.expect_connection_close(530)
    yield "limits.channel_max"
    conn = this.raw()
    conn.send_frame(1, 1, b"x" * 8192)
    conn.expect_connection_close(501)
    yield "limits.frame_max"
    this.tcp().read_until_eof(30 * SLOW)
    yield "limits.handshake"
    this.abort_conns()


def overstep_http(this):
    api = Api(this)
    api("PUT", "vhosts/few", 201)
    api("PUT", "vhost-limits/few/max-queues", 204, {"value": 0})
    api("PUT", "queues/few/q", 400, {})
    yield "vhost_limits"
    api("PUT", "user-limits/guest/max-connections", 204, {"value": 0})
    with pytest.raises(Exception):
        this.raw()
    api("DELETE", "user-limits/guest/max-connections", 204)
    yield "user_limits"
    api("GET", "hermes/tail/%2F/queue/bound-0", 503)
    yield "limits.tails"
    api("PUT", "users/guest", 413, {"tags": "y" * (1 << 20)})
    yield "http_body"
    with contextlib.ExitStack() as held:
        def one_more():
            held.enter_context(this.tcp().sock)
            return reached(this)["limits.connections"] > 0
        wait_for(one_more, what="a connection that is refused")
        yield "limits.connections"


def reached(this):
    return {dict(of)["bound"]: n for (name, of), n in samples(scrape(this)).items() if name == "hermes_bounds_reached_total"}


def test_bounds_that_are_reached(node):
    this = node(BOUNDED, metrics=True)
    before = reached(this)
    assert set(before.values()) == {0} and {"jobs", "browses", "web_sessions", "notices", "history", "lists"} <= set(before)
    for overstep in (overstep_amqp, overstep_http):
        for bound in overstep(this):
            wait_for(lambda: reached(this)[bound] > before[bound], what=bound)
    this.abort_conns()


def test_switched_off(node):
    this = node("prometheus: {enabled: false}\n", args=["--prometheus-port", str(free_port())])
    assert "metrics listen" not in this.log
    assert "rabbitmq_queues 0" in Api(this).session.get(this.http_url + "/metrics").text


def test_metrics_alone(node):
    this = node(args=["--management-port", "0"], metrics=True)
    assert "rabbitmq_queues 0\n" in scrape(this)


# ------------------------------------------------------------------ contrib/prometheus
def test_files_for_prometheus():
    for command in (["check", "config", "prometheus.yml"], ["test", "rules", "hermes.tests.yml"]):
        done = subprocess.run([tool("promtool")] + command, cwd=RULES, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_rules_name_what_there_is(broker):
    """A rule about a metric that no node has would be silent for ever."""
    with pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)) as conn:
        conn.channel().queue_declare("ruled")
        text = "".join(scrape(broker, p) for p in ("/metrics", "/metrics/detailed?family=queue_coarse_metrics"
                                                   "&family=queue_consumer_count"))
    there = set(re.findall(r"^(\w+)[ {]", text, re.M))
    named = set()
    for file in ("hermes.rules.yml", "hermes.alerts.yml"):
        named |= set(re.findall(r"\b((?:rabbitmq|hermes)_\w+)", (RULES / file).read_text()))
    assert named - there == set()
