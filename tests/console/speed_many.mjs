// SPDX-License-Identifier: Apache-2.0
// How long somebody waits for lists of a node that holds very much and has very much to do; for tests/bench/console.
const TIMES = 9, PATIENCE = 20000;

/** Waits in the page, frame by frame, for what check() tells of its document; throws when it takes for ever. */
const helpers = (patience) => {
	window.frame = () => new Promise(requestAnimationFrame);
	window.first = () => document.querySelector('main .listing tbody td')?.textContent;
	window.seen = async (check) => {
		const end = performance.now() + patience;
		while (!check()) {
			if (performance.now() > end)
				throw new Error(`${location.hash} does not show what it should, but "${first()}": ${check}`);
			await frame();
		}
	};
	/** A page without a list. */
	window.away = async () => {
		location.hash = '#/queues/%2F/no-such-queue';
		await seen(() => !document.querySelector('main table'));
	};
	/** Milliseconds from the change of the address until check() is true and drawn. */
	window.timed = async (hash, check) => {
		const start = performance.now();
		location.hash = hash;
		await seen(check);
		await frame();
		return performance.now() - start;
	};
};

/** From elsewhere to a list: until its first cell has `text`, if one is told. */
const listed = (page, hash, text) => page.evaluate(async ([to, wanted]) => {
	await away();
	return timed(to, () => first() !== undefined && first().includes(wanted));
}, [hash, text]);

/** From one page of a list to another. */
const moved = (page, from, to) => page.evaluate(async ([here, there]) => {
	await away();
	await timed(here, first);
	const before = first();
	return timed(there, () => first() !== before);
}, [from, to]);

/** The top list of the overview. */
const overview = (page) => page.evaluate(async () => {
	await away();
	return timed('#/', () => document.querySelector('main table tbody td a'));
});

/** An answer of the API, in the browser. */
const asked = (page, path) => page.evaluate(async (where) => {
	const start = performance.now();
	const answer = await fetch('api/' + where);
	await answer.json();
	if (!answer.ok)
		throw new Error(`${where}: ${answer.status}`);
	return performance.now() - start;
}, path);

async function times(measure) {
	const all = [];
	for (let i = 0; i < TIMES; i++)
		all.push(await measure());
	return all;
}

const name = (n) => 'q' + String(n).padStart(5, '0');

export const tests = {
	'lists': async ({ page, login, queues }) => {
		await login();
		await page.evaluate(helpers, PATIENCE);
		const result = {}, middle = Math.floor(queues / 100);
		const shown = [
			['queues', '#/queues', ''],
			['queues, a page in the middle', `#/queues?page=${middle}`, ''],
			['queues by messages', '#/queues?sort=messages&desc=1', ''],
			['queues by state', '#/queues?sort=state&desc=0', ''],
			['queues by rate', '#/queues?sort=message_stats.publish_details.rate&desc=1', ''],
			['queues, searched', '#/queues?search=q0432', name(4320)],
			['queues, nothing found', '#/queues?search=no-such-queue', 'no-such-queue'],
			['connections', '#/connections', ''],
			['connections, a page in the middle', '#/connections?page=20', ''],
			['connections by traffic', '#/connections?sort=recv_oct_details.rate&desc=1', ''],
			['connections, searched', '#/connections?search=127.0.0.1', ''],
			['channels', '#/channels', ''],
			['channels by rate', '#/channels?sort=message_stats.ack_details.rate&desc=1', ''],
			['channels, nothing found', '#/channels?search=no-such-channel', 'no-such-channel'],
			['exchanges', '#/exchanges', ''],
			['exchanges by rate', '#/exchanges?sort=message_stats.publish_in_details.rate&desc=1', ''],
			['bindings of the default exchange', '#/exchanges/%2F/amq.default?tab=bindings', ''],
			['consumers', '#/consumers', ''],
			['consumers by tag', '#/consumers?sort=consumer_tag&desc=1', ''],
			['consumers, searched', '#/consumers?search=busy', ''],
			['dead letters', '#/dead-letters', ''],
			['vhosts', '#/vhosts', ''],
		];
		for (const [what, hash, text] of shown)
			result[what] = await times(() => listed(page, hash, text));
		result['queues, the next page'] = await times(() => moved(page, '#/queues', '#/queues?page=2'));
		result['queues by regex (API)'] = await times(() => asked(page, 'queues?page=1&page_size=50&use_regex=true&name=' +
			encodeURIComponent('^q.*[37]9$')));
		result['overview with the top queues'] = await times(() => overview(page));
		return result;
	},
	/** All there is and a hundred queues more: the preview, then the import. Milliseconds. */
	'definitions': async ({ page, login, open, api }) => {
		await login();
		const all = await api('GET', 'definitions');
		for (let n = 0; n < 100; n++)
			all.queues.push({ name: 'more ' + n, vhost: '/', durable: true, auto_delete: false, arguments: {} });
		const text = JSON.stringify(all);
		await open('definitions');
		const from = Date.now();
		await page.getByLabel('File of definitions').setInputFiles({ name: 'all.json', mimeType: 'application/json', buffer: Buffer.from(text) });
		await page.getByRole('region', { name: 'What the import would do' }).waitFor();
		const seen = Date.now();
		await page.getByRole('button', { name: /^Import/ }).click();
		await page.getByText('objects imported.').first().waitFor();
		return { bytes: text.length, preview: seen - from, import: Date.now() - seen };
	},
};
