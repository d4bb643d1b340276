#!/usr/bin/env python3
"""What a client can do to the loop's turn: each scenario at three sizes, with a node of its own.

	tests/bench/bounds.py [SCENARIO...]

For each step: seconds, the node's processor seconds, and the longest turn so far in milliseconds of the core thread's
processor time (GET /api/overview, process.turn_longest_us). At the end a table of all: the bound of a turn is 20 ms (exit
status 1 where one was longer), and the processor time for each thing may not grow with their number. HERMES_BINARY is the
node.
"""
# SPDX-License-Identifier: Apache-2.0
import mmap
import os
import pathlib
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "lib"), str(TESTS / "conformance")]
from node import Node     # noqa: E402
import wire               # noqa: E402

CHUNK = 500
WAIT = 300
BOUND_MS = 20
PARTS = (10, 50, 100)   # percent of a scenario's size
WARM = 1 << 30
HUGE = 2 << 20


def warm():
    """In a virtual machine the first touch of memory that the host has not given it yet takes milliseconds a page, which
    count as ours. Here it is touched before."""
    with mmap.mmap(-1, WARM) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, WARM, HUGE):
            memory[at] = 1


def cpu(node):
    """Nanoseconds that its threads ran, in seconds."""
    return sum(int(stat.read_text().split()[0])
               for stat in pathlib.Path("/proc/%d/task" % node.pid).glob("*/schedstat")) / 1e9


class Run:
    """A node, and what its steps took."""

    done = []   # (title, size, processor seconds, longest turn in ms)

    def __init__(self, title, n, folder, settings=""):
        warm()
        self.title, self.n, self.used = title, n, 0.0
        self.node = Node(folder, settings)
        self.node.start()
        self.chan = self.node.raw().channel()
        print("\n%d %s" % (n, title))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0] is None:
            self.done.append((self.title, self.n, self.used, self.longest_ms()))
        self.node.abort_conns()
        self.node.kill()

    def longest_ms(self):
        return self.node.overview()["hermes"]["process"]["turn_longest_us"] / 1000

    def step(self, what, work):
        began, used = time.monotonic(), cpu(self.node)
        work()
        self.node.overview()
        used = cpu(self.node) - used
        self.used += used
        print("  %-44s %7.2f s %7.2f s  %8.2f ms" % (what, time.monotonic() - began, used, self.longest_ms()),
              flush=True)

    def send(self, frames, chan=None):
        """All of them, some at a time, and then an answer."""
        chan = chan or self.chan
        for at in range(0, len(frames), CHUNK):
            chan.conn.send_raw(b"".join(frames[at:at + CHUNK]))
        chan.send("basic.qos", prefetch_size=0, prefetch_count=0, global_=False)
        while chan.conn.next_event(chan.number, WAIT).name != "basic.qos-ok":
            pass

    def method(self, name, **args):
        return wire.enc_frame(wire.FRAME_METHOD, self.chan.number, wire.enc_method(name, **args))

    def wait_empty(self, count=0):
        while self.node.overview()["queue_totals"]["messages"] > count:
            time.sleep(0.1)


def bind(run, queue, exchange, key):
    return run.method("queue.bind", queue=queue, exchange=exchange, routing_key=key, nowait=True, arguments={})


