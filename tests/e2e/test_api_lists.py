"""Lists of the HTTP API where there is much to list, counts that have to be exact, messages in batches."""
# SPDX-License-Identifier: Apache-2.0
import base64
import concurrent.futures
import http.client
import json
import threading
import time
from urllib.parse import quote

import pytest

from api import Api
from control import Control
from node import SLOW, Node, wait_for
from wire import FRAME_METHOD, enc_frame, enc_method

MANY = 50000 if SLOW == 1 else 5000
PART = 1000


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A node with very many queues; every hundredth has as many messages as its number says."""
    node = Node(tmp_path_factory.mktemp("many"), settings="limits:\n  queues: 100000\n").start()
    node.hundreds = {"q%05d" % n: n // 100 % 50 for n in range(0, MANY, 100)}
    try:
        chan = node.raw().channel()
        for first in range(0, MANY, PART):
            chan.conn.send_raw(b"".join(
                enc_frame(FRAME_METHOD, chan.number, enc_method("queue.declare", queue="q%05d" % n, nowait=True))
                for n in range(first, first + PART)))
            chan.declare("q%05d" % first)
        for name, count in node.hundreds.items():
            chan.conn.send_raw(b"".join(chan.encode_publish("", name, b"x") for _ in range(count)))
        chan.declare("q00000")
        node.api = Api(node)
        yield node
        node.abort_conns()
        node.stop()
    finally:
        node.kill()


@pytest.mark.alone
def test_a_page_sorted_by_messages(many):
    path = "queues?page=1&page_size=100&sort=messages&sort_reverse=true&columns=name,messages"
    most = sorted(list(many.hundreds.values()) + [0] * 100, reverse=True)[:100]
    times = []
    for _ in range(10):
        start = time.monotonic()
        doc = many.api.get(path)
        times.append(time.monotonic() - start)
        assert [q["messages"] for q in doc["items"]] == most
    assert (doc["total_count"], doc["page_count"]) == (MANY, MANY // 100)
    print("a page of 100 of %d queues: %.1f ms" % (MANY, min(times) * 1000))
    if SLOW == 1:
        assert min(times) < 0.2


def test_the_pages_are_the_whole(many):
    size = 500
    last = many.api.get("queues?page=%d&page_size=%d&columns=name" % (MANY // size, size))
    assert [q["name"] for q in last["items"]] == ["q%05d" % n for n in range(MANY - size, MANY)]
    doc = many.api.get("queues?page=2&page_size=100&name=%5Eq.*7%24&use_regex=true&columns=name")
    assert doc["filtered_count"] == MANY // 10
    assert [q["name"] for q in doc["items"]] == ["q%05d" % n for n in range(1007, 2007, 10)]


def test_bindings_in_pages(many):
    """Which RabbitMQ always gives as a whole: so a program has to ask for pages in a word more."""
    page = "&page_size=100&pagination=true&columns=destination,source"
    doc = many.api.get("bindings/%2F?page=2" + page)
    assert [b["destination"] for b in doc["items"]] == ["q%05d" % n for n in range(100, 200)]
    assert (doc["total_count"], doc["page_count"]) == (MANY, MANY // 100)
    many.api("POST", "bindings/%2F/e/amq.topic/q/q00007", 201, body={"routing_key": "stock.#"})
    many.api("POST", "bindings/%2F/e/amq.topic/e/amq.fanout", 201, body={"routing_key": "stock.#"})
    for search, found in (("STOCK.", ["q00007", "amq.fanout"]), ("amq.topic", ["q00007", "amq.fanout"]), ("q00007", ["q00007"] * 2)):
        doc = many.api.get("bindings?page=1&name=%s%s" % (search, page))
        assert sorted(b["destination"] for b in doc["items"]) == sorted(found), search
    doc = many.api.get("exchanges/%2F/amq.topic/bindings/source?page=1&sort=destination&sort_reverse=true" + page)
    assert [b["destination"] for b in doc["items"]] == ["q00007", "amq.fanout"]
    assert isinstance(many.api.get("exchanges/%2F/amq.topic/bindings/source?page=1&page_size=1"), list)
    for where, made in (("q/q00007", doc["items"][0]), ("e/amq.fanout", doc["items"][1])):
        row, = many.api.get("bindings/%2F/e/amq.topic/" + where)
        assert row["destination"] == made["destination"]
        many.api("DELETE", "bindings/%%2F/e/amq.topic/%s/%s" % (where, quote(row["properties_key"], safe="")), 204)


def test_consumers_in_pages(many):
    chan = many.raw().channel()
    for n in range(30):
        chan.call("basic.consume", queue="q%05d" % (n % 3 + 7), consumer_tag="tag %02d" % n)
    page = "consumers?page_size=10&pagination=true"
    pages = [many.api.get(page + "&page=%d" % n)["items"] for n in (1, 2, 3)]
    seen = [(k["queue"]["name"], k["consumer_tag"]) for items in pages for k in items]
    assert seen == sorted(seen) and len(set(seen)) == 30
    doc = many.api.get(page + "&page=1&name=tag%201")
    assert (doc["filtered_count"], doc["total_count"]) == (10, 30)
    assert many.api.get(page + "&page=1&name=q00008")["filtered_count"] == 10
    doc = many.api.get(page + "&page=1&sort=consumer_tag&sort_reverse=true&columns=consumer_tag")
    assert doc["items"][0] == {"consumer_tag": "tag 29"}
    chan.conn.close()


@pytest.mark.alone
def test_a_long_list_holds_nobody_up(many):
    with Control(many) as control:
        rows = [q for q in many.api.get("queues") if not q["name"].startswith("amq.")]     # the control's own
    assert [q["name"] for q in rows] == ["q%05d" % n for n in range(MANY)]
    assert all(q["messages"] == many.hundreds.get(q["name"], 0) for q in rows)
    print("%d round trips, p99 %.1f ms, longest %.1f ms" % (
        len(control.times), control.percentile(99) * 1000, control.times[-1] * 1000))
    assert control.percentile(99) < 0.1 * SLOW


def test_several_lists_at_once(many):
    paths = ["queues?columns=name", "bindings?columns=destination", "queues?sort=messages&columns=messages",
             "queues?columns=name&sort=name&sort_reverse=true", "exchanges", "queues?columns=vhost"]
    with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
        got = list(pool.map(lambda path: Api(many).get(path), paths))
    assert len(got[0]) == len(got[1]) == len(got[2]) == len(got[5]) == MANY
    assert got[3] == got[0][::-1]
    up = [q["messages"] for q in got[2]]
    assert up == sorted(up)


def test_a_short_list_does_not_wait_for_long_ones(many):
    """While eight long ones are made, which takes seconds, a short one is answered many times."""
    done = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        longs = [pool.submit(lambda: Api(many).get("queues?columns=name")) for _ in range(8)]
        pool.submit(lambda: [one.result() for one in longs] and done.set())
        count = 0
        while not done.is_set():
            assert len(many.api.get("exchanges")) == 8     # those that every vhost has, and the events' in this one
            count += 1
        assert all(len(one.result()) == MANY for one in longs)
    print("%d short lists beside eight long ones" % count)
    assert count > (5 if SLOW == 1 else 1)


def test_what_goes_meanwhile_is_left_out(many):
    """Every row is of a queue that is there, and nothing is met twice."""
    chan = many.raw().channel()
    doomed = ["gone%04d" % n for n in range(2000)]
    for name in doomed:
        chan.send("queue.declare", queue=name, nowait=True)
    chan.declare("gone0000")
    stop = threading.Event()

    def remove():
        for name in doomed:
            if stop.is_set():
                break
            chan.send("queue.delete", queue=name, nowait=True)
            time.sleep(0.0005)

    thread = threading.Thread(target=remove)
    thread.start()
    try:
        lists = [[q["name"] for q in many.api.get("queues?columns=name")] for _ in range(3)]
        page = many.api.get("queues?page=1&page_size=500&sort=messages&name=gone")
    finally:
        stop.set()
        thread.join()
    for names in lists:
        assert len(set(names)) == len(names)
        assert [n for n in names if n[0] == "q"] == ["q%05d" % n for n in range(MANY)]
    assert page["item_count"] == len(page["items"]) <= page["filtered_count"]
    for name in doomed:
        chan.send("queue.delete", queue=name, nowait=True)
    chan.declare("q00000")
    assert len(many.api.get("queues?columns=name")) == MANY


def test_the_client_goes_before_its_list_is_made(many):
    """At once, and when the first part of the list has come."""
    for parts in (0, 0, 1, 1, 1):
        conn = http.client.HTTPConnection("127.0.0.1", many.management_port, timeout=30)
        conn.request("GET", "/api/queues", headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
        if parts:
            assert len(conn.getresponse().read(1)) == 1
        conn.close()
    assert len(many.api.get("queues?columns=name")) == MANY


# ---------------------------------------------------------------- counts
RATE = 20000 if SLOW == 1 else 2000
SECONDS = 2


def consume(node, queue, want, done):
    """Counts what comes, and acknowledges it in hundreds."""
    chan = node.raw().channel()
    chan.call("basic.qos", prefetch_count=500)
    chan.call("basic.consume", queue=queue, consumer_tag="count")
    got = 0
    while got < want:
        event = chan.expect("basic.deliver", timeout=30 * SLOW)
        got += 1
        if got % 100 == 0 or got == want:
            chan.send("basic.ack", delivery_tag=event.delivery_tag, multiple=True)
    done.append(got)
    chan.call("queue.declare", queue=queue, passive=True)


def test_counts_are_exact(node):
    """Under load the counts are what the clients counted, once they stop."""
    this = node()
    api = Api(this)
    chan = this.raw().channel()
    chan.exchange("x", "fanout")
    for queue in ("a", "b"):
        chan.declare(queue)
        chan.bind(queue, "x")
    total, part, got = RATE * SECONDS, RATE // 50, []
    consumer = threading.Thread(target=consume, args=(this, "a", total, got))
    consumer.start()
    frames = chan.encode_publish("x", "", b"0123456789") * part
    start = time.monotonic()
    for n in range(total // part):
        chan.conn.send_raw(frames)
        time.sleep(max(0, start + n * 0.02 - time.monotonic()))
    chan.declare("a")
    consumer.join()
    assert got == [total]

    def settled():
        return api.get("queues/%2F/a")["message_stats"]["ack"] == total
    wait_for(settled, 5, "the last acknowledgement")
    a, b = api.get("queues/%2F/a"), api.get("queues/%2F/b")
    stats = a["message_stats"]
    assert (stats["publish"], stats["deliver"], stats["deliver_get"], stats["ack"]) == (total,) * 4
    assert (a["messages"], b["messages"], b["messages_ready"]) == (0, total, total)
    assert b["message_bytes"] == 10 * total and b["message_stats"]["publish"] == total
    stats = api.get("exchanges/%2F/x")["message_stats"]
    assert (stats["publish_in"], stats["publish_out"]) == (total, 2 * total)
    rows = {c["consumer_count"]: c["message_stats"] for c in api.get("channels")}
    assert rows[0]["publish"] == total
    assert (rows[1]["deliver"], rows[1]["ack"]) == (total, total)
    whole = api.get("overview")
    assert (whole["message_stats"]["publish"], whole["message_stats"]["ack"]) == (total, total)
    assert whole["queue_totals"]["messages"] == total


def test_a_delayed_message_goes_out_once(node):
    this = node()
    api = Api(this)
    api("PUT", "exchanges/%2F/later", 201, body={"type": "x-delayed-message", "arguments": {"x-delayed-type": "fanout"}})
    for queue in ("a", "b"):
        api("PUT", "queues/%2F/" + queue, 201, body={})
        api("POST", "bindings/%2F/e/later/q/" + queue, 201, body={})
    begin = time.monotonic()
    assert api("POST", "exchanges/%2F/later/publish", body=message("k", "x", headers={"x-delay": 500 * SLOW})) == {"routed": True}
    stats = api.get("exchanges/%2F/later")["message_stats"]
    assert (stats["publish_in"], stats["publish_out"]) == (1, 0) or time.monotonic() - begin > 0.49 * SLOW
    wait_for(lambda: api.get("queues/%2F/b")["messages"] == 1, 5, "the delayed message")
    stats = api.get("exchanges/%2F/later")["message_stats"]
    assert (stats["publish_in"], stats["publish_out"]) == (1, 2)


# -------------------------------------------------------------- messages
def message(key, payload, **props):
    return {"routing_key": key, "payload": payload, "payload_encoding": "string", "properties": props}


def test_batches(node):
    this = node()
    api = Api(this)
    chan = this.raw().channel()
    chan.declare("batch", durable=True)
    batch = [message("batch", "%d" % n, delivery_mode=2) for n in range(998)]
    batch[3] = message("nowhere", "lost")
    batch[5] = message("batch", "x", expiration="soon")
    batch[7] = {"routing_key": "batch"}
    results = api("POST", "hermes/exchanges/%2F/amq.default/publish", body={"messages": batch})["results"]
    assert len(results) == 998
    assert results[0] == {"routed": True} and results[3] == {"routed": False}
    assert "406 PRECONDITION_FAILED" in results[5]["error"] and "key_missing" in results[7]["error"]
    api("POST", "hermes/exchanges/%2F/amq.default/publish", 400, body={"messages": batch + batch})
    api("POST", "hermes/exchanges/%2F/amq.default/publish", 400, body={})

    def pull(count, mode, **more):
        return api("POST", "queues/%2F/batch/get", body=dict(count=count, ackmode=mode, encoding="auto", **more))
    want = [str(n) for n in range(998) if n not in (3, 5, 7)]
    assert [m["payload"] for m in pull(100000, "ack_requeue_true")] == want
    some = pull(100000, "ack_requeue_true", max_bytes=2000)
    assert 1 <= len(some) < 50 and all(m["redelivered"] for m in some)
    first = pull(100, "ack_requeue_false")
    assert [m["payload"] for m in first] == want[:100]
    assert first[0]["message_count"] == len(want) - 1
    assert chan.declare("batch", durable=True).message_count == len(want) - 100
    # what is confirmed lasts, and what was taken before it is on disk then
    chan.declare("after", durable=True)
    chan.call("confirm.select")
    chan.publish("", "after", b"x", delivery_mode=2)
    chan.confirmed(1)
    this.abort_conns()
    this.kill()
    this.start()
    assert [m["payload"] for m in pull(100000, "ack_requeue_true")] == want[100:]


def test_messages_from_disk(node):
    """A backlog that lies on disk is got as one in memory is."""
    this = node()
    chan = this.raw().channel()
    chan.declare("deep", durable=True)
    chan.call("confirm.select")
    body = b"%08d" + b"." * 4000
    for first in range(0, 20000, 1000):
        chan.conn.send_raw(b"".join(chan.encode_publish("", "deep", body % n, delivery_mode=2)
                                    for n in range(first, first + 1000)))
    assert chan.declare("deep", durable=True).message_count == 20000
    this.abort_conns()
    this.stop()
    this.start()
    got = Api(this)("POST", "queues/%2F/deep/get", body=dict(
        count=5000, ackmode="ack_requeue_true", encoding="auto", truncate=8))
    assert [int(m["payload"]) for m in got] == list(range(5000))
    assert all(m["payload_bytes"] == 4008 for m in got)
    assert Api(this).get("queues/%2F/deep")["messages"] == 20000


@pytest.mark.parametrize("mode", ["ack_requeue_true", "reject_requeue_true"])
def test_a_quorum_queue_counts_what_comes_back(node, mode):
    this = node()
    chan = this.raw().channel()
    chan.declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    api = Api(this)
    api("POST", "exchanges/%2F/amq.default/publish", body=message("qq", "x"))
    for n in range(3):
        got = api("POST", "queues/%2F/qq/get", body={"count": 1, "ackmode": mode, "encoding": "auto"})
        assert got[0]["properties"]["headers"]["x-delivery-count"] == n
        assert got[0]["redelivered"] == (n > 0)


# ----------------------------------------------------------- odd names
def test_which_message_waits_longest(node):
    """In order of the next message's coming; who has none stands behind. What comes back is as old as it was."""
    this = node()
    chan, api, before = this.raw().channel(), Api(this), time.time() * 1000 - 1000
    for name in ("none", "first", "second"):
        chan.declare(name)
        if name != "none":
            chan.publish("", name, b"x")
            chan.declare(name, passive=True)
            came = wait_for(lambda: api.get("queues/%%2F/%s" % name)["head_arrived"])
            wait_for(lambda: time.time() * 1000 > came + 2)

    def oldest():
        rows = api.get("queues?page=1&sort=head_arrived&columns=name,head_arrived")["items"]
        return [(q["name"], q["head_arrived"]) for q in rows]

    found = oldest()
    assert [name for name, _ in found] == ["first", "second", "none"] and found[2][1] is None
    assert before < found[0][1] < found[1][1] < time.time() * 1000 + 1000
    tag = chan.get("first", no_ack=False).delivery_tag
    assert oldest()[0][0] == "second"
    chan.nack(tag, requeue=True)
    wait_for(lambda: oldest() == found)


