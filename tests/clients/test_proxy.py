"""The proxy itself: what it passes, holds back and ends."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import socket
import threading
import time

import pytest

from node import SLOW, wait_for
from proxy import Proxy


class Echo:
    """Sends back what it gets; counts the pieces in which it got it."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pieces = []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def close(self):
        """The thread has ended before the number of its descriptor is given to another."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(10 * SLOW)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with sock, contextlib.suppress(OSError):
            while True:
                data = sock.recv(65536)
                if not data:
                    return
                self.pieces.append(len(data))
                sock.sendall(data)


@pytest.fixture
def echo():
    server = Echo()
    yield server
    server.close()


def connect(proxy):
    sock = socket.create_connection(("127.0.0.1", proxy.port), timeout=10 * SLOW)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def read(sock, size):
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "the connection ended after %d bytes" % len(data)
        data += piece
    return data


def round_trip(sock, data=b"x"):
    threading.Thread(target=sock.sendall, args=(data,), daemon=True).start()
    assert read(sock, len(data)) == data


@pytest.mark.parametrize("how", [{}, {"split": 3}, {"delay": 0.01}, {"delay": 0.01, "split": 500}], ids=str)
def test_passes_all_bytes_in_order(echo, how):
    data = bytes(range(256)) * 1200
    with Proxy(echo.port, **how) as proxy, connect(proxy) as sock:
        round_trip(sock, data)


def test_splits(echo):
    with Proxy(echo.port, split=3) as proxy, connect(proxy) as sock:
        round_trip(sock, b"y" * 3000)
    # 1,000 are sent; a busy machine reads many of them together, but 3,000 bytes at once would be one or two.
    assert len(echo.pieces) > 10, echo.pieces


def test_delays(echo):
    with Proxy(echo.port, delay=0.1) as proxy, connect(proxy) as sock:
        start = time.monotonic()
        round_trip(sock)
        assert time.monotonic() - start >= 0.2


def test_end_of_file_passes(echo):
    with Proxy(echo.port) as proxy, connect(proxy) as sock:
        sock.sendall(b"last")
        sock.shutdown(socket.SHUT_WR)
        assert read(sock, 4) == b"last"
        assert sock.recv(1) == b""
        wait_for(lambda: proxy.connections() == 0)


def test_cut_resets_all_and_serves_new_ones(echo):
    with Proxy(echo.port) as proxy, connect(proxy) as one, connect(proxy) as two:
        round_trip(one)
        round_trip(two)
        proxy.cut()
        for sock in (one, two):
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
        with connect(proxy) as three:
            round_trip(three)


def test_freeze_and_thaw(echo):
    with Proxy(echo.port) as proxy, connect(proxy) as sock:
        round_trip(sock)
        proxy.freeze()
        sock.sendall(b"late")
        with connect(proxy) as other:
            round_trip(other)
        assert echo.pieces == [1, 1]
        assert proxy.connections() >= 1
        proxy.thaw()
        assert read(sock, 4) == b"late"
        proxy.freeze()
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def test_refuses(echo):
    with Proxy(echo.port) as proxy:
        proxy.refuse = True
        with connect(proxy) as sock, contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        proxy.refuse = False
        with connect(proxy) as sock:
            round_trip(sock)
