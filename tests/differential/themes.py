"""All themes, and what the scripts of some are made of besides: generate(seed) is the same list of steps each time."""
# SPDX-License-Identifier: Apache-2.0
import random

import generator
from generator import CHANNELS, Script


class Hash(Script):
    """Consistent-hash exchanges. Which queue a message goes to is each broker's own; that it is one, and the same for the
    same value, is not. So either the queues @h1 to @h3 are bound, which are looked at as one (player.py), or exchanges
    that lead to the same queue. Each is bound once: which of two bindings counts is another on RabbitMQ."""

    WEIGHTS = {"publish": 40, "collect": 12, "bind": 12, "exchange": 3, "delete_exchange": 1, "delete": 2, "declare": 3, "consume": 2,
               "cancel": 1, "get": 2, "confirm": 4, "close": 1, "disconnect": 1, "tx": 2}
    METHODS = (({}, "key"), ({}, "key"), ({"hash-header": "h"}, "header"), ({"hash-property": "message_id"}, "message_id"),
               ({"hash-property": "correlation_id"}, "correlation_id"), ({"hash-property": "timestamp"}, "timestamp"))
    WRONG = ({"hash-property": "app_id"}, {"hash-property": "message_id", "hash-header": "h"}, {"hash-header": 5},
             {"hash-property": True})

    def __init__(self, rnd, theme):
        super().__init__(rnd, theme)
        self.weights = self.WEIGHTS
        self.places = self.one(["@h1", "@h2", "@h3"], ["@h1", "@h2", "@h3"], ["@x2", "@x3"])
        self.queues = [name for name in self.places if name[1] == "h"] + ["@q1"]
        self.exchanges = ["@x1", "@x2", "@x3"]
        self.bound = set()
        self.method = self.one(*self.METHODS)

    def declare(self, queue=None):
        queue = queue or self.one(*self.queues)
        args = {}
        if self.maybe(0.2):
            args = {"x-message-ttl": 0, "x-dead-letter-exchange": "@x1"} if queue == "@q1" else {"x-max-priority": 2}
        self.steps.append(next((step for step in self.steps if step["op"] == "declare" and step["q"] == queue),
                               {"op": "declare", "ch": self.channel(), "q": queue, "args": args}))

    def exchange(self, name=None):
        name = name or self.one("@x1", "@x1", "@x2", "@x3", "@x4")
        if name in ("@x2", "@x3"):
            self.add("exchange", ch=self.channel(), x=name, type="fanout")
            return
        args = dict(self.method[0])
        if name != "@x1" and self.maybe(0.5):
            args = dict(self.one(*self.WRONG))
        if self.maybe(0.2):
            args["alternate-exchange"] = "@x2"
        self.add("exchange", ch=self.channel(), x=name, type="x-consistent-hash", auto=self.maybe(0.1), durable=self.maybe(0.3),
                 args=args or False)

    def bind(self):
        to = self.one(*self.places)
        kind = "queue" if to[1] == "h" else "exchange"
        weight = self.one("1", "1", "2", "3", "10")
        if self.maybe(0.06):
            weight = self.one("0", "-1", "x", "", "1.5", " 1", "1 ")
            self.add("bind", ch=self.channel(), kind=kind, to=to, x="@x1", key=weight)
        elif to not in {each for each, _ in self.bound}:
            self.bound.add((to, weight))
            self.add("bind", ch=self.channel(), kind=kind, to=to, x="@x1", key=weight)
        else:
            pair = next(pair for pair in sorted(self.bound) if pair[0] == to)
            un = self.maybe(0.5)
            if un:
                self.bound.discard(pair)
            self.add("bind", ch=self.channel(), kind=kind, to=to, x="@x1", key=pair[1], un=un)

    def delete(self):
        queue = self.queue()
        if queue != "@q1":
            self.collect()              # how many it has is chance
            self.bound = {pair for pair in self.bound if pair[0] != queue}
        self.add("delete", ch=self.channel(), q=queue)

    def queue(self):
        return self.one(*self.queues)

    def delete_exchange(self):
        self.bound.clear()
        self.add("delete_exchange", ch=self.channel(), x="@x1")

    def publish(self):
        values = ["v%d" % self.rnd.randrange(8) for _ in range(self.one(1, 2, 4, 8))]
        vary = self.method[1] if self.maybe(0.85) else "key"
        if vary == "timestamp":
            values = [int(value[1:]) for value in values]
        self.add("publish", ch=self.channel(), x="@x1" if self.maybe(0.95) else "@x2", key="k", n=self.one(1, 3, 8), vary=[vary] + values,
                 mandatory=self.maybe(0.2), sticks=vary == self.method[1])

    def collect(self):
        self.add("collect", ch=self.channel())

    def consume(self):
        """Never of one of the others: whether it gets anything is chance."""
        self.tags += 1
        channel, tag = self.channel(), "c%d" % self.tags
        self.add("consume", ch=channel, q="@q1", tag=tag, no_ack=True)
        self.consumers.append((channel, tag))

    def get(self):
        self.add("get", ch=self.channel(), q="@q1", no_ack=True)

    def make(self):
        for name in self.exchanges:
            self.exchange(name)
        for name in self.queues:
            self.declare(name)
        for name in ("@x2", "@x3"):
            self.add("bind", ch=self.channel(), to="@q1", x=name, key="k")
        for _ in range(self.rnd.randint(1, 4)):
            self.bind()
        self.some()
        self.collect()
        return self.steps


