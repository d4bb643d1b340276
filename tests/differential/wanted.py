"""Differences that are meant, each with its reason and as narrow a test as can be.

All of them stand in docs: "Where Hermes differs from RabbitMQ" in README.md. What comes after such a step
may differ in consequence (another consumer holds the message), so a comparison ends there, unless the
difference is one that leaves nothing behind.
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import json
import re

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


def exact(message):
    return json.dumps(message, sort_keys=True)


def delivered(outcome):
    """How often each message came, whoever got it."""
    return collections.Counter(exact(message) for messages in outcome.get("d", {}).values() for message in messages)


def made(steps, index, op, **args):
    """The steps up to this one of a kind."""
    return [step for step in steps[:index + 1]
            if step["op"] == op and all(step.get(key, False) == value for key, value in args.items())]


def takers(outcome):
    """Who got each message: (message, consumer) as often as it came."""
    return collections.Counter((exact(message), who) for who, messages in outcome.get("d", {}).items() for message in messages)


def stripped(thing, header):
    """Without a header, wherever it is."""
    if isinstance(thing, dict):
        left = {key: stripped(each, header) for key, each in thing.items() if key != header}
        return {key: each for key, each in left.items() if not (key == "headers" and each == {"F": {}})}
    return [stripped(each, header) for each in thing if each != {}] if isinstance(thing, list) else thing


def number(message):
    return int(message[0].rstrip(".")[1:].partition(".")[0])


@difference("What one nack, a recover or the end of a connection gives back returns at once and in the order of its queue. "
            "RabbitMQ does it consumer by consumer, and channel by channel, so that a message may come again before one that "
            "stood in front of it.")
def requeue_as_one(steps, index, expected, got):
    step = steps[index]
    gives_back = step["op"] in ("recover", "disconnect") or (step["op"] == "settle" and step.get("multiple") and step.get("requeue"))
    if step["op"] == "disconnect":      # who has a prefetch limit may get others: as many, the first ones
        same = {who: len(them) for who, them in got.get("d", {}).items()} == {
            who: len(them) for who, them in expected.get("d", {}).items()}
    else:
        # All at once may be more than the queue is allowed to hold.
        bounded = any("x-max-length" in repr(step.get("args")) for step in made(steps, index, "declare"))
        same = delivered(expected) == delivered(got) or (bounded and not delivered(got) - delivered(expected))
    return bool(gives_back and rest(expected, "d") == rest(got, "d") and same and
                all(message[1] == 1 for messages in got.get("d", {}).values() for message in messages) and
                all([number(m) for m in messages] == sorted(number(m) for m in messages)
                    for messages in got.get("d", {}).values()))


@difference("Of consumers that a limit over their channel has stopped, the one that waits longest goes on first. With RabbitMQ "
            "it may be another.")
def next_of_equals(steps, index, expected, got):
    if rest(expected, "d") != rest(got, "d") or delivered(expected) != delivered(got):
        return False
    known = {"%(ch)s/%(tag)s" % step: (step["q"], step.get("args")) for step in made(steps, index, "consume")}
    limited = {step["ch"] for step in made(steps, index, "qos", **{"global": True}) if step["count"]}
    moved = {who for _, who in (takers(expected) - takers(got)) + (takers(got) - takers(expected))}
    return (len(moved) > 1 and moved <= set(known) and len({repr(known[who]) for who in moved}) == 1 and
            any(who.partition("/")[0] in limited for who in moved))


@difference("A consumer without acknowledgements has no limit, as the specification of AMQP says. RabbitMQ stops it as well "
            "while its channel is at the limit over all its consumers.")
def no_limit_without_ack(steps, index, expected, got):
    free = {"%(ch)s/%(tag)s" % step for step in made(steps, index, "consume", no_ack=True)}
    limited = {step["ch"] for step in made(steps, index, "qos", **{"global": True}) if step["count"]}
    more = takers(got) - takers(expected)
    return bool(more) and all(who in free and who.partition("/")[0] in limited for _, who in more)


@difference("What basic.get fetched counts for no limit, as RabbitMQ's manual says. RabbitMQ counts it for a limit over all "
            "consumers that is set afterwards, for as long as the channel lives.")
def get_has_no_limit(steps, index, expected, got):
    fetched = {step["ch"] for step in made(steps, index, "get", no_ack=False)}
    limited = {step["ch"] for step in made(steps, index, "qos", **{"global": True}) if step["count"]}
    more = takers(got) - takers(expected)
    return bool(more) and all(who.partition("/")[0] in fetched & limited for _, who in more)


@difference("A message of a quorum queue that was delivered before has x-acquired-count as well as x-delivery-count, as with "
            "RabbitMQ 4.", goes_on=True)
def acquired_count(steps, index, expected, got):
    return "x-acquired-count" in repr(got) and expected == stripped(got, "x-acquired-count")


def quorum_with(steps, index, argument):
    return any(step.get("args", {}).get("x-queue-type") == "quorum" and argument in step["args"]
               for step in made(steps, index, "declare"))


@difference("What comes back to a full quorum queue drives out the oldest first. With RabbitMQ it is the newest of those, because "
            "it puts back one after the other, the last first.")
def oldest_out_first(steps, index, expected, got):
    return (quorum_with(steps, index, "x-max-length") and rest(expected, "d") == rest(got, "d") and
            takers(expected) == takers(got) and "maxlen" in repr(got) and
            all([number(m) for m in messages] == sorted(number(m) for m in messages) for messages in got["d"].values()))


@difference("A consumer of a quorum queue never holds more than its prefetch limit. RabbitMQ gives it one more for each message "
            "that reached its delivery limit.")
def limit_after_delivery_limit(steps, index, expected, got):
    gives_back = steps[index]["op"] == "settle" and steps[index].get("requeue")
    limited = {step["ch"] for step in made(steps, index, "qos") if step["count"]}
    less = stripped(got.get("d", {}), "x-acquired-count")
    return bool(gives_back and limited and quorum_with(steps, index, "x-delivery-limit") and
                rest(expected, "d", "n") == rest(got, "d", "n") and expected.get("d", {}) != less and
                all(expected.get("d", {}).get(who, [])[:len(messages)] == messages for who, messages in less.items()))


@difference("A connection that is closed for an error gets nothing any more. RabbitMQ ends one channel first, and may send what "
            "that one held to another channel of the same connection.", goes_on=True)
def nothing_before_the_end(steps, index, expected, got):
    closed = [name for name, error in expected.get("err", {}).items() if len(name) == 1 and error[0] >= 500]
    left = {who: messages for who, messages in expected.get("d", {}).items() if who[0] not in closed}
    return bool(closed) and got == dict(rest(expected, "d"), **({"d": left} if left else {}))


@difference("What a connection held that is closed for an error was delivered once. RabbitMQ may count once more, because it sent it to "
            "another channel of that connection before that ended, too.")
def counted_before_the_end(steps, index, expected, got):
    def counts(outcome):
        return [int(count) for count in re.findall(r'"x-delivery-count": \["l", (\d+)\]', exact(outcome))]
    closed = any(len(name) == 1 and error[0] >= 500 for name, error in expected.get("err", {}).items())
    mine, theirs = counts(got), counts(expected)
    return (closed and len(mine) == len(theirs) and mine != theirs and all(a <= b for a, b in zip(mine, theirs)) and
            stripped(expected, "x-delivery-count") == stripped(stripped(got, "x-acquired-count"), "x-delivery-count"))


@difference("A consumer that holds a delivery for too long is cancelled, and its channel stays. RabbitMQ closes the channel, "
            "and the connection as well if the answer to that comes too late for it.")
def late_consumer(steps, index, expected, got):
    closed, cancelled = expected.get("err", {}), got.get("cancel", {})
    # What it holds may not be a consumer's, or of one that was cancelled before.
    other = {step["ch"] for step in made(steps, index, "get", no_ack=False) + made(steps, index, "cancel")}
    channels = {name for name in closed if len(name) > 1}

    def ready(outcome, name):
        return outcome.get("n", {}).get(name, [0])[0]
    return (steps[index]["op"] == "overdue" and bool(channels) and "err" not in got and
            all(name in closed or name[0] in closed for name in cancelled) and
            all(name in cancelled or name in other for name in channels) and
            all(error[0] == 406 and "delivery acknowledgement on channel" in error[1] if name in channels else
                error[0] == 504 and error[2:] == [20, 41] for name, error in closed.items()) and
            # Those that stay may have it at once.
            ("d" in got or all(ready(expected, name) == ready(got, name) for name in expected.get("n", {}))))


@difference("A hash-header or hash-property that is not text is refused, and the connection stays. RabbitMQ's plugin crashes.")
def hash_argument(steps, index, expected, got):
    step = steps[index]
    texts = [step.get("args", {}).get(name, "") for name in ("hash-header", "hash-property")]
    return (step["op"] == "exchange" and step["type"] == "x-consistent-hash" and not all(isinstance(text, str) for text in texts) and
            expected.get("err", {}).get(step["ch"][0]) == [541, "INTERNAL_ERROR", 0, 0] and
            got.get("err", {}).get(step["ch"], [0])[0] == 406)


def fetched(outcome):
    """What basic.get had, without the count; None: nothing."""
    got = outcome.get("r", {}).get("got")
    return got[:-1] if isinstance(got, list) and got and not isinstance(got[0], list) else None


def all_seen(outcome):
    """How often each message was delivered or fetched."""
    return delivered(outcome) + collections.Counter([exact(fetched(outcome))] if fetched(outcome) else [])


def fewer_ready(expected, got, names):
    """Do the counts differ in these queues only, and has Hermes never more in one that both saw change?"""
    a, b = expected.get("n", {}), got.get("n", {})
    differ = {name for name in set(a) | set(b) if a.get(name) != b.get(name)}
    both = [(a[name], b[name]) for name in differ if isinstance(a.get(name), list) and isinstance(b.get(name), list)]
    return differ <= names and all(mine[0] <= theirs[0] and mine[1] == theirs[1] for theirs, mine in both)


@difference("The expiration of a message in a priority queue counts as soon as the message is the next one. RabbitMQ looks at it only "
            "when a message comes into the empty queue, or another one expires.")
def expired_in_priority_queue(steps, index, expected, got):
    declares = [step.get("args", {}) for step in made(steps, index, "declare") if not step.get("passive")]
    ordered = {step["q"] for step in made(steps, index, "declare") if step.get("args", {}).get("x-max-priority")}
    timed = [step for step in made(steps, index, "publish") if step.get("props", {}).get("expiration") in ("SHORT", "0")]
    # Where its dead letters go Hermes has more, and sooner.
    letters = any("x-dead-letter-exchange" in args for args in declares)
    everywhere = set(expected.get("n", {})) | set(got.get("n", {}))
    counts = rest(expected, "d", "r") == rest(got, "d", "r") or (
        bool(everywhere & ordered) if letters else fewer_ready(expected, got, ordered))
    less, more = all_seen(expected) - all_seen(got), all_seen(got) - all_seen(expected)
    return bool(ordered and timed and rest(expected, "n", "d", "r") == rest(got, "n", "d", "r") and counts and
                rest(expected.get("r", {}), "got") == rest(got.get("r", {}), "got") and
                # What is not there expired; what is there instead stood behind it, or is its letter.
                all('"expiration"' in message for message in less) and (bool(less) or not more or letters) and
                (letters or all('"expiration"' not in message for message in more)))


@difference("BCC does not route a message again when it becomes a dead letter. With RabbitMQ it does, although the header is gone.")
def bcc_routes_once(steps, index, expected, got):
    hidden = any("BCC" in step.get("props", {}).get("headers", {}) for step in made(steps, index, "publish"))
    keyless = any("x-dead-letter-exchange" in step.get("args", {}) and "x-dead-letter-routing-key" not in step["args"]
                  for step in made(steps, index, "declare"))
    less = delivered(expected) - delivered(got)
    return bool(hidden and keyless and rest(expected, "n", "d") == rest(got, "n", "d") and not delivered(got) - delivered(expected) and
                all('"x-death"' in message for message in less) and
                fewer_ready(expected, got, set(expected.get("n", {})) | set(got.get("n", {}))))
