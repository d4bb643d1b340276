#!/usr/bin/env python3
"""Connections, and messages at a rate, in a process of their own:

	load.py PORT CONNECTIONS RATE

Nine tenths of the messages go through a few busy queues, each with a publisher and a consumer that acknowledges; one tenth
goes to the consumers that all other connections are, one after the other. "ready" is printed when all are connected; it ends
with its standard input. What comes in is not parsed: whoever acknowledges does so for all that there is.
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import pathlib
import resource
import select
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "lib"), str(TESTS / "conformance"), str(pathlib.Path(__file__).resolve().parent)]
import wire             # noqa: E402
from world import name  # noqa: E402

BUSY = 40               # queues
TICK = 0.02             # seconds
BODY = b"m" * 256
LATE = 0.2              # seconds that are made up for


def connect(port, n, what):
    conn = wire.Conn("127.0.0.1", port, timeout=60)
    conn.handshake("guest", "guest", "/", heartbeat=0, properties={
        "connection_name": "%s %d" % (what, n), "product": "load", "version": "1.0", "capabilities": {"basic.nack": True}})
    return conn.channel()


def consumer(port, queue, what):
    chan = connect(port, queue, what)
    chan.qos(1000)
    chan.call("basic.consume", queue=name(queue), consumer_tag="%s %d" % (what, queue))
    return chan


class Load:
    def __init__(self, port, connections, rate):
        self.poll = select.epoll()
        self.by_fd = {}
        for n in range(BUSY):
            self.take(consumer(port, n, "busy consumer"), True)
        others = range(BUSY, connections - BUSY - 1)
        for n in others:
            self.take(consumer(port, n, "consumer"), True)
        self.publishers = collections.deque()
        each = max(1, round(rate * 9 / 10 * TICK / BUSY))
        for n in range(BUSY):
            chan = connect(port, n, "publisher")
            props = {"delivery_mode": 2} if n % 2 == 0 else {}
            self.take(chan, False)
            self.publishers.append((chan.conn.sock, chan.encode_publish("", name(n), BODY, **props) * each))
        last = connect(port, 0, "publisher of all")
        self.take(last, False)
        self.last = last.conn.sock
        self.trickle = collections.deque(last.encode_publish("", name(n), BODY) for n in others)
        self.part = round(rate / 10 * TICK)

    def take(self, chan, acknowledges):
        ack = wire.enc_frame(wire.FRAME_METHOD, chan.number, wire.enc_method("basic.ack", delivery_tag=0, multiple=True))
        self.poll.register(chan.conn.sock, select.EPOLLIN)
        self.by_fd[chan.conn.sock.fileno()] = (chan.conn.sock, ack if acknowledges else None)

    def receive(self, until):
        while True:
            left = until - time.monotonic()
            for fd, _ in self.poll.poll(max(0, left)):
                sock, ack = self.by_fd[fd]
                data = sock.recv(1 << 18)
                if not data or b"\x00\x0a\x00\x32" in data or b"\x00\x14\x00\x28" in data:
                    raise SystemExit("the node closed a connection or channel: %r" % data[:200])
                if ack:
                    sock.sendall(ack)
            if left <= 0:
                return

    def tick(self):
        for sock, messages in self.publishers:
            sock.sendall(messages)
        self.last.sendall(b"".join(self.trickle[n] for n in range(self.part)))
        self.trickle.rotate(-self.part)

    def run(self):
        due = time.monotonic()
        while not select.select([sys.stdin], [], [], 0)[0]:
            self.tick()
            due = max(due + TICK, time.monotonic() - LATE)
            self.receive(due)


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    load = Load(*map(int, sys.argv[1:4]))
    print("ready", flush=True)
    load.run()


if __name__ == "__main__":
    main()