class Overdue(Script):
    """Deliveries that are held for longer than the consumer timeout: RabbitMQ closes the channel, Hermes cancels the
    consumer. Here it is the only consumer of its queue, so that nobody else has what came back at once."""

    WEIGHTS = {"publish": 30, "consume": 10, "get": 8, "settle": 40, "qos": 3, "cancel": 2}

    def __init__(self, rnd, theme):
        super().__init__(rnd, theme)
        self.weights = self.WEIGHTS
        self.free = list(self.queues)

    def arguments(self):
        return {"x-consumer-timeout": "HELD"}

    def declare(self, queue=None):
        durable = self.maybe(0.4)
        args = dict(self.arguments(), **({"x-queue-type": "quorum"} if durable and self.maybe(0.5) else {}))
        self.add("declare", ch=self.channel(), q=queue, durable=durable, args=args)

    def publish(self):
        self.add("publish", ch=self.channel(), x="", key=self.queue(), n=self.one(1, 2, 3))

    def queue(self):
        return self.one(*self.queues)

    def consume(self):
        if not self.free:
            self.publish()
            return
        self.tags += 1
        channel, tag, queue = self.channel(), "c%d" % self.tags, self.free.pop()
        self.add("consume", ch=channel, q=queue, tag=tag, no_ack=self.maybe(0.1))
        self.consumers.append((channel, tag))
        self.holders.add(channel)

    def settle_all(self):
        for channel in CHANNELS:
            for _ in range(self.one(1, 3)):
                self.add("settle", ch=channel, how=self.one("ack", "ack", "nack"), pick=-1, multiple=True)

    def make(self):
        for name in self.queues:
            self.declare(name)
        self.some(4, 12)
        if self.maybe(0.4):
            self.settle_all()
            self.add("overdue")
            self.some(2, 6)
        self.add("overdue")
        return self.steps


