"""TLS: versions, certificates of both sides, logins by them, other files on SIGHUP, what goes wrong and what is said of it."""
# SPDX-License-Identifier: Apache-2.0
import base64
import contextlib
import ctypes
import ctypes.util
import http.client
import json
import re
import signal
import socket
import ssl
import struct
import time

import pika
import pytest

from certs import Authority, openssl
from node import SLOW, free_port, hermes, wait_for

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
LOGIN = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """One for all tests here: making keys takes time."""
    made = Authority(tmp_path_factory.mktemp("certs"))
    made.server()
    made.issue("guest", san="email:guest@example.org,DNS:app.example.org")
    return made


def files(authority, name="server"):
    return authority.folder / (name + ".pem"), authority.folder / (name + ".key")


def settings(authority, port, more="", cert=None, key=None, rest=""):
    own = files(authority)
    return "tls:\n  port: %d\n  certificate: %s\n  key: %s\n  ca: %s\n%s\n%s" % (
        port, cert or own[0], key or own[1], authority.ca, more, rest)


def parameters(authority, port, cert=None, version=None, credentials=None, host="localhost", **kw):
    context = authority.context(*(files(authority, cert) if cert else ()), version=version)
    return pika.ConnectionParameters(
        "127.0.0.1", port, ssl_options=pika.SSLOptions(context, host), socket_timeout=10 * SLOW,
        stack_timeout=20 * SLOW, blocked_connection_timeout=20 * SLOW,
        credentials=credentials or pika.PlainCredentials("guest", "guest"), **kw)


def connect(*args, **kw):
    return pika.BlockingConnection(parameters(*args, **kw))


