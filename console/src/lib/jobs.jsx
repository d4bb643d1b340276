// SPDX-License-Identifier: Apache-2.0
// Moves and replays under way: how far they are, what stays and why; and the form that starts a move.
import { del, get, path, post } from '../api.js';
import { t } from '../i18n/index.js';
import { href } from '../router.js';
import { Destroy } from './dialog.jsx';
import { Form, Select, Text, useForm } from './form.jsx';
import { number, rate, time } from './format.js';
import { EVERY, usePolled } from './hooks.js';
import { Badge, Card, Meter, Name } from './parts.jsx';
import { Rows } from './table.jsx';
import { say } from './toast.jsx';

const BUSY = 1000; // milliseconds between two questions while a job runs
const KINDS = { running: 'plain', done: 'ok', cancelled: 'warn', failed: 'bad' };

const Progress = ({ job }) => (job.state === 'running'
	? <Meter plain used={job.done + job.failed} limit={job.total} text={t('job.progress', { done: number(job.done), total: number(job.total), rate: rate(job.rate_now) })} />
	: t('job.over', { done: number(job.done), ended: time(job.ended) }));

/* Why messages stay, why the job failed, and what it waits for. */
const Reasons = ({ job }) => (
	<ul class="value">
		{job.waiting && <li>{t('job.waiting', { why: job.waiting })}</li>}
		{job.reason && <li>{job.reason}</li>}
		{Object.entries(job.reasons).map(([why, n]) => <li key={why}>{number(n)} × <bdi>{why}</bdi></li>)}
	</ul>
);

function Target({ job }) {
	if (job.kind === 'replay')
		return t('job.back');
	const { queue, exchange, routing_key: key } = job.destination;
	if (queue !== undefined)
		return <a href={href('queues', job.vhost, queue)}><Name>{queue}</Name></a>;
	return <><Name>{exchange === '' ? t('exchange.default') : exchange}</Name>{key !== null && <> · <Name>{key}</Name></>}</>;
}

const columns = (again) => [
	{ key: 'state', title: t('state'), cell: (j) => <Badge kind={KINDS[j.state]}>{t('job.state.' + j.state)}</Badge> },
	{ key: 'target', title: t('job.target'), cell: (j) => <Target job={j} /> },
	{ key: 'progress', title: t('job.done'), cell: (j) => <Progress job={j} /> },
	{ key: 'failed', title: t('job.failed'), number: true, cell: (j) => number(j.failed) },
	{ key: 'reasons', title: t('job.reasons'), cell: (j) => <Reasons job={j} /> },
	{ key: 'user', title: t('user') },
	{ key: 'do', title: '', cell: (j) => j.state === 'running' && <Destroy small label={t('job.cancel')} question={t('job.cancel.sure')}
		run={async () => { await del(path('hermes', 'jobs', j.id)); again(); }} /> },
];

/** Those of one queue, the latest first; nothing if there are none. `started` changes when one was started here. */
export function Jobs({ vhost, name, started, after }) {
	const mine = async (signal) => (await get('hermes/jobs', { signal })).filter((j) => j.vhost === vhost && j.queue === name);
	const { data, again } = usePolled(async (signal) => {
		const jobs = await mine(signal);
		if (jobs.some((j) => j.state === 'running'))
			after?.();
		return jobs;
	}, [vhost, name, started], started ? BUSY : EVERY);
	return data?.length > 0 && (
		<Card title={t('jobs')}><Rows columns={columns(again)} rows={data} rowKey={(j) => j.id} label={t('jobs')} /></Card>
	);
}

/** What is asked for a rate: undefined, or a number. */
export const asNumber = (text) => (text === '' ? undefined : Number(text));

export function Move({ vhost, name, ready, onDone }) {
	const form = useForm({ to: 'queue', queue: '', exchange: '', key: '', count: '', rate: '' });
	const v = form.values;
	const submit = async () => {
		const destination = v.to === 'queue' ? v.queue : { exchange: v.exchange, routing_key: v.key === '' ? undefined : v.key };
		await post('hermes/queues/' + path(vhost, name) + '/move', { destination, count: asNumber(v.count), rate: asNumber(v.rate) });
		say(t('job.started'));
		onDone();
	};
	return (
		<Form submit={submit} label={t('move')}>
			<p>{t('move.what', { n: number(ready) })}</p>
			<div class="fields">
				<Select form={form} name="to" label={t('job.target')} options={[['queue', t('queue')], ['exchange', t('exchange')]]} />
				{v.to === 'queue' && <Text form={form} name="queue" label={t('move.queue')} required autofocus />}
				{v.to === 'exchange' && <Text form={form} name="exchange" label={t('move.exchange')} required />}
				{v.to === 'exchange' && <Text form={form} name="key" label={t('routing_key')} hint={t('move.key.hint')} />}
				<Text form={form} name="count" label={t('move.count')} type="number" min="1" hint={t('move.count.hint')} />
				<Text form={form} name="rate" label={t('job.rate')} type="number" min="1" max="1000000" hint={t('job.rate.hint')} />
			</div>
		</Form>
	);
}