class AtLeastOnce(Script):
    """Quorum queues whose dead letters wait until their target takes them. Nothing but a step that is marked "heals" may
    end a wait, and the player waits after it for as long as either broker needs to try again."""

    WEIGHTS = {"publish": 30, "consume": 8, "cancel": 2, "get": 12, "settle": 40, "expire": 6, "close": 2, "heal": 8}

    def __init__(self, rnd, theme):
        super().__init__(rnd, theme)
        self.weights = self.WEIGHTS
        self.queues = ["@q1", "@q1", "@q1", "@q2"]
        self.exchanges = []
        self.way = self.one("", "", "@x1")
        self.target = self.one({}, {}, {"x-max-length": 1, "x-overflow": "reject-publish"}, {"x-max-length": 2},
                               {"x-queue-type": "quorum"}, None)
        self.bind_late = self.maybe(0.3)

    def source(self, keys):
        return "", "@q1"

    def declare_source(self):
        args = {"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
                "x-dead-letter-exchange": self.way, "x-dead-letter-routing-key": "@q2"}
        if self.maybe(0.5):
            args["x-message-ttl"] = self.one("SHORT", 0, 60000)
            self.short |= args["x-message-ttl"] == "SHORT"
        if self.maybe(0.5):
            args["x-delivery-limit"] = self.one(0, 1)
        if self.maybe(0.1):
            args.pop(self.one("x-overflow", "x-dead-letter-exchange", "x-dead-letter-routing-key"))
        self.add("declare", ch=self.channel(), q="@q1", durable=True, args=args)

    def declare_target(self, **how):
        args = self.target or {}
        self.add("declare", ch=self.channel(), q="@q2", durable=args.get("x-queue-type") == "quorum", args=args or False, **how)

    def bind_target(self, **how):
        self.add("exchange", ch=self.channel(), x="@x1", type="direct", **how)
        self.add("bind", ch=self.channel(), to="@q2", x="@x1", key="@q2", **how)

    def properties(self):
        props = {}
        if self.maybe(0.2):
            props["expiration"] = self.one("0", "SHORT", "60000")
            self.short |= props["expiration"] == "SHORT"
        if self.maybe(0.3):
            props["headers"] = {"h": self.one("v", 5)}
        return props

    def publish(self):
        self.add("publish", ch=self.channel(), x="", key="@q1" if self.maybe(0.95) else "@q2", n=self.one(1, 1, 2, 3),
                 props=self.properties() or False)

    def queue(self):
        return self.one(*self.queues)

    def heal(self):
        what = self.one("declare", "bind", "purge", "get", "get", "get")
        if what == "declare":
            self.declare_target(heals=True)
        elif what == "bind" and self.way:
            self.bind_target(heals=True)
        elif what == "purge":
            self.add("purge", ch=self.channel(), q="@q2", heals=True)
        else:
            self.add("get", ch=self.channel(), q="@q2", no_ack=True, heals=True)

    def consume(self):
        """The target has none: what it gives out makes room in it."""
        self.tags += 1
        channel, tag = self.channel(), "c%d" % self.tags
        self.add("consume", ch=channel, q="@q1", tag=tag)
        self.consumers.append((channel, tag))
        self.holders.add(channel)

    def get(self):
        self.add("get", ch=self.channel(), q="@q1")
        self.holders.add(self.steps[-1]["ch"])

    def make(self):
        if self.target is not None:
            self.declare_target()
        self.declare_source()
        if self.way and not self.bind_late and self.target is not None:
            self.bind_target()
        self.some(8, 18)
        self.declare_target(heals=True)
        if self.way:
            self.bind_target(heals=True)
        for _ in range(3):
            self.add("get", ch="b1", q="@q2", no_ack=True, heals=True)
        return self.with_pauses()

    def with_pauses(self):
        """Nothing may expire while the player waits."""
        steps = []
        for step in self.steps:
            if self.short and step.get("heals") and not steps[-1].get("heals"):
                steps.append({"op": "expire"})
            steps.append(step)
        return steps


#: what is not only other weights and arguments
SPECIAL = {"hash": Hash, "overdue": Overdue, "at-least-once": AtLeastOnce}
THEMES = sorted(generator.THEMES) + sorted(SPECIAL)


def generate(seed, themes=THEMES):
    """The theme of a seed, and its steps."""
    rnd = random.Random("script %d" % seed)
    theme = rnd.choice(sorted(themes))
    return theme, SPECIAL.get(theme, Script)(rnd, theme).make()
