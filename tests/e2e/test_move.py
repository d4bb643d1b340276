"""Messages looked at, moved and sent back over HTTP: none is lost, none is there twice, also when the node is killed."""
# SPDX-License-Identifier: Apache-2.0
import base64
import json

import pytest

from api import Api
from node import wait_for

Q = "hermes/queues/%2F/{}/"
LETTERS = "hermes/dead-letters/%2F/"


def fill(chan, queue, bodies, **props):
    own = chan.conn.channel()       # its confirms begin with 1
    own.call("confirm.select")
    bodies = list(bodies)
    for body in bodies:
        own.publish("", queue, body, delivery_mode=2, **props)
    outcome = own.confirmed(len(bodies))
    assert set(outcome.values()) == {"basic.ack"}
    own.close()


def ended(api, job, state="done"):
    job = wait_for(lambda: (lambda j: j if j["state"] != "running" else None)(api.get("hermes/jobs/%d" % job["id"])),
                   30, "the end of the job")
    assert job["state"] == state, job
    return job


def drain(chan, queue):
    """All that is ready, as events."""
    events = []
    while True:
        event = chan.get(queue)
        if event is None:
            return events
        events.append(event)


def bodies(chan, queue):
    return [event.body for event in drain(chan, queue)]


def again(this):
    this.abort_conns()
    this.kill()
    return this.start()


def some(i):
    return b"%06d" % i


def test_browse(node):
    """What is in memory and what lies on disk, and nothing of it is taken."""
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.declare("q", durable=True)
    fill(chan, "q", [b"\xff\x00", b"x" * 100, b"text"], content_type="a/b", headers={"h": 1})
    doc = api.get(Q.format("q") + "browse")
    assert (doc["offset"], doc["ready"], len(doc["messages"])) == (0, 3, 3)
    first, second, third = doc["messages"]
    assert (first["payload_encoding"], base64.b64decode(first["payload"])) == ("base64", b"\xff\x00")
    assert third["properties"] == {"content_type": "a/b", "headers": {"h": 1}, "delivery_mode": 2}
    assert (third["exchange"], third["routing_key"], third["size"], third["redelivered"]) == ("", "q", 4, False)
    assert [m["id"] for m in (first, second, third)] == ["1", "2", "3"]
    doc = api.get(Q.format("q") + "browse?offset=1&count=1&max_bytes=7")
    assert [(m["id"], m["payload"], m["payload_bytes"]) for m in doc["messages"]] == [("2", "x" * 7, 100)]
    assert api.get(Q.format("q") + "browse?offset=3")["messages"] == []
    for query in ("count=1001", "count=-1", "count=x", "offset=", "max_bytes=1e3"):
        assert api.request("GET", Q.format("q") + "browse?" + query).status_code == 400
    assert bodies(chan, "q") == [b"\xff\x00", b"x" * 100, b"text"]


def test_a_long_answer_is_bounded_as_it_is_written(node):
    """Control characters take six bytes of JSON each. What does not fit is there with the next offset."""
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.declare("q", durable=True)
    body = b"\x01" * (3 << 20)
    fill(chan, "q", [body] * 4)
    for offset in (0, 2):
        text = api.request("GET", Q.format("q") + "browse?max_bytes=4000000&offset=%d" % offset, headers={"Accept-Encoding": "identity"}).content
        assert text.count(b'"payload_bytes":%d' % len(body)) == 2       # of 18 MiB each
        assert text.count(b"\\u0001") == 2 * len(body) and text.endswith(b'"ready":4}')


