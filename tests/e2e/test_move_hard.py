"""Moves and replays where they are not easy: circles, full and special queues, what goes away meanwhile, odd numbers.
One node for all."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from api import Api
from node import SLOW, Node, wait_for

QUEUE = "hermes/queues/{}/{}/"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("hard")).start()
    yield this
    try:
        this.abort_conns()
        this.stop()
    finally:
        this.kill()


@pytest.fixture
def api(broker):
    api = Api(broker)
    yield api
    for job in api.get("hermes/jobs"):
        if job["state"] == "running":
            api("DELETE", "hermes/jobs/%d" % job["id"], 204)


@pytest.fixture
def chan(broker, api):
    conn = broker.raw()
    chan = conn.channel()
    made = []
    declare = chan.declare

    def remembered(name, *args, **kw):
        made.append(name)
        return declare(name, *args, **kw)

    chan.declare = remembered
    yield chan
    conn.close()
    for name in made:
        api.request("DELETE", "queues/%2F/" + name)


def fill(chan, queue, bodies, **props):
    own = chan.conn.channel()       # its confirms begin with 1
    own.call("confirm.select")
    bodies = list(bodies)
    for i, body in enumerate(bodies):
        own.publish("", queue, body, delivery_mode=2, **{k: v(i) if callable(v) else v for k, v in props.items()})
    assert set(own.confirmed(len(bodies)).values()) == {"basic.ack"}
    own.close()


def some(n):
    return [b"%04d" % i for i in range(n)]


def bodies(chan, queue):
    out = []
    while (event := chan.get(queue)) is not None:
        out.append(event.body)
    return out


def job_of(api, job):
    return api.get("hermes/jobs/%d" % job["id"])


def ended(api, job, state="done"):
    wait_for(lambda: job_of(api, job)["state"] != "running", 30, "the end of the job")
    job = job_of(api, job)
    assert job["state"] == state, job
    return job


def start(api, queue, to, vhost="%2F", **body):
    return api("POST", QUEUE.format(vhost, queue) + "move", 202, dict(body, destination=to))


def move(api, queue, to, state="done", **body):
    return ended(api, start(api, queue, to, **body), state)


def counts(job):
    return job["done"], job["failed"]


def test_a_circle_ends(api, chan):
    """What comes back while a job runs is not moved again: through an exchange, and as dead letters of a full queue."""
    chan.declare("q", durable=True)
    chan.declare("full", durable=True, arguments={"x-max-length": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    chan.exchange("round", "fanout")
    chan.bind("q", "round")
    fill(chan, "q", some(100))
    assert counts(move(api, "q", {"exchange": "round"})) == (100, 0)
    assert counts(move(api, "q", {"exchange": "", "routing_key": "q"}, count=30)) == (30, 0)
    assert bodies(chan, "q") == some(100)[30:] + some(100)[:30]
    fill(chan, "q", some(100))
    assert counts(move(api, "q", "full")) == (100, 0)
    chan.wait_count("q", 98)
    assert bodies(chan, "q") + bodies(chan, "full") == some(100)


def test_two_moves_against_each_other(api, chan):
    for name in ("left", "right"):
        chan.declare(name, durable=True)
        fill(chan, name, (b"%s%d" % (name.encode(), i) for i in range(200)))
    jobs = [start(api, "left", "right"), start(api, "right", "left"), start(api, "left", "right"), start(api, "right", "left")]
    for job in jobs:
        ended(api, job)
    assert sorted(bodies(chan, "left") + bodies(chan, "right")) == sorted(b"%s%d" % (n, i) for n in (b"left", b"right") for i in range(200))


@pytest.mark.parametrize("overflow, stay", [("drop-head", 0), ("reject-publish", 7), ("reject-publish-dlx", 7)])
def test_onto_a_full_queue(api, chan, overflow, stay):
    chan.declare("q", durable=True)
    chan.declare("dropped", durable=True)
    chan.declare("full", durable=True, arguments={"x-max-length": 3, "x-overflow": overflow, "x-dead-letter-exchange": "",
                                                  "x-dead-letter-routing-key": "dropped"})
    fill(chan, "q", some(10))
    job = move(api, "q", "full")
    assert counts(job) == (10 - stay, stay) and job["reasons"] == ({"queue 'full' is full": 7} if stay else {})
    if stay == 0:
        chan.wait_count("dropped", 7)
    assert bodies(chan, "dropped") + bodies(chan, "full") + bodies(chan, "q") == some(10)


@pytest.mark.parametrize("kind", [{"x-queue-type": "quorum"}, {"x-max-priority": 5}, {"x-single-active-consumer": True}])
def test_special_queues(api, chan, kind):
    """There and back, with what was returned, what is out, and a pause; priorities are the message's own."""
    chan.declare("q", durable=True)
    chan.declare("special", durable=True, arguments=kind)
    fill(chan, "q", some(20), priority=lambda i: i % 3)
    out = [chan.get("q", no_ack=False) for _ in range(2)]
    for name in ("q", "special"):
        api("PUT", QUEUE.format("%2F", name) + "pause", 204)
    assert counts(move(api, "q", "special")) == (18, 0)
    wanted = some(20)[2:]
    if "x-max-priority" in kind:
        wanted = [b for p in (2, 1, 0) for b in wanted if int(b) % 3 == p]
    api("DELETE", QUEUE.format("%2F", "special") + "pause", 204)
    got = [chan.get("special", no_ack=False) for _ in range(18)]
    assert [event.body for event in got] == wanted
    for event in got:
        chan.reject(event.delivery_tag, requeue=True)
    chan.wait_count("special", 18)
    assert counts(move(api, "special", "q", count=5)) == (5, 0)
    assert counts(move(api, "special", "q")) == (13, 0)
    for event in out:
        chan.reject(event.delivery_tag, requeue=True)
    chan.wait_count("q", 20)
    api("DELETE", QUEUE.format("%2F", "q") + "pause", 204)
    assert bodies(chan, "q") == some(2) + wanted