def hashes(folder, n):
    with Run("bindings #.#.#", n, folder) as run:
        run.chan.exchange("x", "topic")
        run.chan.declare("q")
        queues = ["q%d" % i for i in range(n)]
        run.step("queues", lambda: run.send([run.method("queue.declare", queue=q, nowait=True, arguments={})
                                              for q in queues]))
        run.step("bindings", lambda: run.send([bind(run, q, "x", "#.#.#") for q in queues]))
        words = ".".join(["a"] * 127)
        run.step("100 messages of 127 words",
                 lambda: run.send([run.chan.encode_publish("x", words[:-1] + chr(97 + i % 26), b"m")
                                   for i in range(100)]))
        run.step("unbound", lambda: run.send([run.method(
            "queue.unbind", queue=q, exchange="x", routing_key="#.#.#", arguments={}) for q in queues[:n // 2]]))
        run.step("exchange deleted", lambda: run.chan.call("exchange.delete", timeout=WAIT, exchange="x"))


def topics(folder, n):
    with Run("topic bindings", n, folder) as run:
        run.chan.exchange("x", "topic")
        run.chan.exchange("y", "topic")
        run.chan.declare("q")
        keys = ["a%d.*.b%d.#.%d" % (i % 100, i % 7, i) for i in range(n)]
        run.step("bound", lambda: run.send([bind(run, "q", "x", k) for k in keys]))
        run.step("messages", lambda: run.send([run.chan.encode_publish(
            "x", "a%d.w.b%d.v.u.%d" % (i % 100, i % 7, i), b"m") for i in range(0, n, 5)]))
        run.step("bound to another, too", lambda: run.send([bind(run, "q", "y", k) for k in keys]))
        run.step("exchange deleted", lambda: run.chan.call("exchange.delete", timeout=WAIT, exchange="x"))
        run.step("queue deleted", lambda: run.chan.call("queue.delete", timeout=WAIT, queue="q"))


def ttl_queues(folder, n):
    with Run("queues with a time to live", n, folder) as run:
        queues = ["q%d" % i for i in range(n)]
        run.step("declared", lambda: run.send([run.method(
            "queue.declare", queue=q, nowait=True, arguments={"x-message-ttl": 2000}) for q in queues]))
        deadline = time.time() + 3 + n / 20000

        def publish():
            for at in range(0, n, 10000):
                left = str(max(1, int((deadline - time.time()) * 1000)))
                run.send([run.chan.encode_publish("", q, b"m", expiration=left) for q in queues[at:at + 10000]])

        run.step("a message in each", publish)
        run.step("expired", run.wait_empty)
        run.step("deleted", lambda: run.send([run.method("queue.delete", queue=q, nowait=True) for q in queues]))


def expire(folder, n, title, durable, letters):
    with Run(title, n, folder, "store: {sync: 50ms}") as run:
        props = {"delivery_mode": 2} if durable else {}
        arguments = {}
        if letters:
            run.chan.exchange("x", "fanout", durable=durable)
            run.chan.declare("r", durable=durable)
            run.chan.call("queue.bind", queue="r", exchange="x", routing_key="", nowait=False, arguments={})
            arguments["x-dead-letter-exchange"] = "x"
        run.chan.declare("q", durable=durable, arguments=arguments)
        first = run.chan.encode_publish("", "q", b"m", expiration=str((3 + n // 100000) * 1000), **props)
        frames = [run.chan.encode_publish("", "q", b"m", expiration="1", **props)] * CHUNK
        run.send([first])
        run.step("published", lambda: [run.send(frames) for _ in range(n // CHUNK)])

        def gone():
            while run.chan.declare("q", passive=True).message_count > 0 or \
                    letters and run.chan.declare("r", passive=True).message_count <= n:
                time.sleep(0.1)

        run.step("expired", gone)


def expiring(folder, n):
    for durable in (False, True):
        for letters in (False, True):
            title = "messages that expire in one second%s%s" % (", durable" if durable else "",
                                                              ", dead letters" if letters else "")
            expire(folder / title.replace(" ", "-"), n, title, durable, letters)


def expiring_everywhere(folder, n):
    queues = 1000
    with Run("messages in %d queues that expire in one second" % queues, n, folder) as run:
        names = ["q%d" % i for i in range(queues)]
        run.send([run.method("queue.declare", queue=q, nowait=True, arguments={}) for q in names])
        deadline = time.time() + 4 + n // 100000

        def publish():
            for _ in range(0, n, 10000):
                left = str(max(1, int((deadline - time.time()) * 1000)))
                run.send([run.chan.encode_publish("", q, b"m", expiration=left) for q in names] * (10000 // queues))

        run.step("published", publish)
        run.step("expired", run.wait_empty)


def exclusive(folder, n):
    with Run("exclusive queues", n, folder) as run:
        other = run.node.raw()
        chan = other.channel()
        run.chan.exchange("x", "fanout")
        run.step("declared", lambda: run.send([run.method(
            "queue.declare", queue="q%d" % i, exclusive=True, nowait=True, arguments={}) for i in range(n)], chan))
        run.step("bound", lambda: run.send([bind(run, "q%d" % i, "x", "") for i in range(n)], chan))

        def drop():
            other.abort()
            while run.node.overview()["object_totals"]["queues"] > 0:
                time.sleep(0.1)

        run.step("dropped at once", drop)


def consumers(folder, n):
    with Run("consumers of one connection", n, folder) as run:
        for end in ("channel closed", "connection lost", "queue deleted"):
            run.chan.declare("q")
            other = run.node.raw()
            chan = other.channel()
            run.step("consume", lambda chan=chan: run.send([run.method(
                "basic.consume", queue="q", consumer_tag=str(i), nowait=True, arguments={}) for i in range(n)], chan))

            def drop(chan=chan, other=other, end=end):
                if end == "channel closed":
                    chan.call("channel.close", timeout=WAIT, reply_code=200, reply_text="", class_id=0, method_id=0)
                if end == "queue deleted":
                    run.chan.call("queue.delete", timeout=WAIT, queue="q")
                    while run.node.overview()["hermes"]["memory"]["kinds"]["topology"] > 1 << 20:
                        time.sleep(0.1)   # not counted any more, but there
                else:
                    other.abort()
                while run.node.overview()["object_totals"]["consumers"] > 0:
                    time.sleep(0.1)

            run.step(end, drop)
            other.abort()


def priorities(folder, n):
    each = 256
    with Run("priorities of durable queues", n, folder, "store: {sync: 50ms}") as run:
        queues = ["q%d" % i for i in range(n // each)]
        run.step("declared", lambda: run.send([run.method(
            "queue.declare", queue=q, durable=True, nowait=True, arguments={"x-max-priority": each - 1})
            for q in queues]))
        frames = [run.chan.encode_publish("", q, b"m", delivery_mode=2, priority=i) for i in range(each) for q in queues]
        for _ in range(2):
            run.step("a message in each", lambda: run.send(frames))
            run.step("purged", lambda: run.send([run.method("queue.purge", queue=q, nowait=True) for q in queues]))
        run.step("deleted", lambda: run.send([run.method("queue.delete", queue=q, nowait=True) for q in queues]))


def durable_queues(folder, n):
    with Run("durable queues", n, folder, "store: {sync: 50ms}") as run:
        queues = ["q%d" % i for i in range(n)]
        run.step("declared", lambda: run.send([run.method(
            "queue.declare", queue=q, durable=True, nowait=True, arguments={}) for q in queues]))
        run.step("deleted", lambda: run.send([run.method("queue.delete", queue=q, nowait=True) for q in queues]))


def leases(folder, n):
    with Run("queues that expire", n, folder) as run:
        run.step("declared", lambda: run.send([run.method(
            "queue.declare", queue="q%d" % i, nowait=True, arguments={"x-expires": 3000 + n // 20})
            for i in range(n)]))

        def gone():
            while run.node.overview()["object_totals"]["queues"] > 0:
                time.sleep(0.1)

        run.step("gone", gone)


SCENARIOS = {"hashes": (hashes, 1000), "topics": (topics, 50000), "ttl_queues": (ttl_queues, 100000),
             "durable_queues": (durable_queues, 100000), "priorities": (priorities, 128000),
             "expiring": (expiring, 1000000), "expiring_everywhere": (expiring_everywhere, 1000000),
             "exclusive": (exclusive, 100000), "consumers": (consumers, 675000), "leases": (leases, 100000)}


def table(done):
    print("\n%-56s %9s %10s %14s %13s" % ("", "number", "processor", "for each", "longest turn"))
    for title, n, used, longest in sorted(done, key=lambda row: row[0]):
        print("%-56s %9d %8.2f s %11.2f us %10.2f ms%s" % (title, n, used, used / n * 1e6, longest,
                                                          "  !" if longest > BOUND_MS else ""))


def main():
    print("%-46s %9s %9s  %11s" % ("", "time", "processor", "longest turn"))
    for name in sys.argv[1:] or SCENARIOS:
        scenario, n = SCENARIOS[name]
        for part in PARTS:
            with tempfile.TemporaryDirectory(prefix="hermes-bounds-") as folder:
                scenario(pathlib.Path(folder), n * part // 100)
    table(Run.done)
    return 1 if any(row[3] > BOUND_MS for row in Run.done) else 0


if __name__ == "__main__":
    sys.exit(main())
