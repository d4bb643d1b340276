// SPDX-License-Identifier: Apache-2.0
// All figures of the node: memory by kind, disk, journal, event loop, listeners, versions, counters.
import { useState } from 'preact/hooks';
import { get } from '../api.js';
import { t } from '../i18n/index.js';
import { bytes, duration, number, rate, time } from '../lib/format.js';
import { Histories } from '../lib/history.jsx';
import { usePolled } from '../lib/hooks.js';
import { Card, Facts, Meter, Refused } from '../lib/parts.jsx';
import { Rows, Search } from '../lib/table.jsx';
import { Health } from './overview.jsx';

async function load(signal) {
	const [overview, nodes] = await Promise.all([get('overview', { signal }), get('nodes', { signal })]);
	return { overview, hermes: overview.hermes, node: nodes[0] };
}

/** Microseconds as milliseconds, where most of them are. */
const ms = (us) => (us === undefined ? undefined : `${(us / 1000).toFixed(us < 10000 ? 2 : 0)} ms`);

const Used = ({ used, limit, format = number }) => <Meter used={used} limit={limit} text={`${format(used)} / ${format(limit)}`} />;

const About = ({ data: { overview, hermes, node } }) => (
	<Card title={t('node')}>
		<Facts rows={[
			[t('node.name'), <bdi>{node.name}</bdi>],
			[t('node.cluster'), <bdi>{overview.cluster_name}</bdi>],
			[t('node.version'), hermes.version],
			[t('node.announced'), `${overview.product_name} ${overview.product_version}`],
			[t('node.started'), time(hermes.started_ms)],
			[t('node.uptime'), duration(hermes.uptime_ms)],
			[t('node.pid'), <span class="mono">{node.os_pid}</span>],
			[t('node.processors'), number(node.processors)],
			[t('node.data'), <bdi class="mono">{node.db_dir}</bdi>],
			[t('node.config'), <Files of={node.config_files} />],
			[t('node.log'), <Files of={node.log_files} />],
			[t('node.auth'), (node.auth_mechanisms ?? []).map((m) => m.name).join(', ')],
			[t('node.exchange_types'), overview.exchange_types.map((x) => x.name).join(', ')],
		]} />
	</Card>
);

const Files = ({ of }) => (of?.length ? of.map((f) => <bdi key={f} class="mono">{f}</bdi>) : <span class="muted">{t('none')}</span>);

const listenerColumns = () => [
	{ key: 'protocol', title: t('protocol') },
	{ key: 'ip_address', title: t('node.address'), cell: (l) => <span class="mono">{l.ip_address}</span> },
	{ key: 'port', title: t('node.port'), number: true, cell: (l) => l.port },
];

const Listeners = ({ listeners }) => (
	<Card title={t('node.ports')}>
		<Rows columns={listenerColumns()} rows={listeners} label={t('node.ports')} rowKey={(l) => l.protocol + l.ip_address + l.port} />
	</Card>
);

/** What an alarm's figures are measured against, each with where it stands. */
const Limits = ({ data: { node, hermes } }) => (
	<Card title={t('node.limits')}>
		<Facts rows={[
			[t('node.memory'), <Used used={node.mem_used} limit={node.mem_limit} format={bytes} />],
			[t('node.memory.held'), <Used used={hermes.memory.held} limit={hermes.memory.limit} format={bytes} />],
			[t('node.disk'), t('node.disk.text', { free: bytes(node.disk_free), limit: bytes(node.disk_free_limit) })],
			[t('node.files'), <Used used={node.fd_used} limit={node.fd_total} />],
			[t('node.sockets'), <Used used={node.sockets_used} limit={node.sockets_total} />],
		]} />
	</Card>
);

const memoryColumns = (held) => [
	{ key: 'kind', title: t('node.memory.kind'), cell: ([kind]) => t('memory.' + kind) },
	{ key: 'bytes', title: t('node.memory.bytes'), number: true, cell: ([, n]) => bytes(n) },
	{ key: 'part', title: t('node.memory.part'), cell: ([, n]) => <Meter plain used={n} limit={held} text={`${Math.round(held ? (100 * n) / held : 0)} %`} /> },
];

/** The kinds that Hermes counts; what the process has beyond them is its code, libraries and what the allocator keeps. */
function Memory({ memory }) {
	const kinds = Object.entries(memory.kinds).sort(([, a], [, b]) => b - a);
	return (
		<Card title={t('node.memory.kinds')}>
			<Rows columns={memoryColumns(memory.held)} rows={kinds} label={t('node.memory.kinds')} rowKey={([kind]) => kind} />
			<p class="muted">{t('node.memory.text', { held: bytes(memory.held), resident: bytes(memory.resident) })}</p>
		</Card>
	);
}

