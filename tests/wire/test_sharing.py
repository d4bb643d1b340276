"""Many consumers of one queue: whose turn it is, and where messages stand that come back from all of them.

RabbitMQ 3.10 says the same: WIRE_PORT is the port of the broker that is asked.
"""
# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from node import SLOW


@pytest.fixture
def ch(peer):
    conn = peer().handshake("guest", "guest", "/")
    yield conn.channel()
    conn.close()


class Consumers:
    """So many, each on a channel of its own, on a few connections."""

    def __init__(self, peer, queue, count, prefetch=0, per_conn=5, **kw):
        self.conns = [peer().handshake("guest", "guest", "/") for _ in range(-(-count // per_conn))]
        self.chans = [self.conns[n // per_conn].channel() for n in range(count)]
        self.held = {}              # number of a message: (consumer, tag)
        for n, chan in enumerate(self.chans):
            if prefetch:
                chan.qos(prefetch)
            chan.consume(queue, tag="c%d" % n, **kw)

    def receive(self, consumer, count=1):
        got = []
        for _ in range(count):
            event = self.chans[consumer].deliver(timeout=10 * SLOW)
            got.append(int(event.body))
            self.held[got[-1]] = (consumer, event.delivery_tag)
        return got

    def settle(self, how, number):
        consumer, tag = self.held.pop(number)
        getattr(self.chans[consumer], how)(tag)
        return consumer

    def leave(self):
        for conn in self.conns:
            conn.close()


def fill(ch, queue, numbers):
    for n in numbers:
        ch.publish("", queue, str(n))
    ch.sync()


@pytest.mark.parametrize("no_ack", [False, True])
def test_each_in_its_turn(peer, ch, no_ack):
    queue = ch.declare("sharing").queue
    all_of = Consumers(peer, queue, 40, no_ack=no_ack)
    fill(ch, queue, range(400))
    for n in range(40):
        assert all_of.receive(n, 10) == list(range(n, 400, 40))
    all_of.leave()
    ch.call("queue.delete", queue=queue)


def test_whose_turn_it_is_with_room_for_one(peer, ch):
    """A full consumer keeps its turn until it is passed over for a message; then it stands behind all once it has room."""
    queue = ch.declare("sharing").queue
    all_of = Consumers(peer, queue, 12, prefetch=1, per_conn=3)
    fill(ch, queue, range(12))
    for n in range(12):
        assert all_of.receive(n) == [n]
    for number in (7, 2, 9):
        all_of.chans[all_of.settle("ack", number)].sync()
    # Comes back from one that has room again by that, and is the next to get one only if it was not passed over.
    for number, taker in ((4, 2), (11, 4), (0, 7), (5, 9)):
        all_of.settle("nack", number)
        assert all_of.receive(taker) == [number]
    fill(ch, queue, (20, 21, 22))
    assert [all_of.receive(taker) for taker in (11, 0, 5)] == [[20], [21], [22]]
    all_of.leave()
    ch.call("queue.delete", queue=queue)


def test_nobody_waits_for_the_slow(peer, ch):
    """Three of ten never acknowledge; the others share all the rest evenly, as far as they are equally fast."""
    queue = ch.declare("sharing").queue
    fill(ch, queue, range(300))
    all_of = Consumers(peer, queue, 10, prefetch=3, per_conn=10)
    seen = {n: [] for n in range(10)}
    while sum(map(len, seen.values())) < 300 - 3 * 2:
        event = all_of.conns[0].next_event(names=("basic.deliver",), timeout=10 * SLOW)
        consumer = int(event.consumer_tag[1:])
        seen[consumer].append(int(event.body))
        if consumer > 2:
            all_of.chans[consumer].ack(event.delivery_tag)
        if sum(map(len, seen.values())) == 300:
            break
    assert all(seen[n] == sorted(seen[n]) for n in seen)
    assert [len(seen[n]) for n in range(3)] == [3, 3, 3]
    assert all(abs(len(seen[n]) - 291 / 7) <= 6 for n in range(3, 10)), {n: len(seen[n]) for n in seen}
    all_of.leave()
    ch.call("queue.delete", queue=queue)


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_back_from_many_stands_in_its_old_order(peer, ch, seed):
    """Given back one by one and many at once, by recovery, by channels and connections that end: in any order."""
    chance = random.Random(seed)
    queue = ch.declare("sharing").queue
    fill(ch, queue, range(300))
    all_of = Consumers(peer, queue, 20, prefetch=chance.choice((7, 10)), per_conn=4)
    left = set(range(300))
    for n, chan in enumerate(all_of.chans):
        all_of.receive(n, 7)
    for n, chan in enumerate(all_of.chans):
        chan.call("basic.cancel", consumer_tag="c%d" % n)
    ways = ["one by one", "ack some", "multiple", "recover", "channel", "connection"] * 3 + ["one by one", "multiple"]
    chance.shuffle(ways)
    gone = set()
    for n, chan in enumerate(all_of.chans):
        mine = {number: tag for number, (consumer, tag) in all_of.held.items() if consumer == n}
        order = chance.sample(sorted(mine), len(mine))
        if n // 4 in gone:
            continue
        if ways[n] in ("one by one", "ack some"):
            for number in order:
                if ways[n] == "ack some" and chance.random() < 0.5:
                    chan.ack(mine[number])
                    left.discard(number)
                else:
                    chance.choice((chan.nack, chan.reject))(mine[number])
        elif ways[n] == "multiple":
            chan.nack(mine[order[0]], multiple=True)
            chan.nack(0, multiple=True)
        elif ways[n] == "recover":
            chan.call("basic.recover", requeue=True)
        elif ways[n] == "channel":
            chan.close()
        else:
            all_of.conns[n // 4].close()
            gone.add(n // 4)
    all_of.leave()
    ch.wait_count(queue, len(left), timeout=10 * SLOW)
    got = [ch.get(queue) for _ in left]
    assert [int(event.body) for event in got] == sorted(left)
    assert ch.get(queue) is None
    back = {int(event.body) for event in got if event.redelivered}
    assert set(all_of.held) & left <= back and not any(n >= 200 for n in back)
    ch.call("queue.delete", queue=queue)


def test_back_in_order_while_others_take(peer, ch):
    """Those that come back while two consumers with room wait go to them in turns, the lowest first."""
    queue = ch.declare("sharing").queue
    fill(ch, queue, range(60))
    first = Consumers(peer, queue, 6, prefetch=10)
    for n in range(6):
        first.receive(n, 10)
    owner = {number: consumer for number, (consumer, _) in first.held.items()}
    for n in range(3):                      # their thirty go
        first.chans[n].call("basic.cancel", consumer_tag="c%d" % n)
    second = Consumers(peer, queue, 2, prefetch=15, per_conn=2)
    for n in (1, 2, 0):
        mine = sorted(number for number in owner if owner[number] == n)
        first.chans[n].nack(0, multiple=True)
        events = [second.conns[0].next_event(names=("basic.deliver",), timeout=10 * SLOW) for _ in mine]
        assert all(event.redelivered for event in events)
        # What two channels get stands in no order between them.
        by = [[int(event.body) for event in events if event.consumer_tag == tag] for tag in ("c0", "c1")]
        assert sorted(by) == [mine[::2], mine[1::2]]
    first.leave()
    second.leave()
    ch.call("queue.delete", queue=queue)
