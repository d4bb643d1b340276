// SPDX-License-Identifier: Apache-2.0
// One queue: how it is, who reads it, what is bound to it, its messages, and what can be done to it.
import { useState } from 'preact/hooks';
import { del, get, path, post, put, query } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy, Dialog } from '../lib/dialog.jsx';
import { DEFAULT, queueHref } from '../lib/exchange.jsx';
import { Form, Select, Text, useForm } from '../lib/form.jsx';
import { bytes, number, rate, time } from '../lib/format.js';
import { Histories } from '../lib/history.jsx';
import { usePolled } from '../lib/hooks.js';
import { Jobs, Move } from '../lib/jobs.jsx';
import { Message } from '../lib/message.jsx';
import { Card, Facts, Name, Refused, Tabs, Value } from '../lib/parts.jsx';
import { Publish } from '../lib/publish.jsx';
import { useRights } from '../lib/rights.jsx';
import { Rows } from '../lib/table.jsx';
import { Tail } from '../lib/tail.jsx';
import { attempt, say } from '../lib/toast.jsx';
import { go, setParams, useRoute } from '../router.js';
import { QueueBindings } from './bindings.jsx';
import { consumerColumns } from './channels.jsx';
import { Features, State } from './queues.jsx';

const load = async (vhost, name, signal) => {
	const where = path('queues', vhost, name);
	const [queue, bound] = await Promise.all([get(where, { signal }), get(where + '/bindings?page=1&page_size=1&pagination=true&columns=source', { signal })]);
	return { queue, bindings: bound.total_count };
};

export function Queue({ args: [vhost, name] }) {
	const { params } = useRoute();
	const { data, error, again } = usePolled((signal) => load(vhost, name, signal), [vhost, name]);
	const may = useRights(vhost, 'queue', name), toDefault = useRights(vhost, 'exchange', DEFAULT);
	const tab = params.tab ?? 'state';
	const tabs = ['state', 'consumers', 'bindings', ...(may.read ? ['look', 'messages', 'live'] : []), ...(toDefault.write ? ['publish'] : [])];
	return (
		<>
			<h1>{t('queue')} <Name>{name}</Name> <small class="muted"><bdi>{vhost}</bdi></small></h1>
			<Refused error={error} />
			<Tabs choices={tabs.map((k) => [k, t('queue.tab.' + k)])} value={tab} onChange={(k) => setParams({ tab: k, page: null, search: null, sort: null, desc: null })} />
			{data && tab === 'state' && isNew(data) && <Next vhost={vhost} name={name} bind={may.write} publish={toDefault.write} />}
			{data && tab === 'state' && <About queue={data.queue} vhost={vhost} name={name} again={again} may={may} />}
			{data && tab === 'consumers' && <Consumers consumers={data.queue.consumer_details ?? []} />}
			{data && tab === 'bindings' && <QueueBindings vhost={vhost} name={name} may={may.write} />}
			{data && may.read && tab === 'look' && <Look vhost={vhost} name={name} />}
			{data && may.read && tab === 'messages' && <Get vhost={vhost} name={name} after={again} />}
			{data && may.read && tab === 'live' && <Tail what="queue" vhost={vhost} name={name} />}
			{data && toDefault.write && tab === 'publish' && <Card title={t('publish.queue')}><Publish vhost={vhost} exchange="" routingKey={name} after={again} /></Card>}
		</>
	);
}

/* Nothing has happened to it yet: only the default exchange leads to it. */
const isNew = ({ queue, bindings }) => bindings <= 1 && !queue.messages && !queue.consumers;

const Next = ({ vhost, name, bind, publish }) => (
	<p class="hint">{t('queue.next')} {bind && <a href={queueHref(vhost, name, 'bindings')}>{t('queue.next.bind')}</a>}{bind && publish && ' · '}
		{publish && <a href={queueHref(vhost, name, 'publish')}>{t('queue.next.publish')}</a>}</p>
);

function About({ queue, vhost, name, again, may }) {
	const [moving, setMoving] = useState(false);
	const [started, setStarted] = useState(0);
	const stats = queue.message_stats ?? {};
	const of = (key) => rate(stats[key + '_details']?.rate ?? 0);
	return (
		<>
			<Histories path={'queues/' + path(vhost, name)} charts={[
				{ title: t('chart.backlog'), lines: ['ready', 'unacked'], unit: 'count' },
				{ title: t('chart.rates'), lines: ['publish', 'deliver', 'ack', 'redeliver'], unit: 'rate' },
			]} />
			<div class="cards">
				<Card title={t('queue.tab.state')}>
					<Facts rows={[
						[t('state'), <State state={queue.state} />],
						[t('features'), <Features queue={queue} />],
						[t('messages.ready'), number(queue.messages_ready)],
						[t('messages.unacked'), number(queue.messages_unacknowledged)],
						[t('messages.bytes'), bytes(queue.message_bytes)],
						[t('memory'), bytes(queue.memory)],
						[t('page.consumers'), number(queue.consumers)],
						[t('single_active'), queue.single_active_consumer_tag ? <bdi>{queue.single_active_consumer_tag}</bdi> : undefined],
						[t('idle_since'), queue.idle_since && time(queue.idle_since)],
						[t('rates'), `${t('line.publish')} ${of('publish')}, ${t('line.deliver')} ${of('deliver_get')}, ${t('line.ack')} ${of('ack')}`],
					]} />
				</Card>
				<Card title={t('queue.settings')}>
					<Facts rows={[
						[t('arguments'), <Value of={queue.arguments} />],
						[t('policy'), queue.policy ? <bdi>{queue.policy}</bdi> : undefined],
						[t('operator_policy'), queue.operator_policy ? <bdi>{queue.operator_policy}</bdi> : undefined],
						[t('policy.effective'), <Value of={queue.effective_policy_definition ?? {}} />],
					]} />
				</Card>
				{(may.configure || may.read) && (
					<Card title={t('actions')}><Actions vhost={vhost} name={name} queue={queue} again={again} may={may} move={() => setMoving(true)} /></Card>
				)}
			</div>
			<Jobs vhost={vhost} name={name} started={started} after={again} />
			{moving && (
				<Dialog title={t('move')} wide onClose={() => setMoving(false)}>
					<Move vhost={vhost} name={name} ready={queue.messages_ready} onDone={() => { setMoving(false); setStarted(started + 1); again(); }} />
				</Dialog>
			)}
		</>
	);
}

