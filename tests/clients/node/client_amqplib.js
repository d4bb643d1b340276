// SPDX-License-Identifier: Apache-2.0
// The steps of README.md with amqplib (promises).
'use strict';
const fs = require('node:fs');
const amqp = require('amqplib');
const { host, port, prefix, work, replyTo, big, assert, sleep, waitFor, run, ok, ask } = require('./steps');

const same = assert.deepStrictEqual;

async function connect(heartbeat) {
  const ca = process.env.CLIENTS_CA;
  const address = { hostname: host, port, username: 'guest', password: 'guest', heartbeat, protocol: ca ? 'amqps' : 'amqp' };
  const conn = await amqp.connect(address, ca ? { ca: [fs.readFileSync(ca)] } : {});
  conn.lost = null;
  conn.on('error', (failure) => { conn.lost = failure; });
  conn.on('close', (failure) => { conn.lost = conn.lost || failure; });
  return conn;
}

const count = async (ch, queue) => (await ch.checkQueue(queue)).messageCount;
const facts = (msg) => (msg.fields.redelivered ? 'again ' : 'first ') + msg.content;

async function collect(ch, queue, options) {
  const got = [];
  const { consumerTag } = await ch.consume(queue, (msg) => got.push(msg), options);
  return { got, tag: consumerTag };
}

const headers = {
  bool: true, no: false, byte: -7, short: -300, int: -(2 ** 31), long: 2 ** 40, double: -0.1,
  float: { '!': 'float', value: 1.5 }, text: 'Grüße ☃', empty: '', nothing: null,
  bytes: Buffer.from([0, 255, 128]), list: [1, 'two', [3], { four: 4 }],
  time: { '!': 'timestamp', value: 1709209815 }, decimal: { '!': 'decimal', value: { digits: 314, places: 2 } },
  table: { a: { b: { c: 'deep' } }, e: {} },
};

