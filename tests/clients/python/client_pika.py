# SPDX-License-Identifier: Apache-2.0
"""The steps of README.md with pika's BlockingConnection."""
import os
import ssl

import pika
import pika.exceptions

from steps import BIG, HEADERS, HOST, PORT, PREFIX, ask, ok, same

WORK = PREFIX + "work"
Lost = pika.exceptions.AMQPConnectionError


def connect(heartbeat=60):
    ca = os.environ.get("CLIENTS_CA")
    options = pika.SSLOptions(ssl.create_default_context(cafile=ca), HOST) if ca else None
    return pika.BlockingConnection(pika.ConnectionParameters(
        HOST, PORT, credentials=pika.PlainCredentials("guest", "guest"), heartbeat=heartbeat, ssl_options=options))


def wait(conn, condition):
    for _ in range(300):
        if condition():
            return
        conn.process_data_events(time_limit=0.1)
    raise AssertionError("waited 30 s in vain")


def count(ch, queue):
    return ch.queue_declare(queue, passive=True).method.message_count


def collect(ch, queue, **kw):
    """A consumer that puts what comes into a list of (tag, redelivered, properties, body)."""
    got = []
    tag = ch.basic_consume(queue, lambda _ch, m, p, body: got.append((m.delivery_tag, m.redelivered, p, body)),
                           **kw)
    return tag, got


conn = connect()
ch = conn.channel()
ch.queue_declare(WORK)
ok("connect")

ch.confirm_delivery()
for i in range(100):        # raises if it is returned or refused
    ch.basic_publish("", WORK, b"%d" % i, pika.BasicProperties(delivery_mode=2), mandatory=True)
same(count(ch, WORK), 100)
ok("confirm")

try:
    ch.basic_publish("", PREFIX + "nowhere", b"lost", mandatory=True)
    raise AssertionError("the message was not returned")
except pika.exceptions.UnroutableError as exc:
    back = exc.messages[0]
    same((back.method.reply_code, back.method.reply_text, back.body), (312, "NO_ROUTE", b"lost"))
ok("return")

tag, got = collect(ch, WORK)
wait(conn, lambda: len(got) == 100)
same([body for _, _, _, body in got], [b"%d" % i for i in range(100)])
for delivery in got[:50]:
    ch.basic_ack(delivery[0])
ch.basic_ack(got[99][0], multiple=True)
ch.basic_cancel(tag)
same(count(ch, WORK), 0)
ok("consume")

for i in range(10):
    ch.basic_publish("", WORK, b"%d" % i)
ch.basic_qos(prefetch_count=3)
tag, got = collect(ch, WORK)
wait(conn, lambda: len(got) == 3)
same((count(ch, WORK), len(got)), (7, 3))
ch.basic_ack(got[0][0])
wait(conn, lambda: len(got) == 4)
same((count(ch, WORK), len(got)), (6, 4))
for i in range(1, 10):
    wait(conn, lambda: len(got) > i)
    ch.basic_ack(got[i][0])
ch.basic_cancel(tag)
ch.basic_qos(prefetch_count=0)
same(count(ch, WORK), 0)
ok("prefetch")

for body in (b"a", b"b", b"c"):
    ch.basic_publish("", WORK, body)
tag, got = collect(ch, WORK)
wait(conn, lambda: len(got) == 3)
same([delivery[1] for delivery in got], [False] * 3)
ch.basic_nack(got[2][0], multiple=True, requeue=True)
wait(conn, lambda: len(got) == 6)
same([delivery[1::2] for delivery in got[3:]], [(True, b"a"), (True, b"b"), (True, b"c")])
ch.basic_reject(got[3][0], requeue=False)
ch.basic_reject(got[4][0], requeue=True)
wait(conn, lambda: len(got) == 7)
same(got[6][1::2], (True, b"b"))
ch.basic_ack(got[6][0], multiple=True)
ch.basic_cancel(tag)
same(count(ch, WORK), 0)
ok("nack")

