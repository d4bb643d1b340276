// SPDX-License-Identifier: Apache-2.0
// Runs the tests of pages_*.mjs in one Chromium, as conftest.py asks for them, a line of JSON each way:
//
//	node driver.mjs --list				prints [["file", "name"], ...]
//	node driver.mjs MODULES SHOTS			reads {"file", "name", "url", "user", "password"}, writes {"error": null, "value": what it returned}
//
// A test gets { page, open, url, api, shot, expect }: open('queues', '/') goes to a page and waits for it.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const files = readdirSync(here).filter((f) => /^(pages|speed)_.*\.mjs$/.test(f)).sort();
const tests = {};
for (const f of files)
	tests[f] = (await import(join(here, f))).tests;

if (process.argv[2] === '--list') {
	console.log(JSON.stringify(files.filter((f) => f.startsWith('pages_')).flatMap((f) => Object.keys(tests[f]).map((name) => [f, name]))));
	process.exit(0);
}

const [modules, shots] = process.argv.slice(2).map((p) => resolve(p));
const { chromium } = createRequire(join(modules, 'x.js'))('playwright-core');
const PATIENCE = 15000 * Number(process.env.CONSOLE_SLOW || 1);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox'] });

/** The HTTP API with the password, for what a test prepares. */
function makeApi({ url, user, password }) {
	const authorization = 'Basic ' + Buffer.from(`${user}:${password}`).toString('base64');
	return async (method, path, body) => {
		const answer = await fetch(`${url}api/${path}`, { method, body: body === undefined ? undefined : JSON.stringify(body),
			headers: { authorization, 'content-type': 'application/json' } });
		const text = await answer.text();
		if (!answer.ok)
			throw new Error(`${method} ${path}: ${answer.status} ${text}`);
		return text ? JSON.parse(text) : null;
	};
}

async function login(page, order, user, password) {
	await page.goto(order.url);
	await page.getByLabel('User').fill(user);
	await page.getByLabel('Password').fill(password);
	await page.getByRole('button', { name: 'Log in' }).click();
	await page.getByRole('navigation').waitFor();
}

async function run(order) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', colorScheme: 'light' });
	const page = await context.newPage(), wrong = [];
	page.setDefaultTimeout(PATIENCE);
	page.on('pageerror', (e) => wrong.push(`uncaught: ${e.message}`));
	page.on('console', (m) => m.type() === 'error' && !/status of [45]\d\d|ERR_CONNECTION/.test(m.text()) && wrong.push(m.text()));
	const outside = [];
	page.on('request', (r) => !r.url().startsWith(order.url) && !/^(data|blob):/.test(r.url()) && outside.push(r.url()));
	const tools = {
		page, context, url: order.url, user: order.user, password: order.password, queues: order.queues, api: makeApi(order),
		/** As the user of the API, or as another. */
		login: (user = order.user, password = order.password) => login(page, order, user, password),
		open: async (...pieces) => {
			await page.goto(`${order.url}#/${pieces.map(encodeURIComponent).join('/')}`);
			await page.getByRole('heading', { level: 1 }).waitFor();
		},
		/** The page as it is, light and dark, into the folder of screenshots. */
		shot: async (name) => {
			for (const scheme of ['light', 'dark']) {
				await page.emulateMedia({ colorScheme: scheme });
				await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
				await page.screenshot({ path: join(shots, `${name}-${scheme}.png`), fullPage: true });
			}
			await page.emulateMedia({ colorScheme: 'light' });
		},
		/** Waits until check() is true, or throws nothing. */
		until: async (check, what = String(check)) => {
			const end = Date.now() + PATIENCE;
			for (;;) {
				const value = await check();
				if (value)
					return value;
				if (Date.now() > end)
					throw new Error(`not reached: ${what}`);
				await new Promise((done) => setTimeout(done, 50));
			}
		},
	};
	try {
		const value = await tests[order.file][order.name](tools);
		if (wrong.length || outside.length)
			throw new Error(`the browser complained: ${[...wrong, ...outside].join('; ')}`);
		return { error: null, value };
	} catch (e) {
		await page.screenshot({ path: join(shots, `failed-${order.name.replace(/\W+/g, '-')}.png`) }).catch(() => {});
		return { error: String(e.stack ?? e) };
	} finally {
		await context.close();
	}
}

for await (const line of createInterface({ input: process.stdin }))
	console.log(JSON.stringify(await run(JSON.parse(line))));
await browser.close();
