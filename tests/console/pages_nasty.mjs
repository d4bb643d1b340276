// SPDX-License-Identifier: Apache-2.0
// One name that is markup, quotes, right-to-left and emoji at once, wherever a name can be: it is text on every page, in every
// dialog and note, in the title; and no file that is downloaded is named by it.
import { ALL } from './nasty.mjs';

const enc = encodeURIComponent, name = enc(ALL), SIGN = '<img src=x onerror';

async function make(api) {
	await api('PUT', `vhosts/${name}`, { description: ALL, tags: ALL });
	await api('PUT', `users/${name}`, { password: ALL, tags: `monitoring,${ALL}` });
	for (const user of [name, 'guest'])
		await api('PUT', `permissions/${name}/${user}`, { configure: '.*', write: '.*', read: '.*' });
	await api('PUT', `permissions/%2F/${name}`, { configure: ALL, write: ALL, read: ALL });
	await api('PUT', `exchanges/${name}/${name}`, { type: 'topic', arguments: { 'alternate-exchange': ALL } });
	await api('PUT', `topic-permissions/${name}/${name}`, { exchange: ALL, write: ALL, read: ALL });
	await api('PUT', `policies/${name}/${name}`, { pattern: ALL, 'apply-to': 'all', definition: { 'dead-letter-exchange': ALL } });
	await api('PUT', `operator-policies/${name}/${name}`, { pattern: ALL, 'apply-to': 'queues', definition: { 'max-length': 1000 } });
	await api('PUT', `global-parameters/${name}`, { value: { [ALL]: ALL } });
	await api('PUT', `vhost-limits/${name}/max-queues`, { value: 10 });
	await api('PUT', `user-limits/${name}/max-channels`, { value: 10 });
	const args = { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': ALL };
	await api('PUT', `queues/${name}/${name}`, { durable: true, arguments: { 'x-dead-letter-exchange': ALL, 'x-dead-letter-routing-key': ALL } });
	await api('PUT', `queues/${name}/dies`, { durable: true, arguments: args });
	await api('POST', `bindings/${name}/e/${name}/q/${name}`, { routing_key: ALL, arguments: { [ALL]: ALL } });
	for (const [exchange, key] of [[name, ALL], ['amq.default', 'dies']])
		await api('POST', `exchanges/${name}/${exchange}/publish`, { properties: { headers: { [ALL]: [ALL] }, content_type: ALL, message_id: ALL },
			routing_key: key, payload: ALL, payload_encoding: 'string' });
	await api('POST', `queues/${name}/dies/get`, { count: 1, ackmode: 'reject_requeue_false', encoding: 'auto' });
}

const PAGES = ['overview', 'queues', ...['state', 'bindings', 'look', 'live', 'publish'].map((tab) => `queues/${name}/${name}?tab=${tab}`), 'dead-letters',
	`dead-letters/${name}/${name}`, 'exchanges', ...['state', 'bindings', 'inbound', 'publish'].map((tab) => `exchanges/${name}/${name}?tab=${tab}`),
	`exchanges/${name}/${name}?tab=route&key=${name}`, 'connections', 'consumers', 'vhosts', `vhosts/${name}`, 'users', `users/${name}`,
	'policies', 'limits', 'parameters'];

export const tests = {
	'a name that is everything is text everywhere': async ({ page, login, url, api, until, look }) => {
		const harmless = async (where) => {
			if (await page.evaluate(() => window.pwned || document.querySelectorAll('#app :is(img, script, iframe, object)').length))
				throw new Error(`taken for markup: ${where}`);
		};
		await make(api);
		await login();
		for (const where of PAGES) {
			await page.goto(`${url}#/${where}`);
			await until(async () => (await page.evaluate(() => document.querySelector('main')?.innerText ?? '')).includes(SIGN), `the name on ${where}`);
			await page.evaluate(() => document.querySelectorAll('details').forEach((d) => (d.open = true)));
			await harmless(where);
		}
		await page.goto(`${url}#/queues/${name}/${name}?tab=look`);
		const [message] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).first().click()]);
		if (message.suggestedFilename() !== 'message.txt')
			throw new Error(`a message is downloaded as ${message.suggestedFilename()}`);
		await until(async () => (await page.title()).startsWith(`\u2068${ALL}\u2069 · Queues`), 'the title');
		await page.getByRole('tab', { name: 'State' }).click();
		for (const [label, done] of [['Purge', 'empty'], ['Delete the queue', 'deleted']]) {
			await page.getByRole('button', { name: label, exact: true }).click();
			await page.getByRole('dialog').getByText(SIGN).waitFor();
			await harmless(label);
			await page.getByRole('dialog').getByRole('textbox').fill(ALL);
			await look(`nasty-${label.replace(/ /g, '-')}`);
			await page.getByRole('dialog').getByRole('button', { name: label }).click();
			await page.getByRole('status').getByText(`\u2068${ALL}\u2069 is ${done}`).waitFor();	// what follows the name reads as it should
			await harmless(`the note after ${label}`);
		}
		await page.goto(`${url}#/definitions`);
		await page.getByLabel('Of what').first().selectOption(ALL);
		const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: /^Download hermes/ }).click()]);
		if (!/^hermes-[\w.-]+\.json$/.test(file.suggestedFilename()))
			throw new Error(`definitions are downloaded as ${file.suggestedFilename()}`);
		await page.goto(`${url}#/vhosts/${name}`);
		await page.getByRole('button', { name: 'Delete the virtual host' }).click();
		await page.getByRole('dialog').getByRole('textbox').fill(ALL);
		await page.getByRole('dialog').getByRole('button', { name: 'Delete the virtual host' }).click();
		await page.getByText('is deleted').filter({ hasText: 'Virtual host' }).waitFor();
		await harmless('the last note');
		await api('DELETE', `users/${name}`);
		await api('DELETE', `global-parameters/${name}`);
	},
};
