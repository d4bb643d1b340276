// SPDX-License-Identifier: Apache-2.0
// A plugin of esbuild that makes the texts small: those that are only ever asked for by their whole key get a number in its
// place, in the code and in all languages.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const files = (folder) => readdirSync(folder).flatMap((f) => (statSync(join(folder, f)).isDirectory() ? files(join(folder, f)) : [join(folder, f)]));

const CALL = /\bt\('([\w.-]+)'(?=\s*[,)])/g;
const CHOICE = /\bt\(([^'"()?]+ \? )'([\w.-]+)'( : )'([\w.-]+)'(?=\s*[,)])/g;
const ANY = /['"`]([\w-]+(?:\.[\w-]+)+)['"`]/g;
/* What a key is put together of: t('start.' + word), t(`start.${word}`), t(word + '.end'). */
const START = /\bt\((?:['"`]([\w.-]+\.)['"`] \+|`([\w.-]+\.)\$\{)/g;
const END = /\bt\(\w+ \+ ['"`](\.[\w.-]+)['"`]/g;

function count(found) {
	const n = new Map();
	for (const key of found)
		n.set(key, (n.get(key) ?? 0) + 1);
	return n;
}

/** Keys to be numbered: { 'queue.declare': 0, ... }. */
function numbers(keys, sources) {
	const all = (re) => sources.flatMap((s) => [...s.matchAll(re)]);
	const called = count([...all(CALL).map((m) => m[1]), ...all(CHOICE).flatMap((m) => [m[2], m[4]])]);
	const said = count(all(ANY).map((m) => m[1]));
	const starts = all(START).map((m) => m[1] ?? m[2]), ends = all(END).map((m) => m[1]);
	const whole = keys.filter((k) => k.includes('.') && called.has(k) && called.get(k) === said.get(k) &&
		!starts.some((s) => k.startsWith(s)) && !ends.some((e) => k.endsWith(e)));
	return Object.fromEntries(whole.map((k, i) => [k, i]));
}

/** src: the folder with i18n/ and the pages. */
export async function texts(src) {
	const names = files(src).filter((f) => /\.jsx?$/.test(f) && !f.includes('/i18n/'));
	const { default: en } = await import(join(src, 'i18n/en.js'));
	const number = numbers(Object.keys(en), names.map((f) => readFileSync(f, 'utf8')));
	const numbered = Object.keys(number), named = Object.keys(en).filter((k) => !(k in number));
	const short = (key) => (key in number ? number[key] : `'${key}'`);
	return {
		name: 'texts',
		setup(build) {
			build.onLoad({ filter: /\/i18n\/[a-z][a-z]\.js$/ }, async ({ path }) => {
				const { default: said } = await import(path), of = (keys) => JSON.stringify(keys.map((k) => said[k]));
				if (path.endsWith('en.js')) // Object.keys() has the numbers first
					return { contents: `export default Object.assign(${of(numbered)}, ${JSON.stringify(Object.fromEntries(named.map((k) => [k, said[k]])))})` };
				return { contents: `import en from './en.js'; const said = ${of([...numbered, ...named])};
					export default Object.fromEntries(Object.keys(en).map((k, i) => [k, said[i]]))` };
			});
			build.onLoad({ filter: /\/src\/.*\.jsx?$/ }, ({ path }) => {
				if (!names.includes(path) || path.includes('/i18n/'))
					return undefined;
				const code = readFileSync(path, 'utf8').replace(CALL, (_, k) => `t(${short(k)}`)
					.replace(CHOICE, (_, when, a, or, b) => `t(${when}${short(a)}${or}${short(b)}`);
				return { contents: code, loader: path.endsWith('x') ? 'jsx' : 'js' };
			});
		},
	};
}
