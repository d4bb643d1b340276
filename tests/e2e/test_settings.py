"""Lists of hermes.yml: vhosts, users, policies and the rest, at the start and on SIGHUP (README, hermes(1))."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import signal
import urllib.error

import pika
import pytest

from node import TOP, Node, hermes, sanitized, wait_for

ADMIN = "- {username: boss, password: b0ss, tags: [administrator], permissions: ['.*', '.*', '.*'], vhost: [/, shop]}\n"
APP = "- {username: app, password: '${APP_PASSWORD}', permissions: ['^app', '^app', '.*'], vhost: shop}\n"
CAP = "- {name: cap, vhost: shop, pattern: ^app, apply-to: queues, definition: {max-length: 2}}\n"
SHOP = "vhosts: [{name: shop, description: orders, limits: {max-queues: 5}}]\n"
ALL = SHOP + "users:\n" + ADMIN + APP + "policies:\n" + CAP + (
    "exchanges: [{name: app-in, vhost: shop, type: topic}]\n"
    "queues: [{name: app-q, vhost: shop}]\n"
    "bindings: [{source: app-in, destination: app-q, vhost: shop, routing_key: '#'}]\n")


def length(node, publish, queue="app-q"):
    """How many messages of so many the queue keeps; it is empty then."""
    conn = node.pika("app", "s3cret", "shop")
    ch = conn.channel()
    ch.confirm_delivery()
    ch.queue_purge(queue)
    for _ in range(publish):
        ch.basic_publish("app-in", "any", b"x", pika.BasicProperties(delivery_mode=2))
    count = ch.queue_declare(queue, passive=True).method.message_count
    ch.queue_purge(queue)
    conn.close()
    return count


def refused(node, user, password, vhost="/"):
    with pytest.raises((pika.exceptions.ProbableAuthenticationError, pika.exceptions.ProbableAccessDeniedError,
                        pika.exceptions.ConnectionClosedByBroker)):
        node.pika(user, password, vhost).close()


def reload(node, text):
    """SIGHUP with these settings; what the log says of it."""
    node.config.write_text(text)
    before = len(node.log)
    count = len(re.findall("settings were read again|ones in force stay", node.log))
    node.process.send_signal(signal.SIGHUP)
    node.await_log("settings were read again|ones in force stay", timeout=20, count=count + 1)
    return node.log[before:]


@pytest.fixture
def shop(node):
    return node(ALL, env={"APP_PASSWORD": "s3cret"})


# --------------------------------------------------------------------------
# The start
# --------------------------------------------------------------------------
def check_all(this):
    assert length(this, 5) == 2
    conn = this.pika("app", "s3cret", "shop")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as e:
        conn.channel().queue_declare("other")
    assert e.value.reply_code == 403
    conn.close()
    refused(this, "app", "s3cret", "/")
    refused(this, "app", "wrong", "shop")
    refused(this, "guest", "guest")          # there are users: nobody needs the default ones
    refused(this, "admin", "admin")
    assert this.http("/api/vhosts/shop", user="boss", password="b0ss")["description"] == "orders"


def test_all_at_the_start(shop):
    check_all(shop)
    assert "s3cret" not in shop.log
    for _ in range(2):
        shop.kill()
        shop.start()
        check_all(shop)


def test_a_start_that_changes_nothing_keeps_the_hashes(shop):
    def hashes():
        return {u["name"]: u["password_hash"] for u in shop.http("/api/users", user="boss", password="b0ss")}

    before = hashes()
    assert set(before) == {"app", "boss"}
    shop.stop()
    shop.start()
    assert hashes() == before
    reload(shop, ALL)
    assert hashes() == before


def test_an_imported_hash(node):
    this = node("users: [{username: app, password_hash: c2FsdEPmxZqf1dmnTmRshtWe00Zl8KH7e/jeGk7s9sKyB2UQ,\n"
                "         permissions: ['', '', '']}]\n")
    this.pika("app", "imported").close()
    refused(this, "app", "s3cret")


def test_users_stand_in_place_of_stored_default_accounts(node):
    this = node()
    this.pika().close()
    this.stop()
    this.config.write_text("users:\n- {username: app, password: x, permissions: ['', '', '']}\n")
    this.start()
    this.pika("app", "x").close()
    refused(this, "guest", "guest")
    this.stop()
    this.config.write_text("")      # says nothing of users
    this.start()
    this.pika("app", "x").close()
    this.stop()
    this.config.write_text("users: []\n")
    this.start()
    this.pika().close()
    refused(this, "app", "x")


BROKEN = ("users:\n"
          "- {username: bad, password: x, permissions: ['(', '', '']}\n"
          "- {username: good, password: x, permissions: ['', '', '.*']}\n"
          "policies:\n"
          "- {name: bad, pattern: a, definition: {max-lenght: 1}}\n"
          "- {name: good, pattern: a, definition: {max-length: 1}}\n"
          "queues:\n"
          "- {name: bad, vhost: nowhere}\n"
          "- {name: stream, arguments: {x-queue-type: stream}}\n"
          "- {name: good}\n")
SAID = [r"hermes\.yml:2:\d+: permissions of user 'bad': ", r"hermes\.yml:5:\d+: policy 'bad': .*max-lenght",
        r"hermes\.yml:8:\d+: no vhost 'nowhere' here", r"hermes\.yml:9:\d+: queue 'stream': "]


def test_what_is_refused_is_said_and_the_rest_is_there(node):
    this = node(BROKEN)
    for line in SAID:
        assert re.search(line, this.log), line
    assert "entries of the settings that were refused: 4" in this.log
    conn = this.pika("good", "x")
    conn.channel().queue_declare("good", passive=True)
    conn.close()
    refused(this, "bad", "x")            # there, without rights


def test_check_names_what_the_broker_refuses(tmp_path):
    file = tmp_path / "hermes.yml"
    file.write_text(BROKEN)
    done = hermes("server", "--check", "-c", file)
    assert done.returncode == 2
    for line in SAID:
        assert re.search(line, done.stderr), line
    file.write_text("users:\n- {username: a, pasword: s3cret}\npolicies:\n- {name: p, priority: high}\n")
    done = hermes("server", "--check", "-c", file)
    assert done.returncode == 2
    assert re.search(r"hermes\.yml:2:\d+: unknown key 'pasword' in users; nearest: 'password'", done.stderr)
    assert re.search(r"hermes\.yml:4:\d+: policy 'p': priority must be a whole number", done.stderr)
    assert "s3cret" not in done.stderr


def check(tmp_path, text, env=None):
    """What --check says of it, a line each but the last one, which is a summary."""
    file = tmp_path / "hermes.yml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = hermes("server", "--check", "-c", file, env=env)
    assert done.returncode == 2 and done.stdout == ""
    return [line.partition("hermes.yml:")[2] or line for line in done.stderr.splitlines()[:-1]]


def test_check_says_all_in_one_run(tmp_path):
    """An unknown key, an entry that is there twice and one that is refused hide nothing that comes after them."""
    long = "q" * 255
    said = check(tmp_path, "node: {prt: 1}\n"
                 "vhosts:\n- name: v\n- name: v\n"
                 "queues:\n- {name: a, durabel: true}\n- {name: amq.x, vhost: v}\n- {name: ok, vhost: none}\n"
                 "bindings:\n- {source: amq.topic, destination: a}\n"
                 "- {source: amq.topic, destination: %s, vhost: v}\n" % long
                 + "policies: [{name: p, pattern: a, apply-to: %s, definition: {max-length: 1}}]\n" % long)
    assert said == ["1:8: unknown key 'prt' in node; nearest: 'port'",
                    "4:3: vhost 'v' stands here a second time; first in line 3",
                    "6:13: unknown key 'durabel' in queues; nearest: 'durable'",
                    "7:4: queue 'amq.x': ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'",
                    "8:4: no vhost 'none' here; add it to vhosts",
                    "11:4: binding from 'amq.topic': NOT_FOUND - no queue '%s' in vhost 'v'" % long,
                    "12:13: policy 'p': PRECONDITION_FAILED - Validation failed apply-to '%s' unrecognised; should be "
                    "'queues', 'classic_queues', 'quorum_queues', 'streams', 'exchanges' or 'all'" % long]
    said = check(tmp_path, "".join("k%d: 1\n" % n for n in range(70)) + "queues: [{name: amq.x}]\n")
    assert (len(said), said[0], said[-1]) == (51, "1:1: unknown key 'k0'", "and 21 more")


@pytest.mark.parametrize("text, said", [
    (b"#" * (10 << 20), r"^ is larger than 1 MiB$"),
    (b"a: " + b"[" * 500000, r"^1:35: nested deeper than 32$"),
    (b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", r"^1:4: anchors"),
    (b"node: {port: 0}\0\n", r"^1:16: byte 0x00 is a control character$"),
    (b"node:\r\n\tport: 0\r\n", r"^2:1: .*a tab"),
    (b"\xef\xbb\xbfnode:\r\n  prt: 0\r\n", r"^2:3: unknown key 'prt'"),
    (b"node:\n  port: 0\n  port: 1\n", r"^3:3: key 'port' stands here a second time; first in line 2$"),
    (bytes(range(256)) * 256, r"^1:1: byte 0x00 is a control character"),
], ids=["10 MiB", "nesting", "aliases", "NUL", "tab", "BOM", "twice", "noise"])
def test_check_of_what_is_hostile(tmp_path, text, said):
    assert any(re.search(said, line) for line in check(tmp_path, text)), check(tmp_path, text)


def test_check_shows_all_keys_in_columns():
    lines = hermes("server", "--check").stdout.splitlines()[:-1]
    starts = {re.match(r"\S+ +", line).end() for line in lines if len(line.split()) > 1}
    assert len(lines) > 40 and len(starts) == 1, lines


def test_lists_of_the_sample(tmp_path):
    """They stand there as comments: without their #, they are settings that the broker takes."""
    lines = (TOP / "etc" / "hermes.yml").read_text().splitlines()
    text = "\n".join(line[2:] for line in lines[lines.index("# vhosts:"):] if re.match(r"#( {3,}|  - | \w+:$)", line))
    assert len(re.findall(r"^\w+:$", text, re.M)) == 7
    file = tmp_path / "hermes.yml"
    file.write_text(text + "\n")
    done = hermes("server", "--check", "-c", file, env={"APP_PASSWORD": "x"})
    assert done.returncode == 0, (done.stderr, text)


