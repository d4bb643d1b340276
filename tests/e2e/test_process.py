"""The process: settings, options, environment, signals, exit status, log (README, hermes(1))."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

import wire
from node import BINARY, SLOW, TOP, Node, clean_env, free_port, hermes, wait_for


def check(tmp_path, text, env=None, name="hermes.yml"):
    """`hermes server --check` over these settings."""
    path = tmp_path / name
    path.write_text(text)
    return hermes("server", "--check", "-c", path, "-d", tmp_path / "data", env=env)


def refused(done, *pieces, status=2):
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    for piece in pieces:
        assert re.search(piece, done.stderr), (piece, done.stderr)


# --------------------------------------------------------------------------
# --check and what is wrong in a file
# --------------------------------------------------------------------------
def test_check_accepts_and_starts_nothing(tmp_path):
    done = check(tmp_path, "node: {name: one, port: 5672}\nlog: {level: debug}\n")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "data").exists()


def test_check_of_an_empty_file(tmp_path):
    assert check(tmp_path, "").returncode == 0


def test_shipped_settings_need_nothing():
    done = hermes("server", "--check", "-c", TOP / "etc" / "hermes.yml")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text, pieces", [
    ("node:\n  lisen: '::'\n", [r"hermes\.yml:2:\d+: .*lisen", r"nearest.*listen"]),
    ("nod: {port: 1}\n", [r"hermes\.yml:1:\d+: .*'nod'", r"'node'"]),
    ("node:\n\n  port: soon\n", [r"hermes\.yml:3:\d+: .*port"]),
    ("node:\n  port: 65536\n", [r"hermes\.yml:2:\d+: .*port.*65535"]),
    ("node:\n  port: -1\n", [r"hermes\.yml:2:\d+: .*port"]),
    ("node: [1, 2]\n", [r"hermes\.yml:1:\d+: "]),
    ("node:\n  port: {a: b}\n", [r"hermes\.yml:2:\d+: .*port"]),
    ("node:\n  port: 1\n  port: 2\n", [r"hermes\.yml:3:\d+: .*port"]),
    ("log:\n  level: loud\n", [r"hermes\.yml:2:\d+: .*level"]),
    ("tcp:\n  nodelay: perhaps\n", [r"hermes\.yml:2:\d+: .*nodelay"]),
    ("memory:\n  limit: 12XB\n", [r"hermes\.yml:2:\d+: .*limit"]),
    ("limits:\n  handshake: 3 fortnights\n", [r"hermes\.yml:2:\d+: .*handshake"]),
    ("limits:\n  channel_max: 65536\n", [r"hermes\.yml:2:\d+: .*channel_max"]),
    ("node: {port: 1\n", [r"hermes\.yml:\d+:\d+: "]),
    ("node:\n\tport: 1\n", [r"hermes\.yml:2:\d+: "]),
    ("a: 1\n---\nb: 2\n", [r"hermes\.yml:"]),
    ("[" * 3000, [r"hermes\.yml:1:\d+: "]),
    ("node: &a\n  port: 5672\nlog: *a\n", [r"hermes\.yml:"]),
    ("node:\n  name: ''\n", [r"hermes\.yml:2:\d+: .*name"]),
], ids=["misspelt key", "misspelt section", "no number", "too large", "negative", "list", "map", "twice",
        "level", "bool", "size", "time", "channel_max", "unclosed", "tab", "two documents", "deep",
        "alias", "empty name"])
def test_wrong_settings(tmp_path, text, pieces):
    refused(check(tmp_path, text), *pieces)


def test_all_errors_are_reported(tmp_path):
    done = check(tmp_path, "node:\n  prt: 1\nlog:\n  level: loud\nlimits:\n  queues: x\n")
    refused(done, r"hermes\.yml:2:\d+: ", r"hermes\.yml:4:\d+: ", r"hermes\.yml:6:\d+: ")


def test_missing_file(tmp_path):
    done = hermes("server", "--check", "-c", tmp_path / "none.yml")
    refused(done, r"none\.yml.*No such file")


def test_file_too_large(tmp_path):
    refused(check(tmp_path, "# " + "x" * (2 << 20) + "\n"), r"hermes\.yml")


@pytest.mark.parametrize("text", ["tls:\n  port: 5671\n", "management:\n  tls_port: 15671\n",
                                  "prometheus:\n  tls_port: 15691\n"], ids=lambda text: text.split(":")[0])
def test_ports_for_tls_need_a_certificate(tmp_path, text):
    refused(check(tmp_path, text), r"tls\.certificate: is needed where a port for TLS is opened")


# --------------------------------------------------------------------------
# ${VAR}, environment, options
# --------------------------------------------------------------------------
def test_variable_that_is_not_set(tmp_path):
    done = check(tmp_path, "node:\n  name: x\nlog:\n  file: ${HERMES_TEST_NO_SUCH}\n")
    refused(done, r"hermes\.yml:4:\d+: .*HERMES_TEST_NO_SUCH")


@pytest.mark.parametrize("env, name", [({}, "fallback"), ({"HERMES_TEST_NAME": "given"}, "given")])
def test_variable_with_default(node, env, name):
    this = node("node: {name: '${HERMES_TEST_NAME:-fallback}'}\n", env=env)
    assert re.search(r"agent is ready, node=%s\b" % name, this.log)


def test_variable_injects_no_yaml(tmp_path):
    done = check(tmp_path, "log:\n  file: ${HERMES_TEST_FILE}\n",
                 env={"HERMES_TEST_FILE": "a\n  level: nonsense"})
    assert done.returncode == 0, done.stderr
    assert re.search(r"^log\.level +info$", done.stdout, re.M)


def test_a_name_that_is_no_text_is_refused(tmp_path):
    done = hermes("server", "--check", "-d", tmp_path / "data", env={"HERMES_NODE_NAME": os.fsdecode(b"a\xff")})
    refused(done, r"HERMES_NODE_NAME: has control characters")


def test_environment(tmp_path):
    """HERMES_CONFIG_FILE, HERMES_NODE_NAME, HERMES_DATA_DIR stand in for the options."""
    config = tmp_path / "other.yml"
    port = free_port()
    config.write_text("node: {port: %d, name: from-file}\nmanagement: {port: %d}\nprometheus: {port: 0}\n" % (port, free_port()))
    this = Node(tmp_path / "n", data=False, env={
        "HERMES_CONFIG_FILE": str(config), "HERMES_NODE_NAME": "from-env",
        "HERMES_DATA_DIR": str(tmp_path / "dir")})
    this.args = ["server"]
    this.port = port
    this.start()
    try:
        assert re.search(r"agent is ready, node=from-env\b", this.log)
        assert (tmp_path / "dir").is_dir()
        this.raw().close()
        this.stop()
    finally:
        this.kill()


def test_options_override_environment_and_file(node):
    this = node("node: {name: from-file}\n", args=["--node-name", "from-option"],
                env={"HERMES_NODE_NAME": "from-env"})
    assert re.search(r"agent is ready, node=from-option\b", this.log)


@pytest.mark.parametrize("args, pieces", [
    (["--prometheus-port", "70000"], ["prometheus-port"]),
    (["--port", "70000"], ["port"]),
    (["--port", "x"], ["port"]),
    (["--port"], ["port"]),
    (["--prot", "1"], ["prot", "--port"]),
    (["--log-level", "loud"], ["log-level"]),
    (["surplus"], ["surplus"]),
])
def test_wrong_options(tmp_path, args, pieces):
    done = hermes("server", "-d", tmp_path / "data", "--check", *args)
    refused(done, *pieces)


def test_management_port_0_is_closed(node):
    this = node(args=["--management-port", "0"])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", this.management_port), 2).close()
    this.raw().close()


def test_listen_address(node):
    this = node(args=["--listen", "127.0.0.1"], metrics=True)
    this.raw().close()
    with socket.socket(socket.AF_INET6) as sock, pytest.raises(OSError):
        sock.connect(("::1", this.port))
    said = re.findall(r"(\w+) listens? on (\S+) port (\d+)$", this.log, re.M)
    assert said == [("amqp", "127.0.0.1", str(this.port)), ("management", "127.0.0.1", str(this.management_port)),
                    ("metrics", "127.0.0.1", str(this.metrics_port))]


def test_listen_on_a_name(node):
    """All addresses that it has and the machine too; one that is none of either says why."""
    this = node("node:\n  listen: localhost\nmanagement:\n  listen: [localhost, 127.0.0.1]\n"
                "prometheus:\n  listen: localhost\n", metrics=True)
    this.raw().close()
    said = re.findall(r"(\w+) listens? on (\S+) port (\d+)$", this.log, re.M)
    assert {("amqp", "127.0.0.1", str(this.port)), ("management", "127.0.0.1", str(this.management_port)),
            ("metrics", "127.0.0.1", str(this.metrics_port))} <= set(said)
    assert {address for _, address, _ in said} <= {"127.0.0.1", "::1"} and len(said) == len(set(said))
    this.stop()
    name = "a" * 70         # a part of a name has no more than 63, so that nobody is asked
    reason = "hermes server: cannot listen on '%s': as a name it is not known: " % name
    for settings, args in [("", ["--listen", name]), ("management:\n  listen: %s\n" % name, [])]:
        this = node(settings, args=args, ready=False)
        this.stop(None, status=1)
        assert reason in this.log, this.log


def test_both_families_by_default(node):
    if not os.path.exists("/proc/net/if_inet6") or not open("/proc/net/if_inet6").read():
        hosts = ["127.0.0.1"]
    else:
        hosts = ["127.0.0.1", "::1"]
    this = node()
    for host in hosts:
        conn = wire.Conn(host, this.port)
        conn.handshake("guest", "guest", "/")
        conn.close()


# --------------------------------------------------------------------------
# Accounts
# --------------------------------------------------------------------------
def refused_login(this, user, password):
    conn = this.tcp()
    conn.start()
    conn.start_ok(user, password)
    with pytest.raises(wire.ConnectionClosed) as info:
        conn.await_tune()
    assert info.value.code == 403


@pytest.mark.parametrize("user", ["guest", "admin"])
def test_default_accounts(node, user):
    this = node()
    this.raw(user, user).close()
    refused_login(this, user, "wrong")


def test_default_user_from_environment(node):
    this = node(env={"HERMES_DEFAULT_USER": "app", "HERMES_DEFAULT_PASS": "s3cret"})
    this.raw("app", "s3cret").close()
    refused_login(this, "guest", "guest")
    assert "s3cret" not in this.log


def test_default_user_from_settings(node):
    this = node("default_user: {name: app, password: s3cret}\n")
    this.raw("app", "s3cret").close()
    refused_login(this, "admin", "admin")


def test_topology_from_settings(node):
    this = node("exchanges: [{name: orders, vhost: /, type: topic, durable: true}]\n"
                "queues: [{name: created, vhost: /, durable: true, auto_delete: false}]\n"
                "bindings: [{source: orders, destination: created, routing_key: 'order.#', vhost: /}]\n")
    conn = this.raw()
    ch = conn.channel()
    ch.publish("orders", "order.new", b"one")
    assert ch.get_wait("created").body == b"one"
    conn.close()


# --------------------------------------------------------------------------
# Start and stop
# --------------------------------------------------------------------------
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_with_0(node, sig):
    this = node()
    this.stop(sig)


def test_clients_are_told_of_the_stop(node):
    this = node()
    conn = this.raw()
    this.process.send_signal(signal.SIGTERM)
    exc = conn.expect_connection_close(320)
    assert exc.text.startswith("CONNECTION_FORCED")
    conn.abort()
    this.stop(None)


def test_status_refuses_what_means_nothing_to_it(node):
    this = node()
    done = this.cli("status", "--url", this.http_url, "--vhost", "orders")
    assert done.returncode == 2 and "unknown option '--vhost'" in done.stderr


def test_a_signal_while_it_stops_never_kills(node):
    """Two signals close together: the usual end or the end at once, but an end of our own, with its last line."""
    for n in range(30):
        this = node()
        this.process.send_signal(signal.SIGTERM)
        time.sleep(n * 0.0001)
        this.process.send_signal(signal.SIGTERM)
        assert this.wait() in (0, 1)
        assert re.search("stopped|stopping at once", this.log)
        this.process = None


@pytest.mark.alone
def test_second_signal_ends_at_once(node):
    this = node()
    conn = this.raw()               # never answers the close
    this.process.send_signal(signal.SIGTERM)
    conn.sock.settimeout(5 * SLOW)
    assert conn.sock.recv(1)
    assert this.running()
    began = time.monotonic()
    this.stop(signal.SIGTERM, status=1)
    assert time.monotonic() - began < 3 * SLOW
    conn.abort()


def test_a_silent_client_does_not_hold_up_the_stop(node):
    this = node()
    conn = this.raw()
    began = time.monotonic()
    this.stop()
    assert time.monotonic() - began < 8 * SLOW
    conn.abort()


def test_port_refuses_before_and_after(node):
    this = node()
    this.raw().close()
    this.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", this.port), 2)


def test_pid_file(node, tmp_path):
    path = tmp_path / "hermes.pid"
    path.write_text("999999999\n")            # a stale one is replaced
    this = node(args=["--pid-file", str(path)])
    wait_for(lambda: path.exists() and path.read_text().strip() == str(this.pid), what="pid file")
    this.stop()
    assert not path.exists()


@pytest.mark.parametrize("which", ["port", "management_port"])
def test_taken_port(node, which):
    first = node()
    second = node(start=False, **{which: getattr(first, which)})
    second.start(ready=False)
    second.stop(None, status=1)
    assert "port %d" % getattr(first, which) in second.log
    assert re.search("is taken|in use", second.log)
    assert "agent is ready" not in second.log
    first.raw().close()


def test_data_folder_in_use(node):
    first = node()
    second = node(start=False)
    second.args[second.args.index("-d") + 1] = first.data
    second.start(ready=False)
    second.stop(None, status=1)
    assert str(first.data) in second.log and "in use" in second.log


def test_data_folder_that_cannot_be_made(node, tmp_path):
    (tmp_path / "file").write_text("")
    this = node(start=False)
    this.args[this.args.index("-d") + 1] = tmp_path / "file" / "data"
    this.start(ready=False)
    this.stop(None, status=1)
    assert str(tmp_path / "file") in this.log


def test_data_folder_is_private_and_free_again(node):
    this = node()
    assert this.data.stat().st_mode & 0o077 == 0
    this.stop()
    this.start()


def test_kill_leaves_the_folder_usable(node):
    this = node()
    this.kill()
    this.start()


def test_sighup_reloads(node):
    this = node("log: {level: info}\n")
    conn = this.raw()
    this.config.write_text("log: {level: nonsense}\n")
    this.process.send_signal(signal.SIGHUP)
    this.await_log(r"hermes\.yml:1:\d+: .*level")
    this.await_log("the ones in force stay")
    this.config.write_text("log: {level: debug}\nnode: {name: other}\n")
    this.process.send_signal(signal.SIGHUP)
    this.await_log("settings were read again$")
    assert re.search("node.name was changed; it takes effect at the next start", this.log)
    assert not re.search("node.listen was changed", this.log)
    assert " debug " not in this.log[:this.log.index("read again")]
    this.tcp().close()
    this.await_log(" debug ")
    # The node lives, and so does the connection.
    conn.channel().sync()
    conn.close()


#: other values for settings whose default does not show one
OTHER = {"node.name": "other", "node.listen": "127.0.0.1", "tls.port": "5671", "tls.certificate": "/x.pem", "tls.key": "/x.key",
         "tls.ca": "/ca.pem", "proxy.trusted": "10.0.0.0/8", "management.listen": "127.0.0.1", "management.path_prefix": "/h",
         "management.tls_port": "15671", "prometheus.listen": "127.0.0.1", "prometheus.tls_port": "15691", "log.file": "/tmp/x.log",
         "store.sync": "never", "store.journal_file_size": "16MiB", "memory.limit": "41%", "memory.spill": "51%",
         "memory.deduplication": "26%", "disk.min_free": "6%", "limits.connections": "100", "limits.frame_max": "65536",
         "default_user.name": "other", "default_user.password": "other", "default_user.vhost": "other",
         "definitions.file": "/x.json", "compat.product": "Other"}
#: what the command line says here
GIVEN = {"node.port", "management.port", "prometheus.port", "store.path"}


def waiting_settings():
    """Those of the manual's list (which is made of the program's table) that SIGHUP leaves alone, each with another value."""
    text = (TOP / "contrib/manual/settings.md").read_text()
    for key, default, rest in re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \| (.*?) \| (.*) \|$", text, re.M):
        default = default.strip("`")
        words = re.search(r"\(((?:`[^`]+`(?:, )?)+)\)$", rest)
        number = re.fullmatch(r"(\d+)(.*)", default)
        if "*Read again on SIGHUP.*" in rest or key in GIVEN:
            continue
        if key in OTHER:
            yield key, OTHER[key]
        elif default in ("true", "false"):
            yield key, "false" if default == "true" else "true"
        elif words:
            yield key, next(word for word in re.findall(r"`([^`]+)`", words.group(1)) if word != default)
        else:
            assert number, "what else may %s be?" % key
            yield key, "%d%s" % (int(number.group(1)) + 1, number.group(2))


def test_sighup_says_what_waits_for_a_restart(node):
    changed = dict(waiting_settings())
    assert len(changed) > 40 and {"tls.ca", "proxy.trusted", "management.tls_port"} < set(changed)
    this = node()
    sections = {}
    for key, value in changed.items():
        sections.setdefault(key.split(".")[0], {})[key.split(".")[1]] = value
    this.config.write_text("".join("%s:\n%s" % (section, "".join("  %s: '%s'\n" % one for one in keys.items()))
                                   for section, keys in sections.items()))
    this.process.send_signal(signal.SIGHUP)
    this.await_log("settings were read again$|settings not taken")
    said = re.findall(r"warning (\S+) was changed; it takes effect at the next start$", this.log, re.M)
    assert sorted(said) == sorted(changed), this.log


def test_sighup_opens_the_log_file_again(node, tmp_path):
    path = tmp_path / "hermes.log"
    this = node(start=False)
    this.config.write_text("log: {file: '%s'}\n" % path)
    this.start(ready=False)
    wait_for(lambda: path.exists() and "agent is ready" in path.read_text(), what="log file")
    path.rename(tmp_path / "old.log")
    this.process.send_signal(signal.SIGHUP)
    wait_for(path.exists, what="new log file")
    this.stop()
    assert path.read_text() != ""


def test_sighup_waits_for_no_pipe(node, tmp_path):
    """Settings and log through pipes whose other ends are gone: the node goes on."""
    this = node(start=False)
    pipe = tmp_path / "log.pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    this.config.write_text("log: {file: '%s'}\n" % pipe)
    text = this.config.read_bytes()
    this.config.unlink()
    os.mkfifo(this.config)
    this.start(ready=False)
    this.config.write_bytes(text)
    conn = wait_for(lambda: try_raw(this), what="a connection")
    os.close(reader)
    for _ in range(2):
        this.process.send_signal(signal.SIGHUP)
        for _ in range(5):
            conn.channel().sync()
            time.sleep(0.05)
    conn.close()
    this.stop()


def try_raw(this):
    try:
        return this.raw()
    except OSError:
        return None


def test_json_log(node):
    this = node("log: {format: json}\n")
    conn = this.tcp()
    conn.start()
    conn.start_ok("guest", 'wrong"\n\x01')
    with pytest.raises(wire.ConnectionClosed):
        conn.await_tune()
    this.await_log("guest")
    this.stop()
    lines = [json.loads(line) for line in this.log.splitlines()]
    assert len(lines) >= 2
    for line in lines:
        assert {"time", "level", "message"} <= set(line)
    assert any(line["message"].startswith("agent is ready") for line in lines)


def test_text_log_cannot_be_forged(node):
    this = node()
    conn = this.tcp()
    conn.start()
    conn.start_ok("eve\n2030-01-01 forged line", "x")
    with pytest.raises(wire.ConnectionClosed):
        conn.await_tune()
    this.await_log("eve")
    assert not re.search(r"^2030-01-01 forged", this.log, re.M)


def test_refused_login_names_peer_user_and_reason(node):
    this = node()
    conn = this.tcp()
    here = "%s:%d" % conn.sock.getsockname()
    conn.start()
    conn.start_ok("nobody", "wrong")
    with pytest.raises(wire.ConnectionClosed):
        conn.await_tune()
    line = this.await_log(r"^.*%s.*refused.*$" % re.escape(here)).group(0)
    assert "nobody" in line and "wrong" not in this.log


def test_amqp_1_0_header_is_named(node):
    this = node()
    conn = this.tcp()
    conn.send_raw(b"AMQP\x03\x01\x00\x00")
    assert conn.read_until_eof() == b"AMQP\x00\x00\x09\x01"
    this.await_log(r"1[.-]0")


@pytest.mark.parametrize("sig", [signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT])
def test_a_crash_leaves_a_backtrace(node, sig):
    this = node()
    this.process.send_signal(sig)
    assert this.wait() == -sig
    this.process = None         # this once no clean end is asked for
    assert re.search(r"SIG|signal", this.log)
    assert len(re.findall(r"\[0x[0-9a-f]+\]", this.log)) >= 2, this.log[-2000:]


def test_a_crash_is_in_the_log_file_too(node, tmp_path):
    path = tmp_path / "hermes.log"
    this = node(start=False)
    this.config.write_text("log: {file: '%s'}\n" % path)
    this.start(ready=False)
    wait_for(lambda: path.exists() and "agent is ready" in path.read_text(), what="log file")
    path.rename(tmp_path / "old.log")
    this.process.send_signal(signal.SIGHUP)
    wait_for(lambda: path.exists() and "read again" in path.read_text(), what="new log file")
    this.process.send_signal(signal.SIGSEGV)
    assert this.wait() == -signal.SIGSEGV
    this.process = None
    for text in (path.read_text(), this.log):
        assert "crashed: SIGSEGV" in text and len(re.findall(r"\[0x[0-9a-f]+\]", text)) >= 2
    assert "crashed" not in (tmp_path / "old.log").read_text()


def test_a_crash_ends_although_nobody_reads_standard_error(node, tmp_path):
    this = node(start=False)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write, b"x" * 512)
    os.set_blocking(write, True)
    process = subprocess.Popen([str(BINARY)] + [str(a) for a in this.args], env=this.env, stderr=write)
    try:
        os.close(write)
        wait_for(lambda: try_raw(this), what="a connection").abort()
        process.send_signal(signal.SIGSEGV)
        assert process.wait(15) == -signal.SIGSEGV
    finally:
        process.kill()
        process.wait()
        os.close(read)


@pytest.mark.alone
def test_few_descriptors_are_no_reason_to_spin(node):
    """Out of descriptors: no new connections, no busy loop, all as before when there is room again."""
    this = node(nofile=96)
    conn = this.raw()
    socks = []
    try:
        for _ in range(150):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", this.port))
            socks.append(sock)
        time.sleep(0.5)
        before = this.cpu_s()
        time.sleep(1)
        assert this.cpu_s() - before < 0.3
        conn.channel().sync()           # who is connected goes on
    finally:
        for sock in socks:
            sock.close()
    conn.close()

    def again():
        try:
            this.raw().close()
            return True
        except (OSError, wire.Eof, wire.Timeout):
            return False

    wait_for(again, what="a new connection")
    assert this.descriptors() < 96


@pytest.mark.alone
def test_a_crowd_at_the_management_port_takes_all_descriptors(node):
    """The node lives, spins not, and the silent crowd makes room for who asks something."""
    this = node(nofile=96)
    conn = this.raw()
    socks = []
    try:
        for _ in range(150):
            socks.append(socket.create_connection(("127.0.0.1", this.management_port), 5 * SLOW))
        this.await_log("accept on the management port failed")
        before = this.cpu_s()
        time.sleep(0.5)
        assert this.cpu_s() - before < 0.15 * SLOW
        conn.channel().sync()
        began = time.monotonic()
        done = hermes("status", "--url", this.http_url)
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - began < 10 * SLOW
    finally:
        for sock in socks:
            sock.close()
    conn.close()


def test_descriptors_are_raised_to_the_hard_limit(node):
    this = node()
    with open("/proc/%d/limits" % this.pid) as lines:
        line = next(x for x in lines if x.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    assert soft == hard


# --------------------------------------------------------------------------
# The other commands
# --------------------------------------------------------------------------
LATER_COMMANDS = ["trace"]


def test_version():
    done = hermes("version")
    assert done.returncode == 0
    assert re.search(r"hermes \d+\.\d+\.\d+", done.stdout, re.I)
    for lib in ("rabbitmq", "libevent", "yaml", "openssl", "pcre2", "jansson"):
        assert lib in done.stdout.lower(), lib


def test_version_as_json():
    lines = hermes("version").stdout.splitlines()
    said = json.loads(hermes("version", "--json").stdout)
    assert lines[0] == "hermes " + said.pop("hermes")
    assert [line.split(None, 1) for line in lines[1:]] == [list(row) for row in said.items()]


def test_help_names_every_command():
    done = hermes("help")
    assert done.returncode == 0
    for word in ["server", "version", "status", "publish", "get", "help"]:
        assert re.search(r"\b%s\b" % word, done.stdout), word


@pytest.mark.parametrize("word", ["server", "version", "status", "publish", "get", "help"])
def test_help_of_a_command(word):
    done = hermes("help", word)
    assert done.returncode == 0
    assert "hermes %s" % word in done.stdout


@pytest.mark.parametrize("args, pieces", [
    (["sevrer"], ["sevrer", "server"]),
    (["help", "pubish"], ["pubish", "publish"]),
    (["publish", "--boddy", "x"], ["boddy", "--body"]),
    (["get"], ["get"]),
    ([], ["hermes"]),
    (["--nonsense"], ["nonsense"]),
])
def test_wrong_usage(args, pieces):
    done = hermes(*args)
    assert done.returncode == 2, (done.stdout, done.stderr)
    for piece in pieces:
        assert piece in done.stderr + done.stdout


@pytest.mark.parametrize("word", LATER_COMMANDS)
def test_commands_that_come_later(word):
    refused(hermes(word), word, "later version")


def test_status(node):
    this = node("node: {name: n1}\n")
    done = hermes("status", "--url", this.http_url, "--user", "guest", "--password", "guest")
    assert done.returncode == 0, done.stderr
    assert "n1" in done.stdout
    assert str(this.port) in done.stdout


def test_status_as_json(node):
    this = node("node: {name: n1}\n")
    done = hermes("status", "--json", env={"HERMES_URL": this.http_url, "HERMES_USER": "guest",
                                           "HERMES_PASSWORD": "guest"})
    assert done.returncode == 0, done.stderr
    assert "n1" in json.dumps(json.loads(done.stdout))


def test_health_needs_no_account(node):
    """What a container's health check asks: whoever the accounts are."""
    this = node("users: [{username: other, password: secret}]\n")
    done = hermes("status", "--health", "--url", this.http_url)
    assert (done.returncode, done.stdout) == (0, "healthy\n"), done.stderr
    assert json.loads(hermes("status", "--health", "--json", "--url", this.http_url).stdout) == {"status": "ok"}
    assert hermes("status", "--url", this.http_url).returncode == 1
    assert hermes("status", "--health", "--url", "127.0.0.1:1").returncode == 1


