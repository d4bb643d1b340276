"""What others wrote does not speak to the terminal; what goes to a pipe is as it was; the other end may close it."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import http.server
import json
import re
import signal
import subprocess
import threading

import pytest

from api import Api
from node import BINARY, SLOW, clean_env, hermes
from shell import at_terminal, broker      # noqa: F401 (fixtures)

#: colour, title of the window, a C1 control, a bell, a turn of the line; and what is to stay
EVIL = "\x1b[31mred\x1b]0;title\x07 \u009b2J \u202e\r\n\ttab ü 中 \\x1b"
SHOWN = "\\x1b[31mred\\x1b]0;title\\x07 \\u009b2J \\u202e\\x0d\n\ttab ü 中 \\x1b\n"


@pytest.fixture
def message(broker):
    conn = broker.pika()
    ch = conn.channel()
    ch.queue_declare("terminal", exclusive=False, auto_delete=False, durable=True)
    ch.queue_purge("terminal")

    def put(body, **kw):
        ch.confirm_delivery()
        ch.basic_publish("", "terminal", body)

    yield put
    conn.close()


def test_a_body_on_a_terminal(broker, message):
    message(EVIL.encode())
    status, said = at_terminal(broker, ["get", "terminal"])
    assert status == 0 and said.replace(b"\r\n", b"\n").expandtabs() == SHOWN.encode().expandtabs()
    message(b"\xff\x00\x80" + EVIL.encode())
    status, said = at_terminal(broker, ["get", "terminal"])
    assert said.startswith(b"\\xff\\x00\\x80\\x1b[31mred")
    message(b"")
    assert at_terminal(broker, ["get", "terminal"]) == (0, b"\r\n")


@pytest.mark.parametrize("before", [4093, 4094, 4095, 4096, 4097])
def test_no_character_of_a_long_body_is_cut(broker, message, before):
    body = "x" * before + "🐇" * 2000
    message(body.encode())
    status, said = at_terminal(broker, ["get", "terminal"])
    assert said.decode().rstrip("\r\n") == body


def test_a_body_in_json_on_a_terminal(broker, message):
    message(EVIL.encode())
    status, said = at_terminal(broker, ["get", "terminal", "--json"])
    assert status == 0 and said.isascii() and b"\x1b" not in said
    assert json.loads(said)["payload"] == EVIL


def test_a_body_in_a_pipe_is_as_it_was(broker, message):
    body = EVIL.encode() + bytes(range(256))
    message(body)
    done = subprocess.run([str(BINARY), "get", "terminal"], env=clean_env({"HERMES_AMQP": broker.amqp_url}),
                          capture_output=True, timeout=30 * SLOW)
    assert done.stdout == body + b"\n"


@contextlib.contextmanager
def answering(doc):
    """Something that answers each request with this; its address."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(doc).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield "http://127.0.0.1:%d" % server.server_address[1]
        server.shutdown()


def test_status_of_a_node_that_says_anything(broker):
    overview = Api(broker).get("overview")
    overview["node"] = overview["product_name"] = EVIL
    overview["hermes"].update(healthy=False, problem=EVIL, alarms=[{"kind": EVIL}])
    overview["listeners"] = [{"protocol": EVIL, "ip_address": "a\0b", "port": 1}]

    with answering(overview) as url:
        done = hermes("status", "--url", url)
        assert at_terminal(broker, ["status", "--json", "--url", url])[1].isascii()
    assert done.returncode == 1
    for bad in "\x1b", "\x07", "\x9b", "\u202e", "\r", "\0":
        assert bad not in done.stdout
    assert done.stdout.startswith("node         \\x1b[31mred\\x1b]0;title\\x07 \\u009b2J \\u202e\\x0d\\x0a\\x09tab ü 中 \\x1b, not healthy")
    assert "\\x1b[31mred" in done.stdout.split("\nalarms")[1] and "a\\x00b 1" in done.stdout


@pytest.mark.parametrize("command", ["list users | head -1", "list users --json | head -1", "list users | true"])
def test_a_reader_that_has_enough(command):
    """The output is longer than a pipe, and there is no word about it."""
    with answering([{"name": "user-%d" % n, "tags": []} for n in range(20000)]) as url:
        done = subprocess.run(["bash", "-c", "set -o pipefail; %s %s" % (BINARY, command)], capture_output=True, text=True,
                              env=clean_env({"HERMES_URL": url}), timeout=30 * SLOW)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
    assert len(done.stdout.splitlines()) == (0 if command.endswith("true") else 1)


def test_a_reader_that_has_enough_of_messages(broker, message):
    for _ in range(20):
        message(b"x" * 10000)
    done = subprocess.run(["bash", "-c", "%s get terminal --count 20 | head -c 5" % BINARY], capture_output=True, text=True,
                          env=clean_env({"HERMES_AMQP": broker.amqp_url}), timeout=30 * SLOW)
    assert (done.stdout, done.stderr) == ("xxxxx", "")


@pytest.mark.parametrize("words", [["list", "users"], ["list", "users", "--json"], ["help"], ["export"]])
def test_a_full_disk(words):
    """Also where it is full before the end."""
    with answering([{"name": "user-%d" % n, "tags": []} for n in range(2000)]) as url, open("/dev/full", "w") as full:
        done = subprocess.run([str(BINARY), *words], stdout=full, stderr=subprocess.PIPE, text=True,
                              env=clean_env({"HERMES_URL": url}), timeout=30 * SLOW)
    assert done.returncode == 1 and done.stderr.startswith("hermes %s: cannot write the output: " % words[0])


@pytest.mark.parametrize("words", [["import", "FILE"], ["list", "queues"]], ids=lambda w: w[0])
def test_who_waits_is_told(broker, tmp_path, words):
    """A terminal, after a second, until the answer is there; a pipe is told nothing."""
    (tmp_path / "FILE").write_text("{}")
    words = [str(tmp_path / word) if word == "FILE" else word for word in words]
    go_on = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            assert go_on.wait(60 * SLOW)
            body = b"[]" if words[0] == "list" else b"{}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        env = {"HERMES_URL": "http://127.0.0.1:%d" % server.server_address[1]}
        status, said = at_terminal(broker, words, [(b": the node is at it, ", go_on.set)], env=env)
        assert status == 0, said
        assert re.search(rb"\r\w+ing( up)?: the node is at it, \d+ s\x1b\[K", said) and b"\r\x1b[K" in said, said
        done = hermes(*words, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        server.shutdown()


def test_an_error_stands_on_a_line_of_its_own(broker):
    """What tells of the progress is cut at the edge of the terminal, or it could not be taken away."""
    answers = [(204, b""), (200, b'{"draining": true, "empty": false, "messages_left": 5, "queues_left": 1}'), (500, b'{"reason": "no more"}')]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = answers.pop(0)
            self.send_response(status)
            if body:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        env = {"HERMES_URL": "http://127.0.0.1:%d" % server.server_address[1]}
        status, said = at_terminal(broker, ["drain"], env=env, columns=40)
        server.shutdown()
    shown = b"5 messages in 1 queues are left; Ctrl-C leaves the node drained"[:39]
    assert status == 1 and said.startswith(b"\r" + shown + b"\x1b[K\r\x1b[Khermes drain: ") and b"no more" in said, said