@pytest.mark.parametrize("text", ["users: [{username: a, pasword: b}]\n", "users: {a: b}\n", "policies: [{name: a]\n"],
                         ids=["unknown key", "type", "syntax"])
def test_a_mistake_stops_the_start(tmp_path, text):
    this = Node(tmp_path / "n", text).start(ready=False)
    this.stop(None, status=2)
    assert re.search(r"hermes\.yml:1:\d+: ", this.log)


# --------------------------------------------------------------------------
# SIGHUP
# --------------------------------------------------------------------------
def test_reload_of_users(shop):
    other = "- {username: other, password: first, permissions: ['', '', '']}\n"
    reload(shop, SHOP + "users:\n" + ADMIN + APP + other)
    shop.pika("other", "first").close()
    reload(shop, SHOP + "users:\n" + ADMIN + APP + other.replace("first", "second"))
    shop.pika("other", "second").close()
    refused(shop, "other", "first")
    # Who is taken out is closed out; who came over HTTP stays.
    shop.http("/api/users/guest", method="PUT", body={"password": "guest", "tags": ""}, user="boss", password="b0ss")
    conn = shop.pika("other", "second")
    log = reload(shop, SHOP + "users:\n" + ADMIN + APP)
    assert "user 'other' goes: the settings do not have it any more" in log
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as e:
        conn.process_data_events(time_limit=5)
    assert e.value.reply_code == 320
    refused(shop, "other", "second")
    names = [u["name"] for u in shop.http("/api/users", user="boss", password="b0ss")]
    assert sorted(names) == ["app", "boss", "guest"]
    shop.kill()
    shop.start()
    refused(shop, "other", "second")
    assert length(shop, 1) == 1