def test_status_of_a_node_that_is_not_well(node):
    this = node("memory: {limit: 8MiB, spill: 0%}\n")
    url = "http://guest:guest@127.0.0.1:%d/" % this.management_port
    assert hermes("status", "--url", url).returncode == 0
    conn = this.fill_memory()

    def unwell():
        done = hermes("status", "--url", url)
        return done if done.returncode == 1 else None

    done = wait_for(unwell, what="exit status 1")
    quick = hermes("status", "--health", "--url", url)
    assert (quick.returncode, quick.stdout[:11]) == (1, "not healthy"), quick.stdout
    assert re.search(r"^node +.*not healthy: memory alarm", done.stdout, re.M)
    assert re.search(r"^alarms +memory", done.stdout, re.M)
    conn.abort()


def test_status_of_a_node_whose_disk_is_full(node):
    """As its limit has it; a publisher is told so."""
    this = node("disk: {min_free: 1000000GiB}\n")
    env = {"HERMES_URL": this.http_url, "HERMES_AMQP": this.amqp_url}
    done = wait_for(lambda: [one for one in [hermes("status", env=env)] if one.returncode == 1], what="exit status 1")[0]
    assert re.search(r"^node +.*not healthy: disk alarm", done.stdout, re.M)
    assert re.search(r"^alarms +disk$", done.stdout, re.M)
    assert re.search(r"^disk +[0-9.]+ \S+ free; publishers are held back below 976.6 TiB$", done.stdout, re.M), done.stdout
    publisher = subprocess.Popen([str(BINARY), "publish", "--declare", "--key", "q", "--body", "x", "--persistent"], text=True,
                                 env=clean_env(env), stderr=subprocess.PIPE)
    try:
        assert publisher.stderr.readline() == "hermes publish: the node holds publishers back: low on disk space; waiting\n"
    finally:
        publisher.kill()
        publisher.wait(30 * SLOW)


