# SPDX-License-Identifier: Apache-2.0
"""The steps of README.md with aio-pika: robust connections, which come back by themselves."""
import asyncio
import logging

import aio_pika
import aiormq.exceptions

from steps import BIG, HEADERS, HOST, PORT, PREFIX, TIME, ask, ok, same

WORK = PREFIX + "work"
REPLY_TO = "amq.rabbitmq.reply-to"
# The library writes a decimal as text, and cannot write a negative number of one byte.
HEADERS = {key: value for key, value in HEADERS.items() if key != "decimal"}
HEADERS["int"] = -70000


async def connect(heartbeat=60):
    # What the library calls timeout is a third of the time, less a second, that it lives without a frame.
    return await aio_pika.connect_robust(
        "amqp://guest:guest@%s:%d/?heartbeat=%d&timeout=%d&reconnect_interval=0.05" %
        (HOST, PORT, heartbeat, heartbeat))


async def wait(condition):
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited 30 s in vain")


async def count(ch, queue):
    again = await ch.declare_queue(queue, passive=True, robust=False)
    return again.declaration_result.message_count


def put(ch, body, **props):
    return ch.default_exchange.publish(aio_pika.Message(body, **props), WORK)


async def collect(queue, **kw):
    got = []
    return await queue.consume(got.append, **kw), got