def test_a_user_that_went_while_the_node_was_down(shop):
    shop.stop()
    shop.config.write_text(SHOP + "users:\n" + ADMIN)
    shop.start()
    refused(shop, "app", "s3cret", "shop")
    shop.pika("boss", "b0ss").close()


def test_reload_of_permissions(shop):
    conn = shop.pika("app", "s3cret", "shop")
    conn.channel().queue_declare("app-2")
    reload(shop, ALL.replace("'^app', '^app'", "'^none', '^app'"))
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as e:
        conn.channel().queue_declare("app-3")
    assert e.value.reply_code == 403
    conn.close()


def test_reload_of_policies(shop):
    assert length(shop, 5) == 2
    reload(shop, ALL.replace("max-length: 2", "max-length: 3"))
    wait_for(lambda: length(shop, 5) == 3, what="another length")
    reload(shop, ALL.replace("policies:\n" + CAP, "policies:\noperator_policies:\n" + CAP.replace("2", "4")))
    wait_for(lambda: length(shop, 5) == 4, what="the operator's length")
    reload(shop, ALL.replace("policies:\n" + CAP, "operator_policies: []\n"))
    wait_for(lambda: length(shop, 6) == 6, what="no length")
    shop.kill()
    shop.start()
    assert length(shop, 6) == 6


