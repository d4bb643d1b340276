"""Requests over HTTP with mistakes in them, by seed: the node survives each, and serves others all the time.

HERMES_HTTP_MUTATIONS sets how many requests are sent (10,000 unless set), HERMES_SEED the first seed. A failure names its
seeds; play one again with HERMES_SEED=N HERMES_HTTP_MUTATIONS=1.
"""
# SPDX-License-Identifier: Apache-2.0
import base64
import errno
import json
import os
import random
import socket
import struct
import threading
import time
import urllib.parse
import urllib.request

import pytest

from control import Control
from node import SLOW, sanitized, wait_for

REQUESTS = int(os.environ.get("HERMES_HTTP_MUTATIONS", "10000"))
SEED = int(os.environ.get("HERMES_SEED", "1"))
LOGIN = b"Authorization: Basic " + base64.b64encode(b"guest:guest") + b"\r\n"
#: none of them is the bystander's vhost or account
NAMES = ["mut-v", "mut-a", "mut-b", "mut/ä", "mut%", "amq.topic", "amq.default", "", "x" * 300, "~", "mut-a~1"]
QUERIES = ["", "", "", "?page=1&page_size=5&name=mut&use_regex=true&sort=name&sort_reverse=true", "?columns=name,a.b.c,",
           "?sort=message_stats.publish_details.rate", "?page=99999999999999999999", "?name=(((((a+)+)+)+)+)$&page=1&use_regex=true",
           "?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=0", "?if-empty=true", "?%%%&&==&a=%00"]
VALUES = [None, True, False, 0, -1, 2**53, 1e308, "", "a", "x" * 3000, "\0", "\ud83d\ude00", [], {}, [[]], {"a": {"b": [1]}}]
KEYS = ["name", "vhost", "durable", "auto_delete", "arguments", "type", "password", "password_hash", "tags", "configure", "write",
        "read", "pattern", "definition", "priority", "apply-to", "value", "routing_key", "payload", "payload_encoding", "properties",
        "count", "ackmode", "encoding", "users", "queues", "exchanges", "bindings", "permissions", "policies", "exchange", "action"]
GOOD = [
    {"durable": True, "arguments": {"x-max-length": 5}}, {"type": "topic"}, {"routing_key": "a", "arguments": {"k": 1}},
    {"properties": {"headers": {"a": [1]}}, "routing_key": "mut-a", "payload": "AAAA", "payload_encoding": "base64"},
    {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 3}, {"password": "x", "tags": "management,a"},
    {"configure": ".*", "write": "^a", "read": "(a|b)+$"}, {"pattern": "^mut", "definition": {"max-length": 3}}, {"value": {"a": 1}},
    {"vhosts": [{"name": "mut-v"}], "queues": [{"name": "mut-a", "vhost": "mut-v", "durable": True, "arguments": {}}]},
    {"exchange": "amq.topic", "write": "^a", "read": "b"}, {"value": 7}]


def body_of(rng):
    how = rng.random()
    if how < 0.4:
        doc = dict(rng.choice(GOOD))
    else:
        doc = {rng.choice(KEYS): rng.choice(VALUES) for _ in range(rng.randrange(5))}
    if how > 0.9:
        doc = rng.choice([doc, [doc], "text", 7])
    raw = json.dumps(doc).encode()
    if rng.random() < 0.03:
        depth = rng.choice([99, 101, 5000, 60000])
        raw = b'{"a":' + rng.choice([b"[", b'{"a":']) * depth + b"1"
    return raw


