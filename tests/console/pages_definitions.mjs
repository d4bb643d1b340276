// SPDX-License-Identifier: Apache-2.0
// Definitions: to a file, and from one, what it would do being shown first.
import { readFileSync } from 'node:fs';
import { compare } from '../../console/src/lib/difference.js';

const file = (doc, name = 'definitions.json') => ({ name, mimeType: 'application/json', buffer: Buffer.from(typeof doc === 'string' ? doc : JSON.stringify(doc)) });

const doc = () => ({
	vhosts: [{ name: '/' }, { name: 'console-new' }],
	permissions: [{ user: 'guest', vhost: '/', configure: '.*', write: '.*', read: '.*' }, { user: 'guest', vhost: 'console-new', configure: '.*', write: '.*', read: '^<b>' }],
	policies: [{ vhost: '/', name: 'console-limit', pattern: '^x', definition: { 'max-length': 20 }, priority: 0, 'apply-to': 'queues' }],
	queues: [
		{ name: 'console-there', vhost: '/', durable: true, auto_delete: false, arguments: { 'x-queue-type': 'classic' } },
		{ name: 'console-other', vhost: '/', durable: false, auto_delete: false, arguments: {} },
		{ name: 'console-made', vhost: '/', durable: true, auto_delete: false, arguments: { 'x-max-length': 5 } },
		{ name: 'console-bad', vhost: '/', durable: true, auto_delete: false, arguments: { 'x-max-length': 'many' } },
	],
	exchanges: [],
	bindings: [
		{ source: 'amq.topic', vhost: '/', destination: 'console-there', destination_type: 'queue', routing_key: 'a.#', arguments: {} },
		{ source: 'amq.topic', vhost: '/', destination: 'console-there', destination_type: 'queue', routing_key: 'b.#', arguments: {} },
	],
});

/** The cells of a kind in the preview: new, changed, kept, same. */
const cells = async (page, kind) => (await page.getByRole('table', { name: 'What the import would do' }).getByRole('row', { name: kind }).getByRole('cell').allTextContents())
	.slice(1, 5).join(' ');

async function expectCells(page, until, kind, wanted) {
	let seen;
	await until(async () => (seen = await cells(page, kind)) === wanted, `${kind}: ${wanted}`).catch(() => {
		throw new Error(`${kind}: ${seen}, not ${wanted}`);
	});
}

