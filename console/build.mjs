// SPDX-License-Identifier: Apache-2.0
// Bundles the console and writes it as one C file, each of its files with a gzip of it:
//
//	node build.mjs MODULES-FOLDER OUTPUT.c
//
// The names of script and style hold a hash of their contents, so that browsers may keep them for good.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const LIMIT = 200 * 1024; // bytes of all files together, as they are sent: compressed
const here = dirname(fileURLToPath(import.meta.url));
const [modules, output] = process.argv.slice(2).map((p) => resolve(p));
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');

const bundled = await esbuild.build({
	entryPoints: { app: join(here, 'src/main.jsx') },
	bundle: true,
	minify: true,
	write: false,
	outdir: '/',
	format: 'iife',
	target: ['chrome100', 'firefox100', 'safari15'],
	jsx: 'automatic',
	jsxImportSource: 'preact',
	legalComments: 'none',
	charset: 'utf8',
	nodePaths: [modules],
	logLevel: 'warning',
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

const out = (ext) => bundled.outputFiles.find((f) => f.path.endsWith(ext)).contents;
const names = {
	SCRIPT: hashed('app.js', out('.js')),
	STYLE: hashed('app.css', out('.css')),
	ICON: hashed('icon.svg', readFileSync(join(here, 'src/icon.svg'))),
};
const page = readFileSync(join(here, 'src/index.html'), 'utf8').replace(/@([A-Z]+)@/g, (_, key) => names[key]);
add('index.html', page);

const total = files.reduce((sum, f) => sum + f.plain.length, 0);
const sent = files.reduce((sum, f) => sum + f.zipped.length, 0);
if (sent > LIMIT)
	throw new Error(`the console has ${sent} bytes compressed, over the ${LIMIT} that it may have`);

const array = (name, buffer) => `static const unsigned char ${name}[] = {${buffer.join(',')}};`;
const lines = ['/* Written by console/build.mjs. */', '#include "mgmt/console.h"', ''];
files.forEach((f, i) => lines.push(array(`plain_${i}`, f.plain), array(`zipped_${i}`, f.zipped)));
lines.push('', 'const struct console_file console_files[] = {');
files.forEach((f, i) => lines.push(
	`\t{ "${f.name}", "${f.type}", plain_${i}, sizeof plain_${i}, zipped_${i}, sizeof zipped_${i} },`));
lines.push('};', `const size_t console_file_count = ${files.length};`, '');
writeFileSync(output, lines.join('\n'));
console.log(`console: ${total} bytes, ${sent} compressed`);
