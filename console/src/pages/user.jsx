// SPDX-License-Identifier: Apache-2.0
// One user: tags, password, limits, and what it may do where.
import { del, get, login, path, put } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy } from '../lib/dialog.jsx';
import { Form, useForm } from '../lib/form.jsx';
import { usePolled } from '../lib/hooks.js';
import { LimitsForm } from '../lib/limits.jsx';
import { Badge, Card, Name, Refused } from '../lib/parts.jsx';
import { Permissions } from '../lib/permissions.jsx';
import { say } from '../lib/toast.jsx';
import { go } from '../router.js';
import { useSession } from '../session.js';
import { PasswordFields, TagFields, checkPassword, tagValues, tagsOf } from './users.jsx';

export function User({ args: [name] }) {
	const { vhosts, name: me } = useSession();
	const { data: user, error, again } = usePolled((signal) => get(path('users', name), { signal }), [name]);
	return (
		<>
			<h1>{t('user')} <Name>{name}</Name> {name === me && <Badge>{t('user.you')}</Badge>}</h1>
			<Refused error={error} />
			{user?.loopback_only && <p class="hint">{t('user.local.text')}</p>}
			{user && (
				<div class="cards">
					<Password user={user} again={again} />
					<TagCard key={user.tags.join()} user={user} again={again} />
					<Card title={t('limits')}><LimitsForm key={JSON.stringify(user.limits)} of="user" name={name} value={user.limits ?? {}} after={again} /></Card>
					<Card title={t('actions')}><Remove user={user} /></Card>
				</div>
			)}
			{user && <Permissions kind="permissions" user={name} others={vhosts} />}
			{user && <Permissions kind="topic-permissions" user={name} others={vhosts} />}
		</>
	);
}

/** What the API would take away if it were not said again. */
const kept = (user) => ({ password_hash: user.password_hash, hashing_algorithm: user.hashing_algorithm });

function Password({ user, again }) {
	const session = useSession();
	const form = useForm({ password: '', repeated: '' });
	const submit = async () => {
		const { password } = form.values;
		checkPassword(form.values);
		await put(path('users', user.name), { password, tags: user.tags.join(',') });
		if (user.name === session.name) { // logins end with the password that opened them
			await login(user.name, password);
			await session.reload();
		}
		say(t('password.changed', { name: user.name }));
		form.reset();
		again();
	};
	const remove = async () => {
		await put(path('users', user.name), { password_hash: '', tags: user.tags.join(',') });
		say(t('password.removed', { name: user.name }));
		again();
	};
	const has = user.password_hash !== '';
	return (
		<Card title={t('password')} tools={has && user.name !== session.name &&
			<Destroy small label={t('password.remove')} question={t('password.remove.sure')} run={remove} />}>
			{!has && <p><Badge kind="warn">{t('password.none')}</Badge></p>}
			<Form submit={submit} label={t('password.change')}><PasswordFields form={form} user={user.name} /></Form>
		</Card>
	);
}

function TagCard({ user, again }) {
	const session = useSession();
	const form = useForm(tagValues(user.tags));
	const submit = async () => {
		await put(path('users', user.name), { ...kept(user), tags: tagsOf(form.values) });
		say(t('user.changed', { name: user.name }));
		if (user.name === session.name)
			await session.reload();
		again();
	};
	return <Card title={t('tags')}><Form submit={submit} label={t('save')}><TagFields plain form={form} /></Form></Card>;
}

function Remove({ user }) {
	const session = useSession();
	const remove = async () => {
		await del(path('users', user.name));
		say(t('user.deleted', { name: user.name }));
		go('users');
	};
	if (user.name === session.name)
		return <p class="muted">{t('user.delete.you')}</p>;
	return <Destroy label={t('user.delete')} question={t('user.delete.sure')} name={user.name} run={remove} />;
}
