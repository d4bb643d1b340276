"""A proxy between a client and a broker that does to a connection what networks do.

    with Proxy(node.port) as proxy:
        connect_to(proxy.port)
        proxy.cut()             # all connections are reset, new ones are served
        proxy.freeze()          # all connections stay open and nothing passes, new ones are served
        proxy.refuse = True     # a new connection is closed at once

Proxy(port, delay=0.02) holds every piece back for that long. Proxy(port, split=7) passes the first
SPLIT_BYTES of each direction in pieces of 1 to 7 bytes, PACE apart so that they also arrive as such, and
what follows in pieces of odd sizes, each with a send of its own; which sizes depends on `seed` only.

One thread does it all. Attributes may be set at any time, from any thread.
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import contextlib
import random
import selectors
import socket
import struct
import threading
import time

SPLIT_BYTES = 8 << 10       # of each direction, in pieces of `split` bytes
PACE = 100e-6               # seconds between those
PIECE = 16 << 10            # the longest piece after that
READ = 256 << 10
HELD = 1 << 20              # bytes that one direction holds before its sender is not read


class Flow:
    """One direction of a connection."""

    def __init__(self, source, sink, seed):
        self.source = source
        self.sink = sink
        self.random = random.Random(seed)
        self.queue = collections.deque()    # (due, bytes)
        self.held = 0
        self.passed = 0
        self.due = 0.0                      # when the last piece of the queue may go
        self.ended = False                  # the source has sent its last byte
        self.shut = False                   # and the sink was told


class Proxy:
    def __init__(self, target_port, target_host="127.0.0.1", delay=0.0, split=0, seed=1):
        self.target = (target_host, target_port)
        self.delay = delay
        self.split = split
        self.seed = seed
        self.refuse = False
        self.accepted = 0
        self._pairs = []                    # (flow, flow)
        self._frozen = []
        self._orders = collections.deque()
        self._now = time.monotonic()        # of this turn of the thread
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake_in, selectors.EVENT_READ, self._woken)
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # ---- orders, from any thread ------------------------------------------
    def cut(self):
        """Reset every connection, frozen ones as well."""
        self._order(self._do_cut)

    def freeze(self):
        """From now on nothing passes on the connections that are open; they stay open."""
        self._order(self._do_freeze)

    def thaw(self):
        self._order(self._do_thaw)

    def connections(self):
        """How many connections are open, frozen ones as well."""
        return self._order(lambda: len(self._pairs) + len(self._frozen))

    def close(self):
        if not self._running:
            return
        self._order(self._do_cut)
        self._order(self._do_stop)
        self._thread.join()

    def _order(self, work):
        done = threading.Event()
        answer = []
        self._orders.append((work, answer, done))
        self._wake_out.send(b"x")
        if not done.wait(30) or not answer:
            raise AssertionError("the proxy did not do %s" % work)
        return answer[0]

    # ---- the thread ---------------------------------------------------------
    def _run(self):
        while self._running:
            for key, events in self._selector.select(self._patience()):
                key.data(key.fileobj, events)
            self._now = time.monotonic()
            for pair in list(self._pairs):
                self._push(pair)
        for sock in (self._listener, self._wake_in, self._wake_out):
            sock.close()
        self._selector.close()

    def _patience(self):
        """Seconds until a piece that was held back may go; the selector waits for sinks that are full."""
        due = [flow.queue[0][0] for pair in self._pairs for flow in pair
               if flow.queue and flow.queue[0][0] > self._now]
        if not due:
            return None
        wait = min(due) - time.monotonic()
        # A selector sleeps whole milliseconds: for less we look again at once.
        return wait if wait > 0.001 else 0

    def _woken(self, sock, _events):
        with contextlib.suppress(BlockingIOError):
            sock.recv(4096)
        while self._orders:
            work, answer, done = self._orders.popleft()
            answer.append(work())
            done.set()

    def _accept(self, listener, _events):
        try:
            client, _ = listener.accept()
        except OSError:
            return
        if self.refuse:
            client.close()
            return
        try:
            server = socket.create_connection(self.target, timeout=10)
        except OSError:
            client.close()
            return
        self.accepted += 1
        for sock in (client, server):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there = Flow(client, server, "%s/%d/there" % (self.seed, self.accepted))
        back = Flow(server, client, "%s/%d/back" % (self.seed, self.accepted))
        self._pairs.append((there, back))
        self._watch((there, back))

    def _watch(self, pair):
        """Ask the selector for what each socket of a pair waits for."""
        there, back = pair
        for sock, reads, writes in ((there.source, there, back), (back.source, back, there)):
            events = 0
            if not reads.ended and reads.held < HELD:
                events |= selectors.EVENT_READ
            if writes.queue and writes.queue[0][0] <= self._now:
                events |= selectors.EVENT_WRITE
            known = self._selector.get_map().get(sock.fileno())
            if known is None:
                if events:
                    self._selector.register(sock, events, self._ready(pair))
            elif not events:
                self._selector.unregister(sock)
            elif known.events != events:
                self._selector.modify(sock, events, self._ready(pair))

    def _ready(self, pair):
        def ready(sock, events):
            # An order of this round, or the other socket, may have ended the pair.
            if events & selectors.EVENT_READ and pair in self._pairs:
                self._pull(pair, pair[0] if pair[0].source is sock else pair[1])
        return ready

    def _pull(self, pair, flow):
        try:
            data = flow.source.recv(READ)
        except BlockingIOError:
            return
        except OSError:
            self._reset(pair)
            return
        if not data:
            flow.ended = True
            return
        flow.held += len(data)
        due = time.monotonic() + self.delay
        at = 0
        while at < len(data):
            size = len(data) - at
            if self.split and flow.passed < SPLIT_BYTES:
                size = flow.random.randint(1, self.split)
                due = max(due, flow.due + PACE)
            elif self.split:
                size = flow.random.randint(1, PIECE)
            piece = data[at:at + size]
            flow.due = max(due, flow.due)
            flow.queue.append((flow.due, piece))
            flow.passed += len(piece)
            at += len(piece)

    def _push(self, pair):
        for flow in pair:
            try:
                while flow.queue and flow.queue[0][0] <= self._now:
                    due, piece = flow.queue.popleft()
                    sent = 0
                    try:
                        sent = flow.sink.send(piece)
                    finally:
                        flow.held -= sent
                        if sent < len(piece):
                            flow.queue.appendleft((due, piece[sent:]))
            except BlockingIOError:
                pass
            except OSError:
                self._reset(pair)
                return
            if flow.ended and not flow.queue and not flow.shut:
                flow.shut = True
                with contextlib.suppress(OSError):
                    flow.sink.shutdown(socket.SHUT_WR)
        if pair[0].shut and pair[1].shut:
            self._reset(pair, kindly=True)
        else:
            self._watch(pair)

    def _reset(self, pair, kindly=False):
        """End a connection: both sides get a reset, or nothing but the end if both had sent theirs."""
        self._forget(pair)
        if pair in self._pairs:
            self._pairs.remove(pair)
        for flow in pair:
            if not kindly:
                flow.source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            flow.source.close()

    def _forget(self, pair):
        for flow in pair:
            if flow.source.fileno() in self._selector.get_map():
                self._selector.unregister(flow.source)

    def _do_cut(self):
        for pair in self._pairs + self._frozen:
            self._reset(pair)
        self._frozen = []

    def _do_freeze(self):
        for pair in self._pairs:
            self._forget(pair)
        self._frozen += self._pairs
        self._pairs = []

    def _do_thaw(self):
        self._pairs += self._frozen
        self._frozen = []
        for pair in self._pairs:
            self._watch(pair)

    def _do_stop(self):
        self._running = False