def shake(authority, port, context=None, host="localhost", session=None):
    """A socket after its handshake."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW)
    return (context or authority.context()).wrap_socket(sock, server_hostname=host, session=session)


def metrics(this):
    """Those of Hermes alone, by name."""
    conn = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=20 * SLOW)
    conn.request("GET", "/metrics", headers=LOGIN)
    text = conn.getresponse().read().decode()
    conn.close()
    return {name: float(value) for name, value in re.findall(r"^(hermes_\w+) (\S+)$", text, re.M)}


def refused_reason(authority, port, context):
    """What a client is told that is not let in: by its handshake, or (TLS 1.3) when it reads."""
    with pytest.raises(ssl.SSLError) as told:
        with shake(authority, port, context) as sock:
            sock.sendall(b"AMQP\0\0\x09\x01")
            sock.recv(1)
    return str(told.value)


@pytest.mark.parametrize("version, words", [(V12, ("tlsv1.2", "ecdhe_ecdsa")), (V13, ("tlsv1.3", "any"))],
                         ids=["1.2", "1.3"])
def test_messages_of_all_sizes(node, authority, version, words):
    port = free_port()
    this = node(settings(authority, port))
    conn = connect(authority, port, version=version)
    chan = conn.channel()
    chan.queue_declare("q")
    chan.confirm_delivery()
    bodies = [bytes([i]) * size for i, size in enumerate((0, 1, 4000, 16384, 70000, 131072, 5 << 20))]
    for body in bodies:
        chan.basic_publish("", "q", body)
    got = []
    for _, _, body in chan.consume("q", auto_ack=True):
        got.append(body)
        if len(got) == len(bodies):
            break
    assert got == bodies
    shown = this.http("/api/connections")[0]
    assert (shown["ssl"], shown["ssl_protocol"], shown["ssl_key_exchange"], shown["ssl_hash"]) == (True, *words, "aead")
    assert shown["ssl_cipher"] in ("aes_256_gcm", "aes_128_gcm", "chacha20_poly1305")
    assert (shown["peer_cert_subject"], shown["auth_mechanism"], shown["port"]) == (None, "PLAIN", port)
    assert {"protocol": "amqp/ssl", "port": port}.items() <= this.overview()["listeners"][1].items()
    assert this.http("/api/health/checks/protocol-listener/amqps")["status"] == "ok"
    conn.close()
    plain = this.pika()
    wait_for(lambda: [row["ssl"] for row in this.http("/api/connections")] == [False], what="the plain one alone in the list")
    plain.close()


def test_slow_reader(node, authority):
    """What a socket does not take waits, whole, in order, and within the bounds."""
    port = free_port()
    this = node(settings(authority, port), args=["--log-level", "debug"])
    with this.pika() as filler:
        chan = filler.channel()
        chan.queue_declare("q")
        for i in range(400):
            chan.basic_publish("", "q", struct.pack(">I", i) * 16384)
        conn = connect(authority, port)
        reader = conn.channel()
        got = []
        reader.basic_consume("q", lambda c, d, p, body: got.append(body), auto_ack=True)
        wait_for(lambda: this.http("/api/connections?sort=send_pend&sort_reverse=true")[0]["send_pend"] > 256 << 10
                 or len(got) > 399, what="output that waits")
        deadline = time.monotonic() + 60 * SLOW
        while len(got) < 400 and time.monotonic() < deadline:
            conn.process_data_events(0.5)
        assert [body[:4] for body in got] == [struct.pack(">I", i) for i in range(400)]
        assert all(body == body[:4] * 16384 for body in got)
        conn.close()


def asks_for_keys(port):
    """Asks for new keys, and reads no answer, until the node has enough of it; whether it had."""
    lib = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", port))
    of = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_client_method())))
    own = ctypes.c_void_p(lib.SSL_new(of))
    lib.SSL_set_fd(own, sock.fileno())
    assert lib.SSL_connect(own) == 1
    gone = False
    for _ in range(400000):
        gone = lib.SSL_key_update(own, 1) != 1 or lib.SSL_do_handshake(own) != 1
        if gone:
            break
    sock.close()
    lib.SSL_free(own)
    lib.SSL_CTX_free(of)
    return gone


def test_new_keys_without_end(node, authority):
    """Answers of the protocol itself have a bound, too."""
    port = free_port()
    this = node(settings(authority, port, rest="limits: {handshake: 10m}"))
    assert asks_for_keys(port)
    this.await_log("connection closed: TLS: the client asks for new keys and does not read the answers")
    connect(authority, port).close()


@pytest.mark.parametrize("more, user", [
    ("", "guest"),
    ("  login_from: distinguished_name", "O=Hermes,CN=guest"),
    ("  login_from: subject_alternative_name\n  login_san: email", "guest@example.org"),
    ("  login_from: subject_alternative_name", "app.example.org"),
], ids=["cn", "dn", "email", "dns"])
def test_external(node, authority, more, user):
    """The user's name is in the certificate; what else the client says does not matter."""
    port = free_port()
    if user.startswith("O="):
        authority.issue("named", subject="/CN=guest/O=Hermes")
    cert = "named" if user.startswith("O=") else "guest"
    this = node(settings(authority, port, "  verify: optional\n" + more, rest=(
        "users:\n- {username: guest, password: guest, tags: [administrator], permissions: ['.*', '.*', '.*']}\n"
        "- {username: '%s', password_hash: '', permissions: ['.*', '.*', '.*']}" % user if user != "guest" else "")))
    conn = connect(authority, port, cert, credentials=pika.credentials.ExternalCredentials())
    conn.channel().queue_declare("q")
    shown = this.http("/api/connections")[0]
    assert (shown["user"], shown["auth_mechanism"]) == (user, "EXTERNAL")
    assert shown["peer_cert_issuer"] == "CN=Hermes tests"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ - \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", shown["peer_cert_validity"])
    conn.close()


def test_external_is_not_for_everybody(node, authority):
    port = free_port()
    authority.issue("nobody")
    this = node(settings(authority, port, "  verify: optional"))
    with pytest.raises(pika.exceptions.AMQPConnectionError):       # no certificate: it is not offered
        connect(authority, port, credentials=pika.credentials.ExternalCredentials())
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(authority, port, "nobody", credentials=pika.credentials.ExternalCredentials())
    this.await_log("login refused for user 'nobody' using mechanism EXTERNAL: unknown user")
    assert any(m["name"] == "EXTERNAL" and m["enabled"] for m in this.http("/api/nodes")[0]["auth_mechanisms"])
    # who takes the plain port and says EXTERNAL is nobody
    conn = this.tcp()
    conn.send_raw(b"AMQP\0\0\x09\x01")
    start = conn.sock.recv(4096)
    assert b"PLAIN AMQPLAIN" in start and b"EXTERNAL" not in start


