// SPDX-License-Identifier: Apache-2.0
// All users, and the form that makes one.
import { useState } from 'preact/hooks';
import { path, put } from '../api.js';
import { t } from '../i18n/index.js';
import { Dialog } from '../lib/dialog.jsx';
import { Check, Form, Select, Text, useForm } from '../lib/form.jsx';
import { number } from '../lib/format.js';
import { limitsText } from '../lib/limits.jsx';
import { Badge, Name } from '../lib/parts.jsx';
import { ServerTable } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { href } from '../router.js';
import { useSession } from '../session.js';
import { Tags } from './vhosts.jsx';

/** The tags that open this console, from the strongest. Others are free texts. */
const TAGS = ['administrator', 'monitoring', 'policymaker', 'management'];

/** Values of a form that <TagFields> edits; and what they stand for. */
export const tagValues = (tags = []) => ({ ...Object.fromEntries(TAGS.map((tag) => [tag, tags.includes(tag)])),
	otherTags: tags.filter((tag) => !TAGS.includes(tag)).join(', ') });
export const tagsOf = (values) => [...TAGS.filter((tag) => values[tag]),
	...values.otherTags.split(',').map((tag) => tag.trim()).filter(Boolean)].join(',');

/** plain: where the tags stand under a heading already. */
export const TagFields = ({ form, plain }) => (
	<fieldset class={plain ? 'plain' : ''}>
		<legend>{t('tags')}</legend>
		{TAGS.map((tag) => <Check key={tag} form={form} name={tag} label={tag} hint={t('tag.' + tag)} />)}
		<p class="muted">{t('tag.none')}</p>
		<Text form={form} name="otherTags" label={t('tags.other')} hint={t('tags.hint')} />
	</fieldset>
);

/** Two fields, since nobody sees what is typed; user: whose, for what keeps passwords, where no other field says it. */
export const PasswordFields = ({ form, user }) => (
	<div class="fields">
		{user !== undefined && <input hidden readOnly value={user} autocomplete="username" aria-label={t('user')} />}
		<Text form={form} name="password" label={t('password.new')} type="password" autocomplete="new-password" required />
		<Text form={form} name="repeated" label={t('password.repeat')} type="password" autocomplete="new-password" required />
	</div>
);

export function checkPassword({ password, repeated }) {
	if (password !== repeated)
		throw new Error(t('password.differs'));
}

const EVERYTHING = { configure: '.*', write: '.*', read: '.*' };

function Make({ after }) {
	const { vhosts } = useSession();
	const form = useForm({ name: '', password: '', repeated: '', vhost: '', ...tagValues() });
	const submit = async () => {
		const v = form.values;
		checkPassword(v);
		await put(path('users', v.name), { password: v.password, tags: tagsOf(v) });
		if (v.vhost)
			await put(path('permissions', v.vhost, v.name), EVERYTHING);
		say(t('user.made', { name: v.name }));
		after();
	};
	return (
		<Form submit={submit} label={t('user.make')}>
			<Text form={form} name="name" label={t('name')} required maxLength={255} autofocus />
			<PasswordFields form={form} />
			<Select form={form} name="vhost" label={t('user.access')} hint={t('user.access.hint')} options={[['', t('none')], ...vhosts]} />
			<TagFields form={form} />
		</Form>
	);
}

function Access({ user }) {
	if (!user.vhost_count)
		return <Badge kind="warn">{t('user.no_access')}</Badge>;
	const more = user.vhost_count - user.vhosts.length;
	return <>{user.vhosts.map((v) => <Badge key={v}><bdi>{v}</bdi></Badge>)}{more > 0 && t('definitions.more', { n: number(more) })}</>;
}

const columns = () => [
	{ key: 'name', title: t('name'), sort: 'name', needs: ['name', 'loopback_only'], cell: (u) => (
		<><a href={href('users', u.name)}><Name>{u.name}</Name></a>{u.loopback_only && <div class="muted">{t('user.local')}</div>}</>) },
	{ key: 'tags', title: t('tags'), cell: (u) => <Tags tags={u.tags} /> },
	{ key: 'access', title: t('user.access'), sort: 'vhost_count', needs: ['vhosts', 'vhost_count'], cell: (u) => <Access user={u} /> },
	{ key: 'limits', title: t('limits'), cell: (u) => limitsText(u.limits ?? {}) },
];

export function Users() {
	const [making, setMaking] = useState(false);
	return (
		<>
			<h1>{t('page.users')}</h1>
			<ServerTable name="users" path="users" columns={columns()} sort="name" rowKey={(u) => u.name} tools={(again) => (
				<>
					<button class="primary" onClick={() => setMaking(true)}>{t('user.make')}…</button>
					{making && (
						<Dialog title={t('user.make')} onClose={() => setMaking(false)}>
							<Make after={() => { setMaking(false); again(); }} />
						</Dialog>
					)}
				</>
			)} />
		</>
	);
}
