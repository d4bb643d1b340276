// SPDX-License-Identifier: Apache-2.0
// The steps of README.md with @cloudamqp/amqp-client.
'use strict';
const { AMQPClient, AMQPSession } = require('@cloudamqp/amqp-client');
const { host, port, prefix, work, replyTo, big, assert, sleep, waitFor, run, ok, ask } = require('./steps');

const same = assert.deepStrictEqual;
const url = (heartbeat) => `amqp://guest:guest@${host}:${port}/?heartbeat=${heartbeat}`;

async function connect(heartbeat) {
  const conn = await new AMQPClient(url(heartbeat), undefined, null).connect();
  conn.lost = null;
  conn.onerror = () => {};      // is told of closed channels too
  conn.ondisconnect = (failure) => { conn.lost = failure || new Error('disconnected'); };
  return conn;
}

const count = async (ch, queue) => (await ch.queueDeclare(queue, { passive: true })).messageCount;
const text = (msg) => msg.bodyToString() || '';
const facts = (msg) => (msg.redelivered ? 'again ' : 'first ') + text(msg);

async function collect(ch, queue, params = {}) {
  const got = [];
  const consumer = await ch.basicConsume(queue, { noAck: false, ...params }, (msg) => { got.push(msg); });
  // What ends a consumer ends this promise.
  const ended = consumer.wait().catch((failure) => failure);
  return { got, tag: consumer.tag, ended };
}

const headers = {
  bool: true, no: false, int: -70000, long: 2 ** 40, least: -(2 ** 40), double: -1.5, text: 'Grüße ☃', empty: '',
  nothing: null, list: [1, 'two', [3], { four: 4 }], time: new Date(1709209815000),
  bytes: new Uint8Array([0, 255, 128]), table: { a: { b: { c: 'deep' } }, e: {} },
};