def test_reload_of_topology(shop):
    log = reload(shop, ALL.replace("app-q", "app-new"))
    assert "refused" not in log
    assert length(shop, 1, "app-new") == 1
    assert length(shop, 1) == 1         # queues are never taken away
    log = reload(shop, ALL.replace("max-queues: 5", "max-queues: 2").replace("app-q", "app-3"))
    assert re.search(r"hermes\.yml:\d+:\d+: queue 'app-3': .*limit", log)


def test_changes_elsewhere_are_warned_of(shop):
    """What is changed about an entry of the file, but not there, holds until the file is read again: both are in the log."""
    def change(method, path, body=None):
        before = len(shop.log)
        shop.http("/api" + path, method, body, user="boss", password="b0ss")
        shop.http("/api/users/none-such-%d" % before, "PUT", {"password": "x", "tags": ""}, user="boss", password="b0ss")
        shop.await_log("user 'none-such-%d' is made" % before)
        return [line for line in shop.log[before:].splitlines() if "warning" in line]

    holds = "stands in %s%s; what is there comes back at the next SIGHUP or start: %s it there"
    policy = {"pattern": "^app", "definition": {"max-length": 7}}
    rights = {"configure": "", "write": "", "read": ""}
    users = ALL.replace("permissions: ['^app'", "limits: {max-channels: 9}, permissions: ['^app'")
    assert "warning" not in reload(shop, users)
    for method, path, body, what, with_, verb in [
            ("PUT", "/users/app", {"password": "new", "tags": ""}, "user 'app'", "", "change"),
            ("PUT", "/permissions/shop/app", rights, "user 'app'", " with permissions", "change"),
            ("PUT", "/permissions/%2F/app", rights, "user 'app'", " with permissions", "change"),
            ("PUT", "/user-limits/app/max-channels", {"value": 3}, "user 'app'", " with limits", "change"),
            ("PUT", "/policies/shop/cap", policy, "policy 'cap' of vhost 'shop'", "", "change"),
            ("PUT", "/policies/shop/cap", policy, "policy 'cap' of vhost 'shop'", "", "change"),
            ("PUT", "/vhosts/shop", {"description": "other"}, "vhost 'shop'", "", "change"),
            ("DELETE", "/vhost-limits/shop/max-queues", None, "vhost 'shop'", " with limits", "change"),
            ("POST", "/definitions/shop", {"policies": [{"name": "cap", "priority": 1, "apply-to": "all", **policy}]},
             "policy 'cap' of vhost 'shop'", "", "change")]:
        lines = change(method, path, body)
        assert len(lines) == 1 and "%s %s" % (what, holds % (shop.config, with_, verb)) in lines[0], (path, lines)
    assert "127.0.0.1" in change("DELETE", "/permissions/shop/app")[0]
    # What is not in the file, and what changes nothing, is nobody's concern.
    assert change("PUT", "/vhosts/shop", {}) == []
    assert change("PUT", "/policies/shop/own", policy) == []
    assert change("DELETE", "/policies/shop/own") == []
    assert change("PUT", "/users/own", {"password": "new", "tags": ""}) == []
    log = reload(shop, users)
    for line in ["user 'app' is set back to what line 4 of ", "permissions of user 'app' in vhost 'shop' are set back to what ",
                 "permissions of user 'app' in vhost '/' go: they are set back to what ",
                 "policy 'cap' of vhost 'shop' is set back to what line 6 of ",
                 "vhost 'shop' is set back to what line 1 of "]:
        assert re.search("warning +" + re.escape(line), log), (line, log)
    shop.pika("app", "s3cret", "shop").close()
    assert length(shop, 5) == 2
    assert not re.search("set (back )?to", reload(shop, users))         # once
    for path, what in [("/users/app", "user 'app'"), ("/policies/shop/cap", "policy 'cap' of vhost 'shop'"),
                       ("/vhosts/shop", "vhost 'shop'")]:
        lines = change("DELETE", path)
        assert len(lines) == 1 and "%s %s" % (what, holds % (shop.config, "", "delete")) in lines[0], (path, lines)
    log = reload(shop, users)
    for line in ["user 'app' is made and set to what line 4 of ", "policy 'cap' of vhost 'shop' is made and set to what line 6 of ",
                 "vhost 'shop' is made and set to what line 1 of "]:
        assert line in log, (line, log)
    # Over a restart, too.
    change("PUT", "/users/app", {"password": "new", "tags": ""})
    shop.stop()
    shop.start()
    assert re.search("warning +user 'app' is set back to what line 4 of ", shop.log)
    # A change of the file itself is none that is set back.
    log = reload(shop, users.replace("max-length: 2", "max-length: 3"))
    assert "info    policy 'cap' of vhost 'shop' is set to what line 6 of " in log and "warning" not in log


