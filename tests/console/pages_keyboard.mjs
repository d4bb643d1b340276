// SPDX-License-Identifier: Apache-2.0
// Without a mouse, and for those who hear the page.
const PAGES = ['overview', 'node', 'queues', 'dead-letters', 'exchanges', 'exchanges/%2F/amq.topic', 'exchanges/%2F/amq.headers?tab=route', 'exchanges/%2F/amq.topic?tab=bindings',
	'exchanges/%2F/amq.topic?tab=inbound', 'exchanges/%2F/amq.topic?tab=publish', 'exchanges/%2F/amq.topic?tab=live', 'connections', 'channels', 'consumers', 'vhosts', 'vhosts/%2F', 'users', 'users/guest', 'policies', 'limits',
	'parameters', 'definitions'];

/** What of the page has no name that could be said. */
const nameless = () => [...document.querySelectorAll('input, select, textarea, button, a[href], [role=tab], dialog, table, progress')]
	.filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 200));

/** Texts that stand out less from what is behind them than WCAG's AA asks for: 4.5 to 1. */
const pale = () => {
	const rgba = (text) => (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
	const part = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
	const light = ([r, g, b]) => 0.2126 * part(r / 255) + 0.7152 * part(g / 255) + 0.0722 * part(b / 255);
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const colour = rgba(getComputedStyle(e).backgroundColor);
			if (colour[3] === undefined || colour[3] === 1)
				return colour;
		}
		return [255, 255, 255];
	};
	const found = new Set();
	for (const e of document.querySelectorAll('#app *')) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest(':disabled, svg, .skip'))
			continue;
		const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5)
			found.add(`${e.tagName}.${e.className} “${e.textContent.slice(0, 30)}” ${ratio.toFixed(2)}`);
	}
	return [...found];
};

/** What reaches beyond the window. */
const wide = () => [...document.querySelectorAll('#app *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, pre, .drawing'))
	.map((e) => `${e.tagName}.${e.className}`).slice(0, 5).join(' ');

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
	'the focus goes back where it was': async ({ page, login, open, api, until }) => {
		const at = (name) => until(() => page.evaluate((n) => document.activeElement.textContent === n, name), `the focus is at ${name}`);
		await api('PUT', 'queues/%2F/console-focus', {});
		await api('POST', 'exchanges/%2F/amq.default/publish', { properties: {}, routing_key: 'console-focus', payload: 'x', payload_encoding: 'string' });
		await login();
		await open('queues', '/', 'console-focus');
		for (const name of ['Move messages…', 'Purge', 'Delete the queue']) {
			await page.getByRole('button', { name, exact: true }).click();
			await page.getByRole('dialog').waitFor();
			await page.keyboard.press('Escape');
			await page.getByRole('dialog').waitFor({ state: 'hidden' });
			await at(name);
		}
		await page.getByRole('button', { name: 'Purge' }).click();
		await page.getByRole('dialog').getByRole('textbox').fill('console-focus');
		await page.keyboard.press('Enter');
		await page.getByText('is empty').waitFor();
		await page.getByRole('dialog').waitFor({ state: 'hidden' });
		await at('Purge');
		await page.getByRole('button', { name: 'Delete the queue' }).click();
		await page.getByRole('dialog').getByRole('textbox').fill('console-focus');
		await page.keyboard.press('Enter');
		await page.getByRole('heading', { name: 'Queues' }).waitFor();
		await until(() => page.evaluate(() => document.activeElement.id === 'main'), 'a page that was led to has the focus');
	},
	'every page: names, contrast, room, pictures': async ({ page, login, url, api, look, until }) => {
		const long = 'console-' + 'very-long-'.repeat(20) + 'name';	// 212 bytes, nowhere to break it but anywhere
		const there = async (name) => {
			await page.goto(`${url}#/${name}`);
			await page.getByRole('heading', { level: 1 }).waitFor();
			await page.waitForLoadState('networkidle');
		};
		await api('PUT', `queues/%2F/${long}`, {});
		await api('PUT', `users/${long}`, { password: 'x', tags: 'a-tag-of-some-length,another' });
		await api('POST', 'exchanges/%2F/amq.default/publish', { properties: { headers: { long } }, routing_key: long, payload: long, payload_encoding: 'string' });
		await login();
		for (const name of [...PAGES, `queues/%2F/${long}`, `queues/%2F/${long}?tab=look`, `users/${long}`]) {
			const file = 'page-' + name.replace(long, 'long').replace(/%2F/, '').replace(/\W+/g, '-');
			await page.setViewportSize({ width: 1280, height: 900 });
			await there(name);
			await look(`${file}-light`);
			await page.evaluate(() => document.querySelectorAll('details').forEach((d) => (d.open = true)));
			const bad = [...await page.evaluate(nameless), ...await page.evaluate(pale)];
			await page.emulateMedia({ colorScheme: 'dark' });
			bad.push(...await page.evaluate(pale));
			for (const width of [390, 2560]) {
				await page.setViewportSize({ width, height: 900 });
				await until(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))	// charts follow a moment later
					.catch(async () => bad.push(`wider than a window of ${width}: ${await page.evaluate(wide)}`));
				if (width === 390)
					await look(`${file}-narrow-dark`);
			}
			await page.emulateMedia({ colorScheme: 'light' });
			if (bad.length)
				throw new Error(`${name}: ${bad.join('\n')}`);
		}
		await page.setViewportSize({ width: 1280, height: 900 });
		await page.getByRole('combobox', { name: 'Language' }).selectOption('zh');
		await page.emulateMedia({ colorScheme: 'dark' });
		for (const name of PAGES) {
			await there(name);
			await look(`page-${name.replace(/%2F/, '').replace(/\W+/g, '-')}-zh-dark`);
			await until(() => page.evaluate(() => !/undefined|NaN|\[object/.test(document.body.innerText)), `texts on ${name}`);
		}
		await api('DELETE', `queues/%2F/${long}`);
		await api('DELETE', `users/${long}`);
	},
};