def test_browse_what_lies_on_disk(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.declare("q", durable=True)
    total = 12000
    fill(chan, "q", (some(i) + b"x" * 8000 for i in range(total)))
    wait_for(lambda: api.get("queues/%2F/q?columns=messages_paged_out")["messages_paged_out"] > total // 2, 20, "on disk")
    for offset in (0, 500, 6000, total - 3):
        doc = api.get(Q.format("q") + "browse?count=10&max_bytes=6&offset=%d" % offset)
        assert [m["payload"].encode() for m in doc["messages"]] == [some(i) for i in range(offset, min(offset + 10, total))]
    assert api.get("queues/%2F/q?columns=messages_ready")["messages_ready"] == total


def test_move_to_a_queue(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.declare("q", durable=True)
    chan.declare("to", durable=True)
    chan.exchange("x", "fanout", durable=True)
    chan.bind("q", "x")
    chan.call("confirm.select")
    for i in range(10):
        chan.publish("x", "key", b"%d" % i, delivery_mode=2, headers={"n": i})
    chan.confirmed(10)
    api("PUT", Q.format("q") + "pause", 204)
    job = api("POST", Q.format("q") + "move", 202, {"destination": "to", "count": 4})
    assert (job["kind"], job["total"], job["destination"], job["queue"]) == ("move", 4, {"queue": "to"}, "q")
    job = ended(api, job)
    assert (job["done"], job["failed"], job["left"], job["reasons"]) == (4, 0, 0, {})
    assert job["user"] == "guest" and job["ended"] >= job["started"]
    got = drain(chan, "to")
    assert [(e.body, e.exchange, e.routing_key, e.headers["n"]) for e in got] == \
        [(b"%d" % i, "x", "key", i) for i in range(4)]
    chan.wait_count("q", 6)
    assert [j["id"] for j in api.get("hermes/jobs")] == [job["id"]]


def test_move_to_an_exchange(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    for name in ("q", "a", "b"):
        chan.declare(name, durable=True)
    chan.exchange("h", "headers", durable=True)
    chan.bind("a", "h", arguments={"to": "a"})
    chan.bind("b", "h", arguments={"to": "b"})
    for i in range(9):
        fill(chan, "q", [b"%d" % i], headers={"to": "abc"[i % 3]})
    job = ended(api, api("POST", Q.format("q") + "move", 202, {"destination": {"exchange": "h", "routing_key": "new"}}))
    assert (job["done"], job["failed"], job["reasons"]) == (6, 3, {"no queue is bound for it": 3})
    assert [(e.body, e.exchange, e.routing_key) for e in drain(chan, "a")] == [(b"%d" % i, "h", "new") for i in (0, 3, 6)]
    assert bodies(chan, "b") == [b"1", b"4", b"7"]
    assert bodies(chan, "q") == [b"2", b"5", b"8"]


def test_a_full_queue_takes_what_it_can(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.declare("q", durable=True)
    chan.declare("to", durable=True, arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    fill(chan, "q", (some(i) for i in range(10)))
    job = ended(api, api("POST", Q.format("q") + "move", 202, {"destination": "to"}))
    assert (job["done"], job["failed"], job["reasons"]) == (3, 7, {"queue 'to' is full": 7})
    assert bodies(chan, "q") == [some(i) for i in range(3, 10)]


def test_rate_progress_and_cancel(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.declare("q", durable=True)
    chan.declare("to", durable=True)
    fill(chan, "q", (some(i) for i in range(1000)))
    job = api("POST", Q.format("q") + "move", 202, {"destination": "to", "rate": 50})
    where = "hermes/jobs/%d" % job["id"]
    seen = wait_for(lambda: (lambda j: j if j["done"] > 10 else None)(api.get(where)), 10, "some moved")
    assert seen["state"] == "running" and seen["left"] == 1000 - seen["done"] and seen["done"] < 500
    assert seen["rate"] == 50 and seen["rate_now"] > 0 and seen["ended"] is None
    api("DELETE", where, 204)
    api("DELETE", where, 204)
    assert api.get(where)["state"] == "cancelled"
    counts = chan.counts("q")[0], chan.counts("to")[0]
    assert sum(counts) == 1000 and counts[1] < 500


def done(api, job):
    return api.get("hermes/jobs/%d" % job["id"])["done"]


def test_killed_in_the_midst_of_moves(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    total = 10000
    chan.declare("q", durable=True)
    chan.declare("to", durable=True)
    fill(chan, "q", (some(i) for i in range(total)))
    for _ in range(3):      # a rate at which it could not be over before the kill, however slow the machine
        job = api("POST", Q.format("q") + "move", 202, {"destination": "to", "rate": 100})
        wait_for(lambda: done(api, job) > 20, 30, "some moved")
        assert done(api, job) < total // 4
        again(this)
        assert api.get("hermes/jobs") == []
    # and once as fast as it goes
    job = api("POST", Q.format("q") + "move", 202, {"destination": "to"})
    wait_for(lambda: done(api, job), 30, "some moved")
    again(this)
    chan = this.raw().channel()
    moved, left = bodies(chan, "to"), bodies(chan, "q")
    assert len(moved) > 10 and moved + left == [some(i) for i in range(total)]


# ---- dead letters ----------------------------------------------------------

def dead(this, count, **arguments):
    """`count` messages published to x with key k, bound to q, which died there; they are in dead."""
    chan = this.raw().channel()
    chan.exchange("x", "direct", durable=True)
    chan.declare("dead", durable=True)
    chan.declare("q", durable=True, arguments=dict({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
                                                   **arguments))
    chan.bind("q", "x", "k")
    chan.call("confirm.select")
    for i in range(count):
        chan.publish("x", "k", some(i), delivery_mode=2, headers={"i": i})
    chan.confirmed(count)
    chan.consume("q", tag="reject")
    for _ in range(count):
        chan.reject(chan.deliver().delivery_tag, requeue=False)
    chan.wait_count("dead", count)
    chan.call("basic.cancel", consumer_tag="reject")
    return chan


def test_letters_are_listed_and_sent_back(node):
    this = node()
    api = Api(this)
    chan = dead(this, 6)
    row, = api.get("hermes/dead-letters")
    assert (row["name"], row["vhost"], row["messages_ready"], row["dead_letters"]) == ("dead", "/", 6, 6)
    assert (row["first"]["reason"], row["first"]["queue"], row["first"]["exchange"]) == ("rejected", "q", "x")
    assert api.get("hermes/dead-letters/%2F") == [row]
    letters = api.get(LETTERS + "dead?offset=1&count=4")["messages"]
    assert [m["payload"].encode() for m in letters] == [some(i) for i in range(1, 5)]
    death = letters[0]["first_death"]
    assert (letters[0]["reason"], letters[0]["count"]) == ("rejected", 1)
    assert (death["exchange"], death["routing_keys"], death["queue"], death["reason"]) == ("x", ["k"], "q", "rejected")
    assert death["time"] > 1e9
    ids = [letters[2]["id"], letters[0]["id"], letters[0]["id"]]
    job = ended(api, api("POST", LETTERS + "dead/replay", 202, {"ids": ids}))
    assert (job["kind"], job["done"], job["failed"]) == ("replay", 2, 0) and "destination" not in job
    back = drain(chan, "q")
    assert [(e.body, e.exchange, e.routing_key, e.headers["i"]) for e in back] == [(some(i), "x", "k", i) for i in (1, 3)]
    assert "x-death" not in back[0].headers and "x-first-death-queue" not in back[0].headers
    job = ended(api, api("POST", LETTERS + "dead/replay", 202, {"ids": ids[:1]}))
    assert (job["done"], job["failed"], job["reasons"]) == (0, 1, {"it is not there any more": 1})
    chan.publish("", "dead", "no letter", delivery_mode=2)
    chan.wait_count("dead", 5)
    assert [m["first_death"] for m in api.get(LETTERS + "dead?offset=4")["messages"]] == [None]
    job = ended(api, api("POST", LETTERS + "dead/replay", 202, {"all": True}))
    assert (job["done"], job["failed"]) == (4, 1) and "no dead letter" in list(job["reasons"])[0]
    assert bodies(chan, "q") == [some(i) for i in (0, 2, 4, 5)]
    assert bodies(chan, "dead") == [b"no letter"]


def test_queues_that_letters_lead_to_are_listed(node):
    """Those that got none yet, too: by arguments and policies, keys, alternates, and exchanges that lead to others."""
    this = node()
    api, chan = Api(this), this.raw().channel()
    for name, kind in (("d", "direct"), ("t", "topic"), ("f", "fanout"), ("behind", "fanout"), ("other", "fanout")):
        chan.exchange(name, kind, durable=True)
    chan.exchange("spare", "direct", durable=True, arguments={"alternate-exchange": "other"})
    chan.bind_exchange = lambda to, of: chan.call("exchange.bind", destination=to, source=of, routing_key="", arguments={})
    chan.bind_exchange("behind", "f")
    for queue, exchange, key in (("by key", "d", "dead"), ("another key", "d", "work"), ("by pattern", "t", "#.dead"), ("not it", "t", "#.x"),
                                 ("far", "behind", ""), ("alternate", "other", "")):
        chan.declare(queue, durable=True)
        chan.bind(queue, exchange, key)
    chan.declare("named", durable=True)
    assert api.get("hermes/dead-letters") == []
    for n, (exchange, key) in enumerate((("", "named"), ("", "no such queue"), ("d", "dead"), ("t", "a.dead"), ("f", None),
                                         ("spare", "nobody"), ("no such", "k"))):
        arguments = {"x-dead-letter-exchange": exchange}
        if key is not None:
            arguments["x-dead-letter-routing-key"] = key
        chan.declare("source%d" % n, arguments=arguments)
    rows = api.get("hermes/dead-letters?sort=name")
    assert [row["name"] for row in rows] == ["alternate", "by key", "by pattern", "far", "named"]
    assert all((row["messages_ready"], row["dead_letters"], row["first"]) == (0, 0, None) for row in rows)
    chan.declare("plain")
    api("PUT", "policies/%2F/p", 201, {"pattern": "^plain$", "definition": {"dead-letter-exchange": "d", "dead-letter-routing-key": "work"}})
    page = api.get("hermes/dead-letters/%2F?page=1&page_size=2&sort=name")
    assert (page["total_count"], [row["name"] for row in page["items"]]) == (6, ["alternate", "another key"])
    for n in range(7):
        chan.call("queue.delete", queue="source%d" % n)
    api("DELETE", "policies/%2F/p", 204)
    assert api.get("hermes/dead-letters") == []


def test_letters_on_disk_are_known_after_a_restart(node):
    """Nothing leads to their queue any more, and none came since: what they say themselves has to be read."""
    this = node()
    api = Api(this)
    chan = dead(this, 1)
    fill(chan, "dead", (some(i) + b"x" * (256 << 10) for i in range(400)))
    wait_for(lambda: api.get("queues/%2F/dead?columns=messages_paged_out")["messages_paged_out"] > 200, 20, "on disk")
    chan.call("queue.delete", queue="q")
    again(this)
    row, = wait_for(lambda: api.get("hermes/dead-letters"), 20, "a row")
    assert (row["name"], row["dead_letters"], row["first"]["queue"]) == ("dead", 0, "q")


def test_what_cannot_be_routed_stays(node):
    this = node()
    api = Api(this)
    chan = dead(this, 5)
    chan.call("queue.unbind", queue="q", exchange="x", routing_key="k", arguments={})
    job = ended(api, api("POST", LETTERS + "dead/replay", 202, {"all": True}))
    assert (job["done"], job["failed"], job["reasons"]) == (0, 5, {"no queue is bound for it": 5})
    chan.call("exchange.delete", exchange="x")
    job = ended(api, api("POST", LETTERS + "dead/replay", 202, {"all": True}))
    assert job["reasons"] == {"there is no exchange 'x'": 5}
    assert bodies(chan, "dead") == [some(i) for i in range(5)]


def replay(api, queue, **body):
    return ended(api, api("POST", LETTERS + queue + "/replay", 202, body or {"all": True}))


def test_a_letter_is_sent_back_as_it_was_published(node):
    """What its deaths took away comes back, what they wrote goes."""
    this = node()
    api = Api(this)
    chan = dead(this, 0)
    for name in ("copy", "more"):
        chan.declare(name, durable=True)
        chan.bind(name, "x", name)
    headers = {"CC": ["copy", "more"], "h": {"deep": [1, "x"]}}
    props = {"expiration": "3600000", "priority": 3, "message_id": "m", "delivery_mode": 2}
    long = dict(props, content_type="a/b", correlation_id="c", reply_to="r", timestamp=12345, type="t", app_id="app", headers=headers)
    chan.publish("x", "k", b"all", **long)
    chan.publish("x", "k", b"bare", **props)
    for _ in range(2):
        chan.reject(chan.get_wait("q", no_ack=False).delivery_tag, requeue=False)
    chan.wait_count("dead", 2)
    letters = api.get(LETTERS + "dead")["messages"]
    assert [m["first_death"]["routing_keys"] for m in letters] == [["k", "copy", "more"], ["k"]]
    assert "CC" not in letters[0]["properties"]["headers"] and "expiration" not in letters[0]["properties"]
    assert replay(api, "dead")["done"] == 2
    first, second = api.get(Q.format("q") + "browse")["messages"]
    assert (first["payload"], first["properties"]) == ("all", long) and (second["payload"], second["properties"]) == ("bare", props)
    for name in ("copy", "more"):
        assert [(e.body, e.headers) for e in drain(chan, name)] == [(b"all", headers)] * 2


def test_a_letter_that_dies_again_begins_anew(node):
    """It is no cycle, either: expired in q, then in the queue behind it, it may go that way again."""
    this = node()
    api, chan = Api(this), this.raw().channel()
    to = lambda key, **more: dict({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": key}, **more)    # noqa: E731
    chan.declare("dead", durable=True)
    chan.declare("second", durable=True, arguments=to("dead", **{"x-message-ttl": 1}))
    chan.declare("q", durable=True, arguments=to("second", **{"x-message-ttl": 1}))
    fill(chan, "q", [b"m"])
    for _ in range(2):
        chan.wait_count("dead", 1)
        letter, = api.get(LETTERS + "dead")["messages"]
        assert (letter["count"], letter["first_death"]["queue"], letter["first_death"]["exchange"]) == (2, "q", "")
        assert replay(api, "dead")["done"] == 1
    chan.wait_count("dead", 1)


def test_what_was_moved_or_sent_back_is_no_duplicate(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.exchange("x", "fanout", durable=True, arguments={"x-message-deduplication": True})
    for name in ("q", "to"):
        chan.declare(name, durable=True, arguments={"x-message-deduplication": True, "x-dead-letter-exchange": "",
                                                    "x-dead-letter-routing-key": "dead"})
    chan.declare("dead", durable=True)
    chan.bind("q", "x")
    chan.publish("x", "", b"m", delivery_mode=2, headers={"x-deduplication-header": "key"})
    for destination in ("to", {"exchange": "x"}):
        chan.wait_count("q", 1)
        assert ended(api, api("POST", Q.format("q") + "move", 202, {"destination": destination}))["done"] == 1
        if destination == "to":
            assert ended(api, api("POST", Q.format("to") + "move", 202, {"destination": "q"}))["done"] == 1
    chan.reject(chan.get_wait("q", no_ack=False).delivery_tag, requeue=False)
    chan.wait_count("dead", 1)
    replay(api, "dead")
    chan.wait_count("q", 1)
    chan.publish("x", "", b"a duplicate", delivery_mode=2, headers={"x-deduplication-header": "key"})
    assert bodies(chan, "q") == [b"m"] and chan.counts("dead")[0] == 0


@pytest.mark.parametrize("chosen", [False, True])
def test_killed_in_the_midst_of_a_replay(node, chosen):
    this = node()
    api = Api(this)
    total = 3000
    chan = dead(this, total)
    body = {"all": True, "rate": 100}
    wanted = list(range(total))
    if chosen:
        letters = sum((api.get(LETTERS + "dead?count=1000&offset=%d" % o)["messages"] for o in range(0, total, 1000)), [])
        body = {"ids": [m["id"] for m in letters[::2]], "rate": 100}
        wanted = wanted[::2]
    job = api("POST", LETTERS + "dead/replay", 202, body)
    wait_for(lambda: done(api, job) > 20, 30, "some sent back")
    assert api.get("hermes/jobs/%d" % job["id"])["state"] == "running"
    again(this)
    chan = this.raw().channel()
    back, left = bodies(chan, "q"), bodies(chan, "dead")
    assert 0 < len(back) < len(wanted)      # what was not written yet when it was killed is where it was
    assert back == [some(i) for i in wanted[:len(back)]]
    assert left == sorted(left) and sorted(back + left) == [some(i) for i in range(total)]


# ---- rights and refusals -----------------------------------------------------

def test_rights(node):
    this = node()
    api = Api(this)
    chan = dead(this, 4)
    for name in ("mine", "theirs"):
        chan.declare(name, durable=True)
    api("PUT", "users/u", 201, {"password": "pw", "tags": "management"})
    api("PUT", "users/other", 201, {"password": "pw", "tags": "management"})
    api("PUT", "permissions/%2F/u", 201, {"configure": "^$", "write": "^(mine|q)$", "read": "^(dead|mine)$"})
    api("PUT", "permissions/%2F/other", 201, {"configure": "^$", "write": "^$", "read": "^$"})
    user, other = Api(this, "u", "pw"), Api(this, "other", "pw")
    assert len(user.get(LETTERS + "dead")["messages"]) == 4
    user("GET", LETTERS + "theirs", 401)
    user("GET", Q.format("theirs") + "browse", 401)
    user("POST", Q.format("theirs") + "move", 401, {"destination": "mine"})
    user("POST", Q.format("dead") + "move", 401, {"destination": "theirs"})
    user("POST", Q.format("dead") + "move", 401, {"destination": {"exchange": "amq.fanout"}})
    job = ended(user, user("POST", LETTERS + "dead/replay", 202, {"all": True}))
    assert job["failed"] == 4 and "refused for user 'u'" in list(job["reasons"])[0]
    fill(chan, "dead", (some(i) for i in range(50)))        # more than it can have moved when the right is taken away
    job = user("POST", Q.format("dead") + "move", 202, {"destination": "mine", "rate": 1})
    assert len(other.get("hermes/jobs")) == 2
    other("DELETE", "hermes/jobs/%d" % job["id"], 401)
    api("PUT", "permissions/%2F/u", 204, {"configure": "^$", "write": "^$", "read": ".*"})
    job = ended(user, job, "failed")
    assert "refused" in job["reason"]
    chan.publish("x", "k", "m")
    api("DELETE", "permissions/%2F/other", 204)
    assert other.get("hermes/jobs") == []
    other("GET", "hermes/jobs/%d" % job["id"], 401)
    api("DELETE", "queues/%2F/dead", 204)


def test_refusals(node):
    this = node()
    api, chan = Api(this), this.raw().channel()
    chan.declare("q", durable=True)
    chan.declare("only", exclusive=True)
    move = Q.format("q") + "move"
    for body in ({}, {"destination": 5}, {"destination": {"exchange": 5}}, {"destination": {"routing_key": "k"}},
                 {"destination": "q"}, {"destination": "only"}, {"destination": {"exchange": "x" * 256}},
                 {"destination": "to", "count": 0}, {"destination": "to", "rate": -1}, {"destination": "to", "rate": "x"}):
        if body.get("destination") == "to":
            chan.declare("to", durable=True)
        assert api.request("POST", move, body).status_code == 400, body
    for body in ({"destination": "nope"}, {"destination": {"exchange": "nope", "routing_key": "k"}}):
        assert api.request("POST", move, body).status_code == 404, body
    for body in ({}, {"ids": []}, {"ids": "1"}, {"ids": [1]}, {"ids": ["x"]}, {"ids": ["1"], "all": True},
                 {"all": True, "rate": 0}, {"ids": ["1"] * 10001}):
        assert api.request("POST", LETTERS + "q/replay", body).status_code == 400, json.dumps(body)[:80]
    for where in ("hermes/jobs/1", "hermes/jobs/x", "hermes/jobs/1.1"):
        assert api.request("GET", where).status_code == 404
        assert api.request("DELETE", where).status_code == 404