function Store({ store: s }) {
	if (!s)
		return <Card title={t('store')}><p class="muted">{t('store.none')}</p></Card>;
	return (
		<Card title={t('store')}>
			<Facts rows={[
				[t('store.damaged'), s.damaged ? t('store.damaged.text', { n: number(s.damaged), messages: number(s.damaged_messages) }) : t('none')],
				[t('store.files'), t('store.files.text', { n: number(s.journal_files), bytes: bytes(s.journal_file_bytes) })],
				[t('store.live'), bytes(s.journal_live_bytes)],
				[t('store.backlog'), bytes(s.journal_backlog)],
				[t('store.written'), t('store.written.text', { bytes: bytes(s.journal_bytes), records: number(s.journal_records), batches: number(s.journal_batches) })],
				[t('store.syncs'), t('store.syncs.text', { n: number(s.journal_syncs), mean: s.journal_syncs ? ms(s.journal_sync_us / s.journal_syncs) : '–',
					max: ms(s.journal_sync_max_us) })],
				[t('store.segments'), t('store.segments.text', { n: number(s.segments), bytes: bytes(s.segment_bytes), live: number(s.segment_live),
					garbage: bytes(s.segment_garbage) })],
				[t('store.spilled'), t('store.count', { n: number(s.spilled), bytes: bytes(s.spilled_bytes) })],
				[t('store.loaded'), t('store.count', { n: number(s.loaded), bytes: bytes(s.loaded_bytes) })],
				[t('store.rewritten'), t('store.rewritten.text', { n: number(s.rewritten), bytes: bytes(s.rewritten_bytes) })],
			]} />
		</Card>
	);
}

const Loop = ({ process: p }) => (
	<Card title={t('loop')}>
		<Facts rows={[
			[t('loop.lately'), ms(p.turn_longest_lately_us)],
			[t('loop.longest'), ms(p.turn_longest_us)],
			[t('loop.turns'), number(p.loop_turns)],
			[t('loop.received'), t('loop.bytes', { bytes: bytes(p.bytes_received), calls: number(p.recv_calls) })],
			[t('loop.sent'), t('loop.bytes', { bytes: bytes(p.bytes_sent), calls: number(p.writev_calls) })],
			[t('loop.http'), t('loop.http.text', { n: number(p.http_requests), open: number(p.http_connections) })],
			[t('loop.log_lost'), number(p.log_lines_lost)],
		]} />
	</Card>
);

const CHURN = ['connection_created', 'connection_closed', 'channel_created', 'channel_closed', 'queue_declared', 'queue_created', 'queue_deleted'];

/** Clients that come and go all the time cost more than their messages. */
const Churn = ({ churn }) => (
	<Card title={t('churn')}>
		<Facts rows={CHURN.map((name) => [t('churn.' + name), t('churn.text', { n: number(churn[name] ?? 0), rate: rate(churn[name + '_details']?.rate ?? 0) })])} />
	</Card>
);

const counterColumns = () => [
	{ key: 'name', title: t('name'), cell: ([name]) => <code>{name}</code> },
	{ key: 'value', title: t('value'), number: true, cell: ([, value]) => number(value) },
];

/** Everything that is counted, by the name that it has in the API. */
function Counters({ data: { hermes, node } }) {
	const [search, setSearch] = useState('');
	const parts = [['counters', hermes.counters], ['store', hermes.store ?? {}], ['process', hermes.process], ['node', node]];
	const rows = parts.flatMap(([part, of]) => Object.entries(of).map(([name, value]) => [`${part}.${name}`, value]))
		.filter(([name, value]) => typeof value === 'number' && name.includes(search.toLowerCase()));
	return (
		<details class="card">
			<summary>{t('node.counters')}</summary>
			<div class="bar"><Search value={search} onInput={setSearch} /></div>
			<Rows columns={counterColumns()} rows={rows} label={t('node.counters')} rowKey={([name]) => name} />
		</details>
	);
}

export function NodePage() {
	const { data, error } = usePolled(load, []);
	return (
		<>
			<h1>{t('page.node')}</h1>
			<Refused error={error} />
			{data && <Health data={data} />}
			<Histories path="node" charts={[
				{ title: t('chart.memory'), lines: ['memory'], unit: 'bytes' },
				{ title: t('chart.disk'), lines: ['disk_free'], unit: 'bytes' },
				{ title: t('chart.loop'), lines: ['loop_lag_us'], unit: 'count' },
				{ title: t('chart.connections'), lines: ['connections'], unit: 'count' },
			]} />
			{data && (
				<>
					<div class="cards">
						<About data={data} />
						<Limits data={data} />
						<Memory memory={data.hermes.memory} />
						<Store store={data.hermes.store} />
						<Loop process={data.hermes.process} />
						<Churn churn={data.overview.churn_rates ?? {}} />
						<Listeners listeners={data.overview.listeners ?? []} />
					</div>
					<Counters data={data} />
				</>
			)}
		</>
	);
}
