"""Fixtures of the conformance suite.  See README.md for the settings."""
import base64
import contextlib
import http.client
import json
import os
import signal
import time
import urllib.parse
import uuid

import pytest

import wire

HOST = os.environ.get("AMQP_HOST", "127.0.0.1")
PORT = int(os.environ.get("AMQP_PORT", "5672"))
MGMT_PORT = int(os.environ.get("MGMT_PORT", "15672"))
USER = os.environ.get("AMQP_USER", "guest")
PASS = os.environ.get("AMQP_PASS", "guest")
TEST_LIMIT = int(os.environ.get("CONFORMANCE_TEST_LIMIT", "60"))

MARKERS = {
    "handshake": "protocol header, authentication, tuning, heartbeats, frame errors",
    "exchanges": "exchange types, declaration, binding, routing",
    "queues": "queue declaration, arguments, TTL, limits, dead lettering",
    "messaging": "publish, consume, acknowledge, properties, prefetch",
    "confirms": "publisher confirms",
    "tx": "transactions",
    "permissions": "access control",
    "policies": "policies, operator policies, limits, connection management",
    "library": "the same broker seen through a client library",
    "robustness": "many objects, broken input, abrupt disconnects",
    "mgmt": "needs the management API",
    "slow": "takes more than about a second",
    "quorum": "needs quorum queues",
    "stream": "needs streams",
}


def pytest_configure(config):
    for name, text in MARKERS.items():
        config.addinivalue_line("markers", "%s: %s" % (name, text))


# --------------------------------------------------------------------------
# What a later version of Hermes brings (later.txt)
# --------------------------------------------------------------------------
LATER_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "later.txt")
REFUSAL = "NOT_IMPLEMENTED"


def broker_is_hermes():
    """Hermes says so in the platform of its connection.start; nobody else does."""
    conn = wire.Conn(HOST, PORT)
    try:
        platform = conn.start().server_properties.get("platform", "")
        return isinstance(platform, str) and platform.startswith("Hermes")
    finally:
        conn.abort()


