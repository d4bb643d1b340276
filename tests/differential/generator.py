"""Scripts from seeds: a seed and a theme make the same list of steps each time (themes.py has more themes).

The theme says what the queues are and which steps are frequent. What is refused, or does nothing, is as
welcome as what works. What is left out is what RabbitMQ itself leaves to chance.
"""
# SPDX-License-Identifier: Apache-2.0

KEYS = ("k", "a.b", "a.c.d", "")
PATTERNS = ("k", "#", "a.*", "a.#", "*.b", "#.d", "")
CHANNELS = ("a1", "a2", "b1")

#: what a step of each kind weighs where the theme does not say otherwise
WEIGHTS = {"publish": 30, "consume": 8, "cancel": 3, "get": 10, "settle": 22, "recover": 1, "qos": 4, "purge": 2, "delete": 1,
           "declare": 3, "exchange": 1, "delete_exchange": 1, "bind": 3, "confirm": 2, "tx": 0, "close": 2, "disconnect": 1,
           "ack_unknown": 1, "expire": 0}

THEMES = {
    "plain": {},
    "consumers": {"consume": 20, "cancel": 8, "qos": 10, "settle": 30, "get": 2, "close": 3},
    "topology": {"declare": 10, "exchange": 8, "delete_exchange": 4, "bind": 14, "delete": 4, "settle": 5},
    "tx": {"tx": 14, "settle": 20, "confirm": 0},
    "requeue": {"settle": 50, "recover": 5, "get": 20, "close": 4, "disconnect": 3},
    "ttl": {"expire": 5, "consume": 4},
    "dead": {"settle": 34, "expire": 2},
    "limits": {"publish": 40, "confirm": 8},
    "priority": {"publish": 36, "get": 14},
    "ageing": {"expire": 14, "consume": 3, "settle": 16, "purge": 0, "declare": 1, "exchange": 0, "delete_exchange": 0, "close": 1},
    "single": {"consume": 20, "cancel": 10, "close": 5, "disconnect": 3},
    "quorum": {"settle": 34, "recover": 0, "expire": 3},
    "lease": {"expire": 8, "consume": 12, "cancel": 8, "close": 4},
    "mixed": {"expire": 2, "settle": 30},
}

#: queue arguments by theme: name, values; each is taken half of the time
TTL = [("x-message-ttl", ["SHORT", 60000, 0])]
DEAD = [("x-dead-letter-exchange", ["", "@x1", "@x2", "@nowhere"]), ("x-dead-letter-routing-key", ["@q1", "@q2", "k"])]
LIMITS = [("x-max-length", [0, 1, 2, 3, 5]), ("x-max-length-bytes", [0, 10, 40]),
          ("x-overflow", ["drop-head", "reject-publish", "reject-publish-dlx"])]
PRIORITY = [("x-max-priority", [1, 3, 10])]
SINGLE = [("x-single-active-consumer", [True])]
QUORUM = [("x-delivery-limit", [0, 1, 2]), ("x-dead-letter-exchange", ["", "@x1"]), ("x-dead-letter-routing-key", ["@q2"]),
          ("x-max-length", [1, 3]), ("x-message-ttl", ["SHORT", 0, 60000, 60000])]
AGEING = PRIORITY + PRIORITY + [("x-message-ttl", ["SHORT", "SHORT", "SHORT", 60000, 0])] + DEAD + LIMITS[:1]
LEASE = [("x-expires", ["SHORT", "SHORT", 60000]), ("x-message-ttl", ["SHORT", 60000])]
ARGUMENTS = {"quorum": QUORUM, "lease": LEASE, "ttl": TTL + DEAD, "dead": DEAD + DEAD + TTL + LIMITS, "limits": LIMITS + DEAD, "priority": PRIORITY,
             "single": SINGLE, "ageing": AGEING, "mixed": TTL + DEAD + LIMITS + PRIORITY + SINGLE}


