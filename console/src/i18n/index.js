// SPDX-License-Identifier: Apache-2.0
// Texts. en.js is complete; a test sees to it that every other language has the same keys.
import en from './en.js';
import zh from './zh.js';

const languages = { en, zh };
const KEY = 'hermes.language';

function preferred() {
	const kept = localStorage.getItem(KEY);
	return kept in languages ? kept : navigator.language.startsWith('zh') ? 'zh' : 'en';
}

let current = preferred();
document.documentElement.lang = current;

export const language = () => current;
export const languageNames = { en: 'English', zh: '中文' };

/** The page is to be drawn anew by whoever calls. */
export function setLanguage(name) {
	current = name;
	localStorage.setItem(KEY, name);
	document.documentElement.lang = name;
}

/* Letters and marks that turn the direction of what follows. */
const TURNS = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A name as a part of a text: its direction ends with it. */
export const apart = (name) => (TURNS.test(name) ? `\u2068${name}\u2069` : String(name));

/** The text of a key, with {name} replaced: t('queue.deleted', { name }). */
export function t(key, values = {}) {
	const text = languages[current][key] ?? en[key] ?? key;
	if (!(key in en))
		console.error(`no text: ${key}`); // tests fail by it
	return text.replace(/\{(\w+)\}/g, (all, name) => (name in values ? apart(values[name]) : all));
}