def read_later():
    """{node id: reason}; the list counts for Hermes alone, CONFORMANCE_LATER=off ignores it."""
    wanted = {}
    if os.environ.get("CONFORMANCE_LATER") == "off" or not os.path.exists(LATER_FILE):
        return wanted
    with open(LATER_FILE, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            name, tab, reason = line.partition("\t")
            if not tab or not reason.startswith("540: "):
                raise pytest.UsageError("%s:%d: NODE-ID, a tab, '540: reason'" % (LATER_FILE, number))
            wanted[name] = reason
    if wanted and not broker_is_hermes():
        return {}
    return wanted


def pytest_collection_modifyitems(config, items):
    later = read_later()
    ids = {item.nodeid for item in items}
    files = {name.split("::")[0] for name in ids}
    for item in items:
        item.later_reason = later.get(item.nodeid)
        item.later_refused = False
    if config.args and any("::" in arg for arg in config.args):
        return                     # single tests were asked for, so others are missing
    stale = sorted(name for name in later
                   if name not in ids and name.split("::")[0] in files)
    if stale:
        raise pytest.UsageError("in later.txt, but no such test: %s" % ", ".join(stale))


def _texts(exc):
    """The text of an exception and of those that led to it."""
    seen = []
    while exc is not None and exc not in seen:
        seen.append(exc)
        yield "%s %s" % (exc, getattr(exc, "args", ""))
        exc = exc.__cause__ or exc.__context__


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """A listed test that was refused in a fixture already is not called any more."""
    return True if getattr(pyfuncitem, "later_refused", False) else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A listed test passes if, and only if, the broker answers it with 540.

    Everything else is a failure: another error, and a success as well, because then
    the test no longer belongs on the list.
    """
    outcome = yield
    report = outcome.get_result()
    if getattr(item, "later_reason", None) is None or call.when == "teardown":
        return
    if report.failed and any(REFUSAL in text for text in _texts(call.excinfo.value)):
        item.later_refused = True
        report.outcome = "passed"
        report.longrepr = None
        report.sections.append(("later.txt", item.later_reason))
    elif call.when == "call" and not item.later_refused:
        report.outcome = "failed"
        report.longrepr = ("in later.txt (%s), but it was not refused with 540 %s; it %s"
                           % (item.later_reason, REFUSAL,
                              "passed: take it off the list" if call.excinfo is None
                              else "failed: %s" % call.excinfo.value))


# --------------------------------------------------------------------------
# Management API
# --------------------------------------------------------------------------
class Mgmt:
    def __init__(self, user=USER, password=PASS):
        self.user, self.password = user, password

    def request(self, method, path, body=None, headers=None):
        conn = http.client.HTTPConnection(HOST, MGMT_PORT, timeout=10)
        try:
            cred = base64.b64encode(("%s:%s" % (self.user, self.password)).encode())
            conn.request(method, "/api/" + path,
                         None if body is None else json.dumps(body),
                         {"Authorization": "Basic " + cred.decode(),
                          "Content-Type": "application/json", **(headers or {})})
            reply = conn.getresponse()
            raw = reply.read()
        finally:
            conn.close()
        try:
            data = json.loads(raw) if raw else None
        except ValueError:
            data = raw
        return reply.status, data

    def ok(self, method, path, body=None):
        status, data = self.request(method, path, body)
        assert 200 <= status < 300, (method, path, status, data)
        return data

    def get(self, path):
        return self.ok("GET", path)

    def put(self, path, body=None):
        return self.ok("PUT", path, body if body is not None else {})

    def delete(self, path):
        status, data = self.request("DELETE", path)
        assert status in (204, 404), (path, status, data)

    def add_vhost(self, name):
        self.put("vhosts/" + quote(name))
        self.put("permissions/%s/%s" % (quote(name), quote(USER)),
                 {"configure": ".*", "write": ".*", "read": ".*"})


def quote(text):
    return urllib.parse.quote(text, safe="")


def wait_for(check, timeout=10, pause=0.05):
    """Call `check` until it returns something true; return that."""
    deadline = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("condition not reached in %s s (last: %r)"
                                 % (timeout, value))
        time.sleep(pause)


_mgmt_state = []


def mgmt_reachable():
    if not _mgmt_state:
        try:
            status, _ = Mgmt().request("GET", "overview")
            _mgmt_state.append(status == 200)
        except OSError:
            _mgmt_state.append(False)
    return _mgmt_state[0]


@pytest.fixture
def mgmt():
    if not mgmt_reachable():
        pytest.skip("management API not reachable")
    return Mgmt()


@pytest.fixture(scope="session")
def vhost():
    """The virtual host that the tests live in."""
    name = os.environ.get("AMQP_VHOST")
    created = False
    if mgmt_reachable():
        api = Mgmt()
        if name is None:
            name = "conformance-%s" % uuid.uuid4().hex[:8]
        if api.request("GET", "vhosts/" + quote(name))[0] == 404:
            api.add_vhost(name)
            created = True
    yield name or "/"
    if created:
        Mgmt().delete("vhosts/" + quote(name))


# --------------------------------------------------------------------------
# Connections and names
# --------------------------------------------------------------------------
class Broker:
    """What a test needs: connections, unique names, cleaning up."""

    def __init__(self, vhost):
        self.vhost = vhost
        self.user, self.password = USER, PASS
        self.host, self.port, self.mgmt_port = HOST, PORT, MGMT_PORT
        self.conns = []
        self.names = []
        self.prefix = uuid.uuid4().hex[:8]

    def tcp(self, timeout=None):
        """A TCP connection on which nothing has been sent."""
        conn = wire.Conn(HOST, PORT, timeout)
        self.conns.append(conn)
        return conn

    def connect(self, user=None, password=None, vhost=None, **kw):
        conn = self.tcp()
        conn.handshake(user or self.user, password or self.password,
                       self.vhost if vhost is None else vhost, **kw)
        return conn

    def channel(self, **kw):
        return self.connect(**kw).channel()

    def name(self, hint="x"):
        """A fresh name; whatever queue or exchange bears it is deleted later."""
        name = "ct.%s.%s%d" % (self.prefix, hint, len(self.names))
        self.names.append(name)
        return name

    def queue(self, ch, hint="q", **kw):
        """Declare a queue with a fresh name and return the name."""
        name = self.name(hint)
        ch.declare(name, **kw)
        return name

    def cleanup(self):
        for conn in self.conns:
            conn.close()
        if self.names:
            conn = wire.Conn(HOST, PORT)
            try:
                conn.handshake(USER, PASS, self.vhost)
                for name in self.names:
                    for method, kw in (("queue.delete", {"queue": name}),
                                       ("exchange.delete", {"exchange": name})):
                        with contextlib.suppress(wire.ChannelClosed):
                            conn.channels.get(1) or conn.channel(1)
                            conn.channels[1].call(method, **kw)
            finally:
                conn.close()


@pytest.fixture
def broker(vhost):
    this = Broker(vhost)
    yield this
    this.cleanup()


@pytest.fixture
def ch(broker):
    """A channel on a connection of its own."""
    return broker.channel()


@pytest.fixture
def user(broker, mgmt):
    """Factory for users that exist during one test."""
    made = []

    def make(configure=".*", write=".*", read=".*", tags="", password="secret",
             grant=True):
        name = "ct-%s-%d" % (broker.prefix, len(made))
        mgmt.put("users/" + name, {"password": password, "tags": tags})
        made.append(name)
        if grant:
            mgmt.put("permissions/%s/%s" % (quote(broker.vhost), name),
                     {"configure": configure, "write": write, "read": read})
        return name

    yield make
    for name in made:
        mgmt.delete("users/" + name)


@pytest.fixture
def own_vhost(broker, mgmt):
    """A virtual host for one test alone."""
    name = "conformance-%s-v" % broker.prefix
    mgmt.add_vhost(name)
    yield name
    for conn in broker.conns:
        conn.close()
    mgmt.delete("vhosts/" + quote(name))


@pytest.fixture
def policy(broker, mgmt):
    """Factory for policies that are removed after the test."""
    made = []

    def make(pattern, definition, apply_to="all", priority=0, operator=False,
             vhost=None, hint="p"):
        kind = "operator-policies" if operator else "policies"
        name = "ct-%s-%s%d" % (broker.prefix, hint, len(made))
        path = "%s/%s/%s" % (kind, quote(vhost or broker.vhost), name)
        mgmt.put(path, {"pattern": pattern, "definition": definition,
                        "apply-to": apply_to, "priority": priority})
        made.append(path)
        return path

    yield make
    for path in made:
        mgmt.delete(path)


# --------------------------------------------------------------------------
# Assertions on errors
# --------------------------------------------------------------------------
def _check(exc, code, text, starts, contains, method):
    assert exc.code == code, str(exc)
    if text is not None:
        assert exc.text == text
    if starts is not None:
        assert exc.text.startswith(starts), exc.text
    for piece in ([contains] if isinstance(contains, str) else contains or []):
        assert piece in exc.text, exc.text
    if method is not None:
        class_id, method_id = wire.METHODS[method][:2]
        assert (exc.class_id, exc.method_id) == (class_id, method_id), str(exc)


@contextlib.contextmanager
def channel_error(code, text=None, starts=None, contains=None, method=None):
    """The block must end in channel.close with these contents."""
    with pytest.raises(wire.ChannelClosed) as info:
        yield info
    _check(info.value, code, text, starts, contains, method)


@contextlib.contextmanager
def connection_error(code, text=None, starts=None, contains=None, method=None):
    """The block must end in connection.close with these contents."""
    with pytest.raises(wire.ConnectionClosed) as info:
        yield info
    _check(info.value, code, text, starts, contains, method)


@pytest.fixture
def errors():
    """Access to the two context managers above."""
    class Errors:
        channel = staticmethod(channel_error)
        connection = staticmethod(connection_error)
    return Errors


# --------------------------------------------------------------------------
# No test may hang
# --------------------------------------------------------------------------
class TestLimit(Exception):
    __test__ = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    def expired(signum, frame):
        raise TestLimit("test took more than %d s" % TEST_LIMIT)

    old = signal.signal(signal.SIGALRM, expired)
    signal.alarm(TEST_LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
