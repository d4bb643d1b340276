// SPDX-License-Identifier: Apache-2.0
// Dead letters: the queues that hold some; and those of one queue, to be looked at and sent back.
import { useState } from 'preact/hooks';
import { get, path, post, query } from '../api.js';
import { t } from '../i18n/index.js';
import { Dialog } from '../lib/dialog.jsx';
import { Form, Text, useForm } from '../lib/form.jsx';
import { bytes, number, time } from '../lib/format.js';
import { usePolled } from '../lib/hooks.js';
import { Jobs, asNumber } from '../lib/jobs.jsx';
import { Message } from '../lib/message.jsx';
import { Badge, Name, Refused } from '../lib/parts.jsx';
import { Rows, ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { href, setParams, useRoute } from '../router.js';

const SHOWN = 50; // letters of a page
const BODY = 64 << 10; // bytes of each
const reason = (why) => (['rejected', 'expired', 'maxlen', 'delivery_limit'].includes(why) ? t('letter.' + why) : why);
const Exchange = ({ name }) => (name === '' ? t('exchange.default') : <Name>{name}</Name>);

const columns = () => [
	{ key: 'name', title: t('queue'), sort: 'name', cell: (q) => <a href={href('dead-letters', q.vhost, q.name)}><Name>{q.name}</Name></a> },
	{ key: 'vhost', title: t('vhost'), sort: 'vhost' },
	{ key: 'messages_ready', title: t('messages.ready'), sort: 'messages_ready', number: true, cell: (q) => number(q.messages_ready) },
	{ key: 'dead_letters', title: t('letters.came'), sort: 'dead_letters', number: true, cell: (q) => number(q.dead_letters) },
	{ key: 'first', title: t('letters.first'), needs: ['first.reason', 'first.count', 'first.queue', 'first.exchange', 'first.time'],
		cell: (q) => q.first && <><Badge kind="warn">{reason(q.first.reason)}</Badge> <Name>{q.first.queue}</Name> · {time(q.first.time * 1000)}</> },
];

export const DeadLetters = () => (
	<>
		<h1>{t('page.dead-letters')}</h1>
		<p class="muted">{t('letters.what')}</p>
		<ServerTable name="letters" path="hermes/dead-letters" columns={columns()} sort="name" rowKey={(q) => q.vhost + '/' + q.name}
			empty={t('letters.none')} />
	</>
);

const letterColumns = ({ chosen, choose, open }) => [
	{ key: 'chosen', title: '', narrow: true, cell: (m) => <input type="checkbox" checked={chosen.has(m.id)} aria-label={t('letter.choose', { id: m.id })}
		onChange={() => choose(m.id)} /> },
	{ key: 'reason', title: t('letter.reason'), cell: (m) => (m.first_death ? <Badge kind="warn">{reason(m.reason)}</Badge> : <Badge>{t('letter.none')}</Badge>) },
	{ key: 'count', title: t('letter.count'), number: true, cell: (m) => number(m.count) },
	{ key: 'from', title: t('letter.from'), cell: (m) => m.first_death && <><Exchange name={m.first_death.exchange} /> · <Name>{m.first_death.routing_keys[0]}</Name></> },
	{ key: 'queue', title: t('letter.died'), cell: (m) => m.first_death && <Name>{m.first_death.queue}</Name> },
	{ key: 'time', title: t('letter.time'), cell: (m) => m.first_death && time(m.first_death.time * 1000) },
	{ key: 'size', title: t('payload'), number: true, cell: (m) => bytes(m.size) },
	{ key: 'show', title: '', cell: (m) => <button class="small" onClick={() => open(m)}>{t('letter.show')}</button> },
];

function Replay({ vhost, name, ids, n, onDone }) {
	const form = useForm({ rate: '' });
	const submit = async () => {
		await post('hermes/dead-letters/' + path(vhost, name) + '/replay', { ...(ids ? { ids } : { all: true }), rate: asNumber(form.values.rate) });
		say(t('job.started'));
		onDone();
	};
	return (
		<Form submit={submit} label={t('replay')}>
			<p>{t('replay.what', { n: number(n) })}</p>
			<div class="fields">
				<Text form={form} name="rate" label={t('job.rate')} type="number" min="1" max="1000000" hint={t('job.rate.hint')} autofocus />
			</div>
		</Form>
	);
}

export function Letters({ args: [vhost, name] }) {
	const { params } = useRoute();
	const offset = Math.max(0, parseInt(params.offset, 10) || 0);
	const [chosen, setChosen] = useState(new Set());
	const [shown, setShown] = useState(null);
	const [replay, setReplay] = useState(null);
	const [started, setStarted] = useState(0);
	const { data, error, again } = usePolled((signal) => get('hermes/dead-letters/' + path(vhost, name) + query({ offset, count: SHOWN, max_bytes: BODY }), { signal }),
		[vhost, name, offset]);
	const choose = (id) => setChosen((old) => {
		const next = new Set(old);
		if (!next.delete(id))
			next.add(id);
		return next;
	});
	const done = () => {
		setReplay(null);
		setChosen(new Set());
		setStarted((n) => n + 1);
		again();
	};
	return (
		<>
			<h1>{t('letters.of')} <Name>{name}</Name> <small class="muted"><bdi>{vhost}</bdi></small></h1>
			<Refused error={error} />
			<div class="bar">
				<a href={href('queues', vhost, name)}>{t('letters.queue')}</a>
				<span class="count">{data && t('letters.ready', { n: number(data.ready) })}</span>
				<span class="grow" />
				<button disabled={!chosen.size} onClick={() => setReplay([...chosen])}>{t('replay.chosen', { n: number(chosen.size) })}…</button>
				<button class="primary" disabled={!data?.ready} onClick={() => setReplay('all')}>{t('replay.all')}…</button>
			</div>
			<Jobs vhost={vhost} name={name} started={started} after={again} />
			{data && <Rows columns={letterColumns({ chosen, choose, open: setShown })} rows={data.messages} rowKey={(m) => m.id} label={t('page.dead-letters')}
				empty={t('letters.nothing')} />}
			<div class="bar pages">
				<button disabled={offset === 0} onClick={() => setParams({ offset: Math.max(0, offset - SHOWN) })}>{t('table.previous')}</button>
				<button disabled={!data || offset + SHOWN >= data.ready} onClick={() => setParams({ offset: offset + SHOWN })}>{t('table.next')}</button>
			</div>
			{shown && <Dialog title={t('letter.of', { id: shown.id })} wide onClose={() => setShown(null)}><Message message={shown} /></Dialog>}
			{replay && (
				<Dialog title={t('replay')} onClose={() => setReplay(null)}>
					<Replay vhost={vhost} name={name} ids={replay === 'all' ? undefined : replay} n={replay === 'all' ? data.ready : replay.length} onDone={done} />
				</Dialog>
			)}
		</>
	);
}