run(async () => {
  let conn = await connect(60);
  same(conn.connection.serverProperties.product, 'RabbitMQ');
  let ch = await conn.createConfirmChannel();
  await ch.assertQueue(work, { durable: true });
  ok('connect');

  const returned = [];
  ch.on('return', (msg) => returned.push(msg));
  for (let i = 0; i < 100; i++) ch.publish('', work, Buffer.from(`${i}`), { persistent: true, mandatory: true });
  await ch.waitForConfirms();
  same([await count(ch, work), returned.length], [100, 0]);
  ok('confirm');

  ch.publish('', prefix + 'nowhere', Buffer.from('lost'), { mandatory: true });
  await ch.waitForConfirms();
  same(returned.length, 1);
  const { replyCode, replyText } = returned[0].fields;
  same([replyCode, replyText, `${returned[0].content}`], [312, 'NO_ROUTE', 'lost']);
  ok('return');

  const all = await collect(ch, work);
  await waitFor(() => all.got.length === 100);
  same(all.got.map(facts), Array.from({ length: 100 }, (_, i) => `first ${i}`));
  for (const msg of all.got.slice(0, 50)) ch.ack(msg);
  ch.ack(all.got[99], true);
  await ch.cancel(all.tag);
  same(await count(ch, work), 0);
  ok('consume');

  for (let i = 0; i < 10; i++) ch.sendToQueue(work, Buffer.from(`${i}`));
  await ch.waitForConfirms();
  await ch.prefetch(3);
  const few = await collect(ch, work);
  await waitFor(() => few.got.length === 3);
  same([await count(ch, work), few.got.length], [7, 3]);
  ch.ack(few.got[0]);
  await waitFor(() => few.got.length === 4);
  same([await count(ch, work), few.got.length], [6, 4]);
  for (let i = 1; i < 10; i++) {
    await waitFor(() => few.got.length > i);
    ch.ack(few.got[i]);
  }
  await ch.cancel(few.tag);
  await ch.prefetch(0);
  same(await count(ch, work), 0);
  ok('prefetch');

  for (const body of ['a', 'b', 'c']) ch.sendToQueue(work, Buffer.from(body));
  const some = await collect(ch, work);
  await waitFor(() => some.got.length === 3);
  same(some.got.map(facts), ['first a', 'first b', 'first c']);
  ch.nack(some.got[2], true, true);
  await waitFor(() => some.got.length === 6);
  same(some.got.slice(3).map(facts), ['again a', 'again b', 'again c']);
  ch.reject(some.got[3], false);
  ch.reject(some.got[4], true);
  await waitFor(() => some.got.length === 7);
  same(facts(some.got[6]), 'again b');
  ch.ack(some.got[6], true);
  await ch.cancel(some.tag);
  same(await count(ch, work), 0);
  ok('nack');

  ch.sendToQueue(work, Buffer.from('one'));
  ch.sendToQueue(work, Buffer.from('two'));
  await ch.waitForConfirms();
  const one = await ch.get(work);
  same([facts(one), one.fields.messageCount, one.fields.routingKey], ['first one', 1, work]);
  ch.ack(one);
  same(facts(await ch.get(work, { noAck: true })), 'first two');
  same(await ch.get(work), false);
  ok('get');

  const props = {
    contentType: 'text/plain', contentEncoding: 'utf-8', headers, deliveryMode: 2, priority: 9,
    correlationId: 'c'.repeat(255), replyTo: 'somewhere', expiration: '60000', messageId: 'm-1',
    timestamp: 1709209815, type: 'kind', userId: 'guest', appId: 'steps',
  };
  ch.sendToQueue(work, Buffer.from('x'), props);
  await ch.waitForConfirms();
  const back = (await ch.get(work, { noAck: true })).properties;
  const plain = { ...headers, float: 1.5 };
  same(Object.assign({}, back.headers), plain);
  for (const key of Object.keys(props).filter((key) => key !== 'headers')) same(back[key], props[key]);
  ok('properties');

  const large = await collect(ch, work, { noAck: true });
  for (const body of [Buffer.alloc(0), big, Buffer.alloc(0)]) ch.sendToQueue(work, body);
  await waitFor(() => large.got.length === 3);
  same(large.got.map((msg) => msg.content.length), [0, big.length, 0]);
  assert(big.equals(large.got[1].content));
  await ch.cancel(large.tag);
  ok('bodies');

  const serving = await conn.createChannel();
  await serving.consume(work, (msg) => {
    serving.sendToQueue(msg.properties.replyTo, Buffer.from(`${msg.content}`.toUpperCase()),
      { correlationId: msg.properties.correlationId });
    serving.ack(msg);
  });
  const asking = await conn.createChannel();
  const replies = await collect(asking, replyTo, { noAck: true });
  asking.sendToQueue(work, Buffer.from('question'), { replyTo, correlationId: '7' });
  await waitFor(() => replies.got.length === 1);
  same([`${replies.got[0].content}`, replies.got[0].properties.correlationId], ['QUESTION', '7']);
  await asking.close();
  await serving.close();
  ok('rpc');

  const none = await collect(ch, work);
  await ch.cancel(none.tag);
  ch.sendToQueue(work, Buffer.from('after'));
  await ch.waitForConfirms();
  same([await count(ch, work), none.got.length], [1, 0]);
  const gone = await collect(ch, work);
  await ch.deleteQueue(work);
  await waitFor(() => gone.got.includes(null));     // so amqplib says that the consumer was cancelled
  ok('cancel');

  const wrong = await conn.createChannel();
  let closed = null;
  wrong.on('error', (failure) => { closed = failure; });
  await assert.rejects(wrong.checkQueue(prefix + 'missing'));
  await waitFor(() => closed);
  same(closed.code, 404);
  assert(closed.message.includes(`NOT_FOUND - no queue '${prefix}missing'`), closed.message);
  await (await conn.createChannel()).close();
  ok('error');

  await ch.assertQueue(work, { durable: true });
  ch.sendToQueue(work, Buffer.from('first'), { persistent: true });
  ch.sendToQueue(work, Buffer.from('second'), { persistent: true });
  const before = await collect(ch, work);
  await waitFor(() => before.got.length === 2);
  ch.ack(before.got[0]);
  same(await count(ch, work), 0);
  ask('cut');
  await waitFor(() => conn.lost);
  conn = await connect(60);
  ch = await conn.createChannel();
  const after = await collect(ch, work);
  await waitFor(() => after.got.length === 1);
  same(facts(after.got[0]), 'again second');
  ch.ack(after.got[0]);
  same(await count(ch, work), 0);
  await ch.deleteQueue(work);
  ok('reconnect');

  const quiet = await connect(2);
  await sleep(5000);
  same(quiet.lost, null);
  await (await quiet.createChannel()).close();
  ask('freeze');
  await waitFor(() => quiet.lost);
  assert(/heartbeat/i.test(quiet.lost.message), quiet.lost.message);
  ok('heartbeat');

  conn = await connect(60);
  await (await conn.createChannel()).close();
  await conn.close();
  ok('close');
});