@pytest.mark.parametrize("kind", [{"x-queue-type": "quorum"}, {"x-max-priority": 5}])
def test_letters_in_special_queues(api, chan, kind):
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    chan.declare("dead", durable=True, arguments=kind)
    chan.declare("q", durable=True, arguments=to_dead)
    fill(chan, "q", some(9), priority=lambda i: i % 3)
    for _ in range(9):
        chan.reject(chan.get_wait("q", no_ack=False).delivery_tag, requeue=False)
    chan.wait_count("dead", 9)
    chan.reject(chan.get("dead", no_ack=False).delivery_tag, requeue=True)
    chan.wait_count("dead", 9)
    letters = api.get("hermes/dead-letters/%2F/dead")["messages"]
    ids = [m["id"] for m in letters[::2]]
    job = ended(api, api("POST", "hermes/dead-letters/%2F/dead/replay", 202, {"ids": ids[::-1]}))
    assert counts(job) == (5, 0)
    assert bodies(chan, "q") == [m["payload"].encode() for m in letters[::2]]
    job = ended(api, api("POST", "hermes/dead-letters/%2F/dead/replay", 202, {"all": True}))
    assert counts(job) == (4, 0)
    assert bodies(chan, "q") == [m["payload"].encode() for m in letters[1::2]]


