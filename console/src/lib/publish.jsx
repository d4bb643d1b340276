// SPDX-License-Identifier: Apache-2.0
// A form that publishes one message to an exchange, and says whether a queue took it.
import { path, post } from '../api.js';
import { t } from '../i18n/index.js';
import { Area, Check, Form, Select, Text, parseObject, useForm } from './form.jsx';
import { complain, say } from './toast.jsx';

const NUMBERS = ['priority'];

export function Publish({ vhost, exchange, routingKey, after }) {
	const form = useForm({ key: routingKey ?? '', payload: '', encoding: 'string', persistent: true, headers: '', properties: '' });
	const submit = async () => {
		const v = form.values;
		const properties = { ...parseObject(v.properties, t('properties')), headers: parseObject(v.headers, t('headers')) };
		for (const name of NUMBERS)
			if (properties[name] !== undefined)
				properties[name] = Number(properties[name]);
		properties.delivery_mode ??= v.persistent ? 2 : 1;
		const answer = await post(path('exchanges', vhost, exchange === '' ? 'amq.default' : exchange, 'publish'),
			{ properties, routing_key: v.key, payload: v.payload, payload_encoding: v.encoding });
		if (answer.routed)
			say(t('publish.routed'));
		else
			complain({ reason: t('publish.unrouted') });
		after?.();
	};
	return (
		<Form submit={submit} label={t('publish')}>
			<div class="fields">
				{routingKey === undefined && <Text form={form} name="key" label={t('routing_key')} />}
				<Select form={form} name="encoding" label={t('publish.encoding')} options={[['string', t('body.text')], ['base64', 'Base64']]} />
			</div>
			<Area form={form} name="payload" label={t('payload')} />
			<Check form={form} name="persistent" label={t('publish.persistent')} />
			<details><summary>{t('publish.more')}</summary>
				<Area form={form} name="headers" label={t('headers')} hint='{"key": "value"}' rows={3} />
				<Area form={form} name="properties" label={t('properties')} rows={3}
					hint='{"content_type": "application/json", "message_id": "1", "expiration": "60000", "priority": 1}' />
			</details>
		</Form>
	);
}
