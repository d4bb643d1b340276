// SPDX-License-Identifier: Apache-2.0
// All queues, and the form that declares one.
import { useState } from 'preact/hooks';
import { path, put } from '../api.js';
import { t } from '../i18n/index.js';
import { Dialog } from '../lib/dialog.jsx';
import { Area, Check, Form, Select, Text, parseObject, useForm } from '../lib/form.jsx';
import { number, rate } from '../lib/format.js';
import { Badge, Name } from '../lib/parts.jsx';
import { useDeclaring } from '../lib/rights.jsx';
import { ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { go, href, setParams, useRoute } from '../router.js';

/** Short words for what a queue is: its type, and D, AD, E, and what its arguments and policy make of it. */
export function Features({ queue }) {
	const words = [[queue.durable, t('durable'), 'D'], [queue.auto_delete, t('auto_delete'), 'AD'], [queue.exclusive, t('exclusive'), 'E']];
	return (
		<span class="features">
			<Badge>{queue.type}</Badge>
			{words.filter(([is]) => is).map(([, text, mark]) => <Badge key={mark} title={text}>{mark}</Badge>)}
			{Object.keys(queue.arguments ?? {}).filter((a) => a !== 'x-queue-type').map((a) => (
				<Badge key={a} title={`${a}: ${JSON.stringify(queue.arguments[a])}`}>{a.replace(/^x-/, '')}</Badge>
			))}
			{queue.policy && <Badge title={t('policy')}><bdi>{queue.policy}</bdi></Badge>}
		</span>
	);
}

export const State = ({ state }) => <Badge kind={state === 'running' || state === 'idle' ? 'ok' : 'warn'}>{t('state.' + state)}</Badge>;

const columns = () => [
	{ key: 'name', title: t('name'), sort: 'name', cell: (q) => <a href={href('queues', q.vhost, q.name)}><Name>{q.name}</Name></a> },
	{ key: 'vhost', title: t('vhost'), sort: 'vhost' },
	{ key: 'features', title: t('features'), needs: ['type', 'durable', 'auto_delete', 'exclusive', 'arguments', 'policy'],
		cell: (q) => <Features queue={q} /> },
	{ key: 'state', title: t('state'), sort: 'state', cell: (q) => <State state={q.state} /> },
	{ key: 'messages_ready', title: t('messages.ready'), sort: 'messages_ready', number: true, cell: (q) => number(q.messages_ready) },
	{ key: 'messages_unacknowledged', title: t('messages.unacked'), sort: 'messages_unacknowledged', number: true,
		cell: (q) => number(q.messages_unacknowledged) },
	{ key: 'messages', title: t('messages.all'), sort: 'messages', number: true, cell: (q) => number(q.messages) },
	{ key: 'consumers', title: t('page.consumers'), sort: 'consumers', number: true,
		cell: (q) => (q.messages && !q.consumers ? <Badge kind="warn">0</Badge> : number(q.consumers)) },
	{ key: 'in', title: t('line.publish'), sort: 'message_stats.publish_details.rate', number: true,
		needs: ['message_stats.publish_details.rate'], cell: (q) => rate(q.message_stats?.publish_details?.rate ?? 0) },
	{ key: 'out', title: t('line.deliver'), sort: 'message_stats.deliver_get_details.rate', number: true,
		needs: ['message_stats.deliver_get_details.rate'], cell: (q) => rate(q.message_stats?.deliver_get_details?.rate ?? 0) },
];

/** What the form offers without JSON: [argument, label's key, of the classic type only]. */
const NUMBERS = [['x-message-ttl', 'arg.ttl'], ['x-max-length', 'arg.max_length'], ['x-max-length-bytes', 'arg.max_bytes'],
	['x-expires', 'arg.expires'], ['x-max-priority', 'arg.priority', true]];
const TEXTS = [['x-dead-letter-exchange', 'arg.dlx'], ['x-dead-letter-routing-key', 'arg.dlk']];

function Declare({ vhosts, onDone }) {
	const form = useForm({ vhost: vhosts.includes('/') ? '/' : vhosts[0], name: '', type: 'classic', durable: true, auto_delete: false, more: '' });
	const submit = async () => {
		const v = form.values, args = parseObject(v.more, t('arguments'));
		if (v.type !== 'classic')
			args['x-queue-type'] = v.type;
		for (const [arg, , classic] of NUMBERS)
			if (v[arg] && (!classic || v.type === 'classic'))
				args[arg] = Number(v[arg]);
		for (const [arg] of TEXTS)
			if (v[arg])
				args[arg] = v[arg];
		await put(path('queues', v.vhost, v.name), { durable: v.durable, auto_delete: v.auto_delete, arguments: args });
		say(t('queue.declared', { name: v.name }));
		onDone(v.vhost, v.name);
	};
	const classic = form.values.type === 'classic';
	return (
		<Form submit={submit} label={t('queue.declare')}>
			<div class="fields">
				<Text form={form} name="name" label={t('name')} required autofocus />
				<Select form={form} name="vhost" label={t('vhost')} options={vhosts} />
				<Select form={form} name="type" label={t('type')} options={['classic', 'quorum']} />
			</div>
			<Check form={form} name="durable" label={t('durable')} disabled={!classic} />
			{classic && <Check form={form} name="auto_delete" label={t('auto_delete')} />}
			<details><summary>{t('arguments')}</summary>
				<div class="fields">
					{NUMBERS.filter(([, , only]) => !only || classic).map(([arg, key]) => (
						<Text key={arg} form={form} name={arg} label={t(key)} type="number" min="0" value={form.values[arg] ?? ''} />))}
					{TEXTS.map(([arg, key]) => <Text key={arg} form={form} name={arg} label={t(key)} value={form.values[arg] ?? ''} />)}
				</div>
				<Area form={form} name="more" label={t('arguments.more')} hint='{"x-single-active-consumer": true}' rows={3} />
			</details>
		</Form>
	);
}

export function Queues() {
	const { params } = useRoute();
	const [declaring, setDeclaring] = useState(params.declare === '1');
	const vhosts = useDeclaring();
	const close = () => {
		setDeclaring(false);
		setParams({ declare: null });
	};
	return (
		<>
			<h1>{t('page.queues')}</h1>
			<ServerTable name="queues" path="queues" columns={columns()} sort="name" rowKey={(q) => q.vhost + '/' + q.name} 
				empty={<>{t('queues.none')} {vhosts.length > 0 && <button onClick={() => setDeclaring(true)}>{t('queue.declare')}…</button>}</>}
				tools={() => (
					<>
						{vhosts.length > 0 && <button class="primary" onClick={() => setDeclaring(true)}>{t('queue.declare')}…</button>}
						{declaring && vhosts.length > 0 && (
							<Dialog title={t('queue.declare')} wide onClose={close}>
								<Declare vhosts={vhosts} onDone={(vhost, name) => go('queues', vhost, name)} />
							</Dialog>
						)}
					</>
				)} />
		</>
	);
}
