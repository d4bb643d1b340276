// SPDX-License-Identifier: Apache-2.0
// Login, navigation, what is on every page.
/* With a window of its own: what it does to the page would stay. */
export const fresh = ['a page gone to while the first one is drawn'];

export const tests = {
	'login and logout': async ({ page, typeLogin, shot, url }) => {
		await page.goto(url);
		await page.getByRole('button', { name: 'Log in' }).waitFor();
		await shot('login');
		await typeLogin();
		await page.getByRole('heading', { name: 'Overview' }).waitFor();
		const cookies = await page.context().cookies();
		if (cookies.length !== 1 || !cookies[0].httpOnly || cookies[0].sameSite !== 'Strict')
			throw new Error(`cookies: ${JSON.stringify(cookies)}`);
		await page.getByRole('button', { name: 'Log out' }).click();
		await page.getByRole('button', { name: 'Log in' }).waitFor();
	},
	'a page gone to while the first one is drawn': async ({ page, login }) => {
		await page.addInitScript(() => new MutationObserver((_, watch) => {
			if (!document.querySelector('nav'))
				return;
			watch.disconnect();
			location.hash = '#/policies';
		}).observe(document, { childList: true, subtree: true }));
		await login();
		await page.getByRole('heading', { name: 'Policies' }).waitFor();
	},
	'a wrong password is told': async ({ page, url, user }) => {
		await page.goto(url);
		await page.getByLabel('User').fill(user);
		await page.getByLabel('Password').fill('wrong');
		await page.getByRole('button', { name: 'Log in' }).click();
		await page.getByRole('alert').waitFor();
	},
	'overview': async ({ page, api, login, shot, until }) => {
		await api('PUT', 'queues/%2F/console-top', {});
		await api('POST', 'exchanges/%2F/amq.default/publish', { properties: {}, routing_key: 'console-top', payload: 'x', payload_encoding: 'string' });
		await login();
		await page.getByRole('table', { name: 'Longest queues' }).getByRole('link', { name: 'console-top' }).waitFor();
		const oldest = page.getByRole('table', { name: 'Longest waiting messages' }).getByRole('row', { name: 'console-top' });
		await until(async () => / (ms|s|min)\s/.test(await oldest.innerText()), 'how long it waits');
		await page.getByText('No alarms.').waitFor();
		await shot('overview');
		await api('DELETE', 'queues/%2F/console-top');
	},
	'chinese': async ({ page, login, shot }) => {
		await login();
		await page.getByRole('combobox', { name: 'Language' }).selectOption('zh');
		await page.getByRole('heading', { name: '概览' }).waitFor();
		await shot('overview-zh');
	},
};
