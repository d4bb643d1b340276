// SPDX-License-Identifier: Apache-2.0
// Is the node well, and which queue is not?
import { get, query } from '../api.js';
import { t } from '../i18n/index.js';
import { bytes, duration, number, rate } from '../lib/format.js';
import { Histories } from '../lib/history.jsx';
import { usePolled } from '../lib/hooks.js';
import { Badge, Card, Facts, Meter, Name, Refused } from '../lib/parts.jsx';
import { Rows } from '../lib/table.jsx';
import { href } from '../router.js';
import { useSession } from '../session.js';

const TOP = 8;
const TOP_EVERY = 10000; // milliseconds: with very many queues it is work
const topQueues = (sort, reverse) => 'queues' + query({ page: 1, page_size: TOP, sort, sort_reverse: reverse,
	columns: 'name,vhost,messages,consumers,message_stats,head_arrived' });

async function load(session, signal) {
	const [overview, nodes] = await Promise.all([
		get('overview', { signal }),
		session.mayMonitor ? get('nodes', { signal }) : [],
	]);
	return { overview, node: nodes[0] };
}

/** What is wrong, each with what to do about it. */
function troubles({ overview, node }) {
	const found = [];
	const drain = overview.hermes?.maintenance;
	if (drain?.draining)
		found.push({ kind: 'warn', text: t('trouble.drain', { reason: drain.reason, left: number(drain.messages_left ?? 0), rest: number(drain.messages_not_taken ?? 0) }) });
	if (node?.mem_alarm)
		found.push({ kind: 'bad', text: t('trouble.memory', { used: bytes(node.mem_used), limit: bytes(node.mem_limit) }) });
	if (node?.disk_free_alarm)
		found.push({ kind: 'bad', text: t('trouble.disk', { free: bytes(node.disk_free), limit: bytes(node.disk_free_limit) }) });
	if (node && node.fd_used > 0.9 * node.fd_total)
		found.push({ kind: 'warn', text: t('trouble.files', { used: number(node.fd_used), limit: number(node.fd_total) }) });
	if (!node && overview.hermes?.alarms?.length)
		found.push({ kind: 'bad', text: t('trouble.alarm') });
	return found;
}

/** data: { overview, node }. */
export function Health({ data }) {
	const found = troubles(data);
	if (!found.length)
		return <p class="health ok" role="status"><Badge kind="ok">{t('health.ok')}</Badge> {t('health.ok.text')}</p>;
	return found.map((f) => <p key={f.text} class={'health ' + f.kind} role="alert"><Badge kind={f.kind}>{t('health.' + f.kind)}</Badge> {f.text}</p>);
}

function Totals({ overview }) {
	const objects = overview.object_totals ?? {}, queues = overview.queue_totals ?? {}, stats = overview.message_stats ?? {};
	const rateOf = (name) => stats[name + '_details']?.rate ?? 0;
	const tiles = [
		[t('messages.ready'), number(queues.messages_ready ?? 0), 'queues'],
		[t('messages.unacked'), number(queues.messages_unacknowledged ?? 0), 'queues'],
		[t('line.publish'), rate(rateOf('publish')), null],
		[t('line.deliver'), rate(rateOf('deliver_get')), null],
		...['connections', 'channels', 'consumers', 'queues', 'exchanges'].map((k) => [t('page.' + k), number(objects[k]), k]),
	];
	return (
		<div class="tiles">
			{tiles.map(([label, value, page]) => {
				const inside = <><span class="value">{value}</span><span class="label">{label}</span></>;
				return page ? <a key={label} href={href(page)}>{inside}</a> : <div key={label}>{inside}</div>;
			})}
		</div>
	);
}

const queueColumn = () => ({ key: 'name', title: t('queue'), cell: (q) => (
	<><a href={href('queues', q.vhost, q.name)}><Name>{q.name}</Name></a>{q.vhost !== '/' && <div class="muted"><Name>{q.vhost}</Name></div>}</>) });
