"""Queues, exchanges, bindings, connections and definitions from the shell. One node for all."""
# SPDX-License-Identifier: Apache-2.0
import gzip
import json
import os
import stat

import pika
import pytest

from node import SLOW, wait_for
from shell import broker, cli, rows      # noqa: F401 (fixtures)

ODD = "a/b?c#d e+f%2F&*ä中"        # a name that has to be encoded in a path


def test_a_queue_from_beginning_to_end(broker, cli):
    assert cli("declare", "queue", ODD, "-a", "x-max-length=5", "--arguments", '{"x-overflow": "reject-publish"}') == \
        "made queue '%s' in vhost '/'\n" % ODD
    again = ["declare", "queue", ODD, "-a", "x-max-length=5", "-a", "x-overflow=reject-publish"]
    assert cli(*again) == "there already: queue '%s' in vhost '/'\n" % ODD
    said = cli("declare", "queue", ODD, status=1)
    assert "inequivalent arg 'x-max-length'" in said and said.count("\n") == 1
    ((row,)) = json.loads(cli("list", "queues", "--json", "--columns", "name,durable,auto_delete,arguments"))
    assert row == {"name": ODD, "durable": True, "auto_delete": False,
                   "arguments": {"x-max-length": 5, "x-overflow": "reject-publish"}}
    conn = broker.pika()
    channel = conn.channel()
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", ODD, b"x")
    assert rows(cli("list", "queues", "--columns", "name,messages_ready,type")) == [
        {"name": ODD, "messages_ready": "3", "type": "classic"}]
    said = cli("delete", "queue", ODD, "--if-empty", status=1)
    assert said.startswith("hermes delete: queue '%s' in vhost '/': " % ODD) and "not empty" in said
    assert cli("purge", ODD) == "purged queue '%s' in vhost '/'\n" % ODD
    channel.basic_consume(ODD, lambda *a: None)
    assert "in use" in cli("delete", "queue", ODD, "--if-unused", status=1)
    conn.close()
    assert cli("delete", "queue", ODD, "--if-unused", "--if-empty") == "deleted queue '%s' in vhost '/'\n" % ODD
    for words in (["delete", "queue"], ["purge"]):
        assert cli(*words, ODD, status=1) == "hermes %s: there is no queue '%s' in vhost '/'\n" % (words[0], ODD)


def test_kinds_of_queues_and_exchanges(cli):
    cli("declare", "queue", "kinds-quorum", "--type", "quorum")
    cli("declare", "queue", "kinds-short", "--transient", "--auto-delete")
    cli("declare", "exchange", "kinds-topic", "-t", "topic", "-a", "alternate-exchange=amq.fanout")
    cli("declare", "exchange", "kinds-inside", "--internal", "--transient")
    queues = {r["name"]: r for r in rows(cli("list", "queues", "--columns", "name,type,durable,auto_delete"))}
    assert queues["kinds-quorum"] == {"name": "kinds-quorum", "type": "quorum", "durable": "true", "auto_delete": "false"}
    assert queues["kinds-short"] == {"name": "kinds-short", "type": "classic", "durable": "false", "auto_delete": "true"}
    exchanges = {r["name"]: r for r in rows(cli("list", "exchanges"))}
    assert [exchanges["kinds-topic"][k] for k in ("type", "durable", "internal")] == ["topic", "true", "false"]
    assert [exchanges["kinds-inside"][k] for k in ("type", "durable", "internal")] == ["direct", "false", "true"]
    assert "" in exchanges and exchanges["amq.topic"]["vhost"] == "/"
    assert "unknown exchange type" in cli("declare", "exchange", "x", "--type", "tpoic", status=1)
    assert "user 'guest' may not do this: " in cli("declare", "queue", "amq.mine", status=1)
    for name in ("kinds-quorum", "kinds-short"):
        cli("delete", "queue", name)
    for name in ("kinds-topic", "kinds-inside"):
        cli("delete", "exchange", name, "--if-unused")


