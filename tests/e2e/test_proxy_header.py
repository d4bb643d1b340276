"""The PROXY protocol: addresses from trusted load balancers, and from nobody else; on every kind of port."""
# SPDX-License-Identifier: Apache-2.0
import base64
import re
import socket
import struct

import pytest
import wire

from certs import Authority
from node import SLOW, free_port, wait_for

HEADER = b"AMQP\0\0\x09\x01"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
V1 = b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 5672\r\n"
TRUST = "proxy: {trusted: [127.0.0.0/8, '::1'], management: true}\n"


def v2(peer, port, family=socket.AF_INET, more=b""):
    addresses = socket.inet_pton(family, peer) + socket.inet_pton(family, "10.0.0.1" if family == socket.AF_INET else "::9")
    body = addresses + struct.pack(">HH", port, 5672) + more
    return SIGNATURE + bytes([0x21, 0x11 if family == socket.AF_INET else 0x21]) + struct.pack(">H", len(body)) + body


def conn_to(port, header=b"", host="127.0.0.1"):
    conn = wire.Conn(host, port)
    conn.send_raw(header)
    return conn


def login(*args, **kw):
    """Through the handshake up to connection.open-ok, with the header in front."""
    return conn_to(*args, **kw).handshake("guest", "guest", "/")


def dial(port, host="127.0.0.1"):
    return socket.create_connection((host, port), timeout=20 * SLOW)


@pytest.mark.parametrize("header, shown", [
    (b"PROXY TCP4 127.0.0.7 127.0.0.1 4711 5672\r\n", ("127.0.0.7", 4711, "127.0.0.1", 5672)),
    (v2("127.0.0.8", 4712, more=b"\x04\0\x01x"), ("127.0.0.8", 4712, "10.0.0.1", 5672)),
    (v2("::1", 4713, socket.AF_INET6), ("::1", 4713, "::9", 5672)),
    (SIGNATURE + b"\x20\0\0\0", ("127.0.0.1", None, "127.0.0.1", None)),
], ids=["v1", "v2", "v2-ipv6", "v2-local"])
def test_address_of_a_connection(node, header, shown):
    this = node(TRUST.replace("management: true", "management: false"))
    conn = login(this.port, header)
    row = this.http("/api/connections")[0]
    host, port, local, local_port = shown
    assert (row["peer_host"], row["host"]) == (host, local)
    assert port is None or (row["peer_port"], row["port"]) == (port, local_port)
    this.await_log(r"%s\]?:%s guest@/: user 'guest' authenticated" % (re.escape(host), port or r"\d+"))
    conn.abort()


def test_piece_by_piece(node):
    this = node(TRUST)
    for header in (b"PROXY TCP4 127.0.0.7 10.0.0.1 4711 5672\r\n", v2("127.0.0.8", 4712)):
        conn = conn_to(this.port)
        for i in range(len(header)):
            conn.send_raw(header[i:i + 1])
        conn.handshake("guest", "guest", "/").abort()


def test_who_may_not(node):
    """Others' headers are refused; who is trusted has to send one; loopback is what both ends say it is."""
    this = node("proxy: {trusted: 127.0.0.1}\n")
    with dial(this.port, "::1") as sock:
        sock.sendall(V1 + HEADER)
        assert sock.recv(8) == HEADER       # what a header that nobody understands is answered with
    this.await_log("a header of the PROXY protocol, from an address that is not in proxy.trusted")
    with dial(this.port, "::1") as sock:
        sock.sendall(v2("192.0.2.1", 1) + HEADER)
        assert sock.recv(8) == HEADER
    this.await_log("a header of the PROXY protocol, from an address that is not in proxy.trusted", count=2)
    login(this.port, host="::1").abort()
    for bad, why in ((HEADER, "does not begin with a header"), (b"PROXY TCP4 x\r\n", "not well formed"),
                     (SIGNATURE + b"\x31\0\0\0", "version or command"), (b"P" * 200, "does not begin")):
        with dial(this.port) as sock:
            sock.sendall(bad)
            assert sock.recv(8) == b""
        this.await_log(r"127\.0\.0\.1:\d+: connection on port %d refused: .*%s" % (this.port, why))
    conn = conn_to(this.port, V1)           # guest is for loopback only, which the client is not
    with pytest.raises(wire.ConnectionClosed, match="403 ACCESS_REFUSED"):
        conn.handshake("guest", "guest", "/")
    conn.abort()
    this.await_log("192.0.2.7:4711.*login refused for user .guest.*may log in from")
    conn = conn_to(this.port, b"PROXY UNKNOWN\r\n")     # nor is one of whom nobody knows it
    with pytest.raises(wire.ConnectionClosed, match="403 ACCESS_REFUSED"):
        conn.handshake("guest", "guest", "/")
    conn.abort()


def test_silent_balancer(node):
    this = node("proxy: {trusted: 127.0.0.1}\nlimits: {handshake: 500ms}\n")
    with dial(this.port) as sock:
        sock.sendall(b"PROXY TCP4 ")
        assert sock.recv(8) == b""
    this.await_log("header of the PROXY protocol on port %d not done after 500 ms" % this.port)


def http(sock, header, path="/api/whoami"):
    request = "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic %s\r\n\r\n" % (
        path, base64.b64encode(b"guest:guest").decode())
    if header:
        sock.sendall(header)
    sock.sendall(request.encode())
    answer = b""
    while True:
        piece = sock.recv(65536)
        if not piece:
            return answer
        answer += piece


def test_http_and_tls(node, tmp_path):
    authority = Authority(tmp_path / "certs")
    cert, key = authority.server()
    amqps, https = free_port(), free_port()
    this = node(TRUST + "tls: {port: %d, certificate: %s, key: %s}\nmanagement: {tls_port: %d}\n" % (
        amqps, cert, key, https))
    here = b"PROXY TCP4 127.0.0.9 127.0.0.1 4711 5672\r\n"
    assert b'"name":"guest"' in http(dial(this.management_port), here)
    assert b" 401 " in http(dial(this.management_port), V1).split(b"\r\n")[0]
    assert http(dial(this.management_port), b"") == b""
    sock = dial(https)
    sock.sendall(here)                      # in front of the handshake
    with authority.context().wrap_socket(sock, server_hostname="localhost") as sock:
        assert b'"name":"guest"' in http(sock, b"")
    conn = conn_to(amqps, here)
    conn.sock = authority.context().wrap_socket(conn.sock, server_hostname="localhost")
    conn.handshake("guest", "guest", "/")
    rows = wait_for(lambda: b"127.0.0.9" in http(dial(this.management_port), here, "/api/connections"), what="its row")
    assert rows
    conn.abort()
