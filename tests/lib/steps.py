"""Scenarios made of named steps, and a node that is restarted between any two of them.

What a scenario is about is what it notes: confirms, deliveries with all their headers, counts, in their order.
play() runs scenarios side by side, each as often as it has gaps between steps; all of them stop at their gap,
the node goes and comes back, and they go on like a client that was cut off: it connects, subscribes again in
the same order, and is given again what it had not acknowledged. play_all() does so in every gap of one run.
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import concurrent.futures
import signal
import time
import typing

import wire
from node import SLOW

#: seconds between two looks, and for how long one looks
PAUSE, PATIENCE = 0.04, 20 * SLOW
#: headers that say how often a quorum queue got a message back
COUNTS = ("x-delivery-count", "x-acquired-count")


class Step(typing.NamedTuple):
    name: str
    work: typing.Callable
    waits: bool = False         # for a time that has to pass


class Delivery(typing.NamedTuple):
    queue: str
    body: str
    redelivered: bool
    headers: dict
    came_back: int              # how often the node went while it was unacknowledged in that queue

    def if_it_came_back(self, seen):
        """The same delivery as it has to be if the message came back by the end of a node as often as `seen` did."""
        headers = dict(self.headers)
        for count in COUNTS:
            if seen.came_back and "x-delivery-count" in seen.headers:      # only quorum queues count
                headers[count] = headers.get(count, 0) + seen.came_back
        return self._replace(redelivered=self.redelivered or seen.came_back > 0, headers=headers, came_back=seen.came_back)


class World:
    """One run of a scenario: what its client knows and has seen. Names of queues and exchanges are its own."""

    def __init__(self, node, prefix):
        self.node, self.prefix = node, prefix
        self.chans = {}             # of the present connection, by the name of the user
        self.conn = None
        self.subscribed = {}        # name of the consumer: (queue, arguments), in the order of subscription
        self.held = {}              # (name or None for a get, queue): {body: tag}, in the order of delivery
        self.out = collections.Counter()    # (queue, body): how often the node went while it was unacknowledged
        self.notes = []

    # ---- connection ------------------------------------------------------
    def chan(self, who=None):
        if self.conn is None:
            self.conn = self.node.raw()
        if who not in self.chans:
            self.chans[who] = self.conn.channel()
            if who == "publisher":
                self.chans[who].call("confirm.select")
        return self.chans[who]

    def before(self):
        """The node will go: what consumers were sent and have not looked at is out, too."""
        for who, (queue, _) in self.subscribed.items():
            self.sync(who)
            self.out.update((queue, event.body.decode()) for event in self.sent(who))
        for (_, queue), had in self.held.items():
            self.out.update((queue, body) for body in had)

    def farewell(self):
        """The node ends the connection."""
        if self.conn is not None:
            self.conn.expect_connection_close(320, timeout=PATIENCE)

    def cut_off(self):
        """The node is gone, and has come back."""
        self.conn, self.chans, held, self.held = None, {}, self.held, {}
        for who in self.subscribed:
            self.subscribe(who)
        for (who, queue), had in held.items():
            events = [self.next(who, queue) for _ in had]
            assert sorted(e.body.decode() for e in events) == sorted(had), "other messages came back"
            assert all(e.redelivered for e in events), "not redelivered"
        self.settled()

    def sync(self, who):
        """All that is to come before it has come: an answered method of the channel that changes nothing."""
        self.chan(who).call("channel.flow", active=True)

    def sent(self, who, name="basic.deliver"):
        """What has come for `who` and was not looked at."""
        chan = self.chan(who)
        return [event for event in self.conn.pending if event.name == name and event.channel == chan.number]

    def leave(self):
        if self.conn is not None:
            self.conn.close()

    def settled(self):
        """Acknowledgements have no answer; that this has one says that they are on disk."""
        self.chan().declare(self.prefix + "barrier", durable=True)
        self.chan().call("queue.delete", queue=self.prefix + "barrier")

    # ---- names -----------------------------------------------------------
    def own(self, value):
        """Names in arguments: what begins with '@' is one of this run."""
        if isinstance(value, dict):
            return {key: self.own(item) for key, item in value.items()}
        return self.prefix + value[1:] if isinstance(value, str) and value.startswith("@") else value

    def common(self, value):
        """The same for all runs: without their prefix, and without times of day."""
        if isinstance(value, dict):
            return {key: self.common(item) for key, item in value.items() if key != "time"}
        if isinstance(value, list):
            return [self.common(item) for item in value]
        return value.replace(self.prefix, "") if isinstance(value, str) else value

    # ---- messages --------------------------------------------------------
    def subscribe(self, who):
        queue, arguments = self.subscribed[who]
        self.chan(who).consume(self.prefix + queue, tag=who, arguments=arguments)

    def next(self, who, queue):
        """The next message for a consumer, or of a get where there is none; it is held."""
        if who is None:
            event = self.chan().get_wait(self.prefix + queue, no_ack=False, timeout=PATIENCE)
        else:
            event = self.chan(who).deliver(timeout=PATIENCE)
        self.held.setdefault((who, queue), {})[event.body.decode()] = event.delivery_tag
        return event

    def note(self, queue, event):
        body = event.body.decode()
        self.notes.append(Delivery(queue, body, event.redelivered, self.common(event.headers or {}),
                                   self.out[queue, body]))

    def settle(self, how, who, queue, bodies):
        for body in bodies:
            tag = self.held[who, queue].pop(body)
            if how == "ack":
                self.chan(who).ack(tag)
            else:
                self.chan(who).nack(tag, requeue=how == "requeue")
            if how != "requeue":
                del self.out[queue, body]
        self.settled()

    def ready(self, queue):
        return self.chan().counts(self.prefix + queue)[0]


def poll(check, what):
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(PAUSE)


# --------------------------------------------------------------------------
# steps
# --------------------------------------------------------------------------
def queue(name, **arguments):
    """x_max_length=1 is the argument x-max-length; '@dead' is the name of this run's 'dead'."""
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    return Step("declare " + name,
                lambda w: w.chan().declare(w.prefix + name, durable=True, arguments=w.own(arguments)))


