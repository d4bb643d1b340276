// SPDX-License-Identifier: Apache-2.0
// Bundles the console and writes it as one C file, each of its files with a gzip of it:
//
//	node build.mjs MODULES-FOLDER OUTPUT.c
//
// All names but the page's hold a hash of their contents, so that browsers may keep them for good.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { texts } from './texts.mjs';

const LIMIT = 204 * 1024; // bytes of all files together, before they are compressed
const LIMIT_SENT = 80 * 1024; // and as they are sent
const here = dirname(fileURLToPath(import.meta.url));
const [modules, output] = process.argv.slice(2).map((p) => resolve(p));
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');

const common = { bundle: true, minify: true, write: false, outdir: '/', entryNames: '[name]-[hash]', format: 'esm', charset: 'utf8',
	target: ['chrome100', 'firefox100', 'safari15'], legalComments: 'none', nodePaths: [modules], logLevel: 'warning' };

/* What no chart here has, taken out of uPlot: other ways of drawing, scales that are not linear, dates as texts (charts format
 * their own times). Its version is fixed by package-lock.json; with another one this stops where it no longer fits. */
const UNUSED = ['logAxisSplits', 'asinhAxisSplits', 'log10AxisValsFilt', 'log2AxisValsFilt', 'rangeLog', 'rangeAsinh', 'getMinMaxLog', 'timeAxisVals',
	'timeAxisStamps', 'timeSeriesStamp', 'timeSeriesVal'];

function trim(code) {
	const cut = (from, to) => {
		if (!from.test(code))
			throw new Error(`this uPlot has no ${from}`);
		code = code.replace(from, to);
	};
	cut(/\(paths\.(stepped|bars|spline) *= \w+\);|uPlot\.(join|sync|fmtDate|tzDate|rangeLog|rangeAsinh) *= \w+;/g, '');
	cut(/^function fmtDate\([^]*?^}/m, "function fmtDate() { return () => ''; }");
	cut(/_timeAxisStamps = \[[^]*?\n\t\];/, '_timeAxisStamps = [];');
	for (const name of UNUSED)
		cut(new RegExp(`^function ${name}\\([^]*?^}`, 'm'), `function ${name}() {}`);
	return code;
}

const lean = {
	name: 'lean',
	setup(build) {
		build.onLoad({ filter: /uPlot\.esm\.js$/ }, ({ path }) => ({ contents: trim(readFileSync(path, 'utf8')) }));
	},
};
/* A file of its own: the first view does without it. */
const [charts] = (await esbuild.build({ ...common, entryPoints: { charts: 'uplot' }, plugins: [lean] })).outputFiles;
const later = {
	name: 'later',
	setup(build) {
		build.onResolve({ filter: /^uplot$/ }, () => ({ path: './' + basename(charts.path), external: true }));
	},
};
const app = await esbuild.build({
	...common,
	entryPoints: { app: join(here, 'src/main.jsx') },
	jsx: 'transform',
	jsxFactory: 'h',
	jsxFragment: 'Fragment',
	inject: [join(here, 'src/jsx.js')],
	plugins: [await texts(join(here, 'src')), later],
});

const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', html: 'text/html; charset=utf-8',
	svg: 'image/svg+xml' };
const files = [];

function add(name, contents) {
	const ext = name.split('.').pop();
	files.push({ name, type: types[ext], plain: Buffer.from(contents), zipped: gzipSync(contents, { level: 9 }) });
}

function hashed(name, contents) {
	const [stem, ext] = name.split('.');
	const full = `${stem}-${createHash('sha256').update(contents).digest('hex').slice(0, 12)}.${ext}`;
	add(full, contents);
	return full;
}

const names = { ICON: hashed('icon.svg', readFileSync(join(here, 'src/icon.svg'))) };
for (const { path, contents } of [charts, ...app.outputFiles]) {
	const name = basename(path);
	add(name, contents);
	if (name.startsWith('app-'))
		names[name.endsWith('.js') ? 'SCRIPT' : 'STYLE'] = name;
}
const page = readFileSync(join(here, 'src/index.html'), 'utf8').replace(/@([A-Z]+)@/g, (_, key) => names[key]);
add('index.html', page);

const total = files.reduce((sum, f) => sum + f.plain.length, 0);
const sent = files.reduce((sum, f) => sum + f.zipped.length, 0);
if (total > LIMIT || sent > LIMIT_SENT)
	throw new Error(`the console has ${total} bytes, ${sent} compressed: it may have ${LIMIT} and ${LIMIT_SENT}`);

const array = (name, buffer) => `static const unsigned char ${name}[] = {${buffer.join(',')}};`;
const lines = ['/* Written by console/build.mjs. */', '#include "mgmt/console.h"', ''];
files.forEach((f, i) => lines.push(array(`plain_${i}`, f.plain), array(`zipped_${i}`, f.zipped)));
lines.push('', 'const struct console_file console_files[] = {');
files.forEach((f, i) => lines.push(
	`\t{ "${f.name}", "${f.type}", plain_${i}, sizeof plain_${i}, zipped_${i}, sizeof zipped_${i} },`));
lines.push('};', `const size_t console_file_count = ${files.length};`, '');
writeFileSync(output, lines.join('\n'));
console.log(`console: ${total} bytes, ${sent} compressed`);
