"""hermes bench: what it publishes comes out, what does not is told, and nothing is left behind."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import signal
import socket
import struct
import subprocess
import threading
from urllib.parse import quote

import pytest

from api import Api
import wire
from node import BINARY, SLOW, clean_env, free_port, wait_for
from shell import at_terminal, broker, cli      # noqa: F401 (fixtures)

OUTPUT_S = 60 * SLOW


@pytest.fixture
def bench(broker, cli):
    """bench(WORDS..., **kw): what it prints, of a failure standard error. Nothing is left behind."""
    def run(*words, **kw):
        out = cli("bench", *words, "--amqp", broker.amqp_url, **kw)
        assert left(broker) == []
        return out

    return run


def left(broker):
    api = Api(broker)
    return [row["name"] for what in ("queues", "exchanges") for row in api.get(what) if row["name"].startswith("hermes-bench")]


class Run:
    """hermes bench, running until it is told to stop; `queue` is there and has its consumer."""

    def __init__(self, broker, *words, consumers=1, drain="30s"):
        self.broker = broker
        self.consumers = consumers
        self.child = subprocess.Popen(
            [str(BINARY), "bench", "--amqp", broker.amqp_url, "--json", "--duration", "10m", "--drain", drain, *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_env({}))
        wait_for(self.is_consumed, 20)
        self.queue = Api(broker).get("queues/%2F")[0]["name"]

    def is_consumed(self):
        return [row["consumers"] for row in Api(self.broker).get("queues/%2F")] == [self.consumers]

    def end(self, status, ask=True):
        """Its figures, and what it said."""
        if ask:
            self.child.send_signal(signal.SIGINT)
        out, err = self.child.communicate(timeout=OUTPUT_S)
        assert self.child.returncode == status, (out, err)
        wait_for(lambda: left(self.broker) == [], 10)
        return json.loads(out), err


@pytest.fixture
def running(broker):
    runs = []

    def start(*words, **kw):
        runs.append(Run(broker, *words, **kw))
        return runs[-1]

    yield start
    for this in runs:
        this.child.kill()
        this.child.communicate()


CLEAN = {"lost": 0, "duplicates": 0, "out_of_order": 0, "damaged": 0, "complete": True, "refused": 0, "unsent": 0, "unconfirmed": 0}


@pytest.mark.parametrize("words, copies", [
    ([], 1),
    (["--publishers", "3", "--queues", "2", "--consumers", "5", "--size", "16,200,3KiB"], 1),
    (["--confirms", "0", "--no-ack", "--size", "0,8,300000"], 1),
    (["--exchange-type", "fanout", "--queues", "3", "--publishers", "2", "--size", "5"], 3),
    (["--exchange-type", "topic", "--queues", "2", "--publishers", "4", "--in-flight", "10", "--ack", "1", "--prefetch", "1"], 1),
    (["--persistent", "--queue-type", "quorum", "--confirms", "7", "--size", "40000"], 1),
    (["--no-verify", "--size", "100000", "--prefetch", "0"], 1),
    (["--backlog", "--publishers", "3", "--queues", "2", "--consumers", "3"], 1),
    (["--backlog", "--confirms", "0", "--exchange-type", "fanout", "--queues", "2", "--no-ack"], 2),
], ids=["plain", "many", "no-confirms", "fanout", "topic", "quorum", "no-verify", "backlog", "backlog-fanout"])
def test_all_comes(bench, words, copies):
    got = json.loads(bench("--count", "901", "--json", *words))
    assert {key: got[key] for key in CLEAN} == CLEAN
    assert (got["published"], got["delivered"]) == (901, 901 * copies)
    assert got["confirmed"] == (0 if "0" in words and "--confirms" in words else 901)
    assert got["latency_us"]["count"] == (901 * copies if "--no-verify" not in words else got["latency_us"]["count"])
    assert 0 < got["latency_us"]["p50"] <= got["latency_us"]["p99"] <= got["latency_us"]["max"]
    assert got["verified"] is ("--no-verify" not in words)


def test_bytes_of_bodies(bench):
    got = json.loads(bench("--count", "30", "--json", "--size", "0,1,16,70000,1MiB"))
    assert got["delivered_bytes"] == 6 * (0 + 1 + 16 + 70000 + (1 << 20))


def test_rate(bench):
    """None is sent before it is due: the last of 50 is so 49 / 100 s after the first."""
    got = json.loads(bench("--count", "50", "--rate", "100", "--publishers", "2", "--json"))
    assert (got["published"], got["delivered"], got["lost"]) == (50, 50, 0)
    assert got["seconds"] >= 0.49
    assert got["send_lag_us"]["count"] > 0


def test_warm_up_is_not_counted(bench):
    """The last of 40 messages is due at 390 ms. A machine that is so busy that none goes out in the warm-up tries again."""
    for _ in range(10):
        got = json.loads(bench("--rate", "100", "--warm-up", "200ms", "--count", "40", "--json"))
        assert (got["lost"], got["warmed_up"]) == (0, True)
        if 0 < got["published"] < 40:
            break
    assert 0 < got["published"] < 40
    assert got["published"] <= got["confirmed"] <= 40
    assert got["published"] <= got["delivered"] <= 40


def test_ended_in_the_warm_up(bench):
    assert "of the warm-up" in bench("--count", "10", "--warm-up", "1h")


def test_for_people(bench):
    out = bench("--count", "500")
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert list(lines) == ["time", "published", "confirmed", "delivered", "latency", "confirms", "verified"]
    assert lines["published"].startswith("500, ")
    assert lines["verified"] == "none lost, twice, out of order or damaged"


def test_without_consumers(bench):
    got = json.loads(bench("--count", "500", "--consumers", "0", "--json"))
    assert (got["published"], got["confirmed"], got["delivered"], got["lost"], got["verified"]) == (500, 500, 0, None, False)


def test_refused_is_not_lost(broker, bench):
    api = Api(broker)
    api("PUT", "policies/%2F/tight", 201, {"pattern": "^hermes-bench", "definition": {"max-length": 1, "overflow": "reject-publish"}})
    try:
        got = json.loads(bench("--count", "2000", "--json", "--prefetch", "1", "--ack", "1"))
    finally:
        api("DELETE", "policies/%2F/tight", 204)
    assert got["refused"] > 0
    assert got["confirmed"] + got["refused"] == 2000
    assert (got["delivered"], got["lost"], got["damaged"]) == (got["confirmed"], 0, 0)


@pytest.fixture
def thief(broker):
    """A channel that takes away messages; its connection is closed in the end, for a node that stops waits for it."""
    conn = broker.raw()
    chan = conn.channel()
    chan.call("basic.qos", prefetch_count=1)
    yield chan
    conn.close()


def steal(chan, queue, count):
    """So many messages, the earlier first; no more are taken."""
    tag = chan.call("basic.consume", queue=queue).consumer_tag
    bodies = []
    while len(bodies) < count:
        message = chan.expect("basic.deliver")
        bodies.append(message.body)
        if len(bodies) == count:
            chan.call("basic.cancel", consumer_tag=tag)
        chan.send("basic.ack", delivery_tag=message.delivery_tag, multiple=False)
    return bodies


@pytest.mark.parametrize("back, lost, twice, damaged", [
    (lambda taken: [taken[0][:-1] + b"?", taken[1] + b"?", taken[2]], 3, 0, 2),
    (lambda taken: [*taken, taken[1]], 0, 1, 0),
    (lambda taken: [*taken, b"of somebody else", b"\xff" * 256, b""], 0, 0, 3),
], ids=["lost-changed-longer", "twice", "foreign"])
def test_what_is_wrong_is_told(thief, running, back, lost, twice, damaged):
    this = running("--rate", "300", drain="4s")         # what is lost it waits for
    for body in back(steal(thief, this.queue, 4)):
        thief.publish("", this.queue, body)
    thief.call("basic.qos", prefetch_count=1)        # all is taken in
    got, err = this.end(1)
    assert (got["lost"], got["duplicates"], got["damaged"], got["complete"]) == (lost, twice, damaged, True)
    assert err.startswith("hermes bench: what came is not what was published: lost %d, twice %d, " % (lost, twice))


def test_order(thief, running):
    this = running("--rate", "300")
    first, second = steal(thief, this.queue, 2)
    thief.publish("", this.queue, second)
    thief.publish("", this.queue, first)
    thief.call("basic.qos", prefetch_count=1)
    got, _ = this.end(1)
    assert got["out_of_order"] >= 1
    assert (got["lost"], got["duplicates"], got["damaged"]) == (0, 0, 0)


def test_ctrl_c(running):
    this = running("--in-flight", "1000")     # what is under way comes soon enough on any machine
    got, err = this.end(0)
    assert err == ""
    assert {key: got[key] for key in CLEAN} == CLEAN
    assert got["published"] == got["delivered"] > 0


def test_backlog_waits(broker, running):
    """No consumer as long as it publishes."""
    this = running("--backlog", "--rate", "300", consumers=0)
    api = Api(broker)
    wait_for(lambda: api.get("queues/%%2F/%s" % this.queue)["messages"] > 20, 10)
    assert api.get("queues/%%2F/%s" % this.queue)["consumers"] == 0
    got, _ = this.end(0)
    assert {key: got[key] for key in CLEAN} == CLEAN
    assert got["published"] == got["delivered"] > 20


def test_killed(broker, running):
    """Its queue goes an hour later, and the exchange with it."""
    this = running("--exchange-type", "direct", "--rate", "10")
    api = Api(broker)
    this.child.kill()
    this.child.wait(OUTPUT_S)
    queue = api.get("queues/%%2F/%s" % this.queue)
    assert queue["arguments"] == {"x-expires": 3600_000 + 600_000}
    assert len(left(broker)) == 2
    api("DELETE", "queues/%%2F/%s" % this.queue, 204)
    assert left(broker) == []


def test_connection_closed_by_the_broker(broker, running):
    """The figures so far, the reason, and nothing left behind."""
    this = running("--rate", "300")
    api = Api(broker)

    def connections():
        return [row["name"] for row in api.get("connections") if row["client_properties"].get("product") == "hermes bench"]

    wait_for(lambda: len(connections()) == 2, 10)
    api("DELETE", "connections/" + quote(connections()[0], safe=""), 204)
    got, err = this.end(1, ask=False)
    assert err.startswith("hermes bench: the broker ended it: 320 CONNECTION_FORCED")
    assert (got["complete"], got["lost"]) == (False, None)


def test_queue_deleted(broker, running):
    this = running("--rate", "300")
    Api(broker)("DELETE", "queues/%%2F/%s" % this.queue, 204)
    _, err = this.end(1, ask=False)
    assert err == "hermes bench: the broker ended a consumer: its queue is gone\n"


def test_progress_on_a_terminal(broker):
    status, said = at_terminal(broker, ["bench", "--rate", "500", "--duration", "1200ms"])
    assert status == 0
    assert b"\rrunning: " in said and b"/s published, " in said
    assert b"none lost, twice, out of order or damaged" in said


@pytest.mark.parametrize("words, why", [
    (["--queues", "3", "--consumers", "2"], "--consumers 2 leaves queues without one: at least 3, as --queues says, or 0"),
    (["--size", "12x"], "--size: '12x' is not a size such as 256 or 4KiB (at most 16MiB), nor at most 16 of them parted by commas"),
    (["--size", "17MiB"], "--size: '17MiB' is not a size"),
    (["--duration", "soon"], "--duration: 'soon' is not a time such as 500ms, 10s, 5m"),
    (["--publishers", "0"], "--publishers: 0 is out of range"),
    (["--exchange-type", "headers"], "--exchange-type: 'headers' is not direct, topic or fanout"),
    (["--ack", "10", "--prefetch", "5"], "with --ack above --prefetch nothing would be acknowledged"),
    (["--ack", "10", "--no-ack"], "--ack and --no-ack do not go together"),
    (["--publishers", "100", "--confirms", "100000"], "--publishers times --confirms is above 8388608"),
    (["--publishers", "5000", "--consumers", "5000"], "so many publishers and consumers are not verified; see --no-verify"),
    (["--duration", "0s"], "--duration 0s leaves no time to publish"),
    (["--consumers", "0", "--in-flight", "5"], "--in-flight needs consumers"),
    (["--consumers", "0", "--backlog"], "--backlog needs consumers, and goes without --in-flight"),
    (["--queue-type", "stream", "--backlog"], "--backlog: consumers of a stream get what comes after them"),
])
def test_wrong_words(bench, words, why):
    assert bench(*words, status=2).startswith("hermes bench: " + why)


def test_no_such_type(bench):
    assert "nonsense" in bench("--queue-type", "nonsense", status=1)


def test_not_let_in(broker, cli):
    said = cli("bench", "--amqp", broker.amqp_url, "--user", "nobody", "--password", "x", status=1)
    assert said.startswith("hermes bench: the broker ended it: 403 ACCESS_REFUSED")
    assert said.count("\n") == 1


def test_not_there(cli):
    said = cli("bench", "--amqp", "amqp://127.0.0.1:%d" % free_port(), status=1)
    assert "connection refused" in said and said.count("\n") == 1


def test_held_back(broker, bench):
    """What tells of it is the reason, not that a connection cannot be closed in order."""
    api = Api(broker)
    api("PUT", "hermes/maintenance", 204, {"reason": "a new disk"})
    try:
        said = bench("--count", "10", "--drain", "100ms", status=1)
    finally:
        api("DELETE", "hermes/maintenance", 204)
    assert "hermes bench: the broker takes no messages for now: a new disk\n" in said, said
    assert "has not confirmed" in said and "has not answered" not in said, said


def test_too_few_descriptors(broker):
    words = [str(BINARY), "bench", "--amqp", broker.amqp_url, "--publishers", "40"]
    done = subprocess.run(["bash", "-c", 'ulimit -n 30 && exec "$@"', "bash"] + words, env=clean_env({}), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=OUTPUT_S)
    assert done.returncode == 1 and "too many open files for this command; see ulimit -n\n" in done.stderr, done.stderr
    wait_for(lambda: left(broker) == [], 10)


@pytest.mark.parametrize("answer, why", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "what answers does not speak AMQP 0-9-1: a frame of "),
    (b"AMQP\x00\x01\x00\x00", "what answers does not speak AMQP 0-9-1: a frame of "),
    (b"", "the broker hung up"),
    (wire.enc_frame(1, 0, b"\x00\x0a"), "what answers breaks the protocol: "),
    (wire.enc_frame(1, 1, b"\x00\x0a\x00\x0a"), "what answers breaks the protocol: "),
    (wire.enc_frame(2, 0, b"\x00\x3c" + b"\x00" * 12), "what answers breaks the protocol: "),
    (wire.enc_frame(3, 0, b"body"), "what answers breaks the protocol: "),
    (wire.enc_frame(1, 0, b"\x00\x0a\x00\x0a", end=7), "what answers breaks the protocol: a frame without its end"),
    (wire.enc_frame(1, 0, b"\x00\x0a\x00\x0a") + wire.enc_frame(1, 0, b"\x00\x0a\x00\x1e\x00"), "what answers breaks the protocol: "),
], ids=["http", "header", "nothing", "short", "channel", "content", "body", "end", "tune"])
def test_something_else_answers(cli, answer, why):
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            peer, _ = server.accept()
            with peer:
                peer.recv(8)
                peer.sendall(answer)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(4096):
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        said = cli("bench", "--amqp", "amqp://127.0.0.1:%d" % server.getsockname()[1], status=1)
        thread.join(10 * SLOW)
    assert said.startswith("hermes bench: " + why) and said.count("\n") == 1


class Liar:
    """Between hermes bench and a node: what comes from the node goes through lie(frame, kind, method), of which each frame
    becomes what it answers; None: the connection ends there."""

    def __init__(self, broker, lie):
        self.broker = broker
        self.lie = lie
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = "amqp://127.0.0.1:%d" % self.server.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        """The thread has ended before the number of its descriptor is given to another."""
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join(OUTPUT_S)
        self.server.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.relay, args=(self.server.accept()[0],), daemon=True).start()

    def relay(self, peer):
        with peer, socket.create_connection(("127.0.0.1", self.broker.port)) as node, contextlib.suppress(OSError):
            threading.Thread(target=self.forth, args=(peer, node), daemon=True).start()
            stream = node.makefile("rb")
            while head := stream.read(7):
                frame = head + stream.read(struct.unpack(">I", head[3:])[0] + 1)
                said = self.lie(frame, frame[0], frame[7:11] if frame[0] == 1 else None)
                if said is None:
                    break
                peer.sendall(said)
            peer.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def forth(peer, node):
        with contextlib.suppress(OSError):
            while piece := peer.recv(65536):
                node.sendall(piece)
            node.shutdown(socket.SHUT_WR)


ACK, DELIVER = b"\x00\x3c\x00\x50", b"\x00\x3c\x00\x3c"


def on(kind, method, change):
    """A lie about the frames of a kind, of methods of one method."""
    return lambda frame, k, m: change(frame) if k == kind and m == method else frame


@pytest.mark.parametrize("lie, why", [
    (on(1, ACK, lambda f: f[:11] + struct.pack(">Q", 10 ** 6) + f[19:]), "the broker confirms message 1000000, which is not unconfirmed"),
    (on(1, ACK, lambda f: f[:11] + struct.pack(">Q", 0) + b"\x00" + f[20:]), "the broker confirms message 0, which is not unconfirmed"),
    (on(1, ACK, lambda f: f + f), "the broker confirms message "),
    (on(1, ACK, lambda f: wire.enc_frame(1, 1, wire.enc_method("tx.commit-ok"))), "a publisher got method 90.21"),
    (on(1, DELIVER, lambda f: f + f), "what answers breaks the protocol: method 60.60 on channel 1"),
    (on(1, DELIVER, lambda f: wire.enc_frame(1, 1, DELIVER)), "what answers breaks the protocol: basic.deliver after 0"),
    (on(1, DELIVER, lambda f: wire.enc_frame(1, 1, DELIVER + b"\xffshort")), "what answers breaks the protocol: basic.deliver after 0"),
    (on(1, DELIVER, lambda f: b""), "what answers breaks the protocol: a header that is broken or was not due"),
    (on(1, DELIVER, lambda f: None), "the broker hung up"),
    (on(2, None, lambda f: f + f), "what answers breaks the protocol: a header that is broken or was not due"),
    (on(2, None, lambda f: f[:11] + struct.pack(">Q", 255) + f[19:]), "what answers breaks the protocol: a body that is larger"),
    (on(3, None, lambda f: f[:2] + b"\x02" + f[3:]), "what answers breaks the protocol: a body that is larger than its header says or was not due"),
    (on(3, None, lambda f: f[:-1] + b"?"), "what answers breaks the protocol: a frame without its end"),
    (on(3, None, lambda f: f[:3] + b"\x7f" + f[4:]), "what answers does not speak AMQP 0-9-1: a frame of 2130706688 bytes"),
], ids=["confirm", "confirm-0", "confirm-twice", "publisher", "deliver-twice", "deliver", "deliver-cut", "no-deliver", "gone", "header-twice",
        "body-long", "body-channel", "body-end", "frame-long"])
def test_broker_that_lies(broker, cli, lie, why):
    """The reason is said, then it tries to remove its queue, which the broker would let it."""
    liar = Liar(broker, lie)
    try:
        said = cli("bench", "--amqp", liar.url, "--count", "1", status=1)
    finally:
        liar.close()
    assert said.startswith("hermes bench: " + why) and said.count("\n") == 1
    assert left(broker) == []


def test_ctrl_c_while_nobody_answers():
    """A port that is open, and nothing comes from it: a second Ctrl-C ends it at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(OUTPUT_S)
        child = subprocess.Popen([str(BINARY), "bench", "--amqp", "amqp://127.0.0.1:%d" % server.getsockname()[1]],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_env({}))
        with child, server.accept()[0] as peer:
            assert peer.recv(8) == b"AMQP\x00\x00\x09\x01"
            wait_for(lambda: child.send_signal(signal.SIGINT) or child.poll() is not None, 5)
            out, _ = child.communicate(timeout=OUTPUT_S)
    assert (child.returncode, out) == (-signal.SIGINT, "")