def test_bindings(cli):
    cli("declare", "exchange", ODD, "--type", "headers")
    cli("declare", "queue", "b q")
    assert cli("bind", ODD, "b q", "--key", ODD) == \
        "bound exchange '%s' to queue 'b q' with key '%s' in vhost '/'\n" % (ODD, ODD)
    arguments = ["-a", "x-match=any", "-a", "n=5"]
    cli("bind", ODD, "b q", *arguments)
    cli("bind", ODD, "amq.fanout", "--to-exchange", "-k", "#")
    assert "in use" in cli("delete", "exchange", ODD, "--if-unused", status=1)

    def there():
        return sorted((r["destination"], r["destination_type"], r["routing_key"], r["arguments"])
                      for r in rows(cli("list", "bindings")) if r["source"] == ODD)

    keyed, matched = ("b q", "queue", ODD, ""), ("b q", "queue", "", '{"n":5,"x-match":"any"}')
    assert there() == sorted([("amq.fanout", "exchange", "#", ""), matched, keyed])
    said = cli("unbind", ODD, "b q", "--key", "", status=1)
    assert "there is no binding of exchange" in said and "of others there are some" in said
    assert "there is no binding of exchange" in cli("unbind", ODD, "b q", "--to-exchange", status=1)
    cli("unbind", ODD, "b q", "--arguments", '{"n": 5, "x-match": "any"}')
    assert matched not in there() and keyed in there()
    assert cli("unbind", ODD, "b q", "-k", ODD).startswith("unbound exchange ")
    assert there() == [("amq.fanout", "exchange", "#", "")]
    cli("unbind", ODD, "amq.fanout", "--to-exchange", "-k", "#")
    assert cli("bind", ODD, "nowhere", status=1) == "hermes bind: exchange '%s' to queue 'nowhere' with key '' in vhost '/': " \
        "no queue 'nowhere' in vhost '/'\n" % ODD
    cli("delete", "queue", "b q")
    cli("delete", "exchange", ODD, "--if-unused")


def test_what_is_connected(broker, cli):
    conn = broker.pika(client_properties={"connection_name": "mine ü"})
    channel = conn.channel()
    channel.queue_declare("connected", exclusive=True)
    channel.basic_qos(prefetch_count=7)
    channel.basic_consume("connected", lambda *a: None, consumer_tag="tag ä")
    ((row,)) = rows(wait_for(lambda: cli("list", "connections")))
    assert (row["user"], row["vhost"], row["channels"], row["user_provided_name"]) == ("guest", "/", "1", "mine ü")
    name = row["name"]
    ((row,)) = rows(cli("list", "channels"))
    assert (row["name"], row["consumer_count"]) == (name + " (1)", "1")
    ((row,)) = rows(cli("list", "consumers"))
    assert (row["queue.name"], row["consumer_tag"], row["prefetch_count"]) == ("connected", "tag ä", "7")
    assert row["channel_details.name"] == name + " (1)"
    ((row,)) = json.loads(cli("list", "consumers", "--json", "--columns", "queue.name,active"))
    assert row == {"queue": {"name": "connected"}, "active": True}
    assert cli("delete", "connection", name, "--reason", "upgrade ü") == "closed connection '%s'\n" % name
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="upgrade ü"):
        conn.process_data_events(10 * SLOW)
    assert cli("delete", "connection", name, status=1) == "hermes delete: there is no connection '%s'\n" % name
    for what in ("connections", "channels", "consumers"):
        assert rows(cli("list", what)) == []


def test_vhosts_part_what_is_listed(cli):
    cli("vhost", "add", ODD)
    in_odd = {"HERMES_VHOST": ODD}
    cli("declare", "queue", "only", "--vhost", ODD)
    cli("declare", "queue", "slash")
    assert {(r["vhost"], r["name"]) for r in rows(cli("list", "queues"))} >= {(ODD, "only"), ("/", "slash")}
    for words, env in ((["--vhost", ODD], None), ([], in_odd)):
        assert [r["name"] for r in rows(cli("list", "queues", *words, env=env))] == ["only"]
        for what in ("connections", "channels", "consumers"):
            assert rows(cli("list", what, *words, env=env)) == []
        assert {r["vhost"] for what in ("exchanges", "bindings") for r in rows(cli("list", what, *words, env=env))} == {ODD}
    assert "there is no vhost 'none'" in cli("list", "queues", "--vhost", "none", status=1)
    # what belongs to no vhost does not mind the environment
    assert len(rows(cli("list", "vhosts", env=in_odd))) > 1
    assert cli("delete", "queue", "only", env=in_odd) == "deleted queue 'only' in vhost '%s'\n" % ODD
    cli("delete", "queue", "slash")
    cli("vhost", "delete", ODD)


