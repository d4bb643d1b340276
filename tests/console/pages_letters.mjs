// SPDX-License-Identifier: Apache-2.0
// Queues that are paused, messages that are moved, dead letters that are sent back.
const MANY = 300; // at two a second somebody has time to cancel, however slow the machine is
const ready = (api, name) => async (n) => (await api('GET', `queues/%2F/${name}`)).messages_ready === n;
const publish = (api, exchange, key, body) => api('POST', `exchanges/%2F/${exchange}/publish`, { properties: { delivery_mode: 2 }, routing_key: key,
	payload: body, payload_encoding: 'string' });

export const tests = {
	'pause, move, resume': async ({ page, login, open, api, shot, until }) => {
		for (const name of ['console-from', 'console-to'])
			await api('PUT', `queues/%2F/${name}`, { durable: true });
		await api('POST', 'hermes/exchanges/%2F/amq.default/publish', { messages: [...Array(MANY).keys()].map((i) => ({ properties: {},
			routing_key: 'console-from', payload: `m${i}`, payload_encoding: 'string' })) });
		await login();
		await open('queues', '/', 'console-from');
		await page.getByRole('tab', { name: 'Browse' }).click();
		await page.getByText('m19', { exact: true }).waitFor();
		await shot('queue-look');
		if ((await api('GET', 'queues/%2F/console-from')).messages_ready !== MANY)
			throw new Error('looking took something');
		await page.getByRole('tab', { name: 'State' }).click();
		await page.getByRole('button', { name: 'Pause', exact: true }).click();
		await page.getByText('is paused').waitFor();
		await until(async () => (await api('GET', 'queues/%2F/console-from')).state === 'paused');
		await page.getByRole('button', { name: 'Move messages' }).click();
		const dialog = page.getByRole('dialog');
		await dialog.getByText(`Messages that are ready: ${MANY}.`).waitFor(); // which reads well with 1, too
		await dialog.getByLabel('To the queue').fill('console-nowhere');
		await dialog.getByRole('button', { name: 'Move messages' }).click();
		await dialog.getByRole('alert').filter({ hasText: 'no queue' }).waitFor();
		await dialog.getByLabel('To the queue').fill('console-to');
		await dialog.getByLabel('How many').fill(String(MANY - 1));
		await dialog.getByLabel('Messages a second').fill('2');
		await shot('queue-move');
		await dialog.getByRole('button', { name: 'Move messages' }).click();
		await page.getByRole('table', { name: 'Moves' }).getByRole('progressbar').waitFor();
		await page.route('**/api/hermes/jobs', async (route) => {
			const response = await route.fetch();
			await route.fulfill({ response, json: (await response.json()).map((job) => ({ ...job, waiting: 'the disk is full' })) });
		});
		await page.getByRole('table', { name: 'Moves' }).getByText('waits: the disk is full').waitFor();
		await shot('queue-moving');
		await page.unroute('**/api/hermes/jobs');
		await until(async () => (await api('GET', 'queues/%2F/console-to')).messages_ready > 0);
		await page.getByRole('button', { name: 'Cancel', exact: true }).click();
		await dialog.getByRole('button', { name: 'Cancel', exact: true }).last().click();
		await page.getByRole('table', { name: 'Moves' }).getByText('cancelled').waitFor();
		const moved = (await api('GET', 'queues/%2F/console-to')).messages_ready;
		if (moved < 1 || moved > MANY - 2)
			throw new Error(`${moved} were moved`);
		await page.getByRole('button', { name: 'Resume' }).click();
		await until(async () => (await api('GET', 'queues/%2F/console-from')).state !== 'paused');
		for (const name of ['console-from', 'console-to'])
			await api('DELETE', `queues/%2F/${name}`);
	},
	'dead letters are sent back': async ({ page, login, open, api, shot, until }) => {
		await api('PUT', 'queues/%2F/console-dead', { durable: true });
		await api('PUT', 'queues/%2F/console-dies', { durable: true, arguments: { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': 'console-dead' } });
		await api('POST', 'bindings/%2F/e/amq.direct/q/console-dies', { routing_key: 'order' });
		for (let i = 0; i < 4; i++)
			await publish(api, 'amq.direct', 'order', `{"n": ${i}}`);
		await api('POST', 'queues/%2F/console-dies/get', { count: 4, ackmode: 'reject_requeue_false', encoding: 'auto' });
		await until(async () => ready(api, 'console-dead')(4));
		await login();
		await open('dead-letters');
		await page.getByRole('link', { name: 'console-dead' }).waitFor();
		await shot('dead-letters');
		await page.getByRole('link', { name: 'console-dead' }).click();
		await page.getByRole('cell', { name: 'rejected' }).first().waitFor();
		await page.getByRole('checkbox').nth(1).check();
		await shot('dead-letters-queue');
		await page.getByRole('button', { name: 'Show' }).nth(2).click();
		await page.getByText('"n": 2').waitFor();
		await page.keyboard.press('Escape');
		await page.getByRole('button', { name: 'Send 1 back' }).click();
		await page.getByRole('dialog').getByRole('button', { name: 'Send back' }).click();
		await until(async () => ready(api, 'console-dies')(1));
		await page.getByRole('button', { name: 'Send all back' }).click();
		await shot('dead-letters-replay');
		await page.getByRole('dialog').getByRole('button', { name: 'Send back' }).click();
		await until(async () => ready(api, 'console-dies')(4));
		await page.getByText('No message is ready here.').waitFor();
		await shot('dead-letters-sent');
		const got = await api('POST', 'queues/%2F/console-dies/get', { count: 4, ackmode: 'ack_requeue_false', encoding: 'auto' });
		if (got.map((m) => JSON.parse(m.payload).n).join() !== '1,0,2,3')
			throw new Error(`came back: ${got.map((m) => m.payload)}`);
		for (const name of ['console-dead', 'console-dies'])
			await api('DELETE', `queues/%2F/${name}`);
	},
};
