// SPDX-License-Identifier: Apache-2.0
// Virtual hosts, users, permissions, limits, and who is offered what.
const expectNone = async (locator, what) => {
	if (await locator.count())
		throw new Error(`offered: ${what}`);
};

export const tests = {
	'a virtual host from make to delete': async ({ page, login, open, shot, api, until }) => {
		await login();
		await open('vhosts');
		await page.getByRole('link', { name: '/', exact: true }).waitFor();
		await page.getByRole('button', { name: 'Make a virtual host' }).click();
		const dialog = page.getByRole('dialog');
		await dialog.getByLabel('Name').fill('console / <b>shop</b>');
		await dialog.getByLabel('Description').fill('of the shop');
		await dialog.getByLabel('Tags').fill('tests, shop');
		await dialog.getByLabel('Default queue type').selectOption('quorum');
		await shot('vhost-make');
		await dialog.getByRole('button', { name: 'Make a virtual host' }).click();
		await page.getByRole('link', { name: 'console / <b>shop</b>' }).waitFor();
		const path = 'vhosts/' + encodeURIComponent('console / <b>shop</b>');
		const made = await api('GET', path);
		if (made.description !== 'of the shop' || made.default_queue_type !== 'quorum' || made.tags.join() !== 'tests,shop')
			throw new Error(JSON.stringify(made));
		await shot('vhosts');
		await page.getByRole('link', { name: 'console / <b>shop</b>' }).click();
		await page.getByRole('button', { name: 'Edit…' }).click();
		await dialog.getByLabel('Description').fill('closed');
		await dialog.getByLabel('Default queue type').selectOption('');
		await dialog.getByRole('button', { name: 'Save' }).click();
		await until(async () => {
			const now = await api('GET', path);
			return now.description === 'closed' && now.default_queue_type === 'undefined' && now.tags.length === 2;
		});
		await page.getByRole('button', { name: 'Delete the virtual host' }).click();
		if (await dialog.getByRole('button', { name: 'Delete the virtual host' }).isEnabled())
			throw new Error('deleted without a question');
		await dialog.getByRole('textbox').fill('console / <b>shop</b>');
		await dialog.getByRole('button', { name: 'Delete the virtual host' }).click();
		await page.getByText('is deleted').waitFor();
		await expectNone(page.getByRole('link', { name: 'console / <b>shop</b>' }), 'what is deleted');
	},
	'permissions and limits of a virtual host': async ({ page, login, open, shot, api, until }) => {
		await api('PUT', 'vhosts/console-rights', {});
		await api('PUT', 'users/console-alice', { password: 'x', tags: '' });
		await login();
		await open('vhosts', 'console-rights');
		const permissions = page.locator('section', { has: page.getByRole('heading', { name: 'Permissions', exact: true }) });
		await permissions.getByText('Set permissions').click();
		await permissions.getByLabel('User').fill('console-alice');
		await permissions.getByLabel('Configure').fill('');
		await permissions.getByLabel('Write').fill('^orders');
		await permissions.getByRole('button', { name: 'Set', exact: true }).click();
		await permissions.getByRole('link', { name: 'console-alice' }).waitFor();
		const set = await api('GET', 'permissions/console-rights/console-alice');
		if (set.configure !== '' || set.write !== '^orders' || set.read !== '.*')
			throw new Error(JSON.stringify(set));
		const topics = page.locator('section', { has: page.getByRole('heading', { name: 'Topic permissions' }) });
		await topics.getByText('Set a topic permission').click();
		await topics.getByLabel('User').fill('console-alice');
		await topics.getByLabel('Write').fill('^eu\\.');
		await topics.getByRole('button', { name: 'Set', exact: true }).click();
		await topics.getByText('^eu\\.').waitFor();
		await page.getByLabel('Most queues').fill('7');
		await page.getByRole('button', { name: 'Set limits' }).click();
		await until(async () => (await api('GET', 'vhost-limits/console-rights'))[0]?.value['max-queues'] === 7);
		await shot('vhost');
		await page.getByLabel('Most queues').fill('');
		await page.getByRole('button', { name: 'Set limits' }).click();
		await until(async () => (await api('GET', 'vhost-limits/console-rights')).length === 0);
		await permissions.getByRole('button', { name: 'Edit' }).last().click();
		await permissions.getByLabel('Write').fill('(');
		await permissions.getByRole('button', { name: 'Set', exact: true }).click();
		await page.getByRole('alert').filter({ hasText: 'invalid_regexp' }).waitFor();
		await permissions.getByRole('row', { name: 'console-alice' }).getByRole('button', { name: 'Clear' }).click();
		await page.getByRole('dialog').getByRole('button', { name: 'Clear' }).click();
		await topics.getByRole('button', { name: 'Clear' }).click();
		await page.getByRole('dialog').getByRole('button', { name: 'Clear' }).click();
		await until(async () => (await api('GET', 'users/console-alice/permissions')).length === 0 &&
			(await api('GET', 'users/console-alice/topic-permissions')).length === 0);
		await api('DELETE', 'users/console-alice');
		await api('DELETE', 'vhosts/console-rights');
	},
	'a user from make to delete': async ({ page, login, open, shot, api, until }) => {
		await login();
		await open('users');
		await page.getByRole('button', { name: 'Make a user' }).click();
		const dialog = page.getByRole('dialog');
		await dialog.getByLabel('Name').fill('console "bob" <i>');
		await dialog.getByLabel('New password').fill('one');
		await dialog.getByLabel('The same again').fill('two');
		await dialog.getByLabel('monitoring').check();
		await dialog.getByLabel('Other tags').fill('impatient');
		await dialog.getByLabel('Virtual hosts').selectOption('/');
		await dialog.getByRole('button', { name: 'Make a user' }).click();
		await dialog.getByText('The two passwords differ.').waitFor();
		await shot('user-make');
		await dialog.getByLabel('The same again').fill('one');
		await dialog.getByRole('button', { name: 'Make a user' }).click();
		await page.getByRole('link', { name: 'console "bob" <i>' }).waitFor();
		await shot('users');
		const path = 'users/' + encodeURIComponent('console "bob" <i>'), made = await api('GET', path);
		if (made.tags.join() !== 'monitoring,impatient' || (await api('GET', path + '/permissions'))[0].read !== '.*')
			throw new Error(JSON.stringify(made));
		await page.getByRole('link', { name: 'console "bob" <i>' }).click();
		await page.getByLabel('policymaker').check();
		await page.getByRole('button', { name: 'Save' }).click();
		await until(async () => (await api('GET', path)).tags.join() === 'monitoring,policymaker,impatient');
		if ((await api('GET', path)).password_hash !== made.password_hash)
			throw new Error('new tags took the password away');
		await page.getByLabel('Most channels').fill('10');
		await page.getByRole('button', { name: 'Set limits' }).click();
		await until(async () => (await api('GET', path)).limits['max-channels'] === 10);
		await shot('user');
		await page.getByLabel('New password').fill('three');
		await page.getByLabel('The same again').fill('three');
		await page.getByRole('button', { name: 'Change the password' }).click();
		await until(async () => (await api('GET', path)).password_hash !== made.password_hash);
		await page.getByRole('button', { name: 'Remove the password' }).click();
		await dialog.getByRole('button', { name: 'Remove the password' }).click();
		await page.getByText('no password: it cannot log in').waitFor();
		const now = await api('GET', path);
		if (now.password_hash !== '' || now.tags.length !== 3 || now.limits['max-channels'] !== 10)
			throw new Error(JSON.stringify(now));
		await page.getByRole('button', { name: 'Delete the user' }).click();
		await dialog.getByRole('textbox').fill('console "bob" <i>');
		await dialog.getByRole('button', { name: 'Delete the user' }).click();
		await page.getByText('is deleted').waitFor();
	},
	'the reminder of the default password goes with it': async ({ page, login, shot, api, until }) => {
		await login('admin', 'admin');
		await page.getByText('still has its default password').waitFor();
		await page.getByRole('link', { name: 'Set another one' }).click();
		await page.getByLabel('monitoring').check();
		await page.getByRole('button', { name: 'Save' }).click();
		await until(async () => (await api('GET', 'users/admin')).tags.length === 2);
		await page.reload();
		await page.getByText('still has its default password').waitFor();
		await page.getByLabel('New password').fill('less known');
		await page.getByLabel('The same again').fill('less known');
		await page.getByRole('button', { name: 'Change the password' }).click();
		await page.getByText('The password of admin is changed.').waitFor();
		await expectNone(page.getByText('still has its default password'), 'the reminder');
		await shot('user-own');
		await page.reload();
		await page.getByRole('button', { name: 'Change the password' }).waitFor();
		await expectNone(page.getByRole('button', { name: 'Delete the user' }), 'to delete oneself');
		await api('PUT', 'users/admin', { password: 'admin', tags: 'administrator' });
	},
	'what tags do not allow is not offered': async ({ page, login, open, api, shot }) => {
		await api('PUT', 'users/console-carol', { password: 'carol', tags: 'management' });
		await api('PUT', 'permissions/%2F/console-carol', { configure: '.*', write: '.*', read: '.*' });
		await login('console-carol', 'carol');
		const pages = page.getByRole('navigation').first();
		for (const name of ['Users', 'Definitions', 'Parameters', 'Node'])
			await expectNone(pages.getByRole('link', { name, exact: true }), name);
		await open('vhosts');
		await page.getByRole('link', { name: '/', exact: true }).waitFor();
		await expectNone(page.getByRole('button', { name: 'Make a virtual host' }), 'to make a vhost');
		await open('vhosts', '/');
		await page.getByText('No limits are set.').waitFor();
		await shot('vhost-management');
		await expectNone(page.getByRole('button', { name: /Edit|Delete|Set/ }), 'to change a vhost');
		await open('policies');
		await page.getByText('There are no policies.').waitFor();
		await expectNone(page.getByRole('button', { name: 'Make a policy' }), 'to make a policy');
		await open('limits');
		await page.getByText('No limits are set.').first().waitFor();
		await expectNone(page.getByRole('button', { name: 'Set limits' }), 'to set limits');
		await open('users');
		await page.getByRole('heading', { name: 'Overview' }).waitFor();
		await api('PUT', 'users/console-carol', { password: 'carol', tags: 'policymaker' });
		await page.context().clearCookies();
		await page.reload();
		await login('console-carol', 'carol');
		await open('policies');
		await page.getByRole('button', { name: 'Make a policy' }).waitFor();
		await page.getByRole('tab', { name: 'Operator policies' }).click();
		await page.getByText('There are no operator policies.').waitFor();
		await expectNone(page.getByRole('button', { name: 'Make an operator policy' }), 'to make an operator policy');
		await api('DELETE', 'users/console-carol');
	},
	'limits in one place': async ({ page, login, open, shot, api, until }) => {
		await login();
		await open('limits');
		const card = page.locator('section', { has: page.getByRole('heading', { name: 'Limits of users' }) });
		await card.getByRole('button', { name: 'Set limits' }).click();
		const dialog = page.getByRole('dialog');
		await dialog.getByLabel('User').fill('guest');
		await dialog.getByLabel('Most connections').fill('1000');
		await dialog.getByRole('button', { name: 'Set limits' }).click();
		await card.getByRole('cell', { name: '1,000' }).waitFor();
		await api('PUT', 'vhost-limits/%2F/max-queues', { value: 5000 });
		await page.reload();
		await page.getByRole('cell', { name: '5,000' }).waitFor();
		await shot('limits');
		await card.getByRole('button', { name: 'Edit' }).click();
		await dialog.getByLabel('Most connections').fill('');
		await dialog.getByRole('button', { name: 'Set limits' }).click();
		await until(async () => (await api('GET', 'user-limits')).length === 0);
		await api('DELETE', 'vhost-limits/%2F/max-queues');
	},
};