def test_client_certificates(node, authority, tmp_path):
    """required: who has none, an expired one, or one of somebody else's authority is told so, and the log says why."""
    port = free_port()
    this = node(settings(authority, port, "  verify: required"))
    other = Authority(tmp_path / "other", "Somebody else")
    other.issue("guest")
    authority.issue("old", days=0)
    connect(authority, port, "guest").close()
    assert "CERTIFICATE_REQUIRED" in refused_reason(authority, port, authority.context()).upper().replace(" ", "_")
    this.await_log(r"127\.0\.0\.1:\d+: handshake of TLS on port %d failed: the client showed no certificate" % port)
    wait_for(lambda: time.time() > authority.folder.joinpath("old.pem").stat().st_mtime + 1, what="the end of a second")
    assert "EXPIRED" in refused_reason(authority, port, authority.context(*files(authority, "old"))).upper()
    this.await_log("the client's certificate was refused: certificate has expired")
    stranger = authority.context(other.folder / "guest.pem", other.folder / "guest.key")
    assert "UNKNOWN" in refused_reason(authority, port, stranger).upper()
    this.await_log("the client's certificate was refused: (unable to get local issuer certificate|self.signed)")
    counted = metrics(this)
    assert counted["hermes_tls_handshakes_total"] == 1 and counted["hermes_tls_failures_total"] == 3
    wait_for(lambda: metrics(this)["hermes_gate_waiting"] == 0, what="nobody in the gate")


def test_wrong_protocols(node, authority):
    port = free_port()
    this = node(settings(authority, port))
    with socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW) as sock:
        sock.sendall(b"AMQP\0\0\x09\x01")
        sock.recv(100)
    this.await_log("handshake of TLS on port %d failed: the client does not speak TLS" % port)
    with socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        sock.recv(100)
    this.await_log("the client speaks plain HTTP")
    with pytest.raises((ssl.SSLError, OSError)):
        shake(authority, this.port)
    this.await_log(r"the protocol is TLS \(a ClientHello\)")
    other = ssl.create_default_context()                # does not trust us
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(authority, port, other)
    this.await_log("the client does not know the authority of our certificate")
    with shake(authority, port) as sock:                # and goes on with something else than AMQP
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert sock.recv(8) == b"AMQP\0\0\x09\x01"
    this.await_log("the protocol is HTTP")
    with shake(authority, port) as sock:                # bytes that no key has encrypted
        raw = socket.socket(fileno=sock.detach())
        raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
        raw.settimeout(20 * SLOW)
        while raw.recv(4096):
            pass
        raw.close()
    this.await_log("TLS: (decryption failed or bad record mac|bad record)")


def test_names_choose_certificates(node, authority):
    """By SNI; who names none, or one that nobody has, gets the first."""
    port = free_port()
    own = files(authority)
    one = authority.issue("one", san="DNS:one.example.org,DNS:*.one.example.org")
    two = authority.issue("two", san="DNS:two.example.org", key=("-newkey", "rsa:2048"))
    this = node(settings(authority, port, cert="[%s, %s, %s]" % (own[0], one[0], two[0]),
                         key="[%s, %s, %s]" % (own[1], one[1], two[1])))
    context = authority.context()
    context.check_hostname = False
    for version in (V12, V13):
        context.minimum_version = context.maximum_version = version
        for host, subject in (("one.example.org", "one"), ("A.One.Example.Org", "one"), ("two.example.org", "two"),
                              ("three.example.org", "server"), (None, "server")):
            with shake(authority, port, context, host) as sock:
                assert sock.getpeercert()["subject"] == ((("commonName", subject),),), host
    assert this.running()


def resumed(authority, port, context, session):
    with shake(authority, port, context, session=session) as sock:
        sock.sendall(b"AMQP\0\0\x09\x01")
        sock.recv(4096)             # a ticket of TLS 1.3 comes with the first bytes
        return sock.session_reused, sock.session