def exchange(name, kind, **arguments):
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    return Step("declare exchange " + name,
                lambda w: w.chan().exchange(w.prefix + name, kind, durable=True, arguments=w.own(arguments)))


def bind(name, source, key=""):
    return Step("bind " + name, lambda w: w.chan().bind(w.prefix + name, w.prefix + source, key))


def together(*steps):
    """Several as one."""
    def work(w):
        for step in steps:
            step.work(w)
    return Step("; ".join(step.name for step in steps), work, any(step.waits for step in steps))


def publish(key, bodies, to=None, **props):
    """Persistent messages through the exchange `to` (to the queue `key` without one); notes what becomes of each."""
    def work(w):
        chan = w.chan("publisher")
        for body in bodies.split():
            chan.publish("" if to is None else w.prefix + to, w.prefix + key if to is None else key, body,
                         delivery_mode=2, **props)
            said = chan.expect("basic.ack", "basic.nack", timeout=PATIENCE)
            w.notes.append((said.name, body))
    return Step("publish " + bodies, work)


def publish_delayed(key, delays, to):
    """Persistent messages {body: x-delay in ms} in one piece, so that their times count from one moment."""
    def work(w):
        chan = w.chan("publisher").conn.channel()       # its confirms begin with 1
        chan.call("confirm.select")
        chan.conn.send_raw(b"".join(chan.encode_publish(w.prefix + to, key, body, delivery_mode=2, headers={"x-delay": delay})
                                    for body, delay in delays.items()))
        said = chan.confirmed(len(delays), timeout=PATIENCE)
        w.notes.extend((said[n], body) for n, body in enumerate(delays, 1))
        chan.close()
    return Step("publish " + " ".join(delays), work)


def ready(name, count):
    """Wait until so many are ready."""
    return Step("%d in %s" % (count, name),
                lambda w: poll(lambda: w.ready(name) == count, "%s has %d" % (name, w.ready(name))), waits=True)


def count(*names):
    """Notes how many are ready."""
    return Step("count " + " ".join(names), lambda w: w.notes.extend((name, w.ready(name)) for name in names))


def hold(name, number, who=None):
    """Get so many without an acknowledgement, or let a consumer receive them; notes them."""
    def work(w):
        for _ in range(number):
            w.note(name, w.next(who, name))
        w.settled()
    return Step("%s %d of %s" % ("get" if who is None else who + " receives", number, name), work)


def settle(how, name, bodies, who=None):
    """'ack', 'requeue' or 'reject' what is held."""
    return Step("%s %s" % (how, bodies), lambda w: w.settle(how, who, name, bodies.split()))


def bounce(name, how, number=1):
    """Get and give back in one step."""
    def work(w):
        for _ in range(number):
            event = w.next(None, name)
            w.note(name, event)
            w.settle(how, None, name, [event.body.decode()])
    return Step("get from %s and %s" % (name, how), work)


def take(name, number):
    """Get and acknowledge so many, the last there are; notes them."""
    def work(w):
        for _ in range(number):
            event = w.next(None, name)
            w.note(name, event)
            w.settle("ack", None, name, [event.body.decode()])
        assert w.chan().get(w.prefix + name) is None, "more than %d in %s" % (number, name)
    return Step("take %d from %s" % (number, name), work)


def consume(who, name, prefetch=0, **arguments):
    def work(w):
        w.subscribed[who] = (name, {key.replace("_", "-"): value for key, value in arguments.items()})
        if prefetch:
            w.chan(who).qos(prefetch)
        w.subscribe(who)
    return Step("%s consumes %s" % (who, name), work)


def idle(who):
    """Nothing comes for this consumer."""
    def work(w):
        w.sync(who)
        assert not w.sent(who)
    return Step(who + " gets nothing", work)


def cancel(who):
    def work(w):
        del w.subscribed[who]
        w.chan(who).call("basic.cancel", consumer_tag=who)
    return Step("cancel " + who, work)


