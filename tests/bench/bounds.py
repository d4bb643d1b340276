#!/usr/bin/env python3
"""What a client can do to the loop's turn: each scenario at two sizes, with a node of its own.

	tests/bench/bounds.py [SCENARIO...]

For each step: seconds, the node's processor seconds, and the longest turn so far in milliseconds of the core thread's
processor time (GET /api/overview, process.turn_longest_us). The bound is 20 ms, and four times the size may take four
times the processor time. HERMES_BINARY is the node.
"""
# SPDX-License-Identifier: Apache-2.0
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


def cpu(node):
    fields = pathlib.Path("/proc/%d/stat" % node.pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Run:
    """A node, and what its steps took."""

    def __init__(self, title, folder, settings=""):
        self.node = Node(folder, settings)
        self.node.start()
        self.chan = self.node.raw().channel()
        print("\n" + title)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.node.abort_conns()
        self.node.kill()

    def longest_ms(self):
        return self.node.overview()["hermes"]["process"]["turn_longest_us"] / 1000

    def step(self, what, work):
        began, used = time.monotonic(), cpu(self.node)
        work()
        self.node.overview()
        print("  %-44s %7.2f s %7.2f s  %8.2f ms" % (what, time.monotonic() - began, cpu(self.node) - used,
                                                     self.longest_ms()), flush=True)

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
    with Run("%d bindings #.#.#" % n, folder) as run:
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
    with Run("%d topic bindings" % n, folder) as run:
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
    with Run("%d queues with a time to live" % n, folder) as run:
        queues = ["q%d" % i for i in range(n)]
        run.step("declared", lambda: run.send([run.method(
            "queue.declare", queue=q, nowait=True, arguments={"x-message-ttl": 2000}) for q in queues]))
        deadline = time.time() + 5 + n / 10000

        def publish():
            for at in range(0, n, 10000):
                left = str(max(1, int((deadline - time.time()) * 1000)))
                run.send([run.chan.encode_publish("", q, b"m", expiration=left) for q in queues[at:at + 10000]])

        run.step("a message in each", publish)
        run.step("expired", run.wait_empty)
        run.step("deleted", lambda: run.send([run.method("queue.delete", queue=q, nowait=True) for q in queues]))


def expiring(folder, n):
    for durable in (False, True):
        with Run("%d messages that expire in one second%s" % (n, ", durable" if durable else ""), folder / str(durable),
                 "store: {sync: 50ms}") as run:
            props = {"delivery_mode": 2} if durable else {}
            run.chan.declare("q", durable=durable)
            run.chan.declare("r", durable=durable)
            wait = 5 + n // 40000
            first = run.chan.encode_publish("", "q", b"m", expiration=str(wait * 1000), **props)
            frames = [run.chan.encode_publish("", "q", b"m", expiration="1", **props)] * CHUNK
            run.send([first])
            run.step("published", lambda: [run.send(frames) for _ in range(n // CHUNK)])
            run.step("expired", run.wait_empty)


def expiring_everywhere(folder, n):
    queues = 1000
    with Run("%d messages in %d queues that expire in one second" % (n, queues), folder) as run:
        names = ["q%d" % i for i in range(queues)]
        run.send([run.method("queue.declare", queue=q, nowait=True, arguments={}) for q in names])
        deadline = time.time() + 5 + n // 20000

        def publish():
            for at in range(0, n, 10000):
                left = str(max(1, int((deadline - time.time()) * 1000)))
                run.send([run.chan.encode_publish("", names[i % queues], b"m", expiration=left)
                          for i in range(at, at + 10000)])

        run.step("published", publish)
        run.step("expired", run.wait_empty)


def exclusive(folder, n):
    with Run("%d exclusive queues" % n, folder) as run:
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
    with Run("%d consumers of one connection" % n, folder) as run:
        run.chan.declare("q")
        for end in ("channel closed", "connection lost"):
            other = run.node.raw()
            chan = other.channel()
            run.step("consume", lambda chan=chan: run.send([run.method(
                "basic.consume", queue="q", consumer_tag=str(i), nowait=True, arguments={}) for i in range(n)], chan))

            def drop(chan=chan, other=other, end=end):
                if end == "channel closed":
                    chan.call("channel.close", timeout=WAIT, reply_code=200, reply_text="", class_id=0, method_id=0)
                other.abort()
                while run.node.overview()["object_totals"]["consumers"] > 0:
                    time.sleep(0.1)

            run.step(end, drop)


def leases(folder, n):
    with Run("%d queues that expire" % n, folder) as run:
        run.step("declared", lambda: run.send([run.method(
            "queue.declare", queue="q%d" % i, nowait=True, arguments={"x-expires": 10000 + n // 10})
            for i in range(n)]))

        def gone():
            while run.node.overview()["object_totals"]["queues"] > 0:
                time.sleep(0.1)

        run.step("gone", gone)


SCENARIOS = {"hashes": (hashes, 1000), "topics": (topics, 50000), "ttl_queues": (ttl_queues, 100000),
             "expiring": (expiring, 1000000), "expiring_everywhere": (expiring_everywhere, 1000000),
             "exclusive": (exclusive, 100000), "consumers": (consumers, 675000), "leases": (leases, 100000)}


def main():
    print("%-46s %9s %9s  %11s" % ("", "time", "processor", "longest turn"))
    for name in sys.argv[1:] or SCENARIOS:
        scenario, n = SCENARIOS[name]
        for size in (n // 4, n):
            with tempfile.TemporaryDirectory(prefix="hermes-bounds-") as folder:
                scenario(pathlib.Path(folder), size)


if __name__ == "__main__":
    main()
