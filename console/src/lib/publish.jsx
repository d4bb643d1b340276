// SPDX-License-Identifier: Apache-2.0
// A form that publishes one message to an exchange, and says which queues took it.
import { useState } from 'preact/hooks';
import { path, post } from '../api.js';
import { t } from '../i18n/index.js';
import { DEFAULT, QueueLinks, askRoute, exchangeHref } from './exchange.jsx';
import { Area, Check, Form, Select, Text, parseObject, useForm } from './form.jsx';

const NUMBERS = ['priority'];

/** routingKey: where it is the page's, not to be asked for; firstKey: stands in the field. */
export function Publish({ vhost, exchange, routingKey, firstKey, after }) {
	const [went, setWent] = useState(null); // the queues of the last message
	const form = useForm({ key: routingKey ?? firstKey ?? '', payload: '', encoding: 'string', persistent: true, headers: '', properties: '' });
	const submit = async () => {
		const v = form.values;
		const properties = { ...parseObject(v.properties, t('properties')), headers: parseObject(v.headers, t('headers')) };
		for (const name of NUMBERS)
			if (properties[name] !== undefined)
				properties[name] = Number(properties[name]);
		properties.delivery_mode ??= v.persistent ? 2 : 1;
		const answer = await post(path('exchanges', vhost, exchange || DEFAULT, 'publish'),
			{ properties, routing_key: v.key, payload: v.payload, payload_encoding: v.encoding });
		setWent(answer.routed ? await askRoute(vhost, exchange, { routing_key: v.key, properties }) : { routed: false });
		after?.();
	};
	return (
		<Form submit={submit} label={t('publish')}>
			<div class="fields">
				{routingKey === undefined && <Text form={form} name="key" label={t('routing_key')} />}
				<Select form={form} name="encoding" label={t('publish.encoding')} options={[['string', t('body.text')], ['base64', 'Base64']]} />
			</div>
			<Area form={form} name="payload" label={t('payload')} first />
			<Check form={form} name="persistent" label={t('publish.persistent')} />
			<details><summary>{t('publish.more')}</summary>
				<Area form={form} name="headers" label={t('headers')} hint='{"key": "value"}' rows={3} />
				<Area form={form} name="properties" label={t('properties')} rows={3}
					hint='{"content_type": "application/json", "message_id": "1", "expiration": "60000", "priority": 1}' />
			</details>
			<Went went={went} vhost={vhost} exchange={exchange} />
		</Form>
	);
}

function Went({ went, vhost, exchange }) {
	if (went === null)
		return null;
	if (!went.routed)
		return <p class="refused" role="alert">{t('publish.unrouted')} {exchange !== '' && <a href={exchangeHref(vhost, exchange, 'bindings')}>{t('publish.bind')}</a>}</p>;
	const waits = went.exchanges.some((x) => x.delay_ms);
	return <p class="done" role="status">{t(waits ? 'publish.later' : 'publish.went')} <QueueLinks vhost={vhost} queues={went.queues} tab="look" /></p>;
}
