// SPDX-License-Identifier: Apache-2.0
// Messages as they come to an exchange or a queue. Nothing is consumed; the page keeps the newest ones.
import { useEffect, useRef, useState } from 'preact/hooks';
import { events, path, query } from '../api.js';
import { t } from '../i18n/index.js';
import { Form, Select, Text, useForm } from './form.jsx';
import { bytes, number } from './format.js';
import { Message } from './message.jsx';
import { Badge, Card, Name, Refused } from './parts.jsx';
import { Rows } from './table.jsx';

const KEPT = 200; // messages
const DRAW_MS = 200; // between two times that new ones are drawn
const PREVIEW = 120; // characters of a payload in the list
const RATES = ['10', '50', '200', '1000'];
const EMPTY = { messages: [], seen: 0, leftOut: 0 };

const clock = (ms) => {
	const at = new Date(ms);
	return [at.getHours(), at.getMinutes(), at.getSeconds()].map((n) => String(n).padStart(2, '0')).join(':') + '.' +
		String(at.getMilliseconds()).padStart(3, '0');
};

/** What comes, while `on`: { messages (newest first), seen, leftOut, state, error, clear() }. Paused, it gathers unseen. */
function useTail(where, on, paused) {
	const [shown, setShown] = useState(EMPTY);
	const [state, setState] = useState({ name: 'opening', error: null });
	const gathered = useRef(EMPTY), timer = useRef(null), held = useRef(paused);
	held.current = paused;
	const draw = () => {
		timer.current = null;
		if (!held.current)
			setShown(gathered.current);
	};
	const add = (change) => {
		gathered.current = change(gathered.current);
		timer.current ??= setTimeout(draw, DRAW_MS);
	};
	useEffect(() => {
		if (!on)
			return undefined;
		setState({ name: 'opening', error: null });
		const close = events(where, (name, data) => {
			if (name === 'message')
				add((g) => ({ ...g, messages: [{ ...data, number: g.seen }, ...g.messages].slice(0, KEPT), seen: g.seen + 1 }));
			else if (name === 'left-out')
				add((g) => ({ ...g, leftOut: g.leftOut + data.count }));
			else if (name === 'end')
				setState({ name: 'ended', error: { reason: data.reason } });
			else
				setState({ name, error: name === 'error' ? data : null });
			if (name === 'end' || name === 'error')
				close();
		});
		return close;
	}, [where, on]);
	useEffect(draw, [paused]);
	useEffect(() => () => clearTimeout(timer.current), []);
	const clear = () => {
		gathered.current = EMPTY;
		setShown(EMPTY);
	};
	return { ...shown, ...state, clear };
}

function preview(m) {
	if (m.payload_encoding === 'base64')
		return <span class="muted">{t('tail.binary')}</span>;
	return <bdi>{m.payload.length > PREVIEW ? m.payload.slice(0, PREVIEW) + '…' : m.payload}</bdi>;
}

const columns = (open, what) => [
	{ key: 'at', title: t('tail.time'), cell: (m) => <button class="small" onClick={() => open(m)} aria-label={t('tail.open', { time: clock(m.at_ms) })}>{clock(m.at_ms)}</button> },
	...(what === 'queue' ? [{ key: 'exchange', title: t('exchange'), cell: (m) => (m.exchange === '' ? t('exchange.default') : <Name>{m.exchange}</Name>) }] : []),
	{ key: 'routing_key', title: t('routing_key'), cell: (m) => <Name>{m.routing_key}</Name> },
	{ key: 'size', title: t('tail.size'), number: true, cell: (m) => bytes(m.payload_bytes) },
	{ key: 'payload', title: t('payload'), cell: preview },
];

function Settings({ value, onChange }) {
	const form = useForm(value);
	return (
		<Form submit={() => onChange(form.values)} label={t('tail.apply')}>
			<div class="fields">
				<Text form={form} name="key" label={t('routing_key')} hint={t('tail.key')} maxLength={255} />
				<Select form={form} name="rate" label={t('tail.rate')} options={RATES} />
			</div>
		</Form>
	);
}

/** what: 'exchange' or 'queue'; name: as in an address. */
export function Tail({ what, vhost, name }) {
	const [settings, setSettings] = useState({ key: '', rate: '50' });
	const [paused, setPaused] = useState(false), [on, setOn] = useState(true), [open, setOpen] = useState(null);
	const where = path('hermes', 'tail', vhost, what, name) + query({ rate: settings.rate, routing_key: settings.key, max_bytes: 1 << 16 });
	const tail = useTail(where, on, paused);
	const again = () => {
		setOn(false);
		setTimeout(() => setOn(true));
	};
	const apply = (values) => {
		setSettings(values);
		tail.clear();
		setOpen(null);
	};
	const over = tail.name === 'ended' || tail.name === 'error';
	return (
		<>
			<Card title={t('tail')}>
				<p class="muted">{t('tail.text.' + what)}</p>
				<Settings value={settings} onChange={apply} />
			</Card>
			<div class="bar">
				<Badge kind={tail.name === 'open' && !paused ? 'ok' : 'warn'}>{t('tail.' + (paused && !over ? 'paused' : tail.name === 'open' ? 'on' : tail.name))}</Badge>
				<span role="status">{t('tail.seen', { n: number(tail.seen) })}</span>
				{tail.leftOut > 0 && <Badge kind="warn" title={t('tail.left_out.text')}>{t('tail.left_out', { n: number(tail.leftOut) })}</Badge>}
				<span class="grow" />
				{over ? <button onClick={again}>{t('tail.again')}</button>
					: <button aria-pressed={paused} onClick={() => setPaused(!paused)}>{t(paused ? 'tail.resume' : 'tail.pause')}</button>}
				<button onClick={() => { tail.clear(); setOpen(null); }}>{t('tail.clear')}</button>
			</div>
			<Refused error={tail.error} />
			{open && <Message key={open.number} message={open}><footer class="bar"><button onClick={() => setOpen(null)}>{t('close')}</button></footer></Message>}
			<Rows columns={columns(setOpen, what)} rows={tail.messages} rowKey={(m) => m.number} empty={t('tail.none')} label={t('tail')} />
		</>
	);
}
