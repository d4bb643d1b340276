"""Plays a script against a broker and says what was seen, in a form that two brokers can be compared by.

A script is a list of steps (dicts, see README.md). After each step the player waits until the broker has
come to rest; what came until then is the outcome of the step. Where the outcome is known beforehand (a
trace, or what the other broker did) it waits for exactly that, and then that nothing more comes; where
it is not, until several rounds of questions were answered alike.

What depends on chance is not in an outcome: names have a prefix that is taken out, deliveries are kept by
consumer (two queues may send in any order), confirms as ranges, no times, no tags of deliveries.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import secrets
import time

from wire import CONTENT_METHODS, REPLIES, Conn, Eof, Timeout, Val, dec_properties, Reader

OBSERVER = 90           # channel that asks for the counts, in each connection
SHORT_MS = 300          # what "SHORT" means where a script has a time to live
MARGIN_MS = 40
HELD_MS = 3000          # what "HELD" means: rabbit.py has it as RabbitMQ's consumer timeout
OVERDUE_MS = 500        # so much later a broker has seen that a delivery is held too long
HEAL = 0.8              # seconds in which RabbitMQ has tried twice to send a dead letter again (rabbit.py)
CONFIRM_LIMIT = 5       # seconds
STABLE_ROUNDS = 3       # answered alike, for rest
PAUSE = 0.002           # seconds between rounds
QUORUM_PAUSE = 0.03     # where RabbitMQ writes a log first
LETTER_PAUSE = 0.06     # where it writes several, one after the other
GROUP = "@h"            # queues that are looked at as one: their names begin so


class Slow(Exception):
    """A message with a short time to live may have expired before its step: the run says nothing."""


def plain(value):
    """A value of a typed field table as JSON has it: [type, value]."""
    if isinstance(value, Val):
        tag, inner = value
        if tag == "F":
            return {"F": {key: plain(each) for key, each in inner.items()}}
        if tag == "A":
            return [plain(each) for each in inner]
        if tag == "S" and isinstance(inner, str):
            return inner
        if tag == "x" or isinstance(inner, bytes):
            return [tag, inner.hex()]
        return [tag, inner]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def ranges(numbers):
    """[1, 2, 3, 5] as "1-3,5"."""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join("%d-%d" % (a, b) if a != b else str(a) for a, b in parts)


def number(message):
    """Of a body: messages are m1, m2, and so on."""
    return int(re.match(r"m(\d+)", message[0]).group(1))


def grouped(counts):
    """The counts of queues; of those that are looked at as one, the sum."""
    group = [value for name, value in counts.items() if name.startswith(GROUP)]
    if not group:
        return counts
    known = [value for value in group if isinstance(value, list)]
    return dict({name: value for name, value in counts.items() if not name.startswith(GROUP)},
                **{GROUP: [sum(each) for each in zip(*known)] if known else group[0]})


class Channel:
    def __init__(self, link, name):
        self.link, self.name, self.number = link, name, int(name[1:])
        self.open = False
        self.reset()

    def reset(self):
        self.confirming = False
        self.published = 0
        self.answered = {}              # sequence number: "ack" or "nack", of this step
        self.settled_to = 0             # all up to here are answered
        self.settled = set()
        self.held = []                  # (step, consumer, delivery tag), not settled yet


class Link:
    """A connection of the script, or the one that watches."""

    def __init__(self, player, name):
        self.player, self.name = player, name
        self.conn = Conn(player.host, player.port, player.patience).handshake("guest", "guest", "/")
        self.channels = {}              # number: Channel
        self.observing = False
        self.alive = True
        self.replies = []

    def send(self, number, name, **args):
        if not self.alive:
            return
        try:
            self.conn.send_method(number, name, **args)
        except OSError:
            self.lost()

    def pump(self, number, wanted):
        """Reads until one of `wanted` comes on a channel, or what closes it; that event."""
        deadline = time.monotonic() + self.player.patience
        while self.alive:
            try:
                event = self.conn.read_event(deadline - time.monotonic())
            except Eof:
                self.lost()
                break
            closes = event.name in ("channel.close", "connection.close")
            if closes:
                self.on_close(event)
            elif event.channel == number and event.name in wanted:
                return event
            else:
                self.player.on_event(self, event)
            if event.name == "connection.close" or (closes and event.channel == number):
                return event
        return None

    def call(self, number, name, **args):
        self.send(number, name, **args)
        return self.pump(number, REPLIES.get(name, (name + "-ok",)))

    def on_close(self, event):
        where = self.name
        if event.name == "channel.close":
            self.send(event.channel, "channel.close-ok")
            if event.channel == OBSERVER:
                self.observing = False
                return
            channel = self.channels[event.channel]
            channel.open, where = False, channel.name
            channel.reset()
        else:
            self.send(0, "connection.close-ok")
            self.drop()
        self.player.out("err")[where] = [event.reply_code, self.player.relative(event.reply_text), event.class_id,
                                         event.method_id]

    def lost(self):
        if self.alive:
            self.drop()
            self.player.out("err")[self.name] = "lost"

    def drop(self):
        self.alive = False
        for channel in self.channels.values():
            channel.open = False
            channel.reset()
        self.conn.abort()

    def observer(self):
        if not self.observing:
            self.call(OBSERVER, "channel.open")
            self.observing = True
        return OBSERVER


class Player:
    def __init__(self, host, port, steps, patience=5, short_ms=SHORT_MS, last_try=False):
        self.host, self.port, self.steps = host, port, steps
        self.patience, self.short_ms, self.last_try = patience, short_ms, last_try
        self.prefix = "d%s-" % secrets.token_hex(5)
        self.links = {}
        self.queues = {}                # name: the name of the link that owns it, or "o"
        self.exchanges = set()
        self.quorum = set()             # names of queues
        self.counts = {}
        self.events = {}
        self.generated = []             # names that the server made, in their order
        self.bodies = 0
        self.step = 0
        self.chained = "dead-letter" in json.dumps(steps) and "at-least-once" not in json.dumps(steps)
        self.hurried = '"SHORT"' in json.dumps(steps)
        self.pause = QUORUM_PAUSE if '"quorum"' in json.dumps(steps) else PAUSE
        if '"at-least-once"' in json.dumps(steps):
            self.pause = LETTER_PAUSE
        self.holds = '"HELD"' in json.dumps(steps)
        self.tick = None                # since when something may be on its way to expire
        self.held_since = None          # since when a delivery may be held
        self.values = {}                # number of a body: what decides where a consistent hash sends it
        self.places = {}                # such a value: the queues that have had it
        self.last_tick = 0

    # ---- names and times -------------------------------------------------
    def absolute(self, value):
        """A value of a script as it goes out: "@" is the prefix, "SHORT" a time."""
        if isinstance(value, str):
            if value == "SHORT":
                return str(self.short_ms)
            if re.fullmatch(r"#\d+", value):
                index = int(value[1:])
                return self.generated[index] if index < len(self.generated) else "none"
            return value.replace("@", self.prefix)
        if isinstance(value, dict):
            return {self.absolute(key): self.number(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.absolute(each) for each in value]
        return value

    def number(self, value):
        """In a table: SHORT is a number there; {"I": 5} a value with its type."""
        if value == "SHORT":
            return self.short_ms
        if value == "HELD":
            return HELD_MS
        if isinstance(value, dict) and len(value) == 1:
            tag, inner = next(iter(value.items()))
            if len(tag) == 1:
                return Val(tag, self.absolute(inner))
        return self.absolute(value)

    def relative(self, value):
        """The reverse, for what came."""
        if isinstance(value, str):
            value = value.replace(self.prefix, "@")
            for match in re.findall(r"amq\.(?:gen|ctag)-[\w-]+", value):
                if match not in self.generated:
                    self.generated.append(match)
                value = value.replace(match, "#%d" % self.generated.index(match))
            # in refusals, too: it is another one where the machine was too slow for the first
            return "SHORT" if value == str(self.short_ms) else value.replace("'%d'" % self.short_ms, "'SHORT'")
        if isinstance(value, dict):
            return {self.relative(key): self.relative(each) for key, each in value.items() if key != "time"}
        if isinstance(value, (list, tuple)):
            return [self.relative(each) for each in value]
        if value == self.short_ms:
            return "SHORT"
        return value

    # ---- what comes --------------------------------------------------------
    def out(self, kind):
        return self.events.setdefault(kind, {})

    def content(self, event):
        props = dec_properties(Reader(event.header[12:]), typed=True)
        body = event.body.decode("latin-1")
        if len(body) > 40:
            body = "%s+%d" % (body.rstrip("."), len(body))
        seen = [body]
        if event.name != "basic.return":
            seen.append(int(event.redelivered))
        seen += [self.relative(event.exchange), self.relative(event.routing_key)]
        if props:
            seen.append(self.relative({key: plain(Val("F", each)) if key == "headers" else plain(each)
                                       for key, each in props.items()}))
        return seen

    def on_event(self, link, event):
        channel = link.channels.get(event.channel)
        if channel is None:
            self.out("stray")["%s%d" % (link.name, event.channel)] = event.name
        elif event.name == "basic.deliver":
            tag = self.relative(event.consumer_tag)
            self.out("d").setdefault("%s/%s" % (channel.name, tag), []).append(self.content(event))
            if (channel.name, tag) not in self.no_ack:
                channel.held.append((self.step, tag, event.delivery_tag))
        elif event.name == "basic.return":
            self.out("ret").setdefault(channel.name, []).append(
                [event.reply_code, event.reply_text] + self.content(event))
        elif event.name in ("basic.ack", "basic.nack"):
            self.on_confirm(channel, event)
        elif event.name == "basic.cancel":
            self.out("cancel").setdefault(channel.name, []).append(self.relative(event.consumer_tag))
            self.out("cancel")[channel.name].sort()
        else:
            self.out("stray")[channel.name] = event.name

    def on_confirm(self, channel, event):
        kind = event.name[6:]
        low = channel.settled_to + 1 if event.multiple else event.delivery_tag
        if event.multiple and event.delivery_tag == 0:
            self.out("stray")[channel.name] = "confirm of 0"
        for number in range(low, event.delivery_tag + 1):
            if number in channel.settled:
                if not event.multiple:
                    self.out("stray")[channel.name] = "confirmed twice"
                continue
            channel.settled.add(number)
            channel.answered[number] = kind
        while channel.settled_to + 1 in channel.settled:
            channel.settled_to += 1

    def outcome(self):
        """What came in this step so far, and the counts that are others than before."""
        out = {key: value for key, value in self.events.items() if value}
        for link in self.links.values():
            for channel in link.channels.values():
                for kind in ("ack", "nack"):
                    numbers = [number for number, what in channel.answered.items() if what == kind]
                    if numbers:
                        out.setdefault("conf", {})["%s %s" % (channel.name, kind)] = ranges(numbers)
        before = grouped(self.counts)
        changed = {name: value for name, value in grouped(self.now).items() if before.get(name) != value}
        if changed:
            out["n"] = changed
        return out

    # ---- rest ----------------------------------------------------------------
    def count(self, name):
        """[ready, consumers] of a queue, or the code of the refusal."""
        link = self.links.get(self.queues[name], self.links["o"])
        if not link.alive:
            link = self.links["o"]
        answer = link.call(link.observer(), "queue.declare", queue=self.absolute(name), passive=True)
        if answer is None:
            return "lost"
        if answer.name != "queue.declare-ok":
            return answer.reply_code
        # RabbitMQ counts as consumers of a quorum queue what was cancelled, and gets, while they hold messages.
        return [answer.message_count, 0 if name in self.quorum else answer.consumer_count]

    def round(self):
        """One question to each channel and queue; all that came before the answers has been taken in."""
        for link in list(self.links.values()):
            for channel in list(link.channels.values()):
                if channel.open and link.alive:
                    link.call(channel.number, "channel.flow", active=True)
        self.now = {name: self.count(name) for name in self.queues}
        for link in list(self.links.values()):
            for channel in list(link.channels.values()):
                if channel.open and link.alive:
                    link.call(channel.number, "channel.flow", active=True)
        return self.outcome()

    def waits(self):
        """Is a confirm to come yet?"""
        return any(channel.confirming and channel.open and len(channel.settled) < channel.published
                   for link in self.links.values() for channel in link.channels.values())

    def rest(self, rounds=STABLE_ROUNDS):
        seen, same, start = None, 0, time.monotonic()
        while same < rounds:
            now = self.round()
            same = same + 1 if now == seen else 1
            seen = now
            if self.waits() and time.monotonic() < start + CONFIRM_LIMIT:
                same = 0
            if same < rounds:
                time.sleep(self.pause)
        return seen

    def await_outcome(self, judge):
        """Until `judge` is content with the outcome, and then still is after another round."""
        deadline = time.monotonic() + self.patience
        while True:
            seen = self.round()
            if judge(self.step, seen):
                again = self.round()
                if judge(self.step, again):
                    return again
            if judge.hopeless(seen):
                return seen
            # Too late for a short time to live: with a longer one it is tried again, and then believed.
            if self.late() and not self.last_try:
                raise Slow
            if time.monotonic() > deadline or self.late():
                return seen
            time.sleep(PAUSE)

    def late(self):
        """May something have expired in the middle of a step?"""
        if self.held_since is not None and time.monotonic() > self.held_since + (HELD_MS - OVERDUE_MS) / 1000:
            return self.steps[self.step]["op"] != "overdue"
        if not self.hurried or self.tick is None or self.steps[self.step]["op"] == "expire":
            return False
        return time.monotonic() > self.tick + (self.short_ms - MARGIN_MS) / 1000

    # ---- the script ----------------------------------------------------------
    def link(self, name):
        link = self.links.get(name)
        if link is None or not link.alive:
            link = self.links[name] = Link(self, name)
        return link

    def channel(self, name):
        """A channel of the script, opened if it is not open: "a1" is the first of connection a."""
        link = self.link(name[0])
        channel = link.channels.setdefault(int(name[1:]), Channel(link, name))
        if not channel.open:
            self.no_ack = {pair for pair in self.no_ack if pair[0] != name}
            link.call(channel.number, "channel.open")
            channel.open = True
        return channel

    def play(self, judge=None):
        """The outcomes, one for each step. A judge (compare.Judge) knows them, and ends it where it has seen enough."""
        self.no_ack = set()
        outcomes = []
        if judge:
            judge.begin()
        try:
            self.link("o")
            for self.step, step in enumerate(self.steps):
                self.events, self.now = {}, dict(self.counts)
                self.before(step)
                getattr(self, "do_" + step["op"])(step)
                if step.get("heals") and not judge:
                    time.sleep(HEAL)
                if judge:
                    seen = self.await_outcome(judge)
                else:
                    seen = self.rest()
                outcomes.append(seen)
                if judge and not judge.accept(self.step, seen):
                    break
                if self.late():
                    raise Slow
                self.after()
        except Timeout:
            outcomes.append({"err": "no answer"})
        finally:
            self.clean()
        return outcomes

    def before(self, step):
        for link in self.links.values():
            for channel in link.channels.values():
                channel.answered = {}
        busy = step["op"] not in ("declare", "exchange", "bind", "expire") and not step.get("heals")
        if self.tick is None and (busy or step.get("args", {}).get("x-expires") == "SHORT"):
            self.tick = time.monotonic()
        self.last_tick = time.monotonic()
        if self.holds and self.held_since is None and step["op"] not in ("declare", "overdue"):
            self.held_since = time.monotonic()
        if step["op"] not in ("publish", "collect", "confirm", "tx"):
            self.values, self.places = {}, {}           # what is bound may be another

    def after(self):
        self.counts.update(self.now)
        for name in [name for name, value in self.now.items() if value == 404]:
            del self.queues[name], self.counts[name]

    def clean(self):
        """Takes away what the script has made; never fails."""
        try:
            for name, link in self.links.items():
                if name != "o":
                    link.conn.close()
            link = self.link("o")
            for kind, names in (("queue", self.queues), ("exchange", self.exchanges)):
                for name in names:
                    link.call(link.observer(), kind + ".delete", **{kind: self.absolute(name)})
            link.conn.close()
        except (Timeout, OSError, Eof):
            pass

    def request(self, step, method, **args):
        """A method that is answered; the answer, or None if it was refused."""
        channel = self.channel(step["ch"])
        if step.get("nowait"):
            channel.link.send(channel.number, method, nowait=True, **args)
            return None
        answer = channel.link.call(channel.number, method, **args)
        return answer if answer is not None and not answer.name.endswith(".close") else None

    def do_declare(self, step):
        name = step["q"]
        answer = self.request(step, "queue.declare", queue=self.absolute(name), passive=step.get("passive", False),
                              durable=step.get("durable", False), exclusive=step.get("exclusive", False),
                              auto_delete=step.get("auto", False), arguments=self.absolute(step.get("args", {})))
        if answer:
            name = self.relative(answer.queue)
            self.out("r")["ok"] = name
            if step.get("args", {}).get("x-queue-type") == "quorum":
                self.quorum.add(name)
            elif not step.get("passive"):
                self.quorum.discard(name)
            if name not in self.queues:
                self.queues[name] = step["ch"][0] if step.get("exclusive") else "o"

    def do_delete(self, step):
        answer = self.request(step, "queue.delete", queue=self.absolute(step["q"]), if_unused=step.get("unused", False),
                              if_empty=step.get("empty", False))
        if answer:
            self.out("r")["deleted"] = answer.message_count

    def do_purge(self, step):
        answer = self.request(step, "queue.purge", queue=self.absolute(step["q"]))
        if answer:
            self.out("r")["purged"] = answer.message_count

    def do_exchange(self, step):
        name = step["x"]
        answer = self.request(step, "exchange.declare", exchange=self.absolute(name), type=step["type"],
                              passive=step.get("passive", False), durable=step.get("durable", False),
                              auto_delete=step.get("auto", False), internal=step.get("internal", False),
                              arguments=self.absolute(step.get("args", {})))
        if answer:
            self.out("r")["ok"] = 1
            self.exchanges.add(name)

    def do_delete_exchange(self, step):
        if self.request(step, "exchange.delete", exchange=self.absolute(step["x"]), if_unused=step.get("unused", False)):
            self.out("r")["ok"] = 1

    def do_bind(self, step):
        """to: a queue, or an exchange if "kind" says so; un: the reverse."""
        kind = step.get("kind", "queue")
        to = {"queue": "queue"} if kind == "queue" else {"queue": "destination"}
        source = "exchange" if kind == "queue" else "source"
        args = {to["queue"]: self.absolute(step["to"]), source: self.absolute(step["x"]),
                "routing_key": self.absolute(step.get("key", "")), "arguments": self.absolute(step.get("args", {}))}
        if self.request(step, "%s.%s" % (kind, "unbind" if step.get("un") else "bind"), **args):
            self.out("r")["ok"] = 1

    def do_publish(self, step):
        """vary: ["key", "header" or a property, values...] for the messages, one after the other."""
        channel = self.channel(step["ch"])
        raw = b""
        for turn in range(step.get("n", 1)):
            self.bodies += 1
            body = ("m%d" % self.bodies).ljust(step.get("size", 0), ".")
            raw += self.message(channel, step, body, turn)
            channel.published += channel.confirming
        channel.link.conn.send_raw(raw)

    def message(self, channel, step, body, turn):
        from wire import Chan
        key, props = step.get("key", ""), {name: self.absolute(value) for name, value in step.get("props", {}).items()}
        if "vary" in step:
            what, *values = step["vary"]
            value = values[turn % len(values)]
            if what == "key":
                key = value
            elif what == "header":
                props["headers"] = {"h": value}
            else:
                props[what] = value
            if step.get("sticks"):
                self.values[self.bodies] = value
                self.places.setdefault(value, set())
        return Chan(channel.link.conn, channel.number).encode_publish(
            self.absolute(step["x"]), self.absolute(key), body, mandatory=step.get("mandatory", False), **props)

    def do_collect(self, step):
        """All that the queues have that are looked at as one; and which values were found in several of them."""
        found = []
        for name in [name for name in self.queues if name.startswith(GROUP)]:
            while True:
                answer = self.request(step, "basic.get", queue=self.absolute(name), no_ack=True)
                if answer is None or answer.name == "basic.get-empty":
                    break
                found.append(self.content(answer))
                value = self.values.pop(number(found[-1]), None)
                if value in self.places:
                    self.places[value].add(name)
        self.out("r")["got"] = sorted(found, key=number)
        self.out("r")["split"] = sorted(str(value) for value, names in self.places.items() if len(names) > 1)

    def do_confirm(self, step):
        if self.request(step, "confirm.select"):
            self.out("r")["ok"] = 1
            self.channel(step["ch"]).confirming = True

    def do_tx(self, step):
        if self.request(step, "tx." + step["do"]):
            self.out("r")["ok"] = 1

    def do_consume(self, step):
        pair = (step["ch"], step["tag"])
        self.channel(step["ch"])
        before = set(self.no_ack)
        if step.get("no_ack"):
            self.no_ack.add(pair)
        answer = self.request(step, "basic.consume", queue=self.absolute(step["q"]), consumer_tag=step["tag"],
                              no_ack=step.get("no_ack", False), exclusive=step.get("exclusive", False),
                              arguments=self.absolute(step.get("args", {})))
        if answer:
            self.out("r")["ok"] = 1
        elif not step.get("nowait"):
            self.no_ack = before

    def do_cancel(self, step):
        if self.request(step, "basic.cancel", consumer_tag=step["tag"]):
            self.out("r")["ok"] = 1

    def do_get(self, step):
        channel = self.channel(step["ch"])
        no_ack = step.get("no_ack", False)
        answer = self.request(step, "basic.get", queue=self.absolute(step["q"]), no_ack=no_ack)
        if answer is None:
            return
        if answer.name == "basic.get-empty":
            self.out("r")["got"] = "empty"
            return
        self.out("r")["got"] = self.content(answer) + [answer.message_count]
        if not no_ack:
            channel.held.append((self.step, "", answer.delivery_tag))

    def pick(self, step):
        """Which of the deliveries that a channel holds is meant, as the list of those that are settled with it.

        They are in the order of steps, and by consumer within one: in any other they differ by chance.
        """
        channel = self.channel(step["ch"])
        held = sorted(channel.held)
        if not held:
            return channel, []
        chosen = held[step.get("pick", 0) % len(held)]
        if not step.get("multiple"):
            return channel, [chosen]
        # With the last of its step, because two consumers' deliveries may have come in any order.
        tag = max(each[2] for each in held if each[0] == chosen[0])
        return channel, [each for each in held if each[2] <= tag]

    def do_settle(self, step):
        """how: ack, nack or reject."""
        channel, chosen = self.pick(step)
        if not chosen:
            return
        args = {"delivery_tag": max(each[2] for each in chosen)}
        if step["how"] != "reject":
            args["multiple"] = step.get("multiple", False)
        if step["how"] != "ack":
            args["requeue"] = step.get("requeue", False)
        channel.held = [each for each in channel.held if each not in chosen]
        channel.link.send(channel.number, "basic." + step["how"], **args)

    def do_ack_unknown(self, step):
        channel = self.channel(step["ch"])
        channel.link.send(channel.number, "basic.ack", delivery_tag=999999, multiple=False)
        channel.link.call(channel.number, "channel.flow", active=True)

    def do_recover(self, step):
        channel = self.channel(step["ch"])
        channel.held = []
        if self.request(step, "basic.recover", requeue=True):
            self.out("r")["ok"] = 1

    def do_qos(self, step):
        if self.request(step, "basic.qos", prefetch_count=step["count"], global_=step.get("global", False)):
            self.out("r")["ok"] = 1

    def do_close(self, step):
        """A channel; the next step that needs it opens it again."""
        channel = self.channel(step["ch"])
        channel.link.call(channel.number, "channel.close", reply_code=200, reply_text="bye")
        channel.open = False
        channel.reset()

    def do_disconnect(self, step):
        """A connection, in order or as a cable that is cut."""
        link = self.link(step["conn"])
        if step.get("cut"):
            link.drop()
        else:
            link.call(0, "connection.close", reply_code=200, reply_text="bye")
            link.drop()

    def do_overdue(self, step):
        """Waits until all that is held is held too long."""
        time.sleep(max(0.0, self.last_tick + (HELD_MS + OVERDUE_MS) / 1000 - time.monotonic()))
        self.held_since = None
        # Channels that were closed are not asked any more.
        for link in list(self.links.values()):
            if link.alive:
                link.call(link.observer(), "channel.flow", active=True)

    def do_expire(self, step):
        """Waits until what has a short time to live is past it."""
        until = self.last_tick + (self.short_ms + MARGIN_MS) / 1000
        time.sleep(max(0.0, until - time.monotonic()))
        # What went on to another queue has a time to live there, which began when the first one's ended.
        self.tick = self.tick + self.short_ms / 1000 if self.tick is not None and self.chained else None


assert "basic.return" in CONTENT_METHODS


def play(host, port, steps, judge=None, patience=5, tries=6):
    """Plays it; with a longer "short time" if the machine was too slow for it."""
    for attempt in range(tries - 1):
        try:
            return Player(host, port, steps, patience, SHORT_MS << attempt).play(judge)
        except Slow:
            pass
    return Player(host, port, steps, patience, SHORT_MS << (tries - 1), True).play(judge)
