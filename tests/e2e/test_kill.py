"""kill -9 under load, again and again: what was confirmed is there, whole, once, in order.

HERMES_KILLS is the number of cycles: 10, and 50 with contrib/test --long.
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import hashlib
import os
import random
import struct
import threading
import time

import pytest

import wire
from node import SLOW, wait_for

KILLS = int(os.environ.get("HERMES_KILLS", "10"))
WINDOW = 200
#: what a publisher sends: most are small, some larger than a frame
SIZES = (30, 30, 100, 100, 1000, 1000, 5000, 200000)


def body_of(publisher, number):
    """Known from its number: 16 bytes of head, a checksum, filler."""
    head = struct.pack("<QQ", publisher, number)
    rest = random.Random(publisher * 1000003 + number)
    filler = rest.randbytes(SIZES[rest.randrange(len(SIZES) if number % 50 == 0 else 7)])
    return head + hashlib.blake2b(head + filler, digest_size=8).digest() + filler


def number_of(body):
    """(publisher, number) of a body that is whole."""
    head, digest, filler = body[:16], body[16:24], body[24:]
    assert hashlib.blake2b(head + filler, digest_size=8).digest() == digest, "a corrupted body"
    return struct.unpack("<QQ", head)


class Client(threading.Thread):
    """Works until the node goes; may be started again as another one with what it knows."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.chan = node.raw().channel()
        self.error = None

    def run(self):
        try:
            self.work()
        except (wire.Eof, ConnectionError, BrokenPipeError):
            pass
        except BaseException as exc:        # told by the test
            self.error = exc

    def done(self):
        self.join(20 * SLOW)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error


class Publisher(Client):
    """Persistent messages to the fan-out, WINDOW unconfirmed at most."""

    def __init__(self, node, number, state):
        super().__init__(node)
        self.number, self.state = number, state
        self.chan.call("confirm.select")

    def work(self):
        first = self.state["next"]
        open_tags = collections.deque()
        while True:
            while len(open_tags) < WINDOW:
                number = self.state["next"]
                self.state["next"] = number + 1
                open_tags.append(number - first + 1)
                self.chan.publish("all", "k", body_of(self.number, number), delivery_mode=2)
            event = self.chan.expect("basic.ack", timeout=20 * SLOW)
            tags = [event.delivery_tag]
            if event.multiple:
                tags = [tag for tag in open_tags if tag <= event.delivery_tag]
            for tag in tags:
                open_tags.remove(tag)
                self.state["confirmed"].add(first + tag - 1)


class Committer(Client):
    """Transactions of five messages to two queues."""

    def __init__(self, node, state):
        super().__init__(node)
        self.state = state
        self.chan.call("tx.select")

    def work(self):
        while True:
            number = self.state["next"]
            self.state["next"] = number + 1
            for part in range(5):
                self.chan.publish("", "tx%d" % (part % 2), struct.pack("<QQ", number, part), delivery_mode=2)
            self.chan.call("tx.commit", timeout=20 * SLOW)
            self.state["confirmed"].add(number)


class Consumer(Client):
    """Takes and acknowledges; the last 20 are always open."""

    def __init__(self, node, queue, seen):
        super().__init__(node)
        self.seen = seen
        self.order = []
        self.chan.qos(100)
        self.chan.consume(queue)

    def work(self):
        waiting = collections.deque()
        while True:
            got = self.chan.deliver(timeout=20 * SLOW)
            self.order.append((number_of(got.body), got.redelivered))
            waiting.append(got.delivery_tag)
            self.seen.add(self.order[-1][0])
            if len(waiting) > 20:
                self.chan.ack(waiting.popleft())


def ascending(numbers):
    """Each publisher's own numbers rise, and none comes twice."""
    last = {}
    for publisher, number in numbers:
        assert number > last.get(publisher, -1), "publisher %d: %d behind %d" % (publisher, number, last[publisher])
        last[publisher] = number


def take_all(node, queue):
    """All bodies of a queue, acknowledged."""
    chan = node.raw().channel()
    count = chan.counts(queue)[0]
    chan.qos(500)
    chan.consume(queue)
    out = []
    for n in range(count):
        got = chan.deliver(timeout=20 * SLOW)
        out.append(got.body)
        if n % 100 == 99 or n == count - 1:
            chan.ack(got.delivery_tag, multiple=True)
    chan.sync()
    assert chan.counts(queue)[0] == 0
    chan.conn.close()
    return out


def load(node, states, tx, seen):
    clients = [Publisher(node, n, state) for n, state in enumerate(states)]
    clients.append(Committer(node, tx))
    consumers = [Consumer(node, "served", seen) for _ in range(2)]
    for client in clients + consumers:
        client.start()
    return clients, consumers


