// SPDX-License-Identifier: Apache-2.0
// Parameters: global ones, and those of components in a virtual host.
import { useState } from 'preact/hooks';
import { del, get, path, put } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy, Dialog } from '../lib/dialog.jsx';
import { Area, Form, Text, useForm } from '../lib/form.jsx';
import { usePolled } from '../lib/hooks.js';
import { Card, Name, Refused, Value } from '../lib/parts.jsx';
import { Rows } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { href } from '../router.js';

function GlobalForm({ parameter, after }) {
	const isNew = parameter.name === undefined;
	const form = useForm({ name: parameter.name ?? '', value: isNew ? '' : JSON.stringify(parameter.value, null, 1) });
	const submit = async () => {
		let value;
		try {
			value = JSON.parse(form.values.value);
		} catch (e) {
			throw new Error(t('form.json', { what: t('value'), why: e.message }));
		}
		await put(path('global-parameters', form.values.name), { value });
		say(t('parameter.set', { name: form.values.name }));
		after();
	};
	return (
		<Form submit={submit} label={t('save')}>
			<Text form={form} name="name" label={t('name')} required maxLength={255} disabled={!isNew} autofocus={isNew} />
			<Area form={form} name="value" label={t('value')} hint={t('parameter.hint')} required />
		</Form>
	);
}

const remove = (where, name, again) => async () => {
	await del(where);
	say(t('parameter.deleted', { name }));
	again();
};

const globalColumns = (edit, again) => [
	{ key: 'name', title: t('name'), cell: (p) => <Name>{p.name}</Name> },
	{ key: 'value', title: t('value'), cell: (p) => <Value of={p.value} /> },
	{ key: 'do', title: '', cell: (p) => (
		<span class="tools">
			<button class="small" onClick={() => edit(p)}>{t('edit')}…</button>
			<Destroy small label={t('delete')} question={t('parameter.delete.sure', { name: p.name })} run={remove(path('global-parameters', p.name), p.name, again)} />
		</span>
	) },
];

function Globals() {
	const { data, error, again } = usePolled((signal) => get('global-parameters', { signal }), []);
	const [edited, setEdited] = useState(null); // a parameter; {}: a new one
	const close = () => setEdited(null);
	return (
		<Card title={t('parameters.global')} wide tools={<button class="primary" onClick={() => setEdited({})}>{t('parameter.make')}…</button>}>
			<Refused error={error} />
			{data && <Rows columns={globalColumns(setEdited, again)} rows={data} label={t('parameters.global')} rowKey={(p) => p.name} />}
			{edited && (
				<Dialog title={t('parameters.global')} onClose={close}>
					<GlobalForm parameter={edited} after={() => { close(); again(); }} />
				</Dialog>
			)}
		</Card>
	);
}

/** Where what has a page of its own is changed. */
const PAGES = { operator_policy: ['policies'], 'vhost-limits': ['limits'] };

const columns = (again) => [
	{ key: 'component', title: t('parameter.component'), cell: (p) => <code><bdi>{p.component}</bdi></code> },
	{ key: 'vhost', title: t('vhost'), cell: (p) => <a href={href('vhosts', p.vhost)}><Name>{p.vhost}</Name></a> },
	{ key: 'name', title: t('name'), cell: (p) => <Name>{p.name}</Name> },
	{ key: 'value', title: t('value'), cell: (p) => <Value of={p.value} /> },
	{ key: 'do', title: '', cell: (p) => (
		<span class="tools">
			{PAGES[p.component] ? <a href={href(...PAGES[p.component])}>{t('page.' + PAGES[p.component][0])}</a>
				: <Destroy small label={t('delete')} question={t('parameter.delete.sure', { name: p.name })}
					run={remove(path('parameters', p.component, p.vhost, p.name), p.name, again)} />}
		</span>
	) },
];

function OfVhosts() {
	const { data, error, again } = usePolled((signal) => get('parameters', { signal }), []);
	return (
		<Card title={t('parameters.vhost')} wide>
			<Refused error={error} />
			{data && <Rows columns={columns(again)} rows={data} label={t('parameters.vhost')} rowKey={(p) => `${p.vhost}\n${p.component}\n${p.name}`} />}
		</Card>
	);
}

export const Parameters = () => (
	<>
		<h1>{t('page.parameters')}</h1>
		<Globals />
		<OfVhosts />
	</>
);