class Script:
    def __init__(self, rnd, theme):
        self.rnd, self.theme = rnd, theme
        self.weights = dict(WEIGHTS, **THEMES.get(theme, {}))
        self.steps = []
        self.queues = ["@q%d" % n for n in range(1, self.rnd.randint(1, 3) + 1)]
        self.exchanges = ["@x%d" % n for n in range(1, self.rnd.randint(0, 2) + 1)]
        self.tags = 0
        self.consumers = []             # (channel, tag)
        self.modes = {}                 # channel: "confirm" or "tx"
        self.holders = set()            # channels that may hold deliveries
        self.short = False              # may something expire soon?

    def maybe(self, chance):
        return self.rnd.random() < chance

    def one(self, *things):
        return self.rnd.choice(things)

    def add(self, op, **args):
        self.steps.append(dict({"op": op}, **{key: value for key, value in args.items() if value is not False}))

    def channel(self):
        return self.one(*CHANNELS)

    def queue(self):
        return self.one(*self.queues) if self.maybe(0.97) else self.one("@q9", "@none")

    # ---- objects -----------------------------------------------------------
    def arguments(self):
        args = {}
        for name, values in ARGUMENTS.get(self.theme, ()):
            if self.maybe(0.5):
                args[name] = self.rnd.choice(values)
        if "x-dead-letter-routing-key" in args and self.maybe(0.9):
            args.setdefault("x-dead-letter-exchange", self.one("", "@x1"))
        self.short |= "SHORT" in args.values()
        return args

    def declare(self, queue=None):
        again = queue is None
        queue = queue or self.queue()
        known = [step for step in self.steps if step["op"] == "declare" and step["q"] == queue and not step.get("passive")]
        if known and self.maybe(0.7):
            step = dict(known[0], ch=self.channel())
            if self.maybe(0.2):
                step["durable"] = not step.get("durable", False)
            self.steps.append(step)
        elif again and self.maybe(0.3):
            self.add("declare", ch=self.channel(), q=queue, passive=True)
        elif self.theme == "quorum" and self.maybe(0.9):
            self.add("declare", ch=self.channel(), q=queue, durable=True, args=dict({"x-queue-type": "quorum"}, **self.arguments()))
        else:
            self.add("declare", ch=self.channel(), q=queue, durable=self.maybe(0.4), exclusive=self.maybe(0.1),
                     auto=self.maybe(0.1), args=self.arguments() or False)

    def exchange(self, name=None):
        name = name or self.one("@x1", "@x2", "@x3", "@x3")
        args = {"alternate-exchange": self.one("@x1", "@x2", "@x3", "amq.fanout")} if self.maybe(0.15) else False
        self.add("exchange", ch=self.channel(), x=name, type=self.one("direct", "fanout", "topic", "topic", "headers"),
                 durable=self.maybe(0.3), auto=self.maybe(0.15), internal=self.maybe(0.05),
                 passive=self.maybe(0.1), args=args)
        if name not in self.exchanges:
            self.exchanges.append(name)

    def delete_exchange(self):
        self.add("delete_exchange", ch=self.channel(), x=self.one("@x1", "@x2", "@x3"), unused=self.maybe(0.5))

    def source(self, keys):
        """An exchange and a key. Other scripts run at the same time, so what they share has keys of each one's own."""
        if self.exchanges and self.maybe(0.9):
            return self.one(*self.exchanges), self.one(*keys)
        return self.one("amq.topic", "amq.direct", ""), "@k"

    def bind(self):
        source, key = self.source(PATTERNS)
        if self.exchanges and self.maybe(0.25):
            self.add("bind", ch=self.channel(), kind="exchange", to=self.one(*self.exchanges), x=source, key=key,
                     un=self.maybe(0.2))
            return
        args = False
        if self.maybe(0.2):
            args = {"x-match": self.one("all", "any"), "h": self.one("v", "w")}
        self.add("bind", ch=self.channel(), to=self.queue(), x=source, key=key, un=self.maybe(0.2), args=args)

    def delete(self):
        self.add("delete", ch=self.channel(), q=self.queue(), unused=self.maybe(0.4), empty=self.maybe(0.4))

    def purge(self):
        self.add("purge", ch=self.channel(), q=self.queue())

    # ---- messages ------------------------------------------------------------
    def properties(self):
        props = {}
        if self.maybe(0.2):
            props["delivery_mode"] = self.one(1, 2)
        if self.theme in ("priority", "ageing") or self.maybe(0.05):
            props["priority"] = self.one(0, 1, 2, 3, 7, 255)
        if self.theme in ("ttl", "mixed", "ageing", "quorum") and self.maybe(0.2):
            props["expiration"] = self.one("0", "SHORT", "60000")
            self.short |= props["expiration"] == "SHORT"
        headers = {}
        if self.maybe(0.2):
            headers["h"] = self.one("v", "w", 5, True)
        if self.maybe(0.06):
            headers[self.one("CC", "BCC")] = [self.one("k", "a.b", "@q1", "@q2")]
        if headers:
            props["headers"] = headers
        if self.maybe(0.1):
            props.update(correlation_id="c", reply_to="r", content_type="text/plain", message_id="i", timestamp=1,
                         type="t", app_id="a", content_encoding="e")
        if self.maybe(0.03):
            props["user_id"] = self.one("guest", "other")
        if self.maybe(0.02):
            props["expiration"] = self.one("-1", "soon", "", "99999999999")
        return props

    def publish(self):
        if self.maybe(0.6) or not self.exchanges:
            exchange, key = "", self.queue()
        else:
            exchange, key = self.source(KEYS) if self.maybe(0.95) else ("@nowhere", "k")
        self.add("publish", ch=self.channel(), x=exchange, key=key,
                 n=self.one(1, 1, 2, 3, 5), mandatory=self.maybe(0.15), props=self.properties() or False,
                 size=self.one(False, False, False, 30))

    def confirm(self):
        channel = self.channel()
        self.add("confirm", ch=channel)

    def tx(self):
        channel = self.one("a2", "b1")
        if channel in self.modes or self.maybe(0.05):
            self.add("tx", ch=channel, do=self.one("commit", "commit", "rollback", "select"))
        else:
            self.modes[channel] = "tx"
            self.add("tx", ch=channel, do="select")

    # ---- consumers -----------------------------------------------------------
    def consume(self):
        channel = self.channel()
        self.tags += 1
        tag = "c%d" % self.tags
        if self.consumers and self.maybe(0.05):
            channel, tag = self.one(*self.consumers)
        args = {"x-priority": self.one(-1, 1, 5)} if self.maybe(0.2) else False
        self.add("consume", ch=channel, q=self.queue(), tag=tag, no_ack=self.maybe(0.25), exclusive=self.maybe(0.08),
                 args=args)
        self.consumers.append((channel, tag))
        if not self.steps[-1].get("no_ack"):
            self.holders.add(channel)

    def cancel(self):
        channel, tag = self.one(*self.consumers) if self.consumers else (self.channel(), "c0")
        self.add("cancel", ch=channel, tag=tag)

    def get(self):
        self.add("get", ch=self.channel(), q=self.queue(), no_ack=self.maybe(0.25))
        if not self.steps[-1].get("no_ack"):
            self.holders.add(self.steps[-1]["ch"])

    def settle(self):
        how = self.one("ack", "ack", "nack", "nack", "reject")
        # One that holds nothing does nothing: rarely.
        if not self.holders and self.maybe(0.8):
            self.get()
            return
        channel = self.one(*sorted(self.holders)) if self.holders and self.maybe(0.95) else self.channel()
        self.add("settle", ch=channel, how=how, pick=self.rnd.randrange(6), requeue=how != "ack" and self.maybe(0.5),
                 multiple=how != "reject" and self.maybe(0.35))

    def recover(self):
        self.add("recover", ch=self.channel())

    def qos(self):
        self.add("qos", ch=self.channel(), count=self.one(0, 1, 1, 2, 3, 10), **{"global": self.maybe(0.3)})

    def close(self):
        self.forget(self.one(*CHANNELS), None)

    def disconnect(self):
        self.forget(None, self.one("a", "b"))

    def forget(self, channel, conn):
        gone = [each for each in CHANNELS if each == channel or each[0] == conn]
        self.consumers = [pair for pair in self.consumers if pair[0] not in gone]
        for each in gone:
            self.modes.pop(each, None)
            self.holders.discard(each)
        if channel:
            self.add("close", ch=channel)
        else:
            self.add("disconnect", conn=conn, cut=self.maybe(0.5))

    def ack_unknown(self):
        channel = self.channel()
        self.add("ack_unknown", ch=channel)
        self.modes.pop(channel, None)
        self.holders.discard(channel)

    def expire(self):
        if self.short:
            self.add("expire")

    # ---- the whole -------------------------------------------------------------
    def make(self):
        for name in self.exchanges:
            self.exchange(name)
        for name in self.queues:
            self.declare(name)
        if self.exchanges:
            for _ in range(self.rnd.randint(1, 3)):
                self.bind()
        for _ in range(self.rnd.randint(0, 2)):
            self.consume()
        self.some()
        self.expire()
        return self.steps

    def some(self, least=8, most=26):
        """So many steps, of the kinds that are frequent."""
        kinds, weights = zip(*sorted(self.weights.items()))
        for _ in range(self.rnd.randint(least, most)):
            getattr(self, self.rnd.choices(kinds, weights)[0])()
