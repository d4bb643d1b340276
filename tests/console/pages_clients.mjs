// SPDX-License-Identifier: Apache-2.0
// Connections, channels and consumers: test_console.py keeps one of each.
export const tests = {
	'a connection, its channel and consumer': async ({ page, login, open, shot }) => {
		await login();
		await open('connections');
		const connection = page.getByRole('row', { name: 'console reader' }).getByRole('link');
		await connection.waitFor();
		const name = await connection.textContent();
		await shot('connections');
		await connection.click();
		await page.getByRole('button', { name: 'Close the connection' }).waitFor();
		await shot('connection');
		await open('channels');
		await page.getByRole('link', { name: `${name} (1)` }).click();
		await page.getByText('console tag').waitFor();
		await shot('channel');
		await open('consumers');
		await page.getByRole('link', { name: 'console read' }).click();
		await page.getByRole('tab', { name: 'Consumers' }).click();
		await page.getByText('console tag').waitFor();
		await shot('queue-consumers');
	},
};
