// SPDX-License-Identifier: Apache-2.0
// What is bound to what: the bindings of an exchange, both ways, and of a queue, in pages from the node; to bind and unbind.
import { useState } from 'preact/hooks';
import { del, path, post } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy } from '../lib/dialog.jsx';
import { DEFAULT, ExchangeLink, exchangeHref, queueHref } from '../lib/exchange.jsx';
import { Form, Select, Text, parseObject, useForm } from '../lib/form.jsx';
import { Badge, Card, Name, Value } from '../lib/parts.jsx';
import { Pick } from '../lib/pick.jsx';
import { ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';

/** from: out of this exchange; else those that lead to it. may: the user may bind. */
export function ExchangeBindings({ from, vhost, name, type, may }) {
	const [bound, setBound] = useState(0);
	const after = () => setBound((n) => n + 1);
	return (
		<>
			{name === '' ? <p class="muted">{t('exchange.default.text')}</p> : may && (
				<Card title={t(from ? 'bind.from' : 'bind.to')}>
					{from ? <BindFrom vhost={vhost} name={name} type={type} after={after} /> : <BindTo vhost={vhost} kind="e" name={name} after={after} />}
				</Card>
			)}
			<List key={bound} from={from} vhost={vhost} may={may} path={path('exchanges', vhost, name || DEFAULT, 'bindings', from ? 'source' : 'destination')}
				empty={t(from ? 'bindings.none.from' : 'bindings.none.to')} />
		</>
	);
}

export function QueueBindings({ vhost, name, may }) {
	const [bound, setBound] = useState(0);
	return (
		<>
			{may && <Card title={t('bind')}><BindTo vhost={vhost} kind="q" name={name} after={() => setBound((n) => n + 1)} /></Card>}
			<List key={bound} vhost={vhost} may={may} publish path={path('queues', vhost, name, 'bindings')} />
		</>
	);
}

/* path: of the bindings; from: the other end is where they lead, else where they come from; publish: offered through each. */
function List({ from, vhost, may, publish, path: where, empty }) {
	const columns = (again) => [
		from
			? { key: 'destination', title: t('destination'), sort: 'destination', needs: ['destination', 'destination_type'], cell: (b) => <Destination binding={b} vhost={vhost} /> }
			: { key: 'source', title: t('source'), sort: 'source', cell: (b) => <ExchangeLink vhost={vhost} name={b.source} /> },
		{ key: 'routing_key', title: t('routing_key'), sort: 'routing_key', cell: (b) => <Name>{b.routing_key}</Name> },
		{ key: 'arguments', title: t('arguments'), cell: (b) => <Value of={b.arguments} /> },
		{ key: 'do', title: '', needs: ['source', 'destination', 'destination_type', 'properties_key'],
			cell: (b) => b.source !== '' && (
				<span class="tools">
					{publish && <a class="button small" href={exchangeHref(vhost, b.source, 'publish') + '&key=' + encodeURIComponent(b.routing_key)}>{t('publish')}</a>}
					{may && <Destroy small label={t('unbind')} question={t('unbind.sure')} run={() => unbind(vhost, b, again)} />}
				</span>) },
	];
	return <ServerTable name="bindings" path={where} columns={columns} sort={from ? 'destination' : 'source'} empty={empty}
		rowKey={(b) => `${b.source}\n${b.destination_type}\n${b.destination}\n${b.properties_key}`} />;
}

const Destination = ({ binding: b, vhost }) => (b.destination_type === 'queue'
	? <><Badge>{t('queue')}</Badge> <a href={queueHref(vhost, b.destination)}><Name>{b.destination}</Name></a></>
	: <><Badge>{t('exchange')}</Badge> <ExchangeLink vhost={vhost} name={b.destination} /></>);

async function unbind(vhost, b, again) {
	await del(path('bindings', vhost, 'e', b.source, b.destination_type === 'queue' ? 'q' : 'e', b.destination, b.properties_key));
	say(t('unbound'));
	again();
}

async function bind(vhost, source, kind, destination, { key, args }) {
	await post(path('bindings', vhost, 'e', source, kind, destination), { routing_key: key, arguments: parseObject(args, t('arguments')) });
	say(t('bound'));
}

/* What the key of a binding is to a type. */
const keyHint = (type) => (['topic', 'headers', 'fanout', 'x-consistent-hash'].includes(type) ? t('bind.hint.' + type) : undefined);

function BindFrom({ vhost, name, type, after }) {
	const form = useForm({ kind: 'q', to: '', key: type === 'x-consistent-hash' ? '1' : '', args: type === 'headers' ? '{"x-match": "all"}' : '' });
	const submit = async () => {
		await bind(vhost, name, form.values.kind, form.values.to, form.values);
		form.set('to', '');
		after();
	};
	return (
		<Form submit={submit} label={t('bind')}>
			<div class="fields">
				<Select form={form} name="kind" label={t('destination.type')} options={[['q', t('queue')], ['e', t('exchange')]]} />
				<Pick form={form} name="to" label={t(form.values.kind === 'q' ? 'queue' : 'exchange')} where={path(form.values.kind === 'q' ? 'queues' : 'exchanges', vhost)} required />
				<Text form={form} name="key" label={t('routing_key')} hint={keyHint(type)} />
				<Text form={form} name="args" label={t('arguments')} hint='{"x-match": "all", "format": "pdf"}' />
			</div>
		</Form>
	);
}

/* kind: what `name` is of, q or e. */
function BindTo({ vhost, kind, name, after }) {
	const form = useForm({ source: '', key: '', args: '' });
	const submit = async () => {
		await bind(vhost, form.values.source, kind, name, form.values);
		form.reset();
		after();
	};
	return (
		<Form submit={submit} label={t('bind')}>
			<div class="fields">
				<Pick form={form} name="source" label={t(kind === 'q' ? 'exchange' : 'source')} where={path('exchanges', vhost)} required first />
				<Text form={form} name="key" label={t('routing_key')} />
				<Text form={form} name="args" label={t('arguments')} hint='{"x-match": "all"}' />
			</div>
		</Form>
	);
}
