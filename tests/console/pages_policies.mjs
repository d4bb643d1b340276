// SPDX-License-Identifier: Apache-2.0
// Policies, operators' policies, parameters.
import { NASTY } from './nasty.mjs';

export const tests = {
	'a policy from make to delete': async ({ page, login, open, shot, api, until }) => {
		for (const name of ['console-p-1', 'console-p-2', 'CONSOLE-P-3'])
			await api('PUT', `queues/%2F/${name}`, {});
		await api('PUT', 'queues/%2F/console-p-q', { durable: true, arguments: { 'x-queue-type': 'quorum' } });
		await login();
		await open('policies');
		await page.getByRole('button', { name: 'Make a policy' }).click();
		const dialog = page.getByRole('dialog');
		await dialog.getByLabel('Name', { exact: true }).fill('console limits');
		await dialog.getByLabel('Pattern').fill('^console-p');
		await dialog.getByText(/^Matches 3 of \d+ queues: console-p-1, console-p-2, console-p-q/).waitFor();
		await dialog.getByText(/^Matches 0 of \d+ exchanges/).waitFor();
		await dialog.getByLabel('Applies to').selectOption('quorum_queues');
		await dialog.getByText(/^Matches 1 of \d+ queues: console-p-q/).waitFor();
		await dialog.getByLabel('Pattern').fill('^console-p-[');
		await dialog.getByText('This is no regular expression.').waitFor();
		await dialog.getByLabel('Applies to').selectOption('queues');
		await dialog.getByLabel('Pattern').fill('^console-p-1|^CONSOLE-P');
		await dialog.getByText(/^Matches 2 of/).waitFor();
		await dialog.getByLabel('Message TTL, ms').fill('60000');
		await dialog.getByLabel('When it is full').selectOption('reject-publish');
		await dialog.getByLabel('Priority').fill('5');
		await dialog.getByText('More keys, as JSON').first().click();
		await dialog.getByRole('textbox', { name: 'More keys' }).fill('{"dead-letter-exchange": ""}');
		await shot('policy-make');
		await dialog.getByRole('button', { name: 'Make a policy' }).click();
		await page.getByText('Policy console limits is in force.').waitFor();
		const path = 'policies/%2F/console%20limits', made = await api('GET', path);
		if (JSON.stringify(made.definition) !== JSON.stringify({ 'dead-letter-exchange': '', 'message-ttl': 60000, overflow: 'reject-publish' }) ||
			made.priority !== 5 || made['apply-to'] !== 'queues')
			throw new Error(JSON.stringify(made));
		await api('PUT', `policies/%2F/${encodeURIComponent(NASTY[0])}`, { pattern: '^' + NASTY[1].replace(/[?"]/g, '.'), definition: { 'dead-letter-exchange': NASTY[2] } });
		await page.reload();
		await page.getByText(NASTY[0]).waitFor();
		await shot('policies');
		await page.getByRole('row', { name: 'console limits' }).getByRole('button', { name: 'Edit' }).click();
		if (await dialog.getByLabel('Message TTL, ms').inputValue() !== '60000' || !await dialog.getByLabel('Name', { exact: true }).isDisabled())
			throw new Error('the form does not show the policy');
		await dialog.getByLabel('Message TTL, ms').fill('');
		await dialog.getByRole('button', { name: 'Save' }).click();
		await until(async () => (await api('GET', path)).definition['message-ttl'] === undefined);
		if ((await api('GET', path)).definition['dead-letter-exchange'] !== '')
			throw new Error('an empty value was lost');
		await page.getByRole('row', { name: 'console limits' }).getByRole('button', { name: 'Delete' }).click();
		await dialog.getByRole('button', { name: 'Delete' }).click();
		await page.getByText('Policy console limits is deleted.').waitFor();
		await api('DELETE', `policies/%2F/${encodeURIComponent(NASTY[0])}`);
		for (const name of ['console-p-1', 'console-p-2', 'CONSOLE-P-3', 'console-p-q'])
			await api('DELETE', `queues/%2F/${name}`);
	},
	'an operator policy, and a refused one': async ({ page, login, open, shot, api }) => {
		await login();
		await open('policies');
		await page.getByRole('tab', { name: 'Operator policies' }).click();
		await page.getByRole('button', { name: 'Make an operator policy' }).click();
		const dialog = page.getByRole('dialog');
		await dialog.getByLabel('Name', { exact: true }).fill('console-op');
		if (await dialog.getByLabel('Dead letter exchange').count())
			throw new Error('offered a key that operators cannot set');
		await dialog.getByRole('button', { name: 'Make an operator policy' }).click();
		await dialog.getByRole('alert').filter({ hasText: 'no policy provided' }).waitFor();
		await dialog.getByLabel('Most messages').fill('1000');
		await dialog.getByRole('button', { name: 'Make an operator policy' }).click();
		await page.getByRole('row', { name: 'console-op' }).waitFor();
		await shot('operator-policies');
		await page.getByLabel('Virtual host').selectOption('/');
		await page.getByRole('row', { name: 'console-op' }).getByRole('button', { name: 'Delete' }).click();
		await dialog.getByRole('button', { name: 'Delete' }).click();
		await page.getByText('There are no operator policies.').waitFor();
		if ((await api('GET', 'operator-policies')).length)
			throw new Error('it is still there');
	},
	'parameters': async ({ page, login, open, shot, api, until }) => {
		await api('PUT', 'vhost-limits/%2F/max-queues', { value: 5000 });
		await login();
		await open('parameters');
		await page.getByText('max-queues').waitFor();
		await page.getByRole('button', { name: 'Set a parameter' }).click();
		const dialog = page.getByRole('dialog');
		await dialog.getByLabel('Name').fill('console-colour');
		await dialog.getByLabel('Value').fill('blue');
		await dialog.getByRole('button', { name: 'Save' }).click();
		await dialog.getByText('Value is not JSON').waitFor();
		await dialog.getByLabel('Value').fill('{"colour": ["blue", null]}');
		await dialog.getByRole('button', { name: 'Save' }).click();
		const row = page.getByRole('row', { name: 'console-colour' });
		await row.waitFor();
		await shot('parameters');
		await row.getByRole('button', { name: 'Edit' }).click();
		await dialog.getByLabel('Value').fill('5');
		await dialog.getByRole('button', { name: 'Save' }).click();
		await until(async () => (await api('GET', 'global-parameters/console-colour')).value === 5);
		await row.getByRole('button', { name: 'Delete' }).click();
		await dialog.getByRole('button', { name: 'Delete' }).click();
		await page.getByText('is deleted').waitFor();
		await api('DELETE', 'vhost-limits/%2F/max-queues');
	},
};
