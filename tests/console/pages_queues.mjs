// SPDX-License-Identifier: Apache-2.0
// From a declared queue to its messages; names and bodies that would be markup anywhere else.
import { NASTY } from './nasty.mjs';

export const tests = {
	'a queue from declare to delete': async ({ page, login, open, shot, api, until }) => {
		await login();
		await open('queues');
		await page.getByRole('button', { name: 'Declare a queue' }).click();
		await page.getByLabel('Name').fill('console orders');
		await page.getByText('Arguments', { exact: true }).click();
		await page.getByLabel('Most messages').fill('100');
		await shot('queue-declare');
		await page.getByRole('button', { name: 'Declare a queue', exact: true }).last().click();
		await page.getByRole('heading', { name: 'console orders' }).waitFor();
		await page.getByRole('tab', { name: 'Publish' }).click();
		await page.getByLabel('Body', { exact: true }).fill('{"order": 1}');
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.getByText('Published. It went to:').waitFor();
		await page.getByRole('tab', { name: 'Get messages' }).click();
		await page.getByRole('button', { name: 'Get messages' }).click();
		await page.getByText('"order": 1').waitFor();
		await shot('queue-messages');
		await page.getByRole('tab', { name: 'State' }).click();
		await page.getByRole('button', { name: 'Purge' }).waitFor();
		await shot('queue');
		await page.getByRole('button', { name: 'Purge' }).click();
		const dialog = page.getByRole('dialog');
		if (await dialog.getByRole('button', { name: 'Purge' }).isEnabled())
			throw new Error('purged without a question');
		await dialog.getByRole('textbox').fill('console orders');
		await dialog.getByRole('button', { name: 'Purge' }).click();
		await until(async () => (await api('GET', 'queues/%2F/console%20orders')).messages === 0);
		await page.getByRole('button', { name: 'Delete the queue' }).click();
		await dialog.getByRole('textbox').fill('console orders');
		await dialog.getByRole('button', { name: 'Delete the queue' }).click();
		await page.getByText('is deleted').waitFor();
	},
	'bind and unbind': async ({ page, login, open, api, until }) => {
		await api('PUT', 'queues/%2F/console-bound', {});
		await login();
		await open('queues', '/', 'console-bound');
		await page.getByRole('tab', { name: 'Bindings' }).click();
		await page.getByLabel('Exchange').fill('amq.topic');
		await page.getByLabel('Routing key').fill('a.#');
		await page.getByRole('button', { name: 'Bind', exact: true }).click();
		await page.getByRole('link', { name: 'amq.topic' }).waitFor();
		await page.getByRole('button', { name: 'Unbind' }).click();
		await page.getByRole('dialog').getByRole('button', { name: 'Unbind' }).click();
		await until(async () => (await api('GET', 'queues/%2F/console-bound/bindings')).length === 1);
		await api('DELETE', 'queues/%2F/console-bound');
	},
	'what is refused is shown': async ({ page, login, open }) => {
		await login();
		await open('queues');
		await page.getByRole('button', { name: 'Declare a queue' }).click();
		await page.getByLabel('Name').fill('amq.mine');
		await page.getByRole('button', { name: 'Declare a queue', exact: true }).last().click();
		await page.getByRole('alert').filter({ hasText: 'Access refused' }).waitFor();
	},
	'nasty names and bodies are text': async ({ page, login, open, api, shot, until }) => {
		for (const name of NASTY)
			await api('PUT', `queues/%2F/${encodeURIComponent(name)}`, {});
		await login();
		await open('queues');
		for (const name of NASTY)
			await page.getByRole('link', { name, exact: true }).waitFor();
		await shot('queues-nasty');
		for (const name of NASTY) {
			await api('POST', 'exchanges/%2F/amq.default/publish', { properties: { headers: { [name]: name } }, routing_key: name, payload: name,
				payload_encoding: 'string' });
			await open('queues', '/', name);
			await page.getByRole('tab', { name: 'Get messages' }).click();
			await page.getByRole('button', { name: 'Get messages' }).click();
			await until(async () => (await page.locator('pre').textContent()) === name, `the body ${name}`);
			await api('DELETE', `queues/%2F/${encodeURIComponent(name)}`);
		}
		if (await page.evaluate(() => window.pwned))
			throw new Error('a name was run');
	},
};
