// SPDX-License-Identifier: Apache-2.0
// All virtual hosts, and the form that makes or changes one.
import { useState } from 'preact/hooks';
import { path, put } from '../api.js';
import { t } from '../i18n/index.js';
import { Dialog } from '../lib/dialog.jsx';
import { Form, Select, Text, useForm } from '../lib/form.jsx';
import { bytes, number, rate } from '../lib/format.js';
import { Badge, Name } from '../lib/parts.jsx';
import { ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { href } from '../router.js';
import { useSession } from '../session.js';

export const Tags = ({ tags }) => (tags ?? []).map((tag) => <Badge key={tag}><bdi>{tag}</bdi></Badge>);

export const queueType = (vhost) => (vhost.default_queue_type && vhost.default_queue_type !== 'undefined' ? vhost.default_queue_type : '');

const rateColumn = (key, title, field) => ({ key, title, sort: `message_stats.${field}_details.rate`, number: true,
	needs: [`message_stats.${field}_details.rate`], cell: (v) => rate(v.message_stats?.[field + '_details']?.rate ?? 0) });
const countColumn = (key, title) => ({ key, title, sort: key, number: true, cell: (v) => number(v[key]) });
const trafficColumn = (key, title) => ({ key, title, sort: `${key}_details.rate`, number: true, needs: [`${key}_details.rate`],
	cell: (v) => `${bytes(v[key + '_details']?.rate ?? 0)}/s` });

const columns = () => [
	{ key: 'name', title: t('name'), sort: 'name', needs: ['name', 'description'],
		cell: (v) => <><a href={href('vhosts', v.name)}><Name>{v.name}</Name></a>{v.description && <div class="muted"><bdi>{v.description}</bdi></div>}</> },
	{ key: 'tags', title: t('tags'), cell: (v) => <Tags tags={v.tags} /> },
	{ key: 'default_queue_type', title: t('vhost.queue_type'), cell: (v) => queueType(v) || <span class="muted">{t('vhost.queue_type.node')}</span> },
	countColumn('messages_ready', t('messages.ready')),
	countColumn('messages_unacknowledged', t('messages.unacked')),
	rateColumn('in', t('line.publish'), 'publish'),
	rateColumn('out', t('line.deliver'), 'deliver_get'),
	trafficColumn('recv_oct', t('from_client')),
	trafficColumn('send_oct', t('to_client')),
];

/** vhost: the one to change; without, a new one is made. */
export function VhostForm({ vhost, after }) {
	const { reload } = useSession();
	const form = useForm({ name: vhost?.name ?? '', description: vhost?.description ?? '', tags: (vhost?.tags ?? []).join(', '),
		type: vhost ? queueType(vhost) : '' });
	const submit = async () => {
		const { name, description, tags, type } = form.values;
		await put(path('vhosts', name), { description, tags, default_queue_type: type || 'undefined' });
		say(t(vhost ? 'vhost.changed' : 'vhost.made', { name }));
		await reload();
		after();
	};
	return (
		<Form submit={submit} label={vhost ? t('save') : t('vhost.make')}>
			{!vhost && <Text form={form} name="name" label={t('name')} required maxLength={255} autofocus />}
			<Text form={form} name="description" label={t('description')} />
			<Text form={form} name="tags" label={t('tags')} hint={t('tags.hint')} />
			<Select form={form} name="type" label={t('vhost.queue_type')} options={[['', t('vhost.queue_type.node')], 'classic', 'quorum']} />
		</Form>
	);
}

export function Vhosts() {
	const [making, setMaking] = useState(false);
	const { isAdministrator } = useSession();
	return (
		<>
			<h1>{t('page.vhosts')}</h1>
			<ServerTable name="vhosts" path="vhosts" columns={columns()} sort="name" rowKey={(v) => v.name} empty={t('vhosts.none')}
				tools={(again) => isAdministrator && (
					<>
						<button class="primary" onClick={() => setMaking(true)}>{t('vhost.make')}…</button>
						{making && (
							<Dialog title={t('vhost.make')} onClose={() => setMaking(false)}>
								<VhostForm after={() => { setMaking(false); again(); }} />
							</Dialog>
						)}
					</>
				)} />
		</>
	);
}