def test_users_say_where_they_may_do_something(node):
    this = node()
    api = Api(this)
    api("PUT", "users/many", 201, body={"password": "x", "tags": ""})
    for n in range(12):
        api("PUT", "vhosts/v%d" % n, 201, body={})
        api("PUT", "permissions/v%d/many" % n, 201, body={"configure": "", "write": "", "read": ""})
    user = api.get("users/many")
    assert user["vhost_count"] == 12 and user["vhosts"] == ["v%d" % n for n in range(10)]
    rows = api.get("users?sort=vhost_count&columns=name,vhost_count")
    assert [u["vhost_count"] for u in rows] == sorted(u["vhost_count"] for u in rows)
    api("DELETE", "vhosts/v0", 204)
    user = api.get("users/many")
    assert user["vhost_count"] == 11 and len(user["vhosts"]) == 10


def test_odd_names(node):
    """What looks odd in JSON or in a path is shown, and found again."""
    this = node()
    chan = this.raw().channel()
    api = Api(this)
    name = 'a"b\\c/\u00e9\x01%+ \U0001f600'
    chan.declare(name)
    where = quote(name, safe="")
    doc = api.get("queues/%2F/" + where)
    assert doc["name"] == name
    assert [q["name"] for q in api.get("queues")] == [doc["name"]]
    props = api.get("queues/%%2F/%s/bindings" % where)[0]["properties_key"]
    assert props == "a%22b%5Cc%2F%C3%A9%01%25%2B+%F0%9F%98%80"
    api("DELETE", "queues/%2F/" + where, 204)
    assert api.get("queues") == []