run(async () => {
  let conn = await connect(60);
  let ch = await conn.channel();
  await ch.queueDeclare(work, { durable: true, autoDelete: false });
  ok('connect');

  await ch.confirmSelect();
  const returned = [];
  ch.onReturn = (msg) => returned.push(msg);
  const tags = [];
  for (let i = 0; i < 100; i++) tags.push(ch.basicPublish('', work, `${i}`, { deliveryMode: 2 }, true));
  same(await Promise.all(tags), Array.from({ length: 100 }, (_, i) => i + 1));     // as each is confirmed
  same([await count(ch, work), returned.length], [100, 0]);
  ok('confirm');

  await ch.basicPublish('', prefix + 'nowhere', 'lost', {}, true);
  same(returned.length, 1);
  same([returned[0].replyCode, returned[0].replyText, text(returned[0])], [312, 'NO_ROUTE', 'lost']);
  ok('return');

  const all = await collect(ch, work);
  await waitFor(() => all.got.length === 100);
  same(all.got.map(facts), Array.from({ length: 100 }, (_, i) => `first ${i}`));
  for (const msg of all.got.slice(0, 50)) await msg.ack();
  await all.got[99].ack(true);
  await ch.basicCancel(all.tag);
  same(await count(ch, work), 0);
  ok('consume');

  for (let i = 0; i < 10; i++) await ch.basicPublish('', work, `${i}`);
  await ch.basicQos(3);
  const few = await collect(ch, work);
  await waitFor(() => few.got.length === 3);
  same([await count(ch, work), few.got.length], [7, 3]);
  await few.got[0].ack();
  await waitFor(() => few.got.length === 4);
  same([await count(ch, work), few.got.length], [6, 4]);
  for (let i = 1; i < 10; i++) {
    await waitFor(() => few.got.length > i);
    await few.got[i].ack();
  }
  await ch.basicCancel(few.tag);
  await ch.basicQos(0);
  same(await count(ch, work), 0);
  ok('prefetch');

  for (const body of ['a', 'b', 'c']) await ch.basicPublish('', work, body);
  const some = await collect(ch, work);
  await waitFor(() => some.got.length === 3);
  same(some.got.map(facts), ['first a', 'first b', 'first c']);
  await some.got[2].nack(true, true);
  await waitFor(() => some.got.length === 6);
  same(some.got.slice(3).map(facts), ['again a', 'again b', 'again c']);
  await some.got[3].reject(false);
  await some.got[4].reject(true);
  await waitFor(() => some.got.length === 7);
  same(facts(some.got[6]), 'again b');
  await some.got[6].ack(true);
  await ch.basicCancel(some.tag);
  same(await count(ch, work), 0);
  ok('nack');

  await ch.basicPublish('', work, 'one');
  await ch.basicPublish('', work, 'two');
  const one = await ch.basicGet(work, { noAck: false });
  same([facts(one), one.messageCount, one.routingKey], ['first one', 1, work]);
  await one.ack();
  same(facts(await ch.basicGet(work, { noAck: true })), 'first two');
  same(await ch.basicGet(work), null);
  ok('get');

  const props = {
    contentType: 'text/plain', contentEncoding: 'utf-8', headers, deliveryMode: 2, priority: 9,
    correlationId: 'c'.repeat(255), replyTo: 'somewhere', expiration: '60000', messageId: 'm-1',
    timestamp: new Date(1709209815000), type: 'kind', userId: 'guest', appId: 'steps',
  };
  await ch.basicPublish('', work, 'x', props);
  same((await ch.basicGet(work, { noAck: true })).properties, props);
  ok('properties');

  const large = await collect(ch, work, { noAck: true });
  for (const body of [null, big, '']) await ch.basicPublish('', work, body);
  await waitFor(() => large.got.length === 3);
  same(large.got.map((msg) => msg.bodySize), [0, big.length, 0]);
  assert(big.equals(large.got[1].body));
  await ch.basicCancel(large.tag);
  ok('bodies');

  // By hand, and as the library does it.
  const serving = await conn.channel();
  await serving.basicConsume(work, { noAck: true }, async (msg) => {
    const { replyTo: to, correlationId } = msg.properties;
    await serving.basicPublish('', to, text(msg).toUpperCase(), { correlationId });
  });
  const asking = await conn.channel();
  const replies = await collect(asking, replyTo, { noAck: true });
  await asking.basicPublish('', work, 'question', { replyTo, correlationId: '7' });
  await waitFor(() => replies.got.length === 1);
  same([text(replies.got[0]), replies.got[0].properties.correlationId], ['QUESTION', '7']);
  await asking.close();
  let session = await AMQPSession.connect(url(60), { logger: null });
  same(text(await session.rpcCall(work, 'more', { timeout: 30000 })), 'MORE');
  await session.stop();
  await serving.close();
  ok('rpc');

  const none = await collect(ch, work);
  await ch.basicCancel(none.tag);
  await ch.basicPublish('', work, 'after');
  same([await count(ch, work), none.got.length], [1, 0]);
  const gone = await collect(ch, work);
  await ch.queueDelete(work);
  assert(/cancel/i.test((await gone.ended).message));
  ok('cancel');

  const wrong = await conn.channel();
  await assert.rejects(wrong.queueDeclare(prefix + 'missing', { passive: true }),
    (failure) => failure.message.includes('404')
      && failure.message.includes(`NOT_FOUND - no queue '${prefix}missing'`));
  await (await conn.channel()).close();
  ok('error');

  // Once by hand, once with a session, which comes back by itself.
  await ch.queueDeclare(work, { durable: true, autoDelete: false });
  await ch.basicPublish('', work, 'first', { deliveryMode: 2 });
  await ch.basicPublish('', work, 'second', { deliveryMode: 2 });
  const before = await collect(ch, work);
  await waitFor(() => before.got.length === 2);
  await before.got[0].ack();
  same(await count(ch, work), 0);
  ask('cut');
  await waitFor(() => conn.lost);
  conn = await connect(60);
  ch = await conn.channel();
  const after = await collect(ch, work);
  await waitFor(() => after.got.length === 1);
  same(facts(after.got[0]), 'again second');
  await after.got[0].ack();
  await ch.basicCancel(after.tag);
  session = await AMQPSession.connect(url(60), { reconnectInterval: 50, logger: null });
  const seen = [];
  const queue = await session.queue(work, { durable: true, autoDelete: false });
  await queue.subscribe({ prefetch: 1, noAck: false }, (msg) => { seen.push(text(msg)); });
  await queue.publish('third');
  await waitFor(() => seen.includes('third'));
  await sleep(50);        // the session's ack goes out after our callback
  same(await count(ch, work), 0);
  ask('cut');
  await waitFor(() => conn.lost);
  conn = await connect(60);
  ch = await conn.channel();
  await ch.confirmSelect();
  await ch.basicPublish('', work, 'fourth');
  await waitFor(() => seen.includes('fourth'));
  await queue.delete();
  await session.stop();
  ok('reconnect');

  const quiet = await connect(2);
  await sleep(5000);
  same(quiet.lost, null);
  await (await quiet.channel()).close();
  ask('freeze');
  await waitFor(() => quiet.lost);
  ok('heartbeat');

  conn = await connect(60);
  await (await conn.channel()).close();
  await conn.close();
  ok('close');
});
