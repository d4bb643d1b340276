"""The HTTP API and the console behind a reverse proxy, under a path: one that passes paths on, and one that takes its own off."""
# SPDX-License-Identifier: Apache-2.0
import http.client
import http.server
import json
import re
import threading
from base64 import b64encode

import pytest

from node import Node

AUTH = {"Authorization": "Basic " + b64encode(b"guest:guest").decode()}


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("prefix"), settings="management:\n  path_prefix: /mq/one\n").start()
    try:
        yield this
        this.stop()
    finally:
        this.kill()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("plain")).start()
    try:
        yield this
        this.stop()
    finally:
        this.kill()


class Proxy:
    """Serves what begins with /mq/one by asking the node; `strip`: without that part of the path."""

    def __init__(self, node, strip):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if not self.path.startswith("/mq/one"):
                    self.send_error(404, "not the node's")
                    return
                conn = http.client.HTTPConnection("127.0.0.1", node.management_port, timeout=30)
                headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length")}
                conn.request(self.command, self.path[7:] if strip else self.path, body or None, headers)
                answer = conn.getresponse()
                raw = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PUT = do_DELETE = serve

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()


def ask(port, method, path, body=None, headers=AUTH):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        conn.request(method, path, body, headers)
        answer = conn.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        conn.close()


def test_all_is_below_the_prefix(prefixed):
    port = prefixed.management_port
    for path in ("/api/overview", "/", "/healthz", "/mq/api/overview", "/mq/onetwo", "/mq/onetwo/api/overview", "/mq", "/mq/on",
                 "/MQ/ONE/api/overview", "/mq/one//api/overview"):
        assert ask(port, "GET", path)[0] == 404, path
    for path in ("/mq/one/api/overview", "/mq/one/healthz", "/mq/one/"):
        assert ask(port, "GET", path)[0] == 200, path
    status, headers, _ = ask(port, "GET", "/mq/one")
    assert (status, headers["location"]) == (301, "/mq/one/")
    status, headers, _ = ask(port, "GET", "/mq/one/api/")
    assert (status, headers["location"]) == (301, "/mq/one/api/index.html")
    assert ask(port, "GET", "/mq/one/api/overview", headers={})[0] == 401
    assert ask(port, "PUT", "/mq/one/api/queues/%2F/a%2Fb", json.dumps({}))[0] == 201
    assert json.loads(ask(port, "GET", "/mq/one/api/queues/%2F/a%2Fb")[2])["name"] == "a/b"
    assert ask(port, "GET", "/mq/one/api/queues/%2F/a%2Fb%")[0] == 400


def walk(port):
    """From the console's page to the API with the login's cookie, as a browser goes, by relative addresses. The cookie's path."""
    status, _, page = ask(port, "GET", "/mq/one/", headers={})
    assert status == 200
    files = re.findall(rb'(?:src|href)="([^"]+)"', page)
    assert len(files) >= 3
    for name in files:
        assert not name.startswith((b"/", b"http")), name
        status, headers, _ = ask(port, "GET", "/mq/one/" + name.decode(), headers={})
        assert status == (401 if name.startswith((b"api/whoami", b"api/vhosts")) else 200), name
    status, headers, _ = ask(port, "POST", "/mq/one/api/login", "username=guest&password=guest",
                             {"content-type": "application/x-www-form-urlencoded"})
    assert status == 200
    cookie = headers["set-cookie"]
    status, _, raw = ask(port, "GET", "/mq/one/api/whoami", headers={"cookie": cookie.split(";")[0]})
    assert status == 200 and json.loads(raw)["name"] == "guest"
    status, headers, _ = ask(port, "DELETE", "/mq/one/api/hermes/session", headers={"cookie": cookie.split(";")[0]})
    assert status == 204
    path = re.search("Path=([^;]*)", cookie).group(1)
    assert "Path=%s;" % path in headers["set-cookie"], "a cookie goes where it came"
    return path


def test_behind_a_proxy_that_passes_paths_on(prefixed):
    assert walk(prefixed.management_port) == "/mq/one"
    with Proxy(prefixed, strip=False) as proxy:
        assert walk(proxy.port) == "/mq/one"
        assert ask(proxy.port, "GET", "/mq/one")[1]["location"] == "/mq/one/"


def test_behind_a_proxy_that_takes_the_path_off(plain):
    with Proxy(plain, strip=True) as proxy:
        assert walk(proxy.port) == "/"


def test_without_a_prefix(plain):
    assert ask(plain.management_port, "GET", "/mq/one/api/overview")[0] == 404
    assert ask(plain.management_port, "GET", "/api")[1]["location"] == "/api/index.html"
    assert ask(plain.management_port, "GET", "/api/overview")[0] == 200
