// SPDX-License-Identifier: Apache-2.0
// Without a mouse, and for those who hear the page.
const PAGES = ['overview', 'node', 'queues', 'dead-letters', 'exchanges', 'exchanges/%2F/amq.topic', 'exchanges/%2F/amq.headers?tab=route', 'exchanges/%2F/amq.topic?tab=bindings',
	'exchanges/%2F/amq.topic?tab=inbound', 'exchanges/%2F/amq.topic?tab=publish', 'exchanges/%2F/amq.topic?tab=live', 'connections', 'channels', 'consumers', 'vhosts', 'vhosts/%2F', 'users', 'users/guest', 'policies', 'limits',
	'parameters', 'definitions'];

/** What of the page has no name that could be said. */
const nameless = () => [...document.querySelectorAll('input, select, textarea, button, a[href], [role=tab], dialog, table, progress')]
	.filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 200));

/** Tab until the element is the one wanted; each on the way has to show that it has the focus. */
async function tabTo(page, wanted) {
	for (let i = 0; i < 100; i++) {
		await page.keyboard.press('Tab');
		const at = await page.evaluate(() => {
			const e = document.activeElement, style = getComputedStyle(e);
			return { text: (e.textContent || e.getAttribute('aria-label') || '').trim(), seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 };
		});
		if (at.text && !at.seen)
			throw new Error(`no focus is seen at ${at.text}`);
		if (wanted.test(at.text))
			return;
	}
	throw new Error(`not reached by keyboard: ${wanted}`);
}

export const tests = {
	'a virtual host by keyboard': async ({ page, login, open, api, until }) => {
		await login();
		await open('vhosts');
		await page.getByRole('link', { name: '/', exact: true }).waitFor();
		await tabTo(page, /^Make a virtual host/);
		await page.keyboard.press('Enter');
		await page.getByRole('dialog').waitFor();
		await page.keyboard.type('console-keys');
		await page.keyboard.press('Enter');
		await until(async () => (await api('GET', 'vhosts')).some((v) => v.name === 'console-keys'));
		await page.getByRole('link', { name: 'console-keys' }).waitFor();
		await tabTo(page, /^console-keys$/);
		await page.keyboard.press('Enter');
		await page.getByRole('button', { name: 'Delete the virtual host' }).waitFor();
		await tabTo(page, /^Delete the virtual host/);
		await page.keyboard.press('Enter');
		await page.getByRole('dialog').waitFor();
		await page.keyboard.press('Escape');
		await page.getByRole('dialog').waitFor({ state: 'hidden' });
		await page.keyboard.press('Enter');
		await page.getByRole('dialog').waitFor();
		await page.keyboard.type('console-keys');
		await page.keyboard.press('Enter');
		await page.getByText('is deleted').waitFor();
	},
	'everything has a name': async ({ page, login, url }) => {
		await login();
		for (const name of PAGES) {
			await page.goto(`${url}#/${name}`);
			await page.getByRole('heading', { level: 1 }).waitFor();
			await page.waitForLoadState('networkidle');
			await page.evaluate(() => document.querySelectorAll('details').forEach((d) => (d.open = true)));
			const found = await page.evaluate(nameless);
			if (found.length)
				throw new Error(`${name}: ${found.join('\n')}`);
		}
	},
};
