# SPDX-License-Identifier: Apache-2.0
"""The steps of README.md with kombu (over py-amqp), as Celery uses them."""
import socket
import time

import amqp.exceptions
import kombu

from steps import BIG, HEADERS, HOST, PORT, PREFIX, ask, ok, same

WORK = PREFIX + "work"
REPLY_TO = "amq.rabbitmq.reply-to"


def connect(heartbeat=60):
    conn = kombu.Connection("amqp://guest:guest@%s:%d//" % (HOST, PORT), heartbeat=heartbeat,
                            transport_options={"confirm_publish": True})
    conn.ensure_connection(max_retries=3)
    return conn


def wait(conn, condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited 30 s in vain"
        try:
            conn.drain_events(timeout=0.2)
        except socket.timeout:
            conn.heartbeat_check()


def count(ch, queue):
    return ch.queue_declare(queue, passive=True).message_count


def put(producer, body, **kw):
    producer.publish(body, **dict({"routing_key": WORK, "serializer": None, "content_type": "text/plain",
                                   "content_encoding": "binary", "retry": False}, **kw))


class Collector:
    """A consumer that keeps its messages."""

    def __init__(self, ch, queue=WORK, **kw):
        self.got = []
        self.consumer = kombu.Consumer(ch, [kombu.Queue(queue, no_declare=True)], on_message=self.got.append,
                                       auto_declare=False, **kw)
        self.consumer.consume()
        self.cancel = self.consumer.cancel


def bytes_of(message):
    body = message.body
    return body.encode() if isinstance(body, str) else bytes(body)


def facts(message):
    return message.delivery_info["redelivered"], bytes_of(message)


conn = connect()
ch = conn.channel()
kombu.Queue(WORK, durable=True, channel=ch).declare()
# By this kombu and Celery choose whether a prefetch is for each consumer: true for RabbitMQ before 3.3 only.
assert not conn.qos_semantics_matches_spec
ok("connect")

returned = []
producer = kombu.Producer(ch, on_return=lambda exc, exchange, key, message: returned.append((exc, message)))
for i in range(100):        # each waits for its confirm
    put(producer, b"%d" % i, delivery_mode=2, mandatory=True)
same((count(ch, WORK), returned), (100, []))
ok("confirm")

put(producer, b"lost", routing_key=PREFIX + "nowhere", mandatory=True)
same(len(returned), 1)
exc, message = returned[0]
same((exc.reply_code, exc.reply_text, bytes_of(message)), (312, "NO_ROUTE", b"lost"))
ok("return")

all_of = Collector(ch)
wait(conn, lambda: len(all_of.got) == 100)
same([bytes_of(message) for message in all_of.got], [b"%d" % i for i in range(100)])
for message in all_of.got[:50]:
    message.ack()
all_of.got[99].ack(multiple=True)
all_of.cancel()
same(count(ch, WORK), 0)
ok("consume")

for i in range(10):
    put(producer, b"%d" % i)
few = Collector(ch, prefetch_count=3)
wait(conn, lambda: len(few.got) == 3)
same((count(ch, WORK), len(few.got)), (7, 3))
few.got[0].ack()
wait(conn, lambda: len(few.got) == 4)
same((count(ch, WORK), len(few.got)), (6, 4))
for i in range(1, 10):
    wait(conn, lambda: len(few.got) > i)
    few.got[i].ack()
few.cancel()
ch.basic_qos(0, 0, False)
same(count(ch, WORK), 0)
ok("prefetch")

for body in (b"a", b"b", b"c"):
    put(producer, body)
some = Collector(ch)
wait(conn, lambda: len(some.got) == 3)
same([facts(message) for message in some.got], [(False, b"a"), (False, b"b"), (False, b"c")])
for message in some.got:
    message.requeue()
wait(conn, lambda: len(some.got) == 6)
same([facts(message) for message in some.got[3:]], [(True, b"a"), (True, b"b"), (True, b"c")])
some.got[3].reject()
some.got[4].requeue()
wait(conn, lambda: len(some.got) == 7)
same(facts(some.got[6]), (True, b"b"))
some.got[6].ack(multiple=True)
some.cancel()
same(count(ch, WORK), 0)
ok("nack")

put(producer, b"one")
put(producer, b"two")
queue = kombu.Queue(WORK, channel=ch)
message = queue.get()
same(facts(message) + (message.delivery_info["message_count"], message.delivery_info["routing_key"]),
     (False, b"one", 1, WORK))
message.ack()
same(facts(queue.get(no_ack=True)), (False, b"two"))
same(queue.get(), None)
ok("get")

sent = dict(priority=9, correlation_id="c" * 255, reply_to="somewhere", message_id="m-1", timestamp=1709209815,
            type="kind", user_id="guest", app_id="steps", cluster_id="cluster")
producer.publish("x", routing_key=WORK, serializer=None, content_type="text/plain", content_encoding="utf-8",
                 headers=HEADERS, expiration=60, delivery_mode=2, **sent)
message = queue.get(no_ack=True)
same(message.headers, HEADERS)
same({key: message.properties[key] for key in sent}, sent)
same((message.content_type, message.content_encoding, message.properties["expiration"],
      message.properties["delivery_mode"]), ("text/plain", "utf-8", "60000", 2))
ok("properties")

for body in (b"", BIG, b""):
    put(producer, body)
large = Collector(ch, no_ack=True)
wait(conn, lambda: len(large.got) == 3)
assert [bytes_of(message) for message in large.got] == [b"", BIG, b""]
large.cancel()
ok("bodies")

serving = conn.channel()
answering = kombu.Producer(serving)


def serve(message):
    answering.publish(bytes_of(message).upper(), routing_key=message.properties["reply_to"], serializer=None,
                      content_type="text/plain", content_encoding="binary",
                      correlation_id=message.properties["correlation_id"])
    message.ack()


server = kombu.Consumer(serving, [kombu.Queue(WORK, no_declare=True)], on_message=serve, auto_declare=False)
server.consume()
replies = Collector(ch, REPLY_TO, no_ack=True)
put(producer, b"question", reply_to=REPLY_TO, correlation_id="7")
wait(conn, lambda: replies.got)
same((bytes_of(replies.got[0]), replies.got[0].properties["correlation_id"]), (b"QUESTION", "7"))
serving.close()
replies.cancel()
ok("rpc")

none = Collector(ch)
none.cancel()
put(producer, b"after")
same((count(ch, WORK), none.got), (1, []))
cancelled = []
ch.basic_consume(WORK, consumer_tag="gone", callback=lambda message: None, on_cancel=cancelled.append)
ch.queue_delete(WORK)
wait(conn, lambda: cancelled)
same(cancelled, ["gone"])
ok("cancel")

wrong = conn.channel()
try:
    wrong.queue_declare(PREFIX + "missing", passive=True)
    raise AssertionError("a queue that does not exist was found")
except amqp.exceptions.NotFound as exc:
    same(exc.reply_code, 404)
    assert exc.reply_text.startswith("NOT_FOUND - no queue '%smissing'" % PREFIX), exc.reply_text
conn.channel().close()
ok("error")

ch.queue_declare(WORK, durable=True, auto_delete=False)
put(producer, b"first", delivery_mode=2)
put(producer, b"second", delivery_mode=2)
before = Collector(ch)
wait(conn, lambda: len(before.got) == 2)
before.got[0].ack()
same(count(ch, WORK), 0)
after = []
first_time = [True]


def consume_second(connection, channel=None):
    """What kombu does again on a new connection when the old one is lost (Connection.ensure)."""
    if first_time:
        first_time.clear()
        ask("cut")
        wait(connection, lambda: False)
    channel = connection.default_channel
    again = Collector(channel)
    wait(connection, lambda: again.got)
    after.append(facts(again.got[0]))
    again.got[0].ack()
    return count(channel, WORK)


left = conn.ensure(conn, lambda **kw: consume_second(conn), max_retries=3, interval_start=0)()
same((after, left), ([(True, b"second")], 0))
conn.default_channel.queue_delete(WORK)
ok("reconnect")

quiet = connect(heartbeat=2)
until = time.monotonic() + 5
wait(quiet, lambda: time.monotonic() > until)
quiet.channel().close()
ask("freeze")
try:
    wait(quiet, lambda: False)
except quiet.connection_errors as exc:
    assert "heartbeat" in str(exc).lower(), exc
quiet.collect()
conn.collect()          # frozen as well
ok("heartbeat")

conn = connect()
conn.channel().close()
conn.release()
ok("close")
