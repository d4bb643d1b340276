"""A restart, or kill -9, between any two steps of what queues do by their arguments: the outcome is the same."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from node import Node
from steps import (PATIENCE, Step, bind, bounce, cancel, consume, count, delete, delete_exchange, differences, exchange, gone,
                   hold, idle, play, play_all, play_through, publish, publish_delayed, purge, queue, ready, settle, take,
                   together, until)
from wire import Val

pytestmark = pytest.mark.xdist_group("steps")     # one process plays all of them once

#: milliseconds: what is to pass, before the node goes or while it is away, and what is not
SHORT, NEVER = 400, 600000
AWAY = 1.2 * SHORT / 1000


def letters(name="dead"):
    return {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "@" + name}


def bound_behind(w):
    """A delayed message, and before it is due, and its confirm is waited for, a binding that it is for."""
    chan = w.chan("publisher")
    chan.publish(w.prefix + "x", "k", "1", delivery_mode=2, headers={"x-delay": 3 * SHORT}, expiration=str(NEVER))
    w.chan().call("exchange.bind", destination=w.prefix + "y", source=w.prefix + "x", routing_key="k", arguments={})
    said = chan.expect("basic.ack", "basic.nack", timeout=PATIENCE)
    w.notes.append((said.name, "1"))


DEAD = queue("dead")
SCENARIOS = {
    # ---- time to live ----------------------------------------------------
    "ttl of a queue": [
        together(DEAD, queue("q", x_message_ttl=SHORT, **letters())), publish("q", "1 2 3"), ready("dead", 3),
        hold("dead", 1), settle("ack", "dead", "1"), take("dead", 2), publish("q", "4"), ready("dead", 1), take("dead", 1),
        take("q", 0)],
    "ttl of a message": [
        queue("q"), publish("q", "first", expiration=str(NEVER)), publish("q", "second", expiration=str(SHORT)),
        publish("q", "third"), hold("q", 1), ready("q", 1), settle("ack", "q", "first"), take("q", 1)],
    "ttl of both": [
        together(DEAD, queue("q", x_message_ttl=NEVER, **letters())), publish("q", "1", expiration=str(SHORT)),
        publish("q", "2", expiration=str(10 * NEVER)), publish("q", "3", expiration=str(SHORT)), ready("dead", 1),
        bounce("q", "ack"), ready("dead", 2), take("dead", 2), take("q", 0)],
    "ttl in a chain": [
        together(queue("c"), queue("b", x_message_ttl=SHORT, **letters("c")),
                 queue("a", x_message_ttl=SHORT, **letters("b"))),
        publish("a", "1 2", expiration=str(SHORT - 100)), ready("c", 2), hold("c", 2),
        settle("requeue", "c", "2 1"), take("c", 2)],
    "ttl and what is held": [
        together(DEAD, queue("q", x_message_ttl=2 * SHORT, **letters())), publish("q", "1 2 3"), ready("dead", 3),
        publish("dead", "4"), hold("dead", 2), settle("reject", "dead", "2"), settle("requeue", "dead", "1"), take("dead", 3)],
    "ttl of a quorum queue": [
        together(DEAD, queue("q", x_queue_type="quorum", **letters())), publish("q", "1", expiration=str(NEVER)),
        publish("q", "2", expiration=str(SHORT)), publish("q", "3"), bounce("q", "ack"), ready("dead", 1), take("dead", 1),
        take("q", 1)],
    "ttl of none": [
        together(DEAD, queue("q", x_message_ttl=0, **letters())), publish("q", "1 2"), ready("dead", 2), take("dead", 2),
        consume("a", "q"), together(publish("q", "3"), hold("q", 1, "a"), settle("ack", "q", "3", "a")), cancel("a"),
        publish("q", "4"), take("dead", 1), take("q", 0)],
    # ---- limits of length --------------------------------------------------
    "drop-head": [
        together(DEAD, queue("q", x_max_length=2, **letters())), publish("q", "1 2"), publish("q", "3 4 5"),
        ready("dead", 3), take("dead", 3), hold("q", 1), settle("ack", "q", "4"), publish("q", "6"), take("q", 2)],
    "drop-head by bytes": [
        together(DEAD, queue("q", x_max_length_bytes=10, **letters())), publish("q", "aaaa bbbb"), publish("q", "cccccc"),
        ready("dead", 1), publish("q", "dddddddddddd"), ready("dead", 4), take("dead", 4), take("q", 0)],
    "reject-publish": [
        queue("q", x_max_length=2, x_overflow="reject-publish"), publish("q", "1 2"), publish("q", "3"), hold("q", 1),
        publish("q", "4"), publish("q", "5"), settle("ack", "q", "1"), take("q", 2), publish("q", "6"), take("q", 1)],
    "reject-publish-dlx": [
        together(DEAD, queue("q", x_max_length=1, x_overflow="reject-publish-dlx", **letters())), publish("q", "1 2"),
        publish("q", "3"), ready("dead", 2), take("dead", 2), bounce("q", "requeue"), publish("q", "4"), take("q", 1)],
    "one of two refuses": [
        together(exchange("x", "fanout"), queue("full", x_max_length=1, x_overflow="reject-publish"), queue("q"),
                 bind("full", "x"), bind("q", "x")),
        publish("", "1", to="x"), publish("", "2", to="x"), take("full", 1), publish("", "3", to="x"), take("full", 1),
        take("q", 3)],
    "drop-head of a quorum queue": [
        together(DEAD, queue("q", x_queue_type="quorum", x_max_length=2, **letters())), publish("q", "1 2"),
        publish("q", "3"), ready("dead", 1), bounce("q", "requeue"), publish("q", "4 5"), ready("dead", 3), take("dead", 3),
        take("q", 2)],
    "lazy and short": [
        queue("q", x_queue_mode="lazy", x_max_length=3), publish("q", "1 2 3 4 5"), hold("q", 2), settle("ack", "q", "4"),
        settle("requeue", "q", "3"), publish("q", "6 7"), count("q"), take("q", 3)],
    # ---- dead letters --------------------------------------------------------
    "rejected": [
        together(DEAD, queue("q", **letters())), publish("q", "1 2 3 4", headers={"h": "v"}), hold("q", 4),
        settle("reject", "q", "3 2"), settle("requeue", "q", "4 1"), take("dead", 2), take("q", 2)],
    "a chain of three reasons": [
        together(queue("c"), queue("b", x_max_length=1, **letters("c")), queue("a", x_message_ttl=SHORT, **letters("b")),
                 queue("q", **letters("a"))),
        publish("q", "1 2"), hold("q", 2), settle("reject", "q", "1 2"), ready("c", 1), take("c", 1), take("b", 1)],
    "round and round": [
        together(queue("wait", x_message_ttl=SHORT, **letters("work")), queue("work", **letters("wait"))),
        publish("work", "m"), bounce("work", "reject"), ready("work", 1), bounce("work", "reject"), ready("work", 1),
        hold("work", 1), settle("ack", "work", "m"), take("work", 0), take("wait", 0)],
    "a cycle that nobody broke": [
        together(exchange("x", "fanout"), queue("a", x_message_ttl=SHORT, **letters("b")), queue("witness"),
                 queue("b", x_message_ttl=SHORT, x_dead_letter_exchange="@x"), bind("a", "x"), bind("witness", "x")),
        publish("a", "m"), ready("witness", 1), count("a", "b"), take("witness", 1)],
    "to several, one of which refuses": [
        together(exchange("x", "fanout"), DEAD, queue("full", x_max_length=1, x_overflow="reject-publish"), bind("dead", "x"),
                 bind("full", "x"), queue("q", x_dead_letter_exchange="@x")),
        publish("q", "1 2 3", priority=4, message_id="id"), bounce("q", "reject"), bounce("q", "reject"), ready("dead", 2),
        take("full", 1), bounce("q", "reject"), take("full", 1), take("dead", 3)],
    "by its own key and CC": [
        together(exchange("x", "direct"), DEAD, queue("copy"), bind("dead", "x", "q"), bind("copy", "x", "copy"),
                 queue("q", x_dead_letter_exchange="@x"), exchange("in", "direct"), bind("q", "in", "q")),
        publish("q", "1 2", to="in", headers={"CC": ["copy"], "BCC": ["hidden"]}), hold("q", 2), settle("reject", "q", "2 1"),
        take("copy", 2), take("dead", 2)],
    "no such exchange": [
        queue("q", x_dead_letter_exchange="@x", x_dead_letter_routing_key="k"), publish("q", "1 2"), bounce("q", "reject"),
        together(exchange("x", "direct"), DEAD, bind("dead", "x", "k")), bounce("q", "reject"), take("dead", 1), take("q", 0)],
    "at least once": [
        together(queue("dead", x_max_length=1, x_overflow="reject-publish"),
                 queue("q", x_queue_type="quorum", x_overflow="reject-publish", x_dead_letter_strategy="at-least-once",
                       **letters())),
        publish("q", "1 2 3"), bounce("q", "reject", 3), ready("dead", 1), bounce("dead", "ack"), ready("dead", 1),
        bounce("dead", "ack"), ready("dead", 1), take("dead", 1), take("q", 0)],
    # ---- priorities ------------------------------------------------------------
    "priorities": [
        queue("q", x_max_priority=5), publish("q", "a b c"), publish("q", "d e f", priority=9),
        publish("q", "g h", priority=3), hold("q", 4), settle("ack", "q", "e"), settle("requeue", "q", "f g d"),
        publish("q", "i", priority=5), publish("q", "j", priority=1), purge("q"), publish("q", "k l", priority=1),
        publish("q", "m", priority=200), count("q"), take("q", 3)],
    "priorities in order": [
        queue("q", x_max_priority=255), publish("q", "1 2", priority=1), publish("q", "3 4", priority=255),
        publish("q", "5 6"), publish("q", "7 8", priority=254), hold("q", 1), settle("requeue", "q", "3"), take("q", 8)],
    "priorities, taken and given back": [
        queue("q", x_max_priority=5), together(publish("q", "a b c d"), publish("q", "e f g h i", priority=9),
                                               publish("q", "j k", priority=3)),
        bounce("q", "ack"), hold("q", 3), together(settle("requeue", "q", "h"), settle("reject", "q", "g"),
                                                   settle("requeue", "q", "f")),
        together(publish("q", "l m", priority=200), publish("q", "n", priority=4), publish("q", "o", priority=0)),
        hold("q", 1), settle("requeue", "q", "f"), take("q", 13)],
    "priorities, ttl and length": [
        together(DEAD, queue("q", x_max_priority=3, x_max_length=4, **letters())), publish("q", "1 2", priority=1),
        publish("q", "3", priority=3, expiration=str(SHORT)), ready("dead", 1), publish("q", "4 5", priority=2),
        publish("q", "6 7"), ready("dead", 3), take("dead", 3), take("q", 4)],
    "dead letters with priorities": [
        together(queue("dead", x_max_priority=10), queue("q", x_message_ttl=SHORT, **letters())), publish("q", "1", priority=1),
        publish("q", "2", priority=9), publish("q", "3", priority=5), ready("dead", 3), hold("dead", 1),
        settle("requeue", "dead", "2"), take("dead", 3)],
    # ---- delays ------------------------------------------------------------------
    "delays": [
        together(exchange("x", "x-delayed-message", x_delayed_type="direct"), queue("q"), bind("q", "x", "k")),
        publish("k", "never", to="x", headers={"x-delay": NEVER}), publish("k", "now", to="x", headers={"x-delay": 0}),
        publish_delayed("k", {"late": 3 * SHORT, "soon": SHORT, "none": -5}, to="x"),
        ready("q", 4), hold("q", 1), settle("requeue", "q", "now"), take("q", 4),
        delete_exchange("x"), count("q")],
    "delayed dead letters": [
        together(exchange("x", "x-delayed-message", x_delayed_type="topic"), DEAD, bind("dead", "x", "#"),
                 queue("q", x_dead_letter_exchange="@x", x_max_length=1)),
        publish("q", "1 2", headers={"x-delay": SHORT}), bounce("q", "reject"), ready("dead", 2), take("dead", 2)],
    "a delayed message to whom it concerns then": [
        together(exchange("x", "x-delayed-message", x_delayed_type="direct"), exchange("y", "fanout"), queue("q"),
                 queue("p", x_max_length=1), bind("p", "y")),
        Step("publish 1, bind y", bound_behind),
        ready("p", 1), take("p", 1), bind("q", "x", "k"), publish("k", "2", to="x", headers={"x-delay": SHORT}),
        ready("q", 1), take("p", 1), take("q", 1)],
    # ---- deduplication -------------------------------------------------------------
    "deduplicating queue": [
        queue("q", x_message_deduplication=True, x_cache_ttl=Val("l", NEVER)), publish("q", "1", message_id="a"),
        publish("q", "2", message_id="a"), publish("q", "3", headers={"x-deduplication-header": "b"}), hold("q", 1),
        settle("ack", "q", "1"), publish("q", "4", message_id="a"), purge("q"), publish("q", "5", message_id="b"),
        publish("q", "6", message_id="c"), take("q", 1)],
    "deduplicating exchange": [
        together(exchange("x", "fanout", x_message_deduplication=True, x_cache_size=Val("l", 2)), queue("q"), bind("q", "x")),
        publish("", "1", to="x", message_id="a"), publish("", "2", to="x", message_id="a"),
        publish("", "3", to="x", message_id="b"), publish("", "4", to="x", message_id="c"),
        publish("", "5", to="x", message_id="a"), publish("", "6", to="x", message_id="c"), take("q", 4)],
    "a key for a time": [
        queue("q", x_message_deduplication=True, x_cache_ttl=Val("l", SHORT)), publish("q", "1", message_id="a"),
        until("q", "q", "again", message_id="a"), until("q", "q", "again", message_id="a"), count("q"), take("q", 3)],
    "deduplication and dead letters": [
        together(queue("dead", x_message_deduplication=True), queue("q", x_message_deduplication=True, **letters())),
        publish("dead", "0", message_id="a"), publish("q", "1", message_id="a"), publish("q", "2", message_id="b"),
        bounce("q", "reject"), bounce("q", "reject"), ready("dead", 2), publish("dead", "3", message_id="b"),
        publish("q", "4", message_id="b"), take("dead", 2), take("q", 0)],
    "deduplication and refusal": [
        queue("q", x_message_deduplication=True, x_max_length=1, x_overflow="reject-publish"),
        publish("q", "1", message_id="a"), publish("q", "2", message_id="b"), publish("q", "3", message_id="a"), take("q", 1),
        publish("q", "4", message_id="b"), take("q", 1), publish("q", "5", message_id="b"), take("q", 0)],
    # ---- single active consumer -------------------------------------------------------
    "single active consumer": [
        queue("q", x_single_active_consumer=True), consume("a", "q", prefetch=2), consume("b", "q"), publish("q", "1 2 3"),
        hold("q", 2, "a"), settle("ack", "q", "1", "a"), hold("q", 1, "a"), settle("ack", "q", "2 3", "a"), idle("b"),
        cancel("a"), consume("c", "q"), publish("q", "4"), hold("q", 1, "b"), settle("ack", "q", "4", "b"), cancel("b"),
        publish("q", "5"), hold("q", 1, "c"), settle("ack", "q", "5", "c")],
    "single active consumer with priority": [
        queue("q", x_single_active_consumer=True), consume("a", "q"), consume("b", "q"), consume("c", "q", x_priority=5),
        publish("q", "1"), hold("q", 1, "a"), settle("ack", "q", "1", "a"), 
        # Who subscribes first is the one, whatever its priority: so after the cancel nothing may happen to it.
        together(cancel("a"), publish("q", "2"), hold("q", 1, "c"), settle("ack", "q", "2", "c"), cancel("c")),
        publish("q", "3"), hold("q", 1, "b"), settle("ack", "q", "3", "b")],
    "single active consumer of a quorum queue": [
        queue("q", x_queue_type="quorum", x_single_active_consumer=True), consume("a", "q"), consume("b", "q"),
        publish("q", "1 2"), hold("q", 2, "a"), settle("ack", "q", "1", "a"), settle("ack", "q", "2", "a"), cancel("a"),
        publish("q", "3"), hold("q", 1, "b"), settle("requeue", "q", "3", "b"), hold("q", 1, "b"), settle("ack", "q", "3", "b")],
    # ---- x-expires -----------------------------------------------------------------------
    "a queue that expires": [
        together(DEAD, queue("q", x_expires=SHORT, **letters())), publish("q", "1 2"), gone("q"), queue("q", x_max_length=7),
        publish("q", "3"), take("q", 1), take("dead", 0)],
    "expires not while it is used": [
        queue("q", x_expires=NEVER), publish("q", "1"), consume("a", "q"), hold("q", 1, "a"), settle("ack", "q", "1", "a"),
        cancel("a"), delete("q"), queue("q", x_expires=SHORT), gone("q")],
    # ---- quorum queues ---------------------------------------------------------------------
    "delivery limit": [
        together(DEAD, queue("q", x_queue_type="quorum", x_delivery_limit=2, **letters())), publish("q", "m"),
        bounce("q", "requeue"), bounce("q", "requeue"), publish("q", "n"), bounce("q", "requeue"), take("dead", 1),
        take("q", 1)],
    "counts of a quorum queue": [
        queue("q", x_queue_type="quorum"), publish("q", "1 2 3"), hold("q", 2), settle("requeue", "q", "2 1"),
        publish("q", "4"), hold("q", 1), settle("ack", "q", "3"), take("q", 3)],
    "a quorum queue that refuses": [
        queue("q", x_queue_type="quorum", x_max_length=3, x_overflow="reject-publish"), publish("q", "1 2 3"),
        bounce("q", "ack"), publish("q", "4"), purge("q"), publish("q", "5"), take("q", 1)],
    "delivery limit, at least once": [
        together(queue("dead", x_max_length=1, x_overflow="reject-publish"),
                 queue("q", x_queue_type="quorum", x_delivery_limit=1, x_overflow="reject-publish",
                       x_dead_letter_strategy="at-least-once", **letters())),
        publish("q", "1 2"), bounce("q", "requeue", 2), bounce("q", "requeue", 2), ready("dead", 1), bounce("dead", "ack"),
        ready("dead", 1), take("dead", 1), take("q", 0)],
    # ---- what is gone ----------------------------------------------------------------------
    "purged and deleted": [
        together(DEAD, queue("q", x_max_length=3, **letters())), publish("q", "1 2 3 4"), hold("q", 1), purge("q"),
        settle("requeue", "q", "2"), delete("q"), queue("q", x_max_priority=2), publish("q", "5"), take("q", 1), delete("dead"),
        DEAD, take("dead", 0)],
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The runs of all scenarios without a restart, and those with a stop or kills, on one node."""
    this = Node(tmp_path_factory.mktemp("node")).start()
    try:
        through = play_through(this, SCENARIOS)
        with_restarts = {"stop": play(this, SCENARIOS, "stop", AWAY), "kill": play(this, SCENARIOS, "kill", AWAY),
                         "kills": play_all(this, SCENARIOS)}
        assert "damage" not in this.log
        this.stop()
    finally:
        this.kill()
    return through, with_restarts


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_steps(played, scenario):
    through, with_restarts = played
    without, = (run for run in through if run.name == scenario)
    assert without.error is None, without.error
    wrong = []
    for how, runs in with_restarts.items():
        for run in runs:
            what = run.name == scenario and (run.error or differences(without.world.notes, run.world.notes))
            if what:
                wrong.append("%s %s: %s" % (how, run.where(), what))
    assert not wrong, "\n".join(wrong)