export const tests = {
	'export': async ({ page, login, open, api }) => {
		await api('PUT', 'queues/%2F/console-exported', { durable: true });
		await login();
		await open('definitions');
		for (const [scope, has] of [['', 'users'], ['/', 'queues']]) {
			await page.getByLabel('Of what').first().selectOption(scope);
			const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()]);
			const got = JSON.parse(readFileSync(await download.path()));
			if (!Array.isArray(got[has]) || (scope !== '' && got.users) || !got.queues.some((q) => q.name === 'console-exported'))
				throw new Error(`${scope}: ${Object.keys(got)}`);
			if (!/^hermes-[\w.-]+\.json$/.test(download.suggestedFilename()))
				throw new Error(download.suggestedFilename());
		}
		await api('DELETE', 'queues/%2F/console-exported');
	},
	'import with a preview and a report': async ({ page, login, open, shot, api, until }) => {
		await api('PUT', 'queues/%2F/console-there', { durable: true });
		await api('PUT', 'queues/%2F/console-other', { durable: true });
		await api('POST', 'bindings/%2F/e/amq.topic/q/console-there', { routing_key: 'a.#' });
		await api('PUT', 'policies/%2F/console-limit', { pattern: '^x', definition: { 'max-length': 10 }, 'apply-to': 'queues' });
		await login();
		await open('definitions');
		await page.getByLabel('File of definitions').setInputFiles(file(doc()));
		await expectCells(page, until, 'Virtual hosts', '1 0 – 1');
		await expectCells(page, until, /^Permissions/, '1 0 – 1');
		await expectCells(page, until, /^Policies/, '0 1 – 0');
		await expectCells(page, until, 'Queues', '2 – 1 1');
		await expectCells(page, until, 'Bindings', '1 0 – 1');
		await page.getByText('definition', { exact: true }).waitFor();
		await shot('definitions-preview');
		if ((await api('GET', 'vhosts')).length !== 1)
			throw new Error('something was sent before it was asked for');
		await page.getByRole('button', { name: 'Import 11 objects: 5 new, 1 changed' }).click();
		await page.getByText('1 refused').waitFor();
		await page.getByRole('cell', { name: "queue 'console-bad' in vhost '/'", exact: true }).waitFor();
		await expectCells(page, until, 'Queues', '1 – 1 2');
		await expectCells(page, until, /^Policies/, '0 0 – 1');
		await shot('definitions-report');
		if ((await api('GET', 'policies/%2F/console-limit')).definition['max-length'] !== 20 || (await api('GET', 'queues/%2F/console-made')).arguments['x-max-length'] !== 5)
			throw new Error('it was not imported');
		await api('DELETE', 'vhosts/console-new');
		await api('DELETE', 'policies/%2F/console-limit');
		for (const name of ['console-there', 'console-other', 'console-made'])
			await api('DELETE', `queues/%2F/${name}`);
	},
	'import into a virtual host, and files that are none': async ({ page, login, open, api, until }) => {
		await api('PUT', 'vhosts/console-into', {});
		await login();
		await open('definitions');
		const input = page.getByLabel('File of definitions');
		await input.setInputFiles(file('{"queues": [', 'broken.json'));
		await page.getByRole('alert').filter({ hasText: 'broken.json is not JSON' }).waitFor();
		await input.setInputFiles(file('[]', 'list.json'));
		await page.getByRole('alert').filter({ hasText: 'list.json has to be an object' }).waitFor();
		await input.setInputFiles(file({ users: [{ name: 'u', password_hash: '', tags: '' }], queues: [{ name: 'console-q', durable: true, auto_delete: false, arguments: {} }] }));
		await page.getByText('1 objects of this file name no virtual host').waitFor();
		if (await page.getByRole('button', { name: 'Import 2 objects' }).isEnabled())
			throw new Error('offered what would be refused');
		await page.getByLabel('Of what').last().selectOption('console-into');
		await page.getByText('these are not imported: Users').waitFor();
		await page.getByRole('button', { name: 'Import 1 objects' }).click();
		await page.getByRole('status').filter({ hasText: '1 objects imported.' }).first().waitFor();
		await expectCells(page, until, 'Queues', '0 – 0 1');
		await api('GET', 'queues/console-into/console-q');
		await api('DELETE', 'vhosts/console-into');
	},
	'an import that ends the login keeps its report': async ({ page, login, open, api }) => {
		await api('PUT', 'users/console-root', { password: 'old', tags: 'administrator' });
		await login('console-root', 'old');
		await open('definitions');
		await page.getByLabel('File of definitions').setInputFiles(file({ users: [{ name: 'console-root', password: 'new', tags: 'administrator' }],
			policies: [{ vhost: '/', name: 'console-wrong', pattern: '(', definition: { 'max-length': 1 } }] }));
		await page.getByText('The file has another password for you').waitFor();
		await page.getByRole('button', { name: 'Import 2 objects' }).click();
		await page.getByText('Your login has ended').waitFor();
		await page.getByLabel('User').fill('console-root');
		await page.getByLabel('Password').fill('new');
		await page.getByRole('button', { name: 'Log in' }).click();
		await page.getByRole('cell', { name: "policy 'console-wrong' in vhost '/'", exact: true }).waitFor();
		await api('DELETE', 'users/console-root');
	},
	'what is a difference': async () => {
		const same = [
			['queues', { arguments: [], durable: 'true' }, { arguments: {}, durable: true, auto_delete: false }],
			['queues', { arguments: { 'x-queue-type': 'classic' } }, { arguments: {} }],
			['queues', { type: 'quorum', arguments: {} }, { arguments: { 'x-queue-type': 'quorum' } }],
			['users', { tags: 'a, b', password_hash: 'h', limits: [] }, { tags: ['a', 'b'], password_hash: 'h', limits: {}, hashing_algorithm: 'x' }],
			['vhosts', {}, { description: 'stays', tags: ['t'], metadata: { description: 'stays', tags: ['t'] } }],
			['vhosts', { metadata: { description: 'd', tags: [] } }, { description: 'd', tags: [] }],
			['policies', { pattern: 'x', definition: { a: 1, b: 2 } }, { pattern: 'x', definition: { b: 2, a: 1 }, priority: 0, 'apply-to': 'all' }],
		];
		const changed = [
			['queues', { type: 'quorum' }, {}],
			['users', { tags: 'a', password: 'p' }, { tags: ['a'], password_hash: 'h' }],
			['users', { tags: 'a', password_hash: 'h' }, { tags: ['a', 'b'], password_hash: 'h' }],
			['vhosts', { default_queue_type: 'quorum' }, {}],
			['policies', { pattern: 'x', definition: {}, priority: 1 }, { pattern: 'x', definition: {} }],
		];
		const added = [
			['bindings', { source: 'x', destination: 'q', destination_type: 'queue', routing_key: 'k', arguments: { a: 1 } },
				{ source: 'x', destination: 'q', destination_type: 'queue', routing_key: 'k', arguments: { a: 2 } }],
			['permissions', { user: 'a', vhost: 'b' }, { user: 'b', vhost: 'a' }],
			['queues', { name: '["a"]' }, { name: 'a' }],
		];
		for (const [wanted, cases] of [['same', same], ['changed', changed], ['added', added]]) {
			for (const [key, is, was] of cases) {
				const name = { name: 'n', vhost: '/' };
				const found = compare({ [key]: [{ ...name, ...is }] }, { [key]: [{ ...name, ...was }] }).kinds.find((k) => k.kind.key === key);
				if ((found[wanted].length ?? found[wanted]) !== 1)
					throw new Error(`not ${wanted}: ${key} ${JSON.stringify(is)} ${JSON.stringify(found)}`);
			}
		}
	},
};
