"""Differences that are meant, each with its reason and as narrow a test as can be.

All of them stand in docs: "Where Hermes differs from RabbitMQ" in README.md. What comes after such a step
may differ in consequence (another consumer holds the message), so a comparison ends there, unless the
difference is one that leaves nothing behind.
"""
# SPDX-License-Identifier: Apache-2.0
import collections

WANTED = []


def difference(reason, goes_on=False):
    """Marks a function (steps, index, RabbitMQ's outcome, Hermes's outcome) -> bool."""
    def mark(function):
        WANTED.append((function.__name__, reason, goes_on, function))
        return function
    return mark


def find(steps, index, expected, got):
    """(name, may the comparison go on) of the difference that explains it, or None."""
    for name, _, goes_on, function in WANTED:
        if function(steps, index, expected, got):
            return name, goes_on
    return None


def reason(name):
    return next(reason for known, reason, _, _ in WANTED if known == name)


def rest(outcome, *without):
    return {key: value for key, value in outcome.items() if key not in without}


def delivered(outcome):
    """How often each message came, whoever got it."""
    return collections.Counter(repr(message) for messages in outcome.get("d", {}).values() for message in messages)


def number(message):
    return int(message[0].rstrip(".")[1:].partition(".")[0])


@difference("What one nack, or recover, gives back returns at once and in the order of its queue. RabbitMQ does it "
            "consumer by consumer, so that a message may come again before one that stood in front of it.")
def requeue_as_one(steps, index, expected, got):
    step = steps[index]
    gives_back = step["op"] == "recover" or (step["op"] == "settle" and step.get("multiple") and step.get("requeue"))
    return bool(gives_back and rest(expected, "d") == rest(got, "d") and delivered(expected) == delivered(got) and
                all(message[1] == 1 for messages in got["d"].values() for message in messages) and
                all([number(m) for m in messages] == sorted(number(m) for m in messages) for messages in got["d"].values()))
