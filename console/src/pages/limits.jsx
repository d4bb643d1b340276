// SPDX-License-Identifier: Apache-2.0
// Limits of all virtual hosts and users in one place.
import { useState } from 'preact/hooks';
import { get } from '../api.js';
import { t } from '../i18n/index.js';
import { Dialog } from '../lib/dialog.jsx';
import { Select, useForm } from '../lib/form.jsx';
import { number } from '../lib/format.js';
import { usePolled } from '../lib/hooks.js';
import { LIMITS, LimitsForm } from '../lib/limits.jsx';
import { Card, Name, Refused } from '../lib/parts.jsx';
import { Pick } from '../lib/pick.jsx';
import { Rows } from '../lib/table.jsx';
import { href } from '../router.js';
import { useSession } from '../session.js';

const shown = (n) => (n === undefined || n < 0 ? <span class="muted">{t('limit.none')}</span> : number(n));

const columns = (of, edit) => [
	{ key: of, title: t(of), cell: (l) => <a href={href(of + 's', l[of])}><Name>{l[of]}</Name></a> },
	...LIMITS[of].map((limit) => ({ key: limit, title: t('limit.' + limit), number: true, cell: (l) => shown(l.value[limit]) })),
	edit && { key: 'do', title: '', cell: (l) => <span class="tools"><button class="small" onClick={() => edit(l[of])}>{t('edit')}…</button></span> },
].filter(Boolean);

/** of: 'vhost' or 'user'; names: vhosts that may be chosen. */
function LimitsOf({ of, names, may }) {
	const { data, error, again } = usePolled((signal) => get(of + '-limits', { signal }), [of]);
	const [isOpen, setIsOpen] = useState(false);
	const form = useForm({ name: '' }), open = form.values.name; // '': none chosen yet
	const setOpen = (name) => {
		form.set('name', name);
		setIsOpen(true);
	};
	const value = data?.find((l) => l[of] === open)?.value ?? {};
	const close = () => setIsOpen(false);
	return (
		<Card title={t('limits.' + of)} wide tools={may && <button onClick={() => setOpen('')}>{t('limits.submit')}…</button>}>
			<Refused error={error} />
			{data && <Rows columns={columns(of, may && setOpen)} rows={data} label={t('limits.' + of)} empty={t('limits.none')} rowKey={(l) => l[of]} />}
			{isOpen && (
				<Dialog title={t('limits.' + of)} onClose={close}>
					{names ? <Select form={form} name="name" label={t(of)} options={[['', t('choose')], ...names]} autofocus />
						: <Pick form={form} name="name" label={t(of)} where="users" autofocus />}
					{open !== '' && <LimitsForm key={open + JSON.stringify(value)} of={of} name={open} value={value} after={() => { close(); again(); }} />}
				</Dialog>
			)}
		</Card>
	);
}

export function LimitsPage() {
	const { vhosts, isAdministrator } = useSession();
	return (
		<>
			<h1>{t('page.limits')}</h1>
			<p class="muted">{t('limits.what')}</p>
			<LimitsOf of="vhost" names={vhosts} may={isAdministrator} />
			<LimitsOf of="user" may={isAdministrator} />
		</>
	);
}