ch.basic_publish("", WORK, b"one")
ch.basic_publish("", WORK, b"two")
method, _, body = ch.basic_get(WORK)
same((body, method.message_count, method.redelivered, method.routing_key), (b"one", 1, False, WORK))
ch.basic_ack(method.delivery_tag)
same(ch.basic_get(WORK, auto_ack=True)[2], b"two")
same(ch.basic_get(WORK)[0], None)
ok("get")

sent = pika.BasicProperties(
    content_type="text/plain", content_encoding="utf-8", headers=HEADERS, delivery_mode=2, priority=9,
    correlation_id="c" * 255, reply_to="somewhere", expiration="60000", message_id="m-1", timestamp=1709209815,
    type="kind", user_id="guest", app_id="steps", cluster_id="cluster")
ch.basic_publish("", WORK, b"x", sent)
_, props, _ = ch.basic_get(WORK, auto_ack=True)
same(vars(props), vars(sent))
ok("properties")

for body in (b"", BIG, b""):
    ch.basic_publish("", WORK, body)
tag, got = collect(ch, WORK, auto_ack=True)
wait(conn, lambda: len(got) == 3)
assert [delivery[3] for delivery in got] == [b"", BIG, b""]
ch.basic_cancel(tag)
ok("bodies")

serving = conn.channel()


def serve(_ch, method, props, body):
    serving.basic_publish("", props.reply_to, body.upper(),
                          pika.BasicProperties(correlation_id=props.correlation_id))
    serving.basic_ack(method.delivery_tag)


serving.basic_consume(WORK, serve)
_, got = collect(ch, "amq.rabbitmq.reply-to", auto_ack=True)
ch.basic_publish("", WORK, b"question", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="7"))
wait(conn, lambda: len(got) == 1)
same((got[0][3], got[0][2].correlation_id), (b"QUESTION", "7"))
serving.close()
ok("rpc")

tag, got = collect(ch, WORK)
ch.basic_cancel(tag)
ch.basic_publish("", WORK, b"after")
same((count(ch, WORK), got), (1, []))
cancelled = []
ch.add_on_cancel_callback(cancelled.append)
tag, got = collect(ch, WORK)
ch.queue_delete(WORK)
wait(conn, lambda: cancelled)
same(cancelled[0].method.consumer_tag, tag)
ok("cancel")

wrong = conn.channel()
try:
    wrong.queue_declare(PREFIX + "missing", passive=True)
    raise AssertionError("a queue that does not exist was found")
except pika.exceptions.ChannelClosedByBroker as exc:
    same(exc.reply_code, 404)
    assert exc.reply_text.startswith("NOT_FOUND - no queue '%smissing'" % PREFIX), exc.reply_text
conn.channel().close()
ok("error")

ch.queue_declare(WORK, durable=True)
ch.basic_publish("", WORK, b"first", pika.BasicProperties(delivery_mode=2))
ch.basic_publish("", WORK, b"second", pika.BasicProperties(delivery_mode=2))
_, got = collect(ch, WORK)
wait(conn, lambda: len(got) == 2)
ch.basic_ack(got[0][0])
same(count(ch, WORK), 0)        # an answer: the ack has arrived
ask("cut")
try:
    wait(conn, lambda: False)
except Lost:
    pass
conn = connect()
ch = conn.channel()
_, got = collect(ch, WORK)
wait(conn, lambda: len(got) == 1)
same(got[0][1::2], (True, b"second"))
ch.basic_ack(got[0][0])
same(count(ch, WORK), 0)
ch.queue_delete(WORK)
ok("reconnect")

quiet = connect(heartbeat=2)
quiet.sleep(5)
quiet.channel()
ask("freeze")
try:
    wait(quiet, lambda: False)
except Lost:
    pass
ok("heartbeat")

conn = connect()                # the old one was frozen as well
ch = conn.channel()
ch.close()
conn.close()
ok("close")
