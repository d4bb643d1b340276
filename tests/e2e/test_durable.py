"""What is durable comes back as it was: after a stop, after kill -9; and what is not does not."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import hashlib
import os
import re
import struct
import subprocess
import time

import pika
import pytest

import wire
from node import SLOW, wait_for
from wire import Val

MIB = 1 << 20


def again(node, how):
    """Restart it over the same data."""
    node.abort_conns()
    if how == "kill":
        node.kill()
    else:
        node.stop()
    return node.start()


def barrier(chan):
    """All that this node did before is on disk when this returns: topology waits for the sync, and the log is one."""
    chan.declare("barrier", durable=True)
    chan.call("queue.delete", queue="barrier")


def fill(chan, queue, bodies, exchange="", confirm=True, **props):
    """Publish persistent messages with confirms, and wait for these."""
    if confirm and not getattr(chan, "confirming", False):
        chan.call("confirm.select")
        chan.confirming = 0
    props.setdefault("delivery_mode", 2)
    sent = 0
    for body in bodies:
        chan.publish(exchange, queue, body, **props)
        sent += 1
    last = chan.confirming + sent
    seen = chan.confirming
    while seen < last:
        event = chan.expect("basic.ack", timeout=30 * SLOW)
        seen = event.delivery_tag if event.multiple else seen + 1
    chan.confirming = last


def disk_bytes(node):
    """What its data folder takes, in bytes on disk."""
    total = 0
    for folder, _, names in os.walk(node.data):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
    return total


both = pytest.mark.parametrize("how", ["stop", "kill"])


# --------------------------------------------------------------------------
# topology
# --------------------------------------------------------------------------
EXCHANGES = [("d", "direct"), ("f", "fanout"), ("t", "topic"), ("h", "headers")]


@both
def test_topology(node, how):
    this = node()
    chan = this.raw().channel()
    for name, kind in EXCHANGES:
        chan.exchange(name, kind, durable=True)
    chan.exchange("spare", "fanout", durable=True)
    chan.exchange("with-alternate", "direct", durable=True, arguments={"alternate-exchange": "spare"})
    chan.exchange("inside", "fanout", durable=True, internal=True)
    chan.exchange("passing", "fanout")
    for queue in ("q1", "q2"):
        chan.declare(queue, durable=True)
    chan.declare("with-arguments", durable=True, arguments={"x-note": "kept", "x-number": 7})
    chan.declare("passing")
    chan.bind("q1", "d", "key")
    chan.bind("q2", "t", "a.*.#")
    chan.bind("q2", "h", arguments={"x-match": "all", "n": 1, "s": "x"})
    chan.bind("q1", "spare")
    chan.bind("q1", "inside")
    chan.bind("passing", "d", "key")
    chan.bind("q1", "passing")
    chan.call("exchange.bind", destination="inside", source="f", routing_key="", arguments={})
    chan.bind("q2", "d", "gone")
    chan.call("queue.unbind", queue="q2", exchange="d", routing_key="gone", arguments={})
    chan.declare("gone", durable=True)
    chan.call("queue.delete", queue="gone")
    chan.exchange("gone", "direct", durable=True)
    chan.call("exchange.delete", exchange="gone")

    for _ in range(2):
        again(this, how)
        conn = this.raw()
        chan = conn.channel()
        for kind, name in (("queue", "passing"), ("exchange", "passing"), ("queue", "gone"), ("exchange", "gone")):
            other = conn.channel()
            with pytest.raises(wire.ChannelClosed) as refused:
                other.call(kind + ".declare", passive=True, **{kind: name})
            assert refused.value.code == 404
        # what is there is what it was: declaring it differently is refused, the same is fine
        for name, kind in EXCHANGES:
            chan.exchange(name, kind, durable=True)
        chan.exchange("with-alternate", "direct", durable=True, arguments={"alternate-exchange": "spare"})
        chan.exchange("inside", "fanout", durable=True, internal=True)
        chan.declare("with-arguments", durable=True, arguments={"x-note": "kept", "x-number": 7})
        other = conn.channel()
        with pytest.raises(wire.ChannelClosed) as refused:
            other.exchange("inside", "fanout", durable=True)
        assert refused.value.code == 406
        routes = [("d", "key", {}, "q1"), ("t", "a.b.c", {}, "q2"), ("h", "", {"n": 1, "s": "x"}, "q2"),
                  ("with-alternate", "no such key", {}, "q1"), ("f", "", {}, "q1")]
        for exchange, key, headers, queue in routes:
            chan.publish(exchange, key, exchange, headers=headers)
            assert chan.drain(queue) == [exchange]
        for exchange, key in (("d", "gone"), ("t", "b"), ("h", "")):
            chan.publish(exchange, key, b"lost", mandatory=True)
            chan.expect("basic.return")
        chan.exchange("passing", "fanout")
        chan.publish("passing", "", b"lost", mandatory=True)
        chan.expect("basic.return")
        chan.call("exchange.delete", exchange="passing")


def test_names_with_nul(node):
    """Clients choose the names of queues and exchanges, and NUL is a byte as any other."""
    this = node()
    chan = this.raw().channel()
    names = [b"n\0m", b"n\0", b"n", b"\0", "é\0é".encode(), b"\0" * 255]
    chan.call("confirm.select")
    for i, name in enumerate(names):
        chan.declare(name, durable=True)
        chan.exchange(name, "fanout", durable=True)
        chan.bind(name, name)
        chan.publish(name, "", b"%d" % i, delivery_mode=2)
    chan.confirmed(len(names))
    this.kill()
    this.conns.clear()
    this.start()
    chan = this.raw().channel()
    for i, name in enumerate(names):
        assert chan.get(name).body == b"%d" % i
        chan.publish(name, "", b"again")
        assert chan.get_wait(name).body == b"again"
    assert "left out" not in this.log


def test_a_deleted_queue_stays_deleted_and_frees_its_space(node):
    """K17: kill -9 right after delete-ok."""
    this = node("store: {journal_file_size: 4MiB}\n")
    chan = this.raw().channel()
    empty = disk_bytes(this)
    chan.declare("big", durable=True)
    for _ in range(6):
        fill(chan, "big", [os.urandom(1 << 20)] * 10)
    assert disk_bytes(this) > empty + 50 * MIB
    assert chan.call("queue.delete", queue="big").message_count == 60
    this.kill()
    this.start()
    chan = this.raw().channel()
    with pytest.raises(wire.ChannelClosed) as refused:
        chan.declare("big", passive=True)
    assert refused.value.code == 404
    # one file is left to a quiet journal, and two spares
    wait_for(lambda: disk_bytes(this) < (1 + 2) * 4 * MIB + MIB, 20, "disk space back")
    assert not list((this.data / "segments").glob("*")), "segments are left"
    chan = this.raw().channel()
    chan.declare("big", durable=True)
    assert chan.counts("big") == (0, 0)


def test_many_starts_take_no_room(node):
    """Each begins a file of its own: the ones before take what is in them, and go once the node is quiet."""
    this = node()
    assert disk_bytes(this) < 5 * MIB, "a new node"
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    expected = []
    for n in range(30):
        bodies = [b"%d-%d" % (n, i) for i in range(20)]
        fill(chan, "q", bodies)
        expected += [body.decode() for body in bodies]
        for _ in range(n % 10):
            assert chan.get("q", no_ack=True).body.decode() == expected.pop(0)
        barrier(chan)
        again(this, ["stop", "kill"][n % 2])
        assert disk_bytes(this) < 6 * MIB, "%d starts: %d KiB" % (n + 1, disk_bytes(this) >> 10)
        chan = this.raw().channel()
    wait_for(lambda: len(os.listdir(this.data / "journal")) == 1, 10, "one file")
    again(this, "kill")
    assert this.raw().channel().drain("q") == expected and len(expected) > 400


def test_a_thousand_queues(node):
    this = node()
    conn = this.raw()
    chan = conn.channel()
    for n in range(1000):
        chan.send("queue.declare", queue="q%d" % n, durable=True, nowait=True, arguments={})
        chan.send("queue.bind", queue="q%d" % n, exchange="amq.topic", routing_key="k.%d.#" % n, nowait=True, arguments={})
    barrier(chan)
    fill(chan, "k.77.x", [b"to one"], exchange="amq.topic")
    again(this, "kill")
    chan = this.raw().channel()
    for n in range(1000):
        assert chan.counts("q%d" % n)[0] == (n == 77)
    chan.publish("amq.topic", "k.999", b"late")
    assert chan.drain("q999") == ["late"]


# --------------------------------------------------------------------------
# messages
# --------------------------------------------------------------------------
PROPS = dict(
    content_type="text/plain", content_encoding="utf-8", delivery_mode=2, priority=3, correlation_id="c-1",
    reply_to="somewhere", expiration="86400000", message_id="m-1", timestamp=1700000000, type="kind", app_id="app",
    user_id="guest", cluster_id="cl",
    headers={"s": "text", "bytes": Val("x", b"\x00\xff"), "int": 5, "long": Val("l", -(1 << 40)), "no": Val("V", None),
             "yes": True, "d": Val("d", 1.5), "list": ["a", 1, ["b"]], "table": {"in": {"deep": "er"}}})


@both
def test_properties_and_bodies(node, how):
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    bodies = [b"", b"x", os.urandom(5000), os.urandom(300000)]
    fill(chan, "q", bodies, **PROPS)
    fill(chan, "q", [b"plain"])
    before = [chan.get("q", no_ack=False) for _ in range(5)]
    again(this, how)
    chan = this.raw().channel()
    for body, old in zip(bodies + [b"plain"], before):
        got = chan.get("q")
        assert got.body == body
        assert got.typed_headers == old.typed_headers
        assert got.props == old.props
        assert (got.exchange, got.routing_key) == ("", "q")
    assert chan.get("q") is None


@both
def test_what_survives(node, how):
    """Persistent in a durable queue, and nothing else."""
    this = node()
    chan = this.raw().channel()
    chan.exchange("all", "fanout", durable=True)
    for queue, durable in (("kept", True), ("passing", False)):
        chan.declare(queue, durable=durable)
        chan.bind(queue, "all")
    fill(chan, "", [b"1", b"3"], exchange="all", delivery_mode=2)
    fill(chan, "", [b"2"], exchange="all", delivery_mode=1)
    assert chan.counts("kept")[0] == chan.counts("passing")[0] == 3
    again(this, how)
    chan = this.raw().channel()
    assert chan.drain("kept") == ["1", "3"]
    with pytest.raises(wire.ChannelClosed):
        chan.declare("passing", passive=True)


@both
def test_unacknowledged_come_back_in_their_place(node, how):
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", [b"%d" % n for n in range(20)])
    other = this.raw().channel()
    other.qos(10)
    other.consume("q", tag="t")
    got = [other.deliver() for _ in range(10)]
    for n in (1, 4, 5):
        other.ack(got[n].delivery_tag)
    more = [other.deliver() for _ in range(3)]
    assert [m.body for m in more] == [b"10", b"11", b"12"]
    other.nack(got[7].delivery_tag)
    assert other.deliver().body == b"7"
    other.sync()
    barrier(chan)
    again(this, how)
    chan = this.raw().channel()
    seen = [chan.get("q") for _ in range(17)]
    assert [int(m.body) for m in seen] == [n for n in range(20) if n not in (1, 4, 5)]
    assert [int(m.body) for m in seen if m.redelivered] == [n for n in range(13) if n not in (1, 4, 5)]
    assert chan.get("q") is None


@both
def test_transactions(node, how):
    this = node()
    conn = this.raw()
    chan = conn.channel()
    for queue in ("a", "b"):
        chan.declare(queue, durable=True)
    fill(chan, "a", [b"0", b"1", b"2"])
    tx = conn.channel()
    tx.call("tx.select")
    assert [tx.get("a", no_ack=False).body for _ in range(3)] == [b"0", b"1", b"2"]
    tx.ack(2, multiple=True)
    tx.publish("", "a", b"in", delivery_mode=2)
    tx.publish("", "b", b"in", delivery_mode=2)
    tx.call("tx.commit")
    tx.publish("", "b", b"never", delivery_mode=2)
    tx.ack(3)
    tx.sync()
    again(this, how)
    chan = this.raw().channel()
    assert chan.drain("a") == ["2", "in"]
    assert chan.drain("b") == ["in"]


@both
def test_fan_out(node, how):
    """One record for all queues: each has its own place and its own acknowledgement."""
    this = node()
    chan = this.raw().channel()
    for n in range(10):
        chan.declare("q%d" % n, durable=True)
        chan.bind("q%d" % n, "amq.fanout")
    fill(chan, "", [b"%d" % n for n in range(50)], exchange="amq.fanout")
    for n in range(10):
        for _ in range(n):
            chan.get("q%d" % n)
    barrier(chan)
    again(this, how)
    chan = this.raw().channel()
    for n in range(10):
        assert chan.drain("q%d" % n) == [str(k) for k in range(n, 50)]


def test_expiry_goes_on_while_the_node_is_down(node):
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", [b"short"], expiration="1500")
    fill(chan, "q", [b"long"], expiration="600000")
    fill(chan, "q", [b"for ever"])
    this.kill()
    time.sleep(1.6)
    this.start()
    assert this.raw().channel().drain("q") == ["long", "for ever"]


@both
def test_a_message_longer_than_a_journal_file(node, how):
    this = node("store: {journal_file_size: 1MiB}\n")
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    body = os.urandom(3 * MIB + 12345)
    fill(chan, "q", [b"before", body, b"behind"])
    again(this, how)
    chan = this.raw().channel()
    assert chan.get("q").body == b"before"
    assert hashlib.sha256(chan.get("q").body).digest() == hashlib.sha256(body).digest()
    assert chan.get("q").body == b"behind"
    assert chan.get("q") is None


@both
def test_pika(node, how):
    """The same with a client library, in the way programs are written."""
    this = node()
    conn = this.pika()
    ch = conn.channel()
    ch.exchange_declare("orders", "topic", durable=True)
    ch.queue_declare("invoices", durable=True)
    ch.queue_bind("invoices", "orders", "order.#")
    ch.confirm_delivery()
    for n in range(100):
        ch.basic_publish("orders", "order.%d" % n, b"order %d" % n, mandatory=True, properties=pika.BasicProperties(
            delivery_mode=2, headers={"n": n}, message_id=str(n)))
    conn.close()
    again(this, how)
    conn = this.pika()
    ch = conn.channel()
    assert ch.queue_declare("invoices", durable=True, passive=True).method.message_count == 100
    n = 0
    for method, props, body in ch.consume("invoices", inactivity_timeout=10):
        assert (body, props.headers, props.message_id) == (b"order %d" % n, {"n": n}, str(n))
        assert method.routing_key == "order.%d" % n
        ch.basic_ack(method.delivery_tag)
        n += 1
        if n == 100:
            break
    ch.cancel()
    ch.queue_delete("invoices")
    conn.close()
    again(this, how)
    conn = this.pika()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        conn.channel().queue_declare("invoices", passive=True)
    conn.close()


# --------------------------------------------------------------------------
# long queues
# --------------------------------------------------------------------------
BODY = os.urandom(4096)


def long_body(n):
    return struct.pack("<Q", n) + BODY[n % 1000:]


@pytest.mark.parametrize("what", ["queue.purge", "queue.delete"])
@pytest.mark.parametrize("how", ["kill", "stop", "go on"])
def test_purge_and_delete_in_the_middle_of_a_spill(node, what, how):
    """40 MiB a time pass the 32 MiB that a queue may have in memory, while the queue is emptied again and again."""
    this = node("store: {journal_file_size: 8MiB}\n")
    conn = this.raw()
    chan = conn.channel()
    for _ in range(3):
        chan.declare("q", durable=True)
        fill(chan, "q", (long_body(n) for n in range(10000)))
        assert chan.call(what, queue="q").message_count == 10000
    chan.declare("q", durable=True)
    fill(chan, "q", (long_body(n) for n in range(100)))
    if how != "go on":
        again(this, how)
        chan = this.raw().channel()
    assert chan.counts("q")[0] == 100
    for n in range(100):
        assert chan.get("q").body == long_body(n)
    assert chan.get("q") is None
    wait_for(lambda: disk_bytes(this) < 80 * MIB, 20, "disk space back")


@both
def test_a_spilled_queue(node, how):
    """What lies in segments: order, bytes, unacknowledged ones, requeued ones, acknowledged ones."""
    this = node("store: {journal_file_size: 8MiB}\n")
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    total = 24000
    fill(chan, "q", (long_body(n) for n in range(total)))
    wait_for(lambda: list((this.data / "segments").glob("*")), 10, "segments")
    other = this.raw().channel()
    other.qos(200)
    other.consume("q")
    for n in range(3000):
        got = other.deliver(timeout=10 * SLOW)
        assert got.body == long_body(n)
        if n % 100:
            other.ack(got.delivery_tag)
    other.sync()
    barrier(chan)
    again(this, how)
    chan = this.raw().channel()
    assert chan.counts("q")[0] == total - 3000 + 30
    chan.qos(1000)
    chan.consume("q")
    for n in list(range(0, 3000, 100)) + list(range(3000, total)):
        got = chan.deliver(timeout=10 * SLOW)
        assert got.body == long_body(n), "%d instead of %d" % (struct.unpack("<Q", got.body[:8])[0], n)
        if n < 2900:
            assert got.redelivered
        if n % 100 == 99:
            chan.ack(got.delivery_tag, multiple=True)
    chan.ack(0, multiple=True)
    chan.sync()
    assert chan.counts("q")[0] == 0
    wait_for(lambda: disk_bytes(this) < 80 * MIB, 20, "disk space back")


def test_get_from_what_lies_on_disk(node):
    """basic.get waits for the read and answers in order, whatever else the connection does."""
    this = node("store: {journal_file_size: 8MiB}\n")
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", (long_body(n) for n in range(12000)))
    again(this, "stop")
    conn = this.raw()
    chan, other = conn.channel(), conn.channel()
    for n in range(12000):
        chan.send("basic.get", queue="q", no_ack=True)
        if n % 1000 == 0:
            other.sync()
            for k in range(n - 999 if n else 0, n + 1):
                assert chan.expect("basic.get-ok", timeout=10 * SLOW).body == long_body(k)
    for k in range(11001, 12000):
        assert chan.expect("basic.get-ok", timeout=10 * SLOW).body == long_body(k)
    assert chan.get("q") is None


def test_one_message_requeued_without_end(node):
    """K28: what it costs on disk is bounded."""
    this = node("store: {journal_file_size: 1MiB}\n")
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", [b"again"])
    chan.qos(1)
    chan.consume("q")
    most = 0
    for n in range(40000 // SLOW):
        got = chan.deliver()
        assert got.redelivered == (n > 0)
        chan.nack(got.delivery_tag)
        if n % 2000 == 0:
            most = max(most, disk_bytes(this))
    assert most < 12 * MIB, "%d MiB" % (most / MIB)
    again(this, "kill")
    chan = this.raw().channel()
    got = chan.get("q")
    assert got.body == b"again" and got.redelivered


# --------------------------------------------------------------------------
# narrow places
# --------------------------------------------------------------------------
def test_few_descriptors(node):
    """64 of them: long queues and clients beside each other, nothing lost."""
    this = node("store: {journal_file_size: 1MiB}\n", nofile=64)
    chan = this.raw().channel()
    queues = ["q%d" % n for n in range(6)]
    for queue in queues:
        chan.declare(queue, durable=True)
        chan.bind(queue, "amq.fanout")
    fill(chan, "", (long_body(n) for n in range(9000)), exchange="amq.fanout")
    conns = []
    with contextlib.suppress(OSError, wire.Eof, AssertionError):
        for _ in range(100):
            conns.append(this.tcp())
            conns[-1].handshake("guest", "guest", "/")
    for queue in queues:
        assert chan.counts(queue)[0] == 9000
    again(this, "kill")
    chan = this.raw().channel()
    for queue in queues:
        chan.consume(queue, tag=queue, no_ack=True)
        for n in range(9000):
            assert chan.deliver(timeout=10 * SLOW).body == long_body(n)
        chan.call("basic.cancel", consumer_tag=queue)


@pytest.mark.release
def test_little_memory(node):
    """256 MB of address space: long queues go to disk, nothing is lost."""
    this = node("memory: {limit: 64MiB}\n", address_space=256 * MIB)
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", (long_body(n) for n in range(30000)))
    again(this, "kill")
    chan = this.raw().channel()
    chan.qos(1000)
    chan.consume("q")
    for n in range(30000):
        got = chan.deliver(timeout=10 * SLOW)
        assert got.body == long_body(n)
        if n % 100 == 99:
            chan.ack(got.delivery_tag, multiple=True)


@pytest.mark.release
def test_ready_soon_in_a_new_folder(node, tmp_path):
    """Under 50 ms, where the disk syncs in 5: zeroing files and hashing passwords never stand between start and ready."""
    times = []
    for n in range(7):
        began = time.monotonic()
        with open(tmp_path / ("probe%d" % n), "wb") as probe:
            probe.write(b"x" * 4096)
            probe.flush()
            os.fdatasync(probe.fileno())
        sync = (time.monotonic() - began) * 1000
        this = node(args=["--log-level", "debug"])
        ready = int(this.await_log(r"ready after (\d+) us").group(1)) / 1000
        this.stop()
        times.append((ready, sync))
    print("ready after %s ms (a sync beside it)" % times)
    assert min(ready - 10 * max(0, sync - 5) for ready, sync in times) < 50


# --------------------------------------------------------------------------
# damage
# --------------------------------------------------------------------------
def flip(folder, needle):
    """Change one bit of the bytes found in one of the files; the file's name."""
    for path in sorted(folder.iterdir()):
        raw = path.read_bytes()
        at = raw.find(needle)
        if at >= 0:
            with open(path, "r+b") as file:
                file.seek(at + len(needle) // 2)
                file.write(bytes([raw[at + len(needle) // 2] ^ 4]))
            return path.name
    raise AssertionError("%r is in no file of %s" % (needle[:20], folder))


def test_a_flipped_bit_in_the_journal(node):
    """Only that message is lost, and it is said which file and where."""
    this = node()
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    for n in range(100):
        fill(chan, "q", [b"body-%03d-" % n * 20])
    this.kill()
    name = flip(this.data / "journal", b"body-050-" * 20)
    this.start()
    assert re.search(r"(error|warning).*%s.*\d" % name, this.log[this.log_before:]), this.log[this.log_before:]
    assert this.raw().channel().drain("q") == ["body-%03d-" % n * 20 for n in range(100) if n != 50]


def test_a_flipped_bit_in_a_segment(node):
    """K26: that message is reported, the queue lives."""
    this = node("store: {journal_file_size: 4MiB}\n")
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    total = 20000
    fill(chan, "q", (long_body(n) for n in range(total)))
    wait_for(lambda: any(long_body(1000) in path.read_bytes() for path in (this.data / "segments").glob("*")), 10, "segments")
    again(this, "stop")
    this.kill()
    name = flip(this.data / "segments", long_body(1000))
    this.start()
    chan = this.raw().channel()
    chan.qos(1000)
    chan.consume("q")
    seen = []
    for n in range(total - 1):
        got = chan.deliver(timeout=10 * SLOW)
        seen.append(struct.unpack("<Q", got.body[:8])[0])
        assert got.body == long_body(seen[-1])
        if n % 100 == 99:
            chan.ack(got.delivery_tag, multiple=True)
    assert seen == [n for n in range(total) if n != 1000]
    chan.ack(0, multiple=True)
    chan.sync()
    assert chan.counts("q")[0] == 0
    assert re.search(r"(error|warning).*%s" % re.escape(name), this.log), this.log


# --------------------------------------------------------------------------
# clocks
# --------------------------------------------------------------------------
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *shift;

static int64_t
seconds(void)
{
	if (shift == NULL) {
		int fd = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);

		shift = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
	}
	return *shift;
}

int
clock_gettime(clockid_t id, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);
	int rc;

	if (real == NULL)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(id, t);
	if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += seconds();
	return rc;
}

time_t
time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out != NULL)
		*out = t.tv_sec;
	return t.tv_sec;
}

int
gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}
"""
DAY = 86400


@pytest.mark.release
def test_a_clock_that_jumps(node, tmp_path):
    """K27."""
    (tmp_path / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", tmp_path / "shim.so", tmp_path / "shim.c", "-ldl"], check=True)
    shift = tmp_path / "shift"

    def jump(seconds):
        if not shift.exists():
            shift.write_bytes(bytes(8))
        with open(shift, "r+b") as file:
            file.write(struct.pack("<q", seconds))

    jump(0)
    this = node(env={"LD_PRELOAD": str(tmp_path / "shim.so"), "CLOCK_SHIFT": str(shift)})
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", [b"for an hour"], expiration="3600000")
    fill(chan, "q", [b"for ever"])

    def has(*bodies):
        chan = this.raw().channel()
        got = [chan.get("q", no_ack=False) for _ in range(len(bodies) + 1)]
        assert [m.body.decode() for m in got if m is not None] == list(bodies)
        chan.close()
        chan.conn.close()

    for seconds in (DAY, -2 * DAY, 0):
        jump(seconds)
        time.sleep(0.3)
        has("for an hour", "for ever")
        fill(chan, "q", [b"another"], expiration="60000")       # and the new clock counts for nobody
        time.sleep(0.1)
        has("for an hour", "for ever", "another")
        assert chan.call("basic.get", queue="q").body == b"for an hour"
        chan.nack(0, multiple=True)
        chan.call("queue.purge", queue="q")
        fill(chan, "q", [b"for an hour"], expiration="3600000")
        fill(chan, "q", [b"for ever"])
    again(this, "kill")
    has("for an hour", "for ever")
    # a clock that is ahead at the start: as if it had been down so long
    jump(DAY)
    again(this, "kill")
    has("for ever")
    chan = this.raw().channel()
    fill(chan, "q", [b"until tomorrow"], expiration="3600000")
    # one that stands before what was journalled: nothing expires
    jump(-DAY)
    again(this, "kill")
    assert "the clock" in this.log[this.log_before:]
    has("for ever", "until tomorrow")
