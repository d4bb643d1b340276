// SPDX-License-Identifier: Apache-2.0
// The first two minutes with a node that has nothing: by what the pages say and link to, without an address typed.
export const tests = {
	'from the first login to a message in a bound queue': async ({ page, api, login, shot, until }) => {
		const queues = (await api('GET', 'queues')).length;
		await login();
		const started = Date.now();
		if (!queues) {
			await page.getByRole('link', { name: 'Declare a queue' }).waitFor();
			await shot('first-1-overview');
			await page.getByRole('link', { name: 'Declare a queue' }).click();
		} else {
			await page.getByRole('navigation').getByRole('link', { name: 'Queues' }).click();
			await page.getByRole('button', { name: 'Declare a queue' }).click();
		}
		await page.locator('dialog input:focus').waitFor();	// so that one can type
		await page.keyboard.type('console first');
		await shot('first-2-declare');
		await page.keyboard.press('Enter');
		await page.getByRole('heading', { name: 'console first' }).waitFor();
		await page.getByText('No data').or(page.getByText('Messages that wait')).waitFor();
		await shot('first-3-queue');
		await page.getByRole('link', { name: 'Bind it to another exchange' }).click();
		await page.getByLabel('Exchange').click();
		await page.locator('datalist option[value="amq.topic"]').waitFor({ state: 'attached' });
		await page.getByLabel('Exchange').fill('amq.topic');
		await page.getByLabel('Routing key').fill('news.#');
		await page.keyboard.press('Enter');
		await page.getByRole('link', { name: 'amq.topic' }).waitFor();
		await shot('first-4-bound');
		await page.getByRole('row', { name: 'amq.topic' }).getByRole('link', { name: 'Publish' }).click();
		await page.getByLabel('Routing key').fill('news.today');
		await page.getByLabel('Body', { exact: true }).fill('the first message');
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.getByText('It went to:').waitFor();
		await shot('first-5-published');
		await page.getByRole('link', { name: 'console first' }).click();
		await page.locator('pre').filter({ hasText: 'the first message' }).waitFor();
		await shot('first-6-got');
		if (Date.now() - started > 120000 * (Number(process.env.CONSOLE_SLOW) || 1))
			throw new Error(`it took ${Date.now() - started} ms`);
		await api('DELETE', 'queues/%2F/console%20first');
		await until(async () => (await api('GET', 'exchanges/%2F/amq.topic/bindings/source')).length === 0);
	},
};
