"""Limits, runtime parameters and hashes of passwords from the shell. One node for all."""
# SPDX-License-Identifier: Apache-2.0
import base64
import hashlib
import json

import pika
import pytest

from shell import broker, cli, rows      # noqa: F401 (fixtures)


def test_limits_of_a_vhost(broker, cli):
    assert cli("vhost", "add", "small", "--max-queues", "1", "--max-connections", "2") == \
        "made vhost 'small'\nchanged max-connections of vhost 'small'\nchanged max-queues of vhost 'small'\n"
    conn = broker.pika(vhost="small")
    conn.channel().queue_declare("one", durable=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue limit in vhost 'small' \\(1\\) is reached"):
        conn.channel().queue_declare("two")
    assert cli("vhost", "set", "small", "--max-queues", "2") == "changed max-queues of vhost 'small'\n"
    conn.channel().queue_declare("two")
    conn.close()
    limits = {"vhost": "small", "value.max-connections": "2", "value.max-queues": "2"}
    assert rows(cli("list", "vhost-limits")) == rows(cli("list", "vhost-limits", "--vhost", "small")) == [limits]
    cli("vhost", "set", "small", "--max-queues", "none", "--description", "still small")
    assert rows(cli("list", "vhost-limits")) == [{**limits, "value.max-queues": ""}]
    assert [r["description"] for r in rows(cli("vhost", "list")) if r["name"] == "small"] == ["still small"]
    cli("vhost", "set", "small", "--max-connections", "-1")
    assert rows(cli("list", "vhost-limits")) == []
    assert "vhost 'none' is not there" in cli("vhost", "set", "none", "--max-queues", "1", status=1)
    cli("vhost", "delete", "small")


def test_limits_of_a_user(broker, cli):
    cli("user", "add", "few", "--max-connections", "0", "--password-stdin", stdin="word")
    cli("permission", "set", "few", ".*", ".*", ".*")
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match="user connection limit"):
        broker.pika("few", "word")
    assert cli("user", "set", "few", "--max-connections", "none", "--max-channels", "1") == \
        "took away max-connections of user 'few'\nchanged max-channels of user 'few'\n"
    assert rows(cli("list", "user-limits")) == [{"user": "few", "value.max-connections": "", "value.max-channels": "1"}]
    # the tags leave the limits, and both the password
    cli("user", "set", "few", "--tags", "own", "--max-channels", "2")
    assert json.loads(cli("user", "list", "--json"))[-1]["limits"] == {"max-channels": 2}
    broker.pika("few", "word").close()
    assert "there is no user 'none'" in cli("user", "set", "none", "--max-channels", "1", status=1)
    cli("user", "delete", "few")


def test_parameters(cli):
    assert cli("parameter", "set", "a/ü", '{"x": [1, "5"]}', "--global") == "made global parameter 'a/ü'\n"
    assert cli("parameter", "set", "a/ü", "words", "--global") == "changed global parameter 'a/ü'\n"
    assert {"name": "a/ü", "value": "words"} in rows(cli("parameter", "list", "--global"))
    assert cli("parameter", "delete", "a/ü", "--global") == "deleted global parameter 'a/ü'\n"
    assert "there is no global parameter 'a/ü'" in cli("parameter", "delete", "a/ü", "--global", status=1)
    cli("vhost", "add", "p")
    # limits are what can be set so today
    cli("parameter", "set", "vhost-limits", "limits", '{"max-queues": 7}', "--vhost", "p")
    cli("policy", "set", "o", "^x", "-s", "max-length=1", "--operator")
    there = {"vhost": "p", "component": "vhost-limits", "name": "limits", "value": '{"max-queues":7}'}
    everywhere = rows(cli("parameter", "list"))
    assert there in everywhere and {r["vhost"] for r in everywhere} == {"/", "p"}
    assert rows(cli("list", "parameters", "--vhost", "p")) == [there]
    assert rows(cli("list", "parameters", "--vhost", "p", "--columns", "value.max-queues")) == [{"value.max-queues": "7"}]
    assert json.loads(cli("parameter", "list", "--vhost", "p", "--json", "--columns", "name")) == [{"name": "limits"}]
    cli("parameter", "delete", "vhost-limits", "limits", "--vhost", "p")
    assert "there is no parameter 'limits' of component 'vhost-limits' in vhost 'p'" in \
        cli("parameter", "delete", "vhost-limits", "limits", "--vhost", "p", status=1)
    assert "component shovel not found" in cli("parameter", "set", "shovel", "x", "1", status=1)
    cli("policy", "delete", "o", "--operator")
    cli("vhost", "delete", "p")