def request(rng, routes):
    row = rng.choice(routes)
    path = "/".join(urllib.parse.quote(rng.choice(NAMES), safe="") if piece.startswith(":") else piece
                    for piece in row["path"].split("/"))
    method = row["method"] if rng.random() < 0.9 else rng.choice(["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"])
    body = body_of(rng) if method in ("PUT", "POST") or rng.random() < 0.05 else b""
    lines = [b"Host: x\r\n"]
    if rng.random() < 0.9:
        lines.append(LOGIN)
    if rng.random() < 0.2:
        lines.append(b"Accept-Encoding: " + rng.choice([b"gzip", b"gzip;q=0", b"*, ;q=,,", b"gzip" * 50]) + b"\r\n")
    if rng.random() < 0.1:
        lines.append(b"Accept: " + rng.choice([b"*/*", b"text/html", b",;q=", b"application/json;q=0.1"]) + b"\r\n")
    if rng.random() < 0.1:
        lines.append(b"Cookie: hermes_session=" + rng.choice([b"", b"0000.", b"99999999999", b"0001.aaaaaaaaaaaaaaaaaaaaaa"]) + b"\r\n")
    if body and rng.random() < 0.3:
        lines.append(b"Transfer-Encoding: chunked\r\n")
        cut = rng.randrange(len(body) + 1)
        body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:cut], body[cut:]) if p) + b"0\r\n\r\n"
    elif body or rng.random() < 0.1:
        lines.append(b"Content-Length: %d\r\n" % len(body))
    return bytearray(("%s %s%s HTTP/1.1\r\n" % (method, path, rng.choice(QUERIES))).encode() + b"".join(lines) + b"\r\n" + body)


# ---- mistakes --------------------------------------------------------------------

def one_octet(rng, raw):
    raw[rng.randrange(len(raw))] = rng.randrange(256)


def one_bit(rng, raw):
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)


def gone(rng, raw):
    at = rng.randrange(len(raw))
    del raw[at:at + rng.randint(1, 8)]


def more(rng, raw):
    at = rng.randrange(len(raw))
    raw[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))


def lies(rng, raw):
    at = raw.find(b"Content-Length: ")
    if at >= 0:
        end = raw.find(b"\r\n", at)
        raw[at + 16:end] = rng.choice([b"0", b"1", b"-1", b"20971520", b"20971521", b"99999999999999999999", b"0x10", b"", b"5, 6"])


def chunk_lies(rng, raw):
    at = raw.find(b"\r\n\r\n")
    if b"chunked" in raw and at >= 0:
        raw[at + 4:at + 6] = rng.choice([b"ffffffffffffffff", b"-1", b"7fffffff", b"zz", b"", b"0;a=b", b"000000000000001"])


def long_line(rng, raw):
    at = raw.find(b"Host")
    raw[max(at, 0):max(at, 0)] = b"X: " + b"y" * rng.choice([4000, 16000, 17000, 100000]) + b"\r\n"


def many_headers(rng, raw):
    at = raw.find(b"Host")
    raw[max(at, 0):max(at, 0)] = b"A: b\r\n" * rng.choice([100, 1000, 3000])


def long_path(rng, raw):
    at = raw.find(b" HTTP/")
    if at >= 0:
        raw[at:at] = rng.choice([b"/a", b"%41", b"%", b"//", b"/..", b"?&a=b"]) * rng.choice([10, 1000, 6000])


def folded(rng, raw):
    at = raw.find(b"\r\n")
    if at >= 0:
        raw[at + 2:at + 2] = rng.choice([b" folded: yes\r\n", b"\t\r\n", b": empty\r\n", b"no colon\r\n", b"\r\n", b"\0: \0\r\n"])


MISTAKES = [one_octet, one_octet, one_bit, gone, more, lies, lies, chunk_lies, long_line, many_headers, long_path, folded]


def play(port, seed, routes, count):
    """Some requests over one connection, which ends in any manner the node likes, but it ends."""
    rng = random.Random(seed)
    raw = bytearray()
    for _ in range(count):
        one = request(rng, routes)
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            if one:
                rng.choice(MISTAKES)(rng, one)
        raw += one
    sock = socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW)
    try:
        at = 0
        while at < len(raw):
            n = rng.choice([1, 50, 5000, len(raw), len(raw), len(raw)])
            sock.sendall(raw[at:at + n])
            at += n
        if rng.random() < 0.1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))    # a reset
            return
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass
    except socket.timeout:
        raise AssertionError("seed %d: the node does not end the connection" % seed) from None
    except OSError as exc:              # after a reset: which of these depends on the moment it came
        if exc.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
            raise
    finally:
        sock.close()


def ask(this, path, **headers):
    asked = urllib.request.Request(this.http_url + path, headers=dict(
        headers, Authorization="Basic " + base64.b64encode(b"guest:guest").decode()))
    with urllib.request.urlopen(asked, timeout=20 * SLOW) as answer:
        return json.load(answer)


