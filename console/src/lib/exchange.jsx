// SPDX-License-Identifier: Apache-2.0
// Names and addresses of exchanges and queues. The default exchange has no name; in addresses it has RabbitMQ's.
import { path, post } from '../api.js';
import { t } from '../i18n/index.js';
import { href } from '../router.js';
import { Badge, Name } from './parts.jsx';

export const DEFAULT = 'amq.default';

export const exchangeHref = (vhost, name, tab) => href('exchanges', vhost, name || DEFAULT) + (tab ? `?tab=${tab}` : '');
export const queueHref = (vhost, name, tab) => href('queues', vhost, name) + (tab ? `?tab=${tab}` : '');

export const ExchangeLink = ({ vhost, name }) => <a href={exchangeHref(vhost, name)}>{name === '' ? t('exchange.default') : <Name>{name}</Name>}</a>;

/** Exchanges that are always there. */
export const isPredeclared = (name) => name === '' || name.startsWith('amq.');

/** Short words for what an exchange is. */
export function ExchangeFeatures({ exchange }) {
	const words = [[exchange.durable, t('durable'), 'D'], [exchange.auto_delete, t('exchange.auto_delete'), 'AD'], [exchange.internal, t('internal'), 'I']];
	return (
		<span class="features">
			{words.filter(([is]) => is).map(([, text, mark]) => <Badge key={mark} title={text}>{mark}</Badge>)}
			{Object.keys(exchange.arguments ?? {}).map((a) => <Badge key={a} title={`${a}: ${JSON.stringify(exchange.arguments[a])}`}>{a.replace(/^x-/, '')}</Badge>)}
			{exchange.policy && <Badge title={t('policy')}><bdi>{exchange.policy}</bdi></Badge>}
		</span>
	);
}

/** Where a message would go: { routing_key, headers, properties } is told as to publish. */
export const askRoute = (vhost, exchange, message) => post(`hermes/${path('exchanges', vhost, exchange || DEFAULT, 'route')}`, message);

/** Queues by their names, each a link, to one of its tabs if that is given. */
export const QueueLinks = ({ queues, vhost, tab }) => queues.map((q, i) => (
	<span key={q}>{i > 0 && ', '}<a href={queueHref(vhost, q, tab)}><Name>{q}</Name></a></span>));
