// SPDX-License-Identifier: Apache-2.0
// A node that goes and comes back, logins that end, more than one tab.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/* They break connections, or open a second tab. */
export const fresh = ['who logs in at once sees no refusal', 'a lost connection is told, and mends itself', 'a login that ends leads back to the page', 'two tabs', 'a node that is started again'];

const LOST = 'The node does not answer. This page shows';
const banner = (page) => page.getByRole('alert').filter({ hasText: LOST });
const look = (page) => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))); // asks at once

async function loginAgain(page) {
	await page.getByText('Your login has ended.').waitFor();
	await page.getByLabel('User').fill('guest');
	await page.getByLabel('Password').fill('guest');
	await page.getByRole('button', { name: 'Log in' }).click();
}

/* Not run with the others: test_console.py does, and stops and starts the node as the files say. */
export const elsewhere = ['a node that is started again'];

export const tests = {
	'a lost connection is told, and mends itself': async ({ page, login, open, api, shot }) => {
		await api('PUT', 'queues/%2F/console-lost', {});
		await login();
		await open('queues');
		await page.getByRole('link', { name: 'console-lost' }).waitFor();
		await page.route('**/api/**', (route) => route.abort('connectionrefused'));
		await look(page);
		await banner(page).waitFor();
		await page.getByRole('link', { name: 'console-lost' }).waitFor();	// what was known stays
		await shot('lost');
		await page.unroute('**/api/**');
		await banner(page).waitFor({ state: 'hidden' });
		await api('DELETE', 'queues/%2F/console-lost');
		await page.getByRole('link', { name: 'console-lost' }).waitFor({ state: 'hidden' });
	},
	'who logs in at once sees no refusal': async ({ page, url, user, password }) => {
		await page.goto(url);
		await page.getByLabel('User').fill(user);
		await page.getByLabel('Password').fill(password);
		await page.getByRole('button', { name: 'Log in' }).click();
		await page.getByRole('status').filter({ hasText: /./ }).first().or(page.getByText('HTTP 401')).first().waitFor();
		if (await page.getByText('HTTP 401').count())
			throw new Error('what was asked for before the login is shown after it');
	},
	'a login that ends leads back to the page': async ({ page, context, login, open, api }) => {
		await api('PUT', 'queues/%2F/console-back', {});
		await login();
		await open('queues', '/', 'console-back');
		await page.getByRole('tab', { name: 'Bindings' }).click();
		const [cookie] = await context.cookies();
		await context.addCookies([{ ...cookie, value: 'spent' }]);
		await look(page);
		await loginAgain(page);
		await page.getByRole('tab', { name: 'Bindings', selected: true }).waitFor();
		await page.getByRole('heading', { name: 'console-back' }).waitFor();
		await api('DELETE', 'queues/%2F/console-back');
	},
	'two tabs': async ({ page, context, url, login, open, api }) => {
		await api('PUT', 'users/console-other', { password: 'secret', tags: 'monitoring' });
		await login();
		await open('queues');
		const second = await context.newPage();
		await second.goto(url);
		await second.getByRole('heading', { name: 'Overview' }).waitFor();
		await second.getByRole('button', { name: 'Log out' }).click();
		await look(page);
		await page.getByText('Your login has ended.').waitFor();
		await second.getByLabel('User').fill('console-other');
		await second.getByLabel('Password').fill('secret');
		await second.getByRole('button', { name: 'Log in' }).click();
		await second.getByRole('navigation').waitFor();
		await look(page);	// the first one is that user, too
		await page.getByRole('navigation').getByText('console-other').waitFor();
		await page.getByRole('heading', { name: 'Queues' }).waitFor();
		await api('DELETE', 'users/console-other');
	},
	'a node that is started again': async ({ page, url, order, login, open, until }) => {
		const file = (name) => join(order.folder, name);
		await login();
		await open('queues');
		await page.getByText(/in all/).waitFor();
		writeFileSync(file('shown'), '');
		await until(() => existsSync(file('stopped')));
		await look(page);
		await banner(page).waitFor();
		await page.route(url, async (route) => route.fulfill({ status: 200, contentType: 'text/html', body: '<script src="console/app-other.js"></script>' }));
		writeFileSync(file('seen'), '');
		await banner(page).waitFor({ state: 'hidden' });
		await loginAgain(page);
		await page.getByRole('heading', { name: 'Queues' }).waitFor();
		await page.getByText('another version').waitFor();
		await page.unroute(url);
		await page.getByRole('button', { name: 'Load it anew' }).click();
		await page.getByText('another version').waitFor({ state: 'hidden' });
		await page.getByRole('heading', { name: 'Queues' }).waitFor();
	},
};
