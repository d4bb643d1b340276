// SPDX-License-Identifier: Apache-2.0
import { login } from '../api.js';
import { t } from '../i18n/index.js';
import { Form, Text, useForm } from '../lib/form.jsx';
import { LanguageChoice, ThemeChoice } from '../lib/choices.jsx';

export function Login({ onLogin, expired, redraw }) {
	const form = useForm({ username: '', password: '' });
	const submit = async () => {
		await login(form.values.username, form.values.password);
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
			<div class="bar"><LanguageChoice redraw={redraw} /><ThemeChoice redraw={redraw} /></div>
		</main>
	);
}
