"""hermes top: once, and at a terminal. One node for all."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from node import Node
from shell import at_terminal, broker, cli, rows      # noqa: F401 (fixtures)


@pytest.fixture(scope="module")
def queues(broker):
    """a with one message, b with three of which two are out, c without."""
    conn = broker.raw()
    chan = conn.channel()
    for name, n in (("a", 1), ("b", 3), ("c", 0)):
        chan.declare(name)
        for _ in range(n):
            chan.publish("", name, b"x")
        chan.wait_count(name, n)
    taker = conn.channel()
    for _ in range(2):
        taker.get("b", no_ack=False)
    yield
    conn.close()


def queues_of(text):
    head, table = text.split("\n\n")
    return head, rows(table)


def test_once(cli, queues):
    head, table = queues_of(cli("top", "--once"))
    assert ", healthy\nmessages: 2 ready, 2 unacked; in " in head and "queues: 3; memory: " in head
    assert [(r["queue"], r["ready"], r["unacked"], r["vhost"], r["state"]) for r in table] == [
        ("b", "1", "2", "/", "running"), ("a", "1", "0", "/", "running"), ("c", "0", "0", "/", "running")]
    for order, want in (("name", ["a", "b", "c"]), ("unacked", ["b"])):
        assert [r["queue"] for r in queues_of(cli("top", "--once", "--sort", order, "-n", len(want)))[1]] == want
    for order in ("in", "out", "consumers"):
        assert len(queues_of(cli("top", "--once", "--sort", order))[1]) == 3
    cli("vhost", "add", "empty")
    assert queues_of(cli("top", "--once", "--vhost", "empty"))[1] == []
    cli("vhost", "delete", "empty")


def test_a_drained_node(cli, broker, queues):
    cli("drain", "--no-wait", "--reason", "two\u202edisks")
    assert ", drained: two\\u202edisks\n" in cli("top", "--once")
    cli("resume")


def test_at_a_terminal(broker, queues):
    status, said = at_terminal(broker, ["top", "-i", "100ms"], [(b"[b backlog]", b"n"), (b"[n name]", b"x"), (b"q ends", b"q")])
    text = said.decode()
    assert status == 0 and text.endswith("\x1b[?7h\x1b[?25h")
    last = text.rsplit("\x1b[H", 1)[1]
    assert "[n name]" in last and [line.split()[-1][0] for line in last.split("\r\n")[5:8]] == ["a", "b", "c"]


@pytest.mark.parametrize("key", [b"\x03", b"\x1c"], ids=["ctrl-c", "quit"])
def test_ended_by_a_signal(broker, queues, key):
    """At once, and it leaves the terminal in order."""
    status, said = at_terminal(broker, ["top", "-i", "1h"], [(b"q ends", key)])
    assert status == 0 and said.endswith(b"\x1b[?7h\x1b[?25h")


def test_the_node_goes(tmp_path):
    """It ends, with the reason, and leaves the terminal in order."""
    this = Node(tmp_path / "node").start()

    def answers():
        yield b"q ends", b""
        this.stop()

    status, said = at_terminal(this, ["top", "-i", "100ms"], answers())
    assert status == 1 and b"\r\n\x1b[Khermes top: " in said and said.endswith(b"\x1b[?7h\x1b[?25h")


@pytest.mark.parametrize("words, why", [
    ([], "this is no terminal"),
    (["--once", "--sort", "size"], "there is backlog"),
    (["--once", "--interval", "soon"], "is not a time"),
    (["-n", "5"], "with --once only"),
    (["--once", "-n", "501"], ""),
])
def test_what_is_wrong(cli, words, why):
    assert why in cli("top", *words, status=2)
