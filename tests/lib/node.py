"""A real Hermes node for tests: the binary on ports of its own, in a folder of its own."""
# SPDX-License-Identifier: Apache-2.0
import collections
import contextlib
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HERMES_BINARY", str(TOP / "src" / "hermes"))).resolve()
READY = "agent is ready"
#: what a sanitizer or an assertion leaves in the log
REPORTS = re.compile(r"ERROR: \w+Sanitizer|SUMMARY: \w+Sanitizer|runtime error:|Assertion .* failed")


def sanitized():
    """Is the binary one with sanitizers? Then times and sizes mean little."""
    if not hasattr(sanitized, "answer"):
        sanitized.answer = BINARY.exists() and b"__asan_init" in BINARY.read_bytes()
    return sanitized.answer


#: what time limits are multiplied with
SLOW = 5 if sanitized() else 1


def clean_env(extra=None):
    """The environment without settings of Hermes that the caller's shell may have."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HERMES_", "RABBITMQ_"))}
    env.update(extra or {})
    return env


#: a name in the kernel for each port that this process took of late, so that tests beside it take others
_taken = collections.deque(maxlen=200)


def free_port():
    """A port nobody listens on, below those that the kernel gives to outgoing connections.

    It stays ours while its node is down, too: other processes that ask here pass it over.
    """
    while True:
        port = random.randrange(10000, 32000)
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind("\0hermes-test-port-%d" % port)
        except OSError:
            name.close()
            continue
        with socket.socket(socket.AF_INET6) as sock, contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            sock.bind(("::", port))
            _taken.append(name)
            return port
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("", port))
            _taken.append(name)
            return port
        name.close()


def wait_for(check, timeout=10, what="condition"):
    """Call `check` until it returns something true; return that."""
    deadline = time.monotonic() + timeout * SLOW
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("%s not reached within %s s" % (what, timeout * SLOW))
        time.sleep(0.005)


def hermes(*args, env=None, timeout=30, stdin="", cwd=None):
    """Run the binary to its end; returns subprocess.CompletedProcess with text."""
    done = subprocess.run([str(BINARY)] + [str(a) for a in args], env=clean_env(env), cwd=cwd,
                          input=stdin, capture_output=True, text=True, timeout=timeout * SLOW)
    assert not REPORTS.search(done.stderr), done.stderr
    return done


class Node:
    """One node.  `settings` is the text of its hermes.yml, without ports."""
    made = []       # all of this process, for fixtures.py to clear away

    def __init__(self, folder, settings="", args=(), env=None, port=None, management_port=None,
                 nofile=None, data=True, address_space=None, metrics=False):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "hermes.yml"
        self.data = self.folder / "data"
        self.log_file = self.folder / "log"
        self.config.write_text(settings)
        self.port = port or free_port()
        self.management_port = management_port or free_port()
        self.metrics_port = free_port() if metrics else 0       # 0: none is opened
        self.args = ["server", "-c", self.config, "--port", self.port,
                     "--management-port", self.management_port, "--prometheus-port", self.metrics_port]
        if data:
            self.args += ["-d", self.data]
        self.args += list(args)
        self.env = clean_env(env)
        self.nofile = nofile
        self.address_space = address_space      # bytes
        self.process = None
        self.conns = []             # made by tcp() and raw()
        self.log_before = 0         # characters of the log that earlier starts wrote
        Node.made.append(self)

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def start(self, ready=True):
        def limit():
            if self.nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.nofile, self.nofile))
            if self.address_space:
                resource.setrlimit(resource.RLIMIT_AS, (self.address_space, self.address_space))

        self.log_before = len(self.log)
        with open(self.log_file, "a") as log:
            self.process = subprocess.Popen([str(BINARY)] + [str(a) for a in self.args],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.env, preexec_fn=limit)
        if ready:
            self.await_ready()
        return self

    def await_ready(self, timeout=10):
        def ready():
            code = self.process.poll()
            if READY in self.log[self.log_before:]:
                return True
            assert code is None, "the node ended with %s before it was ready:\n%s" % (code, self.log)
            return False

        wait_for(ready, timeout, "'%s' in the log" % READY)

    def await_log(self, pattern, timeout=5, count=1):
        """Wait until the log matches; the last match."""
        def matches():
            found = list(re.finditer(pattern, self.log, re.M))
            return found if len(found) >= count else None

        try:
            return wait_for(matches, timeout)[-1]
        except AssertionError:
            raise AssertionError("nothing like %r in the log:\n%s" % (pattern, self.log)) from None

    def running(self):
        return self.process is not None and self.process.poll() is None

    def wait(self, timeout=15):
        """The exit status."""
        return self.process.wait(timeout * SLOW)

    def stop(self, sig=signal.SIGTERM, status=0):
        """Stop it; the exit status and the absence of sanitizer reports are asserted.

        sig None: it was told to stop already, or ends by itself.
        """
        if self.process is None:
            return
        if self.running() and sig is not None:
            self.process.send_signal(sig)
        try:
            code = self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the node did not stop:\n%s" % self.log[-4000:]) from None
        finally:
            self.process = None
        assert code == status, "exit status %s, not %s:\n%s" % (code, status, self.log[-4000:])
        self.check_reports()

    def check_reports(self):
        found = REPORTS.search(self.log)
        assert not found, self.log[max(0, found.start() - 200):found.start() + 6000]

    def kill(self):
        if self.running():
            self.process.kill()
        if self.process is not None:
            self.process.wait()
        self.process = None

    # ---- what the kernel says about it ---------------------------------
    def status(self, key):
        """A value of /proc/PID/status, for instance VmRSS, in kB where it is a size."""
        with open("/proc/%d/status" % self.pid) as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name == key:
                    return int(value.split()[0])
        raise KeyError(key)

    def rss_kb(self):
        return self.status("VmRSS")

    def cpu_s(self):
        """Processor time so far, in seconds."""
        with open("/proc/%d/stat" % self.pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    # ---- ways in ---------------------------------------------------------
    @property
    def amqp_url(self):
        return "amqp://guest:guest@127.0.0.1:%d/" % self.port

    @property
    def http_url(self):
        return "http://127.0.0.1:%d" % self.management_port

    def tcp(self):
        """A connection on which nothing has been sent (wire.Conn)."""
        import wire
        conn = wire.Conn("127.0.0.1", self.port)
        self.conns.append(conn)
        return conn

    def abort_conns(self):
        """Drop the connections of tcp() and raw() that are left: a stop waits for those that are open."""
        for conn in self.conns:
            conn.abort()
        del self.conns[:]

    def raw(self, user="guest", password="guest", vhost="/", **kw):
        """An open connection on the level of frames (wire.Conn)."""
        return self.tcp().handshake(user, password, vhost, **kw)

    def pika(self, user="guest", password="guest", vhost="/", host="127.0.0.1", **kw):
        import pika
        return pika.BlockingConnection(pika.ConnectionParameters(
            host=host, port=self.port, virtual_host=vhost, socket_timeout=5 * SLOW,
            blocked_connection_timeout=10 * SLOW, stack_timeout=10 * SLOW,
            credentials=pika.PlainCredentials(user, password), **kw))

    def fill_memory(self, queue="q"):
        """Publish into a new queue what is more than 8 MiB, and return the connection, which is then held back.

        In pieces so small that a memory alarm at 8 MiB stays: what a connection has read of a message counts as well,
        and large ones in the making set it and clear it again.
        """
        conn = self.raw()
        chan = conn.channel()
        chan.declare(queue)
        for _ in range(140):
            chan.publish("", queue, b"x" * 65536)
        return conn

    def http(self, path, method="GET", body=None, user="guest", password="guest"):
        """What the HTTP API answers, from JSON; None where there is no body."""
        import base64
        import json
        import urllib.request
        login = base64.b64encode(("%s:%s" % (user, password)).encode()).decode()
        request = urllib.request.Request(
            self.http_url + path, None if body is None else json.dumps(body).encode(), method=method,
            headers={"Authorization": "Basic " + login, "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10 * SLOW) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def overview(self, user="guest", password="guest"):
        """What GET /api/overview says."""
        return self.http("/api/overview", user=user, password=password)

    def cli(self, *args, **kw):
        return hermes(*args, **kw)