async def main():
    # What it says about lost connections is expected here.
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    logging.getLogger("aio_pika").setLevel(logging.CRITICAL)
    conn = await connect()
    ch = await conn.channel(publisher_confirms=True, on_return_raises=True)
    queue = await ch.declare_queue(WORK, durable=True)
    ok("connect")

    answers = await asyncio.gather(*(put(ch, b"%d" % i, delivery_mode=2) for i in range(100)))
    same({type(answer).__name__ for answer in answers}, {"Ack"})
    same(await count(ch, WORK), 100)
    ok("confirm")

    try:
        await ch.default_exchange.publish(aio_pika.Message(b"lost"), PREFIX + "nowhere", mandatory=True)
        raise AssertionError("the message was not returned")
    except aiormq.exceptions.PublishError as exc:
        same((exc.frame.reply_code, exc.frame.reply_text, exc.message.body), (312, "NO_ROUTE", b"lost"))
    ok("return")

    tag, got = await collect(queue)
    await wait(lambda: len(got) == 100)
    same([message.body for message in got], [b"%d" % i for i in range(100)])
    for message in got[:50]:
        await message.ack()
    await got[99].ack(multiple=True)
    await queue.cancel(tag)
    same(await count(ch, WORK), 0)
    ok("consume")

    for i in range(10):
        await put(ch, b"%d" % i)
    await ch.set_qos(prefetch_count=3)
    tag, got = await collect(queue)
    await wait(lambda: len(got) == 3)
    same((await count(ch, WORK), len(got)), (7, 3))
    await got[0].ack()
    await wait(lambda: len(got) == 4)
    same((await count(ch, WORK), len(got)), (6, 4))
    for i in range(1, 10):
        await wait(lambda: len(got) > i)
        await got[i].ack()
    await queue.cancel(tag)
    await ch.set_qos(prefetch_count=0)
    same(await count(ch, WORK), 0)
    ok("prefetch")

    for body in (b"a", b"b", b"c"):
        await put(ch, body)
    tag, got = await collect(queue)
    await wait(lambda: len(got) == 3)
    same([message.redelivered for message in got], [False] * 3)
    await got[2].nack(multiple=True, requeue=True)
    await wait(lambda: len(got) == 6)
    same([(message.redelivered, message.body) for message in got[3:]], [(True, b"a"), (True, b"b"), (True, b"c")])
    await got[3].reject(requeue=False)
    await got[4].reject(requeue=True)
    await wait(lambda: len(got) == 7)
    same((got[6].redelivered, got[6].body), (True, b"b"))
    await got[6].ack(multiple=True)
    await queue.cancel(tag)
    same(await count(ch, WORK), 0)
    ok("nack")

    await put(ch, b"one")
    await put(ch, b"two")
    message = await queue.get()
    same((message.body, message.message_count, message.redelivered, message.routing_key), (b"one", 1, False, WORK))
    await message.ack()
    same((await queue.get(no_ack=True)).body, b"two")
    same(await queue.get(fail=False), None)
    ok("get")

    sent = aio_pika.Message(
        b"x", content_type="text/plain", content_encoding="utf-8", headers=HEADERS, delivery_mode=2, priority=9,
        correlation_id="c" * 255, reply_to="somewhere", expiration=60, message_id="m-1",
        timestamp=TIME, type="kind", user_id="guest", app_id="steps")
    await ch.default_exchange.publish(sent, WORK)
    back = await queue.get(no_ack=True)
    wanted = sent.info()
    info = back.info()
    same({key: info[key] for key in wanted}, wanted)
    ok("properties")

    for body in (b"", BIG, b""):
        await put(ch, body)
    tag, got = await collect(queue, no_ack=True)
    await wait(lambda: len(got) == 3)
    assert [message.body for message in got] == [b"", BIG, b""]
    await queue.cancel(tag)
    ok("bodies")

    # On a connection of its own: after a cut the library opens closed channels again.
    other = await connect()
    serving = await other.channel()

    async def serve(message):
        await serving.default_exchange.publish(
            aio_pika.Message(message.body.upper(), correlation_id=message.correlation_id), message.reply_to)

    served = await serving.declare_queue(WORK, passive=True)
    serving_tag = await served.consume(serve, no_ack=True)
    asking = await other.channel(publisher_confirms=False)
    replies = await asking.get_queue(REPLY_TO, ensure=False)
    _, got = await collect(replies, no_ack=True)
    await put(asking, b"question", reply_to=REPLY_TO, correlation_id="7")
    await wait(lambda: len(got) == 1)
    same((got[0].body, got[0].correlation_id), (b"QUESTION", "7"))
    # To close the connection would not do: the library does not wait for the answer, so the consumer may outlive it.
    await served.cancel(serving_tag)
    await other.close()
    ok("rpc")

    tag, got = await collect(queue)
    await queue.cancel(tag)
    await put(ch, b"after")
    same((await count(ch, WORK), got), (1, []))
    await queue.purge()
    ok("cancel")

    wrong = await conn.channel()
    try:
        await wrong.declare_queue(PREFIX + "missing", passive=True, robust=False)
        raise AssertionError("a queue that does not exist was found")
    except aiormq.exceptions.ChannelNotFoundEntity as exc:
        assert str(exc).startswith("NOT_FOUND - no queue '%smissing'" % PREFIX), exc
    await (await conn.channel()).close()
    ok("error")

    await put(ch, b"first", delivery_mode=2)
    await put(ch, b"second", delivery_mode=2)
    _, got = await collect(queue)
    await wait(lambda: len(got) == 2)
    await got[0].ack()
    same(await count(ch, WORK), 0)
    ask("cut")                      # the connection, the channel and the consumer come back
    await wait(lambda: len(got) == 3)
    same((got[2].redelivered, got[2].body), (True, b"second"))
    await got[2].ack()
    same(await count(ch, WORK), 0)
    await put(ch, b"third")
    await wait(lambda: len(got) == 4)
    await got[3].ack()
    ok("reconnect")

    quiet = await connect(heartbeat=2)
    lost, back = [], []
    quiet.close_callbacks.add(lambda *_: lost.append(1))
    quiet.reconnect_callbacks.add(lambda *_: back.append(1))
    channel = await quiet.channel()
    await asyncio.sleep(5)
    same(lost, [])
    await channel.declare_queue(PREFIX + "quiet", auto_delete=True, exclusive=True)
    ask("freeze")
    await wait(lambda: lost and back)
    await quiet.close()
    ok("heartbeat")

    conn = await connect()
    ch = await conn.channel()
    await ch.queue_delete(WORK)
    await ch.close()
    await conn.close()
    ok("close")


asyncio.run(main())