def test_into_a_delay(api, chan):
    chan.exchange("late", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    for name in ("q", "to"):
        chan.declare(name, durable=True)
    chan.bind("to", "late")
    fill(chan, "q", some(3), headers=lambda i: {"x-delay": [1, 3600000, "x"][i]})
    job = move(api, "q", {"exchange": "late"})
    assert counts(job) == (2, 1) and job["reasons"] == {"its header x-delay is wrong": 1}
    chan.wait_count("to", 1)
    assert (bodies(chan, "to"), bodies(chan, "q")) == ([b"0000"], [b"0002"])
    chan.call("exchange.delete", exchange="late")


def test_exclusive_queues(api, chan, broker):
    mine = broker.raw().channel()
    mine.declare("mine", exclusive=True)
    chan.declare("q", durable=True)
    for queue, to in (("q", "mine"), ("mine", "q")):
        answer = api.request("POST", QUEUE.format("%2F", queue) + "move", {"destination": to})
        assert answer.status_code == 400 and "exclusive" in answer.json()["reason"]
    # what is published to an exchange may go there
    chan.exchange("to mine", "fanout")
    mine.bind("mine", "to mine")
    fill(chan, "q", some(3))
    job = start(api, "q", {"exchange": "to mine"}, rate=10)
    assert counts(ended(api, job)) == (3, 0)
    assert bodies(mine, "mine") == some(3)


def test_what_it_needs_goes_away(api, chan):
    def running():
        chan.declare("q", durable=True)
        chan.declare("to", durable=True)
        fill(chan, "q", some(200))
        return start(api, "q", "to", rate=10)

    job = running()
    api("DELETE", "queues/%2F/to", 204)
    assert ended(api, job, "failed")["reason"] == "the queue that the messages go to was deleted"
    chan.declare("to", durable=True)        # another one of that name
    job = start(api, "q", "to", rate=10)
    api("DELETE", "queues/%2F/q", 204)
    assert ended(api, job, "failed")["reason"] == "the queue was deleted"


@pytest.mark.parametrize("comes_back", [False, True])
def test_who_started_it_goes_away(api, chan, broker, comes_back):
    """Somebody else who gets that name is not he."""
    def make():
        api("PUT", "users/mover", 201, {"password": "pw", "tags": "management"})
        api("PUT", "permissions/%2F/mover", 201, {"configure": "", "write": ".*", "read": ".*"})

    for name in ("q", "to"):
        chan.declare(name, durable=True)
    fill(chan, "q", some(200))
    make()
    job = start(Api(broker, "mover", "pw"), "q", "to", rate=10)
    api("DELETE", "users/mover", 204)
    if comes_back:
        make()
    job = ended(api, job, "failed")
    assert job["reason"] == "the user who started it was deleted" and job["user"] == "mover"
    assert sum(chan.counts(name)[0] for name in ("q", "to")) == 200
    api.request("DELETE", "users/mover")


def test_keys_of_copies_are_asked_for(api, chan, broker):
    """Whoever published the message to another exchange may have had more rights than who moves it."""
    api("PUT", "users/mover", 201, {"password": "pw", "tags": "management"})
    api("PUT", "permissions/%2F/mover", 201, {"configure": "", "write": ".*", "read": ".*"})
    chan.exchange("topics", "topic")
    api("PUT", "topic-permissions/%2F/mover", 201, {"exchange": "topics", "write": "^open", "read": ""})
    for name in ("q", "to"):
        chan.declare(name, durable=True)
    chan.bind("to", "topics", "#")
    fill(chan, "q", [b"1", b"2", b"3"], headers=lambda i: {"CC": [["open.1"], ["open.1", "closed"], []][i]})
    mover = Api(broker, "mover", "pw")
    job = ended(api, start(mover, "q", {"exchange": "topics", "routing_key": "open"}))
    assert counts(job) == (2, 1) and "refused for user 'mover'" in list(job["reasons"])[0]
    assert (bodies(chan, "to"), bodies(chan, "q")) == ([b"1", b"3"], [b"2"])
    assert mover.request("POST", QUEUE.format("%2F", "q") + "move",
                         {"destination": {"exchange": "topics", "routing_key": "closed"}}).status_code == 401
    api("DELETE", "users/mover", 204)


def test_a_vhost_goes_away(api):
    api("PUT", "vhosts/moved", 201)
    for name in ("q", "to"):
        api("PUT", "queues/moved/" + name, 201, {"durable": True})
    for _ in range(20):
        api("POST", "exchanges/moved/amq.default/publish", 200,
            {"properties": {}, "routing_key": "q", "payload": "x", "payload_encoding": "string"})
    job = start(api, "q", "to", vhost="moved", rate=2)
    api("DELETE", "vhosts/moved", 204)
    assert ended(api, job, "failed")["reason"] == "the queue was deleted"


def test_consumers_take_what_they_can(api, chan, broker):
    """Each message is taken once, by a consumer or by the job."""
    total = 2000
    for name in ("q", "to"):
        chan.declare(name, durable=True)
    fill(chan, "q", some(total))
    other = broker.raw().channel()
    other.call("basic.qos", prefetch_size=0, prefetch_count=50, global_=False)
    other.consume("q", tag="c")
    job = start(api, "q", "to")
    taken = []
    for _ in range(50):
        event = other.deliver()
        taken.append(event.body)
        other.ack(event.delivery_tag)
    job = ended(api, job)
    other.conn.close()
    assert job["failed"] == 0
    chan.wait_count("to", job["done"])
    left, moved = bodies(chan, "q"), bodies(chan, "to")
    assert sorted(taken + left + moved) == some(total)


def test_numbers(api, chan):
    for name in ("q", "to"):
        chan.declare(name, durable=True)
    fill(chan, "q", some(3))
    for name, most in (("count", 2 ** 63 - 1), ("rate", 1000000)):
        for wrong in (0, -1, -2 ** 63, most + 1, 2 ** 64, 1.5, "x", "1x", "", True, [], {}):
            answer = api.request("POST", QUEUE.format("%2F", "q") + "move", {"destination": "to", name: wrong})
            assert answer.status_code == 400, (name, wrong, answer.text)
        assert move(api, "q", "to", **{name: most})["failed"] == 0
        assert counts(move(api, "to", "q", **{name: None})) == (3, 0)
    assert counts(move(api, "q", "to", count="2")) == (2, 0)


def test_letters_that_are_not_there(api, chan):
    chan.declare("dead", durable=True)
    where = "hermes/dead-letters/%2F/dead/replay"
    ids = [str(i) for i in range(1, 9996)] + ["0", "1.255", "1.300", "72057594037927935", "1"]
    answer = api.request("POST", where, {"ids": ids})
    assert answer.status_code == 400 and "ids[9997] is no id" in answer.json()["reason"]      # 1.300
    ids[9997] = "2.7"
    job = ended(api, api("POST", where, 202, {"ids": ids}))
    assert (job["total"], job["done"], job["reasons"]) == (9999, 0, {"it is not there any more": 9999})    # one was there twice
    for wrong in ("-1", "1.", ".1", "1.1.1", " 1", "1 ", "72057594037927936", "1e3", ""):
        assert api.request("POST", where, {"ids": [wrong]}).status_code == 400, wrong


def test_forged_deaths(api, chan):
    """Clients write what they like into x-death: it is taken as it is, or the letter stays."""
    chan.declare("dead", durable=True)
    chan.declare("to", durable=True)
    good = {"queue": "q", "reason": "rejected", "exchange": "", "routing-keys": ["to"], "count": 1}
    forged = [
        dict(good, exchange="x" * 300), dict(good, exchange=5), dict(good, **{"routing-keys": []}),
        dict(good, **{"routing-keys": ["k" * 300]}), dict(good, **{"routing-keys": "to"}), dict(good, exchange="amq.rabbitmq.log"),
        dict(good, exchange="none"),
    ]
    for death in forged:
        chan.publish("", "dead", b"bad", headers={"x-death": [death]})
    for headers in ({"x-death": 5}, {"x-death": []}, {"x-death": ["a"]}, {}):
        chan.publish("", "dead", b"bad", headers=headers)
    for more in ({"original-expiration": "x"}, {"original-expiration": "9" * 255}, {"original-expiration": 5},
                 {"routing-keys": ["to"] + ["k%d" % i for i in range(1000)]}, {"routing-keys": ["to", 5, None, ["x"]]}):
        chan.publish("", "dead", b"good", headers={"x-death": [dict(good, **more)], "x-first-death-queue": 7})
    chan.wait_count("dead", len(forged) + 9)
    job = ended(api, api("POST", "hermes/dead-letters/%2F/dead/replay", 202, {"all": True}))
    assert counts(job) == (5, len(forged) + 4), job
    assert bodies(chan, "to") == [b"good"] * 5


def test_the_table_is_full(api, chan):
    """Sixteen at a time; those that ended are forgotten first."""
    for name in ("q", "to"):
        chan.declare(name, durable=True)
    total = 3000            # of which 16 a second go
    fill(chan, "q", some(total))
    jobs = [start(api, "q", "to", rate=1, count=10000 + i) for i in range(16)]
    answer = api.request("POST", QUEUE.format("%2F", "q") + "move", {"destination": "to"})
    assert answer.status_code == 400 and "16 jobs under way" in answer.json()["reason"]
    # one that is on its way may be seen in both
    wait_for(lambda: sum(row["messages"] for row in api.get("queues/%2F?columns=messages")) == total, what="each in one queue")
    for job in jobs[:4]:
        api("DELETE", "hermes/jobs/%d" % job["id"], 204)
    for _ in range(100):
        ended(api, start(api, "to", "q", count=1))
    rows = api.get("hermes/jobs")
    assert len(rows) == 100 and sum(row["state"] == "running" for row in rows) == 12
    assert api.request("GET", "hermes/jobs/%d" % jobs[0]["id"]).status_code == 404


def test_a_long_one_holds_nobody_up(api, chan, broker):
    """Bodies of a megabyte, and a fan of queues."""
    for i in range(20):
        chan.declare("fan%d" % i)
        chan.bind("fan%d" % i, "amq.fanout")
    chan.declare("q")
    for _ in range(20):
        chan.publish("", "q", b"x" * (1 << 20))
    chan.wait_count("q", 20)
    assert counts(move(api, "q", {"exchange": "amq.fanout"})) == (20, 0)
    chan.wait_count("fan19", 20)
    assert api.get("overview")["hermes"]["process"]["turn_longest_us"] < 50000 * SLOW