def test_a_binding_keeps_its_key_over_restarts(node):
    this = node()
    api = Api(this)
    api("PUT", "queues/%2F/q", 201, body={"durable": True})
    api("POST", "bindings/%2F/e/amq.headers/q/q", 201,
        body={"routing_key": "k", "arguments": {"x-match": "any", "n": 1, "t": {"a": [1, "b", True, 1.5]}}})
    before = api.get("bindings/%2F/e/amq.headers/q/q")
    assert before[0]["properties_key"].startswith("k~")
    this.stop()
    this.start()
    assert Api(this).get("bindings/%2F/e/amq.headers/q/q") == before
    Api(this)("DELETE", "bindings/%2F/e/amq.headers/q/q/" + quote(before[0]["properties_key"], safe=""), 204)


def test_base64(node):
    this = node()
    api = Api(this)
    api("PUT", "queues/%2F/q", 201, body={})
    raw = bytes(range(256)) * 10
    body = dict(message("q", base64.b64encode(raw).decode()), payload_encoding="base64")
    assert api("POST", "exchanges/%2F/amq.default/publish", body=body) == {"routed": True}
    got = api("POST", "queues/%2F/q/get", body={"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"})
    assert base64.b64decode(got[0]["payload"]) == raw and got[0]["payload_encoding"] == "base64"
    assert json.dumps(got)
    # a long one goes another way, alone and in a batch
    raw *= 100
    long = dict(body, payload=base64.b64encode(raw).decode())
    wrong = dict(long, payload="*" + long["payload"])
    assert api("POST", "exchanges/%2F/amq.default/publish", body=long) == {"routed": True}
    assert api("POST", "exchanges/%2F/amq.default/publish", 400, body=wrong)["reason"][0] == "not_base64"
    results = api("POST", "hermes/exchanges/%2F/amq.default/publish", body={"messages": [long, wrong, body]})["results"]
    assert results[0] == results[2] == {"routed": True} and results[1]["error"][0] == "not_base64"
    got = api("POST", "queues/%2F/q/get", body={"count": 9, "ackmode": "ack_requeue_false", "encoding": "auto"})
    assert [base64.b64decode(m["payload"]) for m in got] == [raw, raw, raw[:2560]]
