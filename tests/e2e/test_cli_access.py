"""Users, vhosts, permissions, policies and definitions from the shell; what is wrong usage. One node for all."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import socket
import threading

import pika
import pytest

from api import Api
from node import SLOW, hermes
from shell import at_terminal, broker, cli, rows      # noqa: F401 (fixtures)

ODD = "a/b?c#d e+f%2F&*ä中"        # a name that has to be encoded in a path


def test_a_user_from_beginning_to_end(broker, cli):
    vhost = ODD + "v"
    assert cli("vhost", "add", vhost, "--description", "für alle") == "made vhost '%s'\n" % vhost
    assert cli("user", "add", ODD, "--password-stdin", "--tags", "monitoring, own",
               stdin="first\n") == "made user '%s'\n" % ODD
    assert cli("permission", "set", ODD, "^q", ".*", "", "--vhost", vhost).startswith("made permission of ")
    assert [r for r in rows(cli("list", "users")) if r["name"] == ODD] == [{"name": ODD, "tags": "monitoring,own"}]
    assert {"vhost": vhost, "user": ODD, "configure": "^q", "write": ".*", "read": ""} in rows(cli("permission", "list"))
    conn = broker.pika(ODD, "first", vhost)
    conn.channel().queue_declare("q")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        conn.channel().queue_declare("other")
    conn.close()
    # new tags leave the password, a new password the tags
    assert cli("user", "set", ODD, "--tags", "management") == "changed user '%s'\n" % ODD
    broker.pika(ODD, "first", vhost).close()
    cli("user", "passwd", ODD, env={"HERMES_NEW_PASSWORD": "second"})
    as_odd = {"HERMES_USER": ODD, "HERMES_PASSWORD": "second"}
    assert rows(cli("list", "vhosts", env=as_odd, status=0))[0]["name"] == vhost
    assert "may not do this: it lacks the tag administrator" in cli("user", "list", env=as_odd, status=1)
    assert "refused user" in cli("user", "list", env={**as_odd, "HERMES_PASSWORD": "first"}, status=1)
    assert rows(cli("user", "list"))[-1] == {"name": ODD, "tags": "management"}
    cli("user", "passwd", ODD, "--no-password")
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        broker.pika(ODD, "second", vhost)
    cli("permission", "delete", ODD, "--vhost", vhost)
    assert "there is no permission of user" in cli("permission", "delete", ODD, "--vhost", vhost, status=1)
    assert cli("user", "delete", ODD) == "deleted user '%s'\n" % ODD
    assert cli("user", "delete", ODD, status=1) == "hermes user: there is no user '%s'\n" % ODD
    assert cli("vhost", "delete", vhost) == "deleted vhost '%s'\n" % vhost
    assert "there is no vhost" in cli("vhost", "delete", vhost, status=1)


def test_add_changes_nothing_that_is_there(broker, cli):
    assert "user 'guest' is there already" in cli("user", "add", "guest", "--no-password", status=1)
    broker.pika().close()
    assert "vhost '/' is there already" in cli("vhost", "add", "/", status=1)
    assert "vhost 'none' is not there" in cli("vhost", "set", "none", "--tags", "a", status=1)


def test_a_vhost_keeps_what_set_is_not_told(cli):
    cli("vhost", "add", "keeps", "--description", "one", "--default-queue-type", "quorum")
    cli("vhost", "set", "keeps", "--tags", "a,b")
    assert {"name": "keeps", "description": "one", "default_queue_type": "quorum", "tags": "a,b"} in \
        rows(cli("vhost", "list"))
    cli("vhost", "delete", "keeps")


def test_passwords_come_from_many_places(broker, cli):
    for n, (args, kw) in enumerate([
            (["--new-password", "geheim ü"], {}),
            (["--password-stdin"], {"stdin": "geheim ü\r\n"}),
            ([], {"env": {"HERMES_NEW_PASSWORD": "geheim ü"}})]):
        cli("user", "add", "p%d" % n, "--tags", "management", *args, **kw)
        cli("list", "vhosts", env={"HERMES_USER": "p%d" % n, "HERMES_PASSWORD": "geheim ü"})
        cli("user", "delete", "p%d" % n)
    assert "the password is missing" in cli("user", "add", "p", status=2)
    assert "the password is empty" in cli("user", "add", "p", "--password-stdin", stdin="\n", status=2)
    assert "standard input has no line" in cli("user", "add", "p", "--password-stdin", stdin="", status=2)
    assert "standard input has no line" in cli("user", "add", "p", "--password-stdin", stdin="x" * 5000, status=2)
    assert "standard input has no line" in cli("user", "add", "p", "--password-stdin", stdin="a\0b\n", status=2)
    assert "do not go together" in cli("user", "add", "p", "--password-stdin", "--new-password", "a", status=2)
    assert "does not go together" in cli("user", "add", "p", "--no-password", "--password-stdin", status=2)
    assert "p" not in [r["name"] for r in rows(cli("user", "list"))]


def test_a_terminal_is_asked_and_shows_nothing(broker, cli):
    """And tables on it are aligned."""
    asked = [(b"New password: ", b"hidden\n"), (b"Once more: ", b"hidden\n")]
    status, said = at_terminal(broker, ["user", "add", "typed", "--tags", "management"], asked)
    assert status == 0 and b"made user 'typed'" in said and b"hidden" not in said
    cli("list", "vhosts", env={"HERMES_USER": "typed", "HERMES_PASSWORD": "hidden"})
    status, said = at_terminal(broker, ["user", "passwd", "typed"], [asked[0], (b"Once more: ", b"other\n")])
    assert status == 1 and b"the two are not the same" in said
    status, said = at_terminal(broker, ["user", "passwd", "typed"], [(b"New password: ", b"half\x03")])
    assert status == 1 and b"no password was typed" in said and b"half" not in said
    status, said = at_terminal(broker, ["list", "users"])
    assert status == 0 and b"name   tags\r\nadmin  administrator\r\n" in said
    cli("user", "set", "typed", "--tags", "\u009b31m\u202e,ü")
    status, said = at_terminal(broker, ["list", "users", "--json", "--columns", "tags"])
    assert status == 0 and b'"\\u009B31m\\u202E"' in said and said.isascii()
    cli("user", "delete", "typed")


def test_topic_permissions(cli):
    topic = ["--topic", "--exchange", "amq.topic"]
    assert cli("permission", "set", "guest", "^a", "^b", *topic).startswith("made topic permission of user 'guest' on ")
    assert rows(cli("permission", "list", "--topic")) == rows(cli("list", "topic-permissions", "--vhost", "/")) == [
        {"vhost": "/", "user": "guest", "exchange": "amq.topic", "write": "^a", "read": "^b"}]
    assert "--exchange NAME is missing" in cli("permission", "set", "guest", "a", "b", "--topic", status=2)
    assert "--exchange goes with --topic" in cli("permission", "set", "guest", "a", "b", "c", "--exchange", "x", status=2)
    assert "usage: hermes permission set" in cli("permission", "set", "guest", "a", "b", status=2)
    assert "invalid" in cli("permission", "set", "guest", "(", "b", *topic, status=1)
    cli("permission", "delete", "guest", *topic)
    assert rows(cli("list", "topic-permissions")) == []


@pytest.mark.parametrize("operator", [[], ["--operator"]], ids=["users'", "operators'"])
def test_policies(cli, operator):
    kind = "operator policy" if operator else "policy"
    assert cli("policy", "set", ODD, "^o\\.", "-s", "max-length=5", "--definition", '{"message-ttl": 1000}',
               "--priority", "-1", "--apply-to", "queues", *operator) == "made %s '%s' in vhost '/'\n" % (kind, ODD)
    assert cli("policy", "set", ODD, "^o\\.", "-s", "max-length=6", *operator).startswith("changed ")
    (row,) = rows(cli("policy", "list", *operator))
    assert row == {"vhost": "/", "name": ODD, "pattern": "^o\\.", "apply-to": row["apply-to"], "priority": "0",
                   "definition": '{"max-length":6}'}
    assert json.loads(cli("policy", "list", "--json", "--columns", "name,definition.max-length", *operator)) == [
        {"name": ODD, "definition": {"max-length": 6}}]
    said = cli("policy", "set", "bad", "a", "-s", "max-length=many", *operator, status=1)
    assert said.startswith("hermes policy: %s 'bad' in vhost '/': Validation failed " % kind) and said.count("\n") == 1
    assert "there is no vhost 'none'" in cli("policy", "list", "--vhost", "none", *operator, status=1)
    cli("policy", "delete", ODD, *operator)
    assert rows(cli("policy", "list", *operator)) == []
    assert "there is no %s" % kind in cli("policy", "delete", ODD, *operator, status=1)


def test_values_of_a_definition_have_types(cli):
    cli("policy", "set", "types", "^x", "-s", 'dead-letter-exchange="5"', "-s", "dead-letter-routing-key=a=b",
        "-s", "max-length=5", "-s", "overflow=drop-head")
    ((row,)) = json.loads(cli("policy", "list", "--json"))
    assert row["definition"] == {"dead-letter-exchange": "5", "dead-letter-routing-key": "a=b", "max-length": 5,
                                 "overflow": "drop-head"}
    cli("policy", "delete", "types")


@pytest.mark.parametrize("words, said", [
    (["policy", "lsit"], "there is no 'lsit'; nearest: 'list'"),
    (["user", "frobnicate"], "there is no 'frobnicate'; there is add, set, passwd, delete, list"),
    (["list", "queue"], "there is no 'queue'; nearest: 'queues'"),
    (["list"], "something is missing"),
    (["user", "add"], "something is missing; usage: hermes user add NAME"),
    (["user", "list", "me"], "there are words too many; usage: hermes user list [OPTIONS]"),
    (["user", "list", "--no-password"], "--no-password says nothing to 'hermes user list'"),
    (["user", "set", "guest"], "nothing to set: --tags"),
    (["vhost", "set", "/"], "nothing to set"),
    (["vhost", "add", "v", "--json"], "--json says nothing to 'hermes vhost add'"),
    (["list", "users", "--vhost", "/"], "--vhost says nothing to 'hermes list users'"),
    (["list", "users", "--colums", "name"], "unknown option '--colums'; nearest: '--columns'"),
    (["list", "users", "--columns", ","], "--columns names none"),
    (["list", "users", "--columns", "name," * 65], "--columns: more than 64"),
    (["policy", "set", "a", "b"], "the policy says nothing"),
    (["policy", "set", "a", "b", "--set", "max-length"], "it is --set NAME=VALUE"),
    (["policy", "set", "a", "b", "--definition", "{"], "--definition is not JSON"),
    (["policy", "set", "a", "b", "--definition", "[1]"], "--definition is no JSON object"),
    (["policy", "set", "a", "b", "-s", "a=1", "--priority", "high"], "--priority: 'high' is not a whole number"),
    (["policy", "set", "a", b"\xff", "-s", "a=1"], "the pattern is not UTF-8"),
    (["user", "list", "--url", "ftp://x"], "an address is http://HOST:PORT or https://HOST:PORT"),
    (["user", "list", "--url", "ftp://me:hidden@x"], "hermes user: --url: an address is http://HOST:PORT or https://HOST:PORT\n"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_usage(cli, words, said):
    words = [os.fsdecode(w) for w in words]
    assert said in cli(*words, status=2)


def test_what_a_node_says_cannot_speak_to_the_terminal(broker):
    done = hermes("get", "--amqp", "amqp://127.0.0.1:%d" % broker.port, "\x1b[31mred\n")
    assert done.returncode == 1
    assert done.stderr.startswith("hermes get: ") and "no queue '\\x1b[31mred '" in done.stderr


def test_names_cannot_speak_to_the_terminal(cli):
    name = "\x1b[2Jred\n\u202eevil"
    cli("policy", "set", name, "^$", "-s", "max-length=1")
    line = cli("policy", "list", "--columns", "name", "--no-header")
    assert line == "\\x1b[2Jred\\x0a\\u202eevil\n"
    assert json.loads(cli("policy", "list", "--json"))[0]["name"] == name
    assert cli("policy", "delete", name) == "deleted policy '\\x1b[2Jred\\x0a\\u202eevil' in vhost '/'\n"


def test_import_reports_each_object(broker, cli, tmp_path):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({
        "vhosts": [{"name": "/"}, {"name": "shop"}],
        "policies": [{"vhost": "shop", "name": "fine", "pattern": "^a", "definition": {"max-length": 1}},
                     {"vhost": "shop", "name": "bad", "pattern": "(", "definition": {"max-length": 1}}],
        "queues": [{"name": "q", "vhost": "nowhere", "durable": True, "auto_delete": False, "arguments": {}}]}))
    done = hermes("import", file, env={"HERMES_URL": broker.http_url})
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("hermes import: policy 'bad' in vhost 'shop': ")
    assert lines[1].startswith("hermes import: queue 'q' in vhost 'nowhere': ")
    assert done.stdout == "imported: 3, failed: 2\n"
    assert [r["name"] for r in rows(cli("policy", "list", "--vhost", "shop"))] == ["fine"]
    only = json.dumps({"policies": [{"name": "second", "pattern": "^b", "definition": {"max-length": 2}}]})
    assert cli("import", "-", "--vhost", "shop", stdin=only) == "imported all\n"
    assert [r["name"] for r in rows(cli("policy", "list", "--vhost", "shop"))] == ["fine", "second"]
    assert "vhost 'none': there is no such vhost" in cli("import", "--vhost", "none", stdin=only, status=1)
    cli("vhost", "delete", "shop")


@pytest.mark.parametrize("text, said", [
    ("{\n\n oops", "definitions.json:3: "), ("[]", "holds no JSON object"), (None, "cannot read "),
    ('{"queues": [%s]}' % (" " * (21 << 20)), "limits.http_body, usually 20 MiB")], ids=lambda v: str(v)[:20])
def test_import_of_what_is_no_definitions(cli, tmp_path, text, said):
    file = tmp_path / "definitions.json"
    if text is not None:
        file.write_text(text)
    assert said in cli("import", file, status=1)


def test_a_node_that_is_not_there(broker):
    this = hermes("list", "users", "--url", "http://127.0.0.1:%d" % broker.port)
    assert this.returncode == 1 and "is it the management port?" in this.stderr
    assert hermes("user", "list", "--url", "http://127.0.0.1:1").returncode == 1


class Answer:
    """Something on a port that answers each request with the same bytes."""

    def __init__(self, data):
        self.data = data
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run)
        self.request = b""

    def run(self):
        conn, _ = self.listener.accept()
        with conn:
            conn.settimeout(20 * SLOW)
            while b"\r\n\r\n" not in self.request:
                self.request += conn.recv(65536)
            conn.sendall(self.data)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join()
        self.listener.close()


def http(status, body=b"", length=None):
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        status, len(body) if length is None else length, body)


@pytest.mark.parametrize("data, status, said", [
    (http(200, b'[{"name": "a\\u0000b", "tags": [1, {"x": 2.5}]}]'), 0, 'a\\x00b\t[1,{"x":2.5}]\n'),
    (http(200, b"[7, null, []]"), 0, "name\ttags\n" + 3 * "\t\n"),
    (http(200, b"{}"), 1, "the answer is no list"),
    (http(200, b"<html>"), 1, "the answer is not JSON"),
    (http(200, b'[{"name": "\xff"}]'), 1, "the answer is not JSON"),
    (http(200, b"[" * 5000), 1, "the answer is not JSON"),
    (http(200, b"[]", length=600 << 20), 1, "the answer is larger than 512 MiB"),
    (http(200, b"[", length=100), 1, "ended the connection without an answer"),
    (http(204), 1, "the answer is no list"),
    (http(302), 1, "GET /api/users?columns=name,tags: the node answered 302\n"),
    (http(500, b'{"error": "x", "reason": "\\u001b[31m\\nred\\n"}'), 1, "the node answered 500: \\x1b[31m red\n"),
    (http(503, b'{"reason": 7}'), 1, "the node answered 503\n"),
    (http(401, b'{"error": "not_authorised"}'), 1, "user 'guest' may not do this\n"),
    (b"220 mail\r\n", 1, "is it the management port?"),
    (b"", 1, "is it the management port?"),
], ids=lambda v: v.replace("\n", " ")[:40] if isinstance(v, str) else "")
def test_strange_answers(data, status, said):
    with Answer(data) as peer:
        done = hermes("list", "users", "--url", peer.url + "/prefix/")
    assert done.returncode == status, (done.stdout, done.stderr)
    assert said in (done.stdout if status == 0 else done.stderr)
    assert peer.request.startswith(b"GET /prefix/api/users?columns=name,tags HTTP/1.1\r\n")


def test_an_address_on_the_command_line_stands_above_the_environment(broker, cli):
    cli("declare", "queue", "addressed")
    cli("publish", "--amqp", broker.amqp_url, "--key", "addressed", "--body", "x")
    port = broker.amqp_url.rsplit(":", 1)[1].split("/")[0]
    other = {"HERMES_USER": "nobody", "HERMES_PASSWORD": "wrong", "HERMES_VHOST": "nowhere"}
    whole = "amqp://guest:guest@127.0.0.1:%s/%%2F" % port
    assert "x" in cli("get", "addressed", "--amqp", whole, env=other)
    refused = cli("get", "addressed", "--amqp", "amqp://127.0.0.1:%s/%%2F" % port, env=other, status=1)
    assert "does not let user 'nobody' in: wrong name or password" in refused
    assert "vhost 'nowhere'" in cli("get", "addressed", "--amqp", whole, "--vhost", "nowhere", status=1)


def test_a_default_account_with_another_password(broker):
    """It does not open without a word, and closes again with the password that everybody knows."""
    def passwd(word):
        done = hermes("user", "passwd", "admin", env={"HERMES_URL": broker.http_url, "HERMES_NEW_PASSWORD": word})
        assert done.returncode == 0
        return done.stderr

    def is_local():
        return Api(broker).get("users/admin")["loopback_only"]

    assert passwd("admin") == "" and is_local()
    assert passwd("another") == "hermes user: note: it may log in from every address now\n"
    assert not is_local()
    assert passwd("admin") == "" and is_local()