def purge(name):
    return Step("purge " + name, lambda w: w.notes.append(
        ("purged", w.chan().call("queue.purge", queue=w.prefix + name).message_count)))


def delete(name):
    return Step("delete " + name, lambda w: w.notes.append(
        ("deleted", w.chan().call("queue.delete", queue=w.prefix + name).message_count)))


def delete_exchange(name):
    return Step("delete exchange " + name, lambda w: w.chan().call("exchange.delete", exchange=w.prefix + name))


def until(accepted, key, body, **props):
    """Publish the same again and again until one more is in the queue `accepted`."""
    def work(w):
        before = w.ready(accepted)
        poll(lambda: publish(key, body, **props).work(w) or w.ready(accepted) > before, "still refused")
        w.notes = [note for note in w.notes if note != ("basic.ack", body)]     # there may be any number of them
    return Step("publish %s until it is taken" % body, work, waits=True)


def gone(name):
    """Wait until the queue is no more: without asking for it, for that would count as use."""
    def returned(w):
        w.chan("prober").publish("", w.prefix + name, b"?", mandatory=True)
        w.sync("prober")
        return w.sent("prober", "basic.return")
    return Step(name + " is gone", lambda w: poll(lambda: returned(w), "it is still there"), waits=True)


# --------------------------------------------------------------------------
# runs
# --------------------------------------------------------------------------
class Run:
    """A scenario once, with what went wrong in it. gap: the number of steps before the restart; None: none, or many."""

    def __init__(self, node, name, steps, gap, prefix):
        self.name, self.steps, self.gap, self.at, self.error = name, steps, gap, 0, None
        self.world = World(node, prefix)

    def to(self, end):
        """Go on up to this step."""
        for step in self.steps[self.at:end]:
            self.attempt("in step '%s'" % step.name, step.work)
        self.at = max(self.at, end)

    def attempt(self, where, work):
        """Nothing more is done once one thing has failed."""
        try:
            if self.error is None:
                work(self.world)
        except (AssertionError, wire.ServerClose, wire.Eof, OSError, KeyError) as exc:
            self.error = "%s: %s: %s" % (where, type(exc).__name__, exc)

    def where(self):
        return "in every gap" if self.gap is None else \
            "between '%s' and '%s'" % (self.steps[self.gap - 1].name, self.steps[self.gap].name)


class Stage:
    """Runs side by side."""

    def __init__(self, node, scenarios, kind, gaps=lambda steps: [None]):
        self.node = node
        self.runs = [Run(node, name, steps, gap, "%s-%s-%s." % (kind, name.replace(" ", "-"), gap))
                     for name, steps in scenarios.items() for gap in gaps(steps)]

    def __enter__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(len(self.runs)).__enter__()
        return self

    def __exit__(self, *exc):
        self.all(lambda run: run.to(len(run.steps)))
        self.all(lambda run: run.attempt("at the end", World.leave))
        self.node.abort_conns()
        return self.pool.__exit__(*exc)

    def all(self, work):
        list(self.pool.map(work, self.runs))

    def restart(self, how, away=0.0):
        """The node goes, is away for so many seconds, and comes back."""
        self.all(lambda run: run.attempt("before the node went", World.before))
        if how == "kill":
            self.node.kill()
        else:
            self.node.process.send_signal(signal.SIGTERM)
            self.all(lambda run: run.attempt("when the node said that it goes", World.farewell))
            self.node.stop(sig=None)
        self.node.abort_conns()
        time.sleep(away)
        self.node.start()
        self.all(lambda run: run.attempt("when it came back", World.cut_off))


def play_through(node, scenarios):
    """Each scenario without a restart; the runs."""
    with Stage(node, scenarios, "through") as stage:
        return stage.runs


def play(node, scenarios, how, away):
    """Each scenario once for each of its gaps, with a 'stop' or a 'kill' in it, and so many seconds until the start."""
    with Stage(node, scenarios, how, lambda steps: range(1, len(steps))) as stage:
        # What the last step before the gap publishes is still to expire when the node goes: so the waits are first.
        stage.all(lambda run: run.to(run.gap - (not run.steps[run.gap - 1].waits)))
        stage.all(lambda run: run.to(run.gap))
        stage.restart(how, away)
        return stage.runs


def play_all(node, scenarios):
    """Each scenario once, with a kill in every gap."""
    with Stage(node, scenarios, "all") as stage:
        for gap in range(1, max(map(len, scenarios.values()))):
            stage.all(lambda run, gap=gap: run.to(min(gap, len(run.steps))))
            stage.restart("kill")
        return stage.runs


def differences(before, after):
    """What the notes of a run with a restart have otherwise than those of one without, as text; '' for nothing.

    The one thing that may differ is said here: a message that was unacknowledged when the node went is redelivered
    from then on, and counts as one that came back once more.
    """
    wanted = [note.if_it_came_back(seen) if isinstance(note, Delivery) and isinstance(seen, Delivery) else note
              for note, seen in zip(before, after)]
    if wanted == after and len(before) == len(after):
        return ""
    return "without: %s\n   with: %s" % ("\n          ".join(map(str, before)), "\n          ".join(map(str, after)))
