// SPDX-License-Identifier: Apache-2.0
export const tests = {
	'maintenance is told of': async ({ page, login, api, shot }) => {
		await api('PUT', 'hermes/maintenance', { reason: 'new disks' });
		try {
			await login();
			await page.getByText('Maintenance (new disks): publishers wait').waitFor();
			await shot('maintenance');
		} finally {
			await api('DELETE', 'hermes/maintenance');
		}
		await page.getByText('No alarms.').waitFor();
	},
	'the node': async ({ page, login, open, shot }) => {
		await login();
		await open('node');
		await page.getByText('No alarms.').waitFor();
		for (const name of ['Memory by kind', 'Journal and segments', 'Event loop', 'Listens on', 'Against the limits'])
			await page.getByRole('heading', { name }).waitFor();
		await page.getByRole('row', { name: /^amqp/ }).waitFor();
		await page.getByRole('row', { name: /^http/ }).waitFor();
		if (await page.getByText(/NaN|undefined/).count())
			throw new Error('figures that are none');
		await shot('node');
		await page.getByText('All counters').click();
		await page.getByRole('searchbox').fill('journal_sync');
		await page.getByText('store.journal_sync_max_us').waitFor();
		await page.getByText('counters.publish', { exact: true }).waitFor({ state: 'hidden' });
		await shot('node-counters');
	},
};
