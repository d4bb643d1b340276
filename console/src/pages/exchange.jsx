// SPDX-License-Identifier: Apache-2.0
// One exchange: what it is, where a message would go from it, what is bound to what, and a message to send.
import { useState } from 'preact/hooks';
import { del, get, path, post } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy } from '../lib/dialog.jsx';
import { Form, Select, Text, parseObject, useForm } from '../lib/form.jsx';
import { number, rate } from '../lib/format.js';
import { usePolled } from '../lib/hooks.js';
import { Badge, Card, Facts, Name, Refused, Tabs, Value } from '../lib/parts.jsx';
import { Pick } from '../lib/pick.jsx';
import { Publish } from '../lib/publish.jsx';
import { ServerTable } from '../lib/table.jsx';
import { Tail } from '../lib/tail.jsx';
import { say } from '../lib/toast.jsx';
import { go, setParams, useRoute } from '../router.js';
import { DEFAULT, ExchangeFeatures, ExchangeLink, isPredeclared, queueHref } from '../lib/exchange.jsx';
import { Route } from './exchange_route.jsx';

const TABS = ['state', 'route', 'bindings', 'inbound', 'live', 'publish'];

/* Those of another tab's list, but for the tab. */
const goTab = (tab) => setParams({ tab, page: null, search: null, sort: null, desc: null, key: null });

export function Exchange({ args: [vhost, inAddress] }) {
	const { params } = useRoute();
	const { data: x, error, again } = usePolled((signal) => get(path('exchanges', vhost, inAddress), { signal }), [vhost, inAddress]);
	const name = inAddress === DEFAULT ? '' : inAddress;
	const tabs = TABS.filter((tab) => !(tab === 'publish' && x?.internal) && !(tab === 'inbound' && name === ''));
	const tab = tabs.includes(params.tab) ? params.tab : 'state';
	return (
		<>
			<h1>{t('exchange')} {name === '' ? t('exchange.default') : <Name>{name}</Name>} <small class="muted"><bdi>{vhost}</bdi></small></h1>
			<Refused error={error} />
			<Tabs choices={tabs.map((k) => [k, t('exchange.tab.' + k)])} value={tab} onChange={goTab} />
			{x && tab === 'state' && <About exchange={x} vhost={vhost} name={name} />}
			{x && tab === 'route' && <Route vhost={vhost} exchange={name} type={x.type} />}
			{x && tab === 'bindings' && <Bindings from vhost={vhost} name={name} type={x.type} />}
			{x && tab === 'inbound' && <Bindings vhost={vhost} name={name} type={x.type} />}
			{x && tab === 'live' && <Tail what="exchange" vhost={vhost} name={inAddress} />}
			{x && tab === 'publish' && <Card title={t('publish.exchange')}><Publish vhost={vhost} exchange={name} after={again} /></Card>}
		</>
	);
}

function About({ exchange: x, vhost, name }) {
	const stats = x.message_stats ?? {};
	const remove = async () => {
		await del(path('exchanges', vhost, name));
		say(t('exchange.deleted', { name }));
		go('exchanges');
	};
	return (
		<div class="cards">
			<Card title={t('exchange.tab.state')}>
				<Facts rows={[
					[t('type'), <Badge>{x.type}</Badge>],
					[t('features'), <ExchangeFeatures exchange={x} />],
					[t('line.in'), `${number(stats.publish_in ?? 0)}, ${rate(stats.publish_in_details?.rate ?? 0)}`],
					[t('line.out'), `${number(stats.publish_out ?? 0)}, ${rate(stats.publish_out_details?.rate ?? 0)}`],
				]} />
				<p class="muted">{t(name === '' ? 'exchange.default.text' : 'route.type.' + x.type)}</p>
			</Card>
			<Card title={t('queue.settings')}>
				<Facts rows={[
					[t('arguments'), <Value of={x.arguments} />],
					[t('policy'), x.policy ? <bdi>{x.policy}</bdi> : t('none')],
				]} />
			</Card>
			{!isPredeclared(name) && (
				<Card title={t('actions')}>
					<Destroy label={t('exchange.delete')} question={t('exchange.delete.sure')} name={name} run={remove} />
				</Card>
			)}
		</div>
	);
}

/** from: out of this exchange; else those that lead to it. */
function Bindings({ from, vhost, name, type }) {
	const [bound, setBound] = useState(0);
	const columns = (again) => [
		from
			? { key: 'destination', title: t('destination'), sort: 'destination', needs: ['destination', 'destination_type'], cell: (b) => <Destination binding={b} vhost={vhost} /> }
			: { key: 'source', title: t('source'), sort: 'source', cell: (b) => <ExchangeLink vhost={vhost} name={b.source} /> },
		{ key: 'routing_key', title: t('routing_key'), sort: 'routing_key', cell: (b) => <Name>{b.routing_key}</Name> },
		{ key: 'arguments', title: t('arguments'), cell: (b) => <Value of={b.arguments} /> },
		{ key: 'do', title: '', needs: ['source', 'destination', 'destination_type', 'properties_key'],
			cell: (b) => b.source !== '' && <Destroy small label={t('unbind')} question={t('unbind.sure')} run={() => unbind(vhost, b, again)} /> },
	];
	return (
		<>
			{name === '' ? <p class="muted">{t('exchange.default.text')}</p> : (
				<Card title={t(from ? 'bind.from' : 'bind.to')}>
					{from ? <BindFrom vhost={vhost} name={name} type={type} after={() => setBound((n) => n + 1)} />
						: <BindTo vhost={vhost} name={name} after={() => setBound((n) => n + 1)} />}
				</Card>
			)}
			<ServerTable key={bound} name="bindings" path={path('exchanges', vhost, name || DEFAULT, 'bindings', from ? 'source' : 'destination')} columns={columns}
				sort={from ? 'destination' : 'source'} rowKey={(b) => `${b.source}\n${b.destination_type}\n${b.destination}\n${b.properties_key}`}
				empty={t(from ? 'bindings.none.from' : 'bindings.none.to')} />
		</>
	);
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

function BindTo({ vhost, name, after }) {
	const form = useForm({ source: '', key: '', args: '' });
	const submit = async () => {
		await bind(vhost, form.values.source, 'e', name, form.values);
		form.reset();
		after();
	};
	return (
		<Form submit={submit} label={t('bind')}>
			<div class="fields">
				<Pick form={form} name="source" label={t('source')} where={path('exchanges', vhost)} required />
				<Text form={form} name="key" label={t('routing_key')} />
				<Text form={form} name="args" label={t('arguments')} hint='{"x-match": "all"}' />
			</div>
		</Form>
	);
}
