// SPDX-License-Identifier: Apache-2.0
// Channels and consumers.
import { get, path } from '../api.js';
import { t } from '../i18n/index.js';
import { number, rate } from '../lib/format.js';
import { usePolled } from '../lib/hooks.js';
import { Badge, Card, Facts, Name, Refused, Value } from '../lib/parts.jsx';
import { Rows, ServerTable } from '../lib/table.jsx';
import { href } from '../router.js';

const rateOf = (c, key) => rate(c.message_stats?.[key + '_details']?.rate ?? 0);
const mode = (c) => [c.confirm && t('channel.confirm'), c.transactional && t('channel.tx')].filter(Boolean).map((m) => <Badge key={m}>{m}</Badge>);
const rateColumn = (key, title, field) => ({ key, title, sort: `message_stats.${field}_details.rate`, number: true,
	needs: [`message_stats.${field}_details.rate`], cell: (c) => rateOf(c, field) });

export const channelColumns = () => [
	{ key: 'name', title: t('page.channels'), sort: 'name', cell: (c) => <a href={href('channels', c.name)}><Name>{c.name}</Name></a> },
	{ key: 'user', title: t('user'), sort: 'user' },
	{ key: 'vhost', title: t('vhost'), sort: 'vhost' },
	{ key: 'mode', title: t('mode'), needs: ['confirm', 'transactional'], cell: mode },
	{ key: 'state', title: t('state'), sort: 'state', cell: (c) => <Badge kind={c.state === 'running' ? 'ok' : 'plain'}>{t('state.' + c.state)}</Badge> },
	{ key: 'messages_unconfirmed', title: t('unconfirmed'), sort: 'messages_unconfirmed', number: true, cell: (c) => number(c.messages_unconfirmed) },
	{ key: 'messages_unacknowledged', title: t('messages.unacked'), sort: 'messages_unacknowledged', number: true, cell: (c) => number(c.messages_unacknowledged) },
	{ key: 'prefetch_count', title: t('prefetch'), sort: 'prefetch_count', number: true, cell: (c) => number(c.prefetch_count) },
	rateColumn('in', t('line.publish'), 'publish'),
	rateColumn('out', t('line.deliver'), 'deliver_get'),
	rateColumn('acked', t('line.ack'), 'ack'),
];

export function Channels() {
	return (
		<>
			<h1>{t('page.channels')}</h1>
			<ServerTable name="channels" path="channels" columns={channelColumns()} sort="name" rowKey={(c) => c.name} empty={t('channels.none')} />
		</>
	);
}

export function Channel({ args: [name] }) {
	const { data: c, error } = usePolled((signal) => get(path('channels', name), { signal }), [name]);
	return (
		<>
			<h1>{t('channel')} <Name>{name}</Name></h1>
			<Refused error={error} />
			{c && (
				<Card title={t('channel')}>
					<Facts rows={[
						[t('connection'), <a href={href('connections', c.connection_details.name)}><Name>{c.connection_details.name}</Name></a>],
						[t('user'), <bdi>{c.user}</bdi>],
						[t('vhost'), <bdi>{c.vhost}</bdi>],
						[t('mode'), mode(c).length ? mode(c) : undefined],
						[t('prefetch'), number(c.prefetch_count)],
						[t('prefetch.global'), number(c.global_prefetch_count)],
						[t('unconfirmed'), number(c.messages_unconfirmed)],
						[t('messages.unacked'), number(c.messages_unacknowledged)],
						[t('uncommitted'), number(c.messages_uncommitted)],
						[t('rates'), `${t('line.publish')} ${rateOf(c, 'publish')}, ${t('line.deliver')} ${rateOf(c, 'deliver_get')}, ${t('line.ack')} ${rateOf(c, 'ack')}`],
					]} />
				</Card>
			)}
			{c && <Card title={t('page.consumers')}><Rows columns={consumerColumns()} rows={c.consumer_details ?? []} label={t('page.consumers')}
				rowKey={(x) => x.consumer_tag} /></Card>}
		</>
	);
}

export const consumerColumns = () => [
	{ key: 'queue', title: t('queue'), sort: 'queue.name', cell: (c) => (c.queue
		? <a href={href('queues', c.queue.vhost, c.queue.name)}><Name>{c.queue.name}</Name></a> : '–') },
	{ key: 'consumer_tag', title: t('consumer_tag'), sort: 'consumer_tag', cell: (c) => <Name>{c.consumer_tag}</Name> },
	{ key: 'channel_details', title: t('channel'), cell: (c) => (c.channel_details?.name
		? <a href={href('channels', c.channel_details.name)}><Name>{c.channel_details.name}</Name></a> : '–') },
	{ key: 'ack_required', title: t('consumer.ack'), cell: (c) => (c.ack_required ? t('yes') : t('no')) },
	{ key: 'prefetch_count', title: t('prefetch'), number: true, cell: (c) => number(c.prefetch_count) },
	{ key: 'activity_status', title: t('consumer.active'), cell: (c) => <Badge kind={c.active === false ? 'plain' : 'ok'}>{t('activity.' + c.activity_status)}</Badge> },
	{ key: 'arguments', title: t('arguments'), cell: (c) => <Value of={c.arguments ?? {}} /> },
];

export function Consumers() {
	return (
		<>
			<h1>{t('page.consumers')}</h1>
			<ServerTable name="consumers" path="consumers" columns={consumerColumns()} rowKey={(c) => c.channel_details?.name + '\n' + c.consumer_tag} empty={t('consumers.none')} />
		</>
	);
}
