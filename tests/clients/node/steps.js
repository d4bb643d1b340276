// SPDX-License-Identifier: Apache-2.0
// What the Node programs share: arguments, the lines they print, the data of some steps.
'use strict';
const assert = require('node:assert/strict');
const path = require('node:path');

const [host, port] = process.argv.slice(2);
const name = path.basename(process.argv[1], '.js').replace('client_', '');
const prefix = `clients.${name}.${process.pid}.`;
const big = Buffer.alloc(10 << 20, Buffer.from(Array.from({ length: 257 }, (_, i) => i)));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function waitFor(condition) {
  for (let i = 0; !condition(); i++) {
    assert(i < 6000, 'waited 30 s in vain');
    await sleep(5);
  }
}

function run(steps) {
  steps().then(() => process.exit(0), (failure) => {
    console.error(failure);
    process.exit(1);
  });
}

module.exports = {
  host, port: Number(port), prefix, work: prefix + 'work', replyTo: 'amq.rabbitmq.reply-to', big, assert, sleep,
  waitFor, run,
  ok: (step) => console.log('ok', step),
  ask: (what) => console.log(what),
};
