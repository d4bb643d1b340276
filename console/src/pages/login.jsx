// SPDX-License-Identifier: Apache-2.0
import { login } from '../api.js';
import { t } from '../i18n/index.js';
import { Form, Text, useForm } from '../lib/form.jsx';
import { LanguageChoice, ThemeChoice } from '../lib/choices.jsx';

/* Why it was refused, and what to do. */
function why({ status, reason }) {
	if (status === 429)
		return t('login.many');
	if (/localhost/.test(reason))
		return t('login.local');
	if (/management user/.test(reason))
		return t('login.tags');
	return status === 401 ? t('login.wrong') : reason;
}

export function Login({ onLogin, expired, redraw }) {
	const form = useForm({ username: '', password: '' });
	const submit = async () => {
		try {
			await login(form.values.username, form.values.password);
		} catch (error) {
			throw new Error(why(error));
		}
		await onLogin();
	};
	return (
		<main class="login">
			<h1>Hermes</h1>
			{expired && <p role="status">{t('login.expired')}</p>}
			<Form submit={submit} label={t('login.submit')}>
				<Text form={form} name="username" label={t('login.user')} autocomplete="username" autofocus required />
				<Text form={form} name="password" label={t('login.password')} type="password" autocomplete="current-password" />
			</Form>
			<p class="muted">{t('login.first')}</p>
			<div class="bar"><LanguageChoice redraw={redraw} /><ThemeChoice redraw={redraw} /></div>
		</main>
	);
}
