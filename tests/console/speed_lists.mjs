// SPDX-License-Identifier: Apache-2.0
// How long somebody waits who looks: milliseconds, the least of a few. test_speed.py tells the bounds.
const TIMES = 20; // at most: what is quick enough once is so where nothing else runs

/** From the change of the address to a table whose first row is as said. */
const listed = (page, hash, row) => page.evaluate(async ([to, text]) => {
	const frame = () => new Promise(requestAnimationFrame);
	location.hash = '#/queues/%2F/no-such-queue'; // a page without a list
	while (document.querySelector('main table'))
		await frame();
	const start = performance.now();
	location.hash = to;
	while (!document.querySelector('tbody tr td a')?.textContent.includes(text))
		await frame();
	await frame();
	return performance.now() - start;
}, [hash, row]);

async function best(bound, measure) {
	let least = Infinity;
	for (let i = 0; i < TIMES && least >= bound; i++)
		least = Math.min(least, await measure());
	return least;
}

/** From the navigation to the first drawing of what a selector names, with nothing in the browser's cache. */
async function firstView(context, url, selector, cookies) {
	const fresh = await context.browser().newContext({ viewport: { width: 1280, height: 900 } });
	await fresh.addCookies(cookies);
	const page = await fresh.newPage();
	await page.goto(url, { waitUntil: 'commit' });
	const time = await page.evaluate(async (wanted) => {
		while (!document.querySelector(wanted))
			await new Promise(requestAnimationFrame);
		return performance.now();
	}, selector);
	await fresh.close();
	return time;
}

export const tests = {
	'lists and first views': async ({ page, context, url, login, order: { bounds } }) => {
		await login();
		const cookies = await context.cookies();
		return {
			'login page': await best(bounds.first, () => firstView(context, url, 'main.login button', [])),
			'overview': await best(bounds.first, () => firstView(context, url, '.tiles', cookies)),
			'queues': await best(bounds.list, () => listed(page, '#/queues', 'q00000')),
			'queues, the last page': await best(bounds.list, () => listed(page, '#/queues?page=1000', 'q49950')),
			'queues by messages': await best(bounds.list, () => listed(page, '#/queues?sort=messages&desc=1', 'q04900')),
			'queues, searched': await best(bounds.list, () => listed(page, '#/queues?search=q4321', 'q43210')),
			'bindings of the default exchange': await best(bounds.list, () => listed(page, '#/exchanges/%2F/amq.default?tab=bindings', 'q00000')),
			'consumers': await best(bounds.list, () => listed(page, '#/consumers', 'q00000')),
		};
	},
};