class Bystander(threading.Thread):
    """An AMQP client in a vhost of its own."""

    def __init__(self, this):
        super().__init__(daemon=True)
        made = urllib.request.Request(this.http_url + "/api/vhosts/bystander", method="PUT", headers={
            "Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()})
        urllib.request.urlopen(made, timeout=20 * SLOW).close()
        self.chan = this.raw(vhost="bystander").channel()
        self.queue = self.chan.declare("", exclusive=True).queue
        self.chan.call("confirm.select")
        self.error, self.stopping = None, False

    def run(self):
        tag = 0
        try:
            while not self.stopping:
                tag += 1
                self.chan.publish("", self.queue, "%d" % tag)
                assert self.chan.expect("basic.ack", timeout=10 * SLOW).delivery_tag == tag
                assert self.chan.get(self.queue).body == b"%d" % tag
                time.sleep(0.005)
        except Exception as exc:        # noqa: BLE001: told by the test
            self.error = exc

    def stop(self):
        self.stopping = True
        self.join(60)
        assert self.error is None, repr(self.error)


@pytest.mark.alone
def test_mutated_requests(node):
    this = node()
    # the copy of the data is a folder of the machine, and every node has one of those tests already
    routes = [r for r in ask(this, "/api/hermes/routes") if r["path"] != "/api/hermes/snapshot"]
    bystander = Bystander(this)
    descriptors = this.descriptors()
    bystander.start()
    seed, left = SEED, REQUESTS
    with Control(this) as control:
        while left > 0:
            count = min(left, 1 + seed % 4)
            play(this.management_port, seed, routes, count)
            left -= count
            if seed % 100 == 0:
                assert this.running() and bystander.error is None, "at seed %d: %r\n%s" % (
                    seed, bystander.error, this.log[-3000:])
            seed += 1
    bystander.stop()
    assert ask(this, "/api/whoami")["name"] == "guest"
    wait_for(lambda: this.descriptors() <= descriptors + 4, 10, "descriptors back")
    if not sanitized() and REQUESTS >= 1000:
        assert len(control.times) > 20 and control.percentile(99) < 0.02, control.times[-20:]


def test_deep_json(node):
    this = node()
    for depth in (99, 101, 2000, 1000000):
        body = b'{"value":' + b"[" * depth + b"]" * depth + b"}"
        asked = urllib.request.Request(this.http_url + "/api/global-parameters/deep", method="PUT", data=body, headers={
            "Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()})
        try:
            status = urllib.request.urlopen(asked, timeout=20 * SLOW).status
        except urllib.error.HTTPError as exc:
            status = exc.code
        # the last one is longer than a parameter may be
        assert status == {99: 201, 1000000: 413}.get(depth, 400), depth


def test_large_headers(node):
    this = node()
    for line in (b"A: b\r\n" * 180000, b"X: " + b"y" * (1 << 20) + b"\r\n"):
        with socket.create_connection(("127.0.0.1", this.management_port), timeout=20 * SLOW) as sock:
            got = b""
            try:
                sock.sendall(b"GET /api/whoami HTTP/1.1\r\n" + LOGIN + line + b"\r\n")
                while chunk := sock.recv(1 << 16):
                    got += chunk
            except (ConnectionResetError, BrokenPipeError):
                pass
            assert b" 200 " not in got
    assert ask(this, "/api/whoami")["name"] == "guest"


def test_slow_senders_keep_nobody_out(node):
    """More connections than the node takes, each with a request that never ends."""
    this = node()
    socks = []
    try:
        for _ in range(300):
            sock = socket.create_connection(("127.0.0.1", this.management_port), timeout=20 * SLOW)
            sock.sendall(b"GET /api/whoami HTTP/1.1\r\nX: ")
            sock.setblocking(False)
            socks.append(sock)
        began, stopping = time.monotonic(), threading.Event()

        def trickle():
            while not stopping.wait(0.1):
                for sock in socks:
                    try:
                        sock.send(b"y")
                    except OSError:
                        pass

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            assert ask(this, "/api/whoami")["name"] == "guest"
            assert time.monotonic() - began < 8 * SLOW
        finally:
            stopping.set()
            thread.join()
    finally:
        for sock in socks:
            sock.close()