@pytest.mark.parametrize("how", [[], ["sha256"], ["rabbit_password_hashing_sha512"]])
def test_a_hash_moves_from_user_to_user(broker, cli, how):
    algorithm = (how or ["sha256"])[-1].rsplit("_", 1)[-1]
    salt = b"\1\2\3\4"
    digest = base64.b64encode(salt + hashlib.new(algorithm, salt + b"word").digest()).decode()
    option = ["--hashing-algorithm", how[0]] if how else []
    cli("user", "add", "moved", "--password-hash", digest, *option)
    cli("permission", "set", "moved", ".*", ".*", ".*")
    broker.pika("moved", "word").close()
    cli("user", "passwd", "moved", "--new-password", "other")
    cli("user", "passwd", "moved", "--password-hash", digest, *option)
    broker.pika("moved", "word").close()
    cli("user", "delete", "moved")


def test_a_hash_that_is_none(cli):
    assert "user 'h': that is not base64" in cli("user", "add", "h", "--password-hash", "???", status=1)
    assert "user 'h': hashing_algorithm is not known" in \
        cli("user", "add", "h", "--password-hash", "AAAA", "--hashing-algorithm", "sha1", status=1)


@pytest.mark.parametrize("word, truth", [("on", True), ("off", False)])
def test_tracing(cli, word, truth):
    assert cli("vhost", "set", "/", "--tracing", word) == "changed vhost '/'\n"
    assert json.loads(cli("list", "vhosts", "--json"))[0]["tracing"] is truth


@pytest.mark.parametrize("words, said", [
    (["vhost", "set", "/", "--max-queues", "few"], "--max-queues: 'few' is not a number"),
    (["vhost", "add", "v", "--max-queues", "-5"], "--max-queues: '-5' is not a number"),
    (["user", "set", "guest", "--max-channels", "9999999999999999999"], "--max-channels: 9999999999999999999 is out of range"),
    (["user", "set", "guest"], "nothing to set: --tags"),
    (["vhost", "set", "/", "--tracing", "maybe"], "--tracing: it is on or off"),
    (["user", "set", "guest", "--max-queues", "1"], "unknown option '--max-queues'"),
    (["user", "add", "u", "--password-hash", "a", "--no-password"], "--password-hash does not go together with --no-password"),
    (["user", "add", "u", "--password-hash", "a", "--password-stdin"], "--password-hash does not go together with a password"),
    (["user", "add", "u", "--password-hash", ""], "the hash is empty"),
    (["user", "add", "u", "--no-password", "--hashing-algorithm", "md5"], "--hashing-algorithm goes with --password-hash"),
    (["parameter", "set", "a", "b"], "without --global it is: hermes parameter set COMPONENT NAME VALUE"),
    (["parameter", "set", "a", "b", "c", "--global"], "with --global it is: hermes parameter set NAME VALUE --global"),
    (["parameter", "delete", "a"], "hermes parameter delete COMPONENT NAME"),
    (["parameter", "delete", "a", "--global", "--vhost", "/"], "--vhost does not go with it"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_usage(cli, words, said):
    assert said in cli(*words, status=2)
    assert [r["name"] for r in rows(cli("user", "list"))] == ["admin", "guest"]
