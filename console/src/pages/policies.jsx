// SPDX-License-Identifier: Apache-2.0
// Policies and operators' policies, of all virtual hosts or one.
import { useState } from 'preact/hooks';
import { del, path } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy, Dialog } from '../lib/dialog.jsx';
import { number } from '../lib/format.js';
import { Name, Tabs, Value } from '../lib/parts.jsx';
import { ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { href, setParams, useRoute } from '../router.js';
import { useSession } from '../session.js';
import { PolicyForm } from './policy_form.jsx';

const KINDS = ['policies', 'operator-policies'];

const columns = (may, kind, edit, again) => [
	{ key: 'name', title: t('name'), sort: 'name', cell: (p) => <Name>{p.name}</Name> },
	{ key: 'vhost', title: t('vhost'), sort: 'vhost', cell: (p) => <a href={href('vhosts', p.vhost)}><Name>{p.vhost}</Name></a> },
	{ key: 'pattern', title: t('policy.pattern'), sort: 'pattern', cell: (p) => (p.pattern === '' ? <span class="muted">{t('empty_name')}</span> : <code><bdi>{p.pattern}</bdi></code>) },
	{ key: 'apply-to', title: t('policy.apply'), sort: 'apply-to', cell: (p) => t('policy.apply.' + p['apply-to']) },
	{ key: 'priority', title: t('priority'), sort: 'priority', number: true, cell: (p) => number(p.priority) },
	{ key: 'definition', title: t('policy.definition'), cell: (p) => <Value of={p.definition} /> },
	may && { key: 'do', title: '', needs: ['name', 'vhost'], cell: (p) => (
		<span class="tools">
			<button class="small" onClick={() => edit(p)}>{t('edit')}…</button>
			<Destroy small label={t('delete')} question={t('policy.delete.sure', { name: p.name })} run={async () => {
				await del(path(kind, p.vhost, p.name));
				say(t('policy.deleted', { name: p.name }));
				again();
			}} />
		</span>
	) },
].filter(Boolean);

export function Policies() {
	const { params } = useRoute();
	const { vhosts, maySetPolicies, isAdministrator } = useSession();
	const [edited, setEdited] = useState(null); // a policy; {}: a new one
	const [asked, setAsked] = useState(0);
	const kind = KINDS.includes(params.kind) ? params.kind : KINDS[0];
	const vhost = vhosts.includes(params.vhost) ? params.vhost : '';
	const may = kind === KINDS[0] ? maySetPolicies : isAdministrator;
	const again = () => setAsked(asked + 1);
	return (
		<>
			<h1>{t('page.policies')}</h1>
			<Tabs choices={KINDS.map((k) => [k, t(k)])} value={kind} onChange={(k) => setParams({ kind: k, page: null })} />
			<p class="muted">{t(kind + '.what')}</p>
			<ServerTable key={`${kind} ${asked}`} name={kind} path={vhost ? path(kind, vhost) : kind} sort="name" rowKey={(p) => `${p.vhost}\n${p.name}`}
				columns={columns(may, kind, setEdited, again)} empty={t(kind + '.none')} tools={() => (
					<>
						<label class="inline">{t('vhost')} <select value={vhost} onChange={(e) => setParams({ vhost: e.target.value, page: null })}>
							<option value="">{t('all')}</option>
							{vhosts.map((v) => <option value={v}>{v}</option>)}
						</select></label>
						{may && vhosts.length > 0 && <button class="primary" onClick={() => setEdited({})}>{t(kind + '.make')}…</button>}
					</>
				)} />
			{edited && (
				<Dialog wide title={edited.name === undefined ? t(kind + '.make') : t('policy.edit', { name: edited.name })} onClose={() => setEdited(null)}>
					<PolicyForm kind={kind} policy={edited} vhost={vhost} after={() => { setEdited(null); again(); }} />
				</Dialog>
			)}
		</>
	);
}