function Actions({ vhost, name, queue, again, may, move }) {
	const pause = async () => {
		const where = 'hermes/queues/' + path(vhost, name) + '/pause', paused = queue.state === 'paused';
		await attempt(() => (paused ? del(where) : put(where)), t(paused ? 'queue.resumed' : 'queue.paused', { name }));
		again();
	};
	const purge = async () => {
		await del(path('queues', vhost, name, 'contents'));
		say(t('queue.purged', { name }));
		again();
	};
	const remove = async () => {
		await del(path('queues', vhost, name));
		say(t('queue.deleted', { name }));
		go('queues');
	};
	return (
		<div class="bar">
			{may.configure && <button onClick={pause} title={t('queue.pause.what')}>{queue.state === 'paused' ? t('queue.resume') : t('queue.pause')}</button>}
			{may.read && <button onClick={move}>{t('move')}…</button>}
			{may.read && <Destroy label={t('queue.purge')} question={t('queue.purge.sure', { n: number(queue.messages_ready) })} name={queue.messages_ready ? name : undefined} run={purge} />}
			{may.configure && <Destroy label={t('queue.delete')} question={t('queue.delete.sure', { n: number(queue.messages), consumers: number(queue.consumers) })} name={name} run={remove} />}
		</div>
	);
}

/* All but the queue, which is this one. */
const columnsHere = () => consumerColumns().filter((c) => c.key !== 'queue').map((c) => ({ ...c, sort: undefined }));

const Consumers = ({ consumers }) => <Rows columns={columnsHere()} rows={consumers} empty={t('queue.no_consumers')} label={t('page.consumers')}
	rowKey={(c) => (c.channel_details?.name ?? '') + c.consumer_tag} />;

const LOOK = 20; // messages of a page

function Look({ vhost, name }) {
	const { params } = useRoute();
	const offset = Math.max(0, parseInt(params.offset, 10) || 0);
	const where = 'hermes/queues/' + path(vhost, name) + '/browse' + query({ offset, count: LOOK, max_bytes: 1 << 16 });
	const { data, error, again } = usePolled((signal) => get(where, { signal }), [where], 1 << 30);
	return (
		<>
			<Refused error={error} />
			<div class="bar">
				<span class="count">{data && t('look.from', { from: number(offset + 1), ready: number(data.ready) })}</span>
				<span class="grow" />
				<button onClick={again}>{t('look.again')}</button>
				<button disabled={offset === 0} onClick={() => setParams({ offset: Math.max(0, offset - LOOK) || null })}>{t('table.previous')}</button>
				<button disabled={!data || offset + LOOK >= data.ready} onClick={() => setParams({ offset: offset + LOOK })}>{t('table.next')}</button>
			</div>
			{data?.messages.length === 0 && <p class="muted" role="status">{t('get.nothing')}</p>}
			{data?.messages.map((m) => <Message key={m.id} message={m} />)}
		</>
	);
}

const MODES = ['ack_requeue_true', 'ack_requeue_false', 'reject_requeue_true', 'reject_requeue_false'];

function Get({ vhost, name, after }) {
	const form = useForm({ count: '1', mode: MODES[0] });
	const [messages, setMessages] = useState(null);
	const submit = async () => {
		setMessages(await post(path('queues', vhost, name, 'get'), { count: Number(form.values.count), ackmode: form.values.mode, encoding: 'auto', truncate: 1 << 20 }));
		after();
	};
	return (
		<>
			<Card title={t('get')}>
				<Form submit={submit} label={t('get')} danger={form.values.mode.endsWith('false')}>
					<div class="fields">
						<Text form={form} name="count" label={t('get.count')} type="number" min="1" max="1000" />
						<Select form={form} name="mode" label={t('get.mode')} options={MODES.map((m) => [m, t('get.' + m)])} />
					</div>
				</Form>
			</Card>
			{messages && !messages.length && <p class="muted" role="status">{t('get.nothing')}</p>}
			{messages?.map((m, i) => <Message key={i} message={m} />)}
		</>
	);
}
