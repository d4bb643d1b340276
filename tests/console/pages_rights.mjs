// SPDX-License-Identifier: Apache-2.0
// What permissions do not allow is not offered; why a login is refused, and what to do.
const offered = async (page, wanted, not) => {
	for (const [role, name] of wanted)
		await page.getByRole(role, { name, exact: true }).first().waitFor();
	for (const [role, name] of not)
		if (await page.getByRole(role, { name, exact: true }).count())
			throw new Error(`offered: ${name}`);
};

const make = async (api, name, rights) => {
	await api('PUT', `users/${name}`, { password: 'secret', tags: 'management' });
	await api('PUT', `permissions/%2F/${name}`, rights);
};

export const tests = {
	'what permissions do not allow is not offered': async ({ page, login, open, api, shot }) => {
		await make(api, 'console-reads', { configure: '^mine', write: '', read: '^console-mine|^amq.topic' });
		for (const q of ['console-mine', 'console-theirs'])
			await api('PUT', `queues/%2F/${q}`, {});
		await login('console-reads', 'secret');
		await open('queues', '/', 'console-mine');
		await offered(page, [['tab', 'Browse'], ['tab', 'Get messages'], ['tab', 'Live'], ['button', 'Purge'], ['button', 'Move messages…']],
			[['tab', 'Publish'], ['button', 'Delete the queue'], ['button', 'Pause']]);
		await page.getByRole('tab', { name: 'Bindings' }).click();
		await page.getByText('1 in all').waitFor();
		await offered(page, [], [['button', 'Bind'], ['button', 'Unbind']]);
		await shot('queue-read-only');
		await open('queues', '/', 'console-theirs');
		await page.getByRole('heading', { name: 'Arguments and policies' }).waitFor();
		await page.waitForLoadState('networkidle');
		await offered(page, [['tab', 'State']], [['tab', 'Browse'], ['tab', 'Get messages'], ['tab', 'Live'], ['tab', 'Publish'], ['button', 'Purge']]);
		await open('exchanges', '/', 'amq.topic');
		await offered(page, [['tab', 'Live'], ['tab', 'Try a routing key']], [['tab', 'Publish'], ['button', 'Delete the exchange']]);
		await open('queues');
		await page.getByRole('button', { name: 'Declare a queue' }).waitFor();
		await api('PUT', 'permissions/%2F/console-reads', { configure: '', write: '.*', read: '' });
		await page.reload();
		await page.getByRole('link', { name: 'console-mine' }).waitFor();
		await page.waitForLoadState('networkidle');
		await offered(page, [], [['button', 'Declare a queue…']]);
		await open('queues', '/', 'console-mine');
		await offered(page, [['tab', 'Publish']], [['tab', 'Browse'], ['button', 'Purge']]);
		for (const q of ['console-mine', 'console-theirs'])
			await api('DELETE', `queues/%2F/${q}`);
		await api('DELETE', 'users/console-reads');
	},
	'why a login is refused': async ({ page, url, api, shot }) => {
		const said = async (user, password, text) => {
			await page.getByLabel('User').fill(user);
			await page.getByLabel('Password').fill(password);
			await page.getByRole('button', { name: 'Log in' }).click();
			await page.getByRole('alert').filter({ hasText: text }).waitFor();
		};
		await api('PUT', 'users/console-client', { password: 'secret', tags: '' });
		await page.goto(url);
		await page.getByText('hermes user add').waitFor(); // where the first account comes from
		await said('console-client', 'wrong', 'Wrong user or password');
		await shot('login-wrong');
		await said('console-client', 'secret', 'may not open the console');
		const answer = (status, reason) => page.route('**/api/login', (route) => route.fulfill({ status, json: { error: 'x', reason } }), { times: 1 });
		await answer(401, 'User can only log in via localhost: give it another password');
		await said('guest', 'guest', 'from the machine of the node only');
		await answer(429, 'too many wrong logins');
		await said('guest', 'guest', 'wait a moment');
		await page.route('**/api/login', (route) => route.abort('connectionrefused'), { times: 1 });
		await said('guest', 'guest', /answer\.$/);
		await api('DELETE', 'users/console-client');
	},
};
