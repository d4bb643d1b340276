// SPDX-License-Identifier: Apache-2.0
// Live messages of a queue and an exchange.
import { NASTY } from './nasty.mjs';

const publisher = (api) => (exchange, key, payload, properties = {}) => api('POST', `exchanges/%2F/${exchange}/publish`,
	{ properties, routing_key: key, payload, payload_encoding: 'string' });

/** The tail has been opened: what is published from now on is seen. */
const live = (page) => page.locator('.badge.ok', { hasText: 'live' }).waitFor();

export const tests = {
	'live messages of a queue': async ({ page, login, open, api, until, shot }) => {
		const publish = publisher(api), rows = page.locator('table[aria-label="Live messages"] tbody tr');
		await api('PUT', 'queues/%2F/console-live', {});
		await login();
		await open('queues', '/', 'console-live');
		await page.getByRole('tab', { name: 'Live' }).click();
		await live(page);
		await publish('amq.default', 'console-live', '{"order": 1}', { headers: { customer: 'Ada' } });
		await page.getByText('{"order": 1}').waitFor();
		await page.getByRole('button', { name: /^Show the message/ }).click();
		await page.locator('pre', { hasText: '"order": 1' }).waitFor();
		await page.getByText('Ada').waitFor();
		await shot('queue-live');
		if ((await api('POST', 'queues/%2F/console-live/get', { count: 5, ackmode: 'ack_requeue_true', encoding: 'auto' })).length !== 1)
			throw new Error('the message was consumed');
		await page.getByRole('button', { name: 'Pause' }).click();
		await publish('amq.default', 'console-live', 'while it is paused');
		await until(async () => (await api('GET', 'overview')).hermes.tails.messages >= 2);
		if (await rows.count() !== 1)
			throw new Error('shown while it is paused');
		await page.getByRole('button', { name: 'Go on' }).click();
		await page.getByText('while it is paused').waitFor();
		for (const text of NASTY) {
			await publish('amq.default', 'console-live', text);
			await until(async () => (await rows.first().innerText()).includes(text), text);
		}
		await page.getByRole('button', { name: 'Clear' }).click();
		await page.getByText('Nothing has come yet.').waitFor();
		await api('DELETE', 'queues/%2F/console-live');
		await page.getByText('what was watched is gone').waitFor();
		await page.getByRole('button', { name: 'Again' }).click();
		await page.getByRole('alert').filter({ hasText: 'Not Found' }).waitFor();
		if (await page.evaluate(() => window.pwned))
			throw new Error('a body was run');
	},
	'live messages of an exchange, by key and rate': async ({ page, login, open, api, until, shot }) => {
		const publish = publisher(api);
		await login();
		await open('exchanges', '/', 'amq.topic');
		await page.getByRole('tab', { name: 'Live' }).click();
		await live(page);
		await page.getByLabel('Routing key').fill('order.#');
		await page.getByLabel('At most a second').selectOption('10');
		const opened = page.waitForResponse((r) => r.url().includes('rate=10&'));
		await page.getByRole('button', { name: 'Show', exact: true }).click();
		await opened;	// the one before may still be there
		await until(async () => (await api('GET', 'overview')).hermes.tails.open === 1);
		await live(page);
		await publish('amq.topic', 'invoice.1', 'not this one');
		await api('POST', 'hermes/exchanges/%2F/amq.topic/publish', { messages: [...Array(30).keys()].map((i) => ({ properties: {},
			routing_key: `order.${i}`, payload: `number ${i}`, payload_encoding: 'string' })) });
		await page.getByText('number 9').waitFor();
		await page.getByText('20 left out').waitFor();
		if (await page.getByText('not this one').count())
			throw new Error('a key that was not asked for');
		await shot('exchange-live');
		await page.getByRole('combobox', { name: 'Language' }).selectOption('zh');
		await page.getByText('略过 20 条').waitFor();
		await shot('exchange-live-zh');
		await open('overview');
		await until(async () => (await api('GET', 'overview')).hermes.tails.open === 0, 'the tail ends with its page');
	},
};
