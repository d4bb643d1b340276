// SPDX-License-Identifier: Apache-2.0
// From a declared exchange to where its messages go; the same with names that would be markup anywhere else.
import { NASTY } from './nasty.mjs';

const enc = encodeURIComponent;

/** Exchanges, queues and bindings of a table: { x: ['topic', { 'q:queue': ['key', {arguments}], 'e:exchange': [...] }] }. */
async function topology(api, table) {
	for (const [name, [type, , args = {}]] of Object.entries(table))
		await api('PUT', `exchanges/%2F/${enc(name)}`, { type, arguments: args });
	for (const [name, [, bindings]] of Object.entries(table))
		for (const [to, [key, args = {}]] of Object.entries(bindings)) {
			if (to[0] === 'q')
				await api('PUT', `queues/%2F/${enc(to.slice(2))}`, {});
			await api('POST', `bindings/%2F/e/${enc(name)}/${to[0]}/${enc(to.slice(2))}`, { routing_key: key, arguments: args });
		}
}

async function away(api, table) {
	for (const [name, [, bindings]] of Object.entries(table)) {
		for (const to of Object.keys(bindings).filter((b) => b[0] === 'q'))
			await api('DELETE', `queues/%2F/${enc(to.slice(2))}`).catch(() => {});
		await api('DELETE', `exchanges/%2F/${enc(name)}`);
	}
}

