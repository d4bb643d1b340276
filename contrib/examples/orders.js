// SPDX-License-Identifier: Apache-2.0
// Orders go out and come in, and go on when the node is started again or another takes its place.
//
//     node orders.js [HOST:PORT[,HOST:PORT...] [COUNT]]        npm install amqplib
'use strict';
const amqp = require('amqplib');

const addresses = (process.argv[2] || 'localhost:5672').split(',');
const count = Number(process.argv[3] || 100);
const queue = 'orders.node';

// What has to outlive a connection: how far we are.
let published = 0;
const received = new Set();

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The first node of the list that answers, tried again until there is one.
async function connect() {
  for (;;) {
    for (const address of addresses) {
      try {
        return await amqp.connect(`amqp://guest:guest@${address}/?heartbeat=10`);
      } catch (none) {
        // the next one
      }
    }
    console.log('no node answers, trying again');
    await sleep(500);
  }
}

// On one connection, until all is done; throws when the connection is lost.
async function run() {
  const connection = await connect();
  let lost = null;
  connection.on('error', (failure) => { lost = failure; });
  connection.on('close', () => { lost = lost || new Error('closed'); });

  const channel = await connection.createConfirmChannel();
  channel.on('error', (failure) => { lost = failure; });
  // Declared on every connection: the node may be a new one.
  await channel.assertQueue(queue, { durable: true });
  await channel.prefetch(10);
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (message === null) return;       // the queue was deleted
    const number = Number(message.content.toString());
    // An order may come twice: after a lost connection, or because we published it again.
    if (!received.has(number)) {
      received.add(number);
      console.log('received', number);
    }
    channel.ack(message);
  });

  while (!received.has(count)) {
    if (lost) throw lost;
    if (published < count) {
      channel.sendToQueue(queue, Buffer.from(String(published + 1)), { persistent: true, mandatory: true });
      // Throws if the connection is lost before the node has the order: then the next one sends it again.
      await channel.waitForConfirms();
      published += 1;
    }
    await sleep(50);
  }
  await channel.cancel(consumerTag);
  console.log('unsubscribed');
  await connection.close();
}

async function main() {
  for (;;) {
    try {
      return await run();
    } catch (failure) {
      console.log('lost the connection:', failure.message);
    }
  }
}

main();