@pytest.mark.parametrize("wrong, said", [
    ("users: [\n", r"hermes\.yml:\d+:\d+: "),
    ("users:\n- {username: boss, pasword: x}\n", r"hermes\.yml:2:\d+: unknown key 'pasword' in users"),
    ("policies:\n- {name: cap, vhost: shop, pattern: a, priority: x, definition: {max-length: 9}}\n",
     r"hermes\.yml:2:\d+: policy 'cap': priority must be a whole number"),
    ("users:\n- {username: boss, password: '${HERMES_TEST_NONE}'}\n", r"hermes\.yml:2:\d+: .*HERMES_TEST_NONE is not set"),
], ids=["syntax", "key", "type", "variable"])
def test_a_reload_with_a_mistake_changes_nothing(shop, wrong, said):
    log = reload(shop, wrong)
    assert re.search(said, log)
    assert re.search("settings not taken, the ones in force stay", log)
    check_all(shop)


def test_a_reload_with_refusals_applies_the_rest(shop):
    log = reload(shop, ALL + "operator_policies:\n- {name: bad, vhost: shop, pattern: '(', definition: {max-length: 1}}\n"
                 "- {name: good, vhost: shop, pattern: ^app, definition: {max-length: 1}}\n")
    assert re.search(r"hermes\.yml:\d+:\d+: operator policy 'bad': .*invalid", log)
    assert "entries of the settings that were refused: 1; the rest is in force" in log
    wait_for(lambda: length(shop, 5) == 1, what="the operator's length")


HASH = "c2FsdEPmxZqf1dmnTmRshtWe00Zl8KH7e/jeGk7s9sKyB2UQ"


def many(users, policies, write="", length=5):
    return (SHOP + "users:\n" + ADMIN
            + "".join("- {username: u%d, password_hash: %s, permissions: ['', '%s', '']}\n" % (n, HASH, write)
                      for n in range(users))
            + "policies:\n"
            + "".join("- {name: p%d, vhost: %s, pattern: ^q%d$, definition: {max-length: %d}}\n"
                      % (n, ("/", "shop")[n % 2], n, length) for n in range(policies)))