const countColumns = () => [
	{ key: 'messages', title: t('messages'), number: true, cell: (q) => number(q.messages) },
	{ key: 'consumers', title: t('page.consumers'), number: true, cell: (q) => (q.consumers || !q.messages ? number(q.consumers)
		: <Badge kind="warn">{t('no_consumers')}</Badge>) },
];
const longestColumns = () => [queueColumn(), ...countColumns(),
	{ key: 'rates', title: t('top.rates'), number: true,
		cell: (q) => `${rate(q.message_stats?.publish_details?.rate ?? 0)} / ${rate(q.message_stats?.deliver_get_details?.rate ?? 0)}` },
];
const oldestColumns = () => [queueColumn(),
	{ key: 'age', title: t('top.age'), number: true, cell: (q) => duration(Math.max(0, Date.now() - q.head_arrived)) },
	...countColumns(),
];

const address = (l) => (l.ip_address.includes(':') ? `[${l.ip_address}]:${l.port}` : `${l.ip_address}:${l.port}`);

function Node({ node, overview }) {
	return (
		<Facts rows={[
			[t('node.name'), <bdi>{overview.node}</bdi>],
			[t('node.version'), overview.hermes_version],
			[t('node.uptime'), node && duration(node.uptime)],
			[t('node.memory'), node && <Meter used={node.mem_used} limit={node.mem_limit} text={`${bytes(node.mem_used)} / ${bytes(node.mem_limit)}`} />],
			[t('node.disk'), node && <span>{t('node.disk.text', { free: bytes(node.disk_free), limit: bytes(node.disk_free_limit) })}</span>],
			[t('node.files'), node && <Meter used={node.fd_used} limit={node.fd_total} text={`${number(node.fd_used)} / ${number(node.fd_total)}`} />],
			[t('node.ports'), (overview.listeners ?? []).map((l) => <span class="port" key={l.protocol + l.ip_address + l.port}>{l.protocol} {address(l)}</span>)],
		]} />
	);
}

/* Asked for by themselves: with very many queues they take longer than the rest. */
function Top({ title, sort, reverse, rows, columns, empty }) {
	const { data, error } = usePolled((signal) => get(topQueues(sort, reverse), { signal }), [], TOP_EVERY);
	return (
		<Card title={title}>
			<Refused error={error} />
			{data && <Rows columns={columns} rows={rows(data.items)} rowKey={(q) => q.vhost + '/' + q.name} label={title} empty={empty} />}
		</Card>
	);
}

function Tops({ vhosts }) {
	const none = <>{t('queues.none')} {vhosts.length > 0 && <a href={href('queues') + '?declare=1'}>{t('queue.declare')}…</a>}</>;
	return (
		<>
			<Top title={t('top.backlog')} sort="messages" reverse rows={(items) => items} columns={longestColumns()} empty={none} />
			<Top title={t('top.oldest')} sort="head_arrived" rows={(items) => items.filter((q) => q.head_arrived)} columns={oldestColumns()} empty={t('top.oldest.none')} />
		</>
	);
}

export function Overview() {
	const session = useSession();
	const { data, error } = usePolled((signal) => load(session, signal), []);
	return (
		<>
			<h1>{t('page.overview')}</h1>
			<Refused error={error} />
			{data && <Health data={data} />}
			{data && <Totals overview={data.overview} />}
			{session.mayMonitor && <Histories path="node" charts={[
				{ title: t('chart.rates'), lines: ['publish', 'deliver', 'ack'], unit: 'rate' },
				{ title: t('chart.backlog'), lines: ['ready', 'unacked'], unit: 'count' },
			]} />}
			<div class="cards">
				<Tops vhosts={session.vhosts} />
				{data && <Card title={t('node')} wide><Node node={data.node} overview={data.overview} /></Card>}
			</div>
		</>
	);
}
