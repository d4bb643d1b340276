// SPDX-License-Identifier: Apache-2.0
// Limits of a vhost or of a user.
import { del, path, put } from '../api.js';
import { t } from '../i18n/index.js';
import { Form, Text, useForm } from './form.jsx';
import { number } from './format.js';
import { say } from './toast.jsx';

export const LIMITS = { vhost: ['max-connections', 'max-queues'], user: ['max-connections', 'max-channels'] };

/** What is set, as short text: "Most connections 100, ..."; a negative one is none. */
export const limitsText = (value) => Object.entries(value).map(([name, n]) => `${t('limit.' + name)} ${n < 0 ? t('none') : number(n)}`).join(', ');

/** of: 'vhost' or 'user'; name: of it; value: what is set now. */
export function LimitsForm({ of, name, value, after }) {
	const now = (limit) => (value[limit] === undefined ? '' : String(value[limit]));
	const form = useForm(Object.fromEntries(LIMITS[of].map((limit) => [limit, now(limit)])));
	const submit = async () => {
		for (const limit of LIMITS[of]) {
			const wanted = form.values[limit], where = path(of + '-limits', name, limit);
			if (wanted === now(limit))
				continue;
			if (wanted === '')
				await del(where);
			else
				await put(where, { value: Number(wanted) });
		}
		say(t('limits.set', { name }));
		after();
	};
	return (
		<Form submit={submit} label={t('limits.submit')}>
			<div class="fields">
				{LIMITS[of].map((limit) => <Text key={limit} form={form} name={limit} label={t('limit.' + limit)} type="number" min="0" placeholder={t('limit.none')} />)}
			</div>
		</Form>
	);
}