@pytest.mark.parametrize("url, args, fine", [
    ("http://guest:guest@127.0.0.1:%d", [], True),
    ("http://guest@127.0.0.1:%d", ["--password", "guest"], True),
    ("http://nobody@127.0.0.1:%d", [], False),
    ("http://nobody:x@127.0.0.1:%d", ["--user", "guest", "--password", "guest"], True),
    ("http://%%67uest:guest@127.0.0.1:%d/", [], True),
])
def test_status_logs_in_as_the_url_says(node, url, args, fine):
    this = node()
    done = hermes("status", "--url", url % this.management_port, *args)
    assert done.returncode == (0 if fine else 1), (done.stdout, done.stderr)
    assert fine or "refused user 'nobody'" in done.stderr


def test_status_without_a_node():
    done = hermes("status", "--url", "http://127.0.0.1:%d" % free_port())
    assert done.returncode == 1
    assert "cannot reach 127.0.0.1" in done.stderr


def test_status_with_a_wrong_password(node):
    this = node()
    done = hermes("status", "--url", this.http_url, "--user", "guest", "--password", "wrong")
    assert done.returncode == 1
    assert "wrong" not in done.stderr.replace("wrong user or password", "").replace("wrong password", "")


def test_publish_and_get(node):
    this = node()
    url = ["--amqp", this.amqp_url]
    done = hermes("publish", *url, "--declare", "--key", "jobs", "--body", "first\nline")
    assert done.returncode == 0, done.stderr
    assert "published" in done.stdout
    done = hermes("get", *url, "jobs")
    assert (done.returncode, done.stdout) == (0, "first\nline\n")
    done = hermes("get", *url, "jobs")
    assert done.returncode == 1
    assert "empty" in done.stdout + done.stderr


