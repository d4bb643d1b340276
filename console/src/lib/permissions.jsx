// SPDX-License-Identifier: Apache-2.0
// Who may do what: permissions and topic permissions of a vhost, or of a user; one of both is fixed by the page.
import { useRef, useState } from 'preact/hooks';
import { del, get, path, put, query } from '../api.js';
import { t } from '../i18n/index.js';
import { href } from '../router.js';
import { Destroy } from './dialog.jsx';
import { Form, Select, Text, useForm } from './form.jsx';
import { number } from './format.js';
import { usePolled } from './hooks.js';
import { Card, Name, Refused } from './parts.jsx';
import { Pick } from './pick.jsx';
import { Rows } from './table.jsx';
import { say } from './toast.jsx';

const MOST = 100; // rows of a page

/** The two kinds: where they are in the API, their patterns, what names one beside vhost and user, what is filled in at first. */
const KINDS = {
	permissions: { patterns: ['configure', 'write', 'read'], first: { configure: '.*', write: '.*', read: '.*' } },
	'topic-permissions': { patterns: ['write', 'read'], first: { exchange: 'amq.topic', write: '.*', read: '.*' }, exchange: true },
};

const Pattern = ({ children }) => (children === '' ? <span class="muted">{t('permission.nothing')}</span> : <code><bdi>{children}</bdi></code>);

/** kind: a key of KINDS; vhost or user: the one that is fixed; others: vhosts to choose from. */
export function Permissions({ kind, vhost, user, others }) {
	const { patterns, first, exchange } = KINDS[kind];
	const other = vhost === undefined ? 'vhost' : 'user';
	const where = vhost === undefined ? path('users', user, kind) : path('vhosts', vhost, kind);
	const [page, setPage] = useState(1);
	const asked = where + query({ pagination: true, page, page_size: MOST });
	const { data, error, again } = usePolled((signal) => get(asked, { signal }), [asked]);
	const form = useForm({ ...first, other: '' });
	const place = useRef();
	const pathOf = (p, ...more) => path(kind, p.vhost, p.user, ...more);
	const edit = (p) => {
		for (const key of Object.keys(first))
			form.set(key, p[key]);
		form.set('other', p[other]);
		place.current.open = true;
		place.current.querySelector('select, input').focus();
	};
	const clear = (p) => async () => {
		await del(exchange ? pathOf(p, p.exchange) : pathOf(p));
		say(t('permission.cleared'));
		again();
	};
	const submit = async () => {
		const { other: name, ...body } = form.values;
		await put(vhost === undefined ? path(kind, name, user) : path(kind, vhost, name), body);
		say(t('permission.set'));
		form.reset();
		again();
	};
	const columns = [
		{ key: other, title: t(other), cell: (p) => <a href={href(other + 's', p[other])}><Name>{p[other]}</Name></a> },
		exchange && { key: 'exchange', title: t('exchange'), cell: (p) => <Name>{p.exchange}</Name> },
		...patterns.map((key) => ({ key, title: t('permission.' + key), cell: (p) => <Pattern>{p[key]}</Pattern> })),
		{ key: 'do', title: '', cell: (p) => (
			<span class="tools">
				<button class="small" onClick={() => edit(p)}>{t('edit')}</button>
				<Destroy small label={t('permission.clear')} question={t(kind + '.clear.sure', { name: p[other] })} run={clear(p)} />
			</span>
		) },
	].filter(Boolean);
	return (
		<Card title={t(kind)} wide>
			<Refused error={error} />
			{data && <Rows columns={columns} rows={data.items} label={t(kind)} empty={t(kind + '.none')} rowKey={(p) => `${p[other]}\n${p.exchange}`} />}
			{data?.page_count > 1 && (
				<div class="bar pages">
					<button disabled={page <= 1} onClick={() => setPage(page - 1)}>{t('table.previous')}</button>
					<span>{t('table.page', { page: number(page), pages: number(data.page_count) })}</span>
					<button disabled={page >= data.page_count} onClick={() => setPage(page + 1)}>{t('table.next')}</button>
				</div>
			)}
			<details ref={place} open={kind === 'permissions' && data?.total_count === 0 ? true : undefined}>
				<summary>{t(kind + '.set')}</summary>
				<Form submit={submit} label={t('permission.submit')}>
					<div class="fields">
						{others ? <Select form={form} name="other" label={t(other)} required options={[['', t('choose')], ...others]} />
							: <Pick form={form} name="other" label={t(other)} where="users" required />}
						{exchange && <Text form={form} name="exchange" label={t('exchange')} hint={t('permission.exchange')} />}
						{patterns.map((key) => <Text key={key} form={form} name={key} label={t('permission.' + key)} class="mono" />)}
					</div>
					<p class="muted">{t(kind + '.hint')}</p>
				</Form>
			</details>
		</Card>
	);
}
