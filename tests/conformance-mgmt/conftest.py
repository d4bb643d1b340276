"""Shared plumbing for the management-plane conformance suite.

Everything a test creates lives in virtual hosts and user accounts whose names
start with a random per-run prefix; nothing else on the broker is modified.
"""
import json
import os
import time
import uuid
from urllib.parse import quote

import pika
import pytest
import requests

HOST = os.environ.get("AMQP_HOST", "127.0.0.1")
AMQP_PORT = int(os.environ.get("AMQP_PORT", "5672"))
MGMT_PORT = int(os.environ.get("MGMT_PORT", "15672"))
PROM_PORT = int(os.environ.get("PROM_PORT", "15692"))
USER = os.environ.get("AMQP_USER", "guest")
PASS = os.environ.get("AMQP_PASS", "guest")
BASE = "http://%s:%d" % (HOST, MGMT_PORT)
PROM = "http://%s:%d" % (HOST, PROM_PORT)

HTTP_TIMEOUT = int(os.environ.get("CONFORMANCE_HTTP_TIMEOUT", "20"))     # seconds, per request
KEEP_ALIVE = 3             # seconds; servers may drop an idle connection after five
STATS_TIMEOUT = int(os.environ.get("CONFORMANCE_STATS_TIMEOUT", "25"))   # seconds, upper bound for statistics to show up
# The reference may answer 500 for these while another client deletes objects.
CLUSTER_WIDE = {"/api/" + k for k in ("overview", "queues", "exchanges", "bindings", "connections", "channels",
                                      "consumers", "vhosts", "users", "permissions", "definitions")}
RUN = "cm" + uuid.uuid4().hex[:8]


# ---------------------------------------------------- what is still to come (later.txt)
LATER_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "later.txt")


def read_later():
    """Node ids of tests that have to fail on Hermes; on other brokers, and with CONFORMANCE_LATER=off, none."""
    if os.environ.get("CONFORMANCE_LATER") == "off" or not os.path.exists(LATER_FILE):
        return set()
    with open(LATER_FILE, encoding="utf-8") as lines:
        names = {line.rstrip("\n") for line in lines if line.strip() and not line.startswith("#")}
    try:
        overview = requests.get(BASE + "/api/overview", auth=(USER, PASS), timeout=HTTP_TIMEOUT).json()
    except (requests.RequestException, ValueError):
        return set()
    return names if "hermes_version" in overview else set()


