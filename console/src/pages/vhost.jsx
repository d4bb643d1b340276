// SPDX-License-Identifier: Apache-2.0
// One virtual host: what goes through it, who may do what in it, its limits.
import { useState } from 'preact/hooks';
import { del, get, path, query } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy, Dialog } from '../lib/dialog.jsx';
import { number, rate } from '../lib/format.js';
import { Histories } from '../lib/history.jsx';
import { usePolled } from '../lib/hooks.js';
import { LimitsForm, limitsText } from '../lib/limits.jsx';
import { Card, Facts, Name, Refused } from '../lib/parts.jsx';
import { Permissions } from '../lib/permissions.jsx';
import { say } from '../lib/toast.jsx';
import { go } from '../router.js';
import { useSession } from '../session.js';
import { Tags, VhostForm, queueType } from './vhosts.jsx';

const MOST = 500; // rows of a page

/** Only administrators may ask for one; the others find theirs in the list. */
async function findVhost(name, session, signal) {
	if (session.isAdministrator)
		return get(path('vhosts', name), { signal });
	const { items } = await get('vhosts' + query({ page: 1, page_size: MOST, name }), { signal });
	const found = items.find((v) => v.name === name);
	if (!found)
		throw new Error(t('vhost.missing', { name }));
	return found;
}

async function load(name, session, signal) {
	const [vhost, limits] = await Promise.all([findVhost(name, session, signal), get(path('vhost-limits', name), { signal })]);
	return { vhost, limits: limits[0]?.value ?? {} };
}

export function Vhost({ args: [name] }) {
	const session = useSession();
	const { data, error, again } = usePolled((signal) => load(name, session, signal), [name]);
	const admin = session.isAdministrator;
	return (
		<>
			<h1>{t('vhost')} <Name>{name}</Name></h1>
			<Refused error={error} />
			{data && <Histories path={'vhosts/' + path(name)} charts={[
				{ title: t('chart.rates'), lines: ['publish', 'deliver', 'ack', 'redeliver'], unit: 'rate' },
				{ title: t('chart.backlog'), lines: ['ready', 'unacked'], unit: 'count' },
			]} />}
			{data && (
				<div class="cards">
					<About data={data} again={again} />
					<Card title={t('limits')}>
						{admin ? <LimitsForm key={JSON.stringify(data.limits)} of="vhost" name={name} value={data.limits} after={again} />
							: <p>{limitsText(data.limits) || <span class="muted">{t('limits.none')}</span>}</p>}
					</Card>
				</div>
			)}
			{data && admin && <Permissions kind="permissions" vhost={name} />}
			{data && admin && <Permissions kind="topic-permissions" vhost={name} />}
		</>
	);
}

function About({ data: { vhost }, again }) {
	const [editing, setEditing] = useState(false);
	const { isAdministrator, reload } = useSession();
	const of = (key) => rate(vhost.message_stats?.[key + '_details']?.rate ?? 0);
	const remove = async () => {
		await del(path('vhosts', vhost.name));
		say(t('vhost.deleted', { name: vhost.name }));
		await reload();
		go('vhosts');
	};
	const tools = isAdministrator && (
		<>
			<button onClick={() => setEditing(true)}>{t('edit')}…</button>
			<Destroy label={t('vhost.delete')} question={t('vhost.delete.sure', { n: number(vhost.messages) })} name={vhost.name} run={remove} />
		</>
	);
	return (
		<Card title={t('vhost')} tools={tools}>
			<Facts rows={[
				[t('description'), vhost.description ? <bdi>{vhost.description}</bdi> : undefined],
				[t('tags'), vhost.tags?.length ? <Tags tags={vhost.tags} /> : undefined],
				[t('vhost.queue_type'), queueType(vhost) || t('vhost.queue_type.node')],
				[t('messages.ready'), number(vhost.messages_ready)],
				[t('messages.unacked'), number(vhost.messages_unacknowledged)],
				[t('rates'), `${t('line.publish')} ${of('publish')}, ${t('line.deliver')} ${of('deliver_get')}, ${t('line.ack')} ${of('ack')}`],
			]} />
			{editing && (
				<Dialog title={t('vhost.edit', { name: vhost.name })} onClose={() => setEditing(false)}>
					<VhostForm vhost={vhost} after={() => { setEditing(false); again(); }} />
				</Dialog>
			)}
		</Card>
	);
}