@pytest.mark.alone
def test_a_long_reload_holds_nobody_up(shop):
    """As many as a file can have come, change and go in slices of the core thread."""
    def longest():
        return shop.http("/api/overview", user="boss", password="b0ss")["hermes"]["process"]["turn_longest_us"]

    def is_there(path):
        try:
            return shop.http(path, user="boss", password="b0ss") is not None
        except urllib.error.HTTPError as e:
            assert e.code == 404
            return False

    users = 200 if sanitized() else 6000
    for count, policies, write, length in [(users, 2000, "", 5), (users, 2000, "^a", 6), (users // 2, 1000, "", 6),
                                           (0, 0, "", 6)]:
        assert "refused" not in reload(shop, many(count, policies, write, length))
        assert is_there("/api/users/u%d" % (users - 1)) == (count == users)
        assert is_there("/api/users/u%d" % (users // 2 - 1)) == (count > 0)
        assert is_there("/api/policies/shop/p1999") == (policies == 2000)
        assert is_there("/api/policies/%2F/p998") == (policies > 0)
        if count == users:
            assert shop.http("/api/users/u%d/permissions" % (count - 1), user="boss", password="b0ss")[0]["write"] == write
            assert shop.http("/api/policies/shop/p1", user="boss", password="b0ss")["definition"]["max-length"] == length
    if not sanitized():
        assert longest() < 10000


@pytest.mark.alone
def test_hostile_files_on_reload(shop):
    """None of them is taken, costs much memory, or is heard of by anybody else."""
    def memory():
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/%d/status" % shop.process.pid).read_text()).group(1))

    before = memory()
    heavy = 1 << 20
    for text, said in [("#" * (10 << 20), r"hermes\.yml: is larger than 1 MiB"),
                       ("a: " + "[" * (heavy - 10), r"hermes\.yml:1:35: nested deeper than 32"),
                       ("queues: [" + "{}," * (heavy // 3 - 10), r"queue: needs the key 'name'"),
                       ("users: [" + "{x: 1}," * (heavy // 7 - 10), r"unknown key 'x' in users"),
                       ("\0" * heavy, r"hermes\.yml:1:1: byte 0x00 is a control character"),
                       ("a: &a [x]\n" + "b: [*a, *a]\n", r"hermes\.yml:1:4: anchors")]:
        log = reload(shop, text)
        assert re.search(said, log) and "ones in force stay" in log
        assert len(log) < 50000
    if not sanitized():
        assert memory() - before < 150 << 10        # KiB
        assert shop.http("/api/overview", user="boss", password="b0ss")["hermes"]["process"]["turn_longest_us"] < 10000
    check_all(shop)


def test_reloads_while_messages_go(shop):
    """Many reloads in a row, each with more users to be hashed: nobody waits long, the last one holds."""
    conn = shop.pika("boss", "b0ss", "shop")
    ch = conn.channel()
    ch.confirm_delivery()
    some = ["- {username: u%d, password: p%d}\n" % (n, n) for n in range(40)]
    for n in range(0, 40, 4):
        fresh = shop.folder / "fresh.yml"       # a reader never finds half a file
        fresh.write_text(SHOP + "users:\n" + ADMIN + APP + "".join(some[:n]))
        fresh.rename(shop.config)
        shop.process.send_signal(signal.SIGHUP)
        ch.basic_publish("app-in", "any", b"x")
    conn.close()
    reload(shop, SHOP + "users:\n" + ADMIN + APP + some[0])

    def names():
        return sorted(u["name"] for u in shop.http("/api/users", user="boss", password="b0ss"))
    wait_for(lambda: names() == ["app", "boss", "u0"], 20, "the last one in force")     # the line may be of one before it


# --------------------------------------------------------------------------
# Names that RabbitMQ's images have
# --------------------------------------------------------------------------
@pytest.mark.parametrize("env, there", [
    ({"HERMES_DEFINITIONS_FILE": "{}"}, True),
    ({"RABBITMQ_DEFINITIONS_FILE": "{}"}, True),
    ({"RABBITMQ_DEFINITIONS_FILE": "{}", "RABBITMQ_LOAD_DEFINITIONS": "yes"}, True),
    ({"RABBITMQ_DEFINITIONS_FILE": "{}", "RABBITMQ_LOAD_DEFINITIONS": "no"}, False),
    ({"HERMES_DEFINITIONS_FILE": "{}", "RABBITMQ_DEFINITIONS_FILE": "/none"}, True),
], ids=["ours", "theirs", "yes", "no", "both"])
def test_definitions_from_the_environment(node, tmp_path, env, there):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"vhosts": [{"name": "imported"}]}))
    this = node(env={k: v.format(file) if v == "{}" else v for k, v in env.items()})
    assert ("imported" in [v["name"] for v in this.http("/api/vhosts")]) == there


@pytest.mark.parametrize("prefix, end", [("HERMES", b"\n"), ("RABBITMQ", b"\r\n"), ("RABBITMQ", b"")],
                         ids=["ours", "theirs", "no end"])
def test_account_from_files(node, tmp_path, prefix, end):
    """Secrets of Docker and the like."""
    env = {}
    for name, value in {"USER": b"app", "PASS": b" s3 cret ", "VHOST": b"shop"}.items():
        (tmp_path / name).write_bytes(value + end)
        env["%s_DEFAULT_%s_FILE" % (prefix, name)] = str(tmp_path / name)
    this = node(env=env)
    this.pika("app", " s3 cret ", "shop").close()
    refused(this, "guest", "guest", "shop")
    assert "s3 cret" not in this.log
    (tmp_path / "PASS").unlink()            # it is asked for again
    this.process.send_signal(signal.SIGHUP)
    this.await_log("environment: %s_DEFAULT_PASS_FILE: .*PASS cannot be read: No such file or directory" % prefix)
    this.await_log("settings not taken, the ones in force stay")
    this.pika("app", " s3 cret ", "shop").close()


@pytest.mark.parametrize("content, more, said", [
    (None, {}, r"HERMES_DEFAULT_PASS_FILE: .*/secret cannot be read: No such file or directory"),
    ("folder", {}, r"HERMES_DEFAULT_PASS_FILE: .*/secret is not a file"),
    ("pipe", {}, r"HERMES_DEFAULT_PASS_FILE: .*/secret is not a file"),
    (b"\n", {}, r"HERMES_DEFAULT_PASS_FILE: must not be empty"),
    (b"x" * 4097, {}, r"HERMES_DEFAULT_PASS_FILE: .*/secret is larger than 4096 bytes"),
    (b"x" * 1025 + b"\n", {}, r"HERMES_DEFAULT_PASS_FILE: is longer than 1024 bytes"),
    (b"a\0b", {}, r"HERMES_DEFAULT_PASS_FILE: .*/secret has a NUL in it"),
    (b"x", {"HERMES_DEFAULT_PASS": "y"}, r"both HERMES_DEFAULT_PASS and HERMES_DEFAULT_PASS_FILE are set"),
    (b"x", {"HERMES_DEFAULT_USER": None}, r".* go together; HERMES_DEFAULT_USER is not set"),
], ids=["none", "folder", "pipe", "empty", "large", "long", "NUL", "both", "alone"])
def test_secrets_that_are_none(tmp_path, content, more, said):
    secret = tmp_path / "secret"
    if content == "folder":
        secret.mkdir()
    elif content == "pipe":
        os.mkfifo(secret)
    elif content is not None:
        secret.write_bytes(content)
    env = {"HERMES_DEFAULT_USER": "app", "HERMES_DEFAULT_PASS_FILE": str(secret), **more}
    for check_only in (["--check"], []):
        done = hermes("server", *check_only, "-d", tmp_path / "data", env={k: v for k, v in env.items() if v is not None})
        assert done.returncode == 2
        assert re.search("^environment: " + said + "$", done.stderr, re.M), done.stderr
        assert "xxx" not in done.stderr


def test_account_from_the_environment_of_an_image(node):
    this = node(env={"RABBITMQ_DEFAULT_USER": "app", "RABBITMQ_DEFAULT_PASS": "s3cret", "RABBITMQ_DEFAULT_VHOST": "shop"})
    this.pika("app", "s3cret", "shop").close()
    refused(this, "app", "s3cret", "/")
    refused(this, "guest", "guest", "shop")
    assert "s3cret" not in this.log
