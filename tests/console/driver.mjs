// SPDX-License-Identifier: Apache-2.0
// Runs the tests of pages_*.mjs in one Chromium, as conftest.py asks for them, a line of JSON each way:
//
//	node driver.mjs --list				prints [["file", "name"], ...]
//	node driver.mjs MODULES [SHOTS]			reads {"file", "name", "url", "user", "password"}, writes
//							{"error": null, "value": what it returned, "crashed": did Chromium?}
//
// A test gets { page, open, url, api, shot, ... }: open('queues', '/') goes to a page and waits for it. All tests share one
// window, emptied between them, since a new one costs more than most tests; those named in `fresh` of their file have their
// own. A test in which Chromium itself crashed is run once more.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const files = readdirSync(here).filter((f) => /^(pages|speed)_.*\.mjs$/.test(f)).sort();
const tests = {}, fresh = {}, elsewhere = {};
for (const f of files)
	({ tests: tests[f], fresh: fresh[f] = [], elsewhere: elsewhere[f] = [] } = await import(join(here, f)));

if (process.argv[2] === '--list') {
	console.log(JSON.stringify(files.filter((f) => f.startsWith('pages_')).flatMap((f) => Object.keys(tests[f])
		.filter((name) => !elsewhere[f].includes(name)).map((name) => [f, name]))));
	process.exit(0);
}

const [modules, shots] = process.argv.slice(2).map((p) => p && resolve(p));
const { chromium } = createRequire(join(modules, 'x.js'))('playwright-core');
/* Milliseconds after which something will not come any more: only a failure takes so long. */
const PATIENCE = 40000 * Number(process.env.CONSOLE_SLOW || 1);
const VIEW = { width: 1280, height: 900 };
let browser, context, crashed = false;

async function start() {
	browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
		args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
	browser.on('disconnected', () => (crashed = true));
	context = null;
}

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
	const answer = await page.context().request.post(order.url + 'api/login', { form: { username: user, password }, timeout: PATIENCE });
	if (!answer.ok())
		throw new Error(`login: ${answer.status()} ${await answer.text()}`);
	await page.goto(order.url);
	await page.getByRole('navigation').waitFor();
}

/** As people do it: by the form. */
async function typeLogin(page, order, user, password) {
	await page.goto(order.url);
	await page.getByLabel('User').fill(user);
	await page.getByLabel('Password').fill(password);
	await page.getByRole('button', { name: 'Log in' }).click();
	await page.getByRole('navigation').waitFor();
}

async function picture(page, name, options) {
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
	await page.screenshot({ path: join(shots, name), ...options });
}

function makeTools(page, order) {
	return {
		page, context, order, shots, url: order.url, user: order.user, password: order.password, queues: order.queues, api: makeApi(order),
		/** As the user of the API, or as another. */
		login: (user = order.user, password = order.password) => login(page, order, user, password),
		typeLogin: (user = order.user, password = order.password) => typeLogin(page, order, user, password),
		open: async (...pieces) => {
			await page.goto(`${order.url}#/${pieces.map(encodeURIComponent).join('/')}`);
			await page.getByRole('heading', { level: 1 }).waitFor();
		},
		/** The page as it is, light and dark, into the folder of screenshots, if there is one. */
		shot: async (name) => {
			if (!shots)
				return;
			for (const scheme of ['light', 'dark']) {
				await page.emulateMedia({ colorScheme: scheme });
				await picture(page, `${name}-${scheme}.png`, { fullPage: true });
			}
			await page.emulateMedia({ colorScheme: 'light' });
		},
		/** One picture, of what is in sight. */
		look: (name) => shots && picture(page, `${name}.png`),
		/** Waits until check() is true. */
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
}

/** What was done here is not to be found by the next test. */
async function empty(page) {
	for (const other of context.pages().filter((p) => p !== page))
		await other.close();
	if (page.url() !== 'about:blank')
		await page.evaluate(() => localStorage.clear());
	await context.clearCookies();
	await page.setViewportSize(VIEW);
	await page.emulateMedia({ colorScheme: 'light' });
	await page.goto('about:blank');
}

async function leave() {
	await context?.close().catch(() => {});
	context = null;
}

async function once(order) {
	const alone = fresh[order.file].includes(order.name);
	if (alone)
		await leave();
	context ??= await browser.newContext({ viewport: VIEW, locale: 'en-GB', colorScheme: 'light' });
	const page = context.pages()[0] ?? await context.newPage(), wrong = [], outside = [];
	const listeners = {
		pageerror: (e) => wrong.push(`uncaught: ${e.message}`),
		console: (m) => m.type() === 'error' && !/status of [45]\d\d|ERR_/.test(m.text()) && wrong.push(m.text()),
		request: (r) => !r.url().startsWith(order.url) && !/^(data|blob|about):/.test(r.url()) && outside.push(r.url()),
		crash: () => (crashed = true),
	};
	page.removeAllListeners();
	Object.entries(listeners).forEach(([name, fn]) => page.on(name, fn));
	page.setDefaultTimeout(PATIENCE);
	page.setDefaultNavigationTimeout(PATIENCE);
	try {
		const value = await tests[order.file][order.name](makeTools(page, order));
		if (wrong.length || outside.length)
			throw new Error(`the browser complained: ${[...wrong, ...outside].join('; ')}`);
		await (alone ? leave() : empty(page));
		return { error: null, value };
	} catch (e) {
		await new Promise((done) => setTimeout(done, 500)); // a crash is told after what it made fail
		if (shots && !crashed)
			await page.screenshot({ path: join(shots, `failed-${order.name.replace(/\W+/g, '-')}.png`), timeout: 5000 }).catch(() => {});
		await leave();
		return { error: String(e.stack ?? e) };
	}
}

async function run(order) {
	let result = await once(order);
	if (!crashed && !/crashed|has been closed/.test(result.error))
		return result;
	await browser.close().catch(() => {});
	crashed = false;
	await start();
	result = await once(order);
	return { ...result, crashed: true };
}

await start();
for await (const line of createInterface({ input: process.stdin }))
	console.log(JSON.stringify(await run(JSON.parse(line))));
await browser.close();
