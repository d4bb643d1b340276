// SPDX-License-Identifier: Apache-2.0
// Charts on the pages of the node, a queue and a connection: lines with a legend, and nothing that was refused.
async function charts(page, until, titles) {
	for (const [title, lines] of titles) {
		const chart = page.getByRole('figure', { name: title });
		await chart.locator('canvas').waitFor();
		await until(async () => {
			const legend = await chart.locator('.u-legend').innerText();
			return lines.every((line) => legend.includes(line));
		}, `the legend of ${title}`);
	}
	if (await page.locator('.refused').count())
		throw new Error(`refused: ${await page.locator('.refused').first().innerText()}`);
}

const RATES = ['Messages a second', ['Published', 'Delivered', 'Acknowledged']];
const BACKLOG = ['Messages that wait', ['Ready', 'Unacknowledged']];

export const tests = {
	'charts of the node, a queue and a connection': async ({ page, login, open, api, until, shot }) => {
		await api('PUT', 'queues/%2F/console-charts', {});
		const publish = () => api('POST', 'exchanges/%2F/amq.default/publish', { properties: {}, routing_key: 'console-charts', payload: 'x', payload_encoding: 'string' });
		await api('GET', 'hermes/history/queues/%2F/console-charts?range=minute');
		for (let i = 0; i < 40; i++)
			await publish();
		await login();
		await charts(page, until, [RATES, BACKLOG]);
		await page.getByRole('tab', { name: 'Minute', exact: true }).click();
		await until(async () => (await api('GET', 'hermes/history/queues/%2F/console-charts?range=minute')).samples.ready.at(-1) === 40);
		await open('queues', '/', 'console-charts');
		await charts(page, until, [BACKLOG, RATES]);
		await shot('queue-charts');
		await open('connections');
		await page.locator('tbody a').first().click();
		await charts(page, until, [['Bytes a second', ['Received', 'Sent']], RATES]);
		await shot('connection-charts');
		await open('overview');
		await charts(page, until, [RATES, BACKLOG]);
		await page.getByRole('tab', { name: 'Day' }).click();
		await charts(page, until, [RATES, BACKLOG]);
		await page.getByRole('tab', { name: 'Minute', exact: true }).click();
		await shot('overview-charts');
		await api('DELETE', 'queues/%2F/console-charts');
	},
};