@pytest.mark.parametrize("settings, share", [
    ("journal_file_size: 4MiB", 1),
    ("journal_file_size: 4MiB, sync: 20ms", 3),
    ("journal_file_size: 1MiB, queue_messages: 1024, queue_bytes: 1MiB", 2),
], ids=["always", "20ms", "spilling"])
def test_kill_under_load(node, settings, share):
    this = node("store: {%s}\n" % settings)
    chan = this.raw().channel()
    chan.exchange("all", "fanout", durable=True)
    for queue in ("served", "kept"):
        chan.declare(queue, durable=True)
        chan.bind(queue, "all")
    for queue in ("tx0", "tx1"):
        chan.declare(queue, durable=True)
    states = [{"next": 0, "confirmed": set()} for _ in range(4)]
    tx = {"next": 0, "confirmed": set()}
    seen = set()
    chance = random.Random(7)
    kills = max(1, KILLS // share)
    for cycle in range(kills):
        before = sum(len(state["confirmed"]) for state in states)
        clients, consumers = load(this, states, tx, seen)
        wait_for(lambda: sum(len(s["confirmed"]) for s in states) > before + 200, 20, "some confirms")
        time.sleep(chance.random() * 0.4)
        this.process.kill()
        this.process.wait()
        for client in clients + consumers:
            client.done()
        for consumer in consumers:
            ascending(number for number, _ in consumer.order)
        this.conns.clear()
        this.start()
        print("cycle %d: %d confirmed, %d delivered, %d seen" % (cycle, sum(len(s["confirmed"]) for s in states),
                                                               sum(len(c.order) for c in consumers), len(seen)))
    confirmed = {(n, number) for n, state in enumerate(states) for number in state["confirmed"]}
    kept = [number_of(body) for body in take_all(this, "kept")]
    ascending(kept)
    missing = confirmed - set(kept)
    assert not missing, "%d confirmed messages lost: %s" % (len(missing), sorted(missing)[:10])
    served = [number_of(body) for body in take_all(this, "served")]
    ascending(served)
    missing = confirmed - set(served) - seen
    assert not missing, "%d confirmed messages lost: %s" % (len(missing), sorted(missing)[:10])
    parts = collections.defaultdict(list)
    for queue in ("tx0", "tx1"):
        last = (-1, -1)
        for body in take_all(this, queue):
            number, part = struct.unpack("<QQ", body)
            assert (number, part) > last
            last = (number, part)
            parts[number].append(part)
    assert all(sorted(parts[number]) == [0, 1, 2, 3, 4] for number in parts), "half a transaction"
    assert tx["confirmed"] <= set(parts), "a committed transaction is lost"
    assert this.log.count("torn") <= 2 * kills + 2
    assert "damage" not in this.log


def test_acknowledged_stay_away(node):
    """An ack has no answer, but what came after it and was answered says that it is on disk."""
    this = node()
    for cycle in range(5):
        chan = this.raw().channel()
        chan.declare("q", durable=True)
        chan.call("confirm.select")
        for n in range(300):
            chan.publish("", "q", b"%d" % n, delivery_mode=2)
        chan.confirmed(300, timeout=20 * SLOW)
        other = this.raw().channel()
        other.consume("q")
        for n in range(300):
            got = other.deliver()
            assert got.body == b"%d" % n
            if n % 3 != cycle % 3:
                other.ack(got.delivery_tag)
        other.sync()
        chan.declare("another%d" % cycle, durable=True)
        this.process.kill()
        this.process.wait()
        this.conns.clear()
        this.start()
        assert this.raw().channel().drain("q") == [str(n) for n in range(300) if n % 3 == cycle % 3]


def test_kill_while_it_starts(node):
    """Cut again before it is ready, as often as one likes."""
    this = node("store: {journal_file_size: 1MiB}\n")
    chan = this.raw().channel()
    chan.declare("q", durable=True)
    chan.call("confirm.select")
    for n in range(3000):
        chan.publish("", "q", struct.pack("<Q", n) * 200, delivery_mode=2)
    chan.confirmed(3000, timeout=20 * SLOW)
    this.process.kill()
    this.process.wait()
    chance = random.Random(3)
    for _ in range(12):
        this.start(ready=False)
        time.sleep(chance.random() * 0.03 * SLOW)
        this.process.kill()
        this.process.wait()
    this.conns.clear()
    this.start()
    assert take_all(this, "q") == [struct.pack("<Q", n) * 200 for n in range(3000)]


class Model:
    """What a node has to have in one queue: [body, redelivered] by number."""

    def __init__(self, name):
        self.name = name
        self.next = 0
        self.ready = {}
        self.held = {}              # by delivery tag of the channel: (number, message)

    def put(self, body):
        self.ready[self.next] = [body, False]
        self.next += 1

    def take(self):
        number = min(self.ready)
        return number, self.ready.pop(number)

    def give_back(self, number, message):
        message[1] = True
        self.ready[number] = message

    def restart(self):
        for number, message in self.held.values():
            self.give_back(number, message)
        self.held.clear()


class Random:
    """Works at random on three queues, and compares every answer with the model."""

    def __init__(self, node, seed):
        self.node, self.chance = node, random.Random(seed)
        self.queues = [Model("m%d" % n) for n in range(3)]
        chan = self.connect()
        for queue in self.queues:
            chan.declare(queue.name, durable=True)
            chan.bind(queue.name, "amq.fanout")

    def connect(self):
        conn = self.node.raw()
        self.chan, self.gets = conn.channel(), conn.channel()
        self.chan.call("confirm.select")
        self.confirmed = 0
        return self.chan

    def body(self):
        return self.chance.randbytes(self.chance.choice((10, 100, 1000, 3000)))

    def publish(self):
        count = self.chance.randrange(1, 400)
        for _ in range(count):
            body = self.body()
            if self.chance.random() < 0.3:
                self.chan.publish("amq.fanout", "", body, delivery_mode=2)
                for queue in self.queues:
                    queue.put(body)
            else:
                queue = self.chance.choice(self.queues)
                self.chan.publish("", queue.name, body, delivery_mode=2)
                queue.put(body)
        while count > 0:
            event = self.chan.expect("basic.ack", timeout=20 * SLOW)
            n = event.delivery_tag - self.confirmed if event.multiple else 1
            self.confirmed += n
            count -= n

    def get(self):
        queue = self.chance.choice(self.queues)
        for _ in range(self.chance.randrange(1, 150)):
            if not queue.ready:
                assert self.gets.get(queue.name) is None
                return
            number, message = queue.take()
            got = self.gets.get(queue.name, no_ack=False)
            assert got is not None and got.body == message[0], "%s: another message than %d" % (queue.name, number)
            assert got.redelivered == message[1], "%s: %d, redelivered %s" % (queue.name, number, got.redelivered)
            assert got.message_count == len(queue.ready)
            queue.held[got.delivery_tag] = (number, message)

    def settle(self):
        for queue in self.queues:
            for tag in list(queue.held):
                how = self.chance.random()
                if how < 0.4:
                    self.gets.ack(tag)
                    del queue.held[tag]
                elif how < 0.6:
                    self.gets.nack(tag, requeue=True)
                    queue.give_back(*queue.held.pop(tag))
                elif how < 0.7:
                    self.gets.reject(tag, requeue=False)
                    del queue.held[tag]
        self.gets.sync()

    def purge(self):
        queue = self.chance.choice(self.queues)
        if self.chance.random() < 0.2:
            assert self.chan.call("queue.purge", queue=queue.name).message_count == len(queue.ready)
            queue.ready.clear()

    def transaction(self):
        tx = self.chan.conn.channel()
        tx.call("tx.select")
        queue = self.chance.choice(self.queues)
        taken = [queue.take() for _ in range(min(len(queue.ready), 20))]
        for _, message in taken:
            got = tx.get(queue.name, no_ack=False)
            assert got.body == message[0]
            tx.ack(got.delivery_tag)
        bodies = [self.body() for _ in range(20)]
        for body in bodies:
            tx.publish("amq.fanout", "", body, delivery_mode=2)
        if self.chance.random() < 0.7:
            tx.call("tx.commit", timeout=20 * SLOW)
            for body in bodies:
                for each in self.queues:
                    each.put(body)
        else:
            for number, message in taken:
                queue.give_back(number, message)
        tx.close()

    def restart(self, kill):
        self.chan.declare("barrier", durable=True)
        self.chan.call("queue.delete", queue="barrier")
        if kill:
            self.node.process.kill()
            self.node.process.wait()
        else:
            self.node.stop()
        self.node.conns.clear()
        self.node.start()
        self.connect()
        for queue in self.queues:
            queue.restart()
            assert self.chan.counts(queue.name)[0] == len(queue.ready), queue.name

    def drain(self):
        for queue in self.queues:
            queue.restart()
        self.chan.conn.close()
        self.connect()
        for queue in self.queues:
            while queue.ready:
                number, message = queue.take()
                got = self.gets.get(queue.name)
                assert got is not None and (got.body, got.redelivered) == tuple(message), (queue.name, number)
            assert self.gets.get(queue.name) is None


@pytest.mark.parametrize("seed", range(3))
def test_random_work(node, seed):
    """Every message, its place and its redelivered flag, through kills, spills and rolls."""
    seed += int(os.environ.get("HERMES_SEED", "0"))
    this = node("store: {journal_file_size: 1MiB, queue_messages: 1024, queue_bytes: 1MiB}\n")
    work = Random(this, seed)
    steps = (work.publish, work.publish, work.get, work.get, work.settle, work.purge, work.transaction)
    for _ in range(max(1, KILLS // 2)):
        for _ in range(work.chance.randrange(3, 15)):
            work.chance.choice(steps)()
        work.restart(kill=work.chance.random() < 0.7)
    work.drain()
    assert "damage" not in this.log