def test_publish_from_standard_input_with_properties(node):
    this = node()
    url = ["--amqp", this.amqp_url]
    done = hermes("publish", *url, "--declare", "--key", "jobs", "--persistent", "--header", "a=b",
                  "--property", "content_type=text/plain", "--count", "3", stdin="from a pipe")
    assert done.returncode == 0, done.stderr
    conn = this.raw()
    ch = conn.channel()
    for _ in range(3):
        event = ch.get("jobs")
        assert event.body == b"from a pipe"
        assert event.props["delivery_mode"] == 2
        assert event.props["content_type"] == "text/plain"
        assert event.headers == {"a": "b"}
    assert ch.get("jobs") is None
    conn.close()


def test_publish_that_is_not_routed(node):
    this = node()
    done = hermes("publish", "--amqp", this.amqp_url, "--key", "nowhere", "--body", "x")
    assert done.returncode == 1
    assert "NO_ROUTE" in done.stderr


def test_get_requeue_leaves_it(node):
    this = node()
    url = ["--amqp", this.amqp_url]
    hermes("publish", *url, "--declare", "--key", "jobs", "--body", "x")
    for _ in range(2):
        assert hermes("get", *url, "jobs", "--requeue").stdout == "x\n"


def test_get_of_a_queue_that_is_not_there(node):
    this = node()
    done = hermes("get", "--amqp", this.amqp_url, "none")
    assert done.returncode == 1
    assert "NOT_FOUND" in done.stderr


