// SPDX-License-Identifier: Apache-2.0
// Small things that many pages show.
import { t } from '../i18n/index.js';

const LONG = 40; // characters: a table may cut it

/** A name from outside: as text, its direction its own, white space seen. */
export const Name = ({ children }) => <bdi class="name" title={children?.length > LONG ? children : undefined}>{children === '' ? <i>{t('empty_name')}</i> : children}</bdi>;

/** [[label, value], ...]; rows whose value is undefined or null are left out. */
export const Facts = ({ rows }) => (
	<dl class="facts">
		{rows.filter(([, value]) => value !== undefined && value !== null).map(([label, value]) => (
			<div key={label}><dt>{label}</dt><dd>{value}</dd></div>
		))}
	</dl>
);

/** kind: ok, warn, bad or plain */
export const Badge = ({ kind = 'plain', children, title }) => <span class={'badge ' + kind} title={title}>{children}</span>;

/** used of limit as a bar; unless it is plain, a part of the whole, much is bad. */
export function Meter({ used, limit, text, plain }) {
	const part = limit > 0 ? Math.min(1, used / limit) : 0;
	const kind = plain ? '' : part > 0.9 ? 'bad' : part > 0.7 ? 'warn' : '';
	return (
		<div class="meter"><progress class={kind} value={part} max="1" aria-label={text} /><span>{text}</span></div>
	);
}

export const Refused = ({ error }) => (error ? <p class="refused" role="alert">{error.reason ?? error.message}</p> : null);

/** A part of a page with a heading. */
export const Card = ({ title, tools, children, wide }) => (
	<section class={wide ? 'card wide' : 'card'}>
		{title && <header><h2>{title}</h2><span class="grow" />{tools}</header>}
		{children}
	</section>
);

/** choices: [[key, text], ...] */
export const Tabs = ({ choices, value, onChange }) => (
	<div class="tabs" role="tablist">
		{choices.map(([key, text]) => (
			<button key={key} role="tab" aria-selected={key === value} onClick={() => onChange(key)}>{text}</button>
		))}
	</div>
);

/** Arguments, properties, definitions: a value of JSON, names in order. */
export function Value({ of }) {
	if (of === null || typeof of !== 'object')
		return <bdi class="value">{of === '' ? <i>{t('empty_name')}</i> : typeof of === 'string' ? of : JSON.stringify(of)}</bdi>;
	const pairs = Object.entries(of);
	if (!pairs.length)
		return <span class="muted">{t('none')}</span>;
	if (Array.isArray(of))
		return <ul class="value">{of.map((v, i) => <li key={i}><Value of={v} /></li>)}</ul>;
	return <dl class="value">{pairs.map(([k, v]) => <div key={k}><dt><bdi>{k}</bdi></dt><dd><Value of={v} /></dd></div>)}</dl>;
}
