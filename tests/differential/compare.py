"""One script on two brokers: same, different, or not to be compared; and how a script that differs is shortened."""
# SPDX-License-Identifier: Apache-2.0
import json

import wanted
from player import Slow, play

LATER = "comes with a later version of Hermes"
AGAIN = 3               # times that RabbitMQ is asked whether it answers so each time


class Verdict:
    def __init__(self, kind, steps, step=0, expected=(), got=()):
        self.kind, self.steps, self.step = kind, steps, step
        self.expected, self.got = list(expected), list(got)
        self.wanted = []                # names of the differences that were wanted


def text(thing):
    return json.dumps(thing, separators=(",", ":"), sort_keys=False)


def same(a, b):
    return text_sorted(a) == text_sorted(b)


def text_sorted(thing):
    return json.dumps(thing, sort_keys=True)


def deliveries(outcome):
    """How many messages were given out in a step."""
    fetched = outcome.get("r", {}).get("got", "empty")
    several = isinstance(fetched, list) and fetched and isinstance(fetched[0], list)
    return sum(len(messages) for messages in outcome.get("d", {}).values()) + (
        len(fetched) if several else fetched not in ("empty", []))


class Judge:
    """Compares what Hermes does with what is expected, and remembers which wanted differences it met."""

    def __init__(self, steps, expected):
        self.steps, self.expected = steps, expected
        self.begin()

    def begin(self):
        self.met = {}           # step: name
        self.over = False       # is what follows not comparable?

    def __call__(self, index, seen):
        if self.over or index >= len(self.expected):
            return self.over
        if same(seen, self.expected[index]):
            return True
        found = wanted.find(self.steps, index, self.expected[index], seen)
        return bool(found)

    def hopeless(self, seen):
        """Is there no need to wait for more?"""
        return LATER in text(seen)

    def accept(self, index, seen):
        """The step is over, with this outcome: may the next one be looked at?"""
        if not self(index, seen):
            return False
        if not self.over and not same(seen, self.expected[index]):
            self.met[index], goes_on = wanted.find(self.steps, index, self.expected[index], seen)
            self.over = not goes_on
        return not self.over


def replay(steps, expected, hermes, patience=3):
    """What Hermes does with a script whose outcomes are known."""
    judge = Judge(steps, expected)
    try:
        got = play(*hermes, steps, judge, patience)
    except Slow:
        return Verdict("slow", steps)
    step = len(got) - 1
    differs = not judge.over and (len(got) < len(expected) or not judge(step, got[step]))
    verdict = Verdict("differs" if differs else "same", steps, step, expected, got)
    if differs and LATER in text(got[-1:]):
        verdict.kind = "later"
    verdict.wanted = sorted(judge.met.values())
    return verdict


def compare(steps, rabbit, hermes):
    try:
        expected = play(*rabbit, steps)
    except Slow:
        return Verdict("slow", steps)
    verdict = replay(steps, expected, hermes)
    if verdict.kind == "differs":
        # Does RabbitMQ do it so each time?
        for _ in range(AGAIN):
            try:
                if not same(play(*rabbit, steps), expected):
                    return Verdict("left to chance by RabbitMQ", steps)
            except Slow:
                return Verdict("slow", steps)
    return verdict


def shrink(verdict, rabbit, hermes):
    """The verdict on the shortest script found that still differs."""
    best = verdict
    steps = verdict.steps[:verdict.step + 1]
    size = len(steps) // 2
    while size:
        start = 0
        while start < len(steps):
            fewer = steps[:start] + steps[start + size:]
            found = compare(fewer, rabbit, hermes) if fewer else None
            if found and found.kind == "differs":
                best, steps = found, fewer[:found.step + 1]
            else:
                start += size
        size //= 2
    return best


def save(path, steps, expected):
    """A trace: one line for each step, the step and its outcome."""
    lines = [text([step, outcome]) for step, outcome in zip(steps, expected)]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def load(path):
    pairs = json.loads(path.read_text())
    return [step for step, _ in pairs], [outcome for _, outcome in pairs]
