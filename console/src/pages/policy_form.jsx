// SPDX-License-Identifier: Apache-2.0
// The form of a policy: it knows the keys and their kinds, and shows what the pattern matches before anything is set.
import { useEffect, useState } from 'preact/hooks';
import { get, path, put, query } from '../api.js';
import { t } from '../i18n/index.js';
import { Area, Form, Select, Text, parseObject, useForm } from '../lib/form.jsx';
import { number } from '../lib/format.js';
import { Name } from '../lib/parts.jsx';
import { say } from '../lib/toast.jsx';
import { useSession } from '../session.js';

/** [key, label, by operators too, words to choose from or the type of the field]. */
const KEYS = [
	['message-ttl', 'arg.ttl', true, 'number'],
	['expires', 'arg.expires', true, 'number'],
	['max-length', 'arg.max_length', true, 'number'],
	['max-length-bytes', 'arg.max_bytes', true, 'number'],
	['overflow', 'arg.overflow', false, ['drop-head', 'reject-publish', 'reject-publish-dlx']],
	['delivery-limit', 'arg.delivery_limit', true, 'number'],
	['dead-letter-exchange', 'arg.dlx', false, 'text'],
	['dead-letter-routing-key', 'arg.dlk', false, 'text'],
	['dead-letter-strategy', 'arg.strategy', false, ['at-most-once', 'at-least-once']],
	['consumer-timeout', 'arg.consumer_timeout', false, 'number'],
	['alternate-exchange', 'arg.alternate', false, 'text'],
];
const APPLY = { policies: ['all', 'queues', 'classic_queues', 'quorum_queues', 'exchanges'],
	'operator-policies': ['queues', 'classic_queues', 'quorum_queues'] };

/** A field can show the value: others stay as JSON. An empty text is a value, too: the default exchange. */
const fits = (kind, value) => (kind === 'number' ? typeof value === 'number' : Array.isArray(kind) ? kind.includes(value) : typeof value === 'string' && value !== '');

function split(definition, keys) {
	const more = { ...definition }, fields = {};
	for (const [key, , , kind] of keys) {
		fields[key] = key in more && fits(kind, more[key]) ? String(more[key]) : '';
		if (fields[key] !== '')
			delete more[key];
	}
	return { ...fields, more: Object.keys(more).length ? JSON.stringify(more, null, 1) : '' };
}

function join(values, keys) {
	const definition = parseObject(values.more, t('policy.more'));
	for (const [key, , , kind] of keys)
		if (values[key] !== '')
			definition[key] = kind === 'number' ? Number(values[key]) : values[key];
	return definition;
}

function KeyField({ form, row: [key, label, , kind] }) {
	if (Array.isArray(kind))
		return <Select form={form} name={key} label={t(label)} hint={key} options={[['', t('policy.unset')], ...kind]} />;
	return <Text form={form} name={key} label={t(label)} hint={key} type={kind} min={kind === 'number' ? 0 : undefined} />;
}

export function PolicyForm({ kind, policy, vhost, after }) {
	const { vhosts } = useSession();
	const isNew = policy.name === undefined, keys = KEYS.filter(([, , operator]) => operator || kind === 'policies');
	const first = vhost || (vhosts.includes('/') ? '/' : vhosts[0]);
	const form = useForm({ name: policy.name ?? '', vhost: policy.vhost ?? first, pattern: policy.pattern ?? '',
		apply: policy['apply-to'] ?? APPLY[kind][0], priority: String(policy.priority ?? 0), ...split(policy.definition ?? {}, keys) });
	const v = form.values;
	const submit = async () => {
		await put(path(kind, v.vhost, v.name), { pattern: v.pattern, 'apply-to': v.apply, priority: Number(v.priority || 0),
			definition: join(v, keys) });
		say(t('policy.saved', { name: v.name }));
		after();
	};
	const apply = [...new Set([...APPLY[kind], v.apply])].map((a) => [a, t('policy.apply.' + a)]);
	return (
		<Form submit={submit} label={isNew ? t(kind + '.make') : t('save')}>
			<div class="fields">
				<Text form={form} name="name" label={t('name')} required maxLength={255} disabled={!isNew} autofocus={isNew} />
				<Select form={form} name="vhost" label={t('vhost')} options={vhosts} disabled={!isNew} />
				<Select form={form} name="apply" label={t('policy.apply')} options={apply} />
				<Text form={form} name="priority" label={t('priority')} type="number" hint={t('policy.priority.hint')} />
			</div>
			<Text form={form} name="pattern" label={t('policy.pattern')} class="mono" hint={t('policy.pattern.hint')} />
			<Matches vhost={v.vhost} pattern={v.pattern} apply={v.apply} />
			<h3>{t('policy.definition')}</h3>
			<div class="fields">{keys.map((row) => <KeyField key={row[0]} form={form} row={row} />)}</div>
			<details open={v.more !== ''}><summary>{t('policy.more')}</summary>
				<Area form={form} name="more" label={t('policy.more')} hint='{"dead-letter-exchange": ""}' rows={3} />
			</details>
		</Form>
	);
}

const SHOWN = 8, MOST = 500; // names shown; rows asked for where their types have to be looked at
const TYPES = { classic_queues: 'classic', quorum_queues: 'quorum' };

/** Names that match, of one list: (?-i), since policies look at the case and lists do not. */
async function match(list, vhost, pattern, type, signal) {
	const { items, filtered_count: found, total_count: total } = await get(path(list, vhost) + query({ page: 1, page_size: type ? MOST : SHOWN,
		use_regex: 'true', name: '(?-i)' + pattern, columns: 'name,type', disable_stats: 'true' }), { signal });
	const right = type ? items.filter((q) => q.type === type) : items;
	return { found: type && found <= MOST ? right.length : found, total, names: right.slice(0, SHOWN).map((q) => q.name),
		anyType: !!type && found > MOST };
}

/** What the pattern matches now, asked for when typing has paused. */
function Matches({ vhost, pattern, apply }) {
	const [state, setState] = useState({});
	useEffect(() => {
		const control = new AbortController();
		const ask = async () => {
			try {
				setState({ queues: apply === 'exchanges' ? null : await match('queues', vhost, pattern, TYPES[apply], control.signal),
					exchanges: apply === 'all' || apply === 'exchanges' ? await match('exchanges', vhost, pattern, undefined, control.signal) : null });
			} catch (error) {
				if (!control.signal.aborted)
					setState({ error });
			}
		};
		const timer = setTimeout(ask, 250);
		return () => {
			clearTimeout(timer);
			control.abort();
		};
	}, [vhost, pattern, apply]);
	const wrong = state.error && (state.error.status === 400 ? t('policy.no_pattern') : state.error.reason);
	return (
		<div class="matches" role="status">
			{wrong && <p class="refused">{wrong}</p>}
			{state.queues && <Matched of={state.queues} text="policy.matches.queues" />}
			{state.exchanges && <Matched of={state.exchanges} text="policy.matches.exchanges" />}
		</div>
	);
}

const Matched = ({ of, text }) => (
	<p>
		{t(text, { found: number(of.found), total: number(of.total) })}{of.anyType && ' ' + t('policy.matches.any')}{of.names.length > 0 && ': '}
		{of.names.map((name, i) => <>{i > 0 && ', '}<Name key={name}>{name === '' ? t('exchange.default') : name}</Name></>)}
		{of.found > of.names.length && of.names.length > 0 && ', …'}
	</p>
);