@pytest.mark.parametrize("version", [V12, V13], ids=["1.2", "1.3"])
def test_sessions_are_resumed(node, authority, version):
    port = free_port()
    this = node(settings(authority, port, "  verify: required"))
    context = authority.context(*files(authority, "guest"), version=version)
    reused, session = resumed(authority, port, context, None)
    assert not reused
    for _ in range(3):
        reused, session = resumed(authority, port, context, session)
        assert reused
    assert metrics(this)["hermes_tls_resumed_total"] == 3
    this.process.send_signal(signal.SIGHUP)             # what a new authority would refuse does not come in by an old ticket
    this.await_log("certificates were read again")
    assert not resumed(authority, port, context, session)[0]


def test_keys_of_tickets_are_changed(node, authority):
    """By themselves; what that does to a session is tested in tests/unit/check_tls_tickets.c."""
    this = node(settings(authority, free_port(), "  tickets: 1s"), args=["--log-level", "debug"])
    this.await_log("TLS has a new key for session tickets", 30)


def test_no_tickets(node, authority):
    port = free_port()
    node(settings(authority, port, "  tickets: 0"))
    for version in (V12, V13):
        context = authority.context(version=version)
        session = resumed(authority, port, context, None)[1]
        assert not (session and session.has_ticket)


def serial(authority, port):
    with shake(authority, port) as sock:
        return sock.getpeercert()["serialNumber"]


def test_other_files(node, authority, tmp_path):
    """SIGHUP: new connections see them, open ones stay; what is wrong is said and changes nothing."""
    port = free_port()
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def put(name):
        for to, source in zip((cert, key), files(authority, name)):
            to.write_bytes(source.read_bytes())

    def reload(line, count=1):
        this.process.send_signal(signal.SIGHUP)
        this.await_log(line, count=count)

    put("server")
    this = node(settings(authority, port, cert=cert, key=key))
    conn = connect(authority, port)
    chan = conn.channel()
    chan.queue_declare("q")
    first = serial(authority, port)
    authority.server("second")
    put("second")
    assert serial(authority, port) == first
    reload("certificates were read again")
    second = serial(authority, port)
    assert second != first
    for spoil, line in ((lambda: key.write_bytes(files(authority)[1].read_bytes()), "it does not belong to the certificate"),
                        (lambda: cert.write_text("nothing"), "there is none in it"),
                        (cert.unlink, "No such file or directory")):
        spoil()
        reload("tls.(certificate|key): .*: %s.*; the certificates in force stay" % line)
        assert serial(authority, port) == second
    put("second")
    reload("certificates were read again", 2)
    chan.basic_publish("", "q", b"still here")          # the one from before all that
    assert wait_for(lambda: chan.basic_get("q", auto_ack=True)[2], what="the message") == b"still here"
    conn.close()


def test_other_settings(node, authority):
    """What SIGHUP can change of them: who has no certificate is out from then on, but for those who are in."""
    port = free_port()
    this = node(settings(authority, port))
    conn = connect(authority, port)
    this.config.write_text(settings(authority, port, "  verify: required\n  min_version: 1.3"))
    this.process.send_signal(signal.SIGHUP)
    this.await_log("certificates were read again")
    assert "CERTIFICATE_REQUIRED" in refused_reason(authority, port, authority.context()).upper().replace(" ", "_")
    assert "VERSION" in refused_reason(authority, port, authority.context(*files(authority, "guest"), version=V12)).upper()
    this.await_log("the client speaks only versions of TLS that are not taken")
    connect(authority, port, "guest").close()
    conn.channel().queue_declare("q")
    conn.close()


