// SPDX-License-Identifier: Apache-2.0
// Numbers, sizes and times as people read them.
import { language } from '../i18n/index.js';

const locale = () => (language() === 'zh' ? 'zh-CN' : 'en-GB');
const NONE = '–';
const isNumber = (n) => typeof n === 'number' && Number.isFinite(n);

export const number = (n) => (isNumber(n) ? n.toLocaleString(locale(), { maximumFractionDigits: 0 }) : NONE);

/** 1.2k, 34M: for charts and narrow columns. */
export function short(n) {
	if (!isNumber(n))
		return NONE;
	for (const [limit, unit] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']])
		if (Math.abs(n) >= limit)
			return (n / (limit === 1e4 ? 1e3 : limit)).toFixed(1).replace(/\.0$/, '') + unit;
	return Number.isInteger(n) ? String(n) : n.toFixed(1);
}

export const rate = (n) => (isNumber(n) ? `${short(n)}/s` : NONE);

export function bytes(n) {
	if (!isNumber(n))
		return NONE;
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0;
	for (; Math.abs(n) >= 1024 && i < units.length - 1; i++)
		n /= 1024;
	return `${i && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

/** A span of milliseconds: 340 ms, 12 s, 3 min 5 s, 2 h 10 min, 4 d 3 h. */
export function duration(ms) {
	if (!isNumber(ms))
		return NONE;
	if (ms < 1000)
		return `${Math.round(ms)} ms`;
	const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
	let left = Math.round(ms / 1000);
	const said = [];
	for (const [size, unit] of units) {
		if (left >= size || said.length) {
			if (Math.floor(left / size))
				said.push(`${Math.floor(left / size)} ${unit}`);
			left %= size;
		}
	}
	return said.slice(0, 2).join(' ');
}

/** A point in time, in milliseconds since 1970 or as text. */
export function time(at) {
	if (at === undefined || at === null || at === '')
		return NONE;
	const date = new Date(typeof at === 'string' ? at.replace(/^(\d{4}-\d\d-\d\d) (\d+):/, '$1T$2:') : at);
	return Number.isNaN(date.getTime()) ? String(at) : date.toLocaleString(locale(), { hour12: false });
}
