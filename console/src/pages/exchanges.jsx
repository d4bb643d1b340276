// SPDX-License-Identifier: Apache-2.0
// All exchanges, and the form that declares one.
import { useState } from 'preact/hooks';
import { path, put } from '../api.js';
import { t } from '../i18n/index.js';
import { Dialog } from '../lib/dialog.jsx';
import { Area, Check, Form, Select, Text, parseObject, useForm } from '../lib/form.jsx';
import { rate } from '../lib/format.js';
import { Badge } from '../lib/parts.jsx';
import { Pick } from '../lib/pick.jsx';
import { useDeclaring } from '../lib/rights.jsx';
import { ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { go } from '../router.js';
import { ExchangeFeatures, ExchangeLink } from '../lib/exchange.jsx';

const rateColumn = (key, title, field) => ({ key, title, sort: `message_stats.${field}_details.rate`, number: true,
	needs: [`message_stats.${field}_details.rate`], cell: (x) => rate(x.message_stats?.[field + '_details']?.rate ?? 0) });

const columns = () => [
	{ key: 'name', title: t('name'), sort: 'name', cell: (x) => <ExchangeLink vhost={x.vhost} name={x.name} /> },
	{ key: 'vhost', title: t('vhost'), sort: 'vhost' },
	{ key: 'type', title: t('type'), sort: 'type', cell: (x) => <Badge>{x.type}</Badge> },
	{ key: 'features', title: t('features'), needs: ['durable', 'auto_delete', 'internal', 'arguments', 'policy'], cell: (x) => <ExchangeFeatures exchange={x} /> },
	rateColumn('in', t('line.in'), 'publish_in'),
	rateColumn('out', t('line.out'), 'publish_out'),
];

const TYPES = ['direct', 'fanout', 'topic', 'headers', 'x-consistent-hash', 'x-delayed-message'];
const DELAYED = TYPES.filter((type) => type !== 'x-delayed-message');
const HASHED = ['correlation_id', 'message_id', 'timestamp'];

/** The arguments that a type has fields for, of what was filled in. */
function argumentsOf(v) {
	const args = parseObject(v.more, t('arguments'));
	if (v.alternate)
		args['alternate-exchange'] = v.alternate;
	if (v.type === 'x-delayed-message')
		args['x-delayed-type'] = v.delayed;
	if (v.type === 'x-consistent-hash' && v.header)
		args['hash-header'] = v.header;
	if (v.type === 'x-consistent-hash' && v.property)
		args['hash-property'] = v.property;
	return args;
}

function Declare({ vhosts, onDone }) {
	const form = useForm({ vhost: vhosts.includes('/') ? '/' : vhosts[0], name: '', type: 'direct', delayed: 'direct', header: '', property: '', alternate: '',
		durable: true, auto_delete: false, internal: false, more: '' });
	const { type, vhost, name } = form.values;
	const submit = async () => {
		const { durable, auto_delete, internal } = form.values;
		await put(path('exchanges', vhost, name), { type, durable, auto_delete, internal, arguments: argumentsOf(form.values) });
		say(t('exchange.declared', { name }));
		onDone(vhost, name);
	};
	return (
		<Form submit={submit} label={t('exchange.declare')}>
			<div class="fields">
				<Text form={form} name="name" label={t('name')} required autofocus />
				<Select form={form} name="vhost" label={t('vhost')} options={vhosts} />
				<Select form={form} name="type" label={t('type')} options={TYPES} />
			</div>
			<p class="muted">{t('route.type.' + type)}</p>
			<div class="fields">
				{type === 'x-delayed-message' && <Select form={form} name="delayed" label={t('arg.delayed')} options={DELAYED} />}
				{type === 'x-consistent-hash' && <Text form={form} name="header" label={t('arg.hash_header')} />}
				{type === 'x-consistent-hash' && <Select form={form} name="property" label={t('arg.hash_property')} options={[['', t('none')], ...HASHED]} />}
			</div>
			<Check form={form} name="durable" label={t('durable')} />
			<Check form={form} name="auto_delete" label={t('exchange.auto_delete')} />
			<Check form={form} name="internal" label={t('internal')} />
			<details><summary>{t('arguments')}</summary>
				<Pick form={form} name="alternate" label={t('arg.alternate')} where={path('exchanges', vhost)} hint={t('arg.alternate.hint')} />
				<Area form={form} name="more" label={t('arguments.more')} hint='{"x-message-deduplication": true, "x-cache-size": 1000}' rows={3} />
			</details>
		</Form>
	);
}

export function Exchanges() {
	const [declaring, setDeclaring] = useState(false);
	const vhosts = useDeclaring();
	return (
		<>
			<h1>{t('page.exchanges')}</h1>
			<ServerTable name="exchanges" path="exchanges" columns={columns()} sort="name" fields={['vhost']} rowKey={(x) => x.vhost + '/' + x.name}
				tools={() => (
					<>
						{vhosts.length > 0 && <button class="primary" onClick={() => setDeclaring(true)}>{t('exchange.declare')}…</button>}
						{declaring && (
							<Dialog title={t('exchange.declare')} wide onClose={() => setDeclaring(false)}>
								<Declare vhosts={vhosts} onDone={(vhost, name) => go('exchanges', vhost, name)} />
							</Dialog>
						)}
					</>
				)} />
		</>
	);
}