def pytest_collection_modifyitems(config, items):
    later = read_later()
    ids = {item.nodeid for item in items}
    for item in items:
        item.is_later, item.has_failed = item.nodeid in later, False
    if any("::" in arg for arg in config.args) or config.option.keyword:
        return                       # a part was asked for, so others are missing
    files = {name.split("::")[0] for name in ids}
    stale = sorted(name for name in later if name not in ids and name.split("::")[0] in files)
    if stale:
        raise pytest.UsageError("in later.txt, but no such test: %s" % ", ".join(stale))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """A listed test that failed in a fixture already is not called any more."""
    return True if getattr(pyfuncitem, "has_failed", False) else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A listed test has to fail, in a fixture or by itself; one that does not is to be taken off the list."""
    outcome = yield
    report = outcome.get_result()
    if not getattr(item, "is_later", False) or call.when == "teardown":
        return
    if report.failed:
        item.has_failed = True
        report.outcome, report.longrepr = "passed", None
    elif call.when == "call" and not item.has_failed:
        report.outcome, report.longrepr = "failed", "it passed: take it off later.txt"


def unique(tag="x"):
    return "%s-%s-%s" % (RUN, tag, uuid.uuid4().hex[:6])


def path(*parts):
    """Build /api/... with every part percent-encoded, slash included."""
    return "/api/" + "/".join(quote(str(p), safe="") for p in parts)


class Api:
    """A thin client: one account, one keep-alive session, hard timeouts."""

    def __init__(self, user=USER, password=PASS):
        self.user, self.password = user, password
        self.s = requests.Session()
        self.s.trust_env = False
        self.s.auth = (user, password)
        if isinstance(password, str):
            self.s.auth = (user.encode(), password.encode())
        self.used = time.monotonic()

    def req(self, method, p, body=None, raw=None, headers=None, **kw):
        h = dict(headers or {})
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            h.setdefault("content-type", "application/json")
        kw.setdefault("allow_redirects", False)
        kw.setdefault("timeout", HTTP_TIMEOUT)
        if time.monotonic() - self.used > KEEP_ALIVE:
            self.s.close()           # do not race with the server closing it
        r = self.s.request(method, BASE + p, data=data, headers=h, **kw)
        self.used = time.monotonic()
        if data and r.status_code >= 400:
            self.s.close()           # the server may not have read the body, then it hangs up
        return r

    def get(self, p, **kw):
        r = self.req("GET", p, **kw)
        for _ in range(3):
            if r.status_code != 500 or p.split("?")[0] not in CLUSTER_WIDE:
                break
            time.sleep(0.3)
            r = self.req("GET", p, **kw)
        return r

    def put(self, p, body=None, **kw):
        return self.req("PUT", p, body, **kw)

    def post(self, p, body=None, **kw):
        return self.req("POST", p, body, **kw)

    def delete(self, p, **kw):
        return self.req("DELETE", p, **kw)

    def json(self, p, want=200, **kw):
        return status(self.get(p, **kw), want).json()


def status(resp, *want):
    """Assert the status code, return the response."""
    assert resp.status_code in want, "%s %s -> %d (want %s): %s" % (
        resp.request.method, resp.request.url, resp.status_code, want, resp.text[:300])
    return resp


def error(resp, code, err, reason=None):
    """Assert a JSON error document {"error": ..., "reason": ...}."""
    status(resp, code)
    assert resp.headers["content-type"].startswith("application/json")
    doc = resp.json()
    assert doc["error"] == err, doc
    assert "reason" in doc
    if reason is not None:
        assert reason in str(doc["reason"]), doc
    return doc


def not_found(resp):
    return error(resp, 404, "Object Not Found", "Not Found")


def eventually(check, timeout=STATS_TIMEOUT, every=0.3):
    """Call check() until it raises nothing; return what it returned."""
    end = time.monotonic() + timeout
    while True:
        try:
            return check()
        except (AssertionError, KeyError, IndexError, TypeError, AttributeError) as e:
            if time.monotonic() >= end:
                raise AssertionError("not true after %.0f s: %r" % (timeout, e)) from e
        time.sleep(every)


INT, NUM, STR, BOOL, OBJ, LIST = "int", "num", "str", "bool", "obj", "list"
_TESTS = {
    INT: lambda v: isinstance(v, int) and not isinstance(v, bool),
    NUM: lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    STR: lambda v: isinstance(v, str),
    BOOL: lambda v: isinstance(v, bool),
    OBJ: lambda v: isinstance(v, dict),
    LIST: lambda v: isinstance(v, list),
}


def shape(doc, **fields):
    """Every named field must be there and have the JSON type stated.

    Statically typed clients refuse a whole reply when one field has another type.
    """
    for k, t in fields.items():
        k = k.replace("__", "-")
        assert k in doc, "field %r missing, have %s" % (k, sorted(doc))
        assert _TESTS[t](doc[k]), "field %r should be %s, is %r" % (k, t, doc[k])
    return doc


def rate_of(doc, field):
    d = doc[field + "_details"]
    assert _TESTS[NUM](d["rate"])
    return d["rate"]


@pytest.fixture(scope="session")
def admin():
    return Api()


@pytest.fixture(scope="session")
def node(admin):
    return admin.json("/api/overview")["node"]


class Registry:
    def __init__(self, api):
        self.api, self.vhosts, self.users, self.params = api, [], [], []

    def vhost(self, tag="vh", **meta):
        name = unique(tag)
        status(self.api.put(path("vhosts", name), meta or None), 201)
        self.vhosts.append(name)
        return name

    def user(self, tags="", password="pw", vhosts=(), tag="u", perms=(".*", ".*", ".*")):
        name = unique(tag)
        status(self.api.put(path("users", name), {"password": password, "tags": tags}), 201)
        self.users.append(name)
        for v in vhosts:
            self.grant(name, v, *perms)
        return Api(name, password)

    def grant(self, user, vhost, configure=".*", write=".*", read=".*"):
        status(self.api.put(path("permissions", vhost, user),
                            {"configure": configure, "write": write, "read": read}), 201, 204)

    def close(self):
        for kind, names in (("users", self.users), ("vhosts", self.vhosts), ("global-parameters", self.params)):
            for n in names:
                try:
                    self.api.delete(path(kind, n), timeout=30)
                except requests.RequestException:
                    pass                 # a broker that is down has nothing to clean


@pytest.fixture(scope="session")
def registry(admin):
    r = Registry(admin)
    yield r
    r.close()


@pytest.fixture(scope="session")
def vh(registry):
    """One virtual host for tests that only need uniquely named objects."""
    return registry.vhost("shared")


@pytest.fixture
def new_vhost(registry):
    return registry.vhost


@pytest.fixture
def new_user(registry):
    return registry.user


def amqp_open(vhost, user=USER, password=PASS, name=None, heartbeat=300):
    props = {"connection_name": name} if name else None
    return pika.BlockingConnection(pika.ConnectionParameters(
        HOST, AMQP_PORT, vhost, pika.PlainCredentials(user, password), heartbeat=heartbeat,
        socket_timeout=5, stack_timeout=10, blocked_connection_timeout=10,
        connection_attempts=1, client_properties=props))


def amqp_close(conn):
    try:
        conn.close()
    except Exception:
        pass


def wait_closed(conn, timeout=10):
    """Pump an AMQP connection until the broker closes it; return the exception."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            conn.process_data_events(0.2)
        except pika.exceptions.AMQPConnectionError as e:
            return e
    raise AssertionError("the broker did not close the connection")


@pytest.fixture
def amqp():
    opened = []

    def factory(vhost, **kw):
        c = amqp_open(vhost, **kw)
        opened.append(c)
        return c
    yield factory
    for c in opened:
        amqp_close(c)


