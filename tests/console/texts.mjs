// SPDX-License-Identifier: Apache-2.0
// Are the texts of all languages the same ones, and those that the pages ask for? Prints what is wrong, a line each:
//
//	node texts.mjs CONSOLE-SRC-FOLDER
//
// A page asks by t('key'), by t('start.' + word) or `...`, which counts for all keys that begin so, or by a key that stands in
// a table somewhere. A text that does not stand in the sources in one of these ways is not used.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

const src = resolve(process.argv[2]);
const wrong = [];

const files = (folder) => readdirSync(folder).flatMap((f) => (statSync(join(folder, f)).isDirectory() ? files(join(folder, f)) : [join(folder, f)]));
const sources = files(src).filter((f) => /\.jsx?$/.test(f) && !f.includes('/i18n/')).map((f) => [f.slice(src.length + 1), readFileSync(f, 'utf8')]);
const languages = readdirSync(join(src, 'i18n')).filter((f) => f !== 'index.js');
const texts = {};
for (const f of languages) {
	texts[f] = (await import(join(src, 'i18n', f))).default;
	const keys = [...readFileSync(join(src, 'i18n', f), 'utf8').matchAll(/^\s*'([^']+)':/gm)].map((m) => m[1]);
	keys.filter((k, i) => keys.indexOf(k) !== i).forEach((k) => wrong.push(`${f}: ${k} is there twice`));
}
const en = texts['en.js'], holes = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((m) => m[1]).sort().join();
for (const f of languages) {
	for (const key of Object.keys(en)) {
		if (!(key in texts[f]))
			wrong.push(`${f}: ${key} is missing`);
		else if (holes(texts[f][key]) !== holes(en[key]))
			wrong.push(`${f}: ${key} has other {names} than in English`);
	}
	Object.keys(texts[f]).filter((key) => !(key in en)).forEach((key) => wrong.push(`${f}: ${key} is not in English`));
}

const literals = new Set(), starts = new Set(), ends = new Set();
for (const [file, text] of sources) {
	for (const [, key] of text.matchAll(/['"`]([a-zA-Z][\w.-]*)['"`]/g))
		literals.add(key);
	for (const [, start] of text.matchAll(/\bt\(['"`]([\w.-]+\.)['"`] \+/g))
		starts.add(start);
	for (const [, start] of text.matchAll(/\bt\(`([\w.-]+\.)\$\{/g))
		starts.add(start);
	for (const [, end] of text.matchAll(/\bt\(\w+ \+ ['"`](\.[\w.-]+)['"`]/g))
		ends.add(end);
	for (const [, key, next] of text.matchAll(/\bt\(['"]([^'"]+)['"]( \+)?/g))
		if (!next && !(key in en))
			wrong.push(`${file}: there is no text ${key}`);
	for (const [, first, second] of text.matchAll(/\bt\([^'"()?]+ \? '([^']+)' : '([^']+)'/g))
		[first, second].filter((key) => !(key in en)).forEach((key) => wrong.push(`${file}: there is no text ${key}`));
}
for (const start of starts)
	if (!Object.keys(en).some((key) => key.startsWith(start)))
		wrong.push(`no text begins with ${start}`);
const isUsed = (key) => literals.has(key) || [...starts].some((s) => key.startsWith(s)) ||
	[...ends].some((e) => key.endsWith(e) && literals.has(key.slice(0, -e.length)));
Object.keys(en).filter((key) => !isUsed(key)).forEach((key) => wrong.push(`en.js: no page uses ${key}`));

console.log(wrong.join('\n'));