@pytest.mark.parametrize("spoil, status, line", [
    ("  certificate: /nowhere/cert.pem", 1, "tls.certificate: /nowhere/cert.pem: No such file or directory"),
    ("  key: %(guest)s", 1, r"tls.key: .*guest.key: it does not belong to the certificate"),
    ("  key: %(locked)s", 1, r"tls.key: .*locked.key: it has a password; write it without one"),
    ("  key: %(cert)s", 1, "tls.key: .*: there is no private key in it"),
    ("  verify: optional\n  ca: /nowhere/ca.pem", 1, "tls.ca: /nowhere/ca.pem: No such file or directory"),
    ("  verify: required", 2, "tls.ca: is needed where tls.verify is not none"),
    ("  certificate: ''", 2, "tls.certificate: is needed where a port for TLS is opened"),
], ids=["no-certificate", "other-key", "locked-key", "no-key", "no-ca", "ca-missing", "nothing"])
def test_what_stops_the_start(tmp_path, authority, spoil, status, line):
    cert, key = files(authority)
    locked = tmp_path / "locked.key"
    openssl("ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked)
    text = {"port": free_port(), "certificate": cert, "key": key}
    extra = spoil % {"guest": files(authority, "guest")[1], "locked": locked, "cert": cert}
    text.update(row.strip().split(": ", 1) for row in extra.splitlines())
    config = tmp_path / "hermes.yml"
    config.write_text("tls:\n" + "".join("  %s: %s\n" % pair for pair in text.items()))
    done = hermes("server", "-c", config, "-d", tmp_path / "data", "--port", 0, "--management-port", 0,
                  "--prometheus-port", 0)
    assert done.returncode == status and re.search(line, done.stderr), done.stderr
    checked = hermes("server", "--check", "-c", config)
    assert checked.returncode == 2 and re.search(line, checked.stderr), checked.stderr


def test_http(node, authority):
    """The API, the console's cookie and metrics, by the same machine as without TLS; long bodies both ways."""
    https, metrics_tls = free_port(), free_port()
    this = node(settings(authority, 0, rest="management: {tls_port: %d}\nprometheus: {tls_port: %d}" % (https, metrics_tls)))
    conn = http.client.HTTPSConnection("localhost", https, context=authority.context(), timeout=20 * SLOW)

    def ask(method, path, body=None, headers=LOGIN):
        conn.request(method, path, None if body is None else json.dumps(body), headers=headers)
        answer = conn.getresponse()
        return answer.status, answer.headers, answer.read()

    assert json.loads(ask("GET", "/api/whoami")[2])["name"] == "guest"
    value = ["x" * 100] * 900
    assert ask("PUT", "/api/global-parameters/long", {"value": value})[0] == 201
    assert json.loads(ask("GET", "/api/global-parameters/long")[2])["value"] == value
    assert ask("GET", "/api/whoami", headers={})[0] == 401
    conn.request("POST", "/api/login", "username=guest&password=guest", FORM)
    answer = conn.getresponse()
    cookie = answer.status, answer.headers, answer.read()
    assert cookie[0] == 200 and "; Secure" in cookie[1]["set-cookie"], cookie
    assert [row["protocol"] for row in json.loads(ask("GET", "/api/overview")[2])["listeners"]] == [
        "amqp", "http", "https", "https/prometheus"]
    health = "/api/health/checks/certificate-expiration/%s"
    assert ask("GET", health % "1/days")[0] == 200
    status, _, body = ask("GET", health % "1/weeks")
    assert status == 503 and "server.pem" in json.loads(body)["reason"]
    conn.close()
    conn = http.client.HTTPSConnection("localhost", metrics_tls, context=authority.context(), timeout=20 * SLOW)
    status, _, body = ask("GET", "/metrics", headers={})
    assert status == 200 and re.search(rb"\nhermes_tls_certificate_expires_seconds [1-9]", body)
    conn.close()
    plain = http.client.HTTPConnection("127.0.0.1", this.management_port, timeout=20 * SLOW)
    plain.request("POST", "/api/login", "username=guest&password=guest", FORM)
    assert "Secure" not in plain.getresponse().headers["set-cookie"]
    plain.close()


def test_half_handshakes(node, authority):
    """A thousand that only begin: others come in meanwhile, and each ends with limits.handshake."""
    port = free_port()
    this = node(settings(authority, port, rest="limits: {handshake: 3s}"), nofile=4096)
    hello = ssl.MemoryBIO()
    half = authority.context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        half.do_handshake()
    hello = hello.read()
    with contextlib.ExitStack() as stack:
        socks = []
        for i in range(1000):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30 * SLOW))
            sock.sendall(hello[:(0, 3, 100, len(hello))[i % 4]])
            socks.append(sock)

        def comes_in():         # its handshake has a time limit, too, which a busy machine may need
            with contextlib.suppress(pika.exceptions.AMQPConnectionError, OSError):
                connect(authority, port).close()
                return True

        wait_for(comes_in, 20, "another that comes in")
        began = time.monotonic()
        for sock in socks:
            with contextlib.suppress(ConnectionError):
                while sock.recv(8192):
                    pass
        assert time.monotonic() - began < 25 * SLOW
    wait_for(lambda: metrics(this)["hermes_gate_waiting"] == 0, what="nobody in the gate")
    assert metrics(this)["hermes_gate_timeouts_total"] >= 1000
    assert len(re.findall("handshake of TLS on port .* not done after 3000 ms", this.log)) <= 100
    wait_for(comes_in, 20, "another that comes in")


