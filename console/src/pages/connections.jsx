// SPDX-License-Identifier: Apache-2.0
// Connections: the list, and one of them with its channels.
import { del, get, path } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy } from '../lib/dialog.jsx';
import { bytes, number, rate, time } from '../lib/format.js';
import { Histories } from '../lib/history.jsx';
import { usePolled } from '../lib/hooks.js';
import { Badge, Card, Facts, Name, Refused, Value } from '../lib/parts.jsx';
import { Rows, ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { go, href } from '../router.js';
import { channelColumns } from './channels.jsx';

const client = (c) => [c.client_properties?.product, c.client_properties?.version].filter((x) => typeof x === 'string').join(' ');
const given = (c) => (typeof c.client_properties?.connection_name === 'string' ? c.client_properties.connection_name : '');

export const ConnectionState = ({ state }) => <Badge kind={state === 'running' ? 'ok' : 'warn'}>{t('state.' + state)}</Badge>;

const columns = () => [
	{ key: 'name', title: t('name'), sort: 'name', needs: ['name', 'client_properties'],
		cell: (c) => <><a href={href('connections', c.name)}><Name>{c.name}</Name></a>{given(c) && <div class="muted"><Name>{given(c)}</Name></div>}</> },
	{ key: 'user', title: t('user'), sort: 'user' },
	{ key: 'vhost', title: t('vhost'), sort: 'vhost' },
	{ key: 'state', title: t('state'), sort: 'state', cell: (c) => <ConnectionState state={c.state} /> },
	{ key: 'channels', title: t('page.channels'), sort: 'channels', number: true, cell: (c) => number(c.channels) },
	{ key: 'client', title: t('client'), needs: ['client_properties'], cell: (c) => <bdi>{client(c)}</bdi> },
	{ key: 'in', title: t('from_client'), sort: 'recv_oct_details.rate', number: true, needs: ['recv_oct_details.rate'],
		cell: (c) => `${bytes(c.recv_oct_details?.rate ?? 0)}/s` },
	{ key: 'out', title: t('to_client'), sort: 'send_oct_details.rate', number: true, needs: ['send_oct_details.rate'],
		cell: (c) => `${bytes(c.send_oct_details?.rate ?? 0)}/s` },
	{ key: 'connected_at', title: t('since'), sort: 'connected_at', cell: (c) => time(c.connected_at) },
];

export function Connections() {
	return (
		<>
			<h1>{t('page.connections')}</h1>
			<ServerTable name="connections" path="connections" columns={columns()} sort="name" rowKey={(c) => c.name} empty={t('connections.none')} />
		</>
	);
}

const load = async (name, signal) => {
	const [connection, channels] = await Promise.all([get(path('connections', name), { signal }), get(path('connections', name, 'channels'), { signal })]);
	return { connection, channels };
};

export function Connection({ args: [name] }) {
	const { data, error } = usePolled((signal) => load(name, signal), [name]);
	const close = async () => {
		await del(path('connections', name));
		say(t('connection.closed'));
		go('connections');
	};
	return (
		<>
			<h1>{t('connection')} <Name>{name}</Name></h1>
			<Refused error={error} />
			{data && <Histories path={'connections/' + path(name)} charts={[
				{ title: t('chart.traffic'), lines: ['received', 'sent'], unit: 'bytes' },
				{ title: t('chart.rates'), lines: ['publish', 'deliver', 'ack'], unit: 'rate' },
			]} />}
			{data && <About connection={data.connection} />}
			{data && <Card title={t('page.channels')}><Rows columns={channelColumns()} rows={data.channels} rowKey={(c) => c.name} label={t('page.channels')} /></Card>}
			{data && <Card title={t('actions')}><Destroy label={t('connection.close')} question={t('connection.close.sure')} run={close} /></Card>}
		</>
	);
}

const About = ({ connection: c }) => (
	<div class="cards">
		<Card title={t('connection')}>
			<Facts rows={[
				[t('state'), <ConnectionState state={c.state} />],
				[t('user'), <bdi>{c.user}</bdi>],
				[t('vhost'), <bdi>{c.vhost}</bdi>],
				[t('peer'), `${c.peer_host}:${c.peer_port}`],
				[t('listener'), `${c.host}:${c.port}`],
				[t('protocol'), c.protocol],
				[t('auth'), c.auth_mechanism],
				[t('since'), time(c.connected_at)],
				[t('heartbeat'), `${c.timeout} s`],
				[t('frame_max'), bytes(c.frame_max)],
				[t('channel_max'), number(c.channel_max)],
				[t('from_client'), `${bytes(c.recv_oct)}, ${bytes(c.recv_oct_details?.rate ?? 0)}/s`],
				[t('to_client'), `${bytes(c.send_oct)}, ${bytes(c.send_oct_details?.rate ?? 0)}/s`],
				[t('frames'), `${rate(c.recv_cnt_details?.rate)} / ${rate(c.send_cnt_details?.rate)}`],
			]} />
		</Card>
		<Card title={t('client_properties')}><Value of={c.client_properties ?? {}} /></Card>
	</div>
);