@pytest.mark.parametrize("command", [["publish", "--key", "x", "--body", "y"], ["get", "x"]],
                         ids=["publish", "get"])
def test_clients_without_a_node(command):
    port = free_port()
    done = hermes(*command, "--amqp", "amqp://guest:guest@127.0.0.1:%d/" % port)
    assert done.returncode == 1
    assert str(port) in done.stderr and "refused" in done.stderr


def test_publish_to_the_management_port(node):
    """Wrong, and likely: HTTP waits for the end of a request, so the client has to end it."""
    this = node()
    done = hermes("publish", "--amqp", "amqp://guest:guest@127.0.0.1:%d/" % this.management_port,
                  "--key", "x", "--body", "y")
    refused(done, r"127\.0\.0\.1:%d does not answer as an AMQP" % this.management_port, "AMQP port", status=1)


# --------------------------------------------------------------------------
# amqp-tools: somebody else's programs
# --------------------------------------------------------------------------
def test_amqp_tools(node):
    assert shutil.which("amqp-publish"), "amqp-tools is not installed"
    this = node()

    def tool(name, *args, **kw):
        return subprocess.run([name, "-u", this.amqp_url.rstrip("/")] + list(args), env=clean_env(), timeout=20 * SLOW,
                              capture_output=True, check=True, **kw).stdout

    assert tool("amqp-declare-queue", "-q", "tools").strip() == b"tools"
    tool("amqp-publish", "-r", "tools", "-b", "by hand")
    assert tool("amqp-get", "-q", "tools") == b"by hand"
    tool("amqp-publish", "-r", "tools", "-b", "to a consumer")
    assert tool("amqp-consume", "-q", "tools", "-c", "1", "cat") == b"to a consumer"
    tool("amqp-delete-queue", "-q", "tools")


def test_binary_is_there():
    assert BINARY.is_file() and os.access(BINARY, os.X_OK)
