"""Queues paused, messages moved and dead letters sent back from the shell. One node for all."""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import threading

import pytest

from api import Api
from node import hermes, wait_for
from shell import at_terminal, broker, cli, rows      # noqa: F401 (fixtures)


@pytest.fixture
def chan(broker):
    conn = broker.raw()
    yield conn.channel()
    conn.close()


@pytest.fixture
def queues(chan):
    """a with ten messages, b empty."""
    for name in ("a", "b"):
        chan.declare(name, durable=True)
    for i in range(10):
        chan.publish("", "a", b"%d" % i, delivery_mode=2)
    chan.wait_count("a", 10)
    yield
    for name in ("a", "b"):
        chan.call("queue.delete", queue=name)


def test_a_queue_is_paused(cli, queues):
    def state():
        return {r["name"]: r["state"] for r in rows(cli("list", "queues", "--columns", "name,state"))}["a"]

    for _ in range(2):
        assert cli("queue", "pause", "a") == "paused queue 'a' in vhost '/'\n"
    assert state() == "paused"
    for _ in range(2):
        assert cli("queue", "resume", "a") == "resumed queue 'a' in vhost '/'\n"
    assert state() == "running"
    assert cli("queue", "pause", "no such", status=1) == \
        "hermes queue: queue 'no such' in vhost '/': something that it needs is not there\n"
    assert "there is pause, resume" in cli("queue", "frobnicate", "a", status=2)
    assert "is missing" in cli("queue", "pause", status=2)


def test_messages_are_moved(cli, queues, chan):
    assert cli("move", "a", "b", "--count", 3) == "moved 3 messages of queue 'a' in vhost '/' to queue 'b'\n"
    assert cli("move", "a", "b", "-n", 1) == "moved 1 message of queue 'a' in vhost '/' to queue 'b'\n"
    job = json.loads(cli("move", "a", "b", "--json", "--rate", 100000))
    assert (job["state"], job["done"], job["rate"]) == ("done", 6, 100000)
    assert chan.counts("b")[0] == 10
    chan.exchange("x", "direct")
    chan.bind("a", "x", "back")
    assert cli("move", "b", "x", "--to-exchange", "--key", "back", "-n", 4) == \
        "moved 4 messages of queue 'b' in vhost '/' to exchange 'x'\n"
    said = cli("move", "b", "x", "--to-exchange", status=1)
    assert said == "hermes move: 6 stay: no queue is bound for it\n"
    assert (chan.counts("a")[0], chan.counts("b")[0]) == (4, 6)
    assert cli("move", "a", "a", status=1) == \
        "hermes move: queue 'a' in vhost '/': messages of queue 'a' cannot be moved to itself\n"
    for words in (["move", "none", "b"], ["move", "a", "none"], ["move", "a", "none", "--to-exchange"], ["replay", "none"]):
        assert "queue '%s' in vhost '/'" % words[1] in cli(*words, status=1)
    for words in (["a", "b", "--key", "k"], ["a", "b", "--count", 0], ["a", "b", "--rate", "x"], ["a"], ["a", "b", "c"]):
        cli("move", *words, status=2)


def test_a_job_says_what_it_waits_for(node):
    this = node("disk: {min_free: 100%}\n")
    api = Api(this)
    chan = this.raw().channel()
    for name in ("a", "b"):
        chan.declare(name)
    wait_for(lambda: this.http("/api/nodes")[0]["disk_free_alarm"], what="a disk alarm")
    job = api("POST", "hermes/queues/%2F/a/move", 202, {"destination": "b"})
    why = "the disk has too little free space"
    seen = wait_for(lambda: [j for j in api.get("hermes/jobs") if j["waiting"]], what="a job that waits")[0]
    assert (seen["id"], seen["state"], seen["waiting"]) == (job["id"], "running", why)
    env = {"HERMES_URL": this.http_url}
    row, = rows(hermes("jobs", env=env).stdout)
    assert (row["state"], row["waiting"]) == ("running", why)

    def until_it_is_said():
        yield ("waits: %s; job" % why).encode(), b""
        for one in api.get("hermes/jobs"):
            api("DELETE", "hermes/jobs/%d" % one["id"], 204)

    status, said = at_terminal(this, ["move", "a", "b"], until_it_is_said())
    assert status == 1 and b"the job was cancelled" in said
    assert [j["waiting"] for j in api.get("hermes/jobs")] == [None, None]


def test_a_job_goes_on_by_itself(cli, queues, broker):
    said = cli("move", "a", "b", "--rate", 1, "--no-wait")
    number = re.fullmatch(r"begun: job (\d+)\n", said)[1]
    row, = [r for r in rows(cli("jobs")) if r["id"] == number]
    assert (row["kind"], row["queue"], row["state"], row["total"]) == ("move", "a", "running", "10")
    assert cli("jobs", "list", "--columns", "id,state") == cli("list", "jobs", "--columns", "id,state")
    assert cli("jobs", "cancel", number) == "cancelled job %s\n" % number
    assert [r["state"] for r in rows(cli("jobs")) if r["id"] == number] == ["cancelled"]
    assert cli("jobs", "cancel", 10 ** 6, status=1) == "hermes jobs: there is no job 1000000\n"


def test_progress_is_shown_on_a_terminal(cli, queues, broker):
    status, said = at_terminal(broker, ["move", "a", "b", "--rate", "6"])
    assert status == 0
    assert re.search(rb"\rmoved \d of 10, \d+/s; job \d+ goes on without this command", said)
    assert said.endswith(b"moved 10 messages of queue 'a' in vhost '/' to queue 'b'\r\n")


def test_who_waits_is_told_of_a_job_that_ends_otherwise(cli, queues, broker):
    api = Api(broker)

    def cancel():
        job = next((j for j in api.get("hermes/jobs") if j["state"] == "running"), None)
        return job is not None and api("DELETE", "hermes/jobs/%d" % job["id"], 204) is None

    other = threading.Thread(target=lambda: wait_for(cancel, 30))
    other.start()
    said = cli("move", "a", "b", "--rate", 1, status=1)
    other.join()
    assert said == "hermes move: the job was cancelled: somebody did it\n"


def test_dead_letters_are_sent_back(cli, chan):
    to = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    chan.declare("dead", durable=True)
    chan.declare("work", durable=True, arguments=to)
    for i in range(5):
        chan.publish("", "work", b"%d" % i)
    for _ in range(5):
        chan.reject(chan.get_wait("work", no_ack=False).delivery_tag, requeue=False)
    chan.wait_count("dead", 5)
    row, = rows(cli("list", "dead-letters"))
    assert (row["name"], row["messages_ready"], row["first.reason"], row["first.queue"]) == ("dead", "5", "rejected", "work")
    assert cli("replay", "dead", "2", "3", "--rate", 1000) == "sent back 2 dead letters of queue 'dead' in vhost '/'\n"
    assert cli("replay", "dead", "2", status=1) == "hermes replay: 1 stay: it is not there any more\n"
    assert "ids[0] is no id" in cli("replay", "dead", "first", status=1)
    assert cli("replay", "dead") == "sent back 3 dead letters of queue 'dead' in vhost '/'\n"
    assert cli("replay", "dead") == "sent back 0 dead letters of queue 'dead' in vhost '/'\n"
    assert chan.counts("work")[0] == 5
