// SPDX-License-Identifier: Apache-2.0
// Where would a message go? Asked of the node while one types, told in words and drawn; nothing is published.
import { useEffect, useState } from 'preact/hooks';
import { t } from '../i18n/index.js';
import { Drawing } from '../lib/drawing.jsx';
import { ExchangeLink, QueueLinks, askRoute, exchangeHref, queueHref } from '../lib/exchange.jsx';
import { Area, Text, parseObject, useForm } from '../lib/form.jsx';
import { duration, number } from '../lib/format.js';
import { Badge, Card, Name, Value } from '../lib/parts.jsx';
import { setParams, useRoute } from '../router.js';

const PAUSE = 250; // milliseconds without a key
const DRAWN = 40;  // boxes

/** { data, error }: the answer of api/hermes/exchanges/.../route, kept while another is asked for. */
function useRoutes(vhost, exchange, { key, headers, properties }) {
	const [state, setState] = useState({});
	useEffect(() => {
		let gone = false;
		const ask = async () => {
			setParams({ key });
			try {
				const data = await askRoute(vhost, exchange, { routing_key: key, headers: parseObject(headers, t('headers')),
					properties: parseObject(properties, t('properties')) });
				if (!gone)
					setState({ data });
			} catch (error) {
				if (!gone)
					setState((old) => ({ ...old, error }));
			}
		};
		const timer = setTimeout(ask, state.data ? PAUSE : 0);
		return () => {
			gone = true;
			clearTimeout(timer);
		};
	}, [vhost, exchange, key, headers, properties]);
	return state;
}

export function Route({ vhost, exchange, type }) {
	const { params } = useRoute();
	const form = useForm({ key: params.key ?? '', headers: '', properties: '' });
	const { data, error } = useRoutes(vhost, exchange, form.values);
	return (
		<>
			<Card title={t('route.try')}>
				<p class="muted">{t('route.type.' + type)}</p>
				<div class="fields">
					<Text form={form} name="key" label={t('routing_key')} autofocus />
				</div>
				<details open={type === 'headers'}><summary>{t('publish.more')}</summary>
					<div class="fields">
						<Area form={form} name="headers" label={t('headers')} hint='{"key": "value"}' rows={2} />
						<Area form={form} name="properties" label={t('properties')} hint='{"message_id": "1"}' rows={2} />
					</div>
				</details>
				{error && <p class="refused" role="alert">{error.reason ?? error.message}</p>}
			</Card>
			{data && !error && <Answer answer={data} vhost={vhost} />}
		</>
	);
}

function Answer({ answer, vhost }) {
	return (
		<>
			<Verdict answer={answer} />
			<Draw answer={answer} vhost={vhost} />
			<Card title={t('route.steps')}><Steps answer={answer} vhost={vhost} /></Card>
		</>
	);
}

const Verdict = ({ answer }) => (
	<p class={answer.routed ? 'health ok' : 'health warn'} role="status">
		{answer.routed ? t('route.reaches') : t('route.nowhere')}{' '}
		{answer.routed && <Badge kind="ok">{answer.complete ? number(answer.queues.length) : `≥ ${number(answer.queues.length)}`}</Badge>}
		{answer.internal && ' ' + t('route.internal')}
		{!answer.complete && ' ' + t('route.incomplete')}
	</p>
);

/* --- in words ----------------------------------------------------------------- */

const nameOf = (exchange) => (exchange === '' ? t('exchange.default') : exchange);

function Why({ step }) {
	if (step.via === 'alternate')
		return <>{t('route.alternate')}</>;
	if (step.via === 'name')
		return <>{t('route.name')}</>;
	const more = Object.keys(step.arguments).length > 0;
	return <>{t('route.binding')} <code><Name>{step.routing_key}</Name></code>{more && <Value of={step.arguments} />}</>;
}

const Destination = ({ step, vhost }) => (
	<>
		{t(step.destination_type)}{' '}
		{step.missing ? <Name>{step.destination}</Name>
			: step.destination_type === 'queue' ? <QueueLinks vhost={vhost} queues={[step.destination]} /> : <ExchangeLink vhost={vhost} name={step.destination} />}
		{step.missing && <Badge kind="warn">{t('route.missing')}</Badge>}
		{step.again && <Badge>{t('route.again')}</Badge>}
	</>
);

function Steps({ answer, vhost }) {
	const from = new Map(answer.exchanges.map((x) => [x.name, []]));
	answer.steps.forEach((s) => from.get(s.source).push(s));
	return (
		<ol class="steps">
			{answer.exchanges.map((x) => (
				<li key={x.name}>
					<ExchangeLink vhost={vhost} name={x.name} /> <Badge>{x.type}</Badge>
					{x.delay_ms && <Badge kind="warn">{t('route.delay', { time: duration(x.delay_ms) })}</Badge>}
					<ul>
						{from.get(x.name).map((s, i) => <li key={i}><Why step={s} /> → <Destination step={s} vhost={vhost} /></li>)}
						{!from.get(x.name).length && <li class="muted">{t('route.no_match')}</li>}
					</ul>
				</li>
			))}
		</ol>
	);
}

/* --- drawn -------------------------------------------------------------------- */

const keyOf = (type, name) => `${type} ${name}`;

function boxOf(step, vhost) {
	const name = step.destination, key = keyOf(step.destination_type, name);
	if (step.missing)
		return { key, name, kind: 'missing' };
	return step.destination_type === 'queue' ? { key, name, kind: 'queue', href: queueHref(vhost, name) }
		: { key, name: nameOf(name), kind: 'exchange', href: exchangeHref(vhost, name) };
}

/** Columns by the distance from the first exchange: each box one behind the exchange that led to it first. */
function columnsOf(answer, vhost) {
	const depth = new Map(answer.exchanges.map((x) => [x.name, x.depth])), first = answer.exchange;
	const columns = [[{ key: keyOf('exchange', first), name: nameOf(first), kind: 'exchange', href: exchangeHref(vhost, first) }]];
	for (const s of answer.steps.filter((step) => !step.again).slice(0, DRAWN - 1))
		(columns[depth.get(s.source) + 1] ??= []).push(boxOf(s, vhost));
	return columns;
}

const labelOf = (step) => (step.via === 'binding' ? step.routing_key || Object.entries(step.arguments).map(([k, v]) => `${k}: ${v}`).join(', ') : t('route.short.' + step.via));

/** One line from a box to another, however many bindings there are. */
function linesOf(answer, drawn) {
	const lines = new Map();
	for (const s of answer.steps) {
		const from = keyOf('exchange', s.source), to = keyOf(s.destination_type, s.destination), key = `${from}\n${to}`;
		if (!drawn.has(from) || !drawn.has(to))
			continue;
		const line = lines.get(key) ?? { from, to, labels: [], dashed: s.via === 'alternate' };
		line.labels.push(labelOf(s));
		lines.set(key, line);
	}
	return [...lines.values()].map((l) => ({ ...l, label: l.labels.filter(Boolean).join(', ') }));
}

function Draw({ answer, vhost }) {
	const columns = columnsOf(answer, vhost), drawn = new Set(columns.flat().map((b) => b.key));
	const all = new Set([...answer.exchanges.map((x) => keyOf('exchange', x.name)), ...answer.queues.map((q) => keyOf('queue', q))]).size;
	return (
		<Card title={t('route.drawing')}>
			<Drawing columns={columns} lines={linesOf(answer, drawn)} label={t('route.drawing.label')} />
			{all > drawn.size && <p class="muted">{t('route.drawn', { n: number(drawn.size), all: number(all) })}</p>}
		</Card>
	);
}