def depth(channel, queue):
    """Ready messages and consumers as AMQP sees them, free of statistics delay."""
    m = channel.queue_declare(queue, passive=True).method
    return m.message_count, m.consumer_count


# ---------------------------------------------------------------- the stage
class Stage:
    """Known traffic on one virtual host; tests read it and leave it alone."""


@pytest.fixture(scope="session")
def stage(admin, registry):
    s = Stage()
    s.vh = registry.vhost("stage")
    s.plain = registry.user("management", vhosts=[s.vh], tag="plain")
    s.doomed = registry.user("", vhosts=[s.vh], tag="doomed")
    s.monitor = registry.user("monitoring", vhosts=[s.vh], tag="monitor")
    conns = []

    def connect(**kw):
        c = amqp_open(s.vh, **kw)
        conns.append(c)
        return c

    s.a = connect(name="stage-publisher")
    ch = s.a.channel()                                     # A (1)
    ch.confirm_delivery()
    for q in ("work", "idle", "f1", "f2", "redo"):
        ch.queue_declare(q, durable=True)
    ch.exchange_declare("fan", "fanout")
    ch.queue_bind("f1", "fan")
    ch.queue_bind("f2", "fan")
    for _ in range(10):
        ch.basic_publish("", "work", b"p" * 100, pika.BasicProperties(delivery_mode=2))
    for _ in range(3):
        ch.basic_publish("", "no-such-queue", b"dropped")
    try:
        ch.basic_publish("", "no-such-queue", b"returned", mandatory=True)
        raise AssertionError("a mandatory unroutable message was not returned")
    except pika.exceptions.UnroutableError:
        pass
    tx = s.a.channel()                                     # A (2)
    tx.tx_select()
    tx.basic_qos(prefetch_count=7, global_qos=True)
    tx.basic_publish("", "idle", b"never committed")
    fan = s.a.channel()                                    # A (3)
    for _ in range(5):
        fan.basic_publish("fan", "", b"f" * 7)
    for _ in range(2):
        fan.basic_publish("", "redo", b"again")

    s.b = connect(name="stage-consumer", heartbeat=290)
    c1 = s.b.channel()                                     # B (1)
    assert c1.basic_get("work")[0] is not None             # stays unacknowledged
    assert c1.basic_get("work", auto_ack=True)[0] is not None
    assert c1.basic_get("idle")[0] is None
    c1.basic_qos(prefetch_count=3)
    got = []
    c1.basic_consume("work", lambda *a: got.append(a), consumer_tag="tag-work",
                     arguments={"x-priority": 5})
    end = time.monotonic() + 10
    while len(got) < 3 and time.monotonic() < end:
        s.b.process_data_events(0.1)
    assert len(got) == 3
    c1.basic_ack(got[0][1].delivery_tag)
    while len(got) < 4 and time.monotonic() < end:
        s.b.process_data_events(0.1)
    assert len(got) == 4
    c2 = s.b.channel()                                     # B (2)
    s.private = c2.queue_declare("", exclusive=True).method.queue
    c2.queue_declare("temp", auto_delete=True)
    c2.basic_consume("temp", lambda *a: None, consumer_tag="tag-exclusive", exclusive=True)
    s.args = {"x-single-active-consumer": True, "x-max-length": 100, "x-message-ttl": 600000,
              "x-dead-letter-exchange": "fan", "x-max-priority": 4,
              "note": "text", "minus": -5, "big": 2 ** 40, "nested": {"list": [1, True, "x"]}}
    c2.queue_declare("sac", durable=True, arguments=s.args)
    c2.basic_consume("sac", lambda *a: None, consumer_tag="tag-sac-1")
    c3 = s.b.channel()                                     # B (3)
    c3.basic_consume("sac", lambda *a: None, consumer_tag="tag-sac-2", auto_ack=True)
    c4 = s.b.channel()                                     # B (4)
    for _ in range(2):
        first = c4.basic_get("redo")[0]
        second = c4.basic_get("redo")[0]
        assert first and second
        c4.basic_nack(second.delivery_tag, multiple=True, requeue=True)

    s.c = connect(user=s.plain.user, password="pw", name="stage-plain")
    pc = s.c.channel()
    pc.queue_declare("plain-q")
    pc.basic_consume("plain-q", lambda *a: None, consumer_tag="tag-plain")

    s.victim = connect(name="stage-victim")
    s.victims = [connect(user=s.doomed.user, password="pw", name="stage-doomed") for _ in range(2)]
    s.spare = connect(user=s.plain.user, password="pw", name="stage-spare")
    s.by_name = {}

    def names():
        rows = admin.json(path("vhosts", s.vh, "connections"))
        found = {}
        for r in rows:
            found.setdefault(r["user_provided_name"], []).append(r["name"])
        assert {"stage-publisher", "stage-consumer", "stage-plain", "stage-victim",
                "stage-doomed", "stage-spare"} <= set(found), found
        assert len(found["stage-doomed"]) == 2
        return found
    s.by_name = eventually(names)
    s.A, s.B, s.C = (s.by_name[n][0] for n in ("stage-publisher", "stage-consumer", "stage-plain"))
    yield s
    for c in conns:
        amqp_close(c)