def test_bound_of_handshakes(node, authority):
    """The silent make room for those who come."""
    port = free_port()
    this = node(settings(authority, port, "  handshakes: 16", rest="limits: {handshake: 600s}"))
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW)) for _ in range(40)]
        wait_for(lambda: metrics(this)["hermes_gate_evicted_total"] == 24, what="the oldest gone")
        assert all(sock.recv(1) == b"" for sock in silent[:24])
        connect(authority, port).close()
        this.await_log("given up to make room for others")


def test_stop_with_open_handshakes(node, authority):
    """It does not wait for them, nor for connections in TLS that take connection.close."""
    port = free_port()
    this = node(settings(authority, port))
    with socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW) as sock:
        sock.sendall(b"\x16\x03\x01")
        wait_for(lambda: metrics(this)["hermes_gate_waiting"] == 1, what="one in the gate")
        conn = connect(authority, port)
        this.process.send_signal(signal.SIGTERM)
        with pytest.raises(pika.exceptions.ConnectionClosed):
            while True:
                conn.process_data_events(1)
        this.stop(None)


def test_commands(node, authority, tmp_path):
    """hermes itself by https and amqps, on a node that has no other ports and asks for certificates."""
    amqps, https = free_port(), free_port()
    this = node(settings(authority, amqps, "  verify: required", rest="management: {tls_port: %d}" % https),
                args=["--port", "0", "--management-port", "0"])
    ca, (cert, key) = authority.ca, files(authority, "guest")
    url, amqp = "https://localhost:%d" % https, "amqps://guest:guest@localhost:%d/" % amqps
    mine = ["--ca-file", ca, "--cert-file", cert, "--key-file", key]

    def said(*args):
        # the system's authorities: none, which are also quicker to read than those of Debian
        done = this.cli(*args, env={"SSL_CERT_FILE": str(key), "SSL_CERT_DIR": str(tmp_path)})
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    done = this.cli("status", "--url", url, *mine)
    assert done.returncode == 0 and "healthy" in done.stdout, done.stdout + done.stderr
    both = tmp_path / "both.pem"
    both.write_bytes(cert.read_bytes() + key.read_bytes())
    done = this.cli("list", "queues", "--url", "https://127.0.0.1:%d" % https, "--ca-file", ca, "--cert-file", both)
    assert done.returncode == 0, done.stderr
    load = ["bench", "--count", "500", "--size", "20,70000", "--publishers", "2"]
    for command in (load, ["publish", "-k", "q", "-b", "hello", "--declare"], ["get", "q"]):
        done = this.cli(*command, "--amqp", amqp, *mine)
        assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    assert "self-signed certificate in certificate chain" in said("status", "--url", url)
    assert "peer cert verification failed" in said("get", "q", "--amqp", amqp, "--cert-file", cert, "--key-file", key)
    closed = "amqps://guest:guest@localhost:%d/" % free_port()
    assert "cannot reach localhost port" in said("get", "q", "--amqp", closed, *mine)
    assert "self-signed certificate in certificate chain" in said("bench", "--amqp", amqp, "--cert-file", cert, "--key-file", key)
    # mostly "certificate required"; a reset may come before it
    assert "the connection broke: " in said("bench", "--amqp", amqp, "--ca-file", ca)
    assert "IP address mismatch" in said("status", "--url", url.replace("localhost", "[::1]"), *mine)
    assert "without an answer" in said("status", "--url", url, "--ca-file", ca)
    assert "--ca-file: /nowhere: " in said("status", "--url", url, "--ca-file", "/nowhere")
    assert "--key-file: " in said("status", "--url", url, "--ca-file", ca, "--cert-file", cert)