export const tests = {
	'an exchange from declare to delete': async ({ page, login, open, shot, api, until }) => {
		await api('PUT', 'queues/%2F/console-eur', {});
		await login();
		await open('exchanges');
		await page.getByRole('link', { name: 'amq.topic' }).waitFor();
		await shot('exchanges');
		await page.getByRole('button', { name: 'Declare an exchange' }).click();
		await page.getByLabel('Name').fill('console prices');
		await page.getByLabel('Type').selectOption('topic');
		await page.getByText('Arguments', { exact: true }).click();
		await page.getByLabel('Alternate exchange').fill('amq.fanout');
		await shot('exchange-declare');
		await page.getByRole('button', { name: 'Declare an exchange', exact: true }).last().click();
		await page.getByRole('heading', { name: 'console prices' }).waitFor();
		await page.getByText('alternate-exchange').first().waitFor();
		await page.getByRole('button', { name: 'Delete the exchange' }).waitFor();
		await shot('exchange');
		await page.getByRole('tab', { name: 'Bindings from here' }).click();
		await page.getByText('goes nowhere').waitFor();
		await page.getByLabel('Queue', { exact: true }).fill('console-e');
		await page.locator('datalist option[value="console-eur"]').waitFor({ state: 'attached' });
		await page.getByLabel('Queue', { exact: true }).fill('console-eur');
		await page.getByLabel('Routing key').fill('stock.#');
		await page.getByRole('button', { name: 'Bind', exact: true }).click();
		await page.getByRole('link', { name: 'console-eur' }).waitFor();
		await page.getByLabel('To a').selectOption('e');
		await page.getByLabel('Exchange', { exact: true }).fill('amq.direct');
		await page.getByRole('button', { name: 'Bind', exact: true }).click();
		await page.getByRole('link', { name: 'amq.direct' }).waitFor();
		await shot('exchange-bindings');
		await page.getByRole('row', { name: 'amq.direct' }).getByRole('button', { name: 'Unbind' }).click();
		await page.getByRole('dialog').getByRole('button', { name: 'Unbind' }).click();
		await until(async () => (await api('GET', 'exchanges/%2F/console%20prices/bindings/source')).length === 1);
		await page.getByRole('tab', { name: 'Publish' }).click();
		await page.getByLabel('Routing key').fill('stock.eur');
		await page.getByLabel('Body', { exact: true }).fill('hello');
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.getByText('Published. It went to:').waitFor();
		await shot('exchange-publish');
		await page.getByLabel('Routing key').fill('bond.eur');
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.getByText('no queue took it').waitFor();
		await page.getByLabel('Routing key').fill('stock.x');
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.getByRole('link', { name: 'console-eur' }).click();
		await page.locator('pre').filter({ hasText: 'hello' }).first().waitFor();
		await open('exchanges', '/', 'console prices');
		await page.getByRole('button', { name: 'Delete the exchange' }).click();
		await page.getByRole('dialog').getByRole('textbox').fill('console prices');
		await page.getByRole('dialog').getByRole('button', { name: 'Delete the exchange' }).click();
		await page.getByText('is deleted').waitFor();
		await api('DELETE', 'queues/%2F/console-eur');
	},
	'bindings to an exchange': async ({ page, login, open, api, until }) => {
		await api('PUT', 'exchanges/%2F/console-in', { type: 'fanout' });
		await login();
		await open('exchanges', '/', 'console-in');
		await page.getByRole('tab', { name: 'Bindings to here' }).click();
		await page.getByLabel('From exchange').fill('amq.topic');
		await page.getByLabel('Routing key').fill('a.b');
		await page.getByRole('button', { name: 'Bind', exact: true }).click();
		await page.getByRole('link', { name: 'amq.topic' }).waitFor();
		const [bound] = await api('GET', 'exchanges/%2F/console-in/bindings/destination');
		if (bound.source !== 'amq.topic' || bound.routing_key !== 'a.b')
			throw new Error(JSON.stringify(bound));
		await page.getByRole('button', { name: 'Unbind' }).click();
		await page.getByRole('dialog').getByRole('button', { name: 'Unbind' }).click();
		await until(async () => (await api('GET', 'exchanges/%2F/console-in/bindings/destination')).length === 0);
		await api('DELETE', 'exchanges/%2F/console-in');
	},
	'bindings in pages, searched by the node': async ({ page, login, open, api }) => {
		const queues = [...Array(30).keys()].map((n) => `console-page-${String(n).padStart(2, '0')}`);
		const table = { 'console many': ['direct', Object.fromEntries(queues.map((q) => [`q:${q}`, [q.slice(-2)]]))] };
		await topology(api, table);
		await login();
		const asked = [];
		page.on('request', (r) => /bindings\/source/.test(r.url()) && asked.push(r.url()));
		await page.evaluate(() => localStorage.setItem('hermes.bindings.rows', '25'));
		await open('exchanges', '/', 'console many');
		await page.getByRole('tab', { name: 'Bindings from here' }).click();
		await page.getByText('30 in all').waitFor();
		await page.getByRole('button', { name: 'Next' }).click();
		await page.getByRole('link', { name: queues[29] }).waitFor();
		if (await page.getByRole('row').count() !== 6)
			throw new Error('the second page has other rows than five');
		for (const q of queues.slice(25))
			await api('DELETE', `queues/%2F/${q}`);
		await page.getByRole('button', { name: 'Previous' }).click();
		await page.getByText('25 in all').waitFor();
		await page.evaluate(() => (location.hash = location.hash.replace(/page=\d+/, '') + '&page=2'));
		await page.getByText('Page 1 of 1').waitFor();
		await page.getByRole('searchbox').fill('page-07');
		await page.getByText('1 of 25').waitFor();
		await page.getByRole('link', { name: queues[7] }).waitFor();
		if (asked.some((url) => !/page_size=25/.test(url)) || !asked.some((url) => /name=page-07/.test(url)))
			throw new Error(`asked ${asked.join(' ')}`);
		await away(api, table);
	},
	'where a routing key would go': async ({ page, login, open, shot, api, until }) => {
		const table = {
			'console orders': ['topic', { 'q:console billing': ['order.*.paid'], 'q:console audit': ['#'], 'e:console late': ['order.#'] }],
			'console late': ['x-delayed-message', { 'q:console reminders': ['order.eu.paid'] }, { 'x-delayed-type': 'direct', 'alternate-exchange': 'console lost' }],
			'console lost': ['fanout', { 'q:console unknown': [''], 'e:console orders': [''] }],
		};
		await api('PUT', 'exchanges/%2F/console%20late', { type: 'x-delayed-message', arguments: { 'x-delayed-type': 'direct', 'alternate-exchange': 'console lost' } });
		await topology(api, table);
		await login();
		await open('exchanges', '/', 'console orders');
		await page.getByRole('tab', { name: 'Try a routing key' }).click();
		await page.getByLabel('Routing key').fill('order.eu.paid');
		await page.getByText('Queues that get the message: 3').waitFor();
		const list = page.locator('ol.steps');
		await list.getByRole('link', { name: 'console reminders' }).waitFor();
		const drawn = async () => (await page.locator('.drawing .box title').allTextContents()).sort();
		await until(async () => (await drawn()).join() === ['console audit', 'console billing', 'console late', 'console orders', 'console reminders'].join());
		await shot('exchange-route');
		await page.getByLabel('Routing key').fill('order.us.new');
		await list.getByText('no binding matched: the alternate exchange').waitFor();
		await list.getByRole('link', { name: 'console unknown' }).waitFor();
		await list.getByText('was reached before').first().waitFor();
		await page.getByText('Headers and properties').click();
		await page.getByLabel(/^Headers/).fill('{"x-delay": 60000}');
		await list.getByText('waits 1 min first').waitFor();
		await shot('exchange-route-alternate');
		await page.getByLabel(/^Headers/).fill('{"x-delay": ');
		await page.getByRole('alert').filter({ hasText: 'is not JSON' }).waitFor();
		await page.getByLabel(/^Headers/).fill('{"x-delay": "soon"}');
		await page.getByRole('alert').filter({ hasText: 'x-delay' }).waitFor();
		await page.getByLabel(/^Headers/).fill('');
		await page.locator('.drawing a').filter({ hasText: 'console audit' }).click();
		await page.getByRole('heading', { name: 'console audit' }).waitFor();
		await page.goBack();
		await page.getByLabel('Routing key').waitFor();
		if (await page.getByLabel('Routing key').inputValue() !== 'order.us.new')
			throw new Error('the key did not stay in the address');
		await away(api, table);
	},
	'the default exchange': async ({ page, login, open, shot, api }) => {
		await api('PUT', 'queues/%2F/console-by-name', {});
		await login();
		await open('exchanges');
		await page.getByRole('link', { name: '(default exchange)' }).click();
		await page.getByRole('tab', { name: 'Try a routing key' }).click();
		await page.getByText('No queue gets the message').waitFor();
		await page.getByLabel('Routing key').fill('console-by-name');
		await page.locator('ol.steps').getByRole('link', { name: 'console-by-name' }).waitFor();
		await page.getByRole('tab', { name: 'Publish' }).click();
		await page.getByLabel('Routing key').fill('console-by-name');
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.getByRole('status').getByRole('link', { name: 'console-by-name' }).waitFor();
		if (await page.getByRole('button', { name: 'Delete the exchange' }).count())
			throw new Error('the default exchange could be deleted');
		await api('DELETE', 'queues/%2F/console-by-name');
	},
	'nasty names of exchanges are text': async ({ page, login, open, api, shot, until }) => {
		const table = Object.fromEntries(NASTY.map((name) => [name, ['headers', { [`q:${name}`]: [name, { [name]: name, 'x-match': 'any' }] }]]));
		await topology(api, table);
		await login();
		await open('exchanges');
		for (const name of NASTY)
			await page.getByRole('link', { name, exact: true }).waitFor();
		for (const name of NASTY) {
			await open('exchanges', '/', name);
			await page.getByRole('tab', { name: 'Bindings from here' }).click();
			await page.getByRole('link', { name, exact: true }).waitFor();
			await page.getByRole('tab', { name: 'Try a routing key' }).click();
			await page.getByLabel(/^Headers/).fill(JSON.stringify({ [name]: name }));
			await page.locator('ol.steps ul').getByRole('link', { name, exact: true }).waitFor();
			await until(async () => (await page.locator('.drawing .box title').allTextContents()).filter((text) => text === name).length === 2);
		}
		await shot('exchange-nasty');
		if (await page.evaluate(() => window.pwned))
			throw new Error('a name was run');
		await away(api, table);
	},
};