@pytest.mark.parametrize("words, said", [
    (["declare", "queeu", "q"], "there is no 'queeu'; nearest: 'queue'"),
    (["declare", "queue"], "something is missing"),
    (["declare", "queue", "q", "--internal"], "--internal says nothing to 'hermes declare queue'"),
    (["declare", "queue", "q", "-a", "=5"], "it is --argument NAME=VALUE"),
    (["declare", "queue", "q", "--arguments", "5"], "--arguments is not JSON"),
    (["declare", "exchange", "x", "--type", b"\xff"], "--type is not UTF-8"),
    (["delete", "connection", "x", "--reason", "a\nX-Other: b"], "--reason: it is one line of text"),
    (["delete", "queue", "x", "--reason", "a"], "--reason says nothing to 'hermes delete queue'"),
    (["delete", "exchange", "x", "--if-empty"], "--if-empty says nothing to 'hermes delete exchange'"),
    (["bind", "x"], "something is missing"),
    (["bind", "x", "q", "--kye", "a"], "unknown option '--kye'; nearest: '--key'"),
    (["unbind", "x", "q", "-a", "b"], "it is --argument NAME=VALUE"),
    (["purge", "q", "q"], "one word too many"),
    (["declare", "queue", ""], "a name is empty"),
    (["delete", "exchange", "", "--if-unused"], "a name is empty"),
    (["bind", "", "q"], "a name is empty"),
    (["unbind", "x", ""], "a name is empty"),
    (["list", "queues", "--vhost", ""], "a name is empty"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_usage(cli, words, said):
    assert said in cli(*[os.fsdecode(w) for w in words], status=2)


def test_export_and_import_are_a_round_trip(broker, cli, tmp_path):
    cli("vhost", "add", ODD, "--description", "there and back")
    cli("declare", "queue", "q" + ODD, "-a", "x-max-length=5", "--vhost", ODD)
    cli("declare", "exchange", "x", "--type", "topic", "--vhost", ODD)
    cli("bind", "x", "q" + ODD, "-k", "a.*", "--vhost", ODD)
    cli("policy", "set", "p", "^q", "-s", "message-ttl=1000", "--vhost", ODD)
    cli("user", "add", "moved", "--password-stdin", "--tags", "management", stdin="word")
    cli("permission", "set", "moved", "a", "b", "c", "--vhost", ODD)
    file = tmp_path / "all.json"
    assert cli("export", file) == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    whole = json.loads(file.read_text())
    assert json.loads(cli("export")) == json.loads(cli("export", "-")) == whole
    packed = tmp_path / "definitions.json.gz"
    assert cli("export", packed) == ""
    assert (json.loads(gzip.decompress(packed.read_bytes())), packed.stat().st_mode & 0o777) == (whole, 0o600)
    part = cli("export", "--vhost", ODD)
    assert {q["name"] for q in json.loads(part)["queues"]} == {"q" + ODD}
    assert json.loads(cli("export", env={"HERMES_VHOST": ODD})) == whole    # a backup is never less than all by accident
    cli("vhost", "delete", ODD)
    cli("user", "delete", "moved")
    assert cli("import", file) == "imported all\n"
    assert json.loads(cli("export")) == whole
    cli("list", "vhosts", env={"HERMES_USER": "moved", "HERMES_PASSWORD": "word"})
    cli("delete", "queue", "q" + ODD, "--vhost", ODD)
    cli("import", "--vhost", ODD, stdin=part)
    assert cli("export", "--vhost", ODD) == part
    assert "vhost 'none': there is no such vhost" in cli("export", "--vhost", "none", status=1)
    assert "cannot write /dev/full: No space left" in cli("export", "/dev/full", status=1)
    assert "cannot write " in cli("export", tmp_path / "no" / "such", status=1)
    cli("vhost", "delete", ODD)
    cli("user", "delete", "moved")
