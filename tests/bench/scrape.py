#!/usr/bin/env python3
"""What scrapes cost a node with many queues under load.

	tests/bench/scrape.py [QUEUES [RATE [SECONDS]]]		default: 50,000 queues, 20,000 messages a second, 20 s

The load runs all the time; each endpoint is asked every five seconds for SECONDS, by a client that reads as fast as it can.
For each: bytes and seconds of an answer, then what that adds to the processor time of the core thread and of the others, in
percent of a core, and the longest turn of the core thread. "bytes": what it costs to write so many bytes from memory to such
a client, which is not counted as the cost of a scrape. HERMES_BINARY is the node.
"""
# SPDX-License-Identifier: Apache-2.0
import multiprocessing
import pathlib
import re
import socket
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "lib"), str(TESTS / "conformance")]
from node import Node     # noqa: E402
import wire               # noqa: E402

EVERY = 5
PART = 1000
BUSY = 100          # queues that the load goes through
BODY = b"x" * 256
TICK = 0.02
QUEUE = "service-%02d.orders.inbound.%05d"
PATHS = ["/metrics",
         "/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count",
         "/metrics/detailed?family=queue_metrics",
         "/metrics/per-object"]


def name(n):
    return QUEUE % (n % 20, n)


def declare(node, queues):
    chan = node.raw().channel()
    for first in range(0, queues, PART):
        chan.conn.send_raw(b"".join(
            wire.enc_frame(wire.FRAME_METHOD, chan.number, wire.enc_method("queue.declare", queue=name(n), nowait=True))
            for n in range(first, min(first + PART, queues))))
        chan.declare(name(first))
    for first in range(0, queues, PART):     # something in every tenth
        chan.conn.send_raw(b"".join(chan.encode_publish("", name(n), BODY) for n in range(first + 1, first + PART, 10)))
    chan.declare(name(0))


def drain(sock):
    sock.settimeout(None)
    while sock.recv(1 << 20):
        pass


def load(port, rate):
    """For ever: publishes `rate` messages a second to BUSY queues, with a consumer for each."""
    conn = wire.Conn("127.0.0.1", port).handshake("guest", "guest", "/")
    chan = conn.channel()
    for n in range(BUSY):
        chan.call("basic.consume", queue=name(n * 10), no_ack=True)
    threading.Thread(target=drain, args=(conn.sock,), daemon=True).start()
    out = wire.Conn("127.0.0.1", port).handshake("guest", "guest", "/")
    chan = out.channel()
    threading.Thread(target=drain, args=(out.sock,), daemon=True).start()
    frames = [chan.encode_publish("", name(n * 10), BODY) for n in range(BUSY)]
    began, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * rate)
        out.sock.sendall(b"".join(frames[n % BUSY] for n in range(sent, due)))
        sent = due
        time.sleep(TICK)


def cpu(node):
    """Seconds that the core thread ran, and all others."""
    core = others = 0
    for stat in pathlib.Path("/proc/%d/task" % node.pid).glob("*/schedstat"):
        ran = int(stat.read_text().split()[0]) / 1e9
        if stat.parent.name == str(node.pid):
            core = ran
        else:
            others += ran
    return core, others


def fetch(port, path, packed):
    """The bytes of the answer as they come, and the seconds that it took. No HTTP library: this shall not be what waits."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n"
                      % (path, "Accept-Encoding: gzip\r\n" if packed else "")).encode())
        sock.settimeout(60)
        data = []
        while True:
            data.append(sock.recv(4 << 20))
            if not data[-1]:
                return b"".join(data), time.monotonic() - began


def written(data):
    """Seconds of processor time that a write of these bytes takes, to somebody who reads them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far = server.accept()[0]
    thread = threading.Thread(target=drain, args=(far,))
    thread.start()
    used = time.thread_time()
    near.sendall(data)
    used = time.thread_time() - used
    near.close()
    thread.join()
    far.close()
    return used


def look(node):
    """Turns by length: {upper bound in seconds: how many are not longer}; the longest ever in ms; messages that consumers got."""
    text = fetch(node.metrics_port, "/metrics", False)[0].decode()
    return ({float(m[1]): int(m[2]) for m in re.finditer(r'^hermes_loop_lag_seconds_bucket\{le="(.*?)"\} (\d+)', text, re.M)},
            float(re.search(r"^hermes_loop_turn_longest_seconds (.*)$", text, re.M)[1]) * 1000,
            int(re.search(r"^hermes_deliver_no_ack_total (.*)$", text, re.M)[1]))


def phase(node, seconds, path=None, packed=False):
    """Percent of a core by the core thread and by others, the last answer, its seconds at most, turns over 5 and 10 ms."""
    before, used, began = look(node)[0], cpu(node), time.monotonic()
    data, slowest, asked = b"", 0, 0
    while time.monotonic() - began < seconds:
        if path is not None:
            data, took = fetch(node.metrics_port, path, packed)
            assert data.startswith(b"HTTP/1.1 200"), data[:200]
            slowest, asked = max(slowest, took), asked + 1
        time.sleep(max(0, min(began + seconds, began + EVERY * max(asked, 1)) - time.monotonic()))
        if path is None:
            asked += 1
    used = [(now - then) / (time.monotonic() - began) * 100 for now, then in zip(cpu(node), used)]
    after = look(node)[0]
    long = {bound: (after[float("inf")] - after[bound]) - (before[float("inf")] - before[bound]) for bound in (0.005, 0.01)}
    return used, data, slowest, long


def measure(node, seconds):
    print("%-76s %5s %7s %7s %7s %7s %7s %6s %6s" % ("", "", "bytes", "time", "core", "others", "bytes", ">5 ms", ">10 ms"))
    phase(node, 2 * EVERY)          # the first samples of rates
    idle = phase(node, seconds)
    began, messages = time.monotonic(), look(node)[2]
    for path in PATHS:
        for packed in (False, True):
            used, data, slowest, long = phase(node, seconds, path, packed)
            print("%-76s %5s %4.1f MB %4.0f ms %5.2f %% %5.2f %% %5.2f %% %6d %6d" % (
                path, "gzip" if packed else "", len(data) / 1e6, slowest * 1000, used[0] - idle[0][0], used[1] - idle[0][1],
                written(data) / EVERY * 100, long[0.005], long[0.01]), flush=True)
    _, longest, now = look(node)
    print("the load alone: core %.1f %%, others %.1f %%, for %.0f messages a second; the longest turn of all: %.1f ms"
          % (*idle[0], (now - messages) / (time.monotonic() - began), longest))


def main():
    queues, rate, seconds = [int(a) for a in sys.argv[1:]] + [50000, 20000, 20][len(sys.argv) - 1:]
    with tempfile.TemporaryDirectory(prefix="hermes-scrape-") as folder:
        node = Node(folder, "limits: {queues: 1000000}\n", metrics=True).start()
        client = multiprocessing.Process(target=load, args=(node.port, rate), daemon=True)
        try:
            declare(node, queues)
            client.start()
            measure(node, seconds)
        finally:
            client.kill()
            node.abort_conns()
            node.kill()


if __name__ == "__main__":
    main()
